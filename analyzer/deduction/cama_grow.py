"""Malloc of CAMA where no list has a block: it is refused, or the heap grows, in five parts.

1. From the entry to the load of the break, which is the join: nothing was stored, and the bits know of the size that it
   is a multiple of 8, holds what is wanted, and is the least of its class if that is small.
2. To where the code first compares how many descriptors are available: where an area would be laid out. Whether that is
   computed before their number is loaded or behind it is the compiler's choice.
3. To behind the new area, if one is wanted, and the gap before it: to where the code compares the break with the start.
   Owed is the break, which is where the area ends.
4. To behind the gap before the start of the block. Owed is the break, which is the start.
5. To the return, with the block.

Words: claim, ghost state, obligation (docs/explanation/glossary.md).

*Soundness:* as of `analyzer.deduction.cama_free`. Of what a part knows of the numbers that it begins with, each is
asked at the end of every way to it, of the words that registers hold there. So nothing rests on where a part ends: by
which comparison, or at which join. What ends at one instruction goes on there; ways that end at several are followed
from each. The first part ends within an instruction, which is executed again: it is not to have changed before its load
what it reads. At a comparison nothing of the instruction was executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.cama_claims import sets
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, STARTS_PER_PLACE, Geometry
from wcet_probe.analyzer.deduction.cama_joins import Join, anything, begins, joined, registers_behind, without_begin
from wcet_probe.analyzer.deduction.cama_malloc import (
    NOTHING_CHANGED,
    RETURNED,
    SIZE,
    any_request,
    begun,
    bits_of,
    described,
    grown,
    size_behind,
    times,
    unchanged,
)
from wcet_probe.analyzer.deduction.cama_memory import AT_STOP, CamaMemory
from wcet_probe.analyzer.deduction.cama_tables import BOTH, LEFT_TO_ANOTHER_PART
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.execution import End, Memory, Site, follow_paths
from wcet_probe.analyzer.deduction.formulas import (
    TRUE,
    Node,
    choice,
    condition,
    conjunction,
    negation,
    term,
    truth,
    unknown,
)
from wcet_probe.analyzer.deduction.obligations import OF_ANOTHER_BLOCK, Deduced
from wcet_probe.analyzer.deduction.views import changed
from wcet_probe.analyzer.deduction.words import SPAN, Word
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import Varnode

_MOST_PLACE, _MOST_START = SPAN // PLACE_BYTES - 1, SPAN // START_BYTES - 1
AREA, START = "where an area would be", "where the block starts"
DESCRIPTORS = "descriptors are available"


def deduce_malloc_grow(
    geometry: Geometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Malloc, of any arguments, where it is refused or no list has a block.

    Parameters:
        registers: those of the two arguments and of the stack pointer; the first is also the result's.
        course: who is asked, and is told of each way's end.

    Raises:
        UsageError: z3 is not installed.
    """
    first = _Entry(geometry, registers, course)
    joins = first.follow(lifter, entry_address)
    found = first.run.deduced("malloc-grow")
    for stage in (_AREA, _GAP, _START, _END):
        if not joins or found.open:
            break  # what begins at the join would be shown of nothing
        if not all(_may_be_repeated(lifter, one.address, stage) for one in joins):
            return found.then(without_begin("malloc-grow", joins))
        parts = [_Part(geometry, stage, join, registers, course) for join in begins(joins)]
        joins = tuple(behind for part in parts for behind in part.follow(lifter))
        for part in parts:
            found = found.then(part.run.deduced("malloc-grow"))
    return found


def _may_be_repeated(lifter: Lifter, address: int, stage: int) -> bool:
    """Whether a part may begin with the instruction at ``address``, which ends the ways before it at one of its loads.

    What it reads before that must not be what it has written already, as ``lwzu`` and ``ldm`` with a new base may.
    """
    if stage != _AREA:
        return True
    ops = lifter.lift(address).ops
    loads = [index for index, op in enumerate(ops) if op.opcode == "LOAD"]
    read, written = set[tuple[str, int]](), set[tuple[str, int]]()
    for op in ops[: loads[-1] if loads else len(ops)]:
        if op.opcode == "STORE":
            return False
        read |= {byte for one in op.inputs for byte in _bytes(one)} - written
        written |= set(_bytes(op.output)) if op.output is not None else set()
    return not read & written


