"""Tests of `scenarios/dlmalloc28/`."""
