# SPDX-License-Identifier: 0BSD
"""The accesses of a graph to the caches: what each node has to charge, and whether limits of misses hold.

Lines that must be in a cache, and what is left of each limit, stand in the certificate where nodes begin. Each node and
each edge is gone through once; what then holds has to be what is said of the next node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.modified import Content
from wcet_probe.certificate.caches.residents import (
    FULL,
    Balance,
    Must,
    Residents,
    balance_holds,
    is_resident,
    must_holds,
    sets_of_bases,
)
from wcet_probe.certificate.caches.steps import Step, data_steps, fetch_steps, most_lines
from wcet_probe.certificate.caches.unaligned import region_cycles, unaligned_accesses
from wcet_probe.certificate.kernel.coverage import Coverage
from wcet_probe.certificate.kernel.records import Edge, Graph, Records, demand, factors_of
from wcet_probe.certificate.kernel.shapes import arriving_edges, parts_of
from wcet_probe.certificate.names.names import Passage, Traced
from wcet_probe.certificate.names.symbols import Tracer
from wcet_probe.model.target import Target

FETCH, DATA = "fetch", "data"
ENTER = "enter"
_NO_LINES: Must = {}
_NEVER = Traced((), {}, {}, {})
"""A node that control does not come to."""
Misses = Mapping[str, Mapping[tuple[int, int], str]]
"""By node and step, what its misses are counted by."""


@dataclass(frozen=True, slots=True)
class LinearConstraint:
    """At most so many misses as credits: ``constant`` in the call, and those of each edge that is taken.

    ``events`` has the factors of what is limited. Where edges pay, the name stands for the misses themselves.
    """

    name: str
    events: Mapping[str, int]
    credited: Mapping[str, int]
    constant: int

    @property
    def least(self) -> int:
        """The fewest credits that it ever gives."""
        return min((one for one in (self.constant, *self.credited.values()) if one > 0), default=0)


def limits_of(records: Records) -> dict[str, LinearConstraint]:
    """The constraints on events that the proof uses: others have no multiplier, and change nothing."""
    events = {name for name, _ in records["event"]}
    used = {name for name, _ in records["dual"]}
    found: dict[str, LinearConstraint] = {}
    for name, relation, constant, terms in records["constraint"]:
        factors = factors_of(terms)
        own = {edge: factor for edge, factor in factors.items() if edge in events}
        if own and name in used:
            demand(relation == "<=", f"{name} is no limit")
            credited = {edge: -factor for edge, factor in factors.items() if edge not in events}
            found[name] = LinearConstraint(name, own, credited, int(constant))
    return found


def paying(annotations: Annotations) -> dict[str, LinearConstraint]:
    """The misses that edges pay for."""
    return {
        name: LinearConstraint(name, {name: 1}, dict.fromkeys(edges, 1), 0) for name, edges in annotations.paid.items()
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One cache: its accesses by node, and what a fill costs."""

    name: str
    residents: Residents
    steps: Mapping[str, Sequence[Step]]
    fill_cycles: int


Counted = Sequence[tuple[Side, str, Step, int]]
"""Steps whose misses a limit counts: their cache, node, and the factor of their event."""


@dataclass(frozen=True, slots=True)
class Needed:
    """The least that a node has to charge besides its instructions, where it is executed, or left elsewhere than on.

    ``fills`` are misses of the data cache that fill a line; ``cycles`` are all. Stores that ``modify`` a line may be
    the first to do so; ``singles`` may be single writes.
    """

    fills: int = 0
    cycles: int = 0
    modify: int = 0
    singles: int = 0
    leaving_fills: int = 0
    leaving_cycles: int = 0


