"""Cache persistence: lines that miss at most once each time that a scope, a loop for instance, is entered.

Ferdinand's analysis of 1997 is unsound: it joins ages of lines that are absent on one path as if they were evicted
there, and lets no access age them again. Two corrected ones take its place, as in J. Reineke, The semantic foundations
and a landscape of cache-persistence analyses, LITES 5(1):3, 2018:

* *counting*: no line that is touched in the scope leaves it, if all that may be touched there fit into the set;
* *conditional must*: an upper bound of a line's age that holds if the line was touched since the scope was entered, by
  the updates of the must analysis, in cooperation with it; and, line by line, a count of those that may have been
  touched since (C. Cullmann, Cache persistence analysis: theory and practice, TECS 12(1s), 2013). The lesser holds.

Words: persistence, scope, younger set (docs/explanation/glossary.md).

*Soundness:* an access is in the result for a line only if a miss there means that the line was not filled before in the
same execution of the scope. That miss fills the line, so it is its only one. An execution of a scope lasts from an edge
into the scope, or the start in it, to an edge out of it; all calls from the scope must be part of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.domains.cache_sets import SetAccess, SetState, access, effective_ways
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.icache.must_may import (
    CacheGraph,
    SetNodes,
    by_set,
    fixpoint,
    part_of,
)
from wcet_probe.model.target import CacheConfig, Replacement


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a graph. The analysis makes no use of the header: an edge from outside to any node is an entry."""

    header: int
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class PersistentGroup:
    """Each time that the scope is entered, the accesses miss at most ``len(lines)`` times, all together.

    Attributes:
        lines: numbers of the lines, each of which misses once at most.
        accesses: all accesses of the scope whose lines are among them, as ``(node, index)``.
    """

    lines: frozenset[int]
    accesses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """An access to a set, with what the must analysis knows before it.

    Attributes:
        part: the access.
        limits: upper bounds of the ages of its lines, none for an access to any line.
        touched: the lines that it may touch, as bits.
        is_single: whether it takes place once in an execution of the scope, and ``touched`` is a bit of its own for
            whatever line it is.
    """

    part: SetAccess
    limits: Mapping[int, int]
    touched: int
    is_single: bool


_Ages = Mapping[int, tuple[int, int]]
"""By line touched in the scope: upper bound of its age, and the lines that may have been touched since, as bits."""

_GONE = (1 << 30, 0)
"""A line that was touched in the execution of the scope and may have been evicted since."""


def persistent_groups(
    graph: CacheGraph,
    config: CacheConfig,
    scopes: Sequence[Scope],
    states: Mapping[int, Sequence[SetState | None]],
) -> tuple[tuple[PersistentGroup, ...], ...]:
    """For each scope the groups of accesses that share a bound of their misses, one for each different set of lines.

    An access to exactly one line is in the group of this line, and in those of ranges that hold it. Writes are in none
    if they do not allocate.

    Args:
        graph: paths and accesses.
        config: the cache.
        scopes: in any order; they may overlap.
        states: a fixpoint: `CacheAnalysis.states`.

    Raises:
        UsageError: see :func:`cache_sets.effective_ways`.

    *Soundness:* as said of the module. Each miss of an access of a group is one of the group's lines.
    """
    accesses: dict[int, dict[int, tuple[SetAccess, ...]]] = {}
    for number, nodes in by_set(graph, config).items():
        for node, parts in nodes.items():
            accesses.setdefault(node, {})[number] = parts
    found = []
    for scope in scopes:
        once = scope.nodes - _on_cycles(graph, scope.nodes)
        persistent = _persistent(config, part_of(graph.region, scope.nodes), once, accesses, states)
        found.append(_groups(graph, scope, persistent))
    return tuple(found)


