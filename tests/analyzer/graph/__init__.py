"""Tests of `analyzer/graph/`."""
