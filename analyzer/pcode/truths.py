"""Which operations of p-code are conditions, and what their opposites are; and which only count bits.

Words: P-code, predicate (docs/explanation/glossary.md).

*Soundness:* tables of the operations' definitions (Ghidra, P-Code Reference Manual).
"""

from __future__ import annotations

RELATIONS = frozenset({"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"})
TRUTHS = RELATIONS | {"BOOL_NEGATE", "BOOL_AND", "BOOL_OR", "BOOL_XOR", "INT_CARRY", "INT_SCARRY", "INT_SBORROW"}
BIT_COUNTS = frozenset({"LZCOUNT", "POPCOUNT"})
"""Numbers up to the width of the operand, whatever that is."""
OPPOSITES = {"INT_EQUAL": "INT_NOTEQUAL", "INT_NOTEQUAL": "INT_EQUAL"}
MIRRORED = {
    "INT_LESS": "INT_LESSEQUAL",
    "INT_LESSEQUAL": "INT_LESS",
    "INT_SLESS": "INT_SLESSEQUAL",
    "INT_SLESSEQUAL": "INT_SLESS",
}
"""not (a < b) is b <= a."""
