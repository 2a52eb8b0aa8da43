"""What infeasible, flow, argument, recursion and call facts, and lemmas, come to: limits, claims, assumptions.

*Soundness:* a place is infeasible only where a whole block is: what else shares its block is executed all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.analyzer.expressions import evaluate
from wcet_probe.analyzer.fact_binding import Analysed, check_place
from wcet_probe.analyzer.facts import Facts, FlowFact
from wcet_probe.analyzer.flow_graph import Limit
from wcet_probe.analyzer.source_match import SourceIndex, match_loops
from wcet_probe.analyzer.values import Values
from wcet_probe.errors import UsageError
from wcet_probe.model import MemoryRange
from wcet_probe.proof import Assumption, FlowClaim


@dataclass(frozen=True, slots=True)
class ToldFlow:
    """Limits for the flow problem, claims for runs, the expressions of flow facts, and assumptions."""

    limits: tuple[Limit, ...]
    claims: tuple[FlowClaim, ...]
    expressions: tuple[str, ...]
    assumptions: tuple[Assumption, ...]


def flow_facts(
    facts: Facts,
    entry: str,
    parameters: Mapping[str, int],
    values: Values,
    *,
    index: SourceIndex,
    analysed: Analysed,
) -> ToldFlow:
    """What all facts but those of loops say of the analysed code.

    Raises:
        UsageError: a fact speaks of nothing, its function has changed, or its expression has no value.

    *Soundness:* as said of the module.
    """
    sums = [*_infeasible(facts, values, index, analysed), *_flows(facts, parameters, values, index, analysed)]
    blocks = values.graph.points
    claims = []
    for limit, statement, where in sums:
        weights = {blocks[point].block.address: weight for point, weight in limit.points}
        claims.append(FlowClaim(where, statement, tuple(sorted(weights.items())), (), limit.constant))
    assumptions = [Assumption(f"fact {where}", statement, "every emulated run") for _, statement, where in sums]
    return ToldFlow(
        limits=tuple(limit for limit, _, _ in sums),
        claims=tuple(claims),
        expressions=tuple(dict.fromkeys(str(fact.maximum) for fact in facts.flows)),
        assumptions=(*assumptions, *_others(facts, entry, analysed)),
    )


_Sum = tuple[Limit, str, str]


def _infeasible(facts: Facts, values: Values, index: SourceIndex, analysed: Analysed) -> Iterator[_Sum]:
    for number, fact in enumerate(facts.infeasible):
        ranges = check_place(fact.where, fact.place, fact.sha256, index, analysed)
        never = [i for i in sorted(values.states) if all(_inside(address, ranges) for address in _addresses(values, i))]
        if never:
            limit = Limit(f"infeasible:{number}", tuple((point, 1) for point in never))
            yield limit, f"{fact.place} is never executed: {fact.because}", fact.where


def _flows(
    facts: Facts, parameters: Mapping[str, int], values: Values, index: SourceIndex, analysed: Analysed
) -> Iterator[_Sum]:
    for number, fact in enumerate(facts.flows):
        weights = _weights(values, index, analysed, fact)
        if weights:
            limit = Limit(f"flow:{number}", tuple(weights.items()), constant=evaluate(fact.maximum, parameters))
            names = " + ".join(f"{weight} * {kind} {name}" for kind, name, weight in fact.terms)
            yield limit, f"in {fact.place.function}, {names} <= {fact.maximum}: {fact.because}", fact.where


def _weights(values: Values, index: SourceIndex, analysed: Analysed, fact: FlowFact) -> dict[int, int]:
    """Weights of the points that a flow fact sums over; empty where its function is not analysed."""
    weights: dict[int, int] = {}
    for kind, name, weight in fact.terms:
        if kind == "point":
            ranges = check_place(fact.where, replace(fact.place, name=name), fact.sha256, index, analysed)
            found = [i for i in values.states if any(_inside(address, ranges) for address in _addresses(values, i))]
            if len({values.graph.points[i].block.address for i in found}) > 1:
                raise UsageError(
                    f"{fact.where}: point {name!r} has become several blocks; name a statement that stays one."
                )
        else:
            check_place(fact.where, fact.place, fact.sha256, index, analysed)
            source = [each for each in index.loops(fact.place.function, fact.place.file) if each.label == name]
            if not source:
                raise UsageError(
                    f"{fact.where}: {fact.place.function} has no loop {name!r}; label it, or correct the name."
                )
            headers = {address for address, loop in match_loops(analysed.sites, index).items() if loop in source}
            found = [i for i in values.states if values.graph.points[i].block.address in headers]
        for point in found:
            weights[point] = weights.get(point, 0) + weight
    return weights


def _addresses(values: Values, index: int) -> list[int]:
    return [instruction.address for instruction in values.graph.points[index].block.instructions]


def _inside(address: int, ranges: Sequence[MemoryRange]) -> bool:
    return any(address in code for code in ranges)


def _others(facts: Facts, entry: str, analysed: Analysed) -> Iterator[Assumption]:
    for argument in facts.arguments:
        if argument.function == entry:
            name = argument.register if argument.index is None else f"argument {argument.index}"
            text = f"{name} is {argument.minimum} to {argument.maximum} at entry: {argument.because}"
            yield Assumption(f"fact {argument.where}", text, "not checked: the caller's")
    for recursion in facts.recursions:
        if recursion.place.function in analysed.functions:
            text = f"at most {recursion.max_depth} calls of {recursion.place.function} are open: {recursion.because}"
            yield Assumption(f"fact {recursion.where}", text, "not checked")
    for calls in facts.calls:
        if calls.place.function in analysed.functions:
            text = f"{calls.place} goes only to {', '.join(calls.targets)}: {calls.because}"
            yield Assumption(f"fact {calls.where}", text, "not checked")
    for lemma in facts.lemmas:
        yield Assumption(f"lemma {lemma.id}", f"{lemma.statement}: {lemma.because}", lemma.check)
