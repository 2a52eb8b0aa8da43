"""Tests of `wcet_probe/cache_sets/`."""
