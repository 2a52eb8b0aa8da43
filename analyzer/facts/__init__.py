"""What people say of loops, paths and memory: the language of flow facts, and how a fact is bound to source or code."""
