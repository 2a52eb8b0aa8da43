"""Result documents of real runs, made once each in a test run, whichever worker asks."""

from __future__ import annotations

import json
from typing import Any

from tests.run_folder import once
from tests.support import images_dir
from wcet_probe.answer.bounds.gap import Account, block_gaps
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.reports.formats.document import document, dumps


def _text(allocator: str, target: str, scenario: str, heap_bytes: int, *, prove: bool, why: bool) -> str:
    request = ProbeRequest(
        allocator=load_allocator(allocator),
        target=load_target(target),
        scenario=scenario,
        heap_bytes=heap_bytes,
        seed=0,
        initial_cache=None,
        compiler="zig",
        cross_check=True,
        cache_dir=images_dir(),
        prove=prove,
    )
    report = observe(request)
    if not why:
        return dumps(document(report))
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir)
    seen = report.witnesses["instructions"].measurement
    gaps = block_gaps(report.bound, seen, report.image, program.instructions)
    return dumps(document(report, Account(gaps, seen.instructions)))


def result(
    allocator: str = "tlsf",
    target: str = "mpc603e",
    scenario: str = "worst-alloc",
    heap_bytes: int = 1 << 16,
    *,
    prove: bool = True,
    why: bool = False,
) -> dict[str, Any]:
    """The result document of a cross-checked run; each caller has its own copy."""
    asked = (allocator, target, scenario, heap_bytes)
    return json.loads(once("results", lambda: _text(*asked, prove=prove, why=why), *asked, prove, why))
