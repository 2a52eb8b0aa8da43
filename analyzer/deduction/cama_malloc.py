"""What the parts of CAMA's malloc have in common: the size of the block, and the descriptors that are taken.

What is wanted is followed over bits from its bytes to the size of the block and to the class of a small one. The
integers take the size for an unknown of which that is known.

Words: claim, ghost state, obligation (docs/explanation/glossary.md).

*Soundness:* the size is no less than what is wanted with the word before the block, and the least of its class if it is
small: of the words that registers hold, shown over bits. Ghosts are changed as is said here; it is enough that the
claims hold of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.cama_geometry import START_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_joins import Join
from wcet_probe.analyzer.deduction.cama_memory import CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import Deduction, stored_view
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.execution import End
from wcet_probe.analyzer.deduction.formulas import (
    Node,
    choice,
    condition,
    conjunction,
    disjunction,
    negation,
    term,
    truth,
    unknown,
)
from wcet_probe.analyzer.deduction.views import changed
from wcet_probe.analyzer.deduction.words import Word

_MOST_WANTED = 1 << 28
_MOST_SIZE = _MOST_WANTED // START_BYTES + 2
_HEADER_BYTES = 4
_CLASS = "class "
NOTHING_CHANGED = "nothing is changed where it fails, and no block accessed"
RETURNED = "the start is returned"
SIZE = "the size of the block"


def begun(geometry: Geometry, course: Course = BY_Z3, **rules: Any) -> Deduction:  # noqa: ANN401
    """A part of malloc, with nothing known but the claims.

    Parameters:
        course: who is asked, and is told of each way's end.
        rules: what is changed of `Rules`.
    """
    run = Deduction(geometry, cama.view_of(" before"), begins=False, course=course)
    run.rules = replace(run.rules, **rules)
    run.memory.rules = run.rules
    run.assume_claims()
    run.load_scalars()
    return run


def unchanged(run: Deduction, way: End) -> tuple[str, Node]:
    """That nothing was stored on a way but on the stack, and no block was accessed."""
    memory = cast("CamaMemory", way.memory)
    is_changed = memory.stored or memory.touched or memory.static != run.memory.static
    return NOTHING_CHANGED, truth(not is_changed)


def times(node: Node, factor: int) -> Word:
    """``node`` times ``factor`` as a word."""
    return Word(0, ((node, factor),))


# ------------------------------------------------------------------------------------------------------------- request


@dataclass(frozen=True, slots=True)
class Request:
    """What malloc is asked for, at its entry.

    Attributes:
        wanted: the bytes.
        asked_set: the set.
    """

    wanted: Word
    asked_set: Word

    def given_to(self, run: Deduction) -> None:
        """Let ``run`` follow it over bits; addresses of tables may be the set times a constant, plus one."""
        for word in (self.wanted, self.asked_set):
            run.terms.known(word.parts[0][0])
            run.terms.follow(word.parts[0][0])

    def registers(self, run: Deduction, names: tuple[str, str, str]) -> Mapping[str, Word]:
        """What is in registers at the entry; ``names`` are those of the arguments and of the stack pointer."""
        return dict(zip(names, (self.wanted, self.asked_set, run.stack_pointer), strict=True))

    def sizes(self, run: Deduction, way: End) -> Iterator[Word]:
        """What registers hold that the bits show to be a size for the block; which one is meant is left open."""
        return (one for one in self._candidates(run, way) if self._is_size(run, one, way))

    def told_of(self, run: Deduction, way: End, size: Word, plain: Join) -> Join:
        """``plain``, with what registers are shown to hold of it: the size, the set, and the class of a small size."""
        held = dict(plain.held)
        for register, word in way.words().items():
            names = {name for name, one in (("size", size), ("asked set", self.asked_set)) if word == one}
            if not names and self._is_class(run, word, size, way):
                names = {f"{_CLASS}{register}"}
            if names:
                held[register] = held.get(register, frozenset()) | names
        return replace(plain, held=held)

    def _candidates(self, run: Deduction, way: End) -> Iterator[Word]:
        """Words that may be the size: what is computed of what is wanted first, then constants from the least on."""
        found = dict.fromkeys(way.words().values())
        yield from (one for one in found if run.terms.leaves(one) == (self.wanted,))
        yield from sorted((one for one in found if not one.parts), key=lambda one: one.constant)

    def _is_size(self, run: Deduction, size: Word, way: End) -> bool:
        terms = run.terms
        bits, wanted = terms.bits(size), terms.bits(self.wanted)
        least = condition("bits INT_ADD", wanted, bits_of(_HEADER_BYTES))
        premises = terms.bits_about([size, self.wanted], way.conditions)
        is_size = conjunction(
            condition("bits equal", condition("bits INT_AND", bits, bits_of(START_BYTES - 1)), bits_of(0)),
            negation(condition("bits less", bits, bits_of(2 * START_BYTES))),
            negation(condition("bits less", bits_of(START_BYTES * _MOST_SIZE), bits)),
            negation(condition("bits less", bits, least)),
            negation(condition("bits less", least, wanted)),
        )
        return terms.bits_follow(premises, is_size)

    def _is_class(self, run: Deduction, number: Word, size: Word, way: End) -> bool:
        terms, geometry = run.terms, run.geometry
        bits, own = terms.bits(size), terms.bits(number)
        premises = terms.bits_about([size, number, self.wanted], way.conditions)
        is_own = conjunction(
            condition("bits less", own, bits_of(geometry.first_large)),
            condition("bits equal", geometry.bits_of_least_size(own), bits),
        )
        is_large = negation(condition("bits less", bits, bits_of(geometry.threshold)))
        return terms.bits_follow(premises, disjunction(is_large, is_own))


def any_request() -> Request:
    """Any request."""
    return Request(times(unknown("wanted bytes"), 1), times(unknown("asked set"), 1))


def bits_of(value: int) -> Node:
    """A constant over bits."""
    return condition("bits constant", value)


# ------------------------------------------------------------------------------------------------------ behind a join


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the block where a part begins behind a join, divided by 8, and the classes that registers hold.

    Attributes:
        starts: the size.
        classes: by their names in the join.
    """

    starts: Node
    classes: Mapping[str, Node]

    @property
    def words(self) -> Mapping[str, tuple[Node, int]]:
        """What registers may hold of it, by names, as numbers and factors."""
        return {"size": (self.starts, START_BYTES), **{name: (node, 1) for name, node in self.classes.items()}}


