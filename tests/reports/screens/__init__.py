"""Tests of `reports/screens/`."""
