"""The loop of H11 figure 10: the example ``scheduler``, linked with CAMA, with one of its two files of facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.build.program import load_program
from wcet_probe.catalog.resources import folder
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.proof import Bound
from wcet_probe.model.target import Target

_SOURCE = "scheduler.c"


def loop_bound(facts: str, cama: Allocator, target: Target, compiler: str, cache_dir: Path) -> Bound:
    """The proved bound of one round of the scheduler with the facts ``known`` or ``unknown``.

    Raises:
        AnalysisError: no bound can be proved.
        BuildError: no image.
    """
    home = folder("examples") / "scheduler"
    text = (home / _SOURCE).read_text("utf-8")
    linked = replace(cama, name="cama-scheduler", sources=(*cama.sources, (_SOURCE, text)))
    program = load_program(linked, target, compiler, cache_dir)
    return prove(
        BoundRequest(
            image=program.image,
            target=target,
            instructions=program.instructions,
            costs=program.costs,
            entry="schedule",
            facts=parse_facts(f"{facts}.toml", (home / f"{facts}.toml").read_text("utf-8")),
            sources={_SOURCE: text},
            parameters={},
        )
    )
