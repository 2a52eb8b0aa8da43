"""Tests of `analyzer/invariants/`."""
