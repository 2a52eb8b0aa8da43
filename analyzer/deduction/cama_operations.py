"""The operations of CAMA, and what its caller writes: whether each keeps all claims, and where its accesses go.

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_claims import Claim, claims, sets
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_memory import (
    IN_THE_RESERVED_SETS,
    LEFT_TO_ANOTHER_PART,
    OF_THE_OWN_BLOCK,
    STORED_BEFORE_LOADED,
    CamaMemory,
    Rules,
)
from wcet_probe.analyzer.deduction.cama_views import MAPS, Map, View
from wcet_probe.analyzer.deduction.execution import Astray, End, follow_ways
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    Node,
    apply,
    choice,
    condition,
    conjunction,
    disjunction,
    implies,
    negation,
    term,
    unknown,
)
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.words import SPAN, Word, WordTerms
from wcet_probe.analyzer.pcode.lift import Lifter

END_OF_PAYLOAD = -4
"""Where the last byte that the caller may write ends, by the end of its block: before the next block's header."""
ACCESS_OBLIGATIONS = frozenset({IN_THE_RESERVED_SETS, STORED_BEFORE_LOADED, OF_THE_OWN_BLOCK})
"""What is asked of an access where it takes place."""
OF_ANOTHER_BLOCK = "a block that is not held yet"
IN_ITS_SET = "a block that starts in its set"
LARGE_ENOUGH = "a block that holds what is wanted"
_FIELDS = ("left", "right", "prev", "next", "start", "size")
_MOST_START = SPAN // START_BYTES - 1


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something that was to be shown of a way.

    Attributes:
        way: number of the way, from 1 on; 0 of what the caller writes.
        instruction_address: of an access, or the last instruction of the way.
        what: the name of a claim, or what was to be shown of an access.
        is_shown: whether it was.
    """

    way: int
    instruction_address: int
    what: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Deduced:
    """What came of an operation.

    Attributes:
        operation: ``init``, ``caller`` (what the caller writes), ``free-small``, ``free-large`` or ``malloc-small``.
        ways: how many were found, to their ends or not.
        obligations: in the order in which they were asked.
        choices: of each way, the branches whose condition is not constant, and whether each was taken.
    """

    operation: str
    ways: int
    obligations: tuple[Obligation, ...]
    choices: tuple[tuple[tuple[int, bool], ...], ...]

    @property
    def open(self) -> tuple[Obligation, ...]:
        """What was not shown."""
        return tuple(one for one in self.obligations if not one.is_shown)

    @property
    def shown(self) -> int:
        """How much was shown."""
        return len(self.obligations) - len(self.open)

    @property
    def open_by_name(self) -> Mapping[str, tuple[int, ...]]:
        """What was not shown, and at which instructions."""
        found: dict[str, tuple[int, ...]] = {}
        for one in self.open:
            places = (*found.get(one.what, ()), one.instruction_address)
            found[one.what] = tuple(dict.fromkeys(places))
        return found

    @property
    def accesses(self) -> int:
        """How many instructions access data, where all that was asked of their accesses was shown."""
        asked = [one for one in self.obligations if one.what in ACCESS_OBLIGATIONS]
        bad = {one.instruction_address for one in asked if not one.is_shown}
        return len({one.instruction_address for one in asked} - bad)


class _Deduction:
    """One operation, under way."""

    def __init__(self, geometry: Geometry, view: View, *, begins: bool) -> None:
        self.geometry = geometry
        self.terms = WordTerms(
            Questions(), (1, 4 * geometry.first_large, geometry.threshold // START_BYTES, SPAN // START_BYTES)
        )
        self.claims = claims(geometry)
        self.rules = Rules(geometry, self.terms, self.claims, view, begins, self._oblige)
        self.stack_pointer = Word(0, ((self.terms.known(unknown("stack pointer")), 1),))
        self.memory = CamaMemory(self.rules, self.stack_pointer)
        self._obligations: list[Obligation] = []
        self._pending: list[tuple[int, str, bool]] = []
        self._choices: list[tuple[tuple[int, bool], ...]] = []

    def assume_claims(self) -> None:
        """Assume what the claims say of no place, start or cell, and of the sentinel."""
        for claim in self.claims:
            if not claim.kinds:
                self.terms.questions.assume(claim.of(self.rules.before))
        for place in (term(self.geometry.sentinel), self.rules.before.newest, self.rules.before.spare):
            self.memory.name("place", place)

    def load_scalars(self) -> None:
        """Static data hold at entry what the view says."""
        view = self.rules.before
        units = {"arena": 8, "end": 8, "top": 8, "spare": 32, "fresh": 32, "available": 1, "newest": 32}
        for (name, unit), offset in zip(units.items(), range(0, 28, 4), strict=True):
            node = self.terms.known(getattr(view, name), SPAN // unit - 1)
            self.memory.static[self.geometry.control + offset] = Word(0, ((node, unit),))

    def _oblige(self, what: str, instruction_address: int, is_shown: bool) -> None:  # noqa: FBT001
        self._pending.append((instruction_address, what, is_shown))

    def end_way(self, end: End | None, asked: Iterable[tuple[str, Node]]) -> None:
        """Ask what is to hold at the end of a way, in the order given."""
        way = len(self._choices) + 1 if end else 0
        at = end.instruction_address if end else 0
        for what, formula in asked:
            self._pending.append((at, what, self.terms.questions.holds(formula)))
        if end and end.reason:
            self._pending.append((at, f"followed to its end: {end.reason}", False))
        self._obligations.extend(Obligation(way, *one) for one in self._pending)
        self._pending.clear()
        if end:
            self._choices.append(end.choices)

    def leave_way(self) -> None:
        """Leave a way to another part of the operation; what was asked of its accesses is kept, as of a way 0."""
        self._obligations.extend(Obligation(0, *one) for one in self._pending)
        self._pending.clear()

    def deduced(self, operation: str) -> Deduced:
        """What came of it."""
        unique = tuple(dict.fromkeys(self._obligations))
        return Deduced(operation, len(self._choices), unique, tuple(self._choices))

    def ask_claims(self, memory: CamaMemory, after: View, end: End | None) -> None:
        """Ask each claim of the view ``after``, at unknowns."""
        for claim in self.claims:
            self.terms.enter()
            own = memory.copy()
            variables = tuple(unknown(f"any {kind} {number}") for number, kind in enumerate(claim.kinds))
            for kind, variable in zip(claim.kinds, variables, strict=True):
                self._name_around(own, kind, variable)
            self._ask(claim.name, claim.of(after, *variables), end)
            self.terms.leave()

    def _name_around(self, memory: CamaMemory, kind: str, one: Node) -> None:
        """Assume the claims at ``one``, and at what it leads to."""
        view = self.rules.before
        memory.name(kind, one)
        if kind == "number":
            memory.name("place", view.at(one))
        if kind == "place":
            for follow in (view.left, view.right, view.prev, view.next):
                memory.name("place", follow(one))
            memory.name("cell", cama.home(view, one))
        if kind == "start":
            memory.name("start", view.link(one))
            memory.name("start", view.before(one))
            memory.name("place", view.owner(one))
            memory.name("cell", cama.small_home(view, one))
        if kind == "cell":
            memory.name("place", view.first_large(one))
            memory.name("start", view.first_small(one))

    def _ask(self, what: str, formula: Node, end: End | None) -> None:
        at = end.instruction_address if end else 0
        self._pending.append((at, what, self.terms.questions.holds(formula)))

    def ask_own(self, memory: CamaMemory, start: Node) -> None:
        """Ask that all blocks whose words were accessed are the one at ``start``."""
        for one, instruction_address in memory.touched.items():
            is_own = self.terms.questions.holds(one.equals(start))
            self._pending.append((instruction_address, OF_THE_OWN_BLOCK, is_own))

    def ask_words(self, memory: CamaMemory, after: View, end: End) -> None:
        """Ask that what is read behind the way was read before it or stored in it, and that stores were to that."""
        before, g = self.rules.before, self.geometry
        place, start = unknown("any place"), unknown("any start")
        self.terms.enter()
        own = memory.copy()
        self._name_around(own, "place", place)
        self._name_around(own, "start", start)
        for name in _FIELDS:
            here = [place.equals(one) for one, _ in memory.stored.get(name, ())]
            was = memory.was_live(name, place)
            live = memory.is_live(after, name, place)
            self._ask(f"stored: {name}", implies(live, disjunction(was, *here)), end)
        for name, is_live in (("tag_class", cama.is_live_header), ("link", cama.is_filed)):
            here = [start.equals(one) for one, _ in memory.stored.get(name, ())]
            was = FALSE if self.rules.begins else is_live(before, start)
            what = "the word before a block" if name == "tag_class" else name
            self._ask(f"stored: {what}", implies(is_live(after, start), disjunction(was, *here)), end)
        self.terms.leave()
        for name, one in dict.fromkeys(memory.all_stored()):
            if name in _FIELDS:
                kept = disjunction(cama.is_taken(after, one), one.equals(g.sentinel), one.equals(after.newest))
                self._ask("apart: a store to a descriptor", kept, end)
            elif name in {"tag_class", "link"}:
                self._ask("apart: a store to a block", cama.is_live_header(after, one), end)


def _stored_view(memory: CamaMemory, base: View) -> View:
    """``base`` behind the stores of ``memory``, its ghosts unchanged."""
    maps: dict[str, Any] = {}
    for name in MAPS:
        function: Map = getattr(base, name)
        for argument, value in memory.stored.get(name, ()):
            function = cama.changed(function, argument, value)
        maps[name] = function
    names = ("arena", "end", "top", "spare", "fresh", "available", "newest")
    scalars: dict[str, Any] = {name: memory.scalar(name) for name in names}
    return replace(base, **maps, **scalars)


# --------------------------------------------------------------------------------------------------------------- init


def deduce_init(geometry: Geometry, lifter: Lifter, entry_address: int, registers: tuple[str, str, str]) -> Deduced:
    """Init, of any memory and any arguments.

    Parameters:
        registers: those of the two arguments and of the stack pointer; the first is also the result's.

    Raises:
        UsageError: z3 is not installed.
    """
    run = _Deduction(geometry, cama.view_of(" before"), begins=True)
    places = run.terms.known(unknown("arena in starts"), _MOST_START), run.terms.known(unknown("odd bytes of arena"), 7)
    sizes = run.terms.known(unknown("bytes in starts"), _MOST_START), run.terms.known(unknown("odd bytes"), 7)
    # Each argument is a multiple of 8 plus 0 to 7; where they are multiples the code is followed on such terms.
    cases = ((False, False), (True, True), (False, True))
    for odd_arena, odd_bytes in cases:
        run.terms.enter()
        arena = Word(0, ((places[0], START_BYTES), *(((places[1], 1),) if odd_arena else ())))
        size = Word(0, ((sizes[0], START_BYTES), *(((sizes[1], 1),) if odd_bytes else ())))
        if odd_arena:
            run.terms.questions.assume(places[1] >= 1)
        elif odd_bytes:
            run.terms.questions.assume(sizes[1] >= 1)
        _follow_init(run, lifter, entry_address, dict(zip(registers, (arena, size, run.stack_pointer), strict=True)))
        run.terms.leave()
    return run.deduced("init")


def _follow_init(run: _Deduction, lifter: Lifter, entry_address: int, given: Mapping[str, Word]) -> None:
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
    rules = replace(run.rules, before=view)
    run.rules = rules
    memory = CamaMemory(rules, run.stack_pointer)
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
            run.end_way(way, [("nothing is changed where it fails", cama_truth(is_failure and not has_stored))])
            return
        try:
            after = _made(memory, view)
        except (Astray, KeyError) as error:
            run.end_way(replace(way, reason=str(error)), ())
            return
        run.ask_claims(memory, after, way)
        run.ask_words(memory, after, way)
        run.end_way(way, ())

    follow_ways(lifter, run.terms, entry_address, given, memory, visit)


def _claim(run: _Deduction, name: str) -> Claim:
    return next(one for one in run.claims if one.name == name)


def cama_truth(value: bool) -> Node:  # noqa: FBT001
    """A formula that is known without a question."""
    return term(0).equals(0 if value else 1)


def _made(memory: CamaMemory, view: View) -> View:
    """The view behind an init that succeeds, with its ghosts: none is taken but the places that were described."""
    if not memory.is_cleared():
        raise Astray("the tables are not cleared")
    none = cama.constant(term(0))
    empty = replace(
        view,
        number=none,
        at=none,
        small_size=none,
        before=none,
        owner=none,
        held=cama.constant(FALSE),
        first_large=none,
        first_small=none,
        filled=cama.constant(FALSE),
    )
    after = replace(_stored_view(memory, empty), spares=term(0), used=term(0))
    described = dict.fromkeys(argument for argument, _ in memory.stored.get("start", ()))
    for count, place in enumerate(described, 1):
        number = cama.changed(after.number, place, term(count))
        after = replace(after, number=number, at=cama.changed(after.at, term(count), place), used=term(count))
    return after


# --------------------------------------------------------------------------------------------------------------- free


def deduce_free(
    geometry: Geometry, lifter: Lifter, entry_address: int, registers: tuple[str, str], *, small: bool
) -> Deduced:
    """Free, of null and any small block that is held, or of any large one.

    Parameters:
        registers: those of the argument and of the stack pointer.
        small: whether the block is null or small; what is held is one or the other.

    Raises:
        UsageError: z3 is not installed.
    """
    view = cama.view_of(" before")
    run = _Deduction(geometry, view, begins=False)
    run.assume_claims()
    run.load_scalars()
    start = run.terms.known(unknown("argument of free"), _MOST_START)
    block = Word(0, ((start, START_BYTES),))
    run.memory.starts[block] = start
    run.memory.name("start", start)
    is_small = conjunction(view.held(start), cama.is_small(view, start))
    is_large = conjunction(view.held(start), negation(cama.is_small(view, start)))
    run.terms.questions.assume(disjunction(start.equals(0), is_small) if small else is_large)

    def visit(way: End) -> None:
        memory = cast("CamaMemory", way.memory)
        if way.reason:
            run.end_way(way, ())
            return
        try:
            after = _freed(memory, view, start)
        except Astray as error:
            run.end_way(replace(way, reason=str(error)), ())
            return
        run.ask_claims(memory, after, way)
        run.ask_words(memory, after, way)
        run.ask_own(memory, start)
        run.end_way(way, ())

    given = dict(zip(registers, (block, run.stack_pointer), strict=True))
    follow_ways(lifter, run.terms, entry_address, given, run.memory, visit)
    return run.deduced("free-small" if small else "free-large")


def _freed(memory: CamaMemory, view: View, start: Node) -> View:
    """The view behind free, with its ghosts: what was put to the spare ones has the next number of theirs."""
    after = _stored_view(memory, view)
    made = []
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
        number = cama.changed(cama.changed(after.number, other, own), one, first)
        at = cama.changed(cama.changed(after.at, own, other), first, one)
        after = replace(after, number=number, at=at, spares=first)
        memory.name("number", first)
        memory.name("place", view.at(first))
    for _, behind in memory.stored.get("link", ())[-1:]:
        before = cama.changed(cama.changed(after.before, behind, start), start, term(0))
        after = replace(after, before=before)
    return replace(after, held=cama.changed(after.held, start, FALSE))


# ------------------------------------------------------------------------------------------------------------- malloc


def deduce_malloc_small(
    geometry: Geometry, lifter: Lifter, entry_address: int, registers: tuple[str, str, str]
) -> Deduced:
    """Malloc, of any arguments, where it reads neither the break nor the head of a list of large blocks.

    That is where it is refused at once, and where the list of a small class is found filled.

    Parameters:
        registers: those of the two arguments and of the stack pointer; the first is also the result's.

    Raises:
        UsageError: z3 is not installed.
    """
    view = cama.view_of(" before")
    run = _Deduction(geometry, view, begins=False)
    run.assume_claims()
    run.load_scalars()
    wanted, asked_set = (run.terms.known(unknown(name)) for name in ("wanted bytes", "asked set"))
    run.terms.follow(wanted)
    given = (Word(0, ((wanted, 1),)), Word(0, ((asked_set, 1),)), run.stack_pointer)
    run.rules = replace(run.rules, asked_set=given[1], leaves_large=True)
    run.memory.rules = run.rules
    result, entry = registers[0], dict(run.memory.static)

    def visit(way: End) -> None:
        memory = cast("CamaMemory", way.memory)
        if way.reason == LEFT_TO_ANOTHER_PART:
            run.leave_way()
            return
        if way.reason:
            run.end_way(way, ())
            return
        returned = way.registers(result)
        if returned == Word(0):
            run.end_way(
                way, [("nothing is changed where it fails", cama_truth(not memory.stored and memory.static == entry))]
            )
            return
        own = None if returned is None else memory.start_at(returned)
        cell, number = next(iter(memory.found.items()), (None, None))
        if own is None or own[1] or cell is None or number is None:
            run.end_way(replace(way, reason="it returns no start of a block that was found"), ())
            return
        start = own[0]
        try:
            after = _popped(memory, view, start)
        except Astray as error:
            run.end_way(replace(way, reason=str(error)), ())
            return
        run.ask_claims(memory, after, way)
        run.ask_words(memory, after, way)
        run.ask_own(memory, start)
        asked: list[tuple[str, Node]] = [
            (OF_ANOTHER_BLOCK, negation(view.held(start))),
            (IN_ITS_SET, _is_in_set(run, view, memory, start, asked_set)),
            (LARGE_ENOUGH, cama_truth(_is_large_enough(run, number, given[0], way))),
        ]
        run.end_way(way, asked)

    follow_ways(lifter, run.terms, entry_address, dict(zip(registers, given, strict=True)), run.memory, visit)
    return run.deduced("malloc-small")


def _popped(memory: CamaMemory, view: View, start: Node) -> View:
    """The view behind a malloc that took the small block at ``start`` out of its list, with its ghosts."""
    after = _stored_view(memory, view)
    behind = view.link(start)
    return replace(
        after, before=cama.changed(after.before, behind, term(0)), held=cama.changed(after.held, start, TRUE)
    )


def _is_in_set(run: _Deduction, view: View, memory: CamaMemory, start: Node, asked_set: Node) -> Node:
    """That the small block at ``start`` is in the set ``asked_set``; what sets are is assumed at both starts."""
    asked = run.geometry.line_bytes // START_BYTES * asked_set
    for at, number in ((start, view.tag_class(start)), *((asked, cama.class_at(cell)) for cell in memory.found)):
        for formula in sets(run.geometry, at, number):
            run.terms.questions.assume(formula)
    return cama.set_of(start).equals(asked_set)


def _is_large_enough(run: _Deduction, number: Word, wanted: Word, way: End) -> bool:
    """Whether blocks of the class ``number`` hold the bytes that are wanted, up to where the caller may write."""
    terms, bits = run.terms, run.terms.bits(wanted)
    premises = tuple(terms.bits_about([number, wanted], way.conditions))
    needed = condition("bits INT_ADD", bits, condition("bits constant", -END_OF_PAYLOAD))
    below = condition("bits less", run.geometry.bits_of_least_size(terms.bits(number)), needed)
    return terms.questions.bits_hold(premises, negation(below))


# --------------------------------------------------------------------------------------------------------- the caller


def deduce_caller(geometry: Geometry) -> Deduced:
    """A byte that the caller writes into a block that it holds.

    Raises:
        UsageError: z3 is not installed.
    """
    view = cama.view_of(" before")
    run = _Deduction(geometry, view, begins=False)
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
    fields = {name: offset for offset, name in zip(range(0, 24, 4), _FIELDS, strict=True)}
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
