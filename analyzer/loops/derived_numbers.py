"""Numbers of a loop that are always the same function of others, as the middle of two that a search goes on with.

Compilers turn ``while (low < high) { middle = low + (high - low) / 2; ... }`` so that the next middle is computed at
the end of a round, and then it is a third number that rounds hand on. It is taken out of what decides.

Words: loop bound, back edges, symbolic variable (docs/explanation/glossary.md).

*Soundness:* the function is taken from one edge to the header, and holds on each of them: what is brought for the
number is, as a term, the function of what is brought for the others. So it holds whenever a round begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations

from wcet_probe.analyzer.loops.dwindling import Back, Conditions, Round, Rounds
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

Brought = Mapping[Term, Term]
"""Of each number, what an edge brings for it."""


def without_derived(terms: Terms, rounds: Rounds, entries: Sequence[Brought]) -> Rounds:
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
        for function in functions_of(terms, own, others, each):
            found = _with(terms, rounds, own, function)
            if found is not None:
                return without_derived(terms, found, [{one: by[one] for one in others} for by in entries])
    return rounds


def functions_of(terms: Terms, own: Term, others: Collection[Term], each: Sequence[Brought]) -> Iterator[Term]:
    """Functions of the numbers ``others`` that ``own`` always is, by what ``each`` edge brings for all of them.

    *Soundness:* as said of the module, if no edge is left out.
    """
    for function in _candidates(terms, own, each):
        if terms.symbols(function) <= set(others) and all(
            replaced(terms, function, brought) == brought[own] for brought in each
        ):
            yield function


def _candidates(terms: Terms, own: Term, each: Sequence[Brought]) -> Iterator[Term]:
    for brought in each:
        names = {term: one for one, term in brought.items() if one != own and terms.value(term) is None}
        found = replaced(terms, brought[own], names)
        if found is not None:
            yield found
    for brought in each:
        for one, other in combinations((one for one in brought if one != own), 2):
            yield from _sums(terms, brought, own, (one, other))


def _sums(terms: Terms, brought: Brought, own: Term, of: tuple[Term, Term]) -> Iterator[Term]:
    """The sum of two numbers and a constant that ``own`` is on one edge: as a sum, others do not stand in its term."""
    bits = terms[own].bits
    if any(terms[one].bits != bits for one in of):
        return
    total = terms.apply("INT_ADD", of, bits)
    known = None if total is None else replaced(terms, total, brought)
    gap = None if known is None else terms.difference(brought[own], known)
    if total is not None and gap is not None and not gap.coefficients:
        found = terms.apply("INT_ADD", (total, terms.constant(gap.constant, bits)), bits)
        if found is not None:
            yield found


def _with(terms: Terms, rounds: Rounds, own: Term, function: Term) -> Rounds | None:
    """``rounds`` where ``own`` is ``function``; None where a number is no term then."""
    at = rounds.own.index(own)

    def of(conditions: Conditions) -> Conditions:
        each = [(replaced(terms, term, {own: function}), holds) for term, holds in conditions]
        return [(term, holds) for term, holds in each if term is not None]

    found = list[Round]()
    for one in rounds.each:
        backs = list[Back]()
        for back in one.back:
            brought = [replaced(terms, term, {own: function}) for term in (*back.terms[:at], *back.terms[at + 1 :])]
            known = tuple(term for term in brought if term is not None)
            if len(known) < len(brought):
                return None
            backs.append(Back(of(back.conditions), known))
        found.append(Round([[of(conditions) for conditions in ways] for ways in one.ways], backs))
    return Rounds((*rounds.own[:at], *rounds.own[at + 1 :]), rounds.fixed, found)


def replaced(terms: Terms, term: Term, by: Mapping[Term, Term]) -> Term | None:
    """``term`` with others in place of its parts; None where that is no term."""
    if term in by:
        return by[term]
    return terms.with_operands(term, [replaced(terms, one, by) for one in terms.operands(term)])
