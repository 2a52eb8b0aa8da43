"""States of the DJGPP variants, with buckets of powers of two or with boundary tags."""
