"""Tests of `scenarios/fast_fit/`."""
