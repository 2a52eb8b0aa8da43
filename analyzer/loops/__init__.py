"""How often loops repeat: counting loops, triangular sums, pairs of edges that no execution takes both of."""
