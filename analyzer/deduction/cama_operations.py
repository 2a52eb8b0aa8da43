"""The operations of CAMA, and what its caller writes: whether each keeps all claims, and where its accesses go.

Words: claim, ghost state, premise, data invariant (docs/explanation/glossary.md).

*Soundness:* the claims hold whenever no operation runs if init makes them of any memory, and each operation, and each
byte that the caller writes into a block that it holds, keeps all of them. What is asked of the latter is one byte
anywhere in any held block; more bytes are one after the other. Ghosts are changed at the end of a way, as is said
here: whatever they become, it is enough that the claims hold of them then. Behind an operation a word that claims or
operations read is one that was read before it or was stored by it (``stored``), and each store was to such a word
(``apart``).

What is assumed of the caller: free is given null or the start of a block that is held (``free-gets-held-blocks``), init
an arena apart from static data (``arena-apart``). As long as one obligation of one operation is open, all that is
shown of the others is shown under the claims, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.arguments import two_words
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.cama_claims import sets
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_malloc import unchanged
from wcet_probe.analyzer.deduction.cama_memory import AT_STOP, CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import FIELDS, Deduction, stored_view
from wcet_probe.analyzer.deduction.cama_tables import LARGE, LEFT_TO_ANOTHER_PART
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.claims import Claim
from wcet_probe.analyzer.deduction.execution import Astray, End, follow_paths
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    Node,
    apply,
    choice,
    condition,
    conjunction,
    disjunction,
    negation,
    term,
    truth,
    unknown,
)
from wcet_probe.analyzer.deduction.obligations import LARGE_ENOUGH, OF_ANOTHER_BLOCK, UNCHANGED, Deduced
from wcet_probe.analyzer.deduction.views import Map, changed, constant
from wcet_probe.analyzer.deduction.words import SPAN, Word
from wcet_probe.analyzer.pcode.lift import Lifter

END_OF_PAYLOAD = -4
"""Where the last byte that the caller may write ends, by the end of its block: before the next block's header."""
IN_ITS_SET = "a block that starts in its set"
_MOST_START = SPAN // START_BYTES - 1


# --------------------------------------------------------------------------------------------------------------- init


