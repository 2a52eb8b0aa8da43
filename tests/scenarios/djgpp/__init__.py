"""Tests of `scenarios/djgpp/`."""
