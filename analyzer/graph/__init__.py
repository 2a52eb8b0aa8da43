"""Control flow: basic blocks of a function, the supergraph with its call contexts, and its loop forest."""
