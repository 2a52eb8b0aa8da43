"""Flow facts: which a bound still needs, what each does to it, and which of them are proved."""
