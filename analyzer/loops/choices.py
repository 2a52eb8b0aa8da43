"""Terms of which some parts are chosen by conditions that nothing is known of: each way to choose, one by one.

A search by halves goes on with the lower or with the upper one, by what it finds in memory. Each of both ways may be
followed for itself, all choices by one condition the same way.

Words: gamma node (docs/explanation/glossary.md).

*Soundness:* a condition has one value wherever a state knows its term, so that of the ways that are given one is that
of the execution. The part of a gamma node that is not chosen is left out, as its symbols may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product

from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_CHOICES = 4


def choices(terms: Terms, of: Iterable[Term], is_open: Callable[[Term], bool]) -> Iterator[Mapping[Term, bool]]:
    """All ways to decide the open conditions of gamma nodes that ``of`` are made of; none where they are too many.

    Args:
        terms: what they are of.
        of: terms.
        is_open: whether nothing is known of a condition.
    """
    conditions = dict.fromkeys(_conditions(terms, of, is_open))
    if len(conditions) <= _MOST_CHOICES:
        for decided in product((True, False), repeat=len(conditions)):
            yield dict(zip(conditions, decided, strict=True))


def _conditions(terms: Terms, of: Iterable[Term], is_open: Callable[[Term], bool]) -> Iterator[Term]:
    todo, seen = list(of), set[Term]()
    while todo:
        term = todo.pop()
        if term not in seen:
            seen.add(term)
            operands = terms.operands(term)
            if terms[term].opcode == "GAMMA" and is_open(operands[0]):
                yield min(operands[0], terms.negated(operands[0]))
                operands = operands[1:]
            todo += operands


def chosen(terms: Terms, term: Term, decided: Mapping[Term, bool]) -> Term | None:
    """``term`` where the conditions of gamma nodes are ``decided`` so; None where that is no term.

    Args:
        terms: what it is of.
        term: the term.
        decided: one of `choices`.
    """
    node, operands = terms[term], terms.operands(term)
    if not decided or not operands:
        return term
    if node.opcode == "GAMMA":
        opposite = terms.negated(operands[0])
        holds = decided.get(operands[0], not decided[opposite] if opposite in decided else None)
        if holds is not None:
            return chosen(terms, operands[1 if holds else 2], decided)
    return terms.with_operands(term, [chosen(terms, one, decided) for one in operands])
