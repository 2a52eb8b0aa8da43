# SPDX-License-Identifier: 0BSD
"""What flow facts say of sums of executions, as constraints: does a constraint follow from a fact?

A fact bounds a weighted sum of executions of places in the source. From it follows each constraint whose factors are
at most those that are computed here: a place counts where a block surely executes it, once. Which code that is, the
line table says, but for optimised code of GCC, which may be of several places with the line of one: that counts as
nothing. Of a condition the edges count on which it holds (`conditions`). What a negative weight takes off the source
alone tells, as compilers leave out what they can.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from wcet_probe.certificate.facts.asserted import (
    Asserted,
    Extent,
    Fact,
    are_told_apart,
    function_lines,
    hidden_loops,
    loop_extent,
    loops_outside,
    point_line,
    point_span,
    point_statement,
)
from wcet_probe.certificate.facts.source_counts import SourceCounts
from wcet_probe.certificate.flow.conditions import condition_of, edges_where_true
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.contexts import context_of, keeps_contexts
from wcet_probe.certificate.kernel.loops import value_of
from wcet_probe.certificate.kernel.records import LoopRecord, existing
from wcet_probe.certificate.kernel.shapes import natural_loop, reached
from wcet_probe.certificate.machines.operands import may_be_skipped
from wcet_probe.model.image import VariableLocation
from wcet_probe.model.instruction import Control, Instruction

_TERM = re.compile(r"(branch|loop|point|then) (?:(\w+):)?([\w.-]+)")
_SPLIT_OFF = re.compile(r".\.(?:part|cold)\b")
"""In the name of what a compiler has split off a function: its code is no copy of a place, but the rest of it."""

_TESTS = re.compile(r"(?:cmp|cmn|tst|teq|vmrs)\b.*")

Factors = dict[str, int]


class _Weights(NamedTuple):
    """Weights of nodes, of the entries of loops by header, and of edges; and what places take off the sum at most."""

    nodes: Mapping[str, int]
    entries: Mapping[str, int]
    edges: Mapping[str, int]
    taken_off: int = 0


class Sums:
    """Constraints that follow from facts, on one graph.

    Attributes:
        covered, variables: what it was made of.
        loops: by header.
        lines: by header, those of a loop's code that is in no loop in it.
    """

    def __init__(
        self,
        covered: Covered,
        loops: Sequence[LoopRecord],
        asserted: Asserted,
        parameters: Mapping[str, int],
        variables: Sequence[VariableLocation] = (),
        unshared: frozenset[int] = frozenset(),
    ) -> None:
        """``loops`` are those of the graph; ``variables`` and ``unshared`` as of `Binary`."""
        self.covered, self._graph, self._code = covered, covered.graph, covered.code
        self._asserted, self._parameters, self.variables = asserted, parameters, variables
        self._instructions, self._unshared = covered.coverage.instructions, unshared
        self._sources = {edge.name: edge.source for edge in covered.graph.edges}
        back = {loop.header: loop.back for loop in loops}
        self.loops = {loop.header: loop for loop in loops}
        self.lines = {loop.header: self._lines(loop, back) for loop in loops}
        self._contexts_hold: bool | None = None
        self._counted: dict[str, dict[str, Fact]] = {}
        self._headers_of: dict[Extent, frozenset[str]] = {}

    def follows(self, kind: str, number: int, factors: Mapping[str, int], constant: int) -> list[str] | None:
        """The facts, as assumptions, by which ``sum of factors <= constant``; None where none is found."""
        for fact in self._asserted.of("loop") if kind == "fact" else self._asserted.of(kind)[number : number + 1]:
            for allowed, least in self._of(kind, fact):
                names = {*allowed, *factors}
                if constant >= least and all(factors.get(name, 0) <= allowed.get(name, 0) for name in names):
                    return [f"fact {one.where}" for one in (fact, *self._counted.get(fact.where, {}).values())]
        return None

    def _of(self, kind: str, fact: Fact) -> list[tuple[Factors, int]]:
        """What follows from ``fact``: factors and constant."""
        if kind == "infeasible":
            return self._never(fact)
        if kind == "fact":
            return self._total(fact)
        found = self._sum(fact)
        if found is None:
            return []
        most = value_of(fact.expression("max"), self._parameters) + found.taken_off
        if fact.content.get("per") != "call":
            return [(self._on_edges(found, inside=None), most)]
        return self._for_each_call(fact, found, most)

    # ---------------------------------------------------------------------------------------------------------- places

    def _lines(self, loop: LoopRecord, back: Mapping[str, Sequence[str]]) -> frozenset[tuple[str, int]]:
        # By edges that nobody takes, code of any loop could be put into any other.
        header, own = loop.header, natural_loop(loop.header, loop.back, self.covered.taken)
        inner: set[str] = set()
        for other in own:  # the loops of the certificate may be many more
            if other in back and other != header:
                inner |= natural_loop(other, back[other], self.covered.arriving)
        nodes = own - inner if header not in inner else own
        lines = (self._line(one) for node in nodes for one in self._instructions[node])
        return frozenset(line for line in lines if line is not None)

    def _line(self, instruction: Instruction) -> tuple[str, int] | None:
        return self._code.image.lines.find(instruction.address)

    def _nodes_at(self, line: tuple[str, int]) -> Sequence[str]:
        return self._by_line.get(line, ())

    @cached_property
    def _by_line(self) -> Mapping[tuple[str, int], Sequence[str]]:
        found: dict[tuple[str, int], list[str]] = {}
        for node, code in self._instructions.items():
            for line in dict.fromkeys(map(self._line, code)):
                if line is not None:
                    found.setdefault(line, []).append(node)
        return found

    def _function(self, node: str) -> str:
        symbol = self._code.image.function_at(self._graph.nodes[node][0])
        return symbol.name if symbol else ""

    def _is_of_one_place(self, node: str) -> bool:
        """Whether no instruction of the node may be of several places of the source, with the line of one."""
        found = (self._code.image.function_at(one.address) for one in self._instructions[node])
        return all(symbol is not None and symbol.address & ~1 in self._unshared for symbol in found)

    def _surely(self, kind: str, line: tuple[str, int]) -> set[str]:
        """Nodes each execution of which is one of a branch on the line, of which all count, or one of a point."""
        if any(each.first_line == line[1] for each in hidden_loops(self._asserted, line[0])):
            return set()
        found = self._surely_once(line)
        if kind == "branch":
            found = {node for node in self._nodes_at(line) if self._is_test(self._instructions[node][-1], line)}
        return set(filter(self._is_of_one_place, found))

    def _surely_once(self, line: tuple[str, int]) -> set[str]:
        """Nodes each execution of which is one of the place: one in a function, or tests that follow no other.

        What is split off a function counts if no other function has code of the place, whose rest it may be.
        """
        nodes = [node for node in self._nodes_at(line) if not self._may_be_skipped(node, line)]
        functions = set(map(self._function, self._nodes_at(line)))
        whole = {name for name in functions if len(functions) == 1 or not _SPLIT_OFF.search(name)}
        by_function: dict[str, dict[int, list[str]]] = {name: {} for name in whole}
        for node in nodes:
            if self._function(node) in whole:
                by_function[self._function(node)].setdefault(self._graph.nodes[node][0], []).append(node)
        found: set[str] = set()
        for everywhere in by_function.values():
            places = everywhere
            if len(places) > 1:
                places = {
                    address: own
                    for address, own in everywhere.items()
                    if all(self._is_test(self._instructions[node][-1], line) for node in own)
                }
            own = [node for group in places.values() for node in group]
            if len(places) == 1 or not self._follow_each_other(own):
                found |= set(own)
        return found

    def _is_test(self, last: Instruction, line: tuple[str, int]) -> bool:
        return last.control is Control.CONDITIONAL_BRANCH and self._line(last) == line

    def _may_be_skipped(self, node: str, line: tuple[str, int]) -> bool:
        """Whether code of the place in the node is executed on conditions that it has not tested itself before."""
        return _starts_skipped(one for one in self._instructions[node] if self._line(one) == line)

    def _follow_each_other(self, nodes: Sequence[str]) -> bool:
        """Whether one of the nodes leads to another without passing a loop's header."""

        def following(node: str) -> list[str]:
            return [edge.target for edge in self._graph.leading[node] if edge.target not in self.loops]

        first = [target for node in nodes for target in following(node)]
        return not reached(first, following).isdisjoint(nodes)

    # ------------------------------------------------------------------------------------------------------------ sums

    def _sum(self, fact: Fact) -> _Weights | None:
        """What a sum counts; None where a place is not found, or it is not clear what one takes off."""
        nodes: dict[str, int] = {}
        entries: dict[str, int] = {}
        taken_off = 0
        for kind, function, name, weight in self._terms(fact):
            if weight < 0:
                times = self._by_source(fact, kind, name, function)
                if times is None:
                    return None
                taken_off -= weight * times
                continue
            if kind == "then":
                continue
            if kind == "loop":
                extent = loop_extent(self._asserted, fact, name, function)
                if extent is None:
                    return None
                own = self._headers(extent)
                # One of several may be entered in an iteration that began in another.
                if extent.has_test or len({self._graph.nodes[header][0] for header in own}) > 1:
                    entries |= {header: entries.get(header, 0) - weight for header in own}
            else:
                line = point_line(self._asserted, fact, name, function)
                if line is None:
                    return None
                own = frozenset(self._surely(kind, line))
            for node in own:
                nodes[node] = nodes.get(node, 0) + weight
        return _Weights(nodes, entries, self._conditions(fact), taken_off)

    def _by_source(self, fact: Fact, kind: str, name: str, function: str) -> int | None:
        """How often a place is executed by the source, in the call of the entry or in each of the fact's function.

        All functions of the graph begin with a line of the sources, and no line is of another text.
        """
        sources, found = self._asserted.sources or {}, self._code.image.lines.find
        firsts = {self._code.image.function_at(address) for address, _ in self._graph.nodes.values()}
        lines = {found(one.address & ~1) if one is not None else None for one in firsts}
        lines |= {line for code in self._instructions.values() for line in map(self._line, code) if line is not None}
        if not all(line is not None and line[0] in sources for line in lines):
            return None
        entry = str(fact.content.get("function")) if fact.content.get("per") == "call" else self._graph.entry_function
        counts = SourceCounts(self._asserted, self._parameters, entry)
        times = None
        if kind == "loop":
            extent = loop_extent(self._asserted, fact, name, function)
            times = counts.of_loop(extent.file, extent.first_line) if extent is not None else None
        elif kind == "point":
            place = point_span(self._asserted, fact, name, function)
            times = counts.of_place(*place[:2]) if place is not None else None
        self._counted.setdefault(fact.where, {}).update(counts.used)
        return times

    def _headers(self, extent: Extent) -> frozenset[str]:
        """The loops with code of a source loop, of lines that are of none within it, and of no loop that is not in it.

        A loop around that one has code of it as well, where the compiler has unrolled it.
        """
        if extent not in self._headers_of:
            self._headers_of[extent] = frozenset(
                header
                for header, lines in self.lines.items()
                if are_told_apart(self._asserted, extent, lines) and not loops_outside(self._asserted, extent, lines)
            )
        return self._headers_of[extent]

    def _terms(self, fact: Fact) -> Iterator[tuple[str, str, str, int]]:
        """The terms of a sum: what is counted, in which function, its name, and its weight."""
        for key, asserted in dict(fact.content.get("sum", {})).items():
            term = existing(_TERM.fullmatch(str(key)), f"the sum at {fact.where} holds {key!r}")
            kind, function, name = term.groups()
            yield kind, function or str(fact.content.get("function")), name, value_of(str(asserted), self._parameters)

    def _conditions(self, fact: Fact) -> Factors:
        """Weights of edges on which conditions hold; one whose edges are not found counts as nothing, if it may."""
        edges: Factors = {}
        for kind, function, name, weight in self._terms(fact):
            if kind == "then" and weight > 0:
                for edge in self._where_true(fact, name, function):
                    edges[edge] = edges.get(edge, 0) + weight
        return edges

    def _where_true(self, fact: Fact, name: str, function: str) -> list[str]:
        """The edges that are taken where the condition of the ``if`` at a point holds, each once for one test of it."""
        place = point_statement(self._asserted, fact, name, function)
        if place is None:
            return []
        file, line, text = place
        at, code = (file, line), self._instructions
        condition = condition_of(text, function, tuple((self._asserted.sources or {}).values()))
        nodes = [node for node in self._nodes_at(at) if self._is_test(code[node][-1], at)]
        nodes = list(filter(self._is_of_one_place, nodes))
        if condition is None:
            return []
        found = edges_where_true(self._graph, self.covered.coverage, nodes, condition, self.variables)
        # One behind another may decide again what has been decided.
        return [] if self._follow_each_other(list(found)) else [edge for own in found.values() for edge in own]

    def _on_edges(self, found: _Weights, *, inside: set[str] | None) -> Factors:
        """The weights on the edges into nodes, on those that enter loops, and on edges."""
        factors: Factors = {}
        for edge, weight in found.edges.items():
            if inside is None or self._sources[edge] in inside:
                factors[edge] = factors.get(edge, 0) + weight
        for node, weight in found.nodes.items():
            if inside is None or node in inside:
                for name in self.covered.into(node):
                    factors[name] = factors.get(name, 0) + weight
        for header, weight in found.entries.items():
            if inside is None or header in inside:
                for name in self.loops[header].entering:
                    factors[name] = factors.get(name, 0) + weight
        return factors

    def _for_each_call(self, fact: Fact, found: _Weights, most: int) -> list[tuple[Factors, int]]:
        """For each context of the fact's function, what follows of the nodes in it and below.

        Of none that is entered elsewhere than where the function begins: what is executed before would count as well.
        """
        if not self._check_contexts():
            return []
        symbol = self._code.image.symbols.get(str(fact.content.get("function")))
        calls: dict[str, list[str]] = {}
        for node, (address, _) in self._graph.nodes.items():
            if symbol is not None and address == symbol.address:
                calls.setdefault(context_of(node), []).append(node)
        limits = []
        for context, firsts in calls.items():
            inside = {node for node in self._graph.nodes if context_of(node).startswith(context)}
            entered = {edge.target for edge in self._graph.edges if edge.source not in inside} | {self._graph.entry}
            if not entered & inside <= set(firsts):
                continue
            factors = self._on_edges(found, inside=inside)
            for first in firsts:
                for name in self.covered.into(first):
                    factors[name] = factors.get(name, 0) - most
            limits.append((factors, 0))
        return limits

    def _check_contexts(self) -> bool:
        """Whether a context is entered by a call only, to the start of a function, and left by a return."""
        if self._contexts_hold is None:
            self._contexts_hold = keeps_contexts(self._graph, self._instructions, self._code.image)
        return self._contexts_hold

    def _never(self, fact: Fact) -> list[tuple[Factors, int]]:
        """An infeasible place: blocks that are all code of it, and not executed to skip it."""
        if "point" in fact.content:
            line = point_line(self._asserted, fact, str(fact.content["point"]), str(fact.content.get("function")))
            span = (line[0], line[1], line[1]) if line else None
        elif "line" in fact.content:
            lines = function_lines(self._asserted, fact)
            span = (lines[0], int(fact.content["line"]), int(fact.content["line"])) if lines else None
        else:
            span = None if "offset" in fact.content else function_lines(self._asserted, fact)
        if span is None:
            return []
        file, first, last = span
        factors: Factors = {}
        for node, code in self._instructions.items():
            found = [self._line(one) for one in code]
            is_own = all(line and line[0] == file and first <= line[1] <= last for line in found)
            if is_own and not _starts_skipped(code) and self._is_of_one_place(node):
                factors |= dict.fromkeys(self.covered.into(node), 1)
        return [(factors, 0)]

    def _total(self, fact: Fact) -> list[tuple[Factors, int]]:
        """The total of a loop: its header runs at most so often, and once more for each entry if it tests first."""
        total, extent = fact.expression("total"), loop_extent(self._asserted, fact)
        if total is None or extent is None or "within" in fact.content:
            return []
        own = dict.fromkeys(self._headers(extent), 1)
        entries = dict.fromkeys(own, -1) if extent.has_test else {}
        return [(self._on_edges(_Weights(own, entries, {}), inside=None), value_of(total, self._parameters))]


def _starts_skipped(code: Iterable[Instruction]) -> bool:
    """Whether one of the instructions is executed on a condition that none before it has tested."""
    for one in code:
        if may_be_skipped(one):
            return True
        if _TESTS.match(one.text):
            return False
    return False
