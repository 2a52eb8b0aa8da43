"""Tests of `scenarios/cama/`."""
