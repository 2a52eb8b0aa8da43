"""Which cache sets an allocator may touch: what it specifies, what is proved of it, and what runs show."""
