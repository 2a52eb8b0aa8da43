"""Tests of `scenarios/workloads/`."""
