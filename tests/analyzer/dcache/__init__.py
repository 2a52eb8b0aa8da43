"""Tests of `analyzer/dcache/`."""
