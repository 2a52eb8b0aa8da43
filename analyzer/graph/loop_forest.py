"""Graphs: loops as the nested decomposition into strongly connected parts, dominators, reachable nodes.

Words: loop forest, header, dominator (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

Successors = Mapping[int, Sequence[int]]


class IrreducibleError(Exception):
    """A loop, ``members``, can be entered at several nodes, ``entries``."""

    def __init__(self, entries: tuple[int, ...], members: frozenset[int]) -> None:
        super().__init__(f"a loop with the entries {entries}")
        self.entries = entries
        self.members = members


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop.

    Attributes:
        header: its only entry.
        parts: nodes and inner loops, the header first, in an order in which control flows through them but for the
            edges back to headers.
        nodes: all nodes, those of inner loops included.
    """

    header: int
    parts: tuple[int | Loop, ...]
    nodes: frozenset[int]

    def walk(self) -> Iterator[Loop]:
        """This loop and all loops in it, outer ones first."""
        yield self
        for part in self.parts:
            if isinstance(part, Loop):
                yield from part.walk()


def loop_forest(successors: Successors, entry: int, *, any_entries: bool = False) -> tuple[int | Loop, ...]:
    """The nodes that can be reached from ``entry`` and their loops, a weak topological order.

    Args:
        successors: of each node.
        entry: where every path starts.
        any_entries: whether a loop may have several entries: its header is then only the least of them.

    Raises:
        IrreducibleError: a loop has several entries, and may not.

    *Soundness:* every cycle of the graph passes the header of a loop of the result (F. Bourdoncle, Efficient chaotic
    iteration strategies with widenings, FMPA 1993).
    """
    inside = reachable(successors, entry)
    return tuple(_ordered(successors, inside, frozenset({entry}), None, any_entries=any_entries))


def tangled_parts(successors: Successors, entry: int) -> Sequence[tuple[tuple[int, ...], frozenset[int]]]:
    """The loops with several entries, none in another one, by their entries.

    Args:
        successors: of each node.
        entry: where every path starts.

    Returns:
        Of each its entries and all its nodes. There are none where `loop_forest` finds one entry of each loop.

    *Soundness:* exact, but that loops within these are not looked at.
    """
    found: list[tuple[tuple[int, ...], frozenset[int]]] = []
    todo: list[tuple[Successors, Collection[int], int, int | None]] = [
        (successors, reachable(successors, entry), entry, None)
    ]
    while todo:
        edges, inside, head, header = todo.pop()
        kept = _inside(edges, inside, header)
        components = strong_components(kept)
        entered = _entered(kept, components)
        for members in components:
            some = next(iter(members))
            if len(members) == 1 and some not in kept[some]:
                continue
            heads = sorted(node for node in members if node == head or node in entered)
            if len(heads) > 1:
                found.append((tuple(heads), members))
            else:
                todo.append((kept, members, heads[0], heads[0]))
    return sorted(found)


def _inside(successors: Successors, inside: Collection[int], header: int | None) -> dict[int, list[int]]:
    """The edges within ``inside`` but for those to ``header``."""
    return {node: [one for one in successors.get(node, ()) if one in inside and one != header] for node in inside}


def _entered(edges: Successors, components: Iterable[Collection[int]]) -> set[int]:
    """The nodes that an edge from another one of ``components`` leads to."""
    part_of = {node: place for place, members in enumerate(components) for node in members}
    return {one for node, targets in edges.items() for one in targets if part_of[one] != part_of[node]}


def _ordered(
    successors: Successors,
    inside: Collection[int],
    entries: frozenset[int],
    header: int | None,
    *,
    any_entries: bool,
) -> Iterator[int | Loop]:
    """Parts of the graph ``inside`` in topological order; control enters it at ``entries``, not by edges to ``header``.

    Of parts that could come next, the one with the least node does.
    """
    kept = _inside(successors, inside, header)
    components = _in_topological_order(kept)
    entered = _entered(kept, components)
    for members in components:
        some = next(iter(members))
        if len(members) == 1 and some not in kept[some]:
            yield some
            continue
        heads = sorted(node for node in members if node in entries or node in entered)
        if len(heads) != 1 and not any_entries:
            raise IrreducibleError(tuple(heads), frozenset(members))
        head = heads[0]
        parts = tuple(_ordered(kept, members, frozenset({head}), head, any_entries=any_entries))
        yield Loop(head, (head, *(part for part in parts if part != head)), frozenset(members))


