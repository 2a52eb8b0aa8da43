# SPDX-License-Identifier: 0BSD
"""What a certificate says of caches: names of values, which misses are counted where, and which lines are resident."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from wcet_probe.certificate.caches.residents import FULL, Balance, Bound, Must, YoungerSet
from wcet_probe.certificate.caches.steps import Spot
from wcet_probe.certificate.kernel.records import Records, demand, place_of
from wcet_probe.certificate.names.names import Claim, Names, Pointers
from wcet_probe.certificate.values.congruences import BELIEVED, Congruence
from wcet_probe.certificate.values.state import Place
from wcet_probe.certificate.values.terms import is_sum

_MOST_CLASS = 1 << 12
_LINE = re.compile("0x(?:0|[1-9a-f][0-9a-f]*)")


@dataclass(frozen=True, slots=True)
class Annotations:
    """Records about caches.

    Attributes:
        names: of values.
        misses: by node and step, the event or the edges that pay for its misses.
        paid: by name, edges that pay for one miss each.
        must: by cache (``fetch``, ``data``) and node, lines that are in it.
        modified: by node, lines of those in the data cache that are modified.
        held: by constraint or name of edges that pay, and node, what is left of it.
        unchecked: nodes whose costs the checker cannot follow, as the prover says.
        places: by event or edges that pay, the nodes of the misses that they count.
    """

    names: Names
    misses: Mapping[str, Mapping[tuple[int, int], str]] = field(default_factory=dict)
    paid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    must: Mapping[str, Mapping[str, Must]] = field(default_factory=dict)
    modified: Mapping[str, AbstractSet[Spot]] = field(default_factory=dict)
    held: Mapping[str, Mapping[str, Balance]] = field(default_factory=dict)
    unchecked: frozenset[str] = frozenset()
    places: dict[str, list[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for node, misses in self.misses.items():
            for name in dict.fromkeys(misses.values()):
                self.places.setdefault(name, []).append(node)


def annotations_of(records: Records, asserted: Pointers) -> Annotations:
    """What ``records`` say of caches; ``asserted`` is what facts say of the parts of addresses.

    Raises:
        VerificationError: they speak of what is not there.
    """
    homes = {symbol: (way, node, _class(symbol, *numbers)) for symbol, way, node, *numbers in records["symbol"]}
    claims: dict[str, dict[Place, Claim]] = {name: {} for name, _, _ in records["node"]}
    sums: dict[str, None] = {}
    for node, place_text, symbol, offset in records["name"]:
        demand(symbol in homes or is_sum(symbol, homes), f"the name of {place_text} at {node} is none")
        sums |= {} if symbol in homes else {symbol: None}
        claims[node][place_of(place_text)] = Claim(symbol, int(offset))
    shown: dict[str, dict[str, Congruence]] = {}
    for node, symbol, *numbers in records["shown"]:
        demand(symbol in homes, f"what is shown of {symbol} at {node} is told of nothing")
        shown.setdefault(node, {})[symbol] = _class(symbol, *numbers)
    misses: dict[str, dict[tuple[int, int], str]] = {}
    for node, address, number, name in records["miss"]:
        misses.setdefault(node, {})[int(address, 16), int(number)] = name
    must: dict[str, dict[str, dict[Spot, YoungerSet]]] = {"fetch": {}, "data": {}}
    for cache, node, *spot, others, younger in records["must"]:
        must[cache].setdefault(node, {})[_spot(*spot)] = _younger(younger.split(), others)
    modified: dict[str, set[Spot]] = {}
    for node, *spot in records["modified"]:
        modified.setdefault(node, set()).add(_spot(*spot))
    held = _held(records)
    return Annotations(
        Names(claims, homes, asserted, shown, (*sums, *_sums(must, held))),
        misses,
        {name: tuple(edges.split()) for name, edges in records["paid"]},
        must,
        modified,
        held,
        frozenset(name for (name,) in records["unchecked"]),
    )


def _sums(must: Mapping[str, Mapping[str, Must]], held: Mapping[str, Mapping[str, Balance]]) -> tuple[str, ...]:
    """The names of sums among the bases of lines."""
    lines = [one for nodes in must.values() for own in nodes.values() for one in own.items()]
    names = [name for spot, younger in lines for name in (spot.base, *younger.names)]
    for balance in (one for nodes in held.values() for one in nodes.values()):
        if isinstance(balance, Bound):
            known = [younger for younger in balance.spent.values() if younger is not None]
            names += (balance.base, *(name for younger in known for name in younger.names))
    bases = dict.fromkeys(name.partition("^")[0] for name in names)
    return tuple(base for base in bases if "+" in base or "*" in base)


def _class(symbol: str, modulus_text: str, residue_text: str) -> Congruence:
    modulus, residue = int(modulus_text), int(residue_text)
    is_class = 0 < modulus <= BELIEVED.modulus and modulus & (modulus - 1) == 0 and residue < modulus
    demand(is_class, f"the symbol {symbol} is none")
    return Congruence(modulus, residue)


def _spot(base: str, offset: str, size: str) -> Spot:
    return Spot(base, int(offset), _granule_bytes(size))


def _granule_bytes(text: str) -> int:
    size = int(text)
    demand(0 < size <= _MOST_CLASS and size & (size - 1) == 0, f"no granule has {text} bytes")
    return size


def _younger(names: Sequence[str], others: str) -> YoungerSet:
    for name in names:
        is_line = _LINE.fullmatch(name) if name.startswith("0x") else True
        demand(is_line, f"the younger line {name} is none: a line is called by its address, 0x and hexadecimal digits")
    return YoungerSet(frozenset(names), int(others))


def _held(records: Records) -> dict[str, dict[str, Balance]]:
    held: dict[str, dict[str, Balance]] = {}
    for name, node, text, *_ in records["held"]:
        found = held.setdefault(name, {})
        if text == FULL:
            found[node] = FULL
            continue
        base, size, *parts = text.split(" ")
        spent: dict[int, YoungerSet | None] = {}
        for part in parts:
            offset, _, known = part.partition(":")
            others, *younger = known.split(",")
            spent[int(offset)] = None if known == "gone" else _younger(younger, others)
        found[node] = Bound(base, _granule_bytes(size), spent)
    return held
