"""Tests of `wcet_probe/evidence/`."""
