"""Tests of `emu/`."""
