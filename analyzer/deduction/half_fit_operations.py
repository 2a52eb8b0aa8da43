"""The operations of half-fit, and what its caller writes: whether each keeps all claims, and where its accesses go.

Words: claim, ghost state, premise, data invariant (docs/explanation/glossary.md).

*Soundness:* the claims hold whenever no operation runs if init makes them of any memory, and each operation, and each
word that the caller writes to in a block that it holds, keeps all of them. Ghosts are changed at the end of a way, as
is said here: whatever they become, it is enough that the claims hold of them then. As long as one obligation of one
operation is open, all that is shown of the others is shown under the claims, and no more.

What is assumed of the caller: free is given null or the payload of a block that is held (``free-gets-held-blocks``),
init an arena that is apart from static data (``arena-apart``) and does not wrap around (``arena-not-wrapped``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import cast

from wcet_probe.analyzer.deduction import half_fit_claims as claims
from wcet_probe.analyzer.deduction.arguments import two_words
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.calling_convention import STACK_POINTER
from wcet_probe.analyzer.deduction.execution import Astray, End, Site, follow_paths
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    Node,
    condition,
    conjunction,
    disjunction,
    linear,
    term,
    truth,
    unknown,
)
from wcet_probe.analyzer.deduction.half_fit_claims import MOST_UNIT, UNIT, HalfFitGeometry, HalfFitView
from wcet_probe.analyzer.deduction.half_fit_memory import (
    HalfFitMemory,
    Rules,
    changed_bits,
    divided,
    is_bitmap,
    is_class,
    zeros_in,
)
from wcet_probe.analyzer.deduction.obligations import LARGE_ENOUGH, OF_ANOTHER_BLOCK, UNCHANGED, Answers, Deduced
from wcet_probe.analyzer.deduction.views import Map, changed, constant
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word
from wcet_probe.analyzer.pcode.lift import Lifter

IN_THE_BLOCK = "what the caller writes is in no word of the control structure"
_TAGS = 1
"""Units of the tags of a block."""
_TOP_OF_ZEROS = 31


class _Run:
    """One operation, under way: its claims, its memory, and what was asked of it so far."""

    def __init__(self, geometry: HalfFitGeometry, view: HalfFitView, *, begins: bool, course: Course) -> None:
        self.geometry, self.answers = geometry, Answers(course.told)
        self.terms = WordTerms(course.asked(), (1, UNIT, 2 * UNIT, SPAN // UNIT))
        bitmap = Word(0, ((self.terms.known(unknown("bitmap")), 1),))
        own = claims.half_fit_claims(geometry)
        self.rules = Rules(geometry, self.terms, own, view, begins, self.answers.add, bitmap)
        self.stack_pointer = Word(0, ((self.terms.known(STACK_POINTER), 1),))

    def memory(self) -> HalfFitMemory:
        """The memory at entry, of which the claims are assumed."""
        found = HalfFitMemory(self.rules, self.stack_pointer, self.rules.bitmap)
        if not self.rules.begins:
            view = self.rules.before
            for claim in self.rules.claims:
                if not claim.kinds:
                    self.terms.questions.assume(claim.of(view))
            for unit in (view.first, view.upper, term(0)):
                found.name(unit)
        return found

    def ask(self, what: str, formula: Node, end: End | None = None) -> None:
        """Ask whether ``formula`` holds."""
        self.answers.add(what, end.instruction_address if end else 0, self.terms.questions.holds(formula))

    def deduced(self, operation: str) -> Deduced:
        """What came of it."""
        return self.answers.deduced(operation, self.terms.questions.shown, self.rules.aligned)

    def ask_claims(self, memory: HalfFitMemory, after: HalfFitView, end: End | None) -> None:
        """Ask each claim of the view ``after``, at unknown units."""
        for kinds in dict.fromkeys(claim.kinds for claim in self.rules.claims):
            variables = tuple(unknown(f"any {kind} {number}") for number, kind in enumerate(kinds))
            self.terms.enter()
            own = memory.copy()
            for one in variables:
                self._name_around(own, one)
            for claim in self.rules.claims:
                if claim.kinds == kinds:
                    self.ask(claim.name, claim.of(after, *variables), end)
            self.terms.leave()

    def _name_around(self, memory: HalfFitMemory, unit: Node) -> None:
        view = self.rules.before
        end = unit + view.size(unit)
        for one in (unit, view.link(unit), view.back(unit), view.before(unit), end, view.before(end)):
            memory.name(one)

    def stored(self, memory: HalfFitMemory, base: HalfFitView, end: End) -> HalfFitView:
        """``base`` behind the stores of ``memory``, and with the links that they make.

        Raises:
            Astray: a bit of the bitmap is set or cleared of which no class is known.
        """
        even, odd, link, back = base.even, base.odd, base.link, base.back
        for one in memory.stores:
            value = self.terms.value(one.value)
            even, odd = (even, changed(odd, one.unit, value)) if one.is_odd else (changed(even, one.unit, value), odd)
            if one.value.alignment % UNIT == 0:
                to = divided(self.terms, one.value)
                link, back = (link, changed(back, one.unit, to)) if one.is_odd else (changed(link, one.unit, to), back)
        return replace(base, even=even, odd=odd, link=link, back=back, filled=self._filled(memory, base, end))

    def _filled(self, memory: HalfFitMemory, base: HalfFitView, end: End) -> Map:
        begin = Word(0) if self.rules.begins else self.rules.bitmap
        if memory.bitmap == begin:
            return base.filled
        words = self._classes(memory, end)
        premises = self.terms.bits_about([memory.bitmap, begin, *words], end.conditions)
        premises = premises.with_formulas([is_bitmap(self.terms, begin), *(is_class(self.terms, one) for one in words)])
        for what in sorted(
            product((None, False, True), repeat=len(words)), key=lambda one: len(words) - one.count(None)
        ):
            cleared = [one for one, bit in zip(words, what, strict=True) if bit is False]
            filled = [one for one, bit in zip(words, what, strict=True) if bit is True]
            expected = changed_bits(self.terms, begin, cleared, filled)
            equal = condition("bits equal", self.terms.bits(memory.bitmap), expected)
            if self.terms.bits_follow(premises, conjunction(equal, is_bitmap(self.terms, memory.bitmap))):
                return _with_bits(base.filled, [linear(one.constant, one.parts) for one in cleared], filled)
        raise Astray("a bitmap that is not shown to be the former one with bits of known classes changed")

    def _classes(self, memory: HalfFitMemory, end: End) -> list[Word]:
        """What is shown to be a class, of all that leading zeros are counted of for the bitmap."""
        found = []
        for node in zeros_in(self.terms, [memory.bitmap]):
            memory.tell_zeros(node, Site(end.instruction_address, end.conditions))
            for number in (Word(_TOP_OF_ZEROS, ((node, -1),)), Word(0, ((node, 1),))):
                value = linear(number.constant, number.parts)
                is_told = value in memory.found or node in memory.told
                if is_told and self.terms.questions.holds(conjunction(value >= 0, value < claims.CLASSES)):
                    found.append(number)
                    break
        return found


def _with_bits(filled: Map, cleared: list[Node], set_words: list[Word]) -> Map:
    for one in cleared:
        filled = changed(filled, one, FALSE)
    for word in set_words:
        filled = changed(filled, linear(word.constant, word.parts), TRUE)
    return filled


# --------------------------------------------------------------------------------------------------------------- init


def deduce_init(
    geometry: HalfFitGeometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Init, of any memory and any arguments.

    Parameters:
        registers: those of the two arguments and of the stack pointer; the first is also the result's.
        course: who is asked, and is told of each way's end.

    Raises:
        UsageError: z3 is not installed.
    """
    run = _Run(geometry, claims.view_of(" before"), begins=True, course=course)
    for arena, size in two_words(run.terms, ("arena", "bytes"), UNIT):
        _follow_init(run, lifter, entry_address, dict(zip(registers, (arena, size, run.stack_pointer), strict=True)))
    return run.deduced("init")


