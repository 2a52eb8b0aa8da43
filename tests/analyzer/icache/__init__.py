"""Tests of `analyzer/icache/`."""
