"""The whole proof: graph, values, loop bounds, flow facts, IPET, certificate.

Words: bound, IPET, certificate (docs/explanation/glossary.md).

*Soundness:* the bound holds for every execution of the entry function that meets the assumptions; each of them is an
entry of ``Bound.assumptions``. What cannot be resolved is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial

from wcet_probe.analyzer.call_summaries import (
    CallSummaries,
    CallSummary,
    has_summaries,
    may_summarise,
    merged_claims,
    merged_loops,
)
from wcet_probe.analyzer.certified import certificates
from wcet_probe.analyzer.dcache.invariants import access_ranges, idle_facts, register_ranges
from wcet_probe.analyzer.facts.memory import used_words, word_claims
from wcet_probe.analyzer.facts.never_executed import never_executed
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.followed_caches import followed
from wcet_probe.analyzer.function_proof import (
    all_assumptions,
    callee_summary,
    calls_told,
    of_type,
    prepare_function,
    told_stack_pointer,
)
from wcet_probe.analyzer.graph.returning import function_from
from wcet_probe.analyzer.initial_data import proved_with_initial_data, with_initial_data, within_visits
from wcet_probe.analyzer.ipet.costs import cost_table
from wcet_probe.analyzer.kept_lines import kept_of
from wcet_probe.analyzer.loops.abstract_execution import is_decided
from wcet_probe.analyzer.prepared import Bounded, Prepared, Solved
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.resolved_values import ProofWork
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.execution.call_effects import CallKey
from wcet_probe.analyzer.values.execution.repeated_blocks import RepeatedExecution
from wcet_probe.analyzer.values.properties.constant_stores import refuse_constant_stores
from wcet_probe.analyzer.values.properties.recursion import UnboundedRecursionError
from wcet_probe.analyzer.values.remembered import RememberedValues, remember
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.proof import Bound, IdleFact, SavingStore


def prove(
    request: BoundRequest,
    progress: Callable[[str], None] = lambda _: None,
    remembered: RememberedValues | None = None,
) -> Bound:
    """Prove an upper bound of the WCET of ``request.entry``; ``progress`` is told in words what is being done.

    That registers stay where they are saved is assumed only where no bound is found without it but of a type; what
    memory holds at entry is not where none is found with it.

    Raises:
        AnalysisError: no bound can be proved; the message names what stands in the way.
        UsageError: there is no such function, or a flow fact is wrong.

    *Soundness:* as said of the module.
    """
    return proved_with_initial_data(request, lambda one: _proved(one, progress, remembered), progress)


def _proved(request: BoundRequest, progress: Callable[[str], None], remembered: RememberedValues | None) -> Bound:
    """As `prove`, of the question as it is asked."""
    if not request.keeps_saved:
        return prove_prepared(prepare(request, progress, remembered), progress)
    by_type = None
    try:
        by_type = _proved(replace(request, keeps_saved=False, is_trial=True), progress, remembered)
        if not by_type.by_type:
            return by_type
    except AnalysisError:
        progress("once more, where registers stay as they are saved")
    try:
        found = prove_prepared(prepare(request, progress, remembered), progress)
    except AnalysisError:
        if by_type is None:
            raise
        return by_type
    return by_type if by_type is not None and found.by_type else found


def prove_prepared(prepared: Prepared, progress: Callable[[str], None] = lambda _: None) -> Bound:
    """As `prove`, of what is prepared; its accesses are in the order of the points and of the values' accesses.

    Raises:
        AnalysisError, UsageError: as `prove`.

    *Soundness:* as said of the module.
    """
    request = prepared.request
    initial = request.initial.at_entry if request.initial else ()
    progress("solving the flow problem")
    stage = prepared.bounded(request.parameters)
    instructions, (charged, cycles) = stage.solved("instructions"), _solved_cycles(stage)
    values = prepared.values
    accesses = tuple(access_ranges(values, prepared.data.lines, prepared.data.classes))
    summaries = prepared.calls.of(values)
    callees = tuple(summaries.values())
    reached = sorted(values.states)
    points = [values.graph.points[index] for index in reached]
    numbers = {index: number for number, index in enumerate(reached)}
    claimed = (*stage.loops.claims, *(claim for one in callees for claim in one.claims))
    loop_claims = merged_claims(claimed)
    untold = {claim.loop.name for claim in claimed} - {claim.loop.name for claim in loop_claims}
    flow_claims = (*stage.loops.flow_claims, *stage.asserted.claims)
    assumed = all_assumptions(stage, callees)
    ids = {one.id for one in assumed}
    texts = cache(lambda: certificates(request, charged, instructions, cycles, ids))
    used = used_words(request.facts, has_cache=request.target.dcache is not None)
    return Bound(
        entry=request.entry,
        parameters=stage.parameters,
        instructions=instructions.solution.certified,
        cycles=cycles.solution.certified,
        blocks=len(points),
        loops=merged_loops((*(loop for callee in callees for loop in callee.loops), *stage.loops.loops)),
        assumptions=assumed,
        worst_path=tuple(stage.worst_path(instructions)),
        points=tuple((point.block.address, point.context) for point in points),
        accesses=accesses,
        registers=tuple(register_ranges(values, request.target.isa)),
        loop_claims=loop_claims,
        flow_claims=tuple(claim for claim in flow_claims if untold.isdisjoint(claim.loops)),
        certify=lambda: texts().own,
        certify_callees=lambda: texts().callees,
        worst_path_cycles=tuple(stage.worst_path(cycles)),
        unattributed_cycles=cycles.auxiliary_cost,
        graph=stage.graph(instructions),
        words=word_claims(used, request.image, stage.parameters),
        idle_facts=(
            *stage.loops.idle,
            *stage.asserted.idle,
            *idle_facts(accesses, prepared.data.lines, prepared.data.classes),
            *_unused(prepared, summaries),
        ),
        by_type=of_type(stage, (instructions, cycles)),
        initial_data=initial,
        saving_stores=_saving_stores(prepared),
        stack_pointer=told_stack_pointer(stage),
        point_edges=tuple((numbers[edge.source], numbers.get(edge.target)) for edge in values.edges),
        point_ends=tuple(point.block.end_address for point in points),
        summarised=tuple(sorted({function_from(request.image, key.target).name for key in summaries})),
    )


def _solved_cycles(stage: Bounded) -> tuple[Bounded, Solved]:
    """What is charged in cycles and its solution, the better of two where lines may be counted for the whole call.

    That strays evict few lines the checker cannot follow: it is used where calls are not expanded, or tells much.
    """
    cycles, prepared = stage.solved("cycles"), stage.prepared
    is_summarised, found = has_summaries(prepared.values), [(stage, cycles)]
    if is_summarised:
        kept = kept_of(prepared.footprint, prepared.request.target, prepared.stack_pointer)
        better = stage.keeping(kept) if kept is not None else None
    else:
        better = stage.counting() if prepared.counted is not None else None
    _add_solved(found, better)
    _add_solved(found, None if is_summarised else stage.relieved(found[-1][1]))
    run = None if is_summarised else followed(stage)
    _add_solved(found, run)
    least = min(found, key=lambda one: one[1].solution.certified)
    if least[0] is run:
        return least
    most = cycles.solution.certified if is_summarised else cycles.solution.certified * _MUCH
    return least if least[1].solution.certified < most else (stage, cycles)


def _add_solved(found: list[tuple[Bounded, Solved]], better: Bounded | None) -> None:
    """Add the solution of ``better``, if any, to ``found``; where the solver gives it up, what was found stands."""
    if better is not None:
        with suppress(AnalysisError):
            found.append((better, better.solved("cycles")))


def _saving_stores(prepared: Prepared) -> tuple[SavingStore, ...]:
    """The instructions that save registers, where it is assumed that these stay; of all points of ``values``."""
    saving = sorted((address, number) for (address, _), number in prepared.values.saving.items())
    numbers = {each: tuple(number for address, number in saving if address == each) for each, _ in saving}
    return tuple(SavingStore(address, own) for address, own in numbers.items())


def _unused(prepared: Prepared, summaries: Mapping[CallKey, CallSummary]) -> Iterator[IdleFact]:
    """The bounds that are given of functions all of whose calls are expanded, or that are not called."""
    for address, one in prepared.request.given.items():
        if address not in {key.target for key in summaries}:
            why = prepared.calls.refused.get(address, "it is not called, only jumped to, or takes part in recursion.")
            yield IdleFact(one.where, f"{one.function} is not charged by its document: {why.removesuffix('.')}")


def prepare(
    request: BoundRequest,
    progress: Callable[[str], None] = lambda _: None,
    remembered: RememberedValues | None = None,
) -> Prepared:
    """Analyse the values of ``request.entry``, but for those that are ``remembered``.

    Raises:
        AnalysisError: what is to be executed is not known, or with initial data more would be analysed than is worth
            while.
        UsageError: there is no such function, or a flow fact is wrong.

    *Soundness:* as said of `values` and `infeasible_pairs`.
    """
    prepared = with_initial_data(
        request,
        within_visits(lambda one, own: _prepared(one, progress, own or remembered)),
        lambda one: is_decided(one.values, one.constants, one.calls.effect),
    )
    refuse_constant_stores(request.image, prepared.values)
    return prepared


def _prepared(request: BoundRequest, progress: Callable[[str], None], remembered: RememberedValues | None) -> Prepared:
    image = request.image
    known = remembered if remembered and remembered.image is image else remember(image, request.target)
    index = index_sources(request.sources)
    own = known.without(never_executed(request.facts, image, request.instructions, index))
    entry = require_symbol(image, request.entry)
    if not entry.is_function:
        raise UsageError(f"{request.entry} is no function of the image; name one of its functions.")
    work = ProofWork(
        request,
        own.lifter,
        index,
        CallSummaries(
            lambda key: callee_summary(work, key, progress),
            unbounded=own.open_callees if own.is_search else set(),
        ),
        cost_table(request.instructions, request.costs),
        constants=RepeatedExecution(Memory(image), own.lifter, (request.initial and request.initial.entry) or ()),
        may_summarise=request.summaries and may_summarise(request.facts),
        analyze=partial(analyze_values if known is not remembered else own.analyze, keeps_saved=request.keeps_saved),
    )
    for fact in request.facts.given:
        if fact.function not in {one.function for one in request.given.values()}:
            raise UsageError(f"{fact.where}: bound_by is read for functions of an ELF file only; remove it.")
        if not work.may_summarise:
            raise UsageError(
                f"{fact.where}: a call that is charged by a document has no blocks, which runs and facts of the kinds "
                "flow, infeasible, total, pointer, word and lemma need; leave out bound_by, or those."
            )
    while True:
        try:
            return prepare_function(work, entry, None, progress)
        except UnboundedRecursionError as error:
            target = require_symbol(image, error.function).address
            if target in work.calls.refused and target in work.calls.counted:
                why = work.calls.refused[target].removesuffix(".")
                raise UnboundedRecursionError(error.place, error.function, why) from error
            if target in work.calls.counted or calls_told(work, error.function) is None:
                raise
            if not work.may_summarise:
                raise UnboundedRecursionError(error.place, error.function, _NOT_COUNTED) from error
            work.calls.counted.add(target)


_MUCH = Fraction(4, 5)
_NOT_COUNTED = (
    "the number of all its calls is told, and holds for calls that are not expanded: nothing can be run then, nor told "
    "by facts of the kinds flow, infeasible, total, pointer, word and lemma; leave those out, or give max_depth"
)
