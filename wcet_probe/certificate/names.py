# SPDX-License-Identifier: 0BSD
"""What is said of addresses by name: the nouns of `symbols.Tracer`, which executes nodes on these names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wcet_probe.certificate.congruences import UNALIGNED, Congruence
from wcet_probe.certificate.near import Near
from wcet_probe.certificate.numbers import Value
from wcet_probe.certificate.records import Edge
from wcet_probe.certificate.state import Place, State
from wcet_probe.certificate.terms import Terms
from wcet_probe.model.instruction import Instruction


class Claim(NamedTuple):
    """What a place holds: the value of a symbol, or of a sum of symbols, and so many bytes more."""

    symbol: str
    offset: int


def _nothing(_: int) -> int:
    return 1


def _unlimited(_: int) -> None:
    return None


class Objects(NamedTuple):
    """What a fact counts: the accesses that it speaks of go to so many lines in one call, and to so many of one set."""

    where: str
    lines: int
    lines_per_set: int


def _uncounted(_: int) -> None:
    return None


def _unclassed(_: int) -> Congruence:
    return UNALIGNED


@dataclass(frozen=True, slots=True)
class Pointers:
    """What facts say of addresses: powers of two that divide the numbers that they are computed from, and objects.

    Attributes:
        most: the greatest of these powers; each use is cut down to that of the code that makes the access.
        divisor: that of the accesses of the instruction at an address.
        class_at: the class of such a number there, if one fact alone speaks of it.
        has_remainders: whether a fact says that such numbers are more than a multiple of a power of two.
        within: the addresses that the accesses of such an instruction have, first and end, if they are told.
        objects: what counts the lines of such an access, if it is told, and nothing else tells its line.
        where: places of the facts.
    """

    most: int = 1
    divisor: Callable[[int], int] = _nothing
    class_at: Callable[[int], Congruence] = _unclassed
    has_remainders: bool = False
    within: Callable[[int], tuple[int, int] | None] = _unlimited
    objects: Callable[[int], Objects | None] = _uncounted
    where: tuple[str, ...] = ()


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

    ``near`` is a symbol that it is near, if its name is another one.
    """

    number: Value
    name: Value
    alignment: Congruence
    of_base: Congruence
    near: Near | None = None


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
