"""Malloc of CAMA from a list of large blocks, in two parts.

1. A large block is found and leaves its list. The part ends at the join behind the branch by which it leaves, with
   what is *owed*: the block is chained, in use and not held, and owed is its free bit.
2. A small block is carved from it, or it is cut, which may lay out an area; to the return, with the block.

That the block is large enough is shown over bits: of its class, which is the one that was found, and where that is the
own class of the size, as the first block of its list was compared.

Words: claim, ghost state, obligation (docs/explanation/glossary.md).

*Soundness:* as of `analyzer.deduction.cama_free`. Of the block that the second part begins with nothing is known but
what is asked at the end of every way to it: its start is in the set that is asked for, and its size is not below the
one that is wanted. Both, and what registers hold of them, are told as they were at entry: that they still are is asked.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.cama_claims import sets
from wcet_probe.analyzer.deduction.cama_free import CHAINED_AND_USED, NOT_HELD
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_joins import Join, common, joined, registers_behind, without_begin
from wcet_probe.analyzer.deduction.cama_malloc import (
    RETURNED,
    SIZE,
    any_request,
    begun,
    grown,
    size_behind,
    times,
    unchanged,
)
from wcet_probe.analyzer.deduction.cama_memory import AT_STOP, CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import stored_view
from wcet_probe.analyzer.deduction.cama_operations import IN_ITS_SET
from wcet_probe.analyzer.deduction.cama_tables import LEFT_TO_ANOTHER_PART, SMALL
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.execution import End, follow_paths
from wcet_probe.analyzer.deduction.formulas import (
    TRUE,
    Node,
    choice,
    condition,
    conjunction,
    disjunction,
    implies,
    negation,
    term,
    truth,
    unknown,
)
from wcet_probe.analyzer.deduction.obligations import LARGE_ENOUGH, OF_ANOTHER_BLOCK, Deduced
from wcet_probe.analyzer.deduction.views import changed
from wcet_probe.analyzer.deduction.words import SPAN, Word
from wcet_probe.analyzer.pcode.lift import Lifter

KEPT = "the block that left its list is where it was, and as large"
_MOST_PLACE, _MOST_START = SPAN // PLACE_BYTES - 1, SPAN // START_BYTES - 1


def deduce_malloc_large(
    geometry: Geometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Malloc, of any arguments, where it is refused at once or a list of large blocks has a block.

    Parameters:
        registers: those of the two arguments and of the stack pointer; the first is also the result's.
        course: who is asked, and is told of each way's end.

    Raises:
        UsageError: z3 is not installed.
    """
    first = _Taking(geometry, registers, course)
    joins = first.follow(lifter, entry_address)
    found = first.run.deduced("malloc-large")
    if not joins or found.open:
        return found  # what begins at the join would be shown of nothing
    join = common(joins)
    if join is None:
        return found.then(without_begin("malloc-large", joins))
    second = _Cutting(geometry, join, registers, course)
    second.follow(lifter, join.address)
    return found.then(second.run.deduced("malloc-large"))


# -------------------------------------------------------------------------------------------------------------- taking


class _Taking:
    """The first part."""

    def __init__(self, geometry: Geometry, registers: tuple[str, str, str], course: Course) -> None:
        self.request = any_request()
        self.run = begun(
            geometry, course, asked_set=self.request.asked_set, leaves_found=frozenset({SMALL}), stops_at="top"
        )
        self.request.given_to(self.run)
        self.registers = registers
        self.joins: list[Join] = []

    def follow(self, lifter: Lifter, address: int) -> tuple[Join, ...]:
        """Follow the part; what was shown of its ways at the join that ends it."""
        given = self.request.registers(self.run, self.registers)
        follow_paths(lifter, self.run.terms, address, given, self.run.memory, self._visit, to_join=True)
        return tuple(self.joins)

    def _visit(self, way: End) -> None:
        run = self.run
        if way.reason in {LEFT_TO_ANOTHER_PART, AT_STOP}:
            run.leave_way()
        elif way.is_at_join:
            self._ask_at_join(way)
        elif way.reason or way.registers(self.registers[0]) != Word(0):
            run.end_way(replace(way, reason=way.reason or "it returns before the join behind the list"), ())
        else:
            run.end_way(way, [unchanged(run, way)])

    def _ask_at_join(self, way: End) -> None:
        run, memory, view = self.run, cast("CamaMemory", way.memory), self.run.rules.before
        cell = _left_cell(memory)
        if cell is None:
            run.end_way(replace(way, reason="no block has left the list that was found"), ())
            return
        place = view.first_large(cell)

        def change() -> View:
            after = stored_view(memory, view)
            return replace(after, free=changed(after.free, place, term(0)))

        if not run.ask_after(change, memory, way, run.terms.fresh("no block")):
            return
        after, start = change(), view.start(place)
        memory.name("start", start)
        memory.name("place", view.owner(start))
        asked_set = run.terms.value(self.request.asked_set)
        own = run.geometry.line_bytes // START_BYTES * asked_set
        for at, number in ((start, cama.class_of(view.size(place))), (own, cama.class_at(cell))):
            for formula in sets(run.geometry, at, number):
                run.terms.questions.assume(formula)
        sizes = tuple(self.request.sizes(run, way))
        size = next((one for one in sizes if self._is_large_enough(memory, cell, one, way)), None)
        is_used = conjunction(cama.is_chained(after, place), after.free(place).equals(0))
        asked = [
            (CHAINED_AND_USED, is_used),
            (NOT_HELD, negation(after.held(start))),
            (KEPT, conjunction(after.start(place).equals(start), after.size(place).equals(view.size(place)))),
            (IN_ITS_SET, cama.set_of(start).equals(asked_set)),
            (SIZE, truth(bool(sizes))),
            (LARGE_ENOUGH, truth(size is not None)),
        ]
        if size is not None:
            told = {name: factor * node for name, (node, factor) in _words(view, place).items()}
            plain = joined(run, way, told, self.joins[-1:], self.registers[2])
            self.joins.append(self.request.told_of(run, way, size, plain))
        run.end_way(way, asked)

    def _is_large_enough(self, memory: CamaMemory, cell: Node, size: Word, way: End) -> bool:
        """Whether the bits show that the block that left the list of ``cell`` is not smaller than ``size``."""
        terms, geometry, view = self.run.terms, self.run.geometry, self.run.rules.before
        questions, number = terms.questions, memory.found[cell]
        taken = view.size(view.first_large(cell))
        own = times(taken, START_BYTES)
        is_of_class = conjunction(
            cama.class_of(taken).equals(cama.class_at(cell)), taken >= geometry.threshold // START_BYTES
        )
        if not questions.holds(is_of_class):
            return False
        words = [number, size, own, self.request.wanted]
        shown = [condition("bits equal", geometry.bits_of_class(terms.bits(own)), terms.bits(number))]
        for other in memory.cells.values():
            first = view.size(view.first_large(other.cell))
            is_same = implies(cama.class_at(cell).equals(cama.class_at(other.cell)), taken.equals(first))
            if other.is_large and other.cell is not cell and questions.holds(is_same):
                words.append(compared := times(terms.known(first, _MOST_START), START_BYTES))
                differs = negation(condition("bits equal", terms.bits(number), other.class_bits))
                shown.append(disjunction(differs, condition("bits equal", terms.bits(own), terms.bits(compared))))
        premises = terms.bits_about(words, way.conditions).with_formulas(shown)
        return terms.bits_follow(premises, negation(condition("bits less", terms.bits(own), terms.bits(size))))


