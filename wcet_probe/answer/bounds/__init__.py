"""Bounds of operations: proved on demand, kept, by size, and how far they are above the witness."""