@dataclass(frozen=True, slots=True)
class Caches:
    """The accesses of a graph to the caches of a target; its nodes are in ``parts``, as `shapes.parts_of` has them."""

    target: Target
    graph: Graph
    sides: tuple[Side, ...]
    passages: Mapping[str, Passage]
    arriving: Mapping[str, Sequence[Edge]]
    parts: Mapping[str, int]
    traced: Mapping[str, Traced]
    tracer: Tracer = field(repr=False)

    # ------------------------------------------------------------------------------------------------------ must

    def behind(self, side: Side, node: str, must: Must) -> Must:
        """The lines that must be in the cache behind ``node``."""
        for step in side.steps[node]:
            must = side.residents.touched(must, step)
        return must

    def content(self, side: Side, node: str, annotations: Annotations) -> Content:
        """What is said of the lines of a cache where ``node`` begins."""
        must = annotations.must.get(side.name, {}).get(node, _NO_LINES)
        return Content(must, annotations.modified.get(node, frozenset()) if side.name == DATA else frozenset())

    def check_contents(self, annotations: Annotations) -> None:
        """Check that the lines that are said to be in a cache must be there, and those that are called modified are.

        Raises:
            VerificationError: they need not be.
        """
        demand(self._writes_back or not annotations.modified, "there is no cache whose lines are modified")
        for side in self.sides:
            begin = self.content(side, self.graph.entry, annotations)
            demand(not begin.must and not begin.modified, "nothing is known of the caches where the call begins")
            for node in self.graph.nodes:
                known = self.content(side, node, annotations)
                is_there = known.modified <= known.must.keys()
                demand(is_there, f"a line that is called modified at {node} may not be there")
                for step in side.steps[node]:
                    known = known.behind(side.residents, step)
                for target, passage in self._leading(node):
                    wanted = self.content(side, target, annotations)
                    after = known.along(side.residents, passage) if any(wanted) else wanted
                    holds = must_holds(side.residents, after.must, wanted.must)
                    demand(holds, f"a line that is said to be in the {side.name} cache at {target} need not be")
                    is_modified = wanted.modified <= after.modified
                    demand(is_modified, f"a line that is said to be modified at {target} need not be")

    def _leading(self, node: str) -> Iterator[tuple[str, Passage]]:
        for edge in self.graph.leading[node]:
            if edge.name in self.passages:
                yield edge.target, self.passages[edge.name]

    # ----------------------------------------------------------------------------------------------------- limits

    def left_behind(
        self, side: Side, limit: LinearConstraint, node: str, balance: Balance, misses: Misses
    ) -> tuple[Balance, bool]:
        """What is left of ``limit`` behind ``node``, and whether it was enough."""
        own, is_enough = misses.get(node, {}), True
        for step in side.steps[node]:
            if own.get(step.key) in limit.events:
                balance = side.residents.paid(balance, step, limit.least)
                is_enough = is_enough and balance is not None
            else:
                balance = side.residents.passed(balance, step)
        return balance, is_enough

    def counted(self, limit: LinearConstraint, annotations: Annotations) -> Counted:
        """The steps whose misses ``limit`` counts."""
        return [
            (side, node, step, limit.events[annotations.misses[node][step.key]])
            for node in places_of(limit, annotations)
            for side in self.sides
            for step in side.steps[node]
            if annotations.misses[node].get(step.key) in limit.events
        ]

    def along(
        self, side: Side, limit: LinearConstraint, edge: str, balance: Balance, wanted: Collection[str]
    ) -> Balance:
        """What is left of ``limit`` behind an edge, by one of the names that are ``wanted`` if it has several."""
        if limit.credited.get(edge, 0) > 0:
            return FULL
        return side.residents.carried(balance, self.passages[edge], wanted)

    def resident_along(self, side: Side, edge: Edge, annotations: Annotations) -> Must:
        """The lines that must be in the cache behind ``edge``."""
        must = annotations.must.get(side.name, {}).get(edge.source, _NO_LINES)
        return side.residents.along(self.behind(side, edge.source, must), self.passages[edge.name])

    def at_entry(self, limit: LinearConstraint) -> Balance:
        """What there is of ``limit`` where the call begins."""
        return FULL if limit.constant > 0 or limit.credited.get(ENTER, 0) > 0 else None

    def touched_from(self, limit: LinearConstraint, annotations: Annotations) -> int:
        """The first part in which anything of ``limit`` may be taken; 0 if it gives nothing where the call begins."""
        places = [self.parts.get(node, 0) for node in places_of(limit, annotations)]
        return min(places, default=0) if self.at_entry(limit) == FULL else 0

    def is_limited(self, limit: LinearConstraint, annotations: Annotations) -> bool:
        """Whether the misses that are counted by ``limit`` are no more than it says.

        Raises:
            VerificationError: what is said to be left of it is not.
        """
        if not limit.events.keys().isdisjoint({"write-backs", "write-backs:singles"}):
            return False
        if any(factor != 1 for factor in limit.events.values()):
            return False
        if limit.constant < 0 or any(one < 0 for one in limit.credited.values()):
            return False
        side = self.side_of(limit, annotations)
        if side is None:
            return True  # no access has such misses
        said = annotations.held.get(limit.name, {})
        touched = self.touched_from(limit, annotations)
        entry = said.get(self.graph.entry)
        demand(
            balance_holds(side.residents, self.at_entry(limit), entry),
            f"what is said to be left of {limit.name} at {self.graph.entry} is not",
        )
        is_limited = True
        # Elsewhere nothing is said to be left, nothing is taken, and nothing is claimed behind.
        before = (edge.source for node in said for edge in self.arriving.get(node, ()))
        for node in dict.fromkeys((*said, *places_of(limit, annotations), *before)):
            left = FULL if self.parts.get(node, touched) < touched else said.get(node)
            balance, is_enough = self.left_behind(side, limit, node, left, annotations.misses)
            is_limited = is_limited and is_enough
            for edge in self.graph.leading[node]:
                left = said.get(edge.target)
                if edge.name in self.passages and left is not None:
                    wanted = () if isinstance(left, str) else (left.base,)
                    after = self.along(side, limit, edge.name, balance, wanted)
                    if balance_holds(side.residents, after, left):
                        continue
                    known = self.resident_along(side, edge, annotations) if limit.least == 1 else _NO_LINES
                    is_there = is_resident(side.residents, known, left)
                    demand(is_there, f"what is said to be left of {limit.name} at {edge.target} is not")
        return is_limited

    def side_of(self, limit: LinearConstraint, annotations: Annotations) -> Side | None:
        """The cache whose misses are limited; None where no access has them.

        Raises:
            VerificationError: of two caches.
        """
        found = {side.name: side for side, *_ in self.counted(limit, annotations)}
        demand(len(found) <= 1, f"{limit.name} limits misses of two caches")
        return next(iter(found.values()), None)

    # ------------------------------------------------------------------------------------------------------ costs

    def needed(self, node: str, annotations: Annotations) -> Needed:
        """The least that ``node`` has to charge for its accesses."""
        fills = cycles = leaving_fills = leaving_cycles = modify = singles = 0
        attributed = annotations.misses.get(node, {})
        single_cycles = self.target.memory.single_cycles
        for side in self.sides:
            known = self.content(side, node, annotations)
            missing: list[Step] = []
            for step in side.steps[node]:
                is_hit = side.residents.is_in(known.must, step.spot)
                writes_once = step.is_store and not (self._writes_back and (is_hit or step.fills))
                own = single_cycles * writes_once
                if step.is_store and self._writes_back:
                    singles += writes_once
                    modify += not writes_once and step.spot not in known.modified
                known = known.behind(side.residents, step)
                if not is_hit and step.fills and step.key not in attributed:
                    missing.append(step)
                leaving_cycles += own * step.is_leaving
                cycles += own * (not step.is_leaving)
            leaving = self._fewest(side, node, [step for step in missing if step.is_leaving])
            found = self._fewest(side, node, [step for step in missing if not step.is_leaving])
            cycles += found * side.fill_cycles
            leaving_cycles += leaving * side.fill_cycles
            if side.name == DATA:
                fills, leaving_fills = found, leaving
        region, leaving_region = self._region_cycles(node) if self.target.dcache else (0, 0)
        cycles += region + unaligned_accesses(self.traced[node].executed, self.target)
        return Needed(fills, cycles, modify, singles, leaving_fills, leaving_cycles + leaving_region)

    @property
    def _writes_back(self) -> bool:
        return self.target.dcache is not None and self.target.dcache.write_back

    def _fewest(self, side: Side, node: str, missing: Sequence[Step]) -> int:
        """The misses of one execution: accesses by one base miss once for each line, if nothing evicts it meanwhile."""
        groups: dict[object, list[Step]] = {}
        for step in missing:
            key = (step.spot.base, step.spot.granule_bytes) if step.spot is not None else step.key
            groups.setdefault(key, []).append(step)
        total = 0
        for steps in groups.values():
            spots = [step.spot for step in steps if step.spot is not None]
            if len(spots) < 2:
                total += len(steps)
                continue
            lines = most_lines(
                {spot.offset for spot in spots}, spots[0].granule_bytes, side.residents.config.line_bytes
            )
            limit = LinearConstraint("", {"": 1}, {ENTER: lines}, 0)
            own = {node: {step.key: "" for step in steps}}
            _, is_enough = self.left_behind(side, limit, node, FULL, own)
            total += min(lines, len(steps)) if is_enough else len(steps)
        return total

    def _region_cycles(self, node: str) -> tuple[int, int]:
        """What uncached regions cost, to which accesses may be; and those that take place where the node is left."""
        cycles = leaving = 0
        for instruction, accesses in self.traced[node].executed:
            is_leaving = any(step.is_leaving for step in self._of(node, instruction.address))
            for access, addresses in zip(instruction.accesses, accesses, strict=True):
                for address in addresses:
                    most = region_cycles(access, address, self.target)
                    leaving += most * is_leaving
                    cycles += most * (not is_leaving)
        return cycles, leaving

    def _of(self, node: str, address: int) -> Iterator[Step]:
        return (
            step for side in self.sides for step in side.steps[node]
            if step.instruction_address == address and not step.is_fetch
        )  # fmt: skip


