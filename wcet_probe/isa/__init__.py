"""Instruction sets: decoding, the addresses that accesses go to, and what the timing table charges."""
