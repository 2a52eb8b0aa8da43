"""The blocks of a function as nodes of a drawing: straight runs put together, calls named, counts beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from wcet_probe.reports.pictures.documents import Document
from wcet_probe.reports.pictures.layering import spans


@dataclass(frozen=True, slots=True)
class Node:
    """One block, or several that always follow each other.

    Attributes:
        name: address of the first block, as the document writes it.
        label: offsets from the function's start of the first and, of several, the last block.
        calls: functions that are called at its end.
        worst, observed: executions on the worst path, and observed; None where the document does not say.
        blocks: how many.
        jumps: labels of the nodes that it also goes to, where that is written and not drawn.
    """

    name: str
    label: str
    calls: tuple[str, ...]
    worst: int | None
    observed: int | None
    blocks: int
    jumps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """A function: nodes, the entry first, and edges with their executions on the worst path, by (source, target)."""

    function: str
    nodes: tuple[Node, ...]
    edges: Mapping[tuple[str, str], int]

    @property
    def blocks(self) -> int:
        """Blocks that are shown."""
        return sum(node.blocks for node in self.nodes)


def graph_functions(result: Document) -> list[str]:
    """Functions of ``bound.graph``: that of the entry first, then by their instructions on the worst path."""
    bound = result.get("bound") or {}
    graph = bound.get("graph") or {}
    names = dict.fromkeys(block["function"] for block in graph.get("blocks") or ())
    cost = instructions_by_function(result)
    return sorted(names, key=lambda name: (name != bound.get("entry"), -cost.get(name, 0), name or ""))


def instructions_by_function(result: Document) -> dict[str, int]:
    """Instructions that each function contributes to the worst path."""
    cost: dict[str, int] = {}
    for block in (result.get("bound") or {}).get("worst_path") or ():
        cost[block["function"]] = cost.get(block["function"], 0) + block["cost_instructions"]
    return cost


def flow_of(result: Document, function: str, *, executed_only: bool = False) -> Flow:
    """The flow graph of ``function``; with ``executed_only`` without blocks that nothing executes."""
    graph = result["bound"]["graph"]
    blocks = {block["address"]: block for block in graph["blocks"] if block["function"] == function}
    if executed_only:
        blocks = {name: b for name, b in blocks.items() if b.get("worst_executions") or b.get("observed_executions")}
    start = min((int(name, 16) for name in blocks), default=0)
    start = next((int(f["address"], 16) for f in _functions(result) if f["name"] == function), start)
    edges, calls = _edges(graph, blocks)
    entered = {edge["target"] for edge in graph["edges"] if edge["kind"] == "call"}
    followed = {target for _, target in edges}
    order = sorted(blocks, key=lambda name: (name not in entered, name in followed, int(name, 16)))
    order = [*order[:1], *sorted(order[1:], key=lambda name: int(name, 16))]
    chains = _chains(order, blocks, edges, calls)
    first_of = {name: chain[0] for chain in chains for name in chain}
    nodes = tuple(_node(chain, blocks[chain[0]], calls.get(chain[-1], ()), start) for chain in chains)
    inside = {(name, following) for chain in chains for name, following in pairwise(chain)}
    kept = {(first_of[s], first_of[t]): count for (s, t), count in edges.items() if (s, t) not in inside}
    return Flow(function, nodes, kept)


def _functions(result: Document) -> Iterable[Mapping[str, Any]]:
    return (result.get("image") or {}).get("functions") or ()


def _edges(
    graph: Mapping[str, Any], blocks: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[tuple[str, str], int], dict[str, tuple[str, ...]]]:
    """Edges within the function, from a call to what stands behind it too; and whom each block calls."""
    function_at = {block["address"]: block["function"] for block in graph["blocks"]}
    edges: dict[tuple[str, str], int] = {}
    calls: dict[str, tuple[str, ...]] = {}
    behind = {int(name, 16): name for name in blocks}
    for edge in graph["edges"]:
        source, target, taken = edge["source"], edge["target"], edge.get("worst_executions") or 0
        if source not in blocks:
            continue
        if edge["kind"] == "call":
            callee = function_at.get(target) or target
            calls[source] = tuple(dict.fromkeys((*calls.get(source, ()), callee)))
            following = behind.get(int(blocks[source]["end_address"], 16))
            if following is not None:
                edges[source, following] = blocks[source].get("worst_executions") or 0
        elif target in blocks and edge["kind"] != "return":
            edges[source, target] = edges.get((source, target), 0) + taken
    return edges, calls


def _chains(
    order: Sequence[str],
    blocks: Mapping[str, Mapping[str, Any]],
    edges: Mapping[tuple[str, str], int],
    calls: Mapping[str, object],
) -> list[list[str]]:
    """Blocks in runs, within which each has one follower, which has no other predecessor, and equal counts."""
    after: dict[str, list[str]] = {}
    before: dict[str, list[str]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)

    def follows(name: str) -> str | None:
        following = after.get(name, [])
        if len(following) != 1 or name in calls or following[0] in {name, order[0]}:
            return None
        other = following[0]
        return other if len(before[other]) == 1 and _counts(blocks[name]) == _counts(blocks[other]) else None

    joined = {other for name in order if (other := follows(name)) is not None}
    chains, seen = [], set[str]()
    for name in [*(n for n in order if n not in joined), *order]:
        chain: list[str] = []
        current: str | None = name
        while current is not None and current not in seen:
            seen.add(current)
            chain.append(current)
            current = follows(current)
        if chain:
            chains.append(chain)
    return [chains[0], *sorted(chains[1:], key=lambda chain: int(chain[0], 16))] if chains else []


def _counts(block: Mapping[str, Any]) -> tuple[object, object]:
    return block.get("worst_executions"), block.get("observed_executions")


def _node(chain: Sequence[str], block: Mapping[str, Any], calls: tuple[str, ...], start: int) -> Node:
    first, last = (int(name, 16) - start for name in (chain[0], chain[-1]))
    label = f"{first:+#x}" if len(chain) == 1 else f"{first:+#x}…{last:+#x}"
    one = Node(chain[0], label, calls, None, None, len(chain))
    return replace(one, worst=block.get("worst_executions"), observed=block.get("observed_executions"))


def with_long_edges_written(flow: Flow, span: int) -> Flow:
    """``flow`` with edges over ``span`` ranks and more written into their source, but those of the worst path.

    Each node keeps at least one edge that leads to it.
    """
    names = [node.name for node in flow.nodes]
    label = {node.name: node.label.partition("…")[0] for node in flow.nodes}
    length = spans(names, flow.edges)
    entering: dict[str, int] = {}
    for _, target in flow.edges:
        entering[target] = entering.get(target, 0) + 1
    kept = dict(flow.edges)
    written: dict[str, list[str]] = {}
    for edge in sorted(length, key=lambda edge: (-length[edge], edge)):
        source, target = edge
        if length[edge] >= span and not flow.edges[edge] and entering[target] > 1:
            entering[target] -= 1
            del kept[edge]
            written.setdefault(source, []).append(label[target])
    nodes = tuple(replace(node, jumps=tuple(sorted(written.get(node.name, ())))) for node in flow.nodes)
    return Flow(flow.function, nodes, kept)
