"""Tests of `reports/dossier/`."""
