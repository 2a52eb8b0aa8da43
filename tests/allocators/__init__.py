"""Tests of the allocators in C."""
