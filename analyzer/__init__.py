"""What is proved of a binary without running it: an upper bound of the worst-case execution time, with a certificate.

The folders are the stages, the lowest first: `pcode`, `domains`, `graph`, `values`, `ipet`, `facts`, `loops`, `icache`,
`dcache`; on top `bound`.
"""
