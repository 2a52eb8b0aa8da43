"""Tests of `wcet_probe/isa/`."""