def places_of(limit: LinearConstraint, annotations: Annotations) -> Iterator[str]:
    """The nodes with misses that ``limit`` counts."""
    return iter(dict.fromkeys(node for name in limit.events for node in annotations.places.get(name, ())))


def caches_of(
    target: Target, graph: Graph, coverage: Coverage, tracer: Tracer, crosses_no_line: Callable[[int], bool]
) -> Caches:
    """The accesses of ``graph``, each node executed once on names.

    Args:
        target: a core with caches, or one on which unaligned accesses take longer.
        graph: of the certificate.
        coverage: of it.
        tracer: executes nodes.
        crosses_no_line: whether an assumption says so of the accesses of the instruction at an address.

    Raises:
        VerificationError: a name does not hold.
    """
    traced, passages = _followed(graph, coverage, tracer)
    tracer.check_believed(passages.values())
    classes = {symbol: home[2] for symbol, home in tracer.names.homes.items()}
    sides: list[Side] = []
    none: dict[str, tuple[Step, ...]] = dict.fromkeys(graph.nodes, ())
    if target.icache is not None and not target.unified_cache:
        fetches = {node: fetch_steps(coverage.instructions[node], target.icache) for node in traced}
        fill = target.memory.line_cycles(target.icache.line_bytes)
        sides.append(Side(FETCH, Residents(target.icache, classes, tracer.terms.symbols_of), none | fetches, fill))
    if target.dcache is not None:
        asserted = tracer.names.asserted
        data = {
            node: data_steps(own, target, crosses_no_line, asserted, tracer.placed(node), node=node)
            for node, own in traced.items()
        }
        sets = sets_of_bases(step for own in data.values() for step in own)
        fill = target.memory.line_cycles(target.dcache.line_bytes)
        sides.append(Side(DATA, Residents(target.dcache, classes, tracer.terms.symbols_of, sets), none | data, fill))
    leading = {node: [edge.target for edge in graph.leading[node] if edge.name in passages] for node in graph.nodes}
    parts = parts_of(leading, graph.entry)
    known = {node: traced.get(node, _NEVER) for node in graph.nodes}
    return Caches(target, graph, tuple(sides), passages, arriving_edges(graph), parts, known, tracer)


def _followed(graph: Graph, coverage: Coverage, tracer: Tracer) -> tuple[dict[str, Traced], dict[str, Passage]]:
    """The nodes that control may come to, each executed once on names, and what the edges do that it may take.

    *Soundness:* what names say of the entry holds, and what they say of a node that one of these edges leads to, if
    they hold where that begins; an edge that no way out leads along is not taken then. So are fewer than by numbers
    alone: of two places with one name neither is less than the other.
    """
    traced, waiting = dict[str, Traced](), [graph.entry]
    while waiting:
        node = waiting.pop()
        if node not in traced:
            traced[node] = tracer.trace(node)
            taken = coverage.taken.keys() & traced[node].leaving.keys()
            waiting += [edge.target for edge in graph.leading[node] if edge.name in taken]
    found = ((edge.name, tracer.passage(edge, traced[node])) for node in traced for edge in graph.leading[node])
    return traced, {name: passage for name, passage in found if passage is not None}
