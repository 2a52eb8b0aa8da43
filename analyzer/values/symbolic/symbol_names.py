"""What the name of a symbol tells of the place that defines it.

Words: symbolic variable (docs/explanation/glossary.md).

*Soundness:* where a name does not tell, the answer is that it is not known.
"""

from __future__ import annotations

from wcet_probe.analyzer.values.symbolic.term_table import SymbolName

ENTRY = -1
"""Where a symbol is defined that stands for a value at entry."""


def defined_at(name: SymbolName) -> int | None:
    """The point that defines the symbol of this name, ``ENTRY``, or None where that is not known."""
    match name:
        case ("in", _) | ("stack pointer",):
            return ENTRY
        case ("phi", ("edge", int(source), _), *_):
            return source
        case ("phi", (int(place), *_), *_) | (int(place), *_):
            return place
    return None


def is_defined_before(name: SymbolName, place: int, now: tuple[int, int]) -> bool:
    """Whether the symbol of this name, where point ``place`` defines it, was defined in the current execution of it.

    Args:
        name: of the symbol.
        place: the point that is executed.
        now: address and operation that it has come to.

    *Soundness:* the instructions of a block are executed in the order of their addresses. Where a predicated definition
    was skipped, what speaks of the symbol behind it does so under the condition that it was not.
    """
    defined = defined_at(name)
    match name:
        case ("phi", (int(), *at), *_) if defined == place:
            return tuple(at) <= now
        case (int(), *at) if defined == place:
            return tuple(at[:2]) < now
    return defined is not None and defined != place
