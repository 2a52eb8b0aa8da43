"""Tests of `scenarios/`."""
