"""Tests of `wcet_probe/catalog/`."""
