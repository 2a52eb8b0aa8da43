"""Module certificates: what an allocator's words are whenever an operation begins, for the checker to test.

Found by the checker's own transfer function (`wcet_probe.certificate.modules.module`), in a fixpoint over the cells of
the allocator's memory and the nodes of its operations, whose graphs are those of the value analysis. It knows less than
`proved_facts`, and writes down what it knows.

*Soundness:* none is claimed. The checker tests the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wcet_probe.analyzer.assumptions import assumptions
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.ipet.certificate import graph_lines
from wcet_probe.analyzer.ipet.checkable import checkable
from wcet_probe.analyzer.ipet.flow_problem import Subject, flow_problem
from wcet_probe.analyzer.ipet.flow_system import FlowProblem
from wcet_probe.analyzer.ipet.rounds_apart import with_rounds_apart
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.answer.bounds.proving import fact_parameters, operation_request
from wcet_probe.build.program import Program
from wcet_probe.certificate.facts.asserted import parameters_of, read_asserted
from wcet_probe.certificate.kernel.coverage import Code, Coverage, code_of, cover
from wcet_probe.certificate.kernel.records import read_records
from wcet_probe.certificate.kernel.shapes import reached_nodes
from wcet_probe.certificate.modules.counted_words import Loading
from wcet_probe.certificate.modules.module import (
    ROLES,
    Operation,
    accesses_of,
    cell_of,
    entry_words,
    holds_at,
    initial_words,
    operation_of,
    returned,
    stored_by_init,
    used_in,
    wanted_of,
    ways_of,
    words_of_image,
)
from wcet_probe.certificate.modules.module_machine import REST, Followed, ModuleMachine, Reached
from wcet_probe.certificate.modules.stepped_registers import stepped_registers
from wcet_probe.certificate.modules.stored_by_init import Stored
from wcet_probe.certificate.values.kinds import ANYTHING, Word, new, text_of, word
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.residues import MODULUS
from wcet_probe.certificate.values.state import STATIC, Place, State
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.model.image import Image
from wcet_probe.model.induction import LEMMAS, PREMISES
from wcet_probe.model.proof import Assumption

Json = dict[str, Any]
_ROUNDS_BEFORE_WIDENING = 32
"""So often what is told of a node may grow before it is told no more between which numbers what grows lies."""


@dataclass(frozen=True, slots=True)
class ModuleProof:
    """A module certificate.

    Attributes:
        document: as ``wcet-probe-module`` has it, without the tool.
        assumed: what its graphs rest on, as a bound lists it.
    """

    document: Json
    assumed: tuple[Assumption, ...]


def module_certificate(program: Program, heap_bytes: int, tell: Callable[[str], None] = lambda _: None) -> Json:
    """The document of `module_proof`.

    Raises:
        AnalysisError: as there.
        UsageError: as there.
    """
    return module_proof(program, heap_bytes, tell).document


def module_proof(program: Program, heap_bytes: int, tell: Callable[[str], None] = lambda _: None) -> ModuleProof:
    """The module certificate of ``program``.

    Args:
        program: the allocator's image.
        heap_bytes: size of the heap that its facts speak of.
        tell: is told in words what is being done.

    Raises:
        AnalysisError: an operation is not analysed, or the checker's rules do not follow it, or where a store goes.
        UsageError: a file of facts is not valid.
    """
    others = sorted(set(program.allocator.entry_points) - {*ROLES, "check"})
    if others:
        raise AnalysisError(f"{', '.join(others)} would have to be analysed, too.")
    problems, known = dict[str, FlowProblem](), dict[str, Assumption]()
    for role in ROLES:
        tell(f"analysing {role}")
        prepared = prepare(operation_request(program, role, heap_bytes))
        problems[role] = _problem(program, prepared)
        found = assumptions(Facts(), program.image, program.target, prepared.values, None)
        known |= {one.id: _with_places_of(known.get(one.id), one) for one in found}
    statements = {name: one.statement for name, one in known.items()}
    tell("following what words are made of through all operations")
    document = _document_of(program, heap_bytes, problems, statements, tell)
    ids = {one["id"] for one in document["assumptions"]}
    return ModuleProof(document, tuple(one for name, one in known.items() if name in ids))


def _with_places_of(former: Assumption | None, one: Assumption) -> Assumption:
    """``one``, which of *call-returns* names the places in other operations, too."""
    if former is None or one.id != "call-returns":
        return one
    places = one.statement.partition(" at ")[2]
    return replace(one, statement=f"{former.statement}, {places}")


def _document_of(
    program: Program,
    heap_bytes: int,
    problems: Mapping[str, FlowProblem],
    statements: Mapping[str, str],
    tell: Callable[[str], None],
) -> Json:
    """What holds in the graphs ``problems``, told in the plainest of four ways in which all stores are followed.

    Raises:
        AnalysisError: as of the first of them, which speaks of the graphs as a bound has them.
    """
    errors, looked = list[AnalysisError](), dict[bool, tuple[dict[str, str], _Search]]()
    for of_init, apart in ((False, False), (False, True), (True, False), (True, True)):
        if errors:
            words = ", without what the image holds where init stores" if of_init else ""
            tell(f"following them again, with the rounds of loops {'apart' if apart else 'together'}{words}")
        try:
            if apart not in looked:
                looked[apart] = _looked(program, problems, statements, apart=apart)
            texts, search = looked[apart]
            search.run(of_init=of_init)
            return _document(program, heap_bytes, texts, search, statements)
        except AnalysisError as error:
            errors.append(error)
    raise errors[0]


def _looked(
    program: Program, problems: Mapping[str, FlowProblem], statements: Mapping[str, str], *, apart: bool
) -> tuple[dict[str, str], _Search]:
    """The records of the graphs ``problems``, where the rounds of loops may stand ``apart``, and a search in them."""
    texts = {role: _text(program, problem, apart=apart) for role, problem in problems.items()}
    operations = [operation_of(role, read_records(text)) for role, text in texts.items()]
    search = _Search(
        program.image, code_of(program.image, program.instructions), operations, statements.get("call-returns", "")
    )
    return texts, search


def _problem(program: Program, prepared: Prepared) -> FlowProblem:
    """The graph of an operation."""
    subject = Subject(program.image.sha256, program.target.name, "instructions")
    return flow_problem(prepared.values, [], [], subject, cost=lambda _: 0, edge_cost=lambda _: 0)


def _text(program: Program, problem: FlowProblem, *, apart: bool) -> str:
    """The graph of an operation and what values hold in it, as records."""
    image, instructions = program.image, program.instructions
    problem, copies = with_rounds_apart(problem, image, instructions) if apart else (problem, {})
    lines = (*graph_lines(problem, 0, None), *checkable(problem, image, instructions, {}, apart=copies).lines())
    return "".join(f"{line}\n" for line in lines)


class _Growing(ModuleMachine):
    """A machine of which the cells grow: what is not reached yet gives nothing.

    Attributes:
        lost: instructions with a store whose address is made of something already, and not of addresses alone. What
            words are made of only grows, so that it stays so.
    """

    behind_nothing: Word = ()

    def __init__(
        self,
        image: Image,
        cells: Mapping[str, Word],
        stored: Callable[[str, Word, int], None],
        counted: Collection[int] = (),
        links: Collection[Loading] = (),
    ) -> None:
        super().__init__(image, cells, stored, counted, links)
        self.lost = list[int]()

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """As the checker's machine does."""
        _, made_of = self._addresses.get(self._transfers, (None, ANYTHING))
        before = len(self.unknown)
        super().store(address, size_bytes, value, name, state)
        self.lost += self.unknown[before:] if made_of else ()