def _bytes(varnode: Varnode) -> Iterator[tuple[str, int]]:
    if varnode.space != "const":
        yield from ((varnode.space, varnode.offset + index) for index in range(varnode.size_bytes))


# --------------------------------------------------------------------------------------------------------------- entry


class _Entry:
    """The first part."""

    def __init__(self, geometry: Geometry, registers: tuple[str, str, str], course: Course) -> None:
        self.request = any_request()
        self.run = begun(geometry, course, asked_set=self.request.asked_set, leaves_found=BOTH, stops_at="top")
        self.request.given_to(self.run)
        self.registers = registers
        self.joins: list[Join] = []

    def follow(self, lifter: Lifter, address: int) -> tuple[Join, ...]:
        """Follow the part; what was shown of its ways where they stop."""
        given = self.request.registers(self.run, self.registers)
        follow_paths(lifter, self.run.terms, address, given, self.run.memory, self._visit)
        return tuple(self.joins)

    def _visit(self, way: End) -> None:
        run = self.run
        if way.reason == LEFT_TO_ANOTHER_PART:
            run.leave_way()
        elif way.reason == AT_STOP:
            self._ask_at_stop(way)
        elif way.reason or way.registers(self.registers[0]) != Word(0):
            run.end_way(replace(way, reason=way.reason or "it returns a block that was not found"), ())
        else:
            run.end_way(way, [unchanged(run, way)])

    def _ask_at_stop(self, way: End) -> None:
        run = self.run
        size = next(self.request.sizes(run, way), None)
        asked = [unchanged(run, way), (SIZE, truth(size is not None))]
        asked.append(("the set is one", run.terms.value(self.request.asked_set) < run.geometry.sets))
        if size is not None:
            plain = joined(run, way, {}, (), self.registers[2])
            self.joins.append(self.request.told_of(run, way, size, plain))
        run.end_way(replace(way, reason=""), asked)


# --------------------------------------------------------------------------------------------------------------- parts

