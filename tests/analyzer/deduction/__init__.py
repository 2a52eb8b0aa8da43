"""Tests of `analyzer/deduction/`."""