def _follow_init(run: _Run, lifter: Lifter, entry_address: int, given: dict[str, Word]) -> None:
    result, arena, size = next(iter(given)), *list(given.values())[:2]
    begin = run.terms.value(arena)
    end = begin + run.terms.value(size)
    low, high = run.geometry.data
    run.terms.questions.assume(conjunction(disjunction(end <= low, begin >= high), end <= SPAN))
    first, units = arena.parts[0][0] + 1, size.parts[0][0]
    view = replace(run.rules.before, first=first, upper=first - 1 + units)
    run.rules = replace(run.rules, before=view, made={})

    def visit(way: End) -> None:
        memory = cast("HalfFitMemory", way.memory)
        returned = way.registers(result)
        if not way.reason and returned != Word(0):
            is_failure = returned is not None and not returned.parts
            run.ask(UNCHANGED, truth(is_failure and _is_unchanged(run, memory)), way)
        elif not way.reason:
            way = _asked(run, memory, lambda: _made(run, memory, view, units - _TAGS, way), way)
        run.answers.end_way(way)

    follow_paths(lifter, run.terms, entry_address, given, run.memory(), visit)


def _made(run: _Run, memory: HalfFitMemory, view: HalfFitView, size: Node, end: End) -> HalfFitView:
    """The view behind an init that succeeds, with its ghosts: one block, which is free."""
    none = constant(term(0))
    empty = replace(view, block=constant(FALSE), size=none, free=none, before=none)
    after = run.stored(memory, replace(empty, filled=constant(FALSE), count=term(0)), end)
    return _freed(replace(after, block=changed(after.block, view.first, TRUE)), view.first, size)


