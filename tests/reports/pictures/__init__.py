"""Tests of `reports/pictures/`."""
