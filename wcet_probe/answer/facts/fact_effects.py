"""What facts do to a bound: the bound with all of them, with loop facts only, with none, and without each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import FactEffect, FactEffects, Units

_KINDS = ("loops", "arguments", "recursions", "calls", "through", "given", "infeasible", "flows", "pointers", "words")
"""Kinds of facts that a bound may rest on; a lemma is a reason for others."""

_TABLES = {"infeasible": "infeasible", "calls": "calls", "through": "calls", "given": "calls"}
"""Names of the tables in a file of facts that are not the singular of a kind."""


def fact_effects(
    request: BoundRequest, proved: Units, *, each: bool, progress: Callable[[str], None] = lambda _: None
) -> FactEffects:
    """What the facts of ``request`` do to its bound.

    Parameters:
        request: what was proved, with all facts. Pragmas of its sources are no facts here: they hold in all of it.
        proved: its bound.
        each: whether the bound without each fact is proved too, which takes a proof for each.
        progress: is told in words what is being done.

    Raises:
        UsageError: a fact is wrong.
    """
    facts = request.facts
    progress("proving the bound with loop facts only")
    loops = with_loop_facts_only(request)
    progress("proving the bound without facts")
    none = _proved(request, Facts(file=facts.file, parameters=facts.parameters))
    return FactEffects(proved, loops, none, tuple(_effects(request, progress)) if each else None)


def with_loop_facts_only(request: BoundRequest) -> Units | None:
    """The bound with none of the facts but those about loops; None where nothing is proved.

    Raises:
        UsageError: a fact is wrong.
    """
    facts = request.facts
    return _proved(request, Facts(file=facts.file, loops=facts.loops, parameters=facts.parameters))


def _effects(request: BoundRequest, progress: Callable[[str], None]) -> Iterator[FactEffect]:
    known = {field.name for field in fields(Facts)}
    for kind in _KINDS:
        assert kind in known  # noqa: S101  (a kind that was renamed would be left out in silence)
        all_of_kind = getattr(request.facts, kind)
        for number, fact in enumerate(all_of_kind):
            progress(f"proving the bound without the fact {fact.where}")
            others = (*all_of_kind[:number], *all_of_kind[number + 1 :])
            changed: dict[str, Any] = {kind: others}
            without = _proved(request, replace(request.facts, **changed))
            yield FactEffect(fact.where, _TABLES.get(kind, kind[:-1]), without)


def _proved(request: BoundRequest, facts: Facts) -> Units | None:
    functions = {fact.function for fact in facts.given}
    given = {address: one for address, one in request.given.items() if one.function in functions}
    try:
        bound = prove(replace(request, facts=facts, given=given))
    except AnalysisError:
        return None
    return Units(bound.instructions, bound.cycles)