def _is_unchanged(run: _Run, memory: HalfFitMemory) -> bool:
    return not memory.stores and memory.bitmap == run.rules.bitmap


def _asked(run: _Run, memory: HalfFitMemory, make: Callable[[], HalfFitView], way: End) -> End:
    """Ask all claims of the view that ``make`` makes; a way astray is told."""
    try:
        after = make()
    except Astray as error:
        return replace(way, reason=str(error))
    run.ask_claims(memory, after, way)
    return way


def _freed(view: HalfFitView, block: Node, size: Node) -> HalfFitView:
    """``view`` where ``block`` of this size has become a free one, the youngest."""
    count = view.count + 1
    return replace(
        view,
        size=changed(view.size, block, size),
        free=changed(view.free, block, term(1)),
        before=changed(view.before, block + size, block),
        age=changed(view.age, block, count),
        count=count,
    )


# ------------------------------------------------------------------------------------------------------------- malloc


def deduce_malloc(
    geometry: HalfFitGeometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Malloc, of any argument; as `deduce_init`.

    Raises:
        UsageError: z3 is not installed.
    """
    view = claims.view_of(" before")
    run = _Run(geometry, view, begins=False, course=course)
    memory = run.memory()
    wanted = run.terms.known(unknown("wanted bytes"))

    def visit(way: End) -> None:
        memory = cast("HalfFitMemory", way.memory)
        returned = way.registers(registers[0])
        if not way.reason and returned == Word(0):
            run.ask(UNCHANGED, truth(_is_unchanged(run, memory)), way)
        elif not way.reason:
            way = _ended_malloc(run, memory, returned, wanted, way)
        run.answers.end_way(way)

    given = dict(zip(registers, (Word(0, ((wanted, 1),)), run.stack_pointer), strict=True))
    follow_paths(lifter, run.terms, entry_address, given, memory, visit)
    return run.deduced("malloc")


def _ended_malloc(run: _Run, memory: HalfFitMemory, returned: Word | None, wanted: Node, way: End) -> End:
    view = run.rules.before
    if returned is None:
        return replace(way, reason="it returns a word of which nothing is known")
    try:
        block = divided(run.terms, returned)
        memory.name(block)
        size = _stored_size(run, memory, block)
        after = _taken(run, run.stored(memory, view, way), block, size)
    except Astray as error:
        return replace(way, reason=str(error))
    run.ask(OF_ANOTHER_BLOCK, claims.is_free_block(view, block), way)
    run.ask(LARGE_ENOUGH, wanted <= UNIT * after.size(block) - UNIT * _TAGS, way)
    run.ask_claims(memory, after, way)
    return way


def _stored_size(run: _Run, memory: HalfFitMemory, block: Node) -> Node:
    """The size in the header of ``block``, as it was stored."""
    for one in reversed(memory.stores):
        if one.is_odd and run.terms.questions.holds(one.unit.equals(block - 1)):
            return divided(run.terms, one.value)
    raise Astray("it stores no header of the block that it returns")


def _taken(run: _Run, view: HalfFitView, block: Node, size: Node) -> HalfFitView:
    """The view where the free ``block`` is in use with ``size`` units, and the rest, if any, a free block behind it."""
    whole = view.size(block)
    after = replace(view, free=changed(view.free, block, term(0)))
    if run.terms.questions.holds(size.equals(whole)):
        return after
    rest = block + size
    after = replace(
        after,
        block=changed(after.block, rest, TRUE),
        size=changed(after.size, block, size),
        before=changed(after.before, rest, block),
    )
    return _freed(after, rest, whole - size)


# --------------------------------------------------------------------------------------------------------------- free


def deduce_free(
    geometry: HalfFitGeometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Free, of null and of a held block; as `deduce_init`.

    Raises:
        UsageError: z3 is not installed.
    """
    view = claims.view_of(" before")
    run = _Run(geometry, view, begins=False, course=course)
    for is_null in (True, False):
        run.terms.enter()
        memory = run.memory()
        block = term(0) if is_null else run.terms.known(unknown("a held block"), MOST_UNIT)
        if not is_null:
            memory.name(block)
            memory.name(view.before(block))
            run.terms.questions.assume(claims.is_held(view, block))
        _follow_free(run, lifter, entry_address, registers, block, memory)
        run.terms.leave()
    return run.deduced("free")


def _follow_free(  # noqa: PLR0917  what is executed, and whereupon
    run: _Run, lifter: Lifter, entry_address: int, registers: tuple[str, str], block: Node, memory: HalfFitMemory
) -> None:
    is_null = block.operation == "int"

    def visit(way: End) -> None:
        memory = cast("HalfFitMemory", way.memory)
        if not way.reason and is_null:
            run.ask(UNCHANGED, truth(_is_unchanged(run, memory)), way)
        elif not way.reason:
            way = _asked(run, memory, lambda: _merged(run, run.stored(memory, run.rules.before, way), block), way)
        run.answers.end_way(way)

    payload = Word(0) if is_null else Word(0, ((block, UNIT),))
    given = dict(zip(registers, (payload, run.stack_pointer), strict=True))
    follow_paths(lifter, run.terms, entry_address, given, memory, visit)


def _merged(run: _Run, view: HalfFitView, block: Node) -> HalfFitView:
    """The view where ``block`` is free, and merged with those of its neighbours that were.

    Raises:
        Astray: the way does not tell which were.
    """
    before = run.rules.before
    right, left = block + before.size(block), before.before(block)
    is_merged = []
    for one in (right, left):
        free = run.terms.questions.holds(before.free(one).equals(1))
        if not free and not run.terms.questions.holds(before.free(one).equals(0)):
            raise Astray("it does not ask whether a neighbour is free")
        is_merged.append(free)
    start, size, after = block, before.size(block), view
    if is_merged[0]:
        size += before.size(right)
        after = replace(after, block=changed(after.block, right, FALSE))
    if is_merged[1]:
        start, size = left, size + before.size(left)
        after = replace(after, block=changed(after.block, block, FALSE))
    return _freed(after, start, size)


# --------------------------------------------------------------------------------------------------------- the caller


def deduce_caller(geometry: HalfFitGeometry, course: Course = BY_Z3) -> Deduced:
    """A word that the caller writes to, in part or whole, in a block that it holds.

    Parameters:
        course: who is asked.

    Raises:
        UsageError: z3 is not installed.
    """
    view = claims.view_of(" before")
    run = _Run(geometry, view, begins=False, course=course)
    memory = run.memory()
    block, unit = (run.terms.known(unknown(name), MOST_UNIT) for name in ("a held block", "a unit of it"))
    for one in (block, unit):
        memory.name(one)
    inside = conjunction(unit >= block, unit < block + view.size(block) - _TAGS)
    run.terms.questions.assume(conjunction(claims.is_held(view, block), inside))
    run.ask(IN_THE_BLOCK, _outside(geometry, unit))
    written = unknown("what is written")
    for after in (
        replace(view, even=changed(view.even, unit, written)),
        replace(view, odd=changed(view.odd, unit, written)),
    ):
        run.ask_claims(memory, after, None)
    run.answers.end_way(None)
    return run.deduced("caller")


def _outside(geometry: HalfFitGeometry, unit: Node) -> Node:
    return disjunction(unit < geometry.heads - 1, unit > geometry.heads + claims.CLASSES)
