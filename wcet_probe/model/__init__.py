"""The nouns of wcet-probe: frozen values that every other room exchanges, a module for each subject.

Standard library only. Units stand in the names: ``_bytes``, ``_cycles``, ``_bits``; a count has no unit.
Addresses are guest addresses, unsigned 32-bit. The same words are used in code, JSON, CLI and documentation.
"""
