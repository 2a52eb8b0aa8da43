"""Tests of `wcet_probe/ci/`."""
