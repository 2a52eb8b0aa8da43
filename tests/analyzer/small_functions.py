"""Functions of a few instructions, assembled, with their graphs and values, for tests of single modules."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support import Guest, assembler, guest_of
from wcet_probe.analyzer.graph.supergraph import Supergraph, build_supergraph
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.result import Values
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa, Target

THUMB, ARM, POWERPC = (load_target(name) for name in ("cortex-m4", "arm926ej-s", "mpc603e"))


def small_guest(bodies: str | Mapping[str, str], target: Target = THUMB) -> Guest:
    """The image of some functions; a single body is that of ``f``."""
    return guest_of(assembler({"f": bodies} if isinstance(bodies, str) else bodies, target), target)


def lifter_of(guest: Guest) -> Lifter:
    return image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)


def small_graph(guest: Guest, entry: str = "f", **options: object) -> Supergraph:
    return build_supergraph(guest.image, lifter_of(guest), require_symbol(guest.image, entry), {}, {}, **options)


def analysed(image: Image, target: Target, entry: str = "f") -> tuple[Lifter, Values]:
    lifter = image_lifter(target.pcode_language, target.isa, image.segments)
    graph = build_supergraph(image, lifter, require_symbol(image, entry), {}, {})
    return lifter, analyze_values(image, lifter, graph, {})


def of_text(text: str | Mapping[str, str], target: Target = THUMB) -> tuple[Lifter, Values]:
    return analysed(small_guest(text, target).image, target)


def register_name(guest: Guest, number: int) -> str:
    """Of the argument ``number``."""
    return f"r{3 + number}" if guest.target.isa is Isa.POWERPC else f"r{number}"
