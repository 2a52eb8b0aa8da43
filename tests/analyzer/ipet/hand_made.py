"""A graph of a few instructions, as the checker of certificates sees it, and what the prover finds for it."""

from dataclasses import dataclass, replace
from functools import cache

from tests.support import guest_of
from wcet_probe.analyzer.ipet.annotated import resident
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.analyzer.ipet.numbering import Numbering
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.misses import Caches, LinearConstraint, caches_of
from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, cover
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.names.names import Names, PointerFact, Pointers
from wcet_probe.certificate.names.symbols import Tracer

BEGIN = "    .syntax unified\n    .thumb\n    .globl f\n    .type f, %function\nf:\n"
END = "\n    .size f, . - f\n"
TARGET = load_target("cortex-m7")

LOADED_FIRST = """
    adds r1, r0, #4
    ldr r2, [r0]
    cmp r2, #0
    bne 1f
    str r2, [r0]
1:  str r2, [r0]
    ldr r3, [r1]
    bx lr
"""
"""A word is loaded, stored to on one of two ways, and stored to where they meet; then the next word is loaded."""
STORED_FIRST = LOADED_FIRST.replace("ldr r2, [r0]", "str r2, [r0]")


@dataclass(frozen=True)
class HandMade:
    """The parts that the functions of a certificate's annotations take."""

    code: Code
    graph: Graph
    invariants: dict
    coverage: Coverage
    names: Names
    caches: Caches
    flow: NodeFlow
    annotations: Annotations

    @property
    def checked(self):
        return self.code, self.graph, self.invariants, self.coverage

    def counting(self, *places):
        """The annotations with misses of data accesses counted by the event ``m``: by node, the number of one in it."""
        side = next(side for side in self.caches.sides if side.name == "data")
        misses = {node: {side.steps[node][number].key: "m"} for node, number in places}
        return replace(self.annotations, misses=misses)


def graph_of(text, offsets, edges, exits):
    """The code and a graph of its nodes, given by their offsets; each instruction costs nothing."""
    on = guest_of(BEGIN + text + END, TARGET)
    start = on.address("f") & ~1
    own = tuple(Edge(f"{source}>{target}", source, target, 0) for source, target in edges)
    leading = {name: [edge for edge in own if edge.source == name] for name in offsets}
    code = Code(on.image, {one.address: one for one in on.instructions})
    nodes = {name: (start + offset, 0) for name, offset in offsets.items()}
    return code, Graph("f", nodes, "f", own, dict.fromkeys(exits, 0), leading, {})


def at_entries(code, graph):
    """Of each node, what the instruction set says of registers at an entry: numbers that may be any."""
    return {name: dict(code.isa.entry_state().values) for name in graph.nodes}


@cache
def hand_made(text=LOADED_FIRST, divisor=4):
    """Of one of the texts above; facts say that numbers which addresses are made of are multiples of ``divisor``."""
    edges = (("f", "one-way"), ("f", "meeting"), ("one-way", "meeting"))
    code, graph = graph_of(text, {"f": 0, "one-way": 8, "meeting": 10}, edges, ["meeting"])
    checked = code, graph, invariants, coverage = code, graph, *covered(code, graph)
    names = Numbering(*checked, Pointers((PointerFact((), (divisor,)),)), with_sums=False).run()
    caches = caches_of(TARGET, graph, coverage, Tracer(*checked, names), lambda _: True)
    flow = NodeFlow(graph, [edge for edge in graph.edges if edge.name in caches.passages])
    annotations = Annotations(names, must={side.name: resident(caches, side, flow) for side in caches.sides})
    return HandMade(code, graph, invariants, coverage, names, caches, flow, annotations)


def covered(code, graph):
    """What holds where nodes begin, and the checker's walk of the graph."""
    invariants = at_entries(code, graph)
    return invariants, cover(code, graph, Said(invariants), {})


def at_most(count):
    """That no more than so many misses ``m`` happen in a call."""
    return LinearConstraint("c", {"m": 1}, {"enter": count}, 0)