def _groups(
    graph: CacheGraph, scope: Scope, persistent: frozenset[tuple[int, int, int]]
) -> tuple[PersistentGroup, ...]:
    by_lines: defaultdict[frozenset[int], list[tuple[int, int]]] = defaultdict(list)
    for node in sorted(scope.nodes):
        for index, one in enumerate(graph.nodes[node]):
            if one.lines and all((node, index, line) in persistent for line in one.lines):
                by_lines[one.lines].append((node, index))
    containing: defaultdict[int, set[frozenset[int]]] = defaultdict(set)
    for lines in by_lines:
        for line in lines:
            containing[line].add(lines)
    found = []
    for lines in sorted(by_lines, key=sorted):
        parts = {part for line in lines for part in containing[line] if part <= lines}
        found.append(PersistentGroup(lines, tuple(sorted(pair for part in parts for pair in by_lines[part]))))
    return tuple(found)


def _persistent(
    config: CacheConfig,
    inside: FlowOrder[Arrow],
    once: frozenset[int],
    accesses: Mapping[int, Mapping[int, tuple[SetAccess, ...]]],
    states: Mapping[int, Sequence[SetState | None]],
) -> frozenset[tuple[int, int, int]]:
    """Node, index and line of each access that misses only if the line was not filled before in the scope.

    The scope's nodes are ``inside``, and those of them that are passed ``once``; ``accesses`` are by node and set.
    """
    found: set[tuple[int, int, int]] = set()
    sets: dict[int, dict[int, tuple[SetAccess, ...]]] = {}
    for node in inside.outgoing:
        for number, parts in accesses.get(node, {}).items():
            sets.setdefault(number, {})[node] = parts
    for number, own in sets.items():
        if _fits(own, once, config):
            found.update(
                (n, p.index, line) for n, parts in own.items() for p in parts if p.fills for line in p.lines or ()
            )
        else:
            found.update(_conditional(config, own, inside, once, states[number]))
    return frozenset(found)


def _fits(nodes: SetNodes, once: frozenset[int], config: CacheConfig) -> bool:
    """Whether an execution of the scope may touch so little in a set that nothing of it is evicted meanwhile.

    *Soundness:* a line's age is less than the number of lines that an execution of the scope touches, once it was
    touched in the execution of the scope. A FIFO set needs no LRU set: the first line that was filled in the execution
    of the scope and is evicted would be so by as many fills as there are ways, none of them a line's second one, and
    none of the line itself. Hits count for nothing there, so a line that was in the set before the execution of the
    scope may be evicted in it, and then misses once.
    """
    is_fifo = config.replacement is Replacement.FIFO
    ways = config.ways if is_fifo else effective_ways(config).must
    lines: set[int] = set()
    all_lines: set[int] = set()
    single, is_finite = 0, True
    for node, parts in nodes.items():
        for part in parts:
            if is_fifo and not part.fills:
                continue
            all_lines.update(part.lines or ())
            if node in once and (part.lines is None or len(part.lines) > 1):
                single += 1
                is_finite = is_finite and part.lines is not None
            elif part.lines is None:
                return False
            else:
                lines.update(part.lines)
    return len(lines) + single <= ways or (is_finite and len(all_lines) <= ways)


def _conditional(
    config: CacheConfig,
    nodes: SetNodes,
    inside: FlowOrder[Arrow],
    once: frozenset[int],
    states: Sequence[SetState | None],
) -> Iterator[tuple[int, int, int]]:
    """The persistent accesses to a set by their conditional ages."""
    ways = effective_ways(config).must
    lines = sorted({line for parts in nodes.values() for part in parts for line in part.lines or ()})
    bits = {line: 1 << place for place, line in enumerate(lines)}
    steps = _steps(nodes, states, once, config, bits)

    def transfer(node: int, ages: _Ages) -> _Ages:
        for step in steps.get(node, ()):
            ages = _touch(ages, step, bits, ways)
        return ages

    start: _Ages = {}
    before = fixpoint(inside, start, steps.keys(), transfer, Joined(_join))
    for node, own in steps.items():
        ages = before(node)
        if ages is None:  # no path leads there
            continue
        for step in own:
            if step.part.fills:
                for line in step.part.lines or ():
                    if line not in ages or ages[line][0] < ways:
                        yield node, step.part.index, line
            ages = _touch(ages, step, bits, ways)


