"""Invariants of an allocator's memory, by induction over all of its operations."""
