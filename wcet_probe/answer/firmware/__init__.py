"""A function of anybody's firmware: its bound, and its runs."""
