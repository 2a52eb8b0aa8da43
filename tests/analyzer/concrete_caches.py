"""Caches as they are, tiny and exact, and all that they can do along the paths of tiny random graphs.

A cache is a tuple of sets. A set is a tuple of lines: LRU and FIFO the newest first; tree-PLRU by ways, with subtrees
swapped so that the tree always points to the first; random sorted, as well as round robin, whose counter other sets
move. ``ALIEN`` is data that no access is to, any number of it; ``EMPTY`` an invalid way. What a policy leaves open is
tried in all ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random

from wcet_probe.analyzer.icache.must_may import CacheAccess, CacheGraph
from wcet_probe.analyzer.icache.persistence import Scope
from wcet_probe.model.target import Basis, CacheConfig, Replacement

ALIEN, EMPTY = -1, -2
OTHER_LINES = (1000, 1001)
"""Two more lines for accesses to any line: of different sets if there are two."""

Set = tuple[int, ...]
Cache = tuple[Set, ...]


def config_of(replacement: Replacement | str, ways: int, *, sets: int = 1, write_allocate: bool = True) -> CacheConfig:
    policy = Replacement(replacement)
    return CacheConfig(sets, ways, 32, policy, write_allocate, write_allocate, 1, Basis.ASSUMED, "a test")


@cache
def touches(policy: Replacement, ways: int, content: Set, line: int, *, fills: bool) -> tuple[tuple[bool, Set], ...]:
    """Whether an access hits, and the set after it, in all ways that it may go."""
    if line in content:
        return ((True, _hit(policy, content, line)),)
    if not fills:
        return ((False, content),)
    return tuple((False, new) for new in _fill(policy, ways, content, line))


def _hit(policy: Replacement, content: Set, line: int) -> Set:
    match policy:
        case Replacement.LRU:
            return (line, *(other for other in content if other != line))
        case Replacement.PLRU:
            return _point_away(content, content.index(line))
        case _:
            return content


def _fill(policy: Replacement, ways: int, content: Set, line: int) -> Iterator[Set]:
    match policy:
        case Replacement.LRU | Replacement.FIFO:
            yield (line, *content)[:ways]
        case Replacement.PLRU:
            free = [way for way, other in enumerate(content) if other == EMPTY]
            for way in free or [0]:
                yield _point_away((*content[:way], line, *content[way + 1 :]), way)
        case Replacement.RANDOM | Replacement.ROUND_ROBIN:
            for way in range(ways) if len(content) == ways else [ways]:
                yield tuple(sorted((*content[:way], line, *content[way + 1 :])))


def _point_away(content: Set, way: int) -> Set:
    half = len(content) // 2
    if not half:
        return content
    left, right = content[:half], content[half:]
    return right + _point_away(left, way) if way < half else left + _point_away(right, way - half)


@cache
def contents(policy: Replacement, ways: int, lines: tuple[int, ...], *, is_cold: bool = False) -> tuple[Set, ...]:
    """All contents of a set, or the empty one."""
    if policy is Replacement.PLRU:
        choices = product((EMPTY,) if is_cold else (EMPTY, ALIEN, *lines), repeat=ways)
    else:
        lengths = (0,) if is_cold else range(ways + 1)
        choices = (choice for length in lengths for choice in product((ALIEN, *lines), repeat=length))
    found = {choice for choice in choices if all(choice.count(line) <= 1 for line in lines)}
    return tuple(sorted({tuple(sorted(c)) for c in found} if policy.has_seed else found))


@dataclass(frozen=True, slots=True)
class Problem:
    graph: CacheGraph
    config: CacheConfig
    scopes: tuple[Scope, ...]
    is_cold: bool

    def lines(self) -> tuple[int, ...]:
        accesses = [access for node in self.graph.nodes for access in node]
        others = OTHER_LINES if any(access.lines is None for access in accesses) else ()
        return (*sorted({line for access in accesses for line in access.lines or ()}), *others)


class Reached:
    """All that can happen: each node with each content, and how its accesses then go."""

    def __init__(self, problem: Problem, constraint: int = 20_000) -> None:
        self.problem, self.constraint = problem, constraint
        self._passes: dict[tuple[int, Cache], frozenset[tuple[Cache, int, int]]] = {}
        lines, config = problem.lines(), problem.config
        per_set = [
            contents(
                config.replacement,
                config.ways,
                tuple(line for line in lines if line % config.sets == number),
                is_cold=problem.is_cold,
            )
            for number in range(config.sets)
        ]
        self.starts: list[Cache] = list(product(*per_set))
        self.is_complete = len(self.starts) <= constraint
        if not self.is_complete:
            self.starts = Random(1).sample(self.starts, constraint)
        self.hits: dict[int, int] = {}
        self.misses: dict[int, int] = {}
        self._explore()

    def passes(self, node: int, content: Cache) -> frozenset[tuple[Cache, int, int]]:
        """Cache behind the node, bits of the accesses that hit and of those that missed, for each way through."""
        key = (node, content)
        found = self._passes.get(key)
        if found is None:
            ways = {(content, 0, 0)}
            for index, access in enumerate(self.problem.graph.nodes[node]):
                ways = {new for way in ways for new in self._access(way, access, 1 << index)}
            found = self._passes[key] = frozenset(ways)
        return found

    def _access(self, way: tuple[Cache, int, int], access: CacheAccess, bit: int) -> Iterator[tuple[Cache, int, int]]:
        config, (content, hits, misses) = self.problem.config, way
        if not access.is_certain:
            yield way
        for line in self.problem.lines() if access.lines is None else access.lines:
            number = line % config.sets
            fills = config.write_allocate or not access.is_write
            for hit, new in touches(config.replacement, config.ways, content[number], line, fills=fills):
                after = (*content[:number], new, *content[number + 1 :])
                yield (after, hits | bit, misses) if hit else (after, hits, misses | bit)

    def _explore(self) -> None:
        graph = self.problem.graph
        seen = {(graph.entry, content) for content in self.starts}
        waiting = list(seen)
        while waiting:
            node, content = waiting.pop()
            for after, hits, misses in self.passes(node, content):
                self.hits[node] = self.hits.get(node, 0) | hits
                self.misses[node] = self.misses.get(node, 0) | misses
                for target in graph.successors[node]:
                    if (target, after) not in seen:
                        seen.add((target, after))
                        waiting.append((target, after))

    def most_misses(self, scope: Scope, accesses: Iterable[tuple[int, int]], constraint: int) -> int:
        """Most misses of ``accesses`` in a stay in ``scope``; counting ends above ``constraint``."""
        graph, bits = self.problem.graph, dict.fromkeys(scope.nodes, 0)
        for node, index in accesses:
            bits[node] |= 1 << index
        most = 0
        seen = {(graph.entry, content, 0) for content in self.starts}
        waiting = list(seen)
        while waiting:
            node, content, count = waiting.pop()
            inside = node in scope.nodes
            for after, _, misses in self.passes(node, content):
                total = count + (misses & bits[node]).bit_count() if inside else 0
                most = max(most, total)
                if most > constraint:
                    return most
                for target in graph.successors[node]:
                    new = (target, after, total if target in scope.nodes else 0)
                    if new not in seen:
                        seen.add(new)
                        waiting.append(new)
        return most


def random_problem(random: Random) -> Problem:
    """A tiny program with any policy, start, and kind of access; every eighth is a graph without structure."""
    policy = random.choice(list(Replacement))
    sets = random.choice((1, 1, 1, 2))
    ways = random.choice((1, 2, 2, 4) if policy is Replacement.PLRU else (1, 2, 2, 3, 4))
    ways = min(ways, 2) if sets == 2 else ways
    config = config_of(policy, ways, sets=sets, write_allocate=random.random() < 0.7)
    lines = range(random.randint(2, 4 if ways < 4 else 5 if policy is not Replacement.PLRU else 4))
    imprecise = random.choice((0.0, 0.0, 0.2))
    unknown = random.choice((0.0, 0.0, 0.1)) if ways < 4 else 0.0
    skipped = random.choice((0.0, 0.0, 0.3))

    def accesses() -> tuple[CacheAccess, ...]:
        return tuple(one() for _ in range(random.choice((0, 1, 1, 1, 2, 3))))

    def one() -> CacheAccess:
        kind = random.random()
        count = random.randint(2, len(lines)) if kind < imprecise else 1
        some = None if kind > 1 - unknown else frozenset(random.sample(lines, count))
        return CacheAccess(some, is_write=random.random() < 0.3, is_certain=random.random() >= skipped)

    build = _any_graph if random.random() < 0.125 else _program
    nodes, edges, scopes = build(random)
    targets = tuple(tuple(sorted({t for s, t in edges if s == node})) for node in range(nodes))
    graph = CacheGraph(tuple(accesses() for _ in range(nodes)), targets, 0)
    return Problem(graph, config, tuple(scopes), is_cold=random.random() < 0.3)


def _any_graph(random: Random) -> tuple[int, list[tuple[int, int]], list[Scope]]:
    count = random.randint(2, 6)
    edges = [(random.randrange(count), random.randrange(count)) for _ in range(2 * count)]
    members = frozenset(random.sample(range(count), random.randint(1, count)))
    return count, edges, [Scope(min(members), members)]


def _program(random: Random) -> tuple[int, list[tuple[int, int]], list[Scope]]:
    """Sequences, choices and loops within each other, with ways to leave and to continue a loop early."""
    edges: list[tuple[int, int]] = []
    scopes: list[Scope] = []
    count = 0

    def node(*sources: int) -> int:
        nonlocal count
        edges.extend((source, count) for source in sources)
        count += 1
        return count - 1

    def statement(sources: list[int], depth: int) -> list[int]:
        kind = random.choice(("block", "choice", "loop", "loop")) if depth else "block"
        if kind == "block":
            return [node(*sources)]
        if kind == "choice":
            head = [node(*sources)]
            return statement(head, depth - 1) + (statement(head, depth - 1) if random.random() < 0.7 else head)
        header = node(*sources)
        ends = [header]
        for _ in range(random.randint(0, 2)):
            ends = statement(ends, depth - 1)
        edges.extend((end, header) for end in ends)
        scopes.append(Scope(header, frozenset(range(header, count))))
        return [header] if random.random() < 0.5 else sorted({header, *ends})

    ends = [node()]
    while count < 3 or (count < 7 and random.random() < 0.4):
        ends = statement(ends, 2)
    scopes.append(Scope(0, frozenset(range(count))))
    return count, edges, scopes
