"""Free of CAMA: of null or a small block in one piece, of a large one in three parts.

The parts are those of the source: what becomes of the right neighbour, of the left one, and of the block. They meet
where the code does: at the join behind the first branch of a part. There the claims hold of the memory as it is when
that is stored which free *owes*: the descriptor of all that was merged so far is chained, in use and not held, and owed
are its size with the free bit, its link to the right, and the link to the left of what lies right of it. So a part
begins with any memory of which the claims hold but for these words, which are anything.

*Soundness:* a way to a join shows all claims of the memory with what is owed, and of each word that is read behind it
that it was live or stored. Behind a join a register holds what it was shown to hold on all ways to it, or else
anything; a word of the stack that was stored on all of them holds anything. The owed words are stored as unknowns where
a part begins, so that no load of them tells anything. Ghosts are any of which the claims hold; but the block that is
given is held up to the first join and not behind it, and no other changes.

Words: claim, ghost state, obligation (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_joins import Join, common, joined, registers_behind, without_begin
from wcet_probe.analyzer.deduction.cama_memory import CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import Deduction, stored_view
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.execution import Astray, End, follow_paths
from wcet_probe.analyzer.deduction.formulas import FALSE, Node, conjunction, disjunction, negation, term, unknown
from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.analyzer.deduction.views import changed
from wcet_probe.analyzer.deduction.words import SPAN, Word
from wcet_probe.analyzer.pcode.lift import Lifter

_MOST_START, _MOST_PLACE = SPAN // START_BYTES - 1, SPAN // PLACE_BYTES - 1
_NEIGHBOURS = 2
"""Parts of free of a large block before its last one: the right neighbour and the left one."""
CHAINED_AND_USED, NOT_HELD = "what is merged is chained and in use", "what is merged is not held"


def deduce_free_small(
    geometry: Geometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Free, of null and any small block that is held.

    Parameters:
        registers: those of the argument and of the stack pointer.
        course: who is asked, and is told of each way's end.

    Raises:
        UsageError: z3 is not installed.
    """
    run, start, given = _called(geometry, registers, course)
    view = run.rules.before
    is_small = conjunction(view.held(start), cama.is_small(view, start))
    run.terms.questions.assume(disjunction(start.equals(0), is_small))

    def visit(way: End) -> None:
        _end(run, way, start)

    follow_paths(lifter, run.terms, entry_address, given, run.memory, visit)
    return run.deduced("free-small")


