"""The summary of a function that calls itself, and of whose calls the number is known: effect and cost.

Words: summary, fixpoint (docs/explanation/glossary.md).

*Soundness:* what the calls within an execution do to its state is supposed, the execution is analysed, and what it
does itself is found to be no more than was supposed; else more is supposed. An execution that ends has calls of finite
depth, so by induction over the depth each call does what was supposed. Of the cost see `recursive_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from wcet_probe.analyzer.call_summaries import CallCost, CallSummaries, CallSummary, WiderKeyError
from wcet_probe.analyzer.dcache.footprints import ANYWHERE
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import UNITS, edge_name, point_name
from wcet_probe.analyzer.kept_lines import Footprint, Kept
from wcet_probe.analyzer.loops.bounds import no_bound
from wcet_probe.analyzer.prepared import Bounded, Prepared
from wcet_probe.analyzer.recursive_calls import tail_calls, tree_cost
from wcet_probe.analyzer.values.execution.call_effects import CallKey, Effect, covers, joined, supposed
from wcet_probe.analyzer.values.properties.entry_registers import RegisterBytes
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import Assumption

_MOST_ROUNDS = 12


def counted_summary(  # noqa: PLR0917  the function, and how its parts are proved
    calls: CallSummaries,
    key: CallKey,
    expected: int,
    registers: RegisterBytes,
    analysed: Callable[[CallKey], Prepared],
    effect: Callable[[Values], Effect],
    assumed: Callable[[Bounded], tuple[Assumption, ...]],
) -> CallSummary:
    """The summary of the function that ``key`` calls.

    Args:
        calls: all summaries of the proof.
        key: for what it is analysed.
        expected: how many calls of it there are, see `recursive_calls.tree_cost`.
        registers: all bytes of registers.
        analysed: analyses it for a key.
        effect: of a call with such values.
        assumed: what a result rests on.

    Raises:
        AnalysisError: nothing is proved of it.

    *Soundness:* as said of the module.
    """
    try:
        prepared, found = _settled(calls, key, registers, analysed, effect)
        stage, repeated = _bounded(prepared)
        if any(loop.address == key.target for loop in stage.loops.loops):
            raise AnalysisError("it begins with a loop, whose rounds would be counted as calls of it.")
        values = prepared.values
        names = {index: point_name(values.graph.points[index]) for index in sorted(values.states)}
        inside = [one.edge for one in values.edges.values() for call in one.calls if call.key.target == key.target]
        ways = (
            {edge_name(names, edge) for edge in inside},
            {edge_name(names, edge) for edge in _back_edges(values, repeated)},
            expected,
        )
        trees = {unit: tree_cost(stage.problem(unit), *ways) for unit in UNITS}

        itself = calls.supposed[key.target]

        @cache
        def keeping(kept: Kept) -> CallCost:
            calls.supposed[key.target] = itself  # its calls of itself cost nothing here, either
            try:
                tree = tree_cost(stage.keeping(kept).problem("cycles"), *ways)
            finally:
                calls.supposed.pop(key.target)
            return CallCost(tree.first, tree.each)

        by_type = [
            loop
            for loop in stage.loops.by_type
            if any({f"loop:{loop.loop}", f"total:{loop.loop}"} & tree.rests_on for tree in trees.values())
        ]
        if by_type:
            addresses = {loop.name: loop.address for loop in stage.loops.loops}
            raise no_bound(prepared.request.image, [addresses[loop.loop] for loop in by_type])
        return CallSummary(
            effect=found,
            most={unit: tree.first for unit, tree in trees.items()},
            assumptions=assumed(stage),
            loops=stage.loops.loops,
            claims=stage.loops.claims,
            inner=frozenset(
                call.key for one in values.edges.values() for call in one.calls if call.key.target != key.target
            ),
            deciding=registers,
            analysed=prepared.analysed,
            trees=trees,
            footprint=stage.prepared.footprint,
            keeping=keeping,
        )
    finally:
        calls.supposed.pop(key.target, None)


def _settled(
    calls: CallSummaries,
    key: CallKey,
    registers: RegisterBytes,
    analysed: Callable[[CallKey], Prepared],
    effect: Callable[[Values], Effect],
) -> tuple[Prepared, Effect]:
    """The function analysed with an effect of the calls of itself that covers what it does."""
    wanted = key._replace(below=key.pointers)
    inner = supposed(wanted)
    for number in range(_MOST_ROUNDS):
        itself = Footprint(frozenset(), ANYWHERE)
        summary = CallSummary(inner, dict.fromkeys(UNITS, 0), (), (), (), frozenset(), registers, footprint=itself)
        calls.supposed[key.target] = wanted, summary
        try:
            prepared = analysed(wanted)
        except WiderKeyError as error:
            if error.key.target != key.target or not error.key.is_aligned:
                raise AnalysisError("it is not called with an aligned stack pointer within itself.") from error
            pointers, escapes = wanted.pointers | error.key.pointers, wanted.escapes or error.key.escapes
            holds = wanted.holds or error.key.holds
            wanted = wanted._replace(pointers=pointers, escapes=escapes, below=pointers, holds=holds)
            inner = supposed(wanted)
            continue
        if any(
            c.key.target in calls.counted - {key.target} for one in prepared.values.edges.values() for c in one.calls
        ):
            raise AnalysisError("it calls another function that calls itself.")
        found = effect(prepared.values)
        if covers(inner, found):
            return prepared, inner
        inner = joined(inner, found, in_haste=number > 0)
    raise AnalysisError("what its calls of itself do to its state is not found.")


def _bounded(prepared: Prepared) -> tuple[Bounded, frozenset[int]]:
    """Its loops bounded, but for those that are calls of itself at its end: without a bound, or by a type's width."""
    name = prepared.values.graph.entry.name
    try:
        stage = prepared.bounded(prepared.request.parameters)
    except AnalysisError as error:
        repeated = tail_calls(prepared.analysed, prepared.index, name, error.headers)
        if not error.headers or repeated != {*error.headers}:
            raise
        stage = prepared.bounded(prepared.request.parameters, repeated)
    else:
        repeated = frozenset[int]()
    addresses = {loop.name: loop.address for loop in stage.loops.loops}
    by_type = [addresses[loop.loop] for loop in stage.loops.by_type]
    return stage, repeated | tail_calls(prepared.analysed, prepared.index, name, by_type)


def _back_edges(values: Values, headers: frozenset[int]) -> Iterator[Edge]:
    """The back edges of the loops ``headers``."""
    for shape in loop_shapes(values) if headers else ():
        if values.graph.points[shape.loop.header].block.address in headers:
            yield from shape.back_edges
