"""What is asked of an operation of CAMA: claims behind each way, words that are read and stored; and the answers.

Words: obligation, claim, SMT (docs/explanation/glossary.md).

*Soundness:* what the solver does not answer is open. A claim is asked at unknowns; beside the claims at entry nothing
is assumed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.asked import BY_Z3, Course
from wcet_probe.analyzer.deduction.calling_convention import STACK_POINTER
from wcet_probe.analyzer.deduction.cama_claims import claims
from wcet_probe.analyzer.deduction.cama_geometry import START_BYTES, STARTS_PER_PLACE, Geometry
from wcet_probe.analyzer.deduction.cama_memory import CamaMemory
from wcet_probe.analyzer.deduction.cama_stores import Rules
from wcet_probe.analyzer.deduction.cama_views import MAPS, View
from wcet_probe.analyzer.deduction.execution import Astray, End
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    Node,
    conjunction,
    disjunction,
    implies,
    negation,
    term,
    unknown,
)
from wcet_probe.analyzer.deduction.obligations import OF_THE_OWN_BLOCK, Answers, Deduced
from wcet_probe.analyzer.deduction.views import Map, changed
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word

FIELDS = ("left", "right", "prev", "next", "start", "size")
"""The words of a descriptor, in their order; the last one has the free bit, too."""


class Deduction:
    """One operation, under way: its claims, its memory, and what was asked of it so far.

    *Soundness:* a claim is asked at unknowns, of which nothing is assumed but the claims at entry.

    Args:
        geometry: what the claims depend on.
        view: the memory at entry.
        begins: whether the operation makes the heap.
        course: who is asked, and is told of each way's end.
    """

    def __init__(self, geometry: Geometry, view: View, *, begins: bool, course: Course = BY_Z3) -> None:
        self.geometry, self._answers = geometry, Answers(course.told)
        self.terms = WordTerms(
            course.asked(), (1, 4 * geometry.first_large, geometry.threshold // START_BYTES, SPAN // START_BYTES)
        )
        self.claims = claims(geometry)
        self.rules = Rules(geometry, self.terms, self.claims, view, begins, self._answers.add)
        self.stack_pointer = Word(0, ((self.terms.known(STACK_POINTER), 1),))
        self.memory = CamaMemory(self.rules, stack_pointer=self.stack_pointer)

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

    def end_way(self, end: End | None, asked: Iterable[tuple[str, Node]]) -> None:
        """Ask what is to hold at the end of a way, in the order given."""
        for what, formula in asked:
            self._ask(what, formula, end)
        self._answers.end_way(end)

    def leave_way(self) -> None:
        """Leave a way to another part of the operation; what was asked of its accesses is kept, as of a way 0."""
        self._answers.leave_way()

    def deduced(self, operation: str) -> Deduced:
        """What came of it."""
        return self._answers.deduced(operation, self.terms.questions.shown, self.rules.aligned, self.rules.reached)

    def ask_claims(self, memory: CamaMemory, after: View, end: End | None) -> None:
        """Ask each claim of the view ``after``, at unknowns; one that says the same as at entry was assumed there."""
        at = end.instruction_address if end else 0
        answers: dict[str, bool] = {}
        open_claims: dict[tuple[str, ...], list[tuple[str, Node]]] = {}
        for claim in self.claims:
            variables = _variables(claim.kinds)
            formula = claim.of(after, *variables)
            if not self.rules.begins and formula is claim.of(self.rules.before, *variables):
                answers[claim.name] = True
            else:
                open_claims.setdefault(claim.kinds, []).append((claim.name, formula))
        for kinds, asked in open_claims.items():
            self.terms.enter()
            own = memory.copy()
            for kind, variable in zip(kinds, _variables(kinds), strict=True):
                self._name_around(own, kind, variable)
            answers.update((name, self.terms.questions.holds(formula)) for name, formula in asked)
            self.terms.leave()
        for claim in self.claims:
            self._answers.add(claim.name, at, answers[claim.name])

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
        self._answers.add(what, end.instruction_address if end else 0, self.terms.questions.holds(formula))

    def ask_own(self, memory: CamaMemory, start: Node) -> None:
        """Ask that all blocks whose words were accessed are the one at ``start``."""
        for one, instruction_address in memory.touched.items():
            is_own = self.terms.questions.holds(one.equals(start))
            self._answers.add(OF_THE_OWN_BLOCK, instruction_address, is_own)

    def ask_after(self, change: Callable[[], View], memory: CamaMemory, way: End, start: Node) -> bool:
        """Ask all of the view that ``change`` makes behind a way of the block at ``start``; a way astray is ended."""
        try:
            after = change()
        except Astray as error:
            self.end_way(replace(way, reason=str(error)), ())
            return False
        self.ask_claims(memory, after, way)
        self.ask_words(memory, after, way)
        self.ask_own(memory, start)
        return True

    def ask_words(self, memory: CamaMemory, after: View, end: End) -> None:
        """Ask that what is read behind the way was read before it or stored in it, and that stores were to that."""
        before, g = self.rules.before, self.geometry
        place, start = unknown("any place"), unknown("any start")
        self.terms.enter()
        own = memory.copy()
        self._name_around(own, "place", place)
        self._name_around(own, "start", start)
        for name in FIELDS:
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
            if name in FIELDS:
                kept = disjunction(cama.is_taken(after, one), one.equals(g.sentinel), one.equals(after.newest))
                if name == "left" and one is before.newest and one is not after.newest:
                    kept = self._is_of_no_word(memory, after, one)
                self._ask("apart: a store to a descriptor", kept, end)
            elif name in {"tag_class", "link"}:
                self._ask("apart: a store to a block", cama.is_live_header(after, one), end)

    def _is_of_no_word(self, memory: CamaMemory, after: View, place: Node) -> Node:
        """That no word of a descriptor or a block is in ``place`` behind the way, asked at any start.

        *Soundness:* ``place`` is where the former area begins. It is no descriptor that is taken nor the sentinel, and
        no live header of a block overlaps its 32 bytes; so its link to the newer area changes no word that is claimed.
        """
        start = unknown("any start")
        self._name_around(memory, "start", start)
        clear = disjunction(start <= STARTS_PER_PLACE * place - 1, start >= STARTS_PER_PLACE * (place + 1) + 1)
        none = conjunction(negation(cama.is_taken(after, place)), place.differs(self.geometry.sentinel))
        return conjunction(none, implies(cama.is_live_header(after, start), clear))


def _variables(kinds: tuple[str, ...]) -> tuple[Node, ...]:
    """Unknowns of these kinds, at which a claim is asked."""
    return tuple(unknown(f"any {kind} {number}") for number, kind in enumerate(kinds))


def stored_view(memory: CamaMemory, base: View) -> View:
    """``base`` behind the stores of ``memory``, its ghosts unchanged."""
    maps: dict[str, Any] = {}
    for name in MAPS:
        function: Map = getattr(base, name)
        for argument, value in memory.stored.get(name, ()):
            function = changed(function, argument, value)
        maps[name] = function
    names = ("arena", "end", "top", "spare", "fresh", "available", "newest")
    scalars: dict[str, Any] = {name: memory.scalar(name) for name in names}
    return replace(base, **maps, **scalars)
