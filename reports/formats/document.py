"""The JSON documents: integers, units in the names, no absolute path, no wall clock.

Each document names its ``format`` and ``version``; a key that is added later does not change the version.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePath

from wcet_probe.answer.bounds.gap import Account, observed_executions
from wcet_probe.model.allocator import Allocator, OwnBuild
from wcet_probe.model.image import Image
from wcet_probe.model.measurement import CacheCounts, Measurement, Run
from wcet_probe.model.report import Report, StateCheck, Verdict, Witness
from wcet_probe.model.scenario import ScenarioPlan
from wcet_probe.reports.formats.bound_document import (
    Observations,
    bound_section,
    effects_section,
    formula_section,
    gap_section,
    tool_section,
)
from wcet_probe.reports.formats.listing import code_sections, hex_address, image_section, reached
from wcet_probe.reports.formats.records import Document, hardware, plain, record, target_document
from wcet_probe.sizes import format_size

__all__ = [
    "Document",
    "allocator_document",
    "document",
    "dumps",
    "manifest_document",
    "plain",
    "results_document",
    "scenario_document",
    "target_document",
]


def document(report: Report, account: Account | None = None) -> Document:
    """The document ``wcet-probe-result`` of one answer; with the long ``account`` of its bound, if asked for."""
    bound, seen = report.bound, report.measurement
    code = reached(report.instructions, bound, seen)
    return {
        "format": "wcet-probe-result",
        "version": 1,
        "tool": tool_section(),
        "request": _request(report),
        "command": _command(report, account),
        "allocator": report.allocator.name,
        "target": report.target.name,
        "scenario": report.plan.scenario,
        "heap_bytes": report.heap_bytes,
        "allocator_manifest": manifest_document(report.allocator),
        "target_configuration": target_document(report.target),
        "image": image_section(report.image, code),
        **code_sections(report.image, code, dict(report.allocator.sources)),
        "parameters": plain(report.allocator.values),
        "initial_cache": plain(report.initial_cache),
        "measured_operation": plain(report.plan.measured),
        "state": _state(report.plan, report.checks) | _candidates(report),
        **hardware(report.target),
        "observed": _observed(report.measurement, report.image),
        "witnesses": {unit: _witness(unit, witness) for unit, witness in report.witnesses.items()},
        "cross_check": plain(report.cross_check),
        "no_cross_check": report.no_cross_check or None,
        "bound": bound_section(bound, _observations(report)) if bound else None,
        "no_bound": report.no_bound or None,
        "slack": {unit: getattr(bound, unit) - witness.value(unit) for unit, witness in report.witnesses.items()}
        if bound
        else None,
        "gap": gap_section(account.gaps, bound, account.observed_instructions) if bound and account else None,
        "fact_effects": effects_section(account.effects) if account and account.effects else None,
        "formula": formula_section(account.formula) if account and account.formula else None,
        "verdict": plain(report.verdict),
    }


def results_document(results: Iterable[Document]) -> Document:
    """The document ``wcet-probe-results`` of several answers, in their order."""
    return {"format": "wcet-probe-results", "version": 1, "results": list(results)}


def allocator_document(allocator: Allocator) -> Document:
    """The document ``wcet-probe-allocator``: the manifest; of the sources only the file names."""
    sources = [name for name, _ in allocator.sources]
    own = allocator.own
    rest = {**record(replace(allocator, own=None, found=())), "own": _own_build(own) if own else None}
    del rest["found"]
    found = {"found": [name for name, _ in allocator.found]} if allocator.found else {}
    return {"format": "wcet-probe-allocator", "version": 1, **rest, **found, "sources": sources}


def _own_build(own: OwnBuild) -> Document:
    """How an allocator of one's own is built; of what is linked as it is, a hash."""
    objects, elf = ([_hashed(*one) for one in several] for several in (own.objects, [own.elf] if own.elf else []))
    rest = record(replace(own, objects=(), elf=None))
    return {**rest, "objects": objects, "elf": elf[0] if elf else None}


def _hashed(path: str, content: bytes) -> Document:
    return {"name": path, "sha256": sha256(content).hexdigest()}


def scenario_document(name: str, description: str, allocators: Iterable[str]) -> Document:
    """The document ``wcet-probe-scenario``: what it is, and the allocators that offer it."""
    return {
        "format": "wcet-probe-scenario",
        "version": 1,
        "name": name,
        "description": description,
        "allocators": list(allocators),
    }


