"""Tests of `wcet_probe/answer/`."""
