# SPDX-License-Identifier: 0BSD
"""Where the address is that a function was called with, while it is executed: in registers and words of the stack.

Of a return whose address nobody can follow the assumption *return-address* tells where it goes. But what a certificate
calls unknown need not be: code may have put a number there itself, and jump by what looks like a return. So the places
are followed anew, from the link register where the function is entered, whatever is said of values, and so are the
places that point into the stack. Stores to a place that is not known are taken to miss them: that is what is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.certificate.kernel.contexts import context_of
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.values.numbers import ANY, Value
from wcet_probe.certificate.values.state import STATIC, Place, State
from wcet_probe.model.instruction import Control, Instruction

_Held = Mapping[str, frozenset[Place]]
"""By context, the places that hold the address that its function was called with."""
Pointers = Mapping[Place, Value]
"""What points to a known place of the stack."""
_STEPPED = re.compile(r".*, #((?:0x)?[0-9a-f]+)")
_MOST_LINE_BYTES = 64
"""An instruction that writes a line cuts its address down to where the line begins."""


@dataclass(slots=True)
class SparingMachine(Machine):
    """Executes as if stores to a place that is not known missed the stack; so nothing that was stored decides a way."""

    def load(self, address: Value, size_bytes: int, state: State, *, is_signed: bool = False) -> tuple[Value, object]:
        """A load: a place in the stack, or anything, by the name of the word that it is from."""
        value, name = Machine.load(self, address, size_bytes, state, is_signed=is_signed)
        return value if _is_pointer(value) else ANY, name

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """A store; to nothing but a known place of the stack, or one in a known line, does it change anything."""
        if address.base == "stack" and address.high - address.low < _MOST_LINE_BYTES:
            for place in range(address.low & ~3, address.high + size_bytes, 4):
                state.drop(place)
        if _is_pointer(address):
            Machine.store(self, address, size_bytes, value, name, state)


def returning_to_caller(
    graph: Graph,
    code: Mapping[str, Sequence[Instruction]],
    ways: Callable[[str, Pointers], Iterable[tuple[Outcome, Sequence[Edge]]]],
    link: str,
    stack_pointer: str,
) -> set[str]:
    """The nodes whose returns go to the address that their function was called with, by a copy of it at least.

    Args:
        graph: of the certificate.
        code: instructions of each node.
        ways: the ways out of a node, as a `SparingMachine` executes it from what points into the stack, and the edges
            that each may take.
        link: the link register.
        stack_pointer: that register.
    """
    holds: dict[str, _Held] = {graph.entry: {context_of(graph.entry): frozenset({link})}}
    pointers: dict[str, Pointers] = {graph.entry: {}}
    known: dict[str, tuple[Pointers, Sequence[tuple[Outcome, Sequence[Edge]]]]] = {}
    waiting, returns = [graph.entry], dict[str, bool]()
    while waiting:
        node = waiting.pop()
        if node not in known or known[node][0] != pointers[node]:
            known[node] = pointers[node], tuple(ways(node, pointers[node]))
        last, is_return = code[node][-1], True
        for outcome, edges in known[node][1]:
            behind = {context: _moved(own, outcome.state) for context, own in holds[node].items()}
            if outcome.over is not None:
                behind = {context: _above(own, outcome.state.read(stack_pointer)) for context, own in behind.items()}
            pointing = {place: value for place, value in outcome.state.values.items() if _is_pointer(value)}
            if outcome.is_assumed:
                is_return &= _source(last, outcome.state, link, stack_pointer) in behind.get(context_of(node), ())
            for edge in edges:
                new, points = _along(edge, last, behind, link), pointing
                old, before = holds.get(edge.target), pointers.get(edge.target)
                held = new if old is None else _joined(old, new)
                if before is not None:
                    points = {place: value for place, value in before.items() if pointing.get(place) == value}
                if held != old or points != before:
                    holds[edge.target], pointers[edge.target] = held, points
                    waiting.append(edge.target)
        returns[node] = is_return
    return {node for node, is_return in returns.items() if is_return}


def _along(edge: Edge, last: Instruction, behind: _Held, link: str) -> _Held:
    """What is held behind an edge: by the functions that wait, and by one that is called or jumped to."""
    before, after = context_of(edge.source), context_of(edge.target)
    found = {context: own for context, own in behind.items() if after.startswith(context)}
    if after not in found:
        found[after] = frozenset({link}) if last.control is Control.CALL else behind.get(before, frozenset())
    return found


def _joined(one: _Held, other: _Held) -> _Held:
    return {context: own & other.get(context, frozenset()) for context, own in one.items()}


def _moved(places: Collection[Place], state: State) -> frozenset[Place]:
    """The places that hold, in the end, what one of ``places`` held where the node began."""
    kept = {place for place in places if place not in state.names}
    copied = {
        place
        for place, name in state.names.items()
        if isinstance(name, str | int) and name in places and not (isinstance(place, int) and place >= STATIC)
    }
    return frozenset(kept | copied)


def _above(places: Collection[Place], pointer: Value) -> frozenset[Place]:
    """Those of ``places`` that a callee's frame is not in."""
    least = pointer.low if _is_pointer(pointer) else STATIC
    return frozenset(place for place in places if isinstance(place, str) or place >= least)


def _is_pointer(value: Value) -> bool:
    return value.base == "stack" and value.is_constant


def _source(last: Instruction, state: State, link: str, stack_pointer: str) -> Place | None:
    """The place that a return takes its address from."""
    if not last.accesses:
        return link
    pointer, stepped = state.read(stack_pointer), _STEPPED.fullmatch(last.text)
    if not _is_pointer(pointer):
        return None
    return pointer.low - (int(stepped[1], 0) if stepped else 4)
