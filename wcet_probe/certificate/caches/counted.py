# SPDX-License-Identifier: 0BSD
"""Limits of misses by counting: of executions, of all lines that accesses may be to, of those of a strided traversal.

Each is a rule that needs nothing of the certificate but the limit itself; `docs/explanation/certificates.md` has them
as judgements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.misses import ENTER, Caches, Counted, LinearConstraint, Side
from wcet_probe.certificate.caches.residents import NOTHING, YoungerSet, lasting_ways, union
from wcet_probe.certificate.caches.steps import Spot, Step, most_lines
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.kernel.shapes import natural_loop, reached
from wcet_probe.certificate.names.names import Objects
from wcet_probe.certificate.values.numbers import WORD, signed
from wcet_probe.model.target import CacheConfig, Replacement

_LONGEST_STEP_BYTES = 1 << 16
_MOST_LINES = WORD // _LONGEST_STEP_BYTES // 2
_MOST_EDGES = 50_000_000
"""So many are looked at for all limits together whose lines may be kept; the others are not checked."""


class Counting:
    """Answers about limits on one graph; what does not depend on the limit is found once."""

    def __init__(self, caches: Caches, loops: Sequence[LoopRecord]) -> None:
        self.caches, self._loops = caches, loops
        self.edges_left = _MOST_EDGES

    def holds(self, limit: LinearConstraint, annotations: Annotations) -> bool:
        """Whether ``limit`` holds by one of the rules of this module."""
        if limit.constant < 0 or any(one < 0 for one in limit.credited.values()):
            return False
        own = [one for one in self.caches.counted(limit, annotations) if one[-1] > 0]
        if _is_executed(self, limit, own):
            return True
        is_of_one_cache = len({side.name for side, *_ in own}) == 1
        return is_of_one_cache and (_is_kept(self, limit, own) or _is_strided(self, limit, own))

    @cached_property
    def once(self) -> frozenset[str]:
        """Nodes that a call executes once at most: from which no edges that are taken lead back to them."""
        parts, sizes = self.caches.parts, Counter(self.caches.parts.values())
        edges = (edge for edge in self.caches.graph.edges if edge.name in self.caches.passages)
        again = {edge.source for edge in edges if edge.source == edge.target}
        return frozenset(node for node, part in parts.items() if sizes[part] == 1 and node not in again)

    @cached_property
    def loops(self) -> Sequence[_Loop]:
        """The loops with all of their nodes."""
        taken = {
            node: [edge for edge in edges if edge.name in self.caches.passages]
            for node, edges in self.caches.arriving.items()
        }
        return [
            _Loop(one.header, one.entering, one.back, frozenset(natural_loop(one.header, one.back, taken)))
            for one in self._loops
        ]

    @cached_property
    def around(self) -> Mapping[str, Sequence[_Loop]]:
        """The loops by each of their nodes."""
        found: dict[str, list[_Loop]] = {}
        for loop in self.loops:
            for node in loop.inside:
                found.setdefault(node, []).append(loop)
        return found


def _is_executed(counting: Counting, limit: LinearConstraint, own: Counted) -> bool:
    """Whether each execution of a node has a credit for each of the accesses in it whose misses are counted.

    Edges into the node give it, or the constant does, for a node that a call executes once at most.
    """
    times, caches = Counter[str](), counting.caches
    for _, node, _, factor in own:
        times[node] += factor
    paid = dict.fromkeys(times, True)
    for edge in (edge for node in times for edge in caches.arriving.get(node, ())):
        if edge.name in caches.passages:
            paid[edge.target] &= limit.credited.get(edge.name, 0) >= times[edge.target]
    entry = caches.graph.entry
    if entry in times:
        paid[entry] &= limit.credited.get(ENTER, 0) >= times[entry]
    others = {node for node, is_paid in paid.items() if not is_paid}
    return others <= counting.once and sum(times[node] for node in others) <= limit.constant


# ---------------------------------------------------------------------------------------------------------------- kept


def _is_kept(counting: Counting, limit: LinearConstraint, own: Counted) -> bool:
    """Whether each line of the accesses is missed once at most in a stay, and there is a credit for each of them.

    This is persistence, of all the lines together, with a stay as its scope. A stay begins where an edge, or the
    constant, gives so many. That a line stays until the last of the accesses needs that all lines which may be accessed
    in its set between fit in it together.
    """
    caches, side = counting.caches, own[0][0] if own else None
    if side is None or not all(step.fills for _, _, step, _ in own):
        return False
    steps = [step for _, _, step, _ in own]
    sets = _sets(steps, side.residents.config)
    lines = _most_lines(steps, side.residents.config)
    if lines is None:
        return False
    most = lines * max(factor for *_, factor in own)
    credited = {**limit.credited, ENTER: limit.credited.get(ENTER, 0) + limit.constant}
    giving = {edge for edge, credits_given in credited.items() if credits_given >= most}
    counting.edges_left -= len(caches.graph.edges)
    if not giving or counting.edges_left < 0:
        return False
    within = [edge for edge in caches.graph.edges if edge.name in caches.passages and edge.name not in giving]
    leading, arriving = dict[str, list[str]](), dict[str, list[str]]()
    for edge in within:
        leading.setdefault(edge.source, []).append(edge.target)
        arriving.setdefault(edge.target, []).append(edge.source)
    counted, entry = {node for _, node, _, _ in own}, caches.graph.entry
    if ENTER not in giving and not counted.isdisjoint(reached([entry], lambda node: leading.get(node, ()))):
        return False
    starts = [entry, *(edge.target for edge in caches.graph.edges if edge.name in giving)]
    between = reached(starts, lambda node: leading.get(node, ())) & reached(
        counted, lambda node: arriving.get(node, ())
    )
    begun = set[str]()
    for edge in within:
        if edge.source in between and edge.target in between:
            begun |= caches.passages[edge.name].begins
    fullest = _fullest_set(caches, [step for node in between for step in side.steps[node]], side, sets, begun)
    return fullest is not None and fullest <= _kept_ways(side.residents.config)


def _sets(steps: Sequence[Step], config: CacheConfig) -> frozenset[int]:
    """The sets in which lines of accesses may be."""
    lines = [step.lines if step.objects is None else None for step in steps]
    known = [one for one in lines if one is not None]
    return (
        frozenset(line % config.sets for one in known for line in one)
        if len(known) == len(lines)
        else frozenset(range(config.sets))
    )


def _most_lines(steps: Sequence[Step], config: CacheConfig) -> int | None:
    """Most lines of accesses, if each base has one value; None if nothing tells of one how many."""
    numbers, spots, facts = set[int](), dict[str, set[Spot]](), set[Objects]()
    for step in steps:
        if step.objects is not None:
            facts.add(step.objects)
        elif step.lines is not None:
            numbers |= step.lines
        elif step.spot is not None:
            spots.setdefault(step.spot.base, set()).add(step.spot)
        else:
            return None
    named = sum(
        most_lines([spot.offset for spot in own], min(spot.granule_bytes for spot in own), config.line_bytes)
        for own in spots.values()
    )
    return len(numbers) + named + sum(fact.lines for fact in facts)


def _kept_ways(config: CacheConfig) -> int:
    """Lines of a set that stay in it together, once they were accessed.

    First-in first-out: between two fills of a line as many others are filled as there are ways; of the first line that
    is filled twice these are all different, so there were more lines than ways.
    """
    return config.ways if config.replacement is Replacement.FIFO else lasting_ways(config)


def _fullest_set(
    caches: Caches, steps: Iterable[Step], side: Side, sets: Collection[int], begun: Collection[str]
) -> int | None:
    """Most different lines of one of the ``sets`` that accesses are to; None if nothing tells of some how many.

    A base is one line of any set, but if a symbol that it is made of has ``begun`` between them.
    """
    numbers, bases, counted = set[int](), set[str](), set[tuple[str, int]]()
    for step in steps:
        if step.objects is not None:
            counted.add((step.objects.where, step.objects.lines_per_set))
        elif step.lines is not None:
            numbers |= step.lines
        elif step.spot is not None and _has_one_value(caches, step.spot.base, begun):
            bases.add(step.spot.base)
        else:
            return None
    known = Counter(number % side.residents.config.sets for number in numbers)
    return max((known[one] for one in sets), default=0) + len(bases) + sum(per_set for _, per_set in counted)


def _has_one_value(caches: Caches, base: str, begun: Collection[str]) -> bool:
    """Whether a base is the same address for as long as no symbol begins but those that have ``begun``."""
    own = base.partition("^")[0]
    symbols = caches.tracer.terms.symbols_of(own)
    return own == "stack" or (symbols is not None and symbols.isdisjoint(begun))


# ---------------------------------------------------------------------------------------------------------- traversals


def _is_strided(counting: Counting, limit: LinearConstraint, own: Counted) -> bool:
    """Whether all misses are of one access in a loop that moves in one direction, and pay for the lines it comes to."""
    spots = {step.spot for _, _, step, _ in own}
    spot = next(iter(spots), None)
    if len(spots) != 1 or spot is None or not all(step.is_certain and step.fills for _, _, step, _ in own):
        return False
    nodes, caches = {node for _, node, _, _ in own}, counting.caches
    for loop in counting.around.get(own[0][1], ()):
        if nodes <= loop.inside:
            step_bytes = _step_bytes(caches, spot, loop)
            if step_bytes is not None and (
                _pays(caches, limit, own, step_bytes, loop) or _pays_lines(limit, own, step_bytes, loop)
            ):
                return _stays(caches, own, spot, loop.inside)
    return False


class _Loop(NamedTuple):
    """A loop: its header, the edges into it, those back to it, and all of its nodes."""

    header: str
    entering: Sequence[str]
    back: Sequence[str]
    inside: frozenset[str]


def _step_bytes(caches: Caches, spot: Spot, loop: _Loop) -> int | None:
    """Most that the base of ``spot`` moves in a round of a loop, in one direction; None if nothing tells.

    It moves by a constant and by multiples of symbols of one value in an entry of the loop, in ranges that the
    invariants tell where the loop begins.
    """
    base, tracer = spot.base.partition("^")[0], caches.tracer
    form = {base: 1} if base in tracer.names.homes else tracer.terms.linear.get(base)
    if form is None or not form.keys() <= tracer.names.homes.keys():
        return None
    ends, begun = caches.passages.keys() & set(loop.back), set[str]()
    for edge in (edge for node in loop.inside for edge in caches.graph.leading[node]):
        passage = caches.passages.get(edge.name)
        if passage is not None and edge.target in loop.inside:
            begun |= passage.begins
            if edge.name not in ends and not passage.begins.isdisjoint(form):
                return None
    fixed = {name: one for name, one in tracer.ranges_at(loop.header).items() if name not in begun}
    lows, highs = [0], [0]
    for name in ends:
        passage, moved, bytes_more = caches.passages[name], Counter[str](), 0
        for symbol in form.keys() & passage.begins:
            value = passage.values.get(symbol)
            if value is None or not value.base.startswith("@"):
                return None
            bytes_more += form[symbol] * value.low
            own = value.base.removeprefix("@")
            for part, times in tracer.terms.linear.get(own, {own: 1}).items():
                moved[part] += form[symbol] * times
            moved[symbol] -= form[symbol]
        parts = {part: times for part, times in moved.items() if times % WORD}
        if not parts.keys() <= fixed.keys():
            return None
        reached = [sorted((signed(times) * fixed[part].low, signed(times) * fixed[part].high))
                   for part, times in parts.items()]  # fmt: skip
        lows.append(signed(bytes_more) + sum(low for low, _ in reached))
        highs.append(signed(bytes_more) + sum(high for _, high in reached))
    return max(-min(lows), *highs) if ends and not min(lows) < 0 < max(highs) else None


def _pays(caches: Caches, limit: LinearConstraint, own: Counted, step_bytes: int, loop: _Loop) -> bool:
    """Whether each entry of the loop pays for two lines but for a byte, and each round for what it moves besides.

    In n rounds an address moves by (n - 1) steps, and so comes to at most that / line bytes + 2 - 1 / line bytes lines.
    Rounds are counted where the loop begins, or where its only access is, if no round is without it.
    """
    side, node = own[0][0], own[0][1]
    line_bytes, factor = side.residents.config.line_bytes, max(factor for *_, factor in own)
    counted = [loop.header]
    if len({node for _, node, _, _ in own}) == 1 and _is_passed(caches, loop.header, node, loop.inside):
        counted.append(node)
    for place in counted:
        needed = Counter(dict.fromkeys(loop.entering, 2 * line_bytes - 1 - step_bytes))
        for edge in caches.arriving.get(place, ()):
            if edge.name in caches.passages:
                needed[edge.name] += step_bytes
        if place == caches.graph.entry:
            needed[ENTER] += step_bytes
        credited = Counter({**limit.credited, ENTER: limit.credited.get(ENTER, 0) + limit.constant})
        if all(
            line_bytes * credited[name] >= factor * least
            for name, least in needed.items()
            if name == ENTER or name in caches.passages
        ):
            return True
    return False


def _pays_lines(limit: LinearConstraint, own: Counted, step_bytes: int, loop: _Loop) -> bool:
    """Whether each entry of the loop pays for all lines that a fact counts of the accesses, which it leaves but once.

    To come back to a line that was left an address has to go around the words, and so comes to more lines than that.
    """
    facts, factor = {step.objects for _, _, step, _ in own}, max(factor for *_, factor in own)
    most = next(iter(facts))
    if len(facts) != 1 or most is None or step_bytes > _LONGEST_STEP_BYTES or most.lines > _MOST_LINES:
        return False
    credited = Counter({**limit.credited, ENTER: limit.credited.get(ENTER, 0) + limit.constant})
    return all(credited[name] >= factor * most.lines for name in loop.entering)


def _is_passed(caches: Caches, header: str, node: str, inside: Iterable[str]) -> bool:
    """Whether every round of a loop comes to ``node``, and once: none leads around it, or back to it."""
    return not _comes_back(caches, header, header, inside, without=node) and not _comes_back(
        caches, node, node, inside, without=header
    )


def _comes_back(caches: Caches, start: str, end: str, inside: Iterable[str], *, without: str) -> bool:
    nodes = set(inside) - {without}

    def following(node: str) -> list[str]:
        edges = caches.graph.leading[node]
        return [edge.target for edge in edges if edge.name in caches.passages and edge.target in nodes]

    return start != without and end in reached(following(start), following)


_LAST = "last"
_GONE = None
Last = YoungerSet | None
"""What may have been accessed since the traversal's last access; None: so much that its line may be gone."""


