"""Tests of `wcet_probe/compiled/`."""