_AREA, _GAP, _START, _END = range(4)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What a part knows besides the claims, as integers: sizes and starts divided by 8, a place divided by 32.

    Attributes:
        size: of the block.
        asked_set: that is asked for.
        place: where an area would be, before it is decided whether it is.
        start: of the block, behind that.
    """

    size: Node
    asked_set: Node
    place: Node | None = None
    start: Node | None = None


class _Part:
    """A part behind the first."""

    def __init__(
        self,
        geometry: Geometry,
        stage: int,
        join: Join,
        registers: tuple[str, str, str],
        course: Course,
    ) -> None:
        asked_set = unknown("asked set")
        self.begin_address = join.address
        self.stage, self.geometry, self.registers = stage, geometry, registers
        self.run = run = begun(geometry, course, makes_block=True)
        view, terms, memory = run.rules.before, run.terms, run.memory
        self.size = size_behind(run, join)
        terms.known(asked_set, geometry.sets - 1)
        place = terms.known(unknown("area"), _MOST_PLACE) if stage == _GAP else None
        start = terms.known(unknown("start"), _MOST_START) if stage in {_START, _END} else None
        self.numbers = _Numbers(self.size.starts, asked_set, place, start)
        if place is not None:
            memory.name("place", place)
        if start is not None:
            memory.name("start", start)
            memory.name("place", view.owner(start))
            memory.starts[times(start, START_BYTES)] = start
            for formula in sets(geometry, start, term(0)):
                terms.questions.assume(formula)
        for _, formula in self._known(view, self.numbers, stage):
            terms.questions.assume(formula)
        words = {name: times(node, factor) for name, (node, factor) in self._words(view, self.numbers).items()}
        for name in ("from", "top", "available"):
            if name in words:
                node = {"from": view.top, "top": view.top, "available": view.available}[name]
                terms.known(node, SPAN // (1 if name == "available" else START_BYTES) - 1)
        self.given = registers_behind(run, join, words, registers[2])
        if stage in {_START, _END}:
            owed = anything(terms, _MOST_START).times(START_BYTES)
            memory.static[geometry.control + 8] = owed
        self.joins: list[Join] = []

    def _words(self, view: View, numbers: _Numbers) -> Mapping[str, tuple[Node, int]]:
        """What registers may hold where a part begins, by names, as numbers and factors."""
        found = {
            "asked set": (numbers.asked_set, 1),
            **self.size.words,
        }
        if numbers.place is not None:
            found |= {"area": (numbers.place, PLACE_BYTES), "top": (view.top, START_BYTES)}
            found |= {"end": (view.end, START_BYTES), "available": (view.available, 1)}
        if numbers.start is not None:
            found |= {"start": (numbers.start, START_BYTES), "available": (view.available, 1)}
            found |= {"from": (view.top, START_BYTES)}
        return found

    def _known(self, view: View, numbers: _Numbers, stage: int) -> Iterator[tuple[str, Node]]:
        """What is known where the part of ``stage`` begins, of the break as it is behind what is owed."""
        geometry = self.geometry
        if stage == _GAP and numbers.place is not None:
            place = numbers.place
            begin = geometry.page_places * cama.page(place)
            yield (
                AREA,
                conjunction(
                    STARTS_PER_PLACE * place >= view.top,
                    place - begin <= geometry.area_places - 4,
                    # What begins in the next page, at a start in any set, does not wrap around.
                    begin + 2 * geometry.page_places <= SPAN // PLACE_BYTES,
                ),
            )
        if numbers.start is not None and stage in {_START, _END}:
            start = numbers.start
            inside = conjunction(start + numbers.size <= view.end, start >= view.top)
            if stage == _END:
                inside = conjunction(inside, start.equals(view.top))
            yield START, conjunction(inside, cama.set_of(start).equals(numbers.asked_set))
            yield DESCRIPTORS, view.available >= (2 if stage == _START else 1)

    # ---------------------------------------------------------------------------------------------------------- ways

    def follow(self, lifter: Lifter) -> tuple[Join, ...]:
        """Follow the part; what was shown of its ways at the joins that end it."""
        run = self.run
        ends_before = {_AREA: self._is_of_available, _GAP: self._is_of_gap}.get(self.stage)
        follow_paths(
            lifter,
            run.terms,
            self.begin_address,
            self.given,
            run.memory,
            self._visit,
            to_join=self.stage == _START,
            ends_before=ends_before,
        )
        return tuple(self.joins)

    def _is_of_available(self, _: Memory, __: Site, one: Word, other: Word) -> bool:
        """Whether it is asked how many descriptors are available."""
        available = self.run.rules.before.available
        return any(available is node for word in (one, other) for node, _ in word.parts)

    def _is_of_gap(self, memory: Memory, site: Site, one: Word, other: Word) -> bool:
        """Whether it is asked if there is a gap before the start: of the break that is owed and a word in the set."""
        if not one.parts or not other.parts:
            return False
        top = self._owing(cast("CamaMemory", memory).copy()).top
        terms = self.run.terms
        return any(
            self._is_in_set(start, site.conditions)
            and terms.questions.holds(terms.value(begin).equals(START_BYTES * top))
            for start, begin in ((one, other), (other, one))
        )

    def _visit(self, way: End) -> None:
        run = self.run
        if way.is_at_join:
            (self._ask_at_comparison if self.stage == _AREA else self._ask_at_join)(way)
        elif way.reason:
            run.end_way(way, ())
        elif way.registers(self.registers[0]) == Word(0):
            is_unchanged = self.stage in {_AREA, _GAP} and unchanged(run, way)[1] is TRUE
            run.end_way(way, [(NOTHING_CHANGED, truth(is_unchanged))])
        elif self.stage == _END:
            self._ask_at_end(way)
        else:
            run.end_way(replace(way, reason="it returns before the block is made"), ())

    def _ask_at_comparison(self, way: End) -> None:
        """Where the area would be is told by a register."""
        run, view = self.run, self.run.rules.before
        for word in dict.fromkeys(way.words().values()):
            if not word.parts or word.alignment % PLACE_BYTES:
                continue
            run.terms.enter()
            place = run.memory.copy().divided(word, PLACE_BYTES)
            numbers = replace(self.numbers, place=place)
            memory = cast("CamaMemory", way.memory).copy()
            memory.name("place", place)
            ((_, formula),) = self._known(view, numbers, _GAP)
            is_area = run.terms.questions.holds(formula)
            run.terms.leave()
            if is_area:
                self._join(way, numbers, view)
                run.end_way(way, [unchanged(run, way)])
                return
        run.end_way(replace(way, reason=AREA), ())

    def _ask_at_join(self, way: End) -> None:
        run, memory = self.run, cast("CamaMemory", way.memory)
        if not run.ask_after(partial(self._owing, memory), memory, way, run.terms.fresh("no block")):
            return
        after, stage = self._owing(memory), self.stage + 1
        if self.numbers.start is not None:
            asked = [*self._known(after, self.numbers, stage)]
            self._join(way, self.numbers, after)
            run.end_way(way, asked)
            return
        for word in dict.fromkeys(way.words().values()):
            if self._is_in_set(word, way.conditions):
                start = memory.divided(word, START_BYTES)
                for formula in sets(self.geometry, start, term(0)):
                    run.terms.questions.assume(formula)
                # The bits tell the set, as ``start`` is the word divided by 8, and the set that is asked for is one.
                run.terms.questions.assume(cama.set_of(start).equals(self.numbers.asked_set))
                numbers = replace(self.numbers, start=start)
                if all(run.terms.questions.holds(formula) for _, formula in self._known(after, numbers, stage)):
                    self._join(way, numbers, after)
                    run.end_way(way, ())
                    return
        run.end_way(replace(way, reason=START), ())

    def _is_in_set(self, word: Word, conditions: tuple[Node, ...]) -> bool:
        """Whether the bits tell that ``word`` is in the set that is asked for: of others nothing needs to be asked."""
        terms, geometry, asked_set = self.run.terms, self.geometry, times(self.numbers.asked_set, 1)
        if not word.parts or word.alignment % START_BYTES:
            return False
        premises = terms.bits_about([word, asked_set], conditions)
        line = condition("bits INT_RIGHT", terms.bits(word), bits_of(geometry.line_bytes.bit_length() - 1))
        is_in_set = condition(
            "bits equal",
            *(condition("bits INT_AND", one, bits_of(geometry.sets - 1)) for one in (line, terms.bits(asked_set))),
        )
        return terms.bits_follow(premises, is_in_set)

    def _join(self, way: End, numbers: _Numbers, after: View) -> None:
        numbers = replace(numbers, place=None) if self.stage != _AREA else numbers
        told = {name: factor * node for name, (node, factor) in self._words(after, numbers).items()}
        others = [one for one in self.joins if one.address == way.instruction_address]
        self.joins.append(joined(self.run, way, told, others[-1:], self.registers[2]))

    def _owing(self, memory: CamaMemory) -> View:
        """The view behind the stores, with its ghosts and the break that is owed."""
        after = grown(memory, self.run.rules.before)
        view = self.run.rules.before
        if self.numbers.start is not None:
            return replace(after, top=self.numbers.start)
        is_new = after.newest is not view.newest
        end = STARTS_PER_PLACE * cama.area_end(after, self.geometry) + 1
        return replace(after, top=end if is_new else view.top)

    def _ask_at_end(self, way: End) -> None:
        run, memory, start = self.run, cast("CamaMemory", way.memory), cast("Node", self.numbers.start)
        returned = way.registers(self.registers[0])
        is_start = returned is not None and returned == times(start, START_BYTES)

        def change() -> View:
            after = grown(memory, self.run.rules.before)
            own = described(memory)
            held = changed(after.held, start, TRUE)
            if own:
                return replace(after, held=held, owner=changed(after.owner, start, own[-1]))
            return replace(after, held=held, small_size=changed(after.small_size, start, self.numbers.size))

        if not run.ask_after(change, memory, way, start):
            return
        after = change()
        size = choice(cama.is_small(after, start), after.small_size(start), after.size(after.owner(start)))
        asked = [
            (RETURNED, truth(is_start)),
            (OF_ANOTHER_BLOCK, negation(run.rules.before.held(start))),
            (SIZE, size >= self.numbers.size),
        ]
        run.end_way(way, asked)
