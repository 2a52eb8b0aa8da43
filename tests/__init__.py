"""Tests, in folders like those they test."""
