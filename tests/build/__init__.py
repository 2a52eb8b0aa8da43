"""Tests of `build/`."""
