"""Tests of `analyzer/pcode/`."""
