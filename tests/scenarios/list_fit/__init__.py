"""Tests of `scenarios/list_fit/`."""
