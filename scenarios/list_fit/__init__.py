"""States of sequential fits: first-fit and best-fit over one list of free blocks."""
