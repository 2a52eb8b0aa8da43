"""The section ``bound`` of JSON documents, which ``wcet_probe.verify`` checks, and the document of a bound alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wcet_probe import __version__
from wcet_probe.gap import BlockGap
from wcet_probe.proof import Bound, Formula, LoopBound, PathBlock
from wcet_probe.verify import bound_digest

if TYPE_CHECKING:
    from wcet_probe.firmware import FirmwareBound

Document = dict[str, object]


def bound_section(bound: Bound) -> Document:
    """``bound`` with its certificates, and the digest of the section."""
    section: Document = {
        "entry": bound.entry,
        "instructions": bound.instructions,
        "cycles": bound.cycles,
        "parameters": dict(bound.parameters),
        "blocks": bound.blocks,
        "assumptions": [{"id": a.id, "statement": a.statement, "check": a.check} for a in bound.assumptions],
        "loops": [_loop(loop) for loop in bound.loops],
        "worst_path": [_block(block) for block in bound.worst_path],
        "certificates": list(bound.certificates),
    }
    return {**section, "digest": bound_digest(section)}


def gap_section(gaps: Sequence[BlockGap], bound: Bound, observed_instructions: int) -> Document:
    """The distance between bound and observation, block by block; see ``wcet_probe.gap``."""
    return {
        "instructions": bound.instructions - observed_instructions,
        "above_worst_path": bound.instructions - sum(block.cost for block in bound.worst_path),
        "blocks": [
            {
                "address": _hex(gap.address),
                "location": gap.location,
                "code": [f"{_hex(one.address)} {one.text}" for one in gap.instructions],
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


def firmware_document(found: FirmwareBound) -> Document:
    """The document ``wcet-probe-bound`` of a function of any firmware."""
    return {
        "format": "wcet-probe-bound",
        "version": 1,
        "tool": {"name": "wcet-probe", "version": __version__},
        "target": found.target.name,
        "image": {"sha256": found.image.sha256},
        "sources": sorted(found.sources),
        "bound": bound_section(found.bound),
    }


def _loop(loop: LoopBound) -> Document:
    return {
        "name": loop.name,
        "function": loop.function,
        "address": _hex(loop.address),
        "context": [_hex(address) for address in loop.context],
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


def _block(block: PathBlock) -> Document:
    return {
        "function": block.function,
        "context": [_hex(address) for address in block.context],
        "address": _hex(block.address),
        "end_address": _hex(block.end_address),
        "location": block.location,
        "instructions": block.instructions,
        "executions": block.executions,
        "cost_instructions": block.cost,
    }


def _hex(address: int) -> str:
    return f"{address:#010x}"