def _steps(
    nodes: SetNodes,
    states: Sequence[SetState | None],
    once: frozenset[int],
    config: CacheConfig,
    bits: Mapping[int, int],
) -> dict[int, tuple[_Step, ...]]:
    """What each node does to the conditional ages. An access to any line counts as one to as many as there are ways."""
    ways = effective_ways(config)
    free_bit = 1 << len(bits)
    any_line = ((1 << ways.must) - 1) * free_bit
    free_bit <<= ways.must
    found = {}
    for node, parts in nodes.items():
        state = states[node]
        if state is None:
            continue
        own = []
        for part in parts:
            limits = {line: state.oldest.get(line, ways.must) for line in part.lines or ()}
            is_single = node in once and len(limits) != 1
            touched = sum(bits[line] for line in limits) or any_line
            if is_single:
                touched, free_bit = free_bit, free_bit << 1
            own.append(_Step(part, limits, touched, is_single))
            state = access(state, part, ways)
        found[node] = tuple(own)
    return found


def _touch(ages: _Ages, step: _Step, bits: Mapping[int, int], ways: int) -> _Ages:
    """The conditional ages behind an access.

    *Soundness:* above the result of each line that the access may be to. A line ages only by a touch of another one of
    greater age, thus not where the other's upper bound is no more than its own; and its age is no more than the number
    of different lines touched since. A write that does not allocate touches its line if that must be in the set.
    """
    part = step.part
    found: dict[int, tuple[int, int]] = {}
    limit = max(step.limits.values(), default=ways)
    for line, (age, since) in ages.items():
        above, touched = limit, step.touched
        if line in step.limits:
            rivals = [other for other in step.limits if other != line]
            if not rivals:
                is_touched = part.is_certain and (part.fills or age < ways)
                found[line] = (0, 0) if is_touched else (age, since)
                continue
            above = max(step.limits[other] for other in rivals)
            touched = touched if step.is_single else touched & ~bits[line]
        if age >= ways:
            found[line] = _GONE
            continue
        touched |= since
        new = min(age + (age < above), touched.bit_count())
        found[line] = (new, touched) if new < ways else _GONE
    if part.fills:
        for line in bits if part.lines is None else part.lines:
            found.setdefault(line, (0, 0))
    return found


def _join(a: _Ages, b: _Ages) -> _Ages:
    """Bounds that hold on both ways; a line that was not touched on one of them is as on the other."""
    found = dict(a)
    for line, (age, since) in b.items():
        old_age, old_since = found.get(line, (0, 0))
        new = max(age, old_age)
        found[line] = (new, since | old_since) if new < _GONE[0] else _GONE
    return found


def _on_cycles(graph: CacheGraph, nodes: frozenset[int]) -> frozenset[int]:
    """Nodes that may be passed more than once in an execution of the scope; all others surely are not.

    *Soundness:* a node of a cycle has a predecessor and a successor on it, so none of them is ever taken away.
    """
    successors = {node: {target for target in graph.successors[node] if target in nodes} for node in nodes}
    left = _without_first(successors)
    predecessors: dict[int, set[int]] = {node: set() for node in left}
    for node in left:
        for target in successors[node]:
            predecessors[target].add(node)
    return _without_first(predecessors)


def _without_first(edges: Mapping[int, Collection[int]]) -> frozenset[int]:
    """The nodes that are left when one that no edge leads to is taken away, with its edges, until there is none."""
    entering = Counter(target for targets in edges.values() for target in targets)
    left, waiting = set(edges), [node for node in edges if not entering[node]]
    while waiting:
        node = waiting.pop()
        left.discard(node)
        for target in edges[node]:
            entering[target] -= 1
            if not entering[target]:
                waiting.append(target)
    return frozenset(left)
