# SPDX-License-Identifier: 0BSD
"""What can be told of a graph without its code: what leads where, and whether loops are entered by headers only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from wcet_probe.certificate.kernel.records import Edge, Graph, LoopRecord, demand

_MOST_STEPS = 10_000_000
"""So many nodes may stand in all loops together, each counted as often as it is in one."""


def arriving_edges(graph: Graph) -> dict[str, list[Edge]]:
    """Edges by their target."""
    found: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        found.setdefault(edge.target, []).append(edge)
    return found


def reached(starts: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """The nodes from which ``following`` leads on, from ``starts``, which are among them."""
    found, waiting = set[str](), list(starts)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += following(node)
    return found


def reached_nodes(graph: Graph, taken: Collection[str]) -> list[str]:
    """The nodes that are reached, in the order of the graph."""
    reached = {graph.entry, *(edge.target for edge in graph.edges if edge.name in taken)}
    return [node for node in graph.nodes if node in reached]


def reaching(nodes: Iterable[str], header: str, arriving: Mapping[str, Sequence[Edge]]) -> set[str]:
    """The nodes from which one of ``nodes`` is reached without passing ``header``, of which neither is one."""

    def before(node: str) -> list[str]:
        return [edge.source for edge in arriving.get(node, ()) if edge.source != header]

    return reached((one for one in nodes if one != header), before)


def natural_loop(header: str, back: Collection[str], arriving: Mapping[str, Sequence[Edge]]) -> set[str]:
    """The header and all nodes from which one of the edges ``back`` to it is reached without it."""
    sources = [edge.source for edge in arriving.get(header, ()) if edge.name in back]
    return {header} | reaching(sources, header, arriving)


def check_loops(graph: Graph, loops: Iterable[LoopRecord]) -> None:
    """Check that the edges of each loop are all those into one header, which is on every way to its back edges.

    *Soundness:* else a way from the entry comes to a back edge without the header, and the entry is one of the nodes
    from which a back edge is reached without it.

    Raises:
        VerificationError: they are not.
    """
    arriving, left = arriving_edges(graph), _MOST_STEPS
    for name, header, _, entering, back in loops:
        into = [edge.name for edge in arriving.get(header, ())]
        demand(set(back) <= set(into), f"a back edge of loop {name} is none, or enters it")
        into += ["enter"] * (header == graph.entry)
        demand(sorted((*entering, *back)) == sorted(into), f"the edges of loop {name} are not those into its header")
        inside = natural_loop(header, set(back), arriving)
        left -= len(inside)
        demand(left >= 0, f"the loops of the certificate have more than {_MOST_STEPS:,} nodes together")
        demand(graph.entry not in inside - {header}, f"a back edge of loop {name} enters it")


def postorder(leading: Mapping[str, list[str]], entry: str) -> list[str]:
    """The nodes that are reached, each behind those that it leads to, but for the ends of loops."""
    seen, order = {entry}, []
    stack = [(entry, iter(leading[entry]))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(leading[target])))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def parts_of(leading: Mapping[str, list[str]], entry: str) -> dict[str, int]:
    """The strongly connected part that each node is in which is reached, by number.

    *Soundness:* no edge leads to a part of a lower number, so control comes back to no earlier one.
    """
    found, order = dict[str, int](), postorder(leading, entry)[::-1]
    arriving: dict[str, list[str]] = {}
    for node in order:
        for target in leading[node]:
            arriving.setdefault(target, []).append(node)

    def before(node: str) -> list[str]:
        return [one for one in arriving.get(node, ()) if one not in found]

    for number, root in enumerate(order):
        if root not in found:
            found.update(dict.fromkeys(reached([root], before), number))
    return found
