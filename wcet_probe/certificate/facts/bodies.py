# SPDX-License-Identifier: 0BSD
"""Code that is surely of a loop's body, as a constraint: executed so often as its pragma says, and not once more.

A pragma counts iterations; the header of the loop may be executed once more, for the test. What stores or calls on a
line of the body, or is a loop next inside, is executed in iterations only: an assumption, which names the places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from wcet_probe.certificate.facts.asserted import (
    Asserted,
    Extent,
    are_told_apart,
    hidden_loops,
    is_next_inside,
    loops_outside,
    loops_owning,
    macros_with,
)
from wcet_probe.certificate.facts.plain_source import (
    blanked,
    line_at,
    line_start,
    matching,
    may_go_on,
    statement_end,
)
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.contexts import context_of, keeps_contexts
from wcet_probe.certificate.kernel.records import LoopRecord, demand
from wcet_probe.certificate.kernel.shapes import natural_loop, reached
from wcet_probe.certificate.machines.operands import may_be_skipped
from wcet_probe.model.instruction import AccessKind, Control, Instruction

_MOST_STEPS = 5_000_000
_LEAVING = re.compile(r"\b(?:break|goto|return)\b")
_BREAK = re.compile(r"\bbreak\b")
_BREAKABLE = re.compile(r"\b(?:for|while|do|switch)\b")


class Counted(NamedTuple):
    """A loop with a test in front that a pragma at ``where`` bounds: the source loop, and its iterations an entry."""

    where: str
    extent: Extent
    most: int


class Bodies:
    """Constraints that follow from pragmas and from what stands in bodies, on one graph."""

    def __init__(
        self,
        covered: Covered,
        loops: Sequence[LoopRecord],
        asserted: Asserted,
        counted: Mapping[str, Counted],
        *,
        lines: Mapping[str, frozenset[tuple[str, int]]],
        unshared: frozenset[int],
    ) -> None:
        """``counted`` and ``lines`` are by header, as of `AssertedLoops` and `Sums`; ``unshared`` as of `Binary`."""
        self._covered, self._graph, self._image = covered, covered.graph, covered.code.image
        self._loops = {loop.header: loop for loop in loops}
        self._targets = {edge.name: edge.target for edge in self._graph.edges} | {"enter": self._graph.entry}
        self._inside: dict[str, set[str]] = {}
        self._whole: dict[Extent, bool] = {}
        self._left = _MOST_STEPS
        self._asserted, self._counted, self._lines, self._unshared = asserted, counted, lines, unshared

    def follows(self, factors: Mapping[str, int], listed: Mapping[str, str]) -> list[str] | None:
        """The assumptions by which the sum of ``factors`` is at most 0 or what is more; None where none is found.

        Args:
            factors: by edge.
            listed: the statements of the assumptions, by id.

        Raises:
            VerificationError: the assumption does not name the place.
        """
        targets = {self._targets.get(name) for name, factor in factors.items() if factor > 0}
        node = targets.pop() if len(targets) == 1 else None
        for header, counted in self._counted.items() if node is not None else ():
            for executed in self._limited(str(node), header, counted.extent):
                allowed = dict.fromkeys(executed, 1)
                for name in self._loops[header].entering:
                    allowed[name] = allowed.get(name, 0) - counted.most
                if all(factors.get(name, 0) <= allowed.get(name, 0) for name in {*allowed, *factors}):
                    found = f"body {counted.where}"
                    place = self._image.location(self._graph.nodes[str(node)][0])
                    said = listed.get(found, "").removeprefix("the code at ").split(" is executed in ")[0]
                    is_named = found not in listed or place in said.split(", ")
                    demand(is_named, f"the assumption {found} does not speak of {place}")
                    return [found, f"pragma {counted.where}"]
        return None

    def _limited(self, node: str, header: str, extent: Extent) -> Iterator[Sequence[str]]:
        """Edges that are taken once an iteration at most: those into ``node``, or those that enter the loop there."""
        if header not in self._inside:
            self._inside[header] = natural_loop(header, self._loops[header].back, self._covered.taken)
        inside = self._inside[header]
        self._left -= len(self._graph.nodes) if node in inside else 1
        if node not in inside or self._left < 0 or not self._is_called_alike(node, header, inside):
            return
        if extent not in self._whole:
            self._whole[extent] = self._is_whole(extent)
        if not self._whole[extent]:
            return
        is_own = self._is_of_body(self._covered.coverage.instructions[node], extent)
        if is_own and not self._come_back({node}, header, self._following(node, header)):
            yield self._covered.into(node)
        inner = self._loops.get(node)
        if inner is None or node == header or not self._is_of_next(self._lines[node], extent):
            return
        own = natural_loop(node, inner.back, self._covered.arriving)
        behind = [target for each in own for target in self._following(each, header) if target not in own]
        if header not in own and not self._come_back(own, header, behind):
            yield inner.entering

    def _is_called_alike(self, node: str, header: str, inside: set[str]) -> bool:
        """Whether both are executed in one call of their function: what the loop's head calls is none of its body."""
        code = (one for each in inside for one in self._covered.coverage.instructions[each])
        if not any(one.control in {Control.CALL, Control.INDIRECT} for one in code):
            return True
        return context_of(node) == context_of(header) and self._keeps_contexts

    @cached_property
    def _keeps_contexts(self) -> bool:
        return keeps_contexts(self._graph, self._covered.coverage.instructions, self._image)

    def _following(self, node: str, header: str) -> list[str]:
        return [edge.target for edge in self._graph.leading[node] if edge.target != header]

    def _come_back(self, nodes: set[str], header: str, behind: Sequence[str]) -> bool:
        """Whether control comes from ``behind`` to one of the nodes without passing ``header``."""
        return not reached(behind, lambda node: self._following(node, header)).isdisjoint(nodes)

    def _is_whole(self, extent: Extent) -> bool:
        """Whether an iteration ends at its end only: whether one that a ``break`` ends is counted, no pragma says.

        One that ends a ``switch`` in it, or a loop, is none.
        """
        text = self._asserted.by_line[extent.file]
        plain, start = blanked(text), line_start(text, extent.first_line)
        body = plain[start : line_start(text, extent.last_line + 1) or len(plain)]
        loop, *within = _BREAKABLE.finditer(body)
        is_first = len(_BREAKABLE.findall(body.partition("\n")[0])) == 1  # else it is not clear which one is the loop
        for one in within if is_first else ():
            end = statement_end(body, one.start(), len(body))
            body = body[: one.start()] + _BREAK.sub(" " * 5, body[one.start() : end]) + body[end:]
        is_hidden = any(extent.encloses(each) for each in hidden_loops(self._asserted, extent.file))
        first = start + loop.start()
        is_hidden |= may_go_on(plain, first, statement_end(plain, first, len(plain)))
        used = set(re.findall(r"\w+", body))
        return not (is_hidden or _LEAVING.search(body) or used & macros_with(self._asserted, _LEAVING))

    def _is_of_body(self, code: Sequence[Instruction], extent: Extent) -> bool:
        """Whether one instruction surely stores or calls, on a line behind the loop's head and of no loop inside."""
        text = self._asserted.by_line[extent.file]
        plain, start = blanked(text), line_start(text, extent.first_line)
        head = re.compile(r"(?:for|while)\s*(?=\()").search(plain, start)
        last = line_at(text, matching(plain, head.end(), "(", ")")) if head else extent.last_line
        for one in code:
            function, line = self._image.function_at(one.address), self._image.lines.find(one.address)
            is_own = function is not None and function.address & ~1 in self._unshared
            if not (is_own and _acts(one)) or line is None or line[1] <= last:
                continue
            if list(loops_owning(self._asserted, line)) == [extent]:
                return True
        return False

    def _is_of_next(self, lines: frozenset[tuple[str, int]], extent: Extent) -> bool:
        """Whether a loop with code of these lines is one that stands next inside ``extent``."""
        found = {each for line in lines for each in loops_owning(self._asserted, line)}
        return any(
            is_next_inside(self._asserted, each, extent)
            and are_told_apart(self._asserted, each, lines)
            and not loops_outside(self._asserted, each, lines)
            for each in found
        )


def _acts(one: Instruction) -> bool:
    stores = one.control is Control.CALL or any(access.kind is not AccessKind.LOAD for access in one.accesses)
    return stores and not may_be_skipped(one)
