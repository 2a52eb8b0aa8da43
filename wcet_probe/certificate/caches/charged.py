# SPDX-License-Identifier: 0BSD
"""Does each node and edge charge at least what it costs: instructions, misses, and calls that are not expanded."""

from __future__ import annotations

from wcet_probe.certificate.caches.cached import Cached
from wcet_probe.certificate.kernel.charge import Costs, edge_cost, node_cost
from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.records import Graph, demand
from wcet_probe.model.target import Target


def check_charges(
    code: Code, graph: Graph, coverage: Coverage, table: tuple[Costs, Target, str], cached: Cached | None
) -> None:
    """Check what is charged in the unit of the ``table``; of misses only what was found of them, if ``cached`` is it.

    What a call takes is not checked where caches may hold what it accesses.

    Raises:
        VerificationError: a node or an edge charges too little.
    """
    costs, target, unit = table
    skipped = cached.unchecked if cached is not None else frozenset[str]()

    def charge_edge(name: str, source: str, to: int | None, cost: int) -> None:
        last, is_gone = coverage.instructions[source][-1], name in coverage.gone
        least = edge_cost(last, to, costs, unit, is_gone=is_gone)
        demand(cost >= least, f"{name} costs at least {least} {unit}, not {cost}")

    has_caches = bool(target.icache or target.dcache)
    what, is_kept = "misses" if has_caches else "unaligned accesses", has_caches and unit == "cycles"
    for node, (_, cost) in graph.nodes.items():
        least = node_cost(coverage.instructions[node], costs, target, unit)
        demand(cost >= least, f"{node} costs at least {least} {unit}, not {cost}")
        if cached is not None and node not in skipped:
            least += cached.needed[node].cycles
            demand(cost >= least, f"{node} costs at least {least} {unit} with its {what}, not {cost}")
    for edge in graph.edges:
        if edge.name in coverage.taken:
            is_left = edge.source not in skipped and edge.name in coverage.gone
            waiting = cached.needed[edge.source].leaving_cycles if cached is not None and is_left else 0
            waiting += cached.paid.get(edge.name, 0) if cached is not None else 0
            called = coverage.over.get(edge.name, ())
            if not is_kept:
                waiting += max((code.callees[one].bounds[unit] for one in called), default=0)
            for to in called or (graph.nodes[edge.target][0],):
                charge_edge(edge.name, edge.source, to, edge.cost - waiting)
    for node, cost in graph.exits.items():
        waiting = cached.needed[node].leaving_cycles if cached is not None and node not in skipped else 0
        charge_edge(f"leaving {node}", node, None, cost - waiting)
