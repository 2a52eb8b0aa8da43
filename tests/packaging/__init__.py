"""Tests of the wheel, the architecture and the licences."""
