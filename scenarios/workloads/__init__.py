"""Workloads of the papers: what a program asks of its heap over time, the same for every allocator."""
