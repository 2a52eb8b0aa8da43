"""Tests of `analyzer/domains/`."""
