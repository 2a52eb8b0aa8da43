# SPDX-License-Identifier: 0BSD
"""What a result shows of its bound, computed again from the certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.certificate.kernel.contexts import context_of
from wcet_probe.certificate.kernel.loops import Json
from wcet_probe.certificate.kernel.records import Graph, Records, demand
from wcet_probe.model.instruction import Instruction

Instructions = Mapping[str, Sequence[Instruction]]


def check_shown(section: Json, graphs: Sequence[Graph], records: Sequence[Records], code: Instructions) -> str:
    """Check worst paths, graph and number of blocks of the section ``bound``; what was checked, in words.

    Raises:
        VerificationError: something is shown that the certificate does not say.
    """
    graph = graphs[0]
    demand(section["blocks"] == len(graph.nodes), f"the bound has {len(graph.nodes)} blocks")
    for key, unit, one, own in zip(
        ("worst_path", "worst_path_cycles"), ("cost_instructions", "cost_cycles"), graphs, records, strict=False
    ):
        shown = sorted((_context(row), int(row["address"], 16), row["executions"], row[unit]) for row in section[key])
        demand(shown == _worst_path(one, own), f"the {key} that is shown is not that of the certificate")
        sizes = {(context_of(node), address): len(code[node]) for node, (address, _) in one.nodes.items()}
        right = all(sizes[_context(row), int(row["address"], 16)] == row["instructions"] for row in section[key])
        demand(right, f"the {key} that is shown has other blocks than the code")
    counts = _counts(records[0])
    has_counts = records[0]["optimum"][0][0] != "none"
    executed = _executions(graph, counts)
    blocks: dict[tuple[int, int], int] = {}
    for node, (address, _) in graph.nodes.items():
        last = code[node][-1]
        key_of = address, last.address + last.size_bytes
        blocks[key_of] = blocks.get(key_of, 0) + executed.get(node, 0)
    shown_blocks: dict[tuple[int, int], int | None] = {}
    for row in section["graph"]["blocks"]:  # code that functions share has a row for each of them
        key_of, worst = (int(row["address"], 16), int(row["end_address"], 16)), row["worst_executions"]
        demand((worst is not None) == has_counts, "the blocks that are shown are other ones")
        shown_blocks[key_of] = shown_blocks.get(key_of, 0) + worst if has_counts else None
    demand(
        shown_blocks == (blocks if has_counts else dict.fromkeys(blocks)), "the blocks that are shown are other ones"
    )
    names = [(row["address"], row["function"]) for row in section["graph"]["blocks"]]
    demand(len(names) == len(set(names)), "a block of a function is shown twice")
    edges: dict[tuple[int, int], int] = {}
    for edge in graph.edges:
        ends = graph.nodes[edge.source][0], graph.nodes[edge.target][0]
        edges[ends] = edges.get(ends, 0) + counts.get(edge.name, 0)
    shown_edges: dict[tuple[int, int], int] = {}
    for row in section["graph"]["edges"]:
        ends = int(row["source"], 16), int(row["target"], 16)
        shown_edges[ends] = shown_edges.get(ends, 0) + (row["worst_executions"] or 0)
    demand(shown_edges == edges, "the edges that are shown are other ones")
    return f"worst paths, {len(blocks)} blocks and {len(edges)} edges are those of the certificate"


def executions_of(records: Records, graph: Graph, code: Instructions) -> dict[int, int]:
    """How often each instruction is executed in the solution, by its address; those that are not are left out."""
    found: dict[int, int] = {}
    for node, count in _executions(graph, _counts(records)).items():
        for one in code[node] if count else ():
            found[one.address] = found.get(one.address, 0) + count
    return found


def _context(row: Json) -> str:
    return "".join(f"{int(site, 16):#x}/" for site in row["context"])


def _counts(records: Records) -> dict[str, int]:
    return {name: int(count) for name, count in records["count"]}


def _executions(graph: Graph, counts: Mapping[str, int]) -> dict[str, int]:
    """How often each node is executed in the solution."""
    found = {graph.entry: counts.get("enter", 0)}
    for edge in graph.edges:
        found[edge.target] = found.get(edge.target, 0) + counts.get(edge.name, 0)
    return found


def _worst_path(graph: Graph, records: Records) -> list[tuple[str, int, int, int]]:
    """Context, address, executions and cost of what the solution executes; copies of a node are put together."""
    counts = _counts(records)
    leaving: dict[str, int] = {}
    for edge in graph.edges:
        leaving[edge.source] = leaving.get(edge.source, 0) + counts.get(edge.name, 0) * edge.cost
    for node, cost in graph.exits.items():
        leaving[node] = leaving.get(node, 0) + counts.get(f"leave:{node}", 0) * cost
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for node, executions in _executions(graph, counts).items():
        if executions:
            address, cost = graph.nodes[node]
            key = context_of(node), address
            before = found.get(key, (0, 0))
            found[key] = before[0] + executions, before[1] + executions * cost + leaving.get(node, 0)
    return sorted((*key, *numbers) for key, numbers in found.items())
