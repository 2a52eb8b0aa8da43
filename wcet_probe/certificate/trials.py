# SPDX-License-Identifier: 0BSD
"""Trial runs: where something of a certificate is not checked, executions on chosen words may show that it is false.

That the checker cannot show a premise does not make it false. But an execution that takes more instructions than the
bound, leaves the graph, or exceeds a limit of paths contradicts the certificate, which is refused then.
The function is executed from its entry on words, by the checker's own transfer functions: arguments and what memory
holds are chosen, the stack is a place of its own. A run that comes to something that is not known as a word, to memory
that the core may not have, or to what an assumption excludes, tells nothing and ends. Where a bound is of calls that
return (*call-returns*), only a run that does so tells anything.

Nothing is accepted for a trial: it only refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from wcet_probe.certificate.kernel.coverage import Code, edges_of
from wcet_probe.certificate.kernel.records import LEAVE, Edge, Graph, Records, factors_of, loops_of
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.values.numbers import WORD, Value, constant, extended
from wcet_probe.certificate.values.state import State
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.target import Isa, MemoryRange

_RETURNS = "call-returns"
_STANDING = frozenset({
    _RETURNS,
    *("timing-model", "no-interference", "stack-separation", "stack-alignment", "return-address"),
    *("aligned-accesses", "alignment", "no-translation-misses", "fifo-replacement"),
})  # fmt: skip
"""Assumptions that a trial run meets; of a bound that rests on others, of facts above all, it would tell nothing."""
_MOST_RUNS, _MOST_STEPS = 96, 40_000
_WORDS = (0, 1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 31, 33, 64, 100, 255, 1 << 31, (1 << 31) - 1, WORD - 1, WORD - 5)

_NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|0|[1-9][0-9]*)\b")
_POINTING = ((), (2, 3), (0, 1), (), (0, 1, 2, 3), (3,))
"""By turns, the arguments that are addresses."""


class _LostError(Exception):
    """What a run does next is not known, or need not be possible."""


@dataclass(slots=True)
class TrialMachine(Machine):
    """Executes on words.

    Attributes:
        ranges: of memory that there is, but for the stack.
        choose: the word that an address holds where the function is entered, by the base of the address and itself.
        memory: bytes that were stored, by base and address; None of those of which nothing is known.
        pointers: whole words that were stored and are no numbers, by where they begin.
    """

    ranges: Sequence[tuple[int, int]] = ()
    choose: Callable[[str, int], int] = lambda _base, _address: 0
    memory: dict[tuple[str, int], int | None] = field(default_factory=dict)
    pointers: dict[tuple[str, int], Value] = field(default_factory=dict)

    def load(
        self,
        address: Value,
        size_bytes: int,
        state: State,  # noqa: ARG002  (memory is not in it)
        *,
        is_signed: bool = False,
    ) -> tuple[Value, object]:
        """A load of a word that is known, or is chosen now."""
        base, low = self._place(address, size_bytes)
        if size_bytes == 4 and (base, low) in self.pointers:
            return self.pointers[base, low], self.fresh()
        raw = bytes(self._byte(base, low + each) for each in range(size_bytes))
        word = constant(int.from_bytes(raw, "big" if self.image.big_endian else "little"))
        return (extended(word, 8 * size_bytes, is_signed=True) if is_signed else word), self.fresh()

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:  # noqa: ARG002
        """A store."""
        base, low = self._place(address, size_bytes)
        if base == "number" and self.word(low, 1) is not None:
            raise _LostError  # to read-only memory
        for start in range(low - 3, low + size_bytes):
            if self.pointers.pop((base, start), None) is not None:
                self.memory |= {(base, start + each): None for each in range(4)}
        is_word = value.is_number and value.is_constant
        raw = (value.low & (1 << 8 * size_bytes) - 1).to_bytes(size_bytes, "big" if self.image.big_endian else "little")
        self.memory |= {(base, low + each): raw[each] if is_word else None for each in range(size_bytes)}
        if size_bytes == 4 and value.is_constant and not value.is_plain:
            self.pointers[base, low] = value

    def _place(self, address: Value, size_bytes: int) -> tuple[str, int]:
        """Where an access goes, if it is aligned and memory is there."""
        low = address.low
        is_there = address.base == "stack" or any(first <= low <= end - size_bytes for first, end in self.ranges)
        if not address.is_constant or address.base not in {"stack", "number"} or low % size_bytes or not is_there:
            raise _LostError
        return address.base, low

    def _byte(self, base: str, address: int) -> int:
        known = self.word(address, 1) if base == "number" else None
        if known is None:
            shift = 8 * (3 - address % 4 if self.image.big_endian else address % 4)
            known = self.memory.get((base, address), self.choose(base, address & ~3) >> shift & 0xFF)
        if known is None:
            raise _LostError
        return known


Limit = tuple[Mapping[str, int], int]
"""Factors of edges, and what their sum is at most."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a certificate says of paths.

    Attributes:
        graph: its graph.
        code: instructions of each node.
        most: the bound, in instructions.
        limits: of paths, by name.
    """

    graph: Graph
    code: Mapping[str, Sequence[Instruction]]
    most: int
    limits: Mapping[str, Limit]


def path_limits(records: Records) -> Iterator[tuple[str, Limit]]:
    """The limits of paths in a certificate, by name."""
    for loop in loops_of(records):
        factors = dict.fromkeys(loop.entering, -loop.most) | dict.fromkeys(loop.back, 1)
        yield f"the limit of the loop {loop.name}", (factors, 0)
    events = {name for name, _ in records["event"]}
    for name, relation, most, terms in records["constraint"]:
        factors = factors_of(terms)
        if relation == "<=" and events.isdisjoint(factors):
            yield name, (factors, int(most))


def refutation(
    code: Code,
    claimed: Claimed,
    data: MemoryRange,
    assumed: Collection[str],
) -> str | None:
    """What an execution contradicts of a certificate, for people; None where no trial run does.

    Args:
        code: the image.
        claimed: what is said of paths.
        data: memory that the core has besides that of the image.
        assumed: the assumptions of the bound.
    """
    if not _STANDING.issuperset(assumed):
        return None
    first, left = 3 if code.image.isa is Isa.POWERPC else 0, _MOST_STEPS
    arguments = [f"r{number}" for number in range(first, first + 4)]
    for registers, choose in _choices(claimed, data, arguments):
        machine = TrialMachine(code.image, choose=choose)
        machine.ranges = [(one.address, one.address + one.size_bytes) for one in code.image.segments]
        machine.ranges = [*machine.ranges, (data.base_address, data.base_address + data.size_bytes)]
        run = _Run(code, claimed, machine, registers, returns=_RETURNS in assumed)
        found = run.follow(left)
        left -= run.steps
        if found is not None:
            given = ", ".join(f"{register} = {word:#x}" for register, word in registers.items())
            return f"a run from {given} {found}"
        if left <= 0:
            break
    return None


def _choices(
    claimed: Claimed, data: MemoryRange, arguments: Sequence[str]
) -> Iterator[tuple[Mapping[str, int], Callable[[str, int], int]]]:
    """Arguments, and what memory holds: first one word for all, then words by turns; those of the code among them."""
    texts = {one.text for own in claimed.code.values() for one in own if one.text[:2] in {"cm", "cb", "su"}}
    of_code = {int(word, 0) for text in texts for word in _NUMBER.findall(text)}
    near = {(word + by) % (1 << 32) for word in of_code for by in (-1, 0, 1)}
    middle = data.base_address + data.size_bytes // 2 & ~63
    words = list(dict.fromkeys((*_WORDS, *sorted(near)[:40])))
    for number in range(_MOST_RUNS):

        def word_of(place: int, number: int = number) -> int:
            if number < len(words):
                return words[number]
            mixed = (number * 0x9E3779B1 + place * 0x85EBCA6B) % (1 << 32)
            return words[(mixed ^ mixed >> 15) % len(words)]

        registers = {register: word_of(place) for place, register in enumerate(arguments)}
        pointing = _POINTING[number % len(_POINTING)]
        registers |= {register: middle + 64 * place for place, register in enumerate(arguments) if place in pointing}
        yield registers, partial(_held, word_of)


def _held(word_of: Callable[[int], int], base: str, address: int) -> int:
    """What memory holds at an address."""
    return word_of(address // 4 + 7 + (base == "stack"))


class _Run:
    """One execution."""

    def __init__(
        self, code: Code, claimed: Claimed, machine: TrialMachine, registers: Mapping[str, int], *, returns: bool
    ) -> None:
        self._code, self._claimed, self._machine, self._returns = code, claimed, machine, returns
        self._state = code.isa.entry_state()
        zeros = dict.fromkeys(code.isa.REGISTERS, constant(0))
        self._state.values = {
            **zeros,
            **self._state.values,
            **{name: constant(word) for name, word in registers.items()},
        }
        self._waiting: list[int] = []
        self._counts: Counter[str] | None = Counter({"enter": 1})
        self.steps = 0

    def follow(self, most_steps: int) -> str | None:
        """What the execution contradicts; None if nothing, or if it cannot be followed."""
        graph, found = self._claimed.graph, None
        address: int | None = graph.nodes[graph.entry][0]
        nodes = {(graph.entry, 0)}
        try:
            while address is not None and (self._returns or found is None):
                if self.steps == most_steps:
                    return None
                instruction = self._code.instructions.get(address)
                if instruction is None or instruction.problem:
                    return None
                outcome = self._step(instruction)
                self.steps += 1
                if found is None:
                    nodes = set(self._behind(nodes, outcome))
                    found = self._contradicted(nodes, address)
                address = outcome.address
        except _LostError:
            return None
        return found or self._exceeded()

    def _contradicted(self, nodes: Collection[tuple[str, int]], address: int) -> str | None:
        if self.steps > self._claimed.most:
            return f"takes more than the {self._claimed.most} instructions of the bound"
        if not nodes:
            return f"takes a way behind {self._code.image.location(address)} that is none of the graph"
        return None

    def _step(self, instruction: Instruction) -> Outcome:
        """The one way on."""
        outcomes: list[Outcome] = self._code.isa.outcomes_of(self._machine, instruction, self._state)
        if len(outcomes) != 1 or outcomes[0].is_assumed:
            raise _LostError
        (outcome,) = outcomes
        if outcome.way == "call":
            self._waiting.append(instruction.address + instruction.size_bytes)
        elif outcome.way == "return":
            waiting = self._waiting.pop() if self._waiting else None
            if waiting != outcome.address:
                raise _LostError  # not to the caller: that is what is assumed
        self._state = outcome.state
        return outcome

    def _behind(self, nodes: set[tuple[str, int]], outcome: Outcome) -> Iterator[tuple[str, int]]:
        """Where in the graph the execution may be behind an instruction."""
        graph = self._claimed.graph
        for node, place in nodes:
            own = self._claimed.code[node]
            if place + 1 < len(own):
                if own[place + 1].address == outcome.address:
                    yield node, place + 1
            elif outcome.address is None:
                if node in graph.exits:
                    self._count(nodes, [LEAVE + node])
                    yield node, place
            else:
                edges: list[Edge] = edges_of(graph, node, outcome)
                self._count(nodes, [edge.name for edge in edges])
                yield from ((edge.target, 0) for edge in edges)

    def _count(self, nodes: set[tuple[str, int]], names: Sequence[str]) -> None:
        """An edge is taken, if it is known which one."""
        if self._counts is not None and len(nodes) == len(names) == 1:
            self._counts[names[0]] += 1
        elif names:
            self._counts = None

    def _exceeded(self) -> str | None:
        """A limit that the edges which were taken exceed."""
        if self._counts is None:
            return None
        for name, (factors, most) in self._claimed.limits.items():
            if sum(factor * self._counts[edge] for edge, factor in factors.items()) > most:
                return f"exceeds {name}"
        return None
