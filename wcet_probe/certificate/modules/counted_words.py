# SPDX-License-Identifier: 0BSD
"""Which words an operation loads and counts in, or follows: by *words-keep-their-kind* they were stored as that.

Counted in is what is multiplied or shifted to the left, or a summand of it, or compared, with a constant added or none,
with a number from 1 to 65,535. It must not be a link as well: a word is none of these if it, or what is made of it by
sums, differences and bits, is followed anywhere in the operation, is compared with what may be an address or a link, is
returned as a block, or goes where nobody looks. So of a word that is used as both nothing is told.

Followed is what is the address of an access, less than 65,536 bytes from it: no object lies so low that the word is an
index there. Of what is counted in as well it is not told.

It is asked of the code alone: which words come where is followed forward through the graph, from each load, until no
more comes anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, edges_taken, run_block
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.computations import mask_of
from wcet_probe.certificate.machines.machine import Outcome
from wcet_probe.certificate.machines.operands import NUMBER as DIGITS
from wcet_probe.certificate.machines.operands import Computation, computation
from wcet_probe.certificate.modules.image_words import constant_word
from wcet_probe.certificate.modules.instruction_kinds import Combined, unconditional
from wcet_probe.certificate.modules.module_machine import ModuleMachine
from wcet_probe.certificate.values.kinds import ANYTHING, Word
from wcet_probe.certificate.values.numbers import WORD, Value
from wcet_probe.certificate.values.state import STATIC, Place, State
from wcet_probe.model.instruction import Access, Instruction, Shift

_LOW = 1 << 16
"""No memory lies below: a number from 1 to this, without it, is no address."""
_FLAGS = 6
"""Lowest bits of an address that may be flags."""
_SCALES = {"slwi", "lsl", "slw", "mul", "mullw"}
_OF_NUMBERS = {*_SCALES, "lsr", "asr", "srwi", "srw", "sraw", "srawi", "clz", "cntlzw", "ubfx", "uxtb", "uxth"}
"""What these leave is a number, whatever it is made of."""


class Grade(IntEnum):
    """How a word stands in another: as a part of any kind, as a summand, or as it is, constants and masks apart."""

    PART = 0
    SUMMAND = 1
    WHOLE = 2


class Load(NamedTuple):
    """An instruction at ``address`` of a node, which loads a word, of several the one of that number."""

    node: str
    address: int
    number: int = 0


class Held(NamedTuple):
    """A word that a load gave, in another one."""

    load: Load
    grade: Grade


Loading = tuple[int, int]
"""The address of an instruction that loads, and the number of the word among those that it loads."""
Words = Mapping[Held, int | None]
"""Words in one, each with what was added to it since; None where that is not known."""


class Arrived(NamedTuple):
    """What comes to a node.

    Attributes:
        words: loaded words, by place, along any way.
        numbers: places that hold what is computed in a way that leaves a number, along all ways.
    """

    words: Mapping[Place, Words]
    numbers: frozenset[Place]

    def joined(self, other: Arrived) -> Arrived:
        """What comes along either way."""
        places = self.words.keys() | other.words.keys()
        words = {one: _joined(self.words.get(one, {}), other.words.get(one, {})) for one in places}
        return Arrived(words, self.numbers & other.numbers)


class _Uses:
    """What was found of all loads."""

    def __init__(self) -> None:
        self.counted, self.linked = set[Load](), set[Load]()
        self.followed, self.compared = set[Load](), set[tuple[Load, Load]]()

    def numbers(self) -> set[Load]:
        """Those that are counted in and no links, nor compared with one."""
        before = -1
        while before < len(self.linked):
            before = len(self.linked)
            for pair in self.compared:
                if self.linked & set(pair):
                    self.linked.update(pair)
        return self.counted - self.linked

    def links(self) -> set[Load]:
        """Those that are followed, and not counted in."""
        return self.followed - self.counted


class Used(NamedTuple):
    """The instructions that load what an operation counts in, and what it follows, by node of its graph.

    Attributes:
        counted: where what is counted in is loaded.
        followed: where what is followed is loaded, with the number of the word.
    """

    counted: Mapping[str, frozenset[int]]
    followed: Mapping[str, frozenset[Loading]]


def used_words(code: Code, graph: Graph, said: Said, coverage: Coverage, result: Place | None = None) -> Used:
    """What the operation of a ``graph`` does with the words that it loads.

    Args:
        code: the image.
        graph: of the operation.
        said: what holds where nodes begin, of numbers.
        coverage: what was checked of the graph.
        result: where the operation returns a block, if it does.

    Raises:
        VerificationError: a node is not executed.
    """
    uses = _watched(code, graph, said, coverage, result)
    counted: dict[str, set[int]] = {}
    for load in uses.numbers():
        counted.setdefault(load.node, set()).add(load.address)
    followed: dict[str, set[Loading]] = {}
    for load in uses.links():
        followed.setdefault(load.node, set()).add((load.address, load.number))
    return Used(
        {node: frozenset(addresses) for node, addresses in counted.items()},
        {node: frozenset(loads) for node, loads in followed.items()},
    )


def _watched(code: Code, graph: Graph, said: Said, coverage: Coverage, result: Place | None) -> _Uses:
    """What the operation does with all that it loads; ``result`` is where it returns a block, if it does."""
    uses = _Uses()
    arrived = {graph.entry: Arrived({}, frozenset())}
    waiting = [graph.entry]
    while waiting:
        node = waiting.pop()
        machine = _Watching(code, node, arrived[node], uses)
        state = State(dict(said.invariants[node]), {}, dict(said.flags.get(node, {})))
        for outcome in run_block(code, machine, graph, node, state).outcomes:
            leaving = machine.leaving(outcome.state, code.isa.REGISTERS)
            if outcome.address is None and result is not None:
                uses.linked.update(one.load for one in leaving.words.get(result, {}))
            for edge in edges_taken(graph, node, outcome, coverage.gone):
                before = arrived.get(edge.target, leaving)
                grown = before.joined(leaving)
                if edge.name in coverage.taken and (grown != before or edge.target not in arrived):
                    arrived[edge.target] = grown
                    waiting.append(edge.target)
    return uses


class _Watching(ModuleMachine):
    """A machine that watches where loaded words come; what they are made of it does not ask."""

    def __init__(self, code: Code, node: str, arrived: Arrived, uses: _Uses) -> None:
        super().__init__(code.image, {}, lambda *_: None)
        self.held = dict[object, Words](arrived.words.items())
        self._node, self._uses, self._no_links = node, uses, set[object](arrived.numbers)

    def load(self, address: Value, size_bytes: int, state: State, *, is_signed: bool = False) -> tuple[Value, object]:
        """As a machine does; a load of one whole word from elsewhere than the stack is watched."""
        value, name = super().load(address, size_bytes, state, is_signed=is_signed)
        assert self._instruction is not None  # noqa: S101  (one is executed)
        if size_bytes == 4 and address.base != "stack":
            own = Load(self._node, self._instruction.address, self._transfers - 1)
            self._give(name, {Held(own, Grade.WHOLE): 0})
            if sum(access.count for access in self._instruction.accesses) != 1:
                self._uses.linked.add(own)  # which of its words is which is told of links alone
        elif size_bytes < 4:
            self._no_links.add(name)
        return value, name

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """As a machine does; where one may change a word of the stack in part, nobody knows what is there."""
        super().store(address, size_bytes, value, name, state)
        is_word = address.base == "stack" and address.is_constant and size_bytes == 4 and address.low % 4 == 0
        if address.may_be_stack and not is_word:
            for place in [one for one in self.held if isinstance(one, int)]:
                self._link(self.held[place])
            self._no_links = {one for one in self._no_links if not isinstance(one, int)}

    def address_of(self, access: Access, state: State, number_of_access: int = 0) -> Value:
        """As a machine does; what is in an address is a link, or may be one, but for a multiple."""
        value = super().address_of(access, state, number_of_access)
        parts = {access.base}
        if access.index is not None and access.shift is Shift.LSL and access.shift_bits:
            self._scale(self._words(state, access.index))
        else:
            parts.add(access.index)
        for one in parts - {None}:
            self._link(self._words(state, one))
        if access.index is None:
            self._follow(self._words(state, access.base), self._displacement(access, number_of_access))
        return value

    def havoc(self, instruction: Instruction, state: State, stored: Iterable[str] = ()) -> None:
        """As a machine does; nobody looks where words come that it reads."""
        for one in {*instruction.reads, *stored}:
            self._link(self._words(state, one))
        super().havoc(instruction, state, tuple(stored))

    def released(self, outcomes: list[Outcome], stack_pointer: str) -> list[Outcome]:
        """As a machine does; what is compared then is looked at."""
        found = super().released(outcomes, stack_pointer)
        for outcome in found:
            self._compare(outcome.state)
        return found

    def _words(self, state: State, place: Place | None) -> Words:
        return {} if place is None else self.held.get(state.name(place), {})

    def _give(self, name: object, words: Words) -> None:
        if words:
            self.held[name] = _joined(self.held.get(name, {}), words)

    def _link(self, words: Words) -> None:
        self._uses.linked.update(one.load for one in words)

    def _follow(self, words: Words, displacement: int) -> None:
        for one, distance in words.items():
            by = None if distance is None or one.grade is not Grade.WHOLE else distance + displacement + _LOW
            if by is not None and by % WORD < 2 * _LOW:
                self._uses.followed.add(one.load)

    def _scale(self, words: Words) -> None:
        self._uses.counted.update(one.load for one in words if one.grade > Grade.PART)

    def _result(self, instruction: Instruction, register: str, name: object, state: State) -> Word:  # noqa: ARG002
        """What comes into ``register``, which is called ``name``; of what it is made nothing is said."""
        before = self._before
        found = None if instruction.accesses else computation(unconditional(instruction, self.image.isa), register)
        if register == "ctr" and instruction.text.startswith("bd"):  # a branch that counts down
            self._give(name, _moved(self._words(before, register), -1))
            return ANYTHING
        if found is None:
            for one in instruction.reads:
                self._link(self._words(before, one))
            return ANYTHING
        self._count_in(found)
        self._make(found, name)
        return ANYTHING

    def _count_in(self, found: Computation) -> None:
        """Note what is multiplied or shifted to the left."""
        last = found.operands[-1]
        if found.name in _SCALES and not _is_test(found.name, last):
            for one in found.operands[: 1 if found.name in {"slwi", "lsl", "slw"} else 2]:
                self._scale(self._words(self._before, one))
        if found.bits and found.shift == Shift.LSL.value:
            self._scale(self._words(self._before, last))

    def _make(self, found: Computation, name: object) -> None:
        """Note of which words what is called ``name`` is computed."""
        before, last = self._before, found.operands[-1]
        mask = None if found.bits else mask_of(found.name, found.operands[1:])
        if found.name in _OF_NUMBERS or (mask is not None and mask < _LOW) or _is_turned(found.name, found.operands):
            self._no_links.add(name)
        elif mask is not None:
            self._give(name, _as(self._words(before, found.operands[0]), Grade.WHOLE))
        elif found.name in {"add", "addi", "sub"} and len(found.operands) == 2 and re.fullmatch(DIGITS, last):
            by = int(last, 0) * (-1 if found.name == "sub" else 1)
            self._give(name, _moved(self._words(before, found.operands[0]), by))
        else:
            grade = Grade.SUMMAND if found.name == "add" and not found.bits else Grade.PART
            for one in found.operands[:-1] if found.bits else found.operands:
                self._give(name, _as(self._words(before, one), grade))

    def _compare(self, state: State) -> None:
        """Look at the comparisons that the instruction has made."""
        for field, one in state.flags.items():
            if isinstance(one.left, Combined) or self._before.flags.get(field) == one:
                continue
            self._compared(one.left, one.right, one.right_value)
            self._compared(one.right, one.left, one.left_value)

    def _compared(self, name: object, other: object, value: Value) -> None:
        words = self.held.get(name, {})
        if not (value.is_number and value.is_constant):
            partners = {one.load for one in self.held.get(other, {})}
            self._uses.compared.update((one.load, partner) for one in words for partner in partners)
            if not partners and other not in self._no_links:
                self._link(words)
            return
        known = value.low % WORD
        if any(not part.is_number for part in constant_word(self.image, known)):
            self._link(words)
        for one, distance in words.items():
            if one.grade is Grade.WHOLE and distance is not None and 0 < (known - distance) % WORD < _LOW:
                self._uses.counted.add(one.load)

    def leaving(self, state: State, registers: Iterable[str]) -> Arrived:
        """What is in registers and on the stack."""
        places = {*registers, *state.names, *(one for one in state.values if isinstance(one, int))}
        own = [one for one in places if isinstance(one, str) or abs(one) < STATIC // 2]
        words = {one: self._words(state, one) for one in own}
        numbers = frozenset(one for one in own if state.name(one) in self._no_links)
        return Arrived({one: held for one, held in words.items() if held}, numbers)


def _is_test(name: str, last: str) -> bool:
    """Whether only the lowest bits are kept, at the top: so the alignment of a link is looked at."""
    return name in {"slwi", "lsl"} and bool(re.fullmatch(DIGITS, last)) and int(last, 0) >= 32 - _FLAGS


def _is_turned(name: str, operands: list[str]) -> bool:
    """Whether bits are moved, so that a number is left."""
    return name in {"rotlwi", "rotlw"} or (name == "rlwinm" and operands[1] != "0")


def _as(words: Words, grade: Grade) -> Words:
    return {Held(one.load, min(one.grade, grade)): None for one in words}


def _moved(words: Words, by: int) -> Words:
    return {one: None if distance is None else (distance + by) % WORD for one, distance in words.items()}


def _joined(one: Words, other: Words) -> Words:
    both = {key: one[key] if one[key] == other[key] else None for key in one.keys() & other.keys()}
    return {**one, **other, **both}
