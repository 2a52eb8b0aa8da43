"""Control flow: blocks of a function, the supergraph with its call contexts, loop forests, and the fixpoint engine."""