def deduce_init(
    geometry: Geometry,
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
    run = Deduction(geometry, cama.view_of(" before"), begins=True, course=course)
    for arena, size in two_words(run.terms, ("arena", "bytes"), START_BYTES):
        _follow_init(run, lifter, entry_address, dict(zip(registers, (arena, size, run.stack_pointer), strict=True)))
    return run.deduced("init")


def _follow_init(run: Deduction, lifter: Lifter, entry_address: int, given: Mapping[str, Word]) -> None:
    """Follow init with these arguments."""
    # Of the sentinel's size the image tells that it is 0, before the first init, too.
    run.terms.questions.assume(_claim(run, "sentinel").of(run.rules.before))
    arena, size, _ = given.values()
    low, high = run.geometry.data
    begin, end = run.terms.value(arena), run.terms.value(arena) + run.terms.value(size)
    run.terms.questions.assume(disjunction(end <= low, begin >= high))
    in_starts = {
        name: sum((node for node, factor in word.parts if factor == START_BYTES), term(0))
        for name, word in (("arena", arena), ("bytes", size))
    }
    view = replace(run.rules.before, arena=in_starts["arena"], end=in_starts["arena"] + in_starts["bytes"])
    rules = replace(run.rules, before=view, made={})
    run.rules = rules
    memory = CamaMemory(rules, stack_pointer=run.stack_pointer)
    result = next(iter(given))

    def visit(way: End) -> None:
        memory = cast("CamaMemory", way.memory)
        if way.reason:
            run.end_way(way, ())
            return
        returned = way.registers(result)
        if returned is None or returned.parts or returned.constant:
            has_stored = bool(memory.stored or memory.static or memory.cleared)
            is_failure = returned is not None and not returned.parts
            run.end_way(way, [(UNCHANGED, truth(is_failure and not has_stored))])
            return
        try:
            after = _made(memory, view)
        except (Astray, KeyError) as error:
            run.end_way(replace(way, reason=str(error)), ())
            return
        run.ask_claims(memory, after, way)
        run.ask_words(memory, after, way)
        run.end_way(way, ())

    follow_paths(lifter, run.terms, entry_address, given, memory, visit)


def _claim(run: Deduction, name: str) -> Claim:
    return next(one for one in run.claims if one.name == name)


def _made(memory: CamaMemory, view: View) -> View:
    """The view behind an init that succeeds, with its ghosts: none is taken but the places that were described."""
    if not memory.is_cleared():
        raise Astray("the tables are not cleared")
    none = constant(term(0))
    empty = replace(
        view,
        number=none,
        at=none,
        small_size=none,
        before=none,
        owner=none,
        held=constant(FALSE),
        first_large=none,
        first_small=none,
        filled=constant(FALSE),
    )
    after = replace(stored_view(memory, empty), spares=term(0), used=term(0))
    described = dict.fromkeys(argument for argument, _ in memory.stored.get("start", ()))
    for count, place in enumerate(described, 1):
        number = changed(after.number, place, term(count))
        after = replace(after, number=number, at=changed(after.at, term(count), place), used=term(count))
    return after


# ------------------------------------------------------------------------------------------------------------- malloc


def deduce_malloc_small(
    geometry: Geometry,
    lifter: Lifter,
    entry_address: int,
    registers: tuple[str, str, str],
    course: Course = BY_Z3,
) -> Deduced:
    """Malloc, of any arguments, where it reads neither the break nor the head of a list of large blocks.

    That is where it is refused at once, and where the list of a small class is found filled.

    Parameters:
        registers: those of the two arguments and of the stack pointer; the first is also the result's.
        course: who is asked, and is told of each way's end.

    Raises:
        UsageError: z3 is not installed.
    """
    view = cama.view_of(" before")
    run = Deduction(geometry, view, begins=False, course=course)
    run.assume_claims()
    run.load_scalars()
    wanted, asked_set = (run.terms.known(unknown(name)) for name in ("wanted bytes", "asked set"))
    for one in (wanted, asked_set):
        run.terms.follow(one)
    given = (Word(0, ((wanted, 1),)), Word(0, ((asked_set, 1),)), run.stack_pointer)
    run.rules = replace(
        run.rules, asked_set=given[1], leaves_large=True, leaves_found=frozenset({LARGE}), stops_at="top"
    )
    run.memory.rules = run.rules
    result = registers[0]

    def visit(way: End) -> None:
        memory = cast("CamaMemory", way.memory)
        if way.reason in {LEFT_TO_ANOTHER_PART, AT_STOP}:
            run.leave_way()
            return
        if way.reason:
            run.end_way(way, ())
            return
        returned = way.registers(result)
        if returned == Word(0):
            run.end_way(way, [unchanged(run, way)])
            return
        own = None if returned is None else memory.start_at(returned)
        cell, number = next(iter(memory.found.items()), (None, None))
        if own is None or own[1] or cell is None or number is None:
            run.end_way(replace(way, reason="it returns no start of a block that was found"), ())
            return
        start = own[0]
        if not run.ask_after(partial(_popped, memory, view, start), memory, way, start):
            return
        asked: list[tuple[str, Node]] = [
            (OF_ANOTHER_BLOCK, negation(view.held(start))),
            (IN_ITS_SET, _is_in_set(run, view, memory, start, asked_set)),
            (LARGE_ENOUGH, truth(_is_large_enough(run, number, given[0], way))),
        ]
        run.end_way(way, asked)

    follow_paths(lifter, run.terms, entry_address, dict(zip(registers, given, strict=True)), run.memory, visit)
    return run.deduced("malloc-small")


def _popped(memory: CamaMemory, view: View, start: Node) -> View:
    """The view behind a malloc that took the small block at ``start`` out of its list, with its ghosts."""
    after = stored_view(memory, view)
    behind = view.link(start)
    return replace(after, before=changed(after.before, behind, term(0)), held=changed(after.held, start, TRUE))


def _is_in_set(run: Deduction, view: View, memory: CamaMemory, start: Node, asked_set: Node) -> Node:
    """That the small block at ``start`` is in the set ``asked_set``; what sets are is assumed at both starts."""
    asked = run.geometry.line_bytes // START_BYTES * asked_set
    for at, number in ((start, view.tag_class(start)), *((asked, cama.class_at(cell)) for cell in memory.found)):
        for formula in sets(run.geometry, at, number):
            run.terms.questions.assume(formula)
    return cama.set_of(start).equals(asked_set)


def _is_large_enough(run: Deduction, number: Word, wanted: Word, way: End) -> bool:
    """Whether blocks of the class ``number`` hold the bytes that are wanted, up to where the caller may write."""
    terms, bits = run.terms, run.terms.bits(wanted)
    premises = terms.bits_about([number, wanted], way.conditions)
    needed = condition("bits INT_ADD", bits, condition("bits constant", -END_OF_PAYLOAD))
    below = condition("bits less", run.geometry.bits_of_least_size(terms.bits(number)), needed)
    return terms.bits_follow(premises, negation(below))


# --------------------------------------------------------------------------------------------------------- the caller


def deduce_caller(geometry: Geometry, course: Course = BY_Z3) -> Deduced:
    """A byte that the caller writes into a block that it holds.

    Parameters:
        course: who is asked.

    Raises:
        UsageError: z3 is not installed.
    """
    view = cama.view_of(" before")
    run = Deduction(geometry, view, begins=False, course=course)
    run.assume_claims()
    start = run.terms.known(unknown("a held block"), _MOST_START)
    run.memory.name("start", start)
    run.memory.name("place", view.owner(start))
    run.terms.questions.assume(view.held(start))
    size = choice(cama.is_small(view, start), view.small_size(start), view.size(view.owner(start)))
    byte = unknown("address of the byte")
    first, end = START_BYTES * start, START_BYTES * start + START_BYTES * size + END_OF_PAYLOAD
    run.terms.questions.assume(conjunction(byte >= first, byte < end))
    run.ask_claims(run.memory, _written(geometry, view, byte), None)
    run.end_way(None, ())
    return run.deduced("caller")


def _written(geometry: Geometry, view: View, byte: Node) -> View:
    """``view`` where the word with this byte is anything, whichever word that is."""
    fields = {name: offset for offset, name in zip(range(0, 24, 4), FIELDS, strict=True)}
    maps: dict[str, Any] = {}
    for name, offset in {**fields, "free": 20}.items():
        maps[name] = _garbage(view, name, byte, partial(_plus, offset))
    for name in ("tag_class", "tag_free", "tag_low"):
        maps[name] = _garbage(view, name, byte, lambda start: START_BYTES * start - 4)
    maps["link"] = _garbage(view, "link", byte, lambda start: START_BYTES * start)
    low, high = geometry.data
    in_data = conjunction(byte >= low, byte < high)
    for name in ("first_large", "first_small", "filled"):
        maps[name] = _garbage(view, name, byte, lambda _: choice(in_data, byte, -8 + term(0)))
    scalars: dict[str, Any] = {}
    for number, name in enumerate(("arena", "end", "top", "spare", "fresh", "available", "newest")):
        at = geometry.control + 4 * number
        hit = conjunction(byte >= at, byte < at + 4)
        scalars[name] = choice(hit, unknown(f"{name} written"), getattr(view, name))
    return replace(view, **maps, **scalars)


def _plus(offset: int, place: Node) -> Node:
    return PLACE_BYTES * place + offset


def _garbage(view: View, name: str, byte: Node, address: Map) -> Map:
    function: Map = getattr(view, name)
    sort = "bool" if name in {"held", "filled"} else "int"

    def of(argument: Node) -> Node:
        at = address(argument)
        hit = conjunction(at <= byte, byte < at + 4)
        return choice(hit, apply(f"{name} written", argument, sort=sort), function(argument))

    return of
