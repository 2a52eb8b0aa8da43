# SPDX-License-Identifier: 0BSD
"""Are misses of caches and write-backs charged: each access hits, or is charged, or is counted where a limit is shown.

So are unaligned accesses, where they take longer, with caches or without.

What a limit allows and misses do not rest on is *not checked*, by the name of the lemma that the analysis used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.certificate.caches.annotations import Annotations, annotations_of
from wcet_probe.certificate.caches.counted import Counting
from wcet_probe.certificate.caches.misses import (
    DATA,
    ENTER,
    Caches,
    LinearConstraint,
    Needed,
    caches_of,
    limits_of,
    paying,
)
from wcet_probe.certificate.facts.asserted import Asserted, Fact, lines_of
from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.loops import value_of
from wcet_probe.certificate.kernel.records import Graph, LoopRecord, Records, demand, existing, loops_of
from wcet_probe.certificate.names.names import Objects, PointerFact, Pointers, Traced
from wcet_probe.certificate.names.symbols import Tracer, speaking
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Place
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import AccessKind
from wcet_probe.model.target import Isa, Target

WRITE_BACKS, SINGLES = "write-backs", "write-backs:singles"
ALIGNMENT = "no data access crosses a cache line at "
_CONTROL_BYTES = 1 << 12
_CACHE_REGISTERS = (
    (0xE000_ED14, 0xE000_ED18),  # CCR turns them on and off
    (0xE000_ED90, 0xE000_EDC0),  # the memory protection unit says what is cached
    (0xE000_EF50, 0xE000_EFAC),  # invalidates and cleans, and controls of the caches and the tightly coupled memories
)
"""Addresses of the system control space of ARMv7-M (ARM DDI 0403E, B2.2.7, B3.2 and B3.5) that concern caches."""
_LEMMAS = (
    (re.compile(r"miss.*:(traversal|sweep).*"), "lines of a strided traversal"),
    (re.compile(r"miss:(objects|changes):.*"), "lines that facts count"),
    (re.compile(r"miss:kept.*"), "all lines of the call"),
    (re.compile(r"miss:.*:(first|again).*"), "visits that facts tell of"),
    (re.compile(r"(write|modified):.*"), "stores that fill nothing"),
    (re.compile(r"write-backs.*"), "write-backs"),
    (re.compile(r"refetch:.*"), "code that data evicts"),
    (re.compile(r"fetch:.*"), "fetches"),
    (re.compile(r".*"), "a line in its scope"),
)


@dataclass(slots=True)
class Cached:
    """What was found of caches.

    Attributes:
        needed: by node, the least that it charges besides its instructions.
        paid: by edge, cycles that it pays.
        shown: limits of misses that hold.
        open: limits that were not shown, by lemma.
        unchecked: nodes whose costs the prover does not show to be enough.
        assumptions: those that were used.
        traced: each node, as it was executed.
    """

    needed: Mapping[str, Needed]
    paid: Mapping[str, int]
    shown: list[str] = field(default_factory=list)
    open: dict[str, list[str]] = field(default_factory=dict)
    unchecked: frozenset[str] = frozenset()
    assumptions: set[str] = field(default_factory=set)
    traced: Mapping[str, Traced] = field(default_factory=dict)

    @property
    def lemmas(self) -> str:
        """What is not shown, for people."""
        return "; ".join(f"{lemma} ({len(names)}, {names[0]})" for lemma, names in sorted(self.open.items()))


def pointers(asserted: Asserted, parameters: Mapping[str, int], image: Image) -> Pointers:
    """What facts about pointers say of addresses."""
    facts = [
        PointerFact(
            tuple(map(str, fact.content.get("functions") or ())),
            (
                value_of(fact.expression("multiple_of") or "1", parameters),
                value_of(fact.expression("remainder") or "0", parameters),
            ),
            fact.expression("symbol"),
            _objects(fact, parameters),
            fact.where,
            _sets(fact, parameters),
        )
        for fact in asserted.of("pointer")
    ]
    words = [
        address
        for fact in asserted.of("word")
        for address in words_of(
            image,
            str(fact.content.get("symbol")),
            None if "field" in fact.content else value_of(fact.expression("offset") or "0", parameters),
        )
    ]
    return pointers_of(facts, image, asserted.sources or {}, words)


def words_of(image: Image, symbol: str, offset: int | None) -> range:
    """The address of the word that a fact tells of; of a member (``offset`` is None) those of its whole object."""
    found = existing(image.symbols.get(symbol), f"the binary has no {symbol}, of which a fact tells a word")
    if offset is not None:
        return range(found.address + offset, found.address + offset + 1)
    return range(found.address & ~3, found.address + found.size_bytes, 4)


def _objects(fact: Fact, parameters: Mapping[str, int]) -> Objects | None:
    lines, per_set = fact.expression("lines"), fact.expression("lines_per_set")
    if lines is None or per_set is None:
        return None
    return Objects(fact.where, value_of(lines, parameters), value_of(per_set, parameters))


def _sets(fact: Fact, parameters: Mapping[str, int]) -> tuple[int, int] | None:
    first, count = fact.expression("first_set"), fact.expression("sets")
    return None if first is None or count is None else (value_of(first, parameters), value_of(count, parameters))


def pointers_of(
    facts: Sequence[PointerFact], image: Image, sources: Mapping[str, str], words: Collection[int]
) -> Pointers:
    """What ``facts`` say of addresses; nothing if ``sources`` do not tell the lines of a function that they name.

    Of ``words`` facts tell what they hold.
    """
    found = {name: lines_of(sources, name) for fact in facts for name in fact.functions}
    lines = {name: one for name, one in found.items() if one is not None}
    return Pointers(tuple(facts), image, lines, frozenset(words)) if len(lines) == len(found) else Pointers()


def no_crossing(image: Image, statement: str | None, used: set[str]) -> Callable[[int], bool]:
    """Whether the assumption ``alignment`` names the instruction at an address; ``used`` is told when it does."""
    places = frozenset(statement.removeprefix(ALIGNMENT).split(", ")) if statement else frozenset[str]()
    demand(statement is None or statement.startswith(ALIGNMENT), "the assumption alignment says something else")

    def crosses_no_line(address: int) -> bool:
        is_named = image.place(address) in places
        if is_named:
            used.add("alignment")
        return is_named

    return crosses_no_line


def check_caches(
    code: Code,
    graph: Graph,
    records: Records,
    invariants: Mapping[str, Mapping[Place, Value]],
    coverage: Coverage,
    target: Target,
    asserted: Pointers,
    alignment: str | None,
) -> Cached:
    """Check what the certificate in cycles says of caches.

    Args:
        code: the image.
        graph: of the certificate.
        records: of it.
        invariants: of its nodes.
        coverage: of the graph.
        target: a core with caches, or one on which unaligned accesses take longer.
        asserted: see `multiples`.
        alignment: the statement of that assumption, if it is listed.

    Raises:
        VerificationError: something that is said does not hold.
    """
    used: set[str] = set()
    annotations = annotations_of(records, speaking(asserted, code, graph, invariants, coverage))
    tracer = Tracer(code, graph, invariants, coverage, annotations.names)
    tracer.check_entry()
    caches = caches_of(target, graph, coverage, tracer, no_crossing(code.image, alignment, used))
    _check_registers(caches, code.image)
    _check_names(caches, annotations, {name: int(cost) for name, cost in records["event"]})
    caches.check_contents(annotations)
    if target.dcache is not None or target.unaligned:
        used |= {f"fact {fact.where}" for fact in asserted.facts}
        used |= {"stack-alignment"} if tracer.rests_on_stack else set()
    limits = limits_of(records)
    needed = {node: caches.needed(node, annotations) for node in graph.nodes}
    needed = _charged_as_singles(caches, limits, needed, coverage)
    paid: Counter[str] = Counter()
    for name, limit in paying(annotations).items():
        demand(caches.is_limited(limit, annotations), f"the edges of {name} do not pay for all of its misses")
        side = caches.side_of(limit, annotations)
        for edge in limit.credited if side is not None else ():
            paid[edge] += side.fill_cycles if side is not None else 0
    found = Cached(needed, paid, unchecked=annotations.unchecked, assumptions=used, traced=caches.traced)
    events = {name: int(cost) for name, cost in records["event"]}
    shown = shown_limits(caches, limits, annotations, needed, coverage, events=events, loops=loops_of(records))
    for name in limits:
        if name in shown:
            found.shown.append(name)
        else:
            lemma = next(words for pattern, words in _LEMMAS if pattern.fullmatch(name))
            found.open.setdefault(lemma, []).append(name)
    return found


def _check_registers(caches: Caches, image: Image) -> None:
    """No store is known to be to a register that manages caches or says what they hold, as it is not modelled.

    Raises:
        VerificationError: one is.
    """
    if image.isa is not Isa.THUMB or not caches.sides:
        return
    for traced in caches.traced.values():
        for instruction, accesses in traced.executed:
            for access, addresses in zip(instruction.accesses, accesses, strict=True):
                values = [one.number for one in addresses if access.kind is not AccessKind.LOAD]
                is_there = any(
                    value.is_number
                    and value.high - value.low < _CONTROL_BYTES
                    and value.low < end
                    and value.high >= first
                    for value in values
                    for first, end in _CACHE_REGISTERS
                )
                demand(not is_there, f"{image.location(instruction.address)} may change the caches: it is not modelled")


def shown_limits(
    caches: Caches,
    limits: Mapping[str, LinearConstraint],
    annotations: Annotations,
    needed: Mapping[str, Needed],
    coverage: Coverage,
    *,
    events: Mapping[str, int],
    loops: Sequence[LoopRecord],
) -> frozenset[str]:
    """The names of those of ``limits`` that are found to hold.

    Args:
        caches: of the graph.
        limits: constraints on events.
        annotations: what the certificate says of caches.
        needed: by node, what it has to charge besides its instructions.
        coverage: of the graph.
        events: what each costs.
        loops: of the graph.

    Raises:
        VerificationError: what is said to be left of one of them is not.
    """
    write_backs, counting = _WriteBacks(caches, annotations, needed, coverage), Counting(caches, loops)
    is_split = any(write_backs.are_split(limit, events) for limit in limits.values())

    def holds(limit: LinearConstraint) -> bool:
        if limit.events.keys().isdisjoint({WRITE_BACKS, SINGLES}):
            return caches.is_limited(limit, annotations) or counting.holds(limit, annotations)
        return write_backs.are_limited(limit, is_split=is_split)

    return frozenset(name for name, limit in limits.items() if holds(limit))


def _check_names(caches: Caches, annotations: Annotations, events: Mapping[str, int]) -> None:
    """Misses are of accesses that there are, and counted by events that cost as much, or paid by edges."""
    demand(annotations.paid.keys().isdisjoint(events), "an event has the name of edges that pay")
    edges = {edge.name for edge in caches.graph.edges}
    demand(all(edges.issuperset(own) for own in annotations.paid.values()), "an edge that pays is none")
    demand(all(len(set(own)) == len(own) for own in annotations.paid.values()), "an edge pays twice")
    costs: dict[str, int] = {}
    for node, misses in annotations.misses.items():
        known = {step.key: side.fill_cycles for side in caches.sides for step in side.steps[node] if step.fills}
        for key, name in misses.items():
            demand(key in known, f"a miss at {node} is of no access that fills a line")
            demand(name in events or name in annotations.paid, f"the misses at {node} are counted nowhere")
            demand(name not in {WRITE_BACKS, SINGLES}, f"misses at {node} are counted as write-backs")
            costs[name] = max(costs.get(name, 0), known[key])
    for name, least in costs.items():
        demand(name in annotations.paid or events[name] >= least, f"a miss of {name} costs at least {least}")
    data = caches.target.dcache
    if data is not None and data.write_back:
        fill = caches.target.memory.line_cycles(data.line_bytes)
        demand(events.get(WRITE_BACKS, -1) >= fill, f"write-backs are not charged, each {fill}")


def _limits_write_backs(limit: LinearConstraint) -> bool:
    above = {name: factor for name, factor in limit.events.items() if factor > 0}
    return above.keys() <= {WRITE_BACKS, SINGLES} and above.get(WRITE_BACKS) == 1 and above.get(SINGLES, 1) == 1


def _charged_as_singles(
    caches: Caches, limits: Mapping[str, LinearConstraint], needed: Mapping[str, Needed], coverage: Coverage
) -> dict[str, Needed]:
    """As ``needed``, but stores that modify a line are single writes where the certificate counts them so.

    The analysis did not see that the store finds its line. Then the node is charged a single write that it does not
    need, which pays for that part of the write-back that the event of single writes leaves out.
    """
    own = [limit for limit in limits.values() if _limits_write_backs(limit) and SINGLES not in limit.events]
    single = [limit for limit in limits.values() if limit.events == {SINGLES: 1}]
    if len(own) != 1 or len(single) != 1:
        return dict(needed)
    found = dict(needed)
    for node, one in needed.items():
        into = [edge.name for edge in caches.arriving.get(node, ()) if edge.name in coverage.taken]
        if not into or node == caches.graph.entry:
            continue
        modify, singles = (min(limit.credited.get(name, 0) for name in into) for limit in (own[0], single[0]))
        moved = min(one.modify - modify, singles - one.singles)
        if moved > 0:
            cycles = one.cycles + moved * caches.target.memory.single_cycles
            found[node] = replace(one, modify=one.modify - moved, singles=one.singles + moved, cycles=cycles)
    return found


@dataclass(frozen=True, slots=True)
class _WriteBacks:
    """Limits of write-backs: of all, or, if they are split, of single writes and others by events of their own."""

    caches: Caches
    annotations: Annotations
    needed: Mapping[str, Needed]
    coverage: Coverage

    def are_limited(self, limit: LinearConstraint, *, is_split: bool) -> bool:
        """Whether a limit holds.

        Write-backs are all counted by the dearer event, or, if they ``are split``, by the other those of lines that a
        store modified first which is charged as a single write.
        """
        if limit.constant < 0 or any(one < 0 for one in limit.credited.values()):
            return False
        if limit.events == {SINGLES: 1}:
            return not is_split or self._counts(limit, {node: one.singles for node, one in self.needed.items()}, 0)
        if not _limits_write_backs(limit):
            return False
        if is_split and SINGLES not in limit.events and self._counts_modified(limit):
            return True
        return not self.annotations.unchecked and self._are_fills(limit)

    def are_split(self, limit: LinearConstraint, events: Mapping[str, int]) -> bool:
        """Whether a limit is that of lines that are modified, with what it needs besides."""
        data, memory = self.caches.target.dcache, self.caches.target.memory
        if data is None or not _limits_write_backs(limit) or SINGLES in limit.events:
            return False
        dearer = memory.line_cycles(data.line_bytes) - memory.single_cycles
        is_charged = events.get(SINGLES, -1) >= dearer or not any(one.singles for one in self.needed.values())
        return is_charged and self._counts_modified(limit)

    def _counts_modified(self, limit: LinearConstraint) -> bool:
        """Whether a limit counts each line of the cache at the entry, and each store that may modify another one."""
        data = self.caches.target.dcache
        times = {node: one.modify for node, one in self.needed.items()}
        return data is not None and self._counts(limit, times, data.sets * data.ways)

    def _counts(self, limit: LinearConstraint, times: Mapping[str, int], before: int) -> bool:
        """Whether a limit allows ``before`` and the ``times`` of each node that is executed."""
        if limit.constant + limit.credited.get(ENTER, 0) < before + times[self.caches.graph.entry]:
            return False
        edges = (edge for edge in self.caches.graph.edges if edge.name in self.coverage.taken)
        return all(limit.credited.get(edge.name, 0) >= times[edge.target] for edge in edges)

    def _are_fills(self, limit: LinearConstraint) -> bool:
        """Whether a limit counts each miss that fills a line of the data cache."""
        graph, needed = self.caches.graph, self.needed
        if limit.constant + limit.credited.get(ENTER, 0) < needed[graph.entry].fills:
            return False
        for edge in graph.edges:
            leaving = needed[edge.source].leaving_fills if edge.name in self.coverage.gone else 0
            least = needed[edge.target].fills + leaving
            if edge.name in self.coverage.taken and limit.credited.get(edge.name, 0) < least:
                return False
        if any(limit.credited.get(f"leave:{node}", 0) < needed[node].leaving_fills for node in graph.exits):
            return False
        misses = self.annotations.misses
        return all(
            limit.events.get(misses[node][step.key], 0) <= -1
            for side in self.caches.sides
            if side.name == DATA
            for node in misses
            for step in side.steps[node]
            if step.key in misses[node]
        )
