"""Numbers of a loop that are always the same function of others, as the middle of two that a search goes on with.

Compilers turn ``while (low < high) { middle = low + (high - low) / 2; ... }`` so that the next middle is computed at
the end of a round, and then it is a third number that rounds hand on. It is taken out of what decides.

Words: loop bound, back edges, symbolic variable (docs/explanation/glossary.md).

*Soundness:* the function is taken from one edge to the header, and holds on each of them: what is brought for the
number is, as a term, the function of what is brought for the others. So it holds whenever a round begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from wcet_probe.analyzer.loops.dwindling import Back, Conditions, Round, Rounds
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_Brought = Mapping[Term, Term]
"""Of each own number, what an edge brings for it."""


def without_derived(terms: Terms, rounds: Rounds, entries: Sequence[_Brought]) -> Rounds:
    """``rounds`` without numbers that are functions of the others.

    Args:
        terms: what ``rounds`` speaks of.
        rounds: what decides.
        entries: of each edge by which the loop is entered, what it brings.

    *Soundness:* as said of the module.
    """
    for own in rounds.own:
        others = [one for one in rounds.own if one != own]
        backs = chain.from_iterable(one.back for one in rounds.each)
        each = [*(dict(zip(rounds.own, back.terms, strict=True)) for back in backs), *entries]
        for function in _candidates(terms, own, each):
            if terms.symbols(function) <= set(others) and all(
                _replaced(terms, function, brought) == brought[own] for brought in each
            ):
                found = _with(terms, rounds, own, function)
                if found is not None:
                    return without_derived(terms, found, [{one: by[one] for one in others} for by in entries])
    return rounds


def _candidates(terms: Terms, own: Term, each: Sequence[_Brought]) -> Iterator[Term]:
    for brought in each:
        names = {term: one for one, term in brought.items() if one != own and terms.value(term) is None}
        found = _replaced(terms, brought[own], names)
        if found is not None:
            yield found


def _with(terms: Terms, rounds: Rounds, own: Term, function: Term) -> Rounds | None:
    """``rounds`` where ``own`` is ``function``; None where a number is no term then."""
    at = rounds.own.index(own)

    def of(conditions: Conditions) -> Conditions:
        each = [(_replaced(terms, term, {own: function}), holds) for term, holds in conditions]
        return [(term, holds) for term, holds in each if term is not None]

    found = list[Round]()
    for one in rounds.each:
        backs = list[Back]()
        for back in one.back:
            brought = [_replaced(terms, term, {own: function}) for term in (*back.terms[:at], *back.terms[at + 1 :])]
            known = tuple(term for term in brought if term is not None)
            if len(known) < len(brought):
                return None
            backs.append(Back(of(back.conditions), known))
        found.append(Round([[of(conditions) for conditions in ways] for ways in one.ways], backs))
    return Rounds((*rounds.own[:at], *rounds.own[at + 1 :]), rounds.fixed, found)


def _replaced(terms: Terms, term: Term, by: Mapping[Term, Term]) -> Term | None:
    """``term`` with others in place of its parts; None where that is no term."""
    if term in by:
        return by[term]
    return terms.with_operands(term, [_replaced(terms, one, by) for one in terms.operands(term)])
