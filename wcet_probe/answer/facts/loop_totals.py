"""Loops that are entered again and again, of which the sum of all rounds would help: tried with one bound for all.

Words: flow fact, loop bound (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.expressions import parse
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import LoopFact
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.remembered import RememberedValues
from wcet_probe.errors import AnalysisError, UsageError

_ROUNDS = 16
"""So many a loop is given for trial: for each entry, and then in all."""
ASKED = 'max = "?"'
"""The line of a fact about a loop that is to be answered."""
_MOST_TRIED = 8
"""Loops, each of which takes two solutions of the flow problem."""


def total_effects(
    closed: BoundRequest,
    tables: Mapping[tuple[str, ...], tuple[str, Sequence[LoopFact]]],
    remembered: RememberedValues,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The loops whose sum of rounds in one call is not what one entry has: lines of the fact, what a total would help.

    Args:
        closed: a question that has a bound, with those loops told for trial.
        tables: for the lines of a fact that is missing, which loop it is about, and what is told of it for trial.
        remembered: what is known of its values.
        progress: is told in words what is being done.

    All that are told for trial go round as often: inside of a loop that goes round once, a loop is entered once.
    """
    rounds = parse(str(_ROUNDS))
    longer = {fact: replace(fact, maximum=rounds) for _, told in tables.values() for fact in told}
    loops = tuple(longer.get(one, one) for one in closed.facts.loops)
    closed = replace(closed, facts=replace(closed.facts, loops=loops))
    for lines, (where, told) in list(tables.items())[:_MOST_TRIED]:
        progress(f"trying a total of {where}")
        try:
            own = [longer[fact] for fact in told]
            before, after = (_instructions(closed, own, lines, key, remembered) for key in ("max", "total"))
        except (AnalysisError, UsageError):
            continue
        if after < before:
            effect = (
                f"with {_ROUNDS} for each entry the bound of a trial is {before:,} instructions, "
                f"with {_ROUNDS} in all {after:,}"
            )
            yield lines, effect


def _instructions(
    closed: BoundRequest, told: Sequence[LoopFact], lines: Sequence[str], key: str, remembered: RememberedValues
) -> int:
    """The bound of ``closed`` where the ``key`` of a fact of these ``lines`` is in the place of what was ``told``.

    Raises:
        AnalysisError: there is none.
        UsageError: the fact is refused.
    """
    answered = "\n".join(f"{key} = {_ROUNDS}" if line == ASKED else line for line in lines)
    facts = replace(closed.facts, loops=tuple(one for one in closed.facts.loops if one not in told))
    facts = replace(facts, loops=(*facts.loops, *parse_facts("trial", answered).loops))
    request = replace(closed, facts=facts)
    bounded = prepare(request, remembered=remembered).bounded(request.parameters)
    return bounded.solved("instructions", counted=False).solution.certified
