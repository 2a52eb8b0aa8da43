"""Tests of `analyzer/values/`."""
