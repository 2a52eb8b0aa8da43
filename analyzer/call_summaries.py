"""Calls that are not expanded: what is proved of a callee once, and charged where it is called.

Where each call path has its own blocks, a program with a call tree of depth n has 2^n of them. Above a number of blocks
a callee is therefore analysed by itself, for a caller of which next to nothing is known: its effect on the caller's
state (`values.call_effects`), and its bound, which holds for each call.

Words: summary, context (docs/explanation/glossary.md).

*Soundness:* the callee's bound holds for every state at its entry, whatever the caches hold; its assumptions are those
of the whole bound. A callee leaves the caches in any state, so that nothing is known to stay in them over a call: where
a graph has such calls, every fetch and data access is charged as a miss with a write-back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wcet_probe.analyzer.callee_table import CalledFor, CertifiedCallee
from wcet_probe.analyzer.dcache.misses import DataMisses, data_misses
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.binding import Analysed
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.graph.returning import returning_functions
from wcet_probe.analyzer.graph.supergraph import Edge, Supergraph
from wcet_probe.analyzer.icache.fetches import FetchMisses, fetched_lines
from wcet_probe.analyzer.ipet.flow_problem import Unit
from wcet_probe.analyzer.kept_lines import Footprint, Kept
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.recursive_calls import TreeCost
from wcet_probe.analyzer.values.execution.call_effects import CallKey, Effect, UnsummarisedError, plain_call
from wcet_probe.analyzer.values.properties.entry_registers import RegisterBytes, register_bytes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.certificate.kernel.coverage import Code
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.proof import Assumption, LoopBound, LoopClaim
from wcet_probe.model.target import Target

_MOST_EXACT = 2


@dataclass(frozen=True, slots=True)
class CallSummary:
    """What is proved of a callee, for one `CallKey`.

    Attributes:
        effect: on the state of its caller.
        most: of each unit in one call, from its first instruction on until it has returned.
        assumptions: what that rests on.
        loops: its loops and those of what it calls, as in the graph of its own.
        claims: what runs are held against.
        inner: the calls that were not expanded in it.
        deciding: the bytes of registers at entry that take part in what it does, see `values.entry_registers`.
        open_loops: its own that have no bound, by the address of the header: then ``most`` is empty.
        analysed: its loops as facts speak of them.
        indirect: targets of its indirect branches and calls, by their address.
        trees: of a function that calls itself, what its calls cost in each unit; ``most`` is then of a call from
            outside, beside what each execution costs. Else empty.
        footprint: the lines that it fetches and accesses; None where nothing is known of them.
        certify: makes certificates of it, where the checker knows its own callees; None where nothing can.
        keeping: what it costs in cycles beside the misses on lines that are kept; None where nothing better is known
            than ``most``.
    """

    effect: Effect
    most: Mapping[Unit, int]
    assumptions: tuple[Assumption, ...]
    loops: tuple[LoopBound, ...]
    claims: tuple[LoopClaim, ...]
    inner: frozenset[CallKey]
    deciding: RegisterBytes
    open_loops: tuple[int, ...] = ()
    analysed: Analysed | None = None
    indirect: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    trees: Mapping[Unit, TreeCost] = field(default_factory=dict)
    footprint: Footprint | None = None
    keeping: Callable[[Kept], CallCost] | None = field(default=None, compare=False, repr=False)
    certify: Callable[[Code, CalledFor], CertifiedCallee] | None = field(default=None, compare=False, repr=False)

    def cost(self, unit: Unit, kept: Kept | None) -> CallCost:
        """What a call costs where lines are ``kept``, their misses apart."""
        if kept is not None and unit == "cycles" and self.keeping is not None:
            return self.keeping(kept)
        return CallCost(self.most[unit], self.trees[unit].each if self.trees else 0)


class CallCost(NamedTuple):
    """Cost of a call; of a function that calls itself, beside ``each`` of its executions."""

    most: int
    each: int = 0


class WiderKeyError(Exception):
    """A recursive call is one for which less is known than for the call that is analysed."""

    def __init__(self, key: CallKey) -> None:
        super().__init__("a recursive call needs a wider key.")
        self.key = key


class LostStackPointerError(AnalysisError):
    """A function is called with a stack pointer that may be no multiple of what the convention asks for."""

    def __init__(self) -> None:
        super().__init__(f"a call of it with a stack pointer that may be no multiple of {STACK_ALIGNMENT_BYTES}.")


@dataclass(slots=True)
class CallSummaries:
    """The summaries of one proof, made when they are asked for.

    Attributes:
        prove: makes one.
        refused: entries of the functions that cannot be analysed by themselves, with the reason.
        unbounded: entries of those of whose loops some have no bound, as far as is known of their callers.
        counted: entries of functions that call themselves, and of whose calls the number is known.
        supposed: of those of them that are being analysed, for what, and what their inner calls are supposed to do.
        points: how many points were analysed for them.
        causes: why those functions were refused, as it was said.

    Keys that differ in registers alone that take no part in what the function does share a summary. Of the others, the
    first `_MOST_EXACT` of a function have each one of its own; those that come later share one, for a caller of which
    less is known than of any so far.

    *Soundness:* what is proved where more registers may hold stack addresses holds where fewer do; for keys that differ
    in nothing that takes part see `values.entry_registers`. Which summary answers a key does not change any more once
    it was asked for.
    """

    prove: Callable[[CallKey], CallSummary]
    refused: dict[int, str] = field(default_factory=dict)
    unbounded: set[int] = field(default_factory=set)
    counted: set[int] = field(default_factory=set)
    supposed: dict[int, tuple[CallKey, CallSummary]] = field(default_factory=dict)
    points: int = 0
    causes: list[AnalysisError] = field(default_factory=list)
    _found: dict[CallKey, CallSummary] = field(default_factory=dict)
    _answers: dict[CallKey, CallKey] = field(default_factory=dict)
    _asked: dict[CallKey, list[CallKey]] = field(default_factory=dict)

    def effect(self, key: CallKey) -> Effect:
        """The effect of a call.

        Raises:
            UnsummarisedError: the callee cannot be analysed by itself.
        """
        return self.summary(key).effect

    def summary(self, key: CallKey) -> CallSummary:
        """The summary for ``key``.

        Raises:
            UnsummarisedError: the callee cannot be analysed by itself.
            WiderKeyError: it is being analysed, for calls of which more is known.
        """
        if key.target in self.supposed:
            asked, summary = self.supposed[key.target]
            is_less = key.pointers <= asked.pointers and key.below <= asked.below and key.escapes <= asked.escapes
            if not (is_less and key.holds <= asked.holds and key.is_aligned):
                raise WiderKeyError(key)
            return summary
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._answering(key)
        return self._found[answer]

    def indirect(self) -> Mapping[int, frozenset[int]]:
        """The targets of indirect branches and calls that the summaries found, by their address."""
        found: dict[int, frozenset[int]] = {}
        for one in self._found.values():
            for site, targets in one.indirect.items():
                found[site] = found.get(site, frozenset()).union(targets)
        return found

    def _answering(self, key: CallKey) -> CallKey:
        """The key of the summary that answers ``key``, which is made if it is not there."""
        if key.target in self.refused:
            raise UnsummarisedError(key.target, self.refused[key.target])
        asked = self._asked.setdefault(key._replace(pointers=frozenset(), below=frozenset()), [])
        alike = self._alike(key, asked)
        if alike is not None:
            self._check_loops(alike)
            return alike
        shared = key
        if len(asked) >= _MOST_EXACT:
            pointers = key.pointers.union(*(one.pointers for one in asked))
            shared = key._replace(pointers=pointers, below=key.below.union(*(one.below for one in asked)))
        asked.append(shared)
        for tried in dict.fromkeys((shared, key)):
            try:
                if tried not in self._found:
                    self._found[tried] = self.prove(tried)
            except AnalysisError as error:
                if tried == key:
                    self.refused[key.target] = str(error)
                    self.causes.append(error)
                    raise UnsummarisedError(key.target, str(error)) from error
                continue
            if self._found[tried].open_loops:
                if tried != key:
                    continue  # of its own callers more may be known
                asked.append(key)
                self._check_loops(key)
            return tried
        raise AssertionError("the last one that is tried is the key itself.")

    def _alike(self, key: CallKey, others: Iterable[CallKey]) -> CallKey | None:
        """One of ``others`` with a summary that differs from ``key`` in nothing that takes part, or None."""
        for one in others:
            known = self._found.get(one)
            differing = one.pointers ^ key.pointers | one.below ^ key.below
            if known is not None and known.deciding.isdisjoint(register_bytes(differing)):
                return one
        return None

    def _check_loops(self, key: CallKey) -> None:
        """A function is expanded once where loops of it have no bound in its summary for ``key``."""
        if self._found[key].open_loops and key.target not in self.unbounded:
            self.unbounded.add(key.target)
            raise UnsummarisedError(key.target, "a loop of it has no bound.")

    def on(self, values: Values, edge: Edge) -> Iterator[CallSummary]:
        """The summaries of the calls that stand on ``edge``."""
        for call in values.edges[edge].calls:
            yield self.summary(call.key)

    def of(self, values: Values) -> Mapping[CallKey, CallSummary]:
        """The summaries of all calls in the graph, and of those in them."""
        todo = [call.key for one in values.edges.values() for call in one.calls]
        found: dict[CallKey, CallSummary] = {}
        while todo:
            key = todo.pop()
            if key not in found:
                found[key] = self.summary(key)
                todo += sorted(found[key].inner, key=_order)
        return {key: found[key] for key in sorted(found, key=_order)}


def _order(key: CallKey) -> tuple[object, ...]:
    return key.target, sorted(key.pointers), key.escapes, sorted(key.below), key.is_aligned, key.holds


def may_summarise(facts: Facts) -> bool:
    """Whether ``facts`` hold for each callee by itself, and say nothing of a sum over calls.

    *Soundness:* a sum over the blocks of several functions would lack those of the callees.
    """
    others = replace(facts, file="", loops=(), arguments=(), recursions=(), calls=(), given=(), parameters={})
    return others == Facts(parameters={}) and all(loop.total is None for loop in facts.loops)


def has_summaries(values: Values) -> bool:
    """Whether some call in the graph of ``values`` is not expanded."""
    return any(one.calls for one in values.edges.values())


def merged_claims(claims: Iterable[LoopClaim]) -> tuple[LoopClaim, ...]:
    """One claim for each loop that runs tell from its copies wherever it is claimed: the greatest."""
    found: dict[str, LoopClaim] = {}
    for claim in claims:
        known = found.get(claim.loop.name, claim)
        greater = claim if claim.max_header > known.max_header else known
        found[claim.loop.name] = replace(greater, is_told=known.is_told and claim.is_told)
    return tuple(claim for claim in found.values() if claim.is_told)


def merged_loops(loops: Iterable[LoopBound]) -> tuple[LoopBound, ...]:
    """One bound for each loop, where a callee was analysed for several callers: the greatest.

    *Soundness:* a total is told only where all tell one.
    """
    found: dict[str, LoopBound] = {}
    for one in loops:
        known = found.get(one.name, one)
        greater = one if one.max > known.max else known
        totals = [each.total for each in (known, one) if each.total is not None]
        found[one.name] = replace(greater, total=max(totals) if len(totals) == 2 else None)
    return tuple(found.values())


def open_loops(summaries: Iterable[CallSummary]) -> tuple[int, ...]:
    """The headers of all loops without a bound of ``summaries``."""
    return tuple(sorted({header for one in summaries for header in one.open_loops}))


def every_fetch_misses(values: Values, target: Target) -> FetchMisses:
    """The misses of an instruction cache of which nothing is known.

    *Soundness:* a line is missed once in a block, as nothing else goes to the cache there.
    """
    if target.icache is None or target.unified_cache:
        return FetchMisses({}, {}, {})
    line_bytes = target.icache.line_bytes
    points = values.graph.points
    return FetchMisses(
        {index: len(fetched_lines(points[index].block.instructions, line_bytes)) for index in values.states}, {}, {}
    )


def every_access_misses(values: Values, target: Target, pointers: PointerFacts) -> DataMisses:
    """The waiting for a data cache of which nothing is known: a fill, a write-back and a single write for each line."""
    config, memory = target.dcache, target.memory
    if config is None:
        return data_misses(values, target, pointers)
    lines = SymbolicBlocks(values, config, pointers)
    fill = memory.line_cycles(config.line_bytes) * (2 if config.write_back else 1)
    regions = [max(region.read_cycles.value, region.write_cycles.value) for region in memory.regions]
    each = fill + memory.single_cycles + max(regions, default=0)
    waiting = {}
    for index in values.states:
        accesses = sum(len(pieces) for pieces in lines.pieces[index])
        fetches = 0
        if target.unified_cache:
            instructions = values.graph.points[index].block.instructions
            fetches = sum(len(fetched_lines((instruction,), config.line_bytes)) for instruction in instructions)
        waiting[index] = accesses * each + fetches * fill
    return DataMisses(waiting, {}, (), (), lines)


def resolved_callees(  # noqa: PLR0917  the binary, the entry, and what is known of both
    calls: CallSummaries,
    image: Image,
    lifter: Lifter,
    entry: Symbol,
    indirect: dict[int, tuple[int, ...]],
    asserted: Container[int],
    graph_of: Callable[..., Supergraph],
) -> frozenset[int]:
    """The functions with indirect branches or calls that can be summarised; their targets are added to ``indirect``.

    Else they would be expanded, and all their callers with them, until their targets are known.

    *Soundness:* a summary shows of its own branches that all targets are known. What stands in ``indirect`` gives edges
    only, and the targets of whatever is expanded are looked for as if nothing had been known.
    """
    found = frozenset[int]()
    while returning_functions(image, lifter, entry.address, indirect, ()).branching:
        more = graph_of().summarised.difference(found)
        for target in sorted(more):
            calls.effect(plain_call(target, lifter))
        known = {
            site: tuple(sorted(targets.union(indirect.get(site, ()))))
            for site, targets in calls.indirect().items()
            if site not in asserted
        }
        if not more and known.items() <= indirect.items():
            break
        found |= more
        indirect.update(known)
    return found