def deduce_free_large(
    geometry: Geometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Free, of any large block that is held.

    Parameters:
        registers: those of the argument and of the stack pointer.
        course: who is asked, and is told of each way's end.

    Raises:
        UsageError: z3 is not installed.
    """
    run, start, given = _called(geometry, registers, course)
    view = run.rules.before
    run.terms.questions.assume(conjunction(view.held(start), negation(cama.is_small(view, start))))
    run.memory.name("place", view.owner(start))
    part = _Part(run, view.owner(start), start, registers[1])
    joins = part.follow(lifter, entry_address, given, to_join=True)
    found = run.deduced("free-large")
    for number in range(1, _NEIGHBOURS + 1):
        if not joins or found.open:
            break  # what begins at the join would be shown of nothing
        join = common(joins)
        if join is None:
            return found.then(without_begin("free-large", joins))
        part, given = _resumed(geometry, join, registers[1], course)
        joins = part.follow(lifter, join.address, given, to_join=number < _NEIGHBOURS)
        found = found.then(part.run.deduced("free-large"))
    return found


def _called(
    geometry: Geometry, registers: tuple[str, str], course: Course
) -> tuple[Deduction, Node, Mapping[str, Word]]:
    """Free at its entry: its argument as a start, and what is in registers."""
    run = Deduction(geometry, cama.view_of(" before"), begins=False, course=course)
    run.assume_claims()
    run.load_scalars()
    start = run.terms.known(unknown("argument of free"), _MOST_START)
    block = Word(0, ((start, START_BYTES),))
    run.memory.starts[block] = start
    run.memory.name("start", start)
    return run, start, dict(zip(registers, (block, run.stack_pointer), strict=True))


def _end(run: Deduction, way: End, start: Node | None) -> None:
    """Ask all at the end of a way that returns; the block at ``start``, if any, is held until then."""
    memory = cast("CamaMemory", way.memory)
    own = run.terms.fresh("no block") if start is None else start
    if way.reason or run.ask_after(partial(_freed, memory, run.rules.before, start), memory, way, own):
        run.end_way(way, ())


def _freed(memory: CamaMemory, view: View, start: Node | None) -> View:
    """The view behind free, with its ghosts."""
    after, _ = _spared(memory, view)
    if start is None:
        return after
    for _, behind in memory.stored.get("link", ())[-1:]:
        before = changed(changed(after.before, behind, start), start, term(0))
        after = replace(after, before=before)
    return replace(after, held=changed(after.held, start, FALSE))


def _spared(memory: CamaMemory, view: View) -> tuple[View, tuple[Node, ...]]:
    """The view behind the stores, and what was put to the spare ones, the last first: it is numbered."""
    after = stored_view(memory, view)
    made: list[Node] = []
    place = memory.scalar("spare")
    while place is not view.spare:
        lefts = [value for argument, value in memory.stored.get("left", ()) if argument is place]
        if not lefts or place in made:
            raise Astray("the list of spare descriptors is not the former one with more before it")
        made.append(place)
        place = lefts[-1]
    for one in reversed(made):
        own, first = after.number(one), after.spares + 1
        other = after.at(first)
        number = changed(changed(after.number, other, own), one, first)
        at = changed(changed(after.at, own, other), first, one)
        after = replace(after, number=number, at=at, spares=first)
        memory.name("number", first)
        memory.name("place", view.at(first))
    return after, tuple(made)


# --------------------------------------------------------------------------------------------------------------- joins


def _told(view: View, descriptor: Node) -> Mapping[str, Node]:
    """What registers may be shown to hold at a join, as integers."""
    return {
        "descriptor": PLACE_BYTES * descriptor,
        "left": PLACE_BYTES * view.left(descriptor),
        "right": PLACE_BYTES * view.right(descriptor),
        "start": START_BYTES * view.start(descriptor),
        "end": START_BYTES * (view.start(descriptor) + view.size(descriptor)),
    }


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of free of a large block.

    Attributes:
        descriptor: of what is merged where the part begins.
        start: of the block that is held until the part ends, if it begins at the entry.
        stack_register: the stack pointer's.
    """

    run: Deduction
    descriptor: Node
    start: Node | None
    stack_register: str

    def follow(self, lifter: Lifter, address: int, given: Mapping[str, Word], *, to_join: bool) -> tuple[Join, ...]:
        """Follow the part from ``address`` on; what was shown of its ways at the join that ends it."""
        joins: list[Join] = []

        def visit(way: End) -> None:
            if way.is_at_join:
                joins.extend(self._ask_at_join(way, joins[-1:]))
            else:
                _end(self.run, way, self.start)

        follow_paths(lifter, self.run.terms, address, given, self.run.memory, visit, to_join=to_join)
        return tuple(joins)

    def _ask_at_join(self, way: End, others: Iterable[Join]) -> Iterator[Join]:
        """Ask all of a way at the join, where ``others`` arrived; what was shown there, if the way is not astray."""
        run, memory, view = self.run, cast("CamaMemory", way.memory), self.run.rules.before
        own = run.terms.fresh("no block") if self.start is None else self.start
        if not run.ask_after(lambda: self._merged(memory)[0], memory, way, own):
            return
        after, place = self._merged(memory)
        found = joined(run, way, _told(after, place), others, self.stack_register)
        at = view.start(place)
        memory.name("start", at)
        memory.name("place", view.owner(at))
        is_used = conjunction(cama.is_chained(after, place), after.free(place).equals(0))
        run.end_way(way, [(CHAINED_AND_USED, is_used), (NOT_HELD, negation(after.held(at)))])
        yield found

    def _merged(self, memory: CamaMemory) -> tuple[View, Node]:
        """The view at a join, with what is owed and its ghosts, and the descriptor of what is merged."""
        view = self.run.rules.before
        after, made = _spared(memory, view)
        place, right, size = self.descriptor, view.right(self.descriptor), view.size(self.descriptor)
        for one in reversed(made):
            if one is self.descriptor:
                place = view.left(one)
                size += view.size(place)
            else:
                right, size = view.right(right), size + view.size(right)
        merged = replace(
            after,
            right=changed(after.right, place, right),
            left=changed(after.left, right, place),
            size=changed(after.size, place, size),
            free=changed(after.free, place, term(0)),
        )
        if self.start is not None:
            merged = replace(merged, held=changed(after.held, self.start, FALSE))
        return merged, place


def _resumed(geometry: Geometry, join: Join, stack_register: str, course: Course) -> tuple[_Part, Mapping[str, Word]]:
    """The part that begins at a join, and what is in registers there."""
    run = Deduction(geometry, cama.view_of(" before"), begins=False, course=course)
    run.assume_claims()
    run.load_scalars()
    view, terms, memory = run.rules.before, run.terms, run.memory
    descriptor = terms.known(unknown("descriptor"), _MOST_PLACE)
    is_used = conjunction(cama.is_chained(view, descriptor), view.free(descriptor).equals(0))
    terms.questions.assume(conjunction(is_used, negation(view.held(view.start(descriptor)))))
    left, right = (terms.known(of(descriptor), _MOST_PLACE) for of in (view.left, view.right))
    start, size = (terms.known(of(descriptor), _MOST_START) for of in (view.start, view.size))
    for place in (descriptor, left, right):
        memory.name("place", place)
    words = {
        "descriptor": Word(0, ((descriptor, PLACE_BYTES),)),
        "left": Word(0, ((left, PLACE_BYTES),)),
        "right": Word(0, ((right, PLACE_BYTES),)),
        "start": Word(0, ((start, START_BYTES),)),
        "end": Word(0, ((start, START_BYTES), (size, START_BYTES))),
    }
    given = registers_behind(run, join, words, stack_register)
    owed = (("right", descriptor, _MOST_PLACE), ("size", descriptor, _MOST_START), ("free", descriptor, 1))
    for name, at, most in (*owed, ("left", right, _MOST_PLACE)):
        memory.write(name, at, terms.known(terms.fresh("owed"), most))
    return _Part(run, descriptor, None, stack_register), given
