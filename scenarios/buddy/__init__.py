"""States of the binary and the Fibonacci buddy system."""
