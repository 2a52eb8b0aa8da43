# SPDX-License-Identifier: 0BSD
"""The check of a module certificate: what an allocator's words are whenever an operation begins, by induction.

The certificate tells of each cell of the allocator's memory what it may hold, and of each operation the graph of its
code with what registers and words of the stack hold where a node begins, as numbers and by what they are made of. Each
node is executed once: what it loads the cells tell, what it stores lies in them, and what it leaves lies in what is
said of the nodes behind it. Then all of it holds in every call, by induction over the steps of all calls since the
first of init; and what facts say of the alignment of pointers is asked of each access.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from wcet_probe.certificate.facts.asserted import Asserted, Fact, lines_of, parameters_of
from wcet_probe.certificate.facts.findings import OK, OPEN, Binary, Finding
from wcet_probe.certificate.facts.hashes import check_hashes
from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, code_of, cover, edges_taken, run_block, said_of
from wcet_probe.certificate.kernel.loops import value_of
from wcet_probe.certificate.kernel.records import (
    Graph,
    Records,
    demand,
    graph_of,
    place_of,
    read_records,
    well_formed,
)
from wcet_probe.certificate.kernel.shapes import reached_nodes
from wcet_probe.certificate.modules.counted_words import Used, used_words
from wcet_probe.certificate.modules.image_words import constant_word
from wcet_probe.certificate.modules.module_machine import REST, Accessed, Followed, ModuleMachine
from wcet_probe.certificate.modules.stepped_registers import stepped_registers
from wcet_probe.certificate.modules.stored_by_init import Stored, surely_stored
from wcet_probe.certificate.values.congruences import Congruence, class_of_fact
from wcet_probe.certificate.values.kinds import (
    ANYTHING,
    ARENA,
    GIVEN,
    NULL,
    NUMBER,
    STATIC,
    Part,
    Word,
    followed,
    new,
    tables_of,
    within,
    word,
    word_of,
)
from wcet_probe.certificate.values.residues import ALL, MODULUS, of_class, residue
from wcet_probe.certificate.values.state import STATIC as STATIC_PLACES
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.model.image import Image
from wcet_probe.model.induction import LEMMAS, PREMISES
from wcet_probe.model.target import Isa

ROLES = ("init", "malloc", "free")
"""The operations that the induction is over; the check of the heap is for tests, and no operation."""
Json = Mapping[str, Any]
_CELL = re.compile(rf"{ARENA}:(0|[1-9][0-9]?)|{REST}(?::0x([1-9a-f][0-9a-f]{{0,7}}))?")
_UNKNOWN_NUMBER: Word = (Part(NUMBER, False, ALL),)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, as a certificate tells it.

    Attributes:
        role: ``init``, ``malloc`` or ``free``.
        graph: of its code.
        said: what holds where nodes begin, of numbers.
        words: what places are made of there; of one that is not told nothing is known.
    """

    role: str
    graph: Graph
    said: Said
    words: Mapping[str, Mapping[Place, Word]] = field(default_factory=dict)


class Way(NamedTuple):
    """A way out of a node: to where, None out of the operation, and what holds there."""

    target: str | None
    state: State


