"""Tests of `analyzer/loops/`."""
