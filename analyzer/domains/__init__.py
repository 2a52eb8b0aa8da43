"""Abstract domains: strided intervals of machine words, and the contents of a cache set."""
