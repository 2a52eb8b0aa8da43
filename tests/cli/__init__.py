"""Tests of `wcet_probe/cli/`."""
