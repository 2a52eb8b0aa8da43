# SPDX-License-Identifier: 0BSD
"""What is said of addresses by name: the nouns of `symbols.Tracer`, which executes nodes on these names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wcet_probe.certificate.kernel.records import Edge
from wcet_probe.certificate.names.known import Known
from wcet_probe.certificate.names.near import Near
from wcet_probe.certificate.values.congruences import UNALIGNED, Congruence, class_of_fact, power_of_two
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.certificate.values.terms import Terms
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction


class Claim(NamedTuple):
    """What a place holds: the value of a symbol, or of a sum of symbols, and so many bytes more."""

    symbol: str
    offset: int


class Objects(NamedTuple):
    """What a fact counts: the accesses that it speaks of go to so many lines in one call, and to so many of one set."""

    where: str
    lines: int
    lines_per_set: int


class PointerFact(NamedTuple):
    """A fact: the functions it speaks of, none for all others; the divisor and remainder; the object pointed to; lines.

    If lines are counted, these are all of the accesses that it speaks of and whose line nothing else tells. These, too,
    are in the cache ``sets`` that it tells, the first and how many.
    """

    functions: tuple[str, ...]
    numbers: tuple[int, ...]
    symbol: str | None = None
    objects: Objects | None = None
    where: str = ""
    sets: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Pointers:
    """What facts say of addresses: powers of two that divide the numbers that they are computed from, and objects.

    Attributes:
        facts: one that names functions speaks of the code of their lines, and one without of all other code.
        image: the binary, where there are facts that name something.
        lines: file, first and last line of each function that is named.
        words: addresses of words of which facts tell what they hold.
        known: of which registers facts say nothing; None: of all.
    """

    facts: tuple[PointerFact, ...] = ()
    image: Image | None = None
    lines: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)
    words: frozenset[int] = frozenset()
    known: Known | None = field(default=None, repr=False, compare=False)

    @property
    def most(self) -> int:
        """The greatest of these powers; each use is cut down to that of the code that makes the access."""
        return max((power_of_two(fact.numbers) for fact in self.facts), default=1)

    @property
    def has_remainders(self) -> bool:
        """Whether a fact says that such numbers are more than a multiple of a power of two."""
        return any(class_of_fact(fact.numbers).residue for fact in self.facts)

    def divisor(self, address: int) -> int:
        """The power of two for the accesses of the instruction at an address."""
        return min((power_of_two(fact.numbers) for fact in self._speaking(address)), default=1)

    def class_at(self, address: int) -> Congruence:
        """The class of such a number there, if one fact alone speaks of it."""
        found = self._speaking(address)
        return class_of_fact(found[0].numbers) if len(found) == 1 else UNALIGNED

    def within(self, address: int) -> tuple[int, int] | None:
        """The addresses that the accesses of such an instruction have, first and end, if they are told."""
        symbols = self.image.symbols if self.image is not None else {}
        found = (symbols.get(fact.symbol) for fact in self._naming(address) if fact.symbol is not None)
        return next(((one.address, one.address + one.size_bytes) for one in found if one and one.size_bytes), None)

    def objects(self, address: int) -> Objects | None:
        """What counts the lines of such an access, if it is told, and nothing else tells its line."""
        found = self._speaking(address)
        return found[0].objects if len(found) == 1 else None

    def sets(self, address: int) -> range | None:
        """The cache sets that such an access is to, if they are told, and nothing else tells them."""
        found = self._speaking(address)
        told = found[0].sets if len(found) == 1 else None
        return told and range(told[0], sum(told))

    def _speaking(self, address: int) -> list[PointerFact]:
        return self._naming(address) or [fact for fact in self.facts if not fact.functions]

    def _naming(self, address: int) -> list[PointerFact]:
        """The facts that name a function that the instruction at an address is of."""
        place = self.image.lines.find(address) if self.image is not None else None

        def is_in(function: str) -> bool:
            file, first, last = self.lines[function]
            return place is not None and file == place[0] and first <= place[1] <= last

        return [fact for fact in self.facts if any(map(is_in, fact.functions))]


@dataclass(frozen=True, slots=True)
class Names:
    """The names in a certificate.

    Attributes:
        claims: of places, where each node begins.
        homes: by symbol, whether it begins anew ``at`` a node, on each edge into it, or ``behind`` one, on each edge
            out of it; and the class of its values.
        asserted: what facts say of the numbers that addresses are computed from.
        shown: by node, classes of symbols that hold where it begins, whatever code asks: an access has shown them.
        sums: names of sums that are spoken of.
    """

    claims: Mapping[str, Mapping[Place, Claim]]
    homes: Mapping[str, tuple[str, str, Congruence]]
    asserted: Pointers
    shown: Mapping[str, Mapping[str, Congruence]] = field(default_factory=dict)
    sums: Collection[str] = ()

    def begins(self, edge: Edge) -> frozenset[str]:
        """The symbols that have another value behind ``edge``."""
        if not self._begun:  # found when it is asked for: most names are traced only
            for symbol, (way, node, _) in self.homes.items():
                self._begun.setdefault((way, node), set()).add(symbol)
        at, behind = self._begun.get(("at", edge.target), ()), self._begun.get(("behind", edge.source), ())
        return frozenset((*at, *behind))

    _begun: dict[tuple[str, str], set[str]] = field(default_factory=dict, init=False, compare=False, repr=False)


class Address(NamedTuple):
    """Where an access goes: as a number, if it is known, and by name; the classes of it and of what the name means.

    ``near`` is a symbol that it is near, if its name is another one. ``parts`` are numbers that it is a sum of and of
    ``name.low``, with how often each is counted; none where one of them is not known.
    """

    number: Value
    name: Value
    alignment: Congruence
    of_base: Congruence
    near: Near | None = None
    parts: tuple[tuple[int, Value], ...] = ()


class Executed(NamedTuple):
    """An instruction of a node, and where its accesses go: a list for each, one address for each word of it."""

    instruction: Instruction
    addresses: tuple[tuple[Address, ...], ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """What an edge does to names.

    Attributes:
        begins: symbols that have another value behind it.
        moved: by name before it, the symbols of the same value behind it, each with what is to be added to an offset.
        values: of the symbols that begin anew, by names before it, where they are known.
        terms: what names are made of.
    """

    begins: frozenset[str]
    moved: Mapping[str, tuple[tuple[str, int], ...]]
    values: Mapping[str, Value] = field(default_factory=dict)
    terms: Terms = field(default_factory=lambda: Terms(frozenset()), compare=False, repr=False)
    _sums: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def behind(self, base: str) -> tuple[tuple[str, int], ...]:
        """Names of the value of ``base`` behind the edge, but for its own, each with what is to be added to offsets."""
        own = self.moved.get(base, ())
        if base not in self.terms.linear:
            return own
        if base not in self._sums:
            found = self.terms.behind(base, self.begins, self.values)
            self._sums[base] = tuple(dict.fromkeys((*own, *found)))
        return self._sums[base]


@dataclass(frozen=True, slots=True)
class Traced:
    """One execution of a node: its instructions, the names on each edge that is taken, and classes of names.

    The ``shown`` ones hold behind it of all code; the others are cut down to what facts say of the code of an access.
    """

    executed: tuple[Executed, ...]
    leaving: Mapping[str, tuple[State, ...]]
    alignments: Mapping[str, Congruence]
    shown: Mapping[str, Congruence]
