"""Abstract states of one cache set: which lines it must hold, and which it may hold.

All states speak of a set under least-recently-used replacement (LRU): a line's age is the number of other lines that
the set was touched for since the line itself was. An access *touches* its line if it hits or fills it; a write that
misses in a cache without write-allocate touches nothing. LRU with k ways holds the lines of age < k. Other policies are
reduced to it: :func:`effective_ways` gives an LRU set whose lines are all in the real set, and one that holds them all.

Must and may analysis are those of C. Ferdinand and R. Wilhelm, Efficient and precise cache behavior prediction for
real-time systems, Real-Time Systems 17, 1999, with updates that age no line twice for an access to a younger one.

Words: set, way, replacement policy, must analysis, may analysis (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.errors import UsageError
from wcet_probe.model.target import CacheConfig, Replacement

_NOTHING: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class EffectiveWays:
    """A set of any policy between two LRU sets.

    Attributes:
        must: ways of an LRU set whose content is always in the real set.
        may: ways of an LRU set that always holds the real set's content; None where no number of ways is enough.
    """

    must: int
    may: int | None


@dataclass(frozen=True, slots=True)
class SetAccess:
    """The part of an access that falls in one set.

    Attributes:
        index: of the access in its node.
        lines: line numbers of the set that it may be to; None for any.
        is_certain: False where it may also be to another set, or not take place.
        fills: whether a miss fills the line.
    """

    index: int
    lines: tuple[int, ...] | None
    is_certain: bool
    fills: bool


@dataclass(frozen=True, slots=True)
class SetState:
    """What is known of a set.

    Attributes:
        oldest: upper bound of the age of each line that must be in the set; all are below the effective must ways.
        youngest: lower bound of the age of the lines that it is known for, each below ``others``.
        others: lower bound of the age of all other lines.
    """

    oldest: Mapping[int, int]
    youngest: Mapping[int, int]
    others: int


@cache
def effective_ways(config: CacheConfig) -> EffectiveWays:
    """The LRU sets between which a set of ``config`` always is.

    *Soundness:* an LRU set that starts empty and sees the same touches stays within the real one if it has as many ways
    as the policy's minimum life span (J. Reineke, D. Grund, C. Berg, R. Wilhelm, Timing predictability of cache
    replacement policies, Real-Time Systems 37, 2007, table 1: k for LRU, 1 for FIFO, log2 k + 1 for tree-PLRU); for
    tree-PLRU as a relation of contents: J. Reineke and D. Grund, Relative competitive analysis of cache replacement
    policies, LCTES 2008. Why: a line is evicted only when all log2 k bits on its path point to it. Its own touch
    turns all away; any touch turns at most one to it, that at the fork to the touched way. Lines that are younger in
    the LRU set are in the real one by induction, each in one way, so each turns the same bit whenever it is touched.
    For every policy the line touched last is in the set: one way for FIFO, whose hits do not save a line, for random,
    and for a round robin whose counter other sets move as well, so that it may stand on any way when a line is filled.

    From above: a FIFO set is within an LRU set of 2k - 1 ways (same paper of 2008). Why: of 2k - 1 other lines touched
    since a line's last touch at most k - 1 were in the set with it, so k were filled, which evicts the line. Tree-PLRU
    of more than two ways, random and such a round robin may keep a line for ever.

    Raises:
        UsageError: a tree of ways that is no tree.
    """
    ways = config.ways
    if config.replacement is Replacement.PLRU and ways & (ways - 1):
        raise UsageError(f"tree-PLRU needs a power of two of ways, not {ways}; correct the target or --cache.")
    if ways == 1:
        return EffectiveWays(1, 1)
    match config.replacement:
        case Replacement.LRU:
            return EffectiveWays(ways, ways)
        case Replacement.FIFO:
            return EffectiveWays(1, 2 * ways - 1)
        case Replacement.PLRU:
            return EffectiveWays(ways.bit_length(), 2 if ways == 2 else None)
        case Replacement.RANDOM | Replacement.ROUND_ROBIN:
            return EffectiveWays(1, None)


def stores_evict(config: CacheConfig) -> bool:
    """Whether a store may make a line leave the cache sooner.

    *Soundness:* only fills evict, and a store that misses fills nothing without write-allocate. What is evicted then
    does not depend on hits with first-in first-out, random replacement and a round robin.
    """
    return config.write_allocate or config.replacement in {Replacement.LRU, Replacement.PLRU}


def initial_state(ways: EffectiveWays, *, is_cold: bool) -> SetState:
    """The set before the first access: empty where ``is_cold``, else with any content.

    *Soundness:* an empty set has no line of any age; of any other nothing is said.
    """
    return SetState(_NOTHING, _NOTHING, _absent(ways) if is_cold else 0)


def must_hold(state: SetState, lines: tuple[int, ...]) -> bool:
    """Whether an access to any of ``lines`` hits.

    *Soundness:* the LRU set of ``must`` ways is within the real one.
    """
    return all(line in state.oldest for line in lines)


def cannot_hold(state: SetState, lines: tuple[int, ...], ways: EffectiveWays) -> bool:
    """Whether an access to any of ``lines`` misses.

    *Soundness:* the real set is within the LRU set of ``may`` ways; without such, a line that was never touched since
    the set was empty is in none.
    """
    absent = _absent(ways)
    return all(state.youngest.get(line, state.others) >= absent for line in lines)


def join(a: SetState, b: SetState) -> SetState:
    """The least state that says no more than either; ``a`` itself where it is that.

    *Soundness:* upper bounds of both hold if the larger does, lower ones if the smaller does.
    """
    if a is b:
        return a
    oldest, youngest = a.oldest, a.youngest
    others = min(a.others, b.others)
    if oldest is not b.oldest:
        oldest = {line: max(age, b.oldest[line]) for line, age in oldest.items() if line in b.oldest}
    if youngest is not b.youngest or a.others != b.others:
        youngest = _smaller(a, b, others)
    if others == a.others and youngest == a.youngest and oldest == a.oldest:
        return a
    return SetState(oldest, youngest, others)


def leq(a: SetState, b: SetState) -> bool:
    """Whether ``a`` says all that ``b`` says.

    *Soundness:* then each set that ``a`` describes is described by ``b``.
    """
    return join(b, a) is b


class SetStates(Lattice[SetState]):
    """The domain of the states of a set; chains are finite, as ages are."""

    def top(self) -> SetState:
        """Any content."""
        return SetState(_NOTHING, _NOTHING, 0)

    def leq(self, one: SetState, other: SetState) -> bool:
        """See `leq`."""
        return leq(one, other)

    def join(self, one: SetState, other: SetState) -> SetState:
        """See `join`."""
        return join(one, other)


def access(state: SetState, part: SetAccess, ways: EffectiveWays) -> SetState:
    """The set after an access.

    *Soundness:* the result is above the result of each line that the access may be to, and above ``state`` where it
    may touch none. Touching a line ages the younger ones only, and lines of age below its upper bound at most; lines
    of age up to its lower bound surely. A write that does not allocate touches a line that must be in the set, symbols
    alone one that cannot, and may do either with the rest.
    """
    lines, is_certain = part.lines, part.is_certain
    if lines is None:
        kept = {line: age + 1 for line, age in state.oldest.items() if age + 1 < ways.must}
        return SetState(kept, _NOTHING, 0) if state.oldest or state.others else state
    if not part.fills:
        is_certain = is_certain and must_hold(state, lines)
        lines = tuple(line for line in lines if not cannot_hold(state, (line,), ways))
        if not lines:
            return state
    if len(lines) == 1 and is_certain and state.oldest.get(lines[0]) == 0 and state.youngest.get(lines[0]) == 0:
        return state
    youngest, others = _touch_youngest(state, lines, ways, is_certain=is_certain)
    return SetState(_touch_oldest(state.oldest, lines, ways.must, is_certain=is_certain), youngest, others)


def _absent(ways: EffectiveWays) -> int:
    """The age from which on a line is in no set. Without may ways lines do not age: 0 is touched, 1 is not."""
    return ways.may or 1


def _smaller(a: SetState, b: SetState, others: int) -> Mapping[int, int]:
    """The smaller lower bounds, as far as they are below ``others``. Written out: most time is spent here."""
    if not others:
        return _NOTHING
    youngest = {}
    known, rest = b.youngest, b.others
    for line, age in a.youngest.items():
        other = known.get(line, rest)
        smaller = age if age < other else other  # noqa: FURB136
        if smaller < others:
            youngest[line] = smaller
    known, rest = a.youngest, a.others
    for line, age in b.youngest.items():
        if line not in known:
            smaller = age if age < rest else rest  # noqa: FURB136
            if smaller < others:
                youngest[line] = smaller
    return youngest


def _touch_oldest(
    oldest: Mapping[int, int], lines: tuple[int, ...], ways: int, *, is_certain: bool
) -> Mapping[int, int]:
    limits = {line: oldest.get(line, ways) for line in lines}
    limit = max(limits.values())
    aged = {}
    for line, age in oldest.items():
        # A line does not age by its own touch.
        above = limit if line not in limits else max((a for other, a in limits.items() if other != line), default=0)
        new = age + 1 if age < above else age
        if new < ways:
            aged[line] = new
    if is_certain and len(lines) == 1:
        aged[lines[0]] = 0
    return aged


def _touch_youngest(
    state: SetState, lines: tuple[int, ...], ways: EffectiveWays, *, is_certain: bool
) -> tuple[Mapping[int, int], int]:
    youngest, others = dict(state.youngest), state.others
    if is_certain and ways.may is not None:
        limit = min(state.youngest.get(line, others) for line in lines)
        youngest = {line: age + 1 if age <= limit else age for line, age in youngest.items()}
        if others <= limit < ways.may:
            others += 1
    youngest.update(dict.fromkeys(lines, 0))
    return {line: age for line, age in youngest.items() if age < others}, others
