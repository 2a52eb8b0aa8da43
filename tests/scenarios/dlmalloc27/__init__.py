"""Tests of `scenarios/dlmalloc27/`."""
