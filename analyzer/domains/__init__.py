"""Abstract domains: the protocol of all, strided intervals of machine words, congruences, contents of a cache set."""
