"""The section ``bound`` of JSON documents, which `wcet_probe.certificate` checks, and the document of a bound alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata
from types import MappingProxyType
from typing import TYPE_CHECKING

from wcet_probe import __version__
from wcet_probe.answer.bounds.gap import BlockGap
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.model.proof import Bound, FactEffects, Formula, LoopBound, PathBlock
from wcet_probe.model.report import Verdict
from wcet_probe.reports.formats.listing import code_sections, graph_section, hex_address, image_section, reached
from wcet_probe.reports.formats.records import Document, plain, record, target_document

if TYPE_CHECKING:
    from wcet_probe.answer.firmware.firmware import FirmwareBound
    from wcet_probe.model.observed_run import Observed


_ENGINES = ("capstone", "highspy", "pypcode", "unicorn", "ziglang")
"""Packages that numbers depend on."""


@dataclass(frozen=True, slots=True)
class Observations:
    """What runs showed of that which is bounded.

    Attributes:
        loop_maxima: most executions of a loop's header for one entry, by its address.
        flow_maxima: the largest sum of each flow claim.
        executions: of each instruction of the measured call, by address.
        checked: in how many executions an assumption was checked, by its id; none that no run can check.
    """

    loop_maxima: Mapping[int, int]
    flow_maxima: tuple[int, ...]
    executions: Mapping[int, int]
    checked: Mapping[str, int]


_NO_MAXIMA: Mapping[int, int] = MappingProxyType({})
_NONE_CHECKED: Mapping[str, int] = MappingProxyType({})


def bound_section(bound: Bound, seen: Observations | None = None) -> Document:
    """``bound`` with its certificates, what runs showed of it, and the digest of the section."""
    most = {loop.address: 0 for loop in bound.loops}
    for loop in bound.loops:
        most[loop.address] = max(most[loop.address], loop.max)
    maxima = seen.loop_maxima if seen else _NO_MAXIMA
    checked = seen.checked if seen else _NONE_CHECKED
    sums = seen.flow_maxima if seen else (None,) * len(bound.flow_claims)
    section: Document = {
        "entry": bound.entry,
        "instructions": bound.instructions,
        "cycles": bound.cycles,
        "parameters": dict(bound.parameters),
        "blocks": bound.blocks,
        "assumptions": [{**record(one), "executions": checked.get(one.id)} for one in bound.assumptions],
        # Runs do not tell contexts apart: what was observed is that of the contexts with the largest bound.
        "loops": [
            {**_loop(loop), "observed_max": maxima.get(loop.address) if loop.max == most[loop.address] else None}
            for loop in bound.loops
        ],
        "flow_claims": [
            {"where": claim.where, "statement": claim.statement, "constant": claim.constant, "observed": found}
            for claim, found in zip(bound.flow_claims, sums, strict=True)
        ],
        "idle_facts": [record(one) for one in bound.idle_facts],
        "graph": graph_section(bound.graph, seen.executions if seen else None),
        "worst_path": [_block(block, "cost_instructions") for block in bound.worst_path],
        "worst_path_cycles": [_block(block, "cost_cycles") for block in bound.worst_path_cycles],
        "unattributed_cycles": bound.unattributed_cycles,
        "certificates": list(bound.certificates),
    }
    if bound.by_type:
        section["by_type"] = [asdict(one) for one in bound.by_type]
    if bound.summarised:
        section["summarised"] = list(bound.summarised)
    if bound.callee_certificates:
        section["callees"] = [list(texts) for texts in bound.callee_certificates]
    if bound.pointer_facts:
        section["pointer_facts"] = [plain(one) for one in bound.pointer_facts]
    if bound.module is not None:
        section["module"] = dict(bound.module)
    return {**section, "digest": bound_digest(section)}


def gap_section(gaps: Sequence[BlockGap], bound: Bound, observed_instructions: int) -> Document:
    """The distance between bound and observation, block by block; see ``wcet_probe.answer.bounds.gap``."""
    return {
        "instructions": bound.instructions - observed_instructions,
        "above_worst_path": bound.instructions - sum(block.cost for block in bound.worst_path),
        "blocks": [
            {
                "address": hex_address(gap.address),
                "location": gap.location,
                "code": [f"{hex_address(one.address)} {one.text}" for one in gap.instructions],
                "bound_executions": gap.bound_executions,
                "observed_executions": gap.observed_executions,
                "instructions": gap.difference,
                "cause": gap.cause.value,
            }
            for gap in gaps
        ],
    }


def formula_section(formula: Formula) -> Document:
    """A bound as a function of ``parameter``: the sum of ``constant`` and factors times expressions."""
    return {
        "parameter": formula.parameter,
        "constant": str(formula.constant),
        "terms": [{"expression": text, "factor": str(factor)} for text, factor in formula.terms],
        "samples": [{formula.parameter: value, "instructions": bound} for value, bound in formula.samples],
    }


def effects_section(effects: FactEffects) -> Document:
    """Bounds with all facts, with loop facts only, with none, and without each, null where there is none."""
    return {
        "all": plain(effects.all),
        "loop_facts_only": plain(effects.loop_facts_only),
        "no_facts": plain(effects.no_facts),
        "facts": None if effects.facts is None else [record(one) for one in effects.facts],
    }


def firmware_document(found: FirmwareBound) -> Document:
    """The document ``wcet-probe-bound`` of a function of any firmware."""
    code = reached(found.instructions, found.bound, None)
    return {
        "format": "wcet-probe-bound",
        "version": 1,
        "tool": tool_section(),
        "request": {
            "elf": found.request.elf.name,
            "entry": found.request.entry,
            "parameters": dict(found.request.parameters),
            "caches": list(found.request.caches),
            "facts": _hashed(found.fact_texts),
            "sources": _hashed(sorted(found.sources.items())),
        },
        "target": found.target.name,
        "target_configuration": target_document(found.target),
        "verdict": str(Verdict.BOUNDED_BY_TYPE if found.bound.by_type else Verdict.BOUNDED),
        "image": image_section(found.image, code),
        "sources": sorted(found.sources),
        **code_sections(found.image, code, found.sources),
        "bound": bound_section(found.bound, _observations(found)),
        "observed": _observed(found.observed) if found.observed else None,
        **({"fact_effects": effects_section(found.effects)} if found.effects else {}),
    }


def _observations(found: FirmwareBound) -> Observations | None:
    seen = found.observed
    return Observations(seen.loop_maxima, seen.flow_maxima, {}, seen.executions) if seen else None


def _observed(seen: Observed) -> Document:
    """What was run, and what was found by a search."""
    return {
        key: value for key, value in record(seen).items() if key not in ("executions", "loop_maxima", "flow_maxima")
    }


def _hashed(texts: Iterable[tuple[str, str]]) -> list[Document]:
    return [{"name": name, "sha256": text_sha256(text)} for name, text in texts]


def text_sha256(text: str) -> str:
    """SHA-256 of ``text`` in UTF-8."""
    return sha256(text.encode()).hexdigest()


def tool_section() -> Document:
    """This program, and the versions of the packages that its numbers depend on; null where one is not installed."""
    return {"name": "wcet-probe", "version": __version__, "packages": {name: _version(name) for name in _ENGINES}}


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _loop(loop: LoopBound) -> Document:
    return {
        "name": loop.name,
        "function": loop.function,
        "address": hex_address(loop.address),
        "context": [hex_address(address) for address in loop.context],
        "location": loop.location,
        "file": loop.file or None,
        "line": loop.line or None,
        "max": loop.max,
        "total": loop.total,
        "origin": loop.origin.value,
        "expression": loop.expression,
        "where": loop.where or None,
        "because": loop.because or None,
    }


def _block(block: PathBlock, cost: str) -> Document:
    return {
        "function": block.function,
        "context": [hex_address(address) for address in block.context],
        "address": hex_address(block.address),
        "end_address": hex_address(block.end_address),
        "location": block.location,
        "instructions": block.instructions,
        "executions": block.executions,
        cost: block.cost,
    }
