"""Certificates of a solved proof, with records that let the checker follow the code, the caches and alignments.

Words: certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed; the checker tests what they say.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from wcet_probe.analyzer.assumptions import assumptions
from wcet_probe.analyzer.facts.control import argument_ranges
from wcet_probe.analyzer.facts.memory import asserted_pointers, followed_words
from wcet_probe.analyzer.followed_caches import is_of_run
from wcet_probe.analyzer.ipet.added_ways import Ways, solved_with_ways
from wcet_probe.analyzer.ipet.annotated import cache_annotations
from wcet_probe.analyzer.ipet.checkable import checkable, flow_graph
from wcet_probe.analyzer.ipet.followed_proof import FollowedPairs, followed_solution
from wcet_probe.analyzer.ipet.record_lines import annotation_lines
from wcet_probe.analyzer.prepared import Bounded, Solved
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.certificate.kernel.coverage import Code, Said, cover
from wcet_probe.certificate.machines.saved_words import saving_stores
from wcet_probe.certificate.values.numbers import Value, number
from wcet_probe.certificate.values.state import Place
from wcet_probe.errors import VerificationError


def certificates(request: BoundRequest, stage: Bounded, instructions: Solved, cycles: Solved) -> tuple[str, str]:
    """The certificates, with the records that let the checker follow the code, the caches and what is aligned.

    The checker knows no calls that lead behind themselves: where some are summarised there are no such records. Nor are
    there where memory is known at entry. What caches cost in a run that was followed is told of no node, and unchecked.
    """
    is_known = request.initial is not None and request.initial.content
    if stage.prepared.calls.of(stage.prepared.values) or is_known:
        return stage.certificate(instructions, ()), stage.certificate(cycles)
    ranges = argument_ranges(request.facts, request.entry, request.image, stage.parameters)
    arguments: dict[Place, Value] = {
        name: number(one.low, one.low + one.stride * one.steps, one.stride or 1) for name, one in ranges.items()
    }
    arguments |= followed_words(request.facts, request.image, stage.parameters)
    keeps = bool(stage.prepared.values.saving)
    values, lines = stage.prepared.values, stage.prepared.data.lines
    listed = {one.id for one in assumptions(request.facts, request.image, request.target, values, lines)}
    find = partial(
        checkable,
        image=request.image,
        instructions=request.instructions,
        arguments=arguments,
        keeps_saved=keeps,
        is_separate="stack-separation" in listed,
    )
    found = find(instructions.problem)
    if found.excluded and (more := _with_ways((instructions, cycles), found.excluded)):
        (instructions, cycles), found = more, find(more[0].problem)
    code = Code(request.image, {one.address: one for one in request.instructions})
    graph = flow_graph(instructions.problem, found.excluded)
    is_traced = bool(request.target.icache or request.target.dcache or request.target.unaligned)
    try:
        saving = saving_stores(code.image, code.instructions) if keeps else {}
        separate, said = "stack-separation" in listed, Said(found.invariants, *found.besides)
        coverage = cover(code, graph, said, arguments, is_separate=separate, saving=saving)
    except VerificationError:
        unchecked = (f"unchecked {node.name}" for node in cycles.problem.nodes if is_traced)
        return stage.certificate(instructions, found.lines()), stage.certificate(cycles, unchecked)
    if is_of_run(stage):
        unchecked = (f"unchecked {node.name}" for node in cycles.problem.nodes)
        return stage.certificate(instructions, found.lines()), stage.certificate(cycles, unchecked)
    pairs = FollowedPairs(code, graph, found.invariants, coverage)
    instructions = _by_followed_pairs(instructions, pairs)
    if not is_traced:
        cycles = _by_followed_pairs(cycles, pairs)
        return stage.certificate(instructions, found.lines()), stage.certificate(cycles)
    assumed = lines.assumed if lines else frozenset[int]()
    annotated = cache_annotations(
        cycles.problem,
        cycles.solution,
        replace(pairs, graph=flow_graph(cycles.problem, found.excluded)),
        costs={one.address: cost for one, cost in zip(request.instructions, request.costs, strict=True)},
        target=request.target,
        asserted=asserted_pointers(request.facts, stage.parameters, request.image, request.sources),
        counted=stage.counted(),
        crosses_no_line=assumed.__contains__,
    )
    cycles = Solved(annotated.problem, annotated.solution)
    return stage.certificate(instructions, found.lines()), stage.certificate(
        cycles, annotation_lines(annotated.annotations)
    )


def _with_ways(solved: tuple[Solved, Solved], ways: Ways) -> tuple[Solved, Solved] | None:
    """The flow problems with ways that the checker cannot exclude, if both bounds stay what they are."""
    found = [solved_with_ways(one.problem, one.solution, ways) for one in solved]
    first, second = (one and Solved(*one) for one in found)
    return (first, second) if first and second else None


def _by_followed_pairs(solved: Solved, pairs: FollowedPairs) -> Solved:
    found = followed_solution(solved.problem, solved.solution, pairs.unfollowed)
    return solved if found is None else replace(solved, solution=found)
