"""Workloads of real programs: replayed on an allocator, and what they cost."""