def dumps(doc: object) -> str:
    """``doc`` as text: sorted keys, two blanks of indentation, characters as they are, a newline at the end."""
    return json.dumps(doc, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def _request(report: Report) -> Document:
    """What was asked; of a compiler that is named by its path, the file name."""
    question = report.question
    return {
        "scenario": report.plan.scenario,
        "heap_bytes": report.heap_bytes,
        "seed": question.seed,
        "parameters": plain(report.allocator.values),
        "caches": list(question.cache_options),
        "initial_cache": plain(question.initial_cache),
        "compiler": PurePath(question.compiler).name,
        "cross_check": question.cross_check,
    }


def _command(report: Report, account: Account | None) -> str:
    """The command line that repeats the answer, whatever the configuration is."""
    allocator, question = report.allocator, report.question
    words = ["wcet-probe", allocator.name, "--target", report.target.name, "--scenario", report.plan.scenario]
    words += ["--heap", format_size(report.heap_bytes).replace(" ", "")]
    defaults = {parameter.name: parameter.default for parameter in allocator.parameters}
    for name, value in sorted(allocator.values.items()):
        words += [] if value == defaults.get(name) else ["--param", f"{name}={value}"]
    for option in question.cache_options:
        words += ["--cache", option]
    words += ["--initial-cache", question.initial_cache.value] if question.initial_cache else []
    words += ["--seed", str(question.seed)] if question.seed else []
    words += ["--cc", PurePath(question.compiler).name]
    is_each = bool(account and account.effects and account.effects.facts is not None)
    switches = {
        "--no-bound": report.verdict is Verdict.OBSERVED,
        "--why": account is not None and not is_each,
        "--fact-effects": is_each,
        "--prove-facts": report.bound is not None and bool(report.bound.pointer_facts),
        "--deduce": bool(report.bound and any(one.by == "deduction" for one in report.bound.pointer_facts)),
        "--cross-check": question.cross_check is True,
        "--no-cross-check": question.cross_check is False,
    }
    return shlex.join([*words, *(switch for switch, given in switches.items() if given), "--json"])


def _candidates(report: Report) -> Document:
    """What was measured in each candidate state, and which are none of this heap."""
    measured = {"candidates": plain(report.candidates)}
    return measured | ({"left_out": list(report.left_out)} if report.left_out else {})


def _state(plan: ScenarioPlan, checks: Sequence[StateCheck]) -> Document:
    """The state that a plan led to."""
    return {
        "variant": plan.variant,
        "description": plan.state,
        "why": plain(plan.why),
        "checks": plain(checks),
        "driver": plan.driver or None,
        "driver_value": plan.driver_value,
        **({"found_by": plain(plan.found_by)} if plan.found_by else {}),
    }


def _witness(unit: str, witness: Witness) -> Document:
    """The dearest known call in ``unit``, its costs in both, and its state."""
    return {
        "value": witness.value(unit),
        "instructions": witness.measurement.instructions,
        "cycles": witness.measurement.cycles,
        **_state(witness.plan, witness.checks),
        "initial_cache": plain(witness.initial_cache),
        "measured_operation": plain(witness.plan.measured),
        "refused": witness.refused,
        "cross_check": plain(witness.cross_check),
    }


def manifest_document(allocator: Allocator) -> Document:
    """The allocator's document, with a hash of each source and of each state that a search found."""
    sources, found = (
        [{"name": name, "sha256": sha256(text.encode()).hexdigest()} for name, text in texts]
        for texts in (allocator.sources, allocator.found)
    )
    return {**allocator_document(allocator), "sources": sources, **({"found": found} if found else {})}


def _observations(report: Report) -> Observations:
    executions = observed_executions(report.measurement, report.instructions) if report.instructions else {}
    return Observations(report.loop_maxima, report.flow_maxima, executions, report.executions)


def _observed(measurement: Measurement, image: Image) -> Document:
    """The counts under their own names, but sets as sorted lists, and the runs with their place in the source."""
    counts = record(measurement)
    sets = {
        "instruction": sorted(measurement.touched_instruction_sets),
        "data": sorted(measurement.touched_data_sets),
    }
    del counts["touched_instruction_sets"], counts["touched_data_sets"]
    return {
        **counts,
        "icache": _counts(measurement.icache),
        "dcache": _counts(measurement.dcache),
        "touched_sets": sets,
        "touched_sets_by_region": {name: sorted(found) for name, found in measurement.touched_sets_by_region.items()},
        "runs": [_run(run, image) for run in measurement.runs],
    }


def _counts(counts: CacheCounts) -> Document:
    return {**record(counts), "hits": counts.hits, "misses": counts.misses}


def _run(run: Run, image: Image) -> Document:
    function = image.function_at(run.address)
    return {
        **record(run),
        "address": hex_address(run.address),
        "function": function.name if function else None,
        "location": image.location(run.address),
    }