def size_behind(run: Deduction, join: Join) -> Size:
    """Any size of which that is assumed that was shown of it before the join."""
    terms, geometry = run.terms, run.geometry
    size = terms.known(unknown("size in starts"), _MOST_SIZE)
    terms.questions.assume(size >= 2)
    classes = {}
    for name in sorted(frozenset().union(*join.held.values())):
        if name.startswith(_CLASS):
            classes[name] = number = terms.known(unknown(name))
            own = (conjunction(number.equals(one), size.equals(least)) for one, least in geometry.small_sizes.items())
            terms.questions.assume(disjunction(size >= geometry.threshold // START_BYTES, *own))
    return Size(size, classes)


# -------------------------------------------------------------------------------------------------------------- ghosts


def described(memory: CamaMemory, kept: Node | None = None) -> tuple[Node, ...]:
    """The places that were described, in their order, but the one that is described anew."""
    return tuple(dict.fromkeys(place for place, _ in memory.stored.get("start", ()) if place is not kept))


def grown(memory: CamaMemory, view: View, kept: Node | None = None) -> View:
    """The view behind the stores, with its ghosts: what was taken, and what an area made spare.

    Parameters:
        kept: a descriptor that was taken before and is described anew.
    """
    after = stored_view(memory, view)
    spares, used, number, at = view.spares, view.used, view.number, view.at
    lefts = [value for argument, value in memory.stored.get("left", ()) if argument is view.spare]
    if after.newest is not view.newest and lefts and lefts[0] is after.newest + 1:
        # The last fresh one of the former area becomes spare, if none is: it gets the number 1.
        none, old = spares <= 0, view.at(term(1))
        memory.name("number", term(1))
        memory.name("place", old)
        moved = conjunction(none, used >= 1)
        number = changed(number, old, choice(moved, used + 1, number(old)))
        number = changed(number, view.fresh, choice(none, 1, number(view.fresh)))
        at = changed(at, used + 1, choice(none, old, at(used + 1)))
        at = changed(at, term(1), choice(none, view.fresh, at(term(1))))
        spares, used = choice(none, 1, spares), choice(none, used + 1, used)
    for place in described(memory, kept):
        none = spares <= 0
        number = changed(number, place, choice(none, used + 1, number(place)))
        at = changed(at, used + 1, choice(none, place, at(used + 1)))
        spares, used = choice(none, spares, spares - 1), choice(none, used + 1, used)
    return replace(after, spares=spares, used=used, number=number, at=at)
