"""What is proved of one function: how it is prepared, and of a callee that is not expanded what its callers charge.

Words: summary, bound (docs/explanation/glossary.md).

*Soundness:* a summary holds for every call that its key covers and that meets its assumptions; see `call_effects` for
what a call does to its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from wcet_probe.analyzer.assumptions import assumed_data, assumptions, stack_place
from wcet_probe.analyzer.call_summaries import (
    CallCost,
    CallSummary,
    LostStackPointerError,
    every_access_misses,
    every_fetch_misses,
    has_summaries,
)
from wcet_probe.analyzer.certified import certified_callee
from wcet_probe.analyzer.dcache.footprints import KeptLines, Strays
from wcet_probe.analyzer.dcache.misses import DataMisses, data_misses
from wcet_probe.analyzer.dcache.string_transfers import refuse_string_transfers
from wcet_probe.analyzer.dcache.unaligned_accesses import with_unaligned_accesses
from wcet_probe.analyzer.facts.binding import parameter_values
from wcet_probe.analyzer.facts.call_fields import through_assumptions
from wcet_probe.analyzer.facts.memory import pointer_facts
from wcet_probe.analyzer.graph.returning import function_from
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.icache.fetches import FetchMisses, fetch_misses
from wcet_probe.analyzer.ipet.flow_problem import UNITS, Unit
from wcet_probe.analyzer.kept_lines import Kept, without_misses
from wcet_probe.analyzer.loops.infeasible_pairs import infeasible_edge_pairs
from wcet_probe.analyzer.loops.loop_sites import analysed_code
from wcet_probe.analyzer.prepared import Bounded, Prepared, Solved, infeasible_constraint
from wcet_probe.analyzer.recursive_calls import expected_calls
from wcet_probe.analyzer.recursive_summaries import counted_summary
from wcet_probe.analyzer.request import BoundRequest, GivenBound
from wcet_probe.analyzer.resolved_values import ProofWork, resolved_values
from wcet_probe.analyzer.values.execution.call_effects import CallKey, Effect, effect_of
from wcet_probe.analyzer.values.properties.constant_stores import refuse_constant_stores
from wcet_probe.analyzer.values.properties.entry_registers import RegisterBytes, deciding_registers, register_bytes
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Symbol
from wcet_probe.model.proof import Assumption, TypeBound


def calls_told(work: ProofWork, function: str) -> int | None:
    """How many calls of a function somebody speaks of."""
    return expected_calls(work.request.facts, work.index, parameters_of(work.request), function)


def parameters_of(request: BoundRequest) -> Mapping[str, int]:
    """The values of the parameters that facts speak of, by name."""
    return parameter_values(request.facts, request.parameters, request.image)


def prepare_function(
    work: ProofWork, entry: Symbol, called: CallKey | None, progress: Callable[[str], None]
) -> Prepared:
    """The function at ``entry`` up to its flow problem; ``called`` tells a callee what its callers' state is.

    Raises:
        AnalysisError, UsageError: as `bound.prepare`.

    *Soundness:* as said of `values` and `infeasible_pairs`.
    """
    request, index = work.request, work.index
    progress(f"following the values of {entry.name}")
    parameters = parameters_of(request)
    values = resolved_values(work, entry, called, parameters)
    if called is not None:
        refuse_constant_stores(request.image, values)  # nobody sees a callee's accesses who has its summary
    refuse_string_transfers(request.image, values, request.target, work.costs)
    progress("bounding the loops")
    infeasible_pairs = tuple(
        infeasible_constraint(number, each) for number, each in enumerate(infeasible_edge_pairs(values))
    )
    analysed = analysed_code(request.image, values, work.lifter.cut)
    cache = request.target.dcache
    asserted = pointer_facts(request.facts, index, analysed, parameters, cache.line_bytes if cache else None)
    if has_summaries(values):
        fetches = every_fetch_misses(values, request.target)
        bare = every_access_misses(values, request.target, asserted)
    else:
        icache = None if request.target.unified_cache else request.target.icache
        fetches = fetch_misses(values, loop_shapes(values), icache) if icache else FetchMisses({}, {}, {})
        bare = data_misses(values, request.target, asserted)

    def hits(kept: KeptLines, strays: Strays) -> DataMisses:
        found = without_misses(values, request.target, bare, kept, strays)
        return with_unaligned_accesses(found, values, request.target, asserted, work.costs)

    data = with_unaligned_accesses(bare, values, request.target, asserted, work.costs)
    execution = work.execution_of(called)
    parts = request, values, index, analysed, infeasible_pairs, fetches, data, work.calls, work.costs, execution
    return Prepared(*parts, is_callee=called is not None, hits=hits)


def callee_summary(work: ProofWork, key: CallKey, progress: Callable[[str], None]) -> CallSummary:
    """What is proved of a callee by itself; where loops have no bound, or by the width of a type only, which those are.

    Raises:
        AnalysisError: nothing is, or its stack pointer is not surely aligned or given back, or it makes a return
            address of its own.

    *Soundness:* what facts say of arguments they say of the analysed entry only.
    """
    if not key.is_aligned:
        raise LostStackPointerError
    request = replace(work.request, facts=replace(work.request.facts, arguments=()))
    given = work.request.given.get(key.target)
    if given is not None:
        return _given(replace(work, request=request), key, given, progress)
    entry, own = function_from(request.image, key.target), replace(work, request=request)
    if key.target in work.calls.counted:
        return counted_summary(
            work.calls,
            key,
            calls_told(work, entry.name) or 1,
            register_bytes(Location("register", one.offset, one.size_bytes) for one in work.lifter.registers.values()),
            lambda wanted: prepare_function(own, entry, wanted, progress),
            lambda values: _effect(work, values),
            lambda stage: all_assumptions(stage, ()),
        )
    prepared = prepare_function(own, entry, key, progress)
    values = prepared.values
    if any(call.key.target in work.calls.counted for one in values.edges.values() for call in one.calls):
        raise AnalysisError("it calls a function that calls itself.")
    stage, solved, missing = _solved(prepared, request.parameters)
    calls = [call for one in values.edges.values() for call in one.calls]
    return CallSummary(
        effect=_effect(work, values),
        most={unit: one.solution.certified for unit, one in solved.items()},
        assumptions=all_assumptions(stage, ()) if stage else (),
        loops=stage.loops.loops if stage else (),
        claims=stage.loops.claims if stage else (),
        inner=frozenset(call.key for call in calls),
        deciding=_deciding(work, values),
        indirect=values.indirect,
        open_loops=missing,
        analysed=prepared.analysed,
        footprint=stage.prepared.footprint if stage else None,
        keeping=_keeping(stage, solved["cycles"].solution.certified) if stage else None,
        certify=partial(certified_callee, stage, solved) if stage else None,
    )


def _keeping(stage: Bounded, most: int) -> Callable[[Kept], CallCost]:
    """What a callee costs beside the misses on lines that are kept, or at ``most``.

    *Soundness:* as said of `kept_lines`; where it has strays, ``most`` does not count the misses that they cause later.
    """
    footprint = stage.prepared.footprint

    @cache
    def cost(kept: Kept) -> CallCost:
        without = stage.keeping(kept).solved("cycles", counted=False).solution.certified
        return CallCost(without if footprint is None or footprint.has_strays(kept) else min(most, without))

    return cost


def _given(work: ProofWork, key: CallKey, given: GivenBound, progress: Callable[[str], None]) -> CallSummary:
    """The summary of a callee whose bound is given: its effect is proved here, whatever its loops.

    Raises:
        AnalysisError: as `callee_summary`.

    *Soundness:* the certificate holds for any state at its entry that meets its assumptions. What its effect rests on
    besides is assumed, too; loops of callees need no bound for that.
    """
    request = work.request
    entry = function_from(request.image, key.target)
    progress(f"following the values of {entry.name}, whose bound is given")
    values = resolved_values(work, entry, key, parameters_of(request))
    refuse_constant_stores(request.image, values)
    inner = work.calls.of(values).values()
    own = assumptions(request.facts, request.image, request.target, values, None)
    return CallSummary(
        effect=_effect(work, values),
        most=given.most,
        assumptions=(*given.assumptions, *own, *(one for each in inner for one in each.assumptions)),
        loops=(),
        claims=(),
        inner=frozenset(),
        deciding=_deciding(work, values),
        indirect=values.indirect,
    )


def _deciding(work: ProofWork, values: Values) -> RegisterBytes:
    """The registers at entry that take part in what a callee with these values does."""
    return deciding_registers(
        values,
        lambda edge: [
            (one.deciding, [result.location for result in one.effect.results]) for one in work.calls.on(values, edge)
        ],
    )


def _effect(work: ProofWork, values: Values) -> Effect:
    """What a callee with these values does to the state of its caller."""
    return effect_of(
        values.terms,
        [one.state for edge, one in values.edges.items() if edge.target == EXIT],
        (access for own in values.accesses.values() for access in own),
        (call for one in values.edges.values() for call in one.calls),
        values.registers[work.request.target.isa.stack_pointer],
        escapes=values.stack_escapes,
        held=values.held,
        saving=frozenset(address for address, _ in values.saving),
    )


def _solved(
    prepared: Prepared, given: Mapping[str, int]
) -> tuple[Bounded | None, Mapping[Unit, Solved], tuple[int, ...]]:
    """The flow problems of a callee, solved; or the headers of the loops for which that cannot be done."""
    try:
        stage = prepared.bounded(given)
    except AnalysisError as error:
        if not error.headers:
            raise
        return None, {}, error.headers
    solved = {unit: stage.solved(unit, counted=False) for unit in UNITS}
    by_type = {one.loop for one in of_type(stage, tuple(solved.values()))}
    if by_type:  # the calls may tell better
        return None, {}, tuple(sorted(loop.address for loop in stage.loops.loops if loop.name in by_type))
    return stage, solved, ()


def of_type(stage: Bounded, solved: Sequence[Solved]) -> tuple[TypeBound, ...]:
    """The loops that nothing but the width of a counter bounds, of those that something ``solved`` rests on."""
    return tuple(one for one in stage.loops.by_type if any(each.rests_on(one) for each in solved))


def all_assumptions(stage: Bounded, callees: Iterable[CallSummary]) -> tuple[Assumption, ...]:
    """Those of the caller and of ``callees``; where two with one id say something else, both.

    A fact of a loop that bounds one of the binary is told as such, though sums rest on it as well.
    """
    bounding = {one.id for one in stage.loops.assumptions}
    own = (
        *assumptions(
            stage.request.facts,
            stage.request.image,
            stage.request.target,
            stage.prepared.values,
            stage.prepared.data.lines,
        ),
        *assumed_data(stage.request),
        *stack_place(told_stack_pointer(stage)),
        *through_assumptions(
            stage.request.facts,
            stage.request.image,
            stage.request.instructions,
            stage.request.sources,
            stage.prepared.analysed.functions,
        ),
        *stage.loops.assumptions,
        *(one for one in stage.asserted.assumptions if one.id not in bounding),
    )
    return tuple(dict.fromkeys((*own, *(one for each in callees for one in each.assumptions))))


def told_stack_pointer(stage: Bounded) -> int | None:
    """Its value at entry where that is assumed, and something rests on it: only lines of data do."""
    return stage.prepared.stack_pointer if stage.request.target.dcache is not None else None
