"""Strided traversals: accesses whose address moves in one direction, round by round of a loop.

If no line is evicted between two accesses of the traversal, it misses once for each line that it comes to, however many
rounds there are: of these it is known how many there are where each step is less than a line, or where a flow fact
counts the lines of the objects that are accessed.

Words: strided traversal, reference group (docs/explanation/glossary.md).

*Soundness:* the variable part of the address is a sum of one value that arrives at the loop's header and of values that
are not defined in the loop. In each round, on every way, the former moves by a number of one sign (or by 0), so that a
line that was left is not met again before the loop is entered anew: steps are so short that a traversal would have to
come to 65,536 lines before it had gone around all addresses. Of the accesses that belong to a traversal, by one offset,
one is executed in every round: of the copies of a block, say, that control comes to by different ways. All accesses to
a line, and those by other offsets in between, are so near that no two of their lines are in one set.

An array of words is traversed in steps of 4 bytes. In n rounds it misses at most (4 n + 59) / 32 times, as the linear
constraint says of executions of the loop's header (point 3) and of the edge that enters the loop:

>>> total = example('''
... unsigned f(const unsigned *words, unsigned count) {
...     unsigned sum = 0;
...     for (unsigned i = 0; i < count; i++) sum ^= words[i];
...     return sum;
... }''', alignment_bytes=4)
>>> [(one.step_bytes, one.header) for one in total.traversals.found]
[(4, 3)]
>>> of = total.data.constraints[0]
>>> of.points, [factor for _, factor in of.edges], of.auxiliaries
(((3, -4),), [-59], (('miss:0.1:traversal0', 32),))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock, SymbolicBlocks
from wcet_probe.analyzer.graph.loop_forest import Loop, dominators, loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.model.target import CacheConfig

_LONGEST_STEP_BYTES = 1 << 16
MOST_COUNTED_LINES = (1 << 32) // _LONGEST_STEP_BYTES
"""A traversal of more lines could come back to where it began."""


@dataclass(frozen=True, slots=True)
class StridedTraversal:
    """The accesses of a group in a loop.

    Attributes:
        group: whose variable part moves.
        name: a group of the same lines that keeps its name from round to round.
        step_bytes: most that it moves in a round, if that is less than a line; else 0.
        header: of the loop.
        nodes: of the loop.
        entries: edges by which the loop is entered.
        once: points that are executed once in every round.
        points: of the accesses that belong to it, by granule.
    """

    group: int
    name: int
    step_bytes: int
    header: int
    nodes: frozenset[int]
    entries: tuple[Edge, ...]
    once: frozenset[int]
    points: Mapping[int, frozenset[int]]

    def counted_constraint(self, name: str, auxiliaries: Iterable[str], lines: int) -> LinearConstraint:
        """``auxiliaries`` happen once for each of the ``lines`` that the traversal comes to each time that it begins.

        *Soundness:* as said of the module.
        """
        return LinearConstraint(
            name,
            edges=tuple((edge, -lines) for edge in self.entries),
            auxiliaries=tuple((auxiliary, 1) for auxiliary in auxiliaries),
        )

    def constraint(
        self, name: str, auxiliaries: Sequence[str], points: Sequence[int], line_bytes: int
    ) -> LinearConstraint:
        """``auxiliaries``, misses of one granule at ``points``, happen once for each line of a short traversal.

        *Soundness:* n accesses, each at most ``step_bytes`` from the one before, are within (n - 1) * ``step_bytes``
        bytes of the first, and so in at most (that - 1) / ``line_bytes`` + 2 lines. There are no more of different
        addresses than rounds, and the header is executed in each.
        """
        counted = points[0] if len(points) == 1 and points[0] in self.once else self.header
        once = 2 * line_bytes - 1 - self.step_bytes
        return LinearConstraint(
            name,
            ((counted, -self.step_bytes),),
            tuple((edge, -once) for edge in self.entries),
            auxiliaries=tuple((auxiliary, line_bytes) for auxiliary in auxiliaries),
        )


class StridedTraversals:
    """The traversals of all groups."""

    def __init__(self, values: Values, lines: SymbolicBlocks, config: CacheConfig) -> None:
        self.lines = lines
        self.found = tuple(_find(values, lines, config))
        self._of_point: dict[tuple[int, SymbolicBlock], StridedTraversal] = {
            (point, SymbolicBlock(traversal.group, granule)): traversal
            for traversal in self.found
            for granule, points in traversal.points.items()
            for point in points
        }
        self.by_name: Mapping[int, StridedTraversal] = {traversal.name: traversal for traversal in self.found}

    def of(self, point: int, line: SymbolicBlock | None, *, is_certain: bool) -> SymbolicBlock | None:
        """The name of the line of an access at ``point`` that outlives a round; None if it belongs to no traversal."""
        traversal = self._of_point.get((point, line)) if line is not None and is_certain else None
        return None if traversal is None or line is None else SymbolicBlock(traversal.name, line.granule)


def _find(values: Values, lines: SymbolicBlocks, config: CacheConfig) -> Iterator[StridedTraversal]:
    successors = {
        point: [edge.target for edge in edges if edge.target != EXIT] for point, edges in values.leaving.items()
    }
    above = dominators(successors, 0)
    killed = values.killed
    accessing = _accessing(values, lines)
    speaking = lines.groups_by_symbol()
    for loop in loops_of(values.forest):
        arriving = values.arriving.get(loop.header, ())
        entering = [edge for edge in arriving if edge.source not in loop.nodes]
        back = [edge for edge in arriving if edge.source in loop.nodes]
        if not entering or not back or loop.header == 0:
            continue
        always = frozenset.intersection(*(_dominating(edge.source, above, loop) for edge in back))
        inner = frozenset(node for part in loop.parts if isinstance(part, Loop) for node in part.nodes)
        # What arrives at the header is what is read on the edges that lead there.
        inside = tuple(values.within(loop.nodes))
        lost = frozenset[Term]().union(
            *(killed[edge] for edge in inside if edge.target != loop.header),
            *(
                frozenset(symbol for symbol in killed[edge] if not _is_in(values, symbol, loop))
                for edge in inside
                if edge.target == loop.header
            ),
        )
        # A traversal's variable part moves by a symbol of the header, see `_step_bytes`.
        moving = (speaking.get(symbol, ()) for symbol in values.terms.meeting((loop.header,)))
        for number in sorted(set().union(*moving)):
            step_bytes = _step_bytes(values, lines, number, loop, back)
            if not lost.isdisjoint(lines.groups[number].symbols):
                continue
            if step_bytes and step_bytes <= _LONGEST_STEP_BYTES and lines.is_near(number, config.line_bytes):
                short = step_bytes if step_bytes < config.line_bytes else 0
                points = {
                    granule: frozenset(own if _is_passed(loop, own, successors) else own & always)
                    for granule, found in accessing.get(number, {}).items()
                    for own in (found & loop.nodes,)
                }
                yield StridedTraversal(
                    number, lines.alias(number), short, loop.header, loop.nodes, tuple(entering), always - inner, points
                )


def _accessing(values: Values, lines: SymbolicBlocks) -> Mapping[int, Mapping[int, set[int]]]:
    """By group and granule, the points with an access to that line that surely takes place where they are executed."""
    found: dict[int, dict[int, set[int]]] = {}
    for point in values.states:
        for access in lines.accesses(point):
            line = lines.of_access(access) if access.is_certain else None
            if line is not None:
                found.setdefault(line.group, {}).setdefault(line.granule, set()).add(point)
    return found


def _is_passed(loop: Loop, points: Collection[int], successors: Mapping[int, Sequence[int]]) -> bool:
    """Whether control comes to one of ``points`` in every round of ``loop``."""
    found, waiting = {loop.header} - set(points), [loop.header] if loop.header not in points else []
    while waiting:
        following = set(successors[waiting.pop()])
        if loop.header in following:
            return False
        new = (following & loop.nodes) - found - set(points)
        found |= new
        waiting += new
    return True


def _dominating(point: int, above: Mapping[int, int], loop: Loop) -> frozenset[int]:
    """The points of ``loop``, up to its header, that are passed on every way to ``point``."""
    found = {point} & loop.nodes
    while point not in {loop.header, above[point]}:
        point = above[point]
        found |= {point} & loop.nodes
    return frozenset(found)


def _is_in(values: Values, symbol: Term, loop: Loop) -> bool:
    """Whether ``symbol`` may be defined in ``loop``."""
    place = defined_at(values.terms[symbol].arguments)
    return place is None or place in loop.nodes


def _step_bytes(values: Values, lines: SymbolicBlocks, number: int, loop: Loop, back: Sequence[Edge]) -> int:
    """Most that the variable part of group ``number`` moves in a round of ``loop``; 0 if it is no known traversal."""
    terms = values.terms
    group, symbolic_part = lines.groups[number], lines.symbolic_part(number)
    moving = [symbol for symbol in group.symbols if _is_in(values, symbol, loop)]
    if len(moving) != 1:
        return 0
    symbol = moving[0]
    if symbol not in symbolic_part or any(symbol in terms.symbols(term) for term in symbolic_part if term != symbol):
        return 0
    match terms[symbol].arguments:
        case ("phi", (place,), location) if place == loop.header:
            held = [values.edges[edge].state.read(location) for edge in back]  # type: ignore[arg-type]
        case _:
            return 0
    ends: list[int] = []
    for edge, term in zip(back, held, strict=True):
        form = None if term is None else terms.linear(term)
        if form is None or form.coefficients.get(symbol) != 1:
            return 0
        rest = [(one, factor * symbolic_part[symbol]) for one, factor in form.coefficients.items() if one != symbol]
        if any(_is_in(values, part, loop) for one, _ in rest for part in terms.symbols(one)):
            return 0
        step = values.edges[edge].state.linear_value(rest, form.constant * symbolic_part[symbol], form.bits)
        ends += step.signed_range()
    return max(map(abs, ends)) if min(ends) >= 0 or max(ends) <= 0 else 0
