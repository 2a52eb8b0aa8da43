# SPDX-License-Identifier: 0BSD
"""Are the loops of a certificate loops of its graph: one header each, entered through it only.

Dominators by the iteration of K. Cooper, T. Harvey, K. Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wcet_probe.certificate.records import demand


class LoopShapes:
    """The dominators of a graph, to check loops against."""

    def __init__(self, ends: Mapping[str, tuple[str, str]], nodes: Iterable[str]) -> None:
        """From source and target of each edge by name; the outside is the empty name."""
        self._ends = ends
        self._arriving: dict[str, list[str]] = {"": [], **{node: [] for node in nodes}}
        leading: dict[str, list[str]] = {node: [] for node in self._arriving}
        for name, (source, target) in ends.items():
            self._arriving[target].append(name)
            if target:
                leading[source].append(target)
        self._dominator, self._span = _dominator_tree(leading, ends["enter"][1])

    def check(self, name: str, entering: list[str], back: list[str]) -> None:
        """The edges are all those into one header, which is on every way to the source of each back edge.

        Raises:
            VerificationError: they are not.
        """
        known = [edge for edge in (*entering, *back) if edge in self._ends]
        demand(len(known) == len(entering) + len(back), f"an edge of loop {name} is none")
        header = self._ends[back[0]][1]
        arriving = sorted(self._arriving[header]) if header else []
        demand(header and sorted(known) == arriving, f"the edges of loop {name} are not those into its header")
        for edge in back:
            source = self._ends[edge][0]
            demand(edge != "enter" and self._dominates(header, source), f"a back edge of loop {name} enters it")

    def _dominates(self, header: str, node: str) -> bool:
        """Whether each way to ``node`` passes ``header``; a node that is not reached is passed by all."""
        if node not in self._span:
            return True
        first, last = self._span.get(header, (1, 0))
        return first <= self._span[node][0] <= last


def _dominator_tree(leading: Mapping[str, list[str]], entry: str) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """The immediate dominators, and each node's place in a walk of their tree with that of its last descendant."""
    order = postorder(leading, entry)
    number = {node: place for place, node in enumerate(order)}
    before: dict[str, list[str]] = {node: [] for node in order}
    for node in order:
        for target in leading[node]:
            before[target].append(node)
    dominator = {entry: entry}
    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            known = [one for one in before[node] if one in dominator]
            found = known[0]
            for other in known[1:]:
                while found != other:
                    if number[found] < number[other]:
                        found = dominator[found]
                    else:
                        other = dominator[other]  # noqa: PLW2901  (both climb)
            if dominator.get(node) != found:
                dominator[node], changed = found, True
    children: dict[str, list[str]] = {node: [] for node in order}
    for node in order:
        if node != entry:
            children[dominator[node]].append(node)
    walked = postorder(children, entry)[::-1]
    place = {node: index for index, node in enumerate(walked)}
    last: dict[str, int] = {}
    for node in reversed(walked):
        last[node] = max((last[child] for child in children[node]), default=place[node])
    return dominator, {node: (place[node], last[node]) for node in walked}


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
