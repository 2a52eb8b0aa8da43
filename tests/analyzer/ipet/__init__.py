"""Tests of `analyzer/ipet/`."""
