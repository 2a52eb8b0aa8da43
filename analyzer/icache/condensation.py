"""A graph without the nodes that change nothing, for what one cache set sees of a program: most blocks leave it alone.

A node that changes nothing, and all of whose predecessors are such and have one state, has that state, too. The nodes
of a loop that changes nothing have one state, as each leads to each other. They are one node of the condensed graph. A
thousand blocks and a hundred sets are a hundred graphs of a few nodes then, in place of a hundred thousand visits.

Words: set, fixpoint (docs/explanation/glossary.md).

*Soundness:* a node that changes a state is alone in its group, and every edge is kept but those that lead from a node
that changes nothing to its own group, which ask nothing. So whatever the groups are, a solution of the condensed graph,
told of all nodes, is one of the whole graph. With these groups it is the least one: the equations of nodes that are
left out say that their states are joins of equal states.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.graph.loop_forest import Loop


def condensed(graph: FlowOrder[Arrow], changing: Collection[int]) -> tuple[FlowOrder[Arrow], Mapping[int, int]]:
    """The condensed graph, and for each node that the entry leads to the one that has its state at the start.

    Args:
        graph: the whole graph.
        changing: the nodes that may change a state; each of them stays.

    *Soundness:* as said of the module.
    """
    changed = frozenset(changing)
    group: dict[int, int] = {graph.entry: graph.entry}
    # A node of the group of all that leads there has no edge from elsewhere: only the others are looked at again.
    entered: list[int] = []
    _gather(graph, graph.forest, changed, group, entered)
    arrows = dict.fromkeys(
        Arrow(group[source], group[target])
        for target in entered
        for source in graph.sources[target]
        if source in group and (source in changed or group[source] != group[target])
    )
    return FlowOrder(dict.fromkeys(group.values()), arrows, graph.entry), group


def _gather(
    graph: FlowOrder[Arrow],
    parts: Sequence[int | Loop],
    changed: frozenset[int],
    group: dict[int, int],
    entered: list[int],
) -> None:
    """Tell of all nodes of ``parts`` their group, in order; what comes before them has its own.

    ``entered`` gets the nodes that edges from other groups, or from nodes that change something, may lead to.
    """
    sources = graph.sources
    for part in parts:
        if isinstance(part, Loop):
            if changed.isdisjoint(part.nodes):
                _place_loop(graph, part, changed, group, entered)
            else:
                if part.header not in group:
                    group[part.header] = part.header
                entered.append(part.header)
                _gather(graph, part.parts[1:], changed, group, entered)
        elif part in group:
            entered.append(part)
        else:
            before = sources[part]
            if part in changed:
                one = None
            elif len(before) == 1:  # as most have
                one = None if before[0] in changed else group.get(before[0])
            else:
                one = _group_of_all(before, changed, group)
            if one is None:
                entered.append(part)
                one = part
            group[part] = one


def _group_of_all(sources: Iterable[int], changed: frozenset[int], group: Mapping[int, int]) -> int | None:
    """The one group of ``sources``, none of which changes anything; None where there is no such group."""
    one = None
    for source in sources:
        own = None if source in changed else group.get(source)
        if own is None or one not in {None, own}:
            return None
        one = own
    return one


def _place_loop(
    graph: FlowOrder[Arrow], loop: Loop, changed: frozenset[int], group: dict[int, int], entered: list[int]
) -> None:
    """A loop that changes nothing is one group, that of the nodes it is entered from where these are one."""
    one = _group_of_all(graph.entering[loop.header], changed, group)
    if one is None or not group.keys().isdisjoint(loop.nodes):
        entered += loop.nodes
    group.update(dict.fromkeys(loop.nodes - group.keys(), loop.header if one is None else one))
