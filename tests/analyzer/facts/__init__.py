"""Tests of `analyzer/facts/`."""
