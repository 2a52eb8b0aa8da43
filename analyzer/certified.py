"""Certificates of a solved proof, with records that let the checker follow the code, the caches and alignments.

Words: certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed; the checker tests what they say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from wcet_probe.analyzer.callee_table import CalledFor, CertifiedCallee, demand_met
from wcet_probe.analyzer.certified_callees import with_callees
from wcet_probe.analyzer.facts.control import argument_ranges
from wcet_probe.analyzer.facts.memory import asserted_pointers, followed_words
from wcet_probe.analyzer.followed_caches import is_of_run
from wcet_probe.analyzer.ipet.added_ways import Ways, solved_with_ways
from wcet_probe.analyzer.ipet.annotated import cache_annotations
from wcet_probe.analyzer.ipet.checkable import Checkable, checkable, flow_graph
from wcet_probe.analyzer.ipet.flow_problem import Unit
from wcet_probe.analyzer.ipet.followed_proof import FollowedPairs, followed_solution
from wcet_probe.analyzer.ipet.record_lines import annotation_lines
from wcet_probe.analyzer.prepared import Bounded, Solved
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, cover
from wcet_probe.certificate.kernel.left_behind import callee_of
from wcet_probe.certificate.kernel.records import Graph, demand, existing
from wcet_probe.certificate.machines.saved_words import saving_stores
from wcet_probe.certificate.values.numbers import ANY, Value, number
from wcet_probe.certificate.values.state import Place
from wcet_probe.errors import VerificationError


class Certificates(NamedTuple):
    """The texts of the certificates of a bound, and of the callees that are not expanded, inner ones first."""

    own: tuple[str, str]
    callees: tuple[tuple[str, str], ...] = ()


class _Followed(NamedTuple):
    """Certificates, with what the checker finds: the graph, what holds, and what covers it; None where nothing does."""

    texts: tuple[str, str]
    graph: Graph
    found: Checkable
    coverage: Coverage | None


def certificates(
    request: BoundRequest, stage: Bounded, instructions: Solved, cycles: Solved, listed: Collection[str]
) -> Certificates:
    """The certificates, with the records that let the checker follow the code, the caches and what is aligned.

    There are no such records where memory is known at entry, or a callee is summarised of which the checker does not
    find enough. What caches cost in a run that was followed is told of no node, and unchecked. ``listed`` are the
    assumptions of the bound.
    """
    plain = Certificates((stage.certificate(instructions), stage.certificate(cycles)))
    if request.initial is not None and request.initial.content:
        return plain
    facts, prepared, solved = request.facts, stage.prepared, (instructions, cycles)
    ranges = argument_ranges(facts, request.entry, request.image, stage.parameters)
    arguments: dict[Place, Value] = {
        name: number(one.low, one.low + one.stride * one.steps, one.stride or 1) for name, one in ranges.items()
    }
    arguments |= followed_words(facts, request.image, stage.parameters)
    code = Code(request.image, {one.address: one for one in request.instructions})
    is_separate, summaries = "stack-separation" in listed, prepared.calls.of(prepared.values)
    if not summaries:
        return Certificates(_followed(stage, solved, code, arguments, is_separate=is_separate).texts)
    if prepared.values.saving or facts.calls or facts.recursions or facts.given:
        return plain

    def texts(known: Code) -> tuple[str, str]:
        found = _followed(stage, solved, known, arguments, is_separate=is_separate)
        coverage = existing(found.coverage, "the caller is not followed")
        demand(is_separate or "stack-separation" not in coverage.assumptions, "stack-separation is not listed")
        return found.texts

    with suppress(VerificationError):
        found = with_callees(code, summaries, request.image.isa.stack_pointer, texts, is_separate=is_separate)
        return Certificates(*found)
    return plain


def certified_callee(stage: Bounded, solved: Mapping[Unit, Solved], code: Code, called: CalledFor) -> CertifiedCallee:
    """The certificates of a callee for all calls that it is ``called`` for, and what it leaves behind.

    Raises:
        VerificationError: the checker does not find what it leaves behind.
        UnmetError: it calls another one for more than that was certified for.
    """
    both = solved["instructions"], solved["cycles"]
    arguments: dict[Place, Value] = dict.fromkeys(sorted(called.unknown), ANY)
    found = _followed(stage, both, code, arguments, is_separate=called.is_separate, escapes=True)
    coverage = existing(None if found.found.excluded else found.coverage, "the callee is not followed")
    bounds: dict[str, int] = {unit: one.solution.certified for unit, one in solved.items()}
    callee = callee_of(code, found.graph, found.found.invariants, coverage, bounds)
    return CertifiedCallee(callee, found.texts, is_separate="stack-separation" in coverage.assumptions)


def _followed(
    stage: Bounded,
    solved: tuple[Solved, Solved],
    code: Code,
    arguments: Mapping[Place, Value],
    *,
    is_separate: bool,
    escapes: bool = False,
) -> _Followed:
    """Certificates with all that the checker can follow.

    Raises:
        UnmetError: a callee is called for more than it was certified for.
    """
    request, (instructions, cycles) = stage.request, solved
    keeps = bool(stage.prepared.values.saving)
    find = partial(
        checkable,
        image=request.image,
        instructions=request.instructions,
        arguments=arguments,
        keeps_saved=keeps,
        is_separate=is_separate,
        callees=code.callees,
        escapes=escapes,
    )
    found = find(instructions.problem)
    if found.excluded and (more := _with_ways((instructions, cycles), found.excluded)):
        (instructions, cycles), found = more, find(more[0].problem)
    demand_met(found.unmet)
    graph = flow_graph(instructions.problem, found.excluded)
    is_traced = bool(request.target.icache or request.target.dcache or request.target.unaligned)
    followed: Iterable[str] = ()
    coverage = None
    try:
        saving = saving_stores(code.image, code.instructions) if keeps else {}
        said = Said(found.invariants, *found.besides)
        coverage = cover(code, graph, said, arguments, is_separate=is_separate, saving=saving, escapes=escapes)
    except VerificationError:
        followed = (f"unchecked {node.name}" for node in cycles.problem.nodes if is_traced)
    if coverage is not None and (is_of_run(stage) or (escapes and (request.target.icache or request.target.dcache))):
        followed = (f"unchecked {node.name}" for node in cycles.problem.nodes)
    elif coverage is not None:
        pairs = FollowedPairs(code, graph, found.invariants, coverage)
        instructions = _by_followed_pairs(instructions, pairs)
        if not is_traced or (code.callees and (request.target.icache or request.target.dcache)):
            cycles = _by_followed_pairs(cycles, pairs)
        else:
            pairs = replace(pairs, graph=flow_graph(cycles.problem, found.excluded))
            cycles, followed = _annotated(stage, cycles, pairs)
    texts = stage.certificate(instructions, found.lines()), stage.certificate(cycles, followed)
    return _Followed(texts, graph, found, coverage)


def _annotated(stage: Bounded, cycles: Solved, pairs: FollowedPairs) -> tuple[Solved, Iterable[str]]:
    """The flow problem in cycles, and what is said of caches and of what is aligned."""
    request, lines = stage.request, stage.prepared.data.lines
    assumed = lines.assumed if lines else frozenset[int]()
    annotated = cache_annotations(
        cycles.problem,
        cycles.solution,
        pairs,
        costs={one.address: cost for one, cost in zip(request.instructions, request.costs, strict=True)},
        target=request.target,
        asserted=asserted_pointers(request.facts, stage.parameters, request.image, request.sources),
        counted=stage.counted(),
        crosses_no_line=assumed.__contains__,
    )
    return Solved(annotated.problem, annotated.solution), annotation_lines(annotated.annotations)


def _with_ways(solved: tuple[Solved, Solved], ways: Ways) -> tuple[Solved, Solved] | None:
    """The flow problems with ways that the checker cannot exclude, if both bounds stay what they are."""
    found = [solved_with_ways(one.problem, one.solution, ways) for one in solved]
    first, second = (one and Solved(*one) for one in found)
    return (first, second) if first and second else None


def _by_followed_pairs(solved: Solved, pairs: FollowedPairs) -> Solved:
    found = followed_solution(solved.problem, solved.solution, pairs.unfollowed)
    return solved if found is None else replace(solved, solution=found)
