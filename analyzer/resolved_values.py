"""The values of a function on the graph that they resolve: indirect branches, dead ends, paths of pointers.

Words: control-flow reconstruction, fixpoint (docs/explanation/glossary.md).

*Soundness:* what is returned is a fixpoint over a graph whose indirect branches have all targets that the values of
that very graph tell, or a flow fact asserts; what cannot be resolved so is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from wcet_probe.analyzer.call_summaries import (
    CallSummaries,
    LostStackPointerError,
    has_summaries,
    resolved_callees,
)
from wcet_probe.analyzer.facts.control import argument_ranges, asserted_targets, recursion_depths
from wcet_probe.analyzer.facts.memory import used_words, word_ranges
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.graph.expansion import FEW, FEWEST, MANY_SUMMARISED, MOST_EXPANDED, MOST_VISITS
from wcet_probe.analyzer.graph.node_splitting import reducible
from wcet_probe.analyzer.graph.supergraph import (
    Context,
    Supergraph,
    TooManyPointsError,
    Unwinding,
    build_supergraph,
)
from wcet_probe.analyzer.ipet.costs import Costs, check_chargeable
from wcet_probe.analyzer.loops.abstract_execution import executed_nests
from wcet_probe.analyzer.loops.induction import analyze_with_counters
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.execution.call_effects import CallKey, UnsummarisedError, plain_call
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.properties.dead_ends import returning_part
from wcet_probe.analyzer.values.properties.recursion import Followed, UnboundedRecursionError
from wcet_probe.analyzer.values.properties.unknown_targets import (
    check_resolved,
    check_targets,
    grown_targets,
    have_one_each,
    too_large_for_targets,
)
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.trace_partitioning import partitioned, pointer_paths
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Symbol

_FEWER, _NESTS = 40, 10
"""To tell where stores go nests are followed for so many times fewer instructions than for a bound, but more nests."""


@dataclass(frozen=True, slots=True)
class ProofWork:
    """What is shared by the proofs of a function and of the callees that are not expanded.

    Attributes:
        request: what is to be proved.
        lifter: p-code of the image.
        index: the sources' statements.
        calls: summaries of callees, as far as they were made.
        costs: of instructions, of the target.
        constants: execution of code whose operands are constants.
        may_summarise: whether a callee may be analysed apart.
        analyze: the fixpoint of values; it may remember what it was asked before.
    """

    request: BoundRequest
    lifter: Lifter
    index: SourceIndex
    calls: CallSummaries
    costs: Costs
    constants: ConstantExecution
    may_summarise: bool
    analyze: Callable[..., Values]

    def execution_of(self, called: CallKey | None) -> ConstantExecution:
        """The execution of the analysed function, or of a callee, at whose entry memory holds something else."""
        return self.constants if called is None else self.constants.without_memory()


def resolved_values(work: ProofWork, entry: Symbol, called: CallKey | None, parameters: Mapping[str, int]) -> Values:
    """Values of the function ``entry``, with as few calls expanded as must be.

    Args:
        work: what all proofs of the request share.
        entry: the function.
        called: by whom it is called with what, for a callee that is analysed apart.
        parameters: of facts.

    Raises:
        AnalysisError: an instruction, target or recursion cannot be resolved; the message names it. Where the graph is
            too large and functions could not be analysed once for all their calls, for an indirect branch or call
            without known targets, or a recursion without a bound, that is what it names.

    *Soundness:* as said of the module.
    """
    while True:
        calls = work.calls
        known = _Expanded(frozenset(calls.refused) if work.may_summarise else None, frozenset(calls.unbounded))
        try:
            return _values_with(work, entry, called, parameters, known)
        except TooManyPointsError as error:
            sites = sorted({site for cause in calls.causes for site in cause.sites})
            if sites:
                raise too_large_for_targets(work.request.image, error, sites) from error
            raise next((one for one in calls.causes if isinstance(one, UnboundedRecursionError)), error) from None
        except UnsummarisedError as error:
            # A callee with an open loop, which was too large to be expanded for that, may be refused as well.
            refused, unbounded = calls.refused.keys() - (known.whole or ()), calls.unbounded - known.unbounded
            if work.request.is_trial and isinstance(error.__cause__, LostStackPointerError):
                raise error.__cause__ from None
            if known.whole is None or error.target not in refused | unbounded:
                raise


class _Expanded(NamedTuple):
    """What is expanded: always, None being all; and up to a number of points. See `build_supergraph`."""

    whole: frozenset[int] | None
    unbounded: frozenset[int]


def _values_with(
    work: ProofWork,
    entry: Symbol,
    called: CallKey | None,
    parameters: Mapping[str, int],
    expanded: _Expanded,
) -> Values:
    """Values of the graph, whose indirect branches are resolved by the values of a smaller one."""
    request, lifter, index = work.request, work.lifter, work.index
    image = request.image
    depths = recursion_depths(request.facts, request.image, parameters, index)
    asserted = asserted_targets(request.facts, image, request.instructions, index, request.sources)
    indirect = dict(asserted)
    arguments = argument_ranges(request.facts, request.entry, image, parameters)
    # Without caches nothing hangs on ranges, and each is one assumption more.
    words = word_ranges(used_words(request.facts, has_cache=request.target.dcache is not None), image, parameters)
    costs = work.costs
    sites, followed, unwinding = frozenset[int](), Followed(), dict[tuple[Context, int], int]()
    graph_of = partial(
        build_supergraph,
        image,
        lifter,
        entry,
        indirect,
        depths,
        whole=expanded.whole,
        most=(FEW if work.calls.points < MANY_SUMMARISED else FEWEST) if called else MOST_EXPANDED,
        unbounded=expanded.unbounded,
        given=request.given,
        counted=work.calls.counted - work.calls.refused.keys(),
        # A call that is not expanded leaves caches in any state, so that their bounds would get far worse.
        most_visits=MOST_VISITS if request.target.icache is None and request.target.dcache is None else None,
        unwinding=unwinding,
        opened=followed.opened,
    )

    def analysed(graph: Supergraph, is_enough: Callable[[Values], bool] = lambda _: False) -> Values:
        effect = work.calls.effect
        work.calls.points += len(graph.points) if called else 0
        few = partial(executed_nests, share=_FEWER, nests=_NESTS)
        follow = partial(few, exact=(), execution=work.execution_of(called), effect=effect)
        analyze = work.analyze
        told = image, lifter, graph, arguments, words, effect, called, is_enough, analyze, follow
        # What is constant as long as no store hits it, is not yet known to be that where the call comes to a store.
        returns = request.initial is None or not request.initial.content
        return analyze_with_counters(*told, returns=returns)

    resolved = (
        resolved_callees(work.calls, image, lifter, entry, indirect, asserted, graph_of)
        if expanded.whole is not None
        else frozenset()
    )
    while True:
        graph = _small_enough(partial(graph_of, sites, all_known=False, resolved=resolved), followed, work)
        try:
            values = analysed(
                graph, partial(_tells_all, known=indirect, asserted=asserted, sites=sites, unwinding=unwinding)
            )
        except AnalysisError:
            check_chargeable((point.block for point in graph.points), costs, image)  # says more than p-code does
            raise
        # Each round finds targets that were not known before; more code may bring more values to the same branch.
        grown = grown_targets(values, indirect, asserted)
        unwound = values.unwound.keys() - unwinding.keys()
        if not grown and values.return_sites <= sites and not unwound:
            check_targets(image, graph, values, asserted)
            if followed.deeper(image, values):
                continue
            check_resolved(image, graph, values, asserted)
            if request.keeps_dead_ends:
                return values  # what leads to indirect branches and calls is in it, whatever their targets are
            known = graph_of(sites, followed.depth)
            smaller = reducible(known, image)
            if smaller.dead_ends != graph.dead_ends or len(smaller.edges) < len(graph.edges):
                values = analysed(smaller)
                check_resolved(image, smaller, values, asserted)
            while (graph := returning_part(values)) is not values.graph:
                values = analysed(graph)
            check_chargeable((graph.points[place].block for place in values.states), costs, image)
            paths = pointer_paths(values) if request.target.dcache and not has_summaries(values) else {}
            if paths and len((copied := partitioned(values, paths)).points) > len(values.states):
                values = analysed(copied)
            check_resolved(image, values.graph, values, asserted)  # sharper values may tell what was not known
            return values
        indirect.update({site: tuple(sorted(targets)) for site, targets in grown.items()})
        sites |= values.return_sites
        unwinding |= {place: values.unwound[place] for place in unwound}


def _tells_all(
    values: Values,
    known: Mapping[int, Sequence[int]],
    asserted: Container[int],
    sites: Collection[int],
    unwinding: Unwinding,
) -> bool:
    """Whether the graph is to be made anew, and sharper values would tell nothing else of it.

    Returns are noted where they surely lead, which holds of sharper values, too.
    """
    if grown := grown_targets(values, known, asserted):
        return have_one_each(grown)
    return not values.return_sites.issubset(sites) or not values.unwound.keys() <= unwinding.keys()


def _small_enough(graph_of: Callable[..., Supergraph], followed: Followed, work: ProofWork) -> Supergraph:
    """What ``graph_of`` gives, its loops split; recursion is followed less far where that is too large.

    Raises:
        AnalysisError: it is too large as it is.
    """
    while True:
        try:
            whole = graph_of(depth=followed.depth)
            for target in sorted(whole.summarised):  # who is refused, before the caller is analysed in vain
                work.calls.effect(plain_call(target, work.lifter))
            return reducible(whole, work.request.image)
        except TooManyPointsError:
            if not followed.only_where_reached():
                raise
