"""Values as symbolic terms: sums, quotients, masks and comparisons of what is not known."""
