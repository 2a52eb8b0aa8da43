"""Tests of `scenarios/buddy/`."""
