"""Tests of `wcet_probe/traces/`."""
