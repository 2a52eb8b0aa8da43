"""Tests of `scenarios/avl/`."""
