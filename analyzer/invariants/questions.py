"""What the terms of an induction may be, each asked once of all states that tell the same of it.

Words: term, lemma, abstract state (docs/explanation/glossary.md).

*Soundness:* as said of `evaluation`, `components` and `obligations`: of a word that has been followed, what a lemma
excludes there is left out from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.components import Components
from wcet_probe.analyzer.invariants.contents import WORD_BITS, Contents, Part, Region, anything
from wcet_probe.analyzer.invariants.evaluation import Evaluation, Told
from wcet_probe.analyzer.invariants.frontier import NO_FRONTIER, Area, frontiers, without_end
from wcet_probe.analyzer.invariants.obligations import FollowedWords, is_by_null
from wcet_probe.analyzer.invariants.operations import Operation
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term


@dataclass(slots=True)
class Question:
    """What ``term`` may be in ``state`` of the operation ``number``: ``answer``, where its ``symbols`` are ``known``.

    ``followed`` are the symbols that have been followed, with the constants that were added; ``is_cut`` tells whether
    the answer rests on the lemma of the frontier.
    """

    number: int
    state: State
    term: Term
    symbols: tuple[Term, ...]
    followed: Mapping[Term, Sequence[int]]
    known: tuple[Contents, ...] | None = None
    answer: Contents = ()
    is_cut: bool = False


class Questions:
    """Those about ``operations``; ``area`` as in `induction.Module`."""

    def __init__(self, operations: Sequence[Operation], way_bits: int, area: Area | None) -> None:
        self._way_bits, self._area = way_bits, area
        self._told = Told(way_bits)
        self._frontiers = frontiers(operations) if area is not None else tuple(NO_FRONTIER for _ in operations)
        self._followed = FollowedWords(operations if area is not None else ())
        self._components: dict[tuple[int, int], Components] = {}
        self._places: dict[tuple[int, int, Term], Question] = {}
        self._asked: dict[object, Question] = {}
        self._is_cut_behind = False

    @property
    def is_cut(self) -> bool:
        """Whether any answer rests on the lemma of the frontier."""
        return self._is_cut_behind or any(one.is_cut for one in self._asked.values())

    def of(self, number: int, state: State, term: Term) -> Question:
        """What is asked of ``term``: the same in all states that know the same of it."""
        place = number, id(state), term
        question = self._places.get(place)
        if question is None:
            if (number, id(state)) not in self._components:
                self._components[number, id(state)] = Components(state)
            symbols = tuple(sorted(_related(state, term)))
            followed = self._followed.at(state, symbols)
            key = number, term, followed, self._components[number, id(state)].of(term)
            if key not in self._asked:
                by_symbol: dict[Term, list[int]] = {}
                for symbol, constant in sorted(followed):
                    by_symbol.setdefault(symbol, []).append(constant)
                self._asked[key] = Question(number, state, term, symbols, by_symbol)
            question = self._places[place] = self._asked[key]
        return question

    def answer(self, question: Question, known: tuple[Contents, ...]) -> Contents:
        """The answer where ``known`` is what its symbols may be; found again only where that has changed."""
        if question.known != known:
            top = anything(self._way_bits)
            given = {
                symbol: self._behind(contents, question.followed.get(symbol, ()))
                for symbol, contents in zip(question.symbols, known, strict=True)
            }
            frontier = self._frontiers[question.number]
            lookup = Evaluation(self._way_bits, lambda one: given.get(one, top), frontier, self._area, self._told)
            question.answer, question.known = lookup.contents(question.state, question.term), known
            question.is_cut = lookup.is_cut
        return question.answer

    def not_at_end(self, address: Contents) -> Contents:
        """``address`` of what is followed, without what would be at the end of the area."""
        if self._area is None:
            return address
        return without_end(address, self._area, self._frontiers[0].step, self._way_bits)

    def _behind(self, contents: Contents, constants: Sequence[int]) -> Contents:
        """``contents`` of a word that has been followed, with each of ``constants`` added to it."""
        for constant in constants:
            contents = tuple(part for part in contents if not is_by_null(part, constant))
            if signed(WORD_BITS, constant) >= 0:
                contents = tuple(part for one in contents for part in self._not_at_end(one, constant))
        return contents

    def _not_at_end(self, part: Part, constant: int) -> Contents:
        if part.region is not Region.ARENA:
            return (part,)
        added = strided.constant(self._way_bits, constant & (1 << self._way_bits) - 1)
        moved = part._replace(way=strided.apply("INT_ADD", (part.way, added), self._way_bits))
        inside = self.not_at_end((moved,))
        if inside == (moved,):
            return (part,)
        self._is_cut_behind = True
        return tuple(part._replace(way=strided.apply("INT_SUB", (one.way, added), self._way_bits)) for one in inside)


def _related(state: State, term: Term) -> frozenset[Term]:
    """The symbols of ``term``, and of what the state knows to be equal to one of them."""
    terms = state.terms
    symbols = terms.symbols(term)
    more = [terms.symbols(one) for one in state.known if terms[one].opcode in {"INT_EQUAL", "INT_NOTEQUAL"}]
    return symbols.union(*(one for one in more if one & symbols))
