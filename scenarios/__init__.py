"""Constructive worst states: for each allocator, operations that bring its heap into the state a call is slowest in."""