class _Seeing(ModuleMachine):
    """A machine that tells which words of static data are accessed at a known address."""

    def __init__(self, image: Image, seen: set[int]) -> None:
        super().__init__(image, {}, lambda *_: None)
        self._places = seen

    def _of_static(self, low: int, high: int, known: int, size_bytes: int) -> Reached:
        if low == high and low % 4 == 0:
            self._places.add(low)
        return super()._of_static(low, high, known, size_bytes)


class _Cells(dict[str, Word]):
    """Cells that note by which nodes they are read.

    Attributes:
        reader: the node that reads them.
        readers: of each cell.
    """

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(dict.fromkeys(names, ()))
        self.reader, self.readers = ("", ""), dict[str, set[tuple[str, str]]]()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  (as of any map)
        """What a cell may hold."""
        self.readers.setdefault(name, set()).add(self.reader)
        return super().get(name, default)


@dataclass(slots=True)
class _Search:
    """A fixpoint over all operations: a node is executed again where what it begins with or reads has grown."""

    image: Image
    code: Code
    operations: list[Operation]
    ends: str = ""
    covered: list[Coverage] = field(default_factory=list)
    cells: _Cells = field(default_factory=lambda: _Cells(()))
    block: Word = ()
    of_init: frozenset[int] = frozenset()
    words: dict[tuple[str, str], dict[Place, Word]] = field(default_factory=dict)
    followed: list[Followed] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    _nodes: list[tuple[Operation, Coverage, str]] = field(default_factory=list)
    _accessed: set[int] = field(default_factory=set)
    _counted: dict[tuple[str, str], frozenset[int]] = field(default_factory=dict)
    _links: dict[tuple[str, str], frozenset[Loading]] = field(default_factory=dict)
    _stepped: dict[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    _stored: Stored = field(default_factory=lambda: Stored({}, frozenset()))
    _waiting: set[tuple[str, str]] = field(default_factory=set)
    _seen: dict[tuple[str, str], tuple[list[Followed], list[int]]] = field(default_factory=dict)
    _grown: dict[tuple[str, str], int] = field(default_factory=dict)

    def _look(self) -> None:
        """Look at what the code alone tells, which is the same whatever is followed."""
        try:
            self.covered = [cover(self.code, one.graph, one.said, {}, ends=self.ends) for one in self.operations]
        except VerificationError as error:
            raise AnalysisError(f"the checker does not follow a graph: {error}") from error
        for one, coverage in zip(self.operations, self.covered, strict=True):
            self._stepped[one.role] = stepped_registers(one.graph, coverage)
            used = used_in(self.code, one, coverage)
            self._counted |= {(one.role, node): addresses for node, addresses in used.counted.items()}
            self._links |= {(one.role, node): loads for node, loads in used.followed.items()}
        for one, coverage in zip(self.operations, self.covered, strict=True):
            for node in reached_nodes(one.graph, coverage.taken):
                self._nodes.append((one, coverage, node))
                for _ in ways_of(self.code, _Seeing(self.image, self._accessed), one, {}, node, coverage):
                    pass

    def run(self, *, of_init: bool) -> None:
        """Find what holds, with the words that init surely stores apart from those of the image, if ``of_init``.

        Raises:
            AnalysisError: the checker's rules do not follow a graph, or where a store goes.
        """
        if not self.covered:
            self._look()
        if of_init:
            self._stored = stored_by_init(self.code, self.operations[0], self.covered[0])
        self.of_init = self._stored.behind & self._accessed if of_init else frozenset()
        empty = {f"{REST}:{address:#x}" for address in self._accessed} | {REST}
        empty |= {f"arena:{place}" for place in range(0, MODULUS, 4)}
        while True:
            self._iterate(sorted(empty))
            nothing = {name for name, parts in self.cells.items() if not parts}
            if not nothing:
                break
            empty -= nothing
        if self.unknown:
            raise self._lost(self.unknown[0])

    def _lost(self, address: int) -> AnalysisError:
        place = self.image.location(address)
        return AnalysisError(f"where the store at {place} goes is not known to the checker's rules.")

    def _iterate(self, cells: list[str]) -> None:
        self.cells, self.block, self.words = _Cells(cells), (), {}
        self._waiting, self._seen, self._grown = set(), {}, {}
        for address, parts in initial_words(self.image):
            name = cell_of(self.cells, address)
            if name == REST or address not in self.of_init:
                self._store(name, new(parts, is_loaded=False), address)
        for one in self.operations:
            self._begin(one)
        while self._waiting:
            for one, coverage, node in self._nodes:
                if (one.role, node) in self._waiting:
                    self._waiting.remove((one.role, node))
                    self._execute(one, node, coverage)
        self.followed = [each for followed, _ in self._seen.values() for each in followed]
        self.unknown = [each for _, unknown in self._seen.values() for each in unknown]

    def _begin(self, one: Operation) -> None:
        self._arrive(one.role, one.graph.entry, entry_words(one.role, self.image, self.block))

    def _execute(self, one: Operation, node: str, coverage: Coverage) -> None:
        key = one.role, node
        links = self._links.get(key, ())
        machine = _Growing(self.image, self.cells, self._store, self._counted.get(key, ()), links)
        machine.stepped = self._stepped[one.role][node]
        if one.role == ROLES[0] and self.of_init:
            machine.unstored = words_of_image(self.image, self.of_init - self._stored.before[node])
        self.cells.reader = key
        for target, state in ways_of(self.code, machine, one, self.words[key], node, coverage):
            if target is not None:
                self._arrive(one.role, target, self._held(machine, state))
            elif one.role == "malloc":
                block = word((*self.block, *returned(machine, state)))
                if block != self.block:
                    self.block = block
                    for other in self.operations:
                        self._begin(other)
        self._seen[key] = machine.followed, machine.unknown
        if machine.lost:
            raise self._lost(machine.lost[0])

    def _held(self, machine: ModuleMachine, state: State) -> dict[Place, Word]:
        places = {*self.code.isa.REGISTERS, *state.values, *state.names, *state.kinds}
        own = [one for one in places if isinstance(one, str) or (isinstance(one, int) and abs(one) < STATIC // 2)]
        found = {place: word(machine.word_in(state, place)) for place in own}
        return {place: parts for place, parts in found.items() if parts != ANYTHING}

    def _arrive(self, role: str, node: str, held: Mapping[Place, Word]) -> None:
        before = self.words.get((role, node))
        grown = dict(held)
        if before is not None:
            grown = {place: word((*parts, *held[place])) for place, parts in before.items() if place in held}
            grown = {place: parts for place, parts in grown.items() if parts != ANYTHING}
            self._grown[role, node] = self._grown.get((role, node), 0) + (grown != before)
            if self._grown[role, node] > _ROUNDS_BEFORE_WIDENING:
                grown = {place: _widened(before[place], parts) for place, parts in grown.items()}
        if grown != before:
            self.words[role, node] = grown
            self._waiting.add((role, node))

    def _store(self, cell: str, stored: Word, address: int) -> None:  # noqa: ARG002  (as the machine tells it)
        before = self.cells[cell] if cell in self.cells else ANYTHING  # noqa: SIM401  (`get` notes it as read)
        grown = word((*before, *stored))
        if grown != before:
            self.cells[cell] = grown
            self._waiting |= self.cells.readers.get(cell, set())


def _widened(before: Word, grown: Word) -> Word:
    """``grown`` without the reach of parts that has grown since ``before``."""
    known = {(part.kind, part.is_loaded): part.reach for part in before}
    return tuple(
        part if part.reach == known.get((part.kind, part.is_loaded), part.reach) else part._replace(reach=None)
        for part in grown
    )


def _document(
    program: Program, heap_bytes: int, texts: Mapping[str, str], found: _Search, statements: Mapping[str, str]
) -> Json:  # fmt: skip
    allocator, image = program.allocator, program.image
    asserted = read_asserted(allocator.facts, dict(allocator.sources))
    parameters = parameters_of(asserted, fact_parameters(allocator, program.target, heap_bytes), image)
    spoken_of = accesses_of(asserted, image, found.followed)
    facts = [
        {"where": fact.where, "accesses": len(spoken_of[fact.where])}
        for fact in asserted.of("pointer")
        if spoken_of[fact.where]
        and all(holds_at(wanted_of(fact, parameters), access) for access in spoken_of[fact.where])
    ]
    own = [f"{one:#x}" for one in sorted(found.of_init) if f"{REST}:{one:#x}" in found.cells]
    return {
        "format": "wcet-probe-module",
        "version": 1,
        "allocator": allocator.name,
        "parameters": dict(allocator.values),
        "target": program.target.name,
        "heap_bytes": heap_bytes,
        "image": {"sha256": image.sha256, "compiler": image.compiler, "flags": list(image.flags)},
        "operations": [
            {"role": one.role, "certificate": texts[one.role] + "".join(f"{line}\n" for line in _lines(one, found))}
            for one in found.operations
        ],
        "cells": {name: text_of(parts) for name, parts in sorted(found.cells.items())},
        "block": text_of(found.block),
        "stored_by_init": own,
        "facts": facts,
        "assumptions": list(_assumptions(found, statements)),
    }


def _lines(operation: Operation, found: _Search) -> Iterator[str]:
    """The records of what places are made of where the nodes of an operation begin."""
    for node in operation.graph.nodes:
        held = found.words.get((operation.role, node), {})
        for place, parts in sorted(held.items(), key=lambda one: str(one[0])):
            where = place if isinstance(place, str) else f"stack:{place}"
            yield f"word {node} {where} {text_of(parts)}"


def _assumptions(found: _Search, statements: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """What the rules rest on; ``statements`` are those of what a bound assumes, by id."""
    used = {name for one in found.covered for name in one.assumptions} | {"no-interference"}
    told = {name: statements.get(name, f"the rule {name} of the checker") for name in sorted(used)}
    told |= {f"induction {name}": text for name, text in LEMMAS.items()}
    told |= PREMISES
    yield from ({"id": name, "statement": text} for name, text in told.items())
