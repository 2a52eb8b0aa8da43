"""A round of a loop as a function of numbers that tells those of the next round: made once, called for each.

Words: loop bound, back edges, term (docs/explanation/glossary.md).

*Soundness:* a term is computed by what p-code computes, and only where it is asked for: of a gamma node the part that
its condition chooses, of conditions those up to the first one that does not hold. A number is of one round alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from wcet_probe.analyzer.loops.dwindling import Conditions, Round, Rounds
from wcet_probe.analyzer.pcode.semantics import UndefinedResultError, operation
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

Numbers = tuple[tuple[int, ...], tuple[int, ...]]
"""Own numbers, and fixed ones."""
_Known = dict[Term, int]
_Evaluate = Callable[[_Known], int]
"""The value of a term where its leaves are known, and it is added to them."""
_Holding = Sequence[tuple[_Evaluate, bool]]


def function_of(terms: Terms, term: Term) -> Callable[..., int] | None:
    """What computes ``term`` from its operands; None where it is no pure function of integers."""
    node = terms[term]
    widths = tuple(terms[one].bits // 8 or 1 for one in terms.operands(term))
    return operation(node.opcode, widths, node.bits // 8 or 1)


def round_function(terms: Terms, rounds: Rounds) -> Callable[[Numbers], list[Numbers]]:
    """A function that tells what the numbers may be in the next round; none where there is no next one.

    It raises UndefinedResultError where a result is undefined.

    *Soundness:* as said of the module.
    """
    evaluate = _Functions(terms, rounds)
    each = [_ways_and_backs(evaluate, one) for one in rounds.each]
    names = (*rounds.own, *rounds.fixed)

    def following(at: Numbers) -> list[Numbers]:
        own, fixed = at
        known = dict(zip(names, (*own, *fixed), strict=True))
        found = []
        for ways, backs in each:
            if all(any(_hold(conditions, known) for conditions in group) for group in ways):
                for conditions, brought in backs:
                    if _hold(conditions, known):
                        found.append((tuple([one(known) for one in brought]), fixed))
        return found

    return following


def _ways_and_backs(
    evaluate: _Functions, one: Round
) -> tuple[list[list[_Holding]], list[tuple[_Holding, list[_Evaluate]]]]:
    ways = [[evaluate.conditions(conditions) for conditions in group] for group in one.ways]
    return ways, [(evaluate.conditions(back.conditions), [evaluate[term] for term in back.terms]) for back in one.back]


def _hold(conditions: _Holding, known: _Known) -> bool:
    for evaluate, holds in conditions:  # noqa: SIM110  (asked of each number: a generator takes half as long again)
        if bool(evaluate(known)) != holds:
            return False
    return True


class _Functions(dict[Term, _Evaluate]):
    """What evaluates terms, each made once."""

    def __init__(self, terms: Terms, rounds: Rounds) -> None:
        super().__init__((leaf, itemgetter(leaf)) for leaf in (*rounds.own, *rounds.fixed))
        self._terms = terms

    def conditions(self, conditions: Conditions) -> _Holding:
        return [(self[term], holds) for term, holds in conditions]

    def __missing__(self, term: Term) -> _Evaluate:
        found = self[term] = self._made(term)
        return found

    def _made(self, term: Term) -> _Evaluate:
        node, operands = self._terms[term], [self[one] for one in self._terms.operands(term)]
        if node.opcode == "const":
            value = self._terms.value(term) or 0
            return lambda _: value
        if node.opcode == "GAMMA":
            return _remembering(term, _choice(*operands))
        function = function_of(self._terms, term)
        if function is None:
            return _undefined
        return _remembering(term, _applied(function, operands))


def _choice(condition: _Evaluate, one: _Evaluate, other: _Evaluate) -> _Evaluate:
    return lambda known: (one if condition(known) else other)(known)


def _applied(function: Callable[..., int], operands: Sequence[_Evaluate]) -> _Evaluate:
    if len(operands) == 1:
        (only,) = operands
        return lambda known: function(only(known))
    left, right = operands
    return lambda known: function(left(known), right(known))


def _remembering(term: Term, compute: _Evaluate) -> _Evaluate:
    def evaluate(known: _Known) -> int:
        found = known.get(term)
        if found is None:
            found = known[term] = compute(known)
        return found

    return evaluate


def _undefined(_: Mapping[Term, int]) -> int:
    raise UndefinedResultError
