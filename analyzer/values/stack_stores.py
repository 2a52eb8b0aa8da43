"""Stores by the stack pointer that may go outside of the call's frames: by an index, or to what a caller gave.

Words: base, assumption, stack stores, stack separation (docs/explanation/glossary.md).

*Soundness:* what lies between the stack pointer at entry and the lowest one that is known is in frames of the call. A
store that is derived from the stack pointer is taken to be to the stack, wherever it goes: that those which may go
elsewhere hit no static data is assumption ``stack-stores``.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.result import Values


def may_leave_frames(values: Values) -> bool:
    """Whether a store that is derived from the stack pointer may be outside of the call's frames.

    *Soundness:* as said of the module.
    """
    lowest = min(_lowest(values), default=0)
    return any(
        low < lowest or high + access.size_bytes > 0
        for own in values.accesses.values()
        for access in own
        if access.is_store and access.base is Base.STACK
        for low, high in (access.offset.signed_range(),)
    )


def _lowest(values: Values) -> Iterator[int]:
    """Offsets from the stack pointer at entry that are surely in the stack: of that pointer, and of known accesses."""
    pointer = values.registers.get("sp", values.registers["r1"])
    for state in values.states.values():
        term = state.read(pointer)
        if term is not None and state.base(term) is Base.STACK and state.value(term).is_constant:
            yield state.value(term).signed_range()[0]
    for own in values.accesses.values():
        for access in own:
            if access.base is Base.STACK and access.offset.is_constant:
                yield access.offset.signed_range()[0]