def _left_cell(memory: CamaMemory) -> Node | None:
    """The cell that was found and whose first block has left its list."""
    cells = [cell for cell, _ in memory.stored.get("first_large", ())]
    return cells[0] if len(cells) == 1 and cells[0] in memory.found else None


def _words(view: View, place: Node) -> dict[str, tuple[Node, int]]:
    """What registers may hold of the block that left its list, by names, as numbers and factors."""
    return {
        "descriptor": (place, PLACE_BYTES),
        "start": (view.start(place), START_BYTES),
        "size of it": (view.size(place), START_BYTES),
    }


# ------------------------------------------------------------------------------------------------------------- cutting


class _Cutting:
    """The second part."""

    def __init__(self, geometry: Geometry, join: Join, registers: tuple[str, str, str], course: Course) -> None:
        self.registers = registers
        self.run = run = begun(geometry, course, makes_block=True)
        view, terms, memory = run.rules.before, run.terms, run.memory
        self.place = place = terms.known(unknown("descriptor"), _MOST_PLACE)
        self.start = start = terms.known(view.start(place), _MOST_START)
        whole = terms.known(view.size(place), _MOST_START)
        self.size = size_behind(run, join)
        is_used = conjunction(cama.is_chained(view, place), view.free(place).equals(0))
        terms.questions.assume(conjunction(is_used, negation(view.held(start)), whole >= self.size.starts))
        for one in (place, view.left(place), view.right(place), view.owner(start)):
            memory.name("place", one)
        memory.name("start", start)
        memory.starts[times(start, START_BYTES)] = start
        words = {name: times(*own) for name, own in (*_words(view, place).items(), *self.size.words.items())}
        self.given = registers_behind(run, join, words, registers[2])
        memory.write("free", place, terms.known(terms.fresh("owed"), 1))

    def follow(self, lifter: Lifter, address: int) -> None:
        """Follow the part."""
        follow_paths(lifter, self.run.terms, address, self.given, self.run.memory, self._visit)

    def _visit(self, way: End) -> None:
        run, memory = self.run, cast("CamaMemory", way.memory)
        if way.reason or not run.ask_after(partial(self._behind, memory), memory, way, self.start):
            if way.reason:
                run.end_way(way, ())
            return
        after, start = self._behind(memory), self.start
        size = choice(cama.is_small(after, start), after.small_size(start), after.size(after.owner(start)))
        is_start = way.registers(self.registers[0]) == times(start, START_BYTES)
        asked = [
            (RETURNED, truth(is_start)),
            (OF_ANOTHER_BLOCK, negation(run.rules.before.held(start))),
            (SIZE, size >= self.size.starts),
        ]
        run.end_way(way, asked)

    def _behind(self, memory: CamaMemory) -> View:
        """The view behind malloc, with its ghosts: the block is small if it was carved from the large one."""
        after = grown(memory, self.run.rules.before, kept=self.place)
        after = replace(after, held=changed(after.held, self.start, TRUE))
        if any(place is self.place for place, _ in memory.stored.get("start", ())):
            return replace(after, small_size=changed(after.small_size, self.start, self.size.starts))
        return replace(after, owner=changed(after.owner, self.start, self.place))
