"""What a proof says of the data accesses of an instruction, the contexts put together: what a run can be held against.

Both engines hold an access against what is said in its own context and copy of the block besides
(`emu.call_path_tables` and `wcet_probe.answer.witness.call_paths`); visits, changes of line and counts of lines are
held here only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wcet_probe.model.proof import AccessRange


@dataclass(frozen=True, slots=True)
class AddressRange:
    """The addresses ``low + k * stride`` for ``k`` from 0 to ``steps``; from the stack pointer at entry, or from 0."""

    low: int
    stride: int
    steps: int
    from_stack: bool

    def contains(self, address: int, stack_pointer: int) -> bool:
        """Whether ``address`` is one of them, modulo 2**32."""
        offset = address - self.low - (stack_pointer if self.from_stack else 0) & 0xFFFFFFFF
        if not self.stride:
            return offset == 0
        return offset % self.stride == 0 and offset // self.stride <= self.steps


@dataclass(frozen=True, slots=True)
class AccessClaim:
    """What is claimed of all loads, or all stores, of the instruction at ``address``.

    Attributes:
        address, is_store: which.
        ranges: addresses that they may be to.
        sets: of the data cache; None for any.
        may_cross: whether they may be to two lines of the data cache.
        may_be_frame: whether a store may be to the call's own stack.
        is_first_visit: whether the line that a load is from counts as visited from then on.
        is_only_again: whether the line must have been visited.
        line_changes: a fact, and how many of its accesses may be to another line than the access before.
        lines: a fact, how many lines its accesses may be to, and how many of them in one set.
        facts: facts about pointers that any of it rests on.
    """

    address: int
    is_store: bool
    ranges: tuple[AddressRange, ...]
    sets: frozenset[int] | None
    may_cross: bool
    may_be_frame: bool
    is_first_visit: bool
    is_only_again: bool
    line_changes: tuple[str, int] | None
    lines: tuple[str, int, int] | None
    facts: frozenset[str]


def access_claims(accesses: Iterable[AccessRange]) -> Mapping[tuple[int, bool], AccessClaim]:
    """The claims of ``accesses``, by address of the instruction and whether it stores."""
    grouped: dict[tuple[int, bool], list[AccessRange]] = {}
    for access in accesses:
        grouped.setdefault((access.address, access.is_store), []).append(access)
    return {place: _claim(*place, group) for place, group in grouped.items()}


def _claim(address: int, is_store: bool, group: list[AccessRange]) -> AccessClaim:  # noqa: FBT001  (of the key)
    sets = [each.sets for each in group]
    return AccessClaim(
        address=address,
        is_store=is_store,
        ranges=tuple(dict.fromkeys(AddressRange(e.low, e.stride, e.steps, e.base == "stack") for e in group)),
        sets=None if None in sets else frozenset().union(*(each for each in sets if each is not None)),
        may_cross=any(not each.is_one_line for each in group),
        may_be_frame=any(each.base != "number" for each in group),
        is_first_visit=any(each.visit == "first" for each in group),
        is_only_again=all(each.visit == "again" for each in group),
        line_changes=next((each.line_changes for each in group if each.line_changes), None),
        lines=next((each.lines for each in group if each.lines), None),
        facts=frozenset(each.fact for each in group if each.fact),
    )
