"""Tests of `wcet_probe/certificate/`."""
