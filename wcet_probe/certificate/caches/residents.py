# SPDX-License-Identifier: 0BSD
"""Which lines are in a cache: of those that must be, and of those that are paid for, the lines that may be younger.

All is said of a set under least-recently-used replacement (LRU) with as many ways as the policy keeps for certain: all
of them for LRU, log2 + 1 for a tree (PLRU), and one, the line that was accessed last in the set, for first-in
first-out, random, and a counter for the whole cache (J. Reineke et al., Timing predictability of cache replacement
policies, Real-Time Systems 37, 2007). A line is in it for as long as fewer other lines of its set than there are ways
may have been accessed since it was itself. Of one base no two lines are in one set (`steps`): each base counts once.

A *balance* is what a constraint allows: so many credits where an edge is taken. Each miss of the accesses to it
takes one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wcet_probe.certificate.caches.steps import NUMBER, Spot, Step, most_lines, spot_of
from wcet_probe.certificate.names.names import Passage
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.model.target import CacheConfig, Replacement


class YoungerSet(NamedTuple):
    """Bases of lines that may have been accessed since, lines that are known by number one by one; and others."""

    names: frozenset[str]
    others: int


NOTHING = YoungerSet(frozenset(), 0)
Must = Mapping[Spot, YoungerSet]
"""Lines that are in the cache."""


class Bound(NamedTuple):
    """A balance some of whose credits are taken, for granules of a base.

    Each line of the base has a credit of its own, but those of granules that are ``spent`` have one or are in the
    cache; of None not even that is known. A granule lies in the line that the smaller one is in that begins it, so what
    is known of granules is known of smaller ones.
    """

    base: str
    granule_bytes: int
    spent: Mapping[int, YoungerSet | None]


FULL = "full"
Balance = Bound | str | None
"""What is left: all credits, those of lines that were not accessed yet, or perhaps nothing (None)."""


def lasting_ways(config: CacheConfig) -> int:
    """Ways of an LRU set whose content surely is in a set of ``config``."""
    match config.replacement:
        case Replacement.LRU:
            return config.ways
        case Replacement.PLRU if config.ways & (config.ways - 1) == 0:
            return config.ways.bit_length()
    return 1


@dataclass(frozen=True, slots=True)
class Residents:
    """What accesses and edges do to lines.

    Attributes:
        config: the cache.
        classes: of the symbols, see `symbols.Names.homes`.
        symbols_of: the symbols that a term is made of; None where something else is in it.
        sets: by base without its window, the sets that all lines called so are in, where that is known.
    """

    config: CacheConfig
    classes: Mapping[str, Congruence]
    symbols_of: Callable[[str], frozenset[str] | None]
    sets: Mapping[str, frozenset[int]] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------------- accesses

    def touched(self, must: Must, step: Step) -> Must:
        """The lines that must be in the cache behind ``step``."""
        found = must
        if self._ages(step):
            found = {}
            for spot, younger in must.items():
                aged = self._aged(spot, younger, step)
                if aged is not None:
                    found[spot] = aged
        if step.spot is not None and step.is_certain and (step.fills or self.is_in(must, step.spot)):
            found = {**found, step.spot: NOTHING}
        return found

    @staticmethod
    def is_in(must: Must, spot: Spot | None) -> bool:
        """Whether the line of ``spot`` must be in the cache: of two granules one of which is in the other it is one."""
        if spot is None or spot in must or spot.base == NUMBER:
            return spot is not None and spot in must
        base, first, size = spot
        return any(
            other.base == base
            and (first <= other.offset <= first + size - other.granule_bytes)
            | (other.offset <= first <= other.offset + other.granule_bytes - size)
            for other in must
        )

    def paid(self, balance: Balance, step: Step, credit_count: int) -> Balance:
        """What is left behind an access whose misses are paid from ``balance``; None where it may not be enough."""
        spots = self._spots(step)
        if balance is None or not spots or not step.fills:
            return None
        base, granule_bytes = spots[0].base, spots[0].granule_bytes
        if isinstance(balance, str):
            balance = Bound(base, granule_bytes, {})
        if balance.base != base:
            return None
        granule_bytes = min(granule_bytes, balance.granule_bytes)
        balance = balance._replace(granule_bytes=granule_bytes)
        own: dict[int, YoungerSet | tuple[()]] = {}
        for spot in spots:
            known = self.left(balance, spot.offset)
            if known is None:
                return None
            own[spot.offset] = known
        found = {offset: self._aged_or_gone(balance, offset, step) for offset in balance.spent}
        for offset, known in own.items():
            is_sure = len(own) == 1 and step.is_certain and step.fills
            if is_sure or not isinstance(known, YoungerSet):
                found[offset] = NOTHING
            else:
                found.setdefault(offset, known)
        if most_lines(found, granule_bytes, self.config.line_bytes) > credit_count:
            return None
        return Bound(base, granule_bytes, found)

    def passed(self, balance: Balance, step: Step) -> Balance:
        """What is left behind an access whose misses are paid otherwise."""
        if not isinstance(balance, Bound):
            return balance
        found = {offset: self._aged_or_gone(balance, offset, step) for offset in balance.spent}
        spot = step.spot
        is_own = spot is not None and spot.base == balance.base and spot.granule_bytes >= balance.granule_bytes
        if is_own and spot is not None and spot.offset in found and step.is_certain and step.fills:
            found[spot.offset] = NOTHING
        return balance._replace(spent=found)

    def left(self, balance: Bound, offset: int) -> YoungerSet | tuple[()] | None:
        """What is known of the line of a granule: () if it has its credit, else as of those that may be in its line."""
        if offset in balance.spent:
            return balance.spent[offset]
        near = [
            known for other, known in balance.spent.items()
            if balance.base != NUMBER and abs(other - offset) < self.config.line_bytes
        ]  # fmt: skip
        result: YoungerSet | tuple[()] = ()
        for known in near:
            if known is None:
                return None
            result = known if result == () or not isinstance(result, YoungerSet) else union(result, known)
        return result

    def _spots(self, step: Step) -> list[Spot]:
        if step.spot is not None:
            return [step.spot]
        line_bytes = self.config.line_bytes
        return [Spot(NUMBER, line * line_bytes, line_bytes) for line in sorted(step.lines or ())]

    def _ages(self, step: Step) -> bool:
        return step.fills or self.config.replacement in {Replacement.LRU, Replacement.PLRU}

    def aged(self, spot: Spot, younger: YoungerSet, step: Step) -> YoungerSet | None:
        """What may have been accessed since ``spot``, with ``step``; None if its line may be gone."""
        return self._aged(spot, younger, step) if self._ages(step) else younger

    def kept(self, spot: Spot, younger: YoungerSet) -> YoungerSet | None:
        """``younger``, if the line of ``spot`` is in the cache all the same."""
        return younger if self.age(spot, younger) < lasting_ways(self.config) else None

    def is_within(self, spot: Spot, a: YoungerSet, b: YoungerSet) -> bool:
        """Whether all that ``a`` allows to have been accessed since ``spot`` is allowed by ``b``."""
        return self.age(spot, YoungerSet(a.names - b.names, a.others)) <= b.others

    def _aged_or_gone(self, balance: Bound, offset: int, step: Step) -> YoungerSet | None:
        younger = balance.spent[offset]
        if younger is None or not self._ages(step):
            return younger
        return self._aged(Spot(balance.base, offset, balance.granule_bytes), younger, step)

    def _aged(self, spot: Spot, younger: YoungerSet, step: Step) -> YoungerSet | None:
        if not self._may_meet(spot, step):
            return younger
        names = self._names(step)
        return self.kept(spot, YoungerSet(younger.names | names, younger.others + (not names)))

    def _names(self, step: Step) -> frozenset[str]:
        """What the line of ``step`` is counted as: itself, lines no two of which are in one set, or its base."""
        if step.few_lines:
            return frozenset(f"{line * self.config.line_bytes:#x}" for line in step.few_lines)
        return frozenset() if step.spot is None else frozenset({step.spot.base})

    def age(self, spot: Spot, younger: YoungerSet) -> int:
        """How many lines of ``younger`` can be in the set of ``spot`` at most, but for its own.

        Of each set that it may be in those are counted that may be, too: a base once.
        """
        numbers = {int(name, 16) // self.config.line_bytes for name in younger.names if name.startswith("0x")}
        bases = [self._sets_of(name) for name in younger.names if not name.startswith("0x")]
        own = spot.offset // self.config.line_bytes if spot.base == NUMBER else None
        in_set = Counter(number % self.config.sets for number in numbers - {own})
        in_set.update(one for sets in bases for one in sets or ())
        known = self._sets_of(spot.base) if own is None else {own % self.config.sets}
        most = max((in_set[one] for one in (in_set if known is None else known)), default=0)
        return younger.others + bases.count(None) + most

    def _sets_of(self, base: str) -> frozenset[int] | None:
        return self.sets.get(base.partition("^")[0])

    def _may_meet(self, spot: Spot, step: Step) -> bool:
        """Whether ``step`` may be to another line of the set of ``spot``."""
        if spot.base != NUMBER:
            known = self._sets_of(spot.base)
            is_apart = known is not None and step.sets is not None and known.isdisjoint(step.sets)
            return not is_apart and spot not in step.apart and (step.spot is None or step.spot.base != spot.base)
        line, sets = spot.offset // self.config.line_bytes, self.config.sets
        if step.lines is None:
            return step.sets is None or line % sets in step.sets
        return any(other != line and other % sets == line % sets for other in step.lines)

    # ---------------------------------------------------------------------------------------------------------- edges

    def along(self, must: Must, passage: Passage) -> Must:
        """The lines that must be in the cache behind an edge, by all of their names."""
        found: dict[Spot, YoungerSet] = {}
        for spot, younger in must.items():
            aged = self.substituted(spot, younger, passage)
            if aged is not None:
                for other in self.moved(spot, passage):
                    old = found.get(other)
                    found[other] = aged if old is None or _size(aged) < _size(old) else old
        return found

    def carried(self, balance: Balance, passage: Passage, wanted: Collection[str]) -> Balance:
        """What is left behind an edge; of several names of a base one that is ``wanted`` is kept."""
        if not isinstance(balance, Bound):
            return balance
        first = self.moved(Spot(balance.base, min(balance.spent), balance.granule_bytes), passage)
        bases = [spot.base for spot in first]
        base = next((one for one in bases if one in wanted), next(iter(bases), None))
        if base is None:
            return None
        spent: dict[int, YoungerSet | None] = {}
        granule_bytes = balance.granule_bytes
        for offset, younger in balance.spent.items():
            spot = Spot(balance.base, offset, balance.granule_bytes)
            aged = None if younger is None else self.substituted(spot, younger, passage)
            spots = self.moved(spot, passage)
            own = [spot for spot in spots if spot.base == base]
            if not own:
                return None
            granule_bytes = own[0].granule_bytes
            for spot in own[:1] if aged is not None else own:
                spent[spot.offset] = aged
        return Bound(base, granule_bytes, spent)

    def _targets(self, base: str, passage: Passage) -> list[tuple[str, int]]:
        """The symbols that a base is behind an edge, with what is to be added to offsets."""
        symbol = base.partition("^")[0]
        own = frozenset({symbol}) if symbol in self.classes else self.symbols_of(symbol)
        stays = symbol in {NUMBER, "stack"} or (own is not None and own.isdisjoint(passage.begins))
        found = [(symbol, 0)] * stays + list(passage.behind(symbol))
        return [one for one in found if one[0] not in self.sets or self._is_as_narrow(symbol, one[0])]

    def _is_as_narrow(self, base: str, other: str) -> bool:
        """Whether all lines of ``base`` are in sets that lines of ``other`` are in: then they may be called so."""
        return base == other or (base in self.sets and self.sets[base] <= self.sets[other])

    def moved(self, spot: Spot, passage: Passage) -> list[Spot]:
        """The granules behind an edge, by all of their names, that lie in the line of ``spot``."""
        found = []
        for base, added in self._targets(spot.base, passage):
            if base == spot.base.partition("^")[0] and not added:
                found.append(spot)
                continue
            # A granule stays what it is: of the class of a symbol a fact may speak for the code of others only.
            step = min(self.classes[base].modulus, spot.granule_bytes) if base in self.classes else spot.granule_bytes
            for first in range(spot.offset + added, spot.offset + added + spot.granule_bytes, step):
                own = spot_of(base, first, Congruence(step, 0).moved(-first), self.config)
                if own is not None:
                    found.append(own)
        return found

    def substituted(self, spot: Spot, younger: YoungerSet, passage: Passage) -> YoungerSet | None:
        """What may have been accessed since ``spot``, by its names behind an edge; None if its line may be gone."""
        names, others = set[str](), younger.others
        for name in younger.names:
            # A name that is moved would stand for lines that are further and further from it.
            symbol, _, window = name.partition("^")
            lasting = [name] if name.startswith("0x") else [
                f"{base}^{window}" if window else base for base, added in self._targets(symbol, passage) if not added
            ]  # fmt: skip
            if lasting:
                names.add(lasting[0])
            else:
                others += 1
        return self.kept(spot, YoungerSet(frozenset(names), others))


def sets_of_bases(steps: Iterable[Step]) -> dict[str, frozenset[int]]:
    """The sets that all ``steps`` by a base, in whichever of its windows, are in; where that is known of each."""
    found: dict[str, frozenset[int] | None] = {}
    for step in steps:
        if step.spot is not None and step.spot.base != NUMBER:
            base = step.spot.base.partition("^")[0]
            known = found.get(base, frozenset())
            found[base] = None if known is None or step.sets is None else known | step.sets
    return {base: sets for base, sets in found.items() if sets is not None}


def _size(younger: YoungerSet) -> tuple[int, list[str]]:
    return younger.others + len(younger.names), sorted(younger.names)


def union(a: YoungerSet, b: YoungerSet) -> YoungerSet:
    """What may have been accessed on either of two ways."""
    return YoungerSet(a.names | b.names, max(a.others, b.others))


def must_holds(residents: Residents, a: Must, b: Must) -> bool:
    """Whether all that ``b`` says follows from ``a``."""
    return all(spot in a and residents.is_within(spot, a[spot], younger) for spot, younger in b.items())


def balance_holds(residents: Residents, a: Balance, b: Balance) -> bool:
    """Whether all that ``b`` says follows from ``a``."""
    if b is None or a == FULL:
        return True
    if not isinstance(a, Bound) or not isinstance(b, Bound) or a.base != b.base or a.granule_bytes < b.granule_bytes:
        return False
    if not a.spent.keys() <= b.spent.keys():
        return False
    for offset, younger in b.spent.items():
        own, spot = residents.left(a, offset), Spot(b.base, offset, b.granule_bytes)
        is_less = isinstance(own, YoungerSet) and younger is not None and not residents.is_within(spot, own, younger)
        if younger is not None and (own is None or is_less):
            return False
    return True


def is_resident(residents: Residents, must: Must, said: Balance) -> bool:
    """Whether all that ``said`` allows one credit to be taken for is a line that must be in the cache.

    No other line then has a credit: one is taken for granules of one line only, and that of ``said`` is among them.
    """
    if not isinstance(said, Bound) or len(said.spent) != 1:
        return False
    ((offset, younger),) = said.spent.items()
    return any(
        spot.base == said.base
        and spot.offset == offset
        and spot.granule_bytes >= said.granule_bytes
        and (younger is None or residents.is_within(spot, known, younger))
        for spot, known in must.items()
    )
