"""Heap operations of real programs: recorded, imported, kept in a compact file, and put into slots for a replay."""