def operation_of(role: str, records: Records) -> Operation:
    """The operation ``role`` in ``records``.

    Raises:
        VerificationError: something is said of no value, or of a place that is none.
    """
    words: dict[str, dict[Place, Word]] = {}
    for node, text, parts in records["word"]:
        place, own = place_of(text), words.setdefault(node, {})
        demand(isinstance(place, str) or place < STATIC_PLACES // 2, f"{text} has a cell")
        own[place] = word_of(parts, demand)
    return Operation(role, graph_of(records), said_of(records), words)


def registers(image: Image) -> tuple[str, str]:
    """The first two arguments; the first is the result, too."""
    return ("r3", "r4") if image.isa is Isa.POWERPC else ("r0", "r1")


def entry_words(role: str, image: Image, block: Word) -> dict[Place, Word]:
    """What registers hold where an operation begins; ``block`` is what malloc returns."""
    first, second = registers(image)
    if role == "free":
        return {first: word(part._replace(kind=f"{GIVEN}+0") if part.kind == ARENA else part for part in block)}
    argument = (Part(ARENA, False, ALL),) if role == "init" else _UNKNOWN_NUMBER
    return {first: argument, second: _UNKNOWN_NUMBER}


def used_in(code: Code, operation: Operation, coverage: Coverage) -> Used:
    """What ``operation`` does with words that it loads; ``coverage`` is what was checked of its graph.

    Raises:
        VerificationError: a node is not executed.
    """
    block = registers(code.image)[0] if operation.role == "malloc" else None
    return used_words(code, operation.graph, operation.said, coverage, block)


def stored_by_init(code: Code, operation: Operation, coverage: Coverage) -> Stored:
    """The words that ``operation``, init, surely stores, where ``coverage`` was found of its graph.

    Raises:
        VerificationError: a node is not executed.
    """
    return surely_stored(code, operation.graph, operation.said, coverage, registers(code.image)[0])


def words_of_image(image: Image, addresses: Collection[int]) -> Mapping[str, Word]:
    """Words with a cell of their own that hold what the image has where init may not have stored them, by cell."""
    found = ((one, parts) for one, parts in initial_words(image) if one in addresses) if addresses else ()
    return {f"{REST}:{one:#x}": new(parts, is_loaded=False) for one, parts in found}


def returned(machine: ModuleMachine, state: State) -> Word:
    """What malloc returns: *heads-are-no-blocks*."""
    parts = followed(machine.word_in(state, registers(machine.image)[0]))
    blocks = new(tuple(part for part in parts if not (part.is_loaded and part.kind == STATIC)), is_loaded=False)
    return word((*(part._replace(is_loaded=False) for part in blocks), Part(NULL, False, residue(0))))


def ways_of(  # noqa: PLR0917  (a machine, and what it executes)
    code: Code,
    machine: ModuleMachine,
    operation: Operation,
    words: Mapping[Place, Word],
    node: str,
    coverage: Coverage,
) -> Iterator[Way]:
    """Execute ``node`` once, where ``words`` tell of what places are made.

    Args:
        code: the image.
        machine: executes.
        operation: with the node.
        words: what places are made of.
        node: where to begin.
        coverage: what was checked of its graph.
    """
    graph, said = operation.graph, operation.said
    kinds: dict[object, Word] = {
        place: tables_of(parts) if place in machine.stepped else parts for place, parts in words.items()
    }
    state = State(dict(said.invariants[node]), {}, dict(said.flags.get(node, {})), kinds)
    for outcome in run_block(code, machine, graph, node, state).outcomes:
        machine.learn(outcome.state)
        if outcome.address is None and node in graph.exits:
            yield Way(None, outcome.state)
        for edge in edges_taken(graph, node, outcome, coverage.gone):
            if edge.name in coverage.taken:
                yield Way(edge.target, outcome.state)


def initial_words(image: Image) -> Iterator[tuple[int, Word]]:
    """The words of static data before the first operation, by address."""
    for segment in image.segments:
        if segment.writable:
            first = segment.address & ~3
            data = bytes(segment.address - first) + segment.data
            order = "big" if image.big_endian else "little"
            for place in range(0, len(data), 4):
                content = int.from_bytes(data[place : place + 4].ljust(4, b"\0"), order)  # type: ignore[arg-type]
                yield first + place, constant_word(image, content)
            if segment.size_bytes > len(segment.data):
                for place in range((len(data) + 3) & ~3, segment.address - first + segment.size_bytes, 4):
                    yield first + place, constant_word(image, 0)


def cell_of(cells: Collection[str], address: int) -> str:
    """The cell of a word of static data."""
    own = f"{REST}:{address:#x}"
    return own if own in cells else REST


def facts_at(asserted: Asserted, image: Image, address: int) -> list[Fact]:
    """The facts about pointers that speak of the instruction at an address."""
    facts = asserted.of("pointer")
    found = image.lines.find(address)

    def is_of(function: str) -> bool:
        lines = lines_of(asserted.sources or {}, function)
        demand(lines, f"nobody knows the lines of {function}, which a fact names")
        return found is not None and lines is not None and lines[0] == found[0] and lines[1] <= found[1] <= lines[2]

    named = [fact for fact in facts if any(map(is_of, map(str, fact.content.get("functions") or ())))]
    return named or [fact for fact in facts if not fact.content.get("functions")]


def accesses_of(asserted: Asserted, image: Image, followed: Iterable[Followed]) -> dict[str, list[Followed]]:
    """Of each fact about pointers, by its place, the accesses that it speaks of."""
    found: dict[str, list[Followed]] = {fact.where: [] for fact in asserted.of("pointer")}
    speaking: dict[int, list[Fact]] = {}
    for one in followed:
        if one.address not in speaking:
            speaking[one.address] = facts_at(asserted, image, one.address)
        for fact in speaking[one.address]:
            found[fact.where].append(one)
    return found


def wanted_of(fact: Fact, parameters: Mapping[str, int]) -> Congruence:
    """The class that a fact asserts."""
    texts = fact.expression("multiple_of") or "1", fact.expression("remainder") or "0"
    return class_of_fact([value_of(text, parameters) for text in texts])


def holds_at(wanted: Congruence, access: Followed) -> bool:
    """Whether the numbers that an address is made of are of the class ``wanted``."""
    return access.roots is not None and wanted.modulus <= MODULUS and access.roots & ~of_class(wanted) == 0


# ---------------------------------------------------------------------------------------------------------------- check


class CheckedModule(NamedTuple):
    """What was found of a module certificate.

    Attributes:
        findings: all that was found, in order.
        aligned: of each access of its operations the residues of its addresses.
    """

    findings: tuple[Finding, ...]
    aligned: Mapping[Accessed, int]


def check_module(document: Json, binary: Binary) -> CheckedModule:
    """Check the module certificate ``document`` against ``binary``.

    Args:
        document: the certificate.
        binary: the image of an allocator, and its facts.

    Raises:
        VerificationError: something does not hold; one sentence says what.
    """
    with well_formed("certificate"):
        module = _Module(document, binary)
        return CheckedModule(module.findings(), module.aligned)


class _Module:
    """A certificate under check."""

    def __init__(self, document: Json, binary: Binary) -> None:
        self._document, self._binary, self._image = document, binary, binary.image
        entry_points, self.aligned = binary.entry_points, dict[Accessed, int]()
        for key, value in binary.named.items():
            demand(document[key] == value, f"the module certificate is of other {key}")
        demand(document["image"]["sha256"] == binary.image.sha256, "it is about another image than the given one")
        roles = {role for role in entry_points if role != "check"}
        demand(roles == set(ROLES), f"an induction over {', '.join(ROLES)} tells nothing of an allocator with others")
        self._code = code_of(binary.image, binary.instructions)
        self._operations = [self._operation(one, entry_points) for one in document["operations"]]
        demand([one.role for one in self._operations] == list(ROLES), f"the operations are not {', '.join(ROLES)}")
        self._cells = {name: word_of(text, demand) for name, text in document["cells"].items()}
        for name in self._cells:
            match = _CELL.fullmatch(name)
            demand(match, f"{name} is no cell")
            is_word = match and int(match[1] or match[2] or "0", 10 if match[1] else 16) % 4 == 0
            demand(is_word and (not match or int(match[1] or 0) < MODULUS), f"the cell {name} is no word")
        self._block = word_of(document["block"], demand)
        is_block = all(one.kind in {ARENA, NULL} and not one.is_loaded for one in self._block)
        demand(is_block, "what malloc returns is not said to be a block of the arena, or null")
        self._of_init = frozenset(int(one, 16) for one in document["stored_by_init"])
        is_told = {f"{one:#x}" for one in self._of_init} == set(document["stored_by_init"])
        demand(is_told, "a word that init stores is not written as the address of one")
        self._stores, self._followed = 0, list[Followed]()

    def _operation(self, one: Json, entry_points: Mapping[str, str]) -> Operation:
        records = read_records(one["certificate"])
        head = {kind: records[kind][0][0] for kind in ("image", "target", "entry-function")}
        demand(head["image"] == self._image.sha256, f"the graph of {one['role']} is of another image")
        demand(head["target"] == self._binary.target.name, f"the graph of {one['role']} is of another target")
        is_own = head["entry-function"] == entry_points.get(str(one["role"]))
        demand(is_own, f"the graph of {one['role']} is of another function")
        return operation_of(str(one["role"]), records)

    def findings(self) -> tuple[Finding, ...]:
        """All that is found, in order."""
        ends = next((one["statement"] for one in self._document["assumptions"] if one["id"] == "call-returns"), "")
        covered = [cover(self._code, one.graph, one.said, {}, ends=ends) for one in self._operations]
        left = [text for one in covered for text in one.open]
        found = [self._covered(covered, left)]
        stored = self._stored(covered[0])
        self._check_initial()
        for operation, coverage in zip(self._operations, covered, strict=True):
            self._check_operation(operation, coverage, stored)
        words = f"{self._stores} stores of {len(self._operations)} operations lie in the {len(self._cells)} cells"
        is_open = left or any(one.escapes for one in covered)
        found.append(
            Finding("module invariants", OPEN if is_open else OK, words + (", if that holds" if is_open else ""))
        )
        found += self._facts(is_open=bool(is_open))
        held, missing = check_hashes(self._binary.asserted, self._image)
        words = f"{held} functions are those that facts were written for"
        found.append(
            Finding("hashes of facts", OPEN if missing else OK, words if not missing else f"no source of {missing[0]}")
        )
        return (*found, self._assumed(covered))

    def _covered(self, covered: Iterable[Coverage], left: list[str]) -> Finding:
        if any(one.escapes for one in covered):
            return Finding("graphs", OPEN, "that no address of the stack is stored, through which words may be changed")
        if left:
            return Finding("graphs", OPEN, f"{left[0]}" + (f" and {len(left) - 1} more" if len(left) > 1 else ""))
        nodes = sum(len(one.graph.nodes) for one in self._operations)
        return Finding("graphs", OK, f"{nodes} nodes of {', '.join(ROLES)} cover the code, and values hold in them")

    def _stored(self, coverage: Coverage) -> Stored:
        """What init surely stores, if the certificate tells of words that it does."""
        if not self._of_init:
            return Stored({}, frozenset())
        found = stored_by_init(self._code, self._operations[0], coverage)
        other = min(self._of_init - found.behind, default=None)
        demand(other is None, f"init does not store the word at {other or 0:#x} on each of its ways")
        return found

    def _check_initial(self) -> None:
        for address, parts in initial_words(self._image):
            name = cell_of(self._cells, address)
            own = self._cells.get(name, ANYTHING)
            is_held = (name != REST and address in self._of_init) or within(new(parts, is_loaded=False), own)
            demand(is_held, f"the image holds at {address:#x} what {name} does not")

    def _check_operation(self, operation: Operation, coverage: Coverage, stored: Stored) -> None:
        graph, role = operation.graph, operation.role
        said = operation.words.get(graph.entry, {})
        known = entry_words(role, self._image, self._block)
        for place, parts in said.items():
            is_known = within(known.get(place, ANYTHING), parts)
            demand(is_known, f"what {place} is said to be made of where {role} begins is not known of the caller")
        used, stepped = used_in(self._code, operation, coverage), stepped_registers(graph, coverage)
        for node in reached_nodes(graph, coverage.taken):
            own = used.counted.get(node, ()), used.followed.get(node, ())
            machine = ModuleMachine(self._image, self._cells, self._store, *own)
            machine.stepped, machine.on_stack = stepped[node], coverage.on_stack.again()
            if self._of_init and role == ROLES[0]:
                machine.unstored = words_of_image(self._image, self._of_init - stored.before[node])
            for target, state in ways_of(self._code, machine, operation, operation.words.get(node, {}), node, coverage):
                self._check_way(operation, machine, node, target, state)
            place = self._image.location(machine.unknown[0]) if machine.unknown else ""
            demand(not place, f"where the store at {place} goes is not known")
            demand(not machine.is_refuted or coverage.escapes, f"{role} stores an address of its stack")
            self._followed += machine.followed
            for one, residues in machine.aligned.items():
                self.aligned[one] = self.aligned.get(one, 0) | residues

    def _check_way(
        self, operation: Operation, machine: ModuleMachine, node: str, target: str | None, state: State
    ) -> None:  # fmt: skip
        if target is None:
            is_block = operation.role != "malloc" or within(returned(machine, state), self._block)
            demand(is_block, f"what malloc returns from {node} is not the block that is told")
            return
        for place, parts in operation.words.get(target, {}).items():
            follows = within(machine.word_in(state, place), parts)
            demand(follows, f"what {place} is said to be made of at {target} does not follow from {node}")

    def _store(self, cell: str, stored: Word, address: int) -> None:
        self._stores += 1
        is_covered = within(stored, self._cells.get(cell, ANYTHING))
        demand(is_covered, f"the store at {self._image.location(address)} is not covered by the cell {cell}")

    # ----------------------------------------------------------------------------------------------------------- facts

    def _facts(self, *, is_open: bool) -> Iterator[Finding]:
        """Whether each fact that is told holds; of the others that nothing is told."""
        told = {one["where"]: one["accesses"] for one in self._document["facts"]}
        found = accesses_of(self._binary.asserted, self._image, self._followed)
        demand(told.keys() <= found.keys(), "a fact is told that there is not")
        for fact in self._binary.asserted.of("pointer"):
            yield self._fact(fact, found[fact.where], told.get(fact.where), is_open=is_open)

    def _fact(self, fact: Fact, accesses: list[Followed], told: int | None, *, is_open: bool) -> Finding:
        name = f"alignment of {fact.where}"
        if told is None:
            return Finding(name, OPEN, "nothing is told of it")
        demand(told == len(accesses), f"the fact {fact.where} speaks of {len(accesses)} accesses, not of {told}")
        wanted = wanted_of(fact, parameters_of(self._binary.asserted, self._binary.parameters or {}, self._image))
        for one in accesses:
            demand(holds_at(wanted, one), f"the fact {fact.where} does not hold at {self._image.location(one.address)}")
        words = f"{told} accesses, by numbers that are {wanted.residue} modulo {wanted.modulus}"
        return Finding(name, OPEN if is_open else OK, words + (", if that holds" if is_open else ""))

    # ----------------------------------------------------------------------------------------------------- assumptions

    def _assumed(self, covered: Iterable[Coverage]) -> Finding:
        listed = {one["id"]: one["statement"] for one in self._document["assumptions"]}
        used = reduce(set.union, (one.assumptions for one in covered), {"no-interference"})
        needed = {**{f"induction {name}": text for name, text in LEMMAS.items()}, **PREMISES}
        for name in sorted(used):
            demand(name in listed, f"the assumption {name} is used and not listed")
        for name, statement in needed.items():
            demand(listed.get(name) == statement, f"the assumption {name} is not listed, or told otherwise")
        return Finding(
            "assumptions", OK, f"the {len(used) + len(needed)} that the rules used are among the {len(listed)} listed"
        )