def _in_topological_order(successors: Mapping[int, Sequence[int]]) -> list[frozenset[int]]:
    """The strongly connected components, each before those that it leads to; of several the one with the least node."""
    components = strong_components(successors)
    number = {node: place for place, members in enumerate(components) for node in members}
    onward = [
        {number[one] for node in members for one in successors[node]} - {n} for n, members in enumerate(components)
    ]
    missing = [0] * len(components)
    for place, targets in enumerate(onward):
        targets.discard(place)
        for target in targets:
            missing[target] += 1
    ready = sorted((min(members), place) for place, members in enumerate(components) if not missing[place])
    found = []
    while ready:
        _, place = heappop(ready)
        found.append(components[place])
        for target in onward[place]:
            missing[target] -= 1
            if not missing[target]:
                heappush(ready, (min(components[target]), target))
    return found


def strong_components(successors: Mapping[int, Sequence[int]]) -> list[frozenset[int]]:
    """The strongly connected components, each behind all that it leads to.

    Source: R. Tarjan, Depth-first search and linear graph algorithms, SIAM Journal on Computing 1(2), 1972.
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    places: dict[int, int] = {}
    open_nodes: list[int] = []
    is_open: set[int] = set()
    found: list[frozenset[int]] = []
    for start in sorted(successors):
        if start in number:
            continue
        path = [(start, iter(successors[start]))]
        number[start] = low[start] = len(number)
        places[start] = len(open_nodes)
        open_nodes.append(start)
        is_open.add(start)
        while path:
            node, rest = path[-1]
            for target in rest:
                if target not in number:
                    number[target] = low[target] = len(number)
                    places[target] = len(open_nodes)
                    open_nodes.append(target)
                    is_open.add(target)
                    path.append((target, iter(successors[target])))
                    break
                if target in is_open:
                    low[node] = min(low[node], number[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == number[node]:
                    place = places[node]
                    found.append(frozenset(open_nodes[place:]))
                    is_open.difference_update(open_nodes[place:])
                    del open_nodes[place:]
    return found


def loops_of(parts: Sequence[int | Loop]) -> tuple[Loop, ...]:
    """All loops of a forest, outer ones before those in them."""
    return tuple(loop for part in parts if isinstance(part, Loop) for loop in part.walk())


def dominators(successors: Successors, entry: int) -> Mapping[int, int]:
    """The immediate dominator of each node that can be reached from ``entry``; the entry's is itself.

    Source: K. Cooper, T. Harvey, K. Kennedy, A simple, fast dominance algorithm, Rice University TR-06-33870, 2001.
    """
    order = reverse_postorder(successors, entry)
    place = {node: number for number, node in enumerate(order)}
    sources: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for target in successors.get(node, ()):
            sources[target].append(node)
    found = {entry: entry}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [source for source in sources[node] if source in found]
            new = known[0]
            for other in known[1:]:
                one = other
                while one != new:
                    while place[one] > place[new]:
                        one = found[one]
                    while place[new] > place[one]:
                        new = found[new]
            if found.get(node) != new:
                found[node] = new
                changed = True
    return found


def reverse_postorder(successors: Successors, entry: int) -> tuple[int, ...]:
    """The nodes that ``entry`` leads to, each before its successors but for the ends of back edges."""
    found: list[int] = []
    seen = {entry}
    path = [(entry, iter(successors.get(entry, ())))]
    while path:
        node, rest = path[-1]
        target = next((one for one in rest if one not in seen), None)
        if target is None:
            found.append(node)
            path.pop()
        else:
            seen.add(target)
            path.append((target, iter(successors.get(target, ()))))
    return tuple(reversed(found))


def reachable(successors: Successors, start: int) -> frozenset[int]:
    """``start`` and all nodes that can be reached from it."""
    found, waiting = {start}, [start]
    while waiting:
        for target in successors.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return frozenset(found)
