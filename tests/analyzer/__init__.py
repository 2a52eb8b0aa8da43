"""Tests of `analyzer/`."""
