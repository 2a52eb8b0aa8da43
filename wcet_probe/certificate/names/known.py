# SPDX-License-Identifier: 0BSD
"""Which places hold what the code knows: of these no fact about pointers speaks, whatever a certificate leaves out.

A fact says of addresses what nothing else tells of them, and no run is held against it where values tell more. So that
a certificate cannot leave out what is known of a register, to have a fact believed of it, the code is followed where
words come from: known is a constant, and what is computed of constants alone; what is in a range behind an instruction
or a comparison, or by a fact about an argument or a word; and a copy of what is known, in a register or one word. Of a
comparison a register alone keeps that: to the word that it was loaded from stores may go of which nobody says where.

*Soundness:* what is known on each way is what one knows who joins ways: ``surely``. Where a loop begins that is only
what one instruction has left: ranges of others may grow. As others may keep ways apart, it is told besides what is
known on some way, or computed of that alone: ``perhaps``. Nothing is kept of words of which nobody says where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.kernel.shapes import arriving_edges, postorder
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.machines.operands import ALIASES, may_be_skipped
from wcet_probe.certificate.values.congruences import UNKNOWN_SPAN
from wcet_probe.certificate.values.numbers import Value, constant
from wcet_probe.certificate.values.state import STATIC, Place, State, joined
from wcet_probe.model.instruction import AccessKind, Instruction


class _Origin(NamedTuple):
    """Where what is known comes from, and how far the least and the greatest number are apart that it may be."""

    place: object
    span: int = 0


_Places = Mapping[Place, _Origin]


_CONSTANT = _Origin("some way")
_NULL = _Origin("null")
"""Of a pointer that may be null nothing more is known than of one that is not: facts speak of both."""
_MOST_VISITS = 256
"""So often nodes are followed on the average; if that is not the end, no fact is believed."""
_BOTH = (AccessKind.LOAD, AccessKind.STORE)
_PAIR, _REGISTER = re.compile("(ldr|str)(ex)?d"), re.compile("[a-z]+[0-9]*")
_COPIES = re.compile(r"(mov[a-z]*|mr)(\.w)? [a-z]+[0-9]*, [a-z]+[0-9]*")


class _Access(NamedTuple):
    """The place of the one word that an access is to, if it is known, what it does, and the registers it may be of."""

    word: Place | None
    kind: AccessKind
    registers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Effect:
    """An instruction: what it reads, its accesses, and what it leaves in a range, by register.

    ``finds`` is what loads find, by register, where that was found before.
    """

    instruction: Instruction
    reads: frozenset[str]
    accesses: tuple[_Access, ...]
    narrow: Mapping[Place, _Origin]
    finds: Mapping[str, _Origin] | None = None


Effects = Mapping[str, Sequence[_Effect]]


class Known(NamedTuple):
    """What is known by node: where it begins, and by address before and behind each instruction."""

    surely: Mapping[str, Mapping[int, tuple[_Places, _Places]]]
    perhaps: Mapping[str, Mapping[int, tuple[_Places, _Places]]]
    begin: Mapping[str, _Places]

    def is_unknown(
        self, node: str, address: int, registers: Iterable[str | None], span: int, *, on_each_way: bool
    ) -> bool:
        """Whether a register holds before the instruction at ``address`` what nobody knows to be within ``span``."""
        found = [one.get(node, {}).get(address) for one in (self.surely, self.perhaps)[: 1 + on_each_way]]
        known = [one[0] for one in found if one is not None]
        names = [one for one in registers if one is not None]
        return len(known) == len(found) and any(
            all(name not in one or one[name].span >= span for one in known) for name in names
        )

    def leaves_unknown(self, node: str, address: int, place: Place) -> bool:
        """Whether the instruction at ``address`` leaves in ``place`` what nobody knows."""
        found = self.surely.get(node, {}).get(address)
        return found is not None and place not in found[1]

    def begins_unknown(self, node: str, place: Place) -> bool:
        """Whether ``place`` holds where ``node`` begins what nobody knows, on some way."""
        return node in self.begin and place not in self.begin[node]


def known_places(
    code: Code, graph: Graph, invariants: Mapping[str, Mapping[Place, Value]], coverage: Coverage, words: Iterable[int]
) -> Known:
    """What may be known before each instruction of a graph.

    Args:
        code: the image.
        graph: of the certificate.
        invariants: of its nodes.
        coverage: of the graph.
        words: addresses of words of which facts tell.
    """
    registers = frozenset(code.isa.REGISTERS)
    effects = {node: _effects(code, coverage, node, values, registers) for node, values in invariants.items()}
    leading = {
        node: [edge.target for edge in graph.leading[node] if edge.name in coverage.taken] for node in graph.nodes
    }
    order = {node: number for number, node in enumerate(postorder(leading, graph.entry))}
    headers = {target for node in order for target in leading[node] if order[node] <= order[target]}
    told = {STATIC + word: _Origin("told") for word in words} | _narrow(coverage.arguments, "told")
    entry = told | _narrow(code.isa.entry_state().values, "entry")
    compared: dict[str, _Places] = {
        name: {place: origin for place, origin in _narrow(state.values, name).items() if isinstance(place, str)}
        for name, state in coverage.taken.items()
    }

    def on_each_way(edge: Edge, old: _Places, new: _Places) -> _Places:
        found = dict[Place, _Origin]()
        for place in old.keys() & new.keys():
            if old[place] == new[place]:
                found[place] = old[place]
            elif edge.target not in headers:
                found[place] = _Origin(edge.target, max(1, old[place].span, new[place].span))
        return found

    begin = _followed(graph, effects, entry, on_each_way, compared)
    surely = _along(effects, begin)
    on_some = {node: [_as_constant(one, surely[node]) for one in effects[node]] for node in begin}
    first = dict.fromkeys(entry, _CONSTANT)
    taken: dict[str, _Places] = {name: MappingProxyType({}) for name in compared}
    perhaps = _along(on_some, _followed(graph, on_some, first, lambda _, old, new: {**new, **old}, taken))
    return Known(surely, perhaps, begin)


def _as_constant(effect: _Effect, surely: Mapping[int, tuple[_Places, _Places]]) -> _Effect:
    """``effect`` on what is known on some way, of which it does not matter how much that is."""
    before, _ = surely[effect.instruction.address]
    finds = dict.fromkeys(_finds(effect, before), _CONSTANT)
    return replace(effect, narrow=dict.fromkeys(effect.narrow, _CONSTANT), finds=finds)


def _along(effects: Effects, begin: Mapping[str, _Places]) -> dict[str, dict[int, tuple[_Places, _Places]]]:
    """What is known before and behind each instruction of each node, by what is where nodes ``begin``."""
    found: dict[str, dict[int, tuple[_Places, _Places]]] = {}
    for node, known in begin.items():
        around = pairwise(accumulate(effects[node], _behind, initial=known))
        found[node] = {one.instruction.address: own for one, own in zip(effects[node], around, strict=True)}
    return found


def _narrow(values: Mapping[str, Value] | Mapping[Place, Value], origin: object) -> dict[Place, _Origin]:
    """Places that are known to be in a range."""
    return {
        place: _NULL if value == constant(0) else _Origin(origin, value.high - value.low)
        for place, value in values.items()
        if _is_narrow(value)
    }


def _is_narrow(value: Value) -> bool:
    return not value.is_plain or value.high - value.low < UNKNOWN_SPAN


def _followed(
    graph: Graph,
    effects: Effects,
    entry: _Places,
    meet: Callable[[Edge, _Places, _Places], _Places],
    taken: Mapping[str, _Places],
) -> dict[str, _Places]:
    """What is known where nodes begin that control may come to; on edges that are ``taken`` that is known besides."""
    found, waiting, visits = {graph.entry: entry}, [graph.entry], _MOST_VISITS * len(graph.nodes)
    arriving, leaving = arriving_edges(graph), dict[str, _Places]()
    while waiting and visits:
        node, visits = waiting.pop(), visits - 1
        after = reduce(_behind, effects[node], found[node])
        for edge in graph.leading[node]:
            if edge.name not in taken:
                continue
            leaving[edge.name] = {**taken[edge.name], **after}
            own = entry if edge.target == graph.entry else None
            for other in arriving[edge.target]:
                if other.name in leaving:
                    own = leaving[other.name] if own is None else meet(other, own, leaving[other.name])
            if own is not None and found.get(edge.target) != own:
                found[edge.target] = own
                waiting.append(edge.target)
    return {} if waiting else found


def _effects(
    code: Code, coverage: Coverage, node: str, values: Mapping[Place, Value], registers: frozenset[str]
) -> list[_Effect]:
    machine = Machine(code.image, coverage.escapes, on_stack=coverage.on_stack.again(), saving=coverage.saving)
    state, found = State(dict(values)), list[_Effect]()
    for instruction in coverage.instructions[node]:
        words = [
            (kind, _word(machine.address_of(access, state, each), access.bytes_each))
            for access in instruction.accesses
            for each in range(access.count)
            for kind in (_BOTH if access.kind is AccessKind.LOAD_STORE else (access.kind,))
        ]
        of = {one for access in instruction.accesses for one in (access.base, access.index)}
        reads = instruction.reads & registers
        has_enough = len(reads - of) >= sum(access.count for access in instruction.accesses)  # else it stores its base
        stored = _in_order(instruction, reads - of if has_enough else reads, len(words))
        loaded = _in_order(instruction, instruction.loaded, len(words))
        accesses = tuple(
            _Access(word, kind, one if kind is AccessKind.STORE else other)
            for (kind, word), one, other in zip(words, stored, loaded, strict=True)
        )
        ways = [one.state for one in code.isa.outcomes_of(machine, instruction, state)]
        executed, state = (ways[0], reduce(joined, ways)) if ways else (state, state)  # if it may be, the first is so
        behind = executed if may_be_skipped(instruction) else state
        changed = instruction.writes | instruction.loaded
        narrow = _narrow({register: behind.read(register) for register in changed}, instruction.address)
        found.append(_Effect(instruction, reads, accesses, narrow))
    return found


def _word(address: Value, size_bytes: int) -> Place | None:
    if size_bytes != 4 or not address.is_constant or not (address.is_number or address.base == "stack"):
        return None
    return address.low + (STATIC if address.is_number else 0)


def _in_order(instruction: Instruction, registers: Iterable[str], words: int) -> list[tuple[str, ...]]:
    """The register of each of so many words; all of them, where there is not one for each.

    They go upwards, but those of a pair as they are written: those of Thumb are any two.
    """
    own = sorted(registers, key=lambda name: (len(name), name))
    if _PAIR.match(instruction.text):
        written = [ALIASES.get(one, one) for one in _REGISTER.findall(instruction.text)]
        own = sorted(own, key=lambda name: written.index(name) if name in written else len(written))
    return [(one,) for one in own] if len(own) == words else [tuple(own)] * words


def _finds(effect: _Effect, known: _Places) -> dict[str, _Origin]:
    """Where what loads find comes from, by register, if that is known; of the stack constants alone are looked for."""
    found: dict[str, _Origin] = {}
    for access in effect.accesses:
        origin = known.get(access.word) if access.kind is AccessKind.LOAD and access.word is not None else None
        if origin is not None and (not origin.span or (isinstance(access.word, int) and access.word >= STATIC)):
            found |= dict.fromkeys(access.registers, origin)
    return found


def _behind(known: _Places, effect: _Effect) -> _Places:
    """What is known behind an instruction, if ``known`` is before it."""
    changed: dict[Place, _Origin | None] = {}
    for access in effect.accesses:
        if access.kind is not AccessKind.LOAD and access.word is not None:
            changed[access.word] = next((known[one] for one in access.registers if one in known), None)
    for register in effect.instruction.writes | effect.instruction.loaded:
        changed[register] = _left(effect, register, known)
    if may_be_skipped(effect.instruction):
        changed = {place: _chosen(known.get(place), one) for place, one in changed.items()}
    own = {place: origin for place, origin in known.items() if place not in changed}
    return own | {place: origin for place, origin in changed.items() if origin is not None}


def _chosen(one: _Origin | None, other: _Origin | None) -> _Origin | None:
    """What is known of one of two that a condition chooses: of what may be unknown, if the other is more than null."""
    if one is None or other is None:
        found = one or other
        return None if found == _NULL else found
    return one if one == other else _Origin(other.place, max(1, one.span, other.span))


def _left(effect: _Effect, register: str, known: _Places) -> _Origin | None:
    """Where what an instruction leaves in a register comes from, if that is known."""
    if register in effect.narrow:
        return effect.narrow[register]
    if register in effect.instruction.loaded:
        return (_finds(effect, known) if effect.finds is None else effect.finds).get(register)
    of = {one for access in effect.instruction.accesses for one in (access.base, access.index)}
    read = [known.get(one) for one in (effect.reads & of if register in of else effect.reads)]  # written back: no data
    if len(read) == 1 and _COPIES.fullmatch(effect.instruction.text):
        return read[0]
    is_constant = all(one is not None and not one.span for one in read)
    return _Origin(effect.instruction.address) if is_constant else None