def _stays(caches: Caches, own: Counted, spot: Spot, inside: Iterable[str]) -> bool:
    """Whether the line of the traversal's last access is in the cache where its next is that may miss.

    ``_LAST`` is the name of that line: the name of the access has another line in each round. A state is missing where
    the traversal has made no access since the loop was entered.
    """
    side, counted = own[0][0], {(node, step.key) for _, node, step, _ in own}
    residents, last = side.residents, Spot(_LAST, 0, spot.granule_bytes)
    nodes, states = set(inside), dict[str, Last]()
    waiting = sorted(nodes)
    while waiting:
        node = waiting.pop()
        state, is_known = states.get(node), node in states
        for step in side.steps[node]:
            if is_known and state is _GONE and (node, step.key) in counted:
                return False
            if step.spot == spot and step.is_certain and step.fills:
                state, is_known = NOTHING, True
            elif state is not _GONE:
                state = residents.aged(last, state, step)
        for edge in caches.graph.leading[node] if is_known else ():
            if edge.name not in caches.passages or edge.target not in nodes:
                continue
            after = _GONE if state is _GONE else residents.substituted(last, state, caches.passages[edge.name])
            old = states.get(edge.target)
            if edge.target in states:
                after = _GONE if old is _GONE or after is _GONE else residents.kept(last, union(old, after))
            if edge.target not in states or after != old:
                states[edge.target] = after
                waiting.append(edge.target)
    return True
