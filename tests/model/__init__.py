"""Tests of `wcet_probe/model/`."""
