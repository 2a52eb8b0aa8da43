# SPDX-License-Identifier: 0BSD
"""The text of a certificate as records, and the flow graph in it; `docs/explanation/certificates.md` tells the format.

Every line has the one form that it can have, and no number is longer than a proof needs, so that a text from anybody
can be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value
from wcet_probe.certificate.values.state import SAVED, STATIC, Place, is_saved
from wcet_probe.errors import VerificationError

MOST_CHARACTERS = 64 << 20
MOST_NODES = 50_000
MOST_RECORDS = 1_000_000
MOST_OF_A_KIND = 250_000
"""So many edges, events, constraints, loops, multipliers, counts: for each of them the linear program holds a row."""
MOST_DIGITS = 400

_NATURAL, _INTEGER, _NAME = "(0|[1-9][0-9]*)", "(0|-?[1-9][0-9]*)", r"([^\s|\x00-\x1f\x7f-\x9f]{1,4096})"
_NUMBER, _RELATION = f" {_NATURAL}", "(?:[<>=!]=|[<>])[su]"
_RELATIONS = f"(-|{_RELATION}(?:,{_RELATION})*)"
_VALUE = "(number|stack|link|any)" + 3 * f" {_NATURAL}"
_PLACE = "(r[0-9]+|lr|ctr|stack:(?:0|-?[1-9][0-9]{0,9})|static:0x(?:0|[1-9a-f][0-9a-f]{0,7}))"
_PLACE_OR_SAVED = f"{_PLACE[:-1]}|saved:(?:0|-?[1-9][0-9]{{0,9}}))"
_RECORDS = {
    kind: re.compile(f"{kind} {pattern}")
    for kind, pattern in {
        "wcet-probe": "(certificate) 1",
        "image": "([0-9a-f]{64})",
        "entry-function": _NAME,
        "target": _NAME,
        "unit": "(instructions|cycles)",
        "bound": _INTEGER,
        "optimum": "(none|0|-?[1-9][0-9]*)",
        "node": f"{_NAME} (0x(?:0|[1-9a-f][0-9a-f]*)) {_INTEGER}",
        "entry": _NAME,
        "exit": f"{_NAME} {_INTEGER}",
        "edge": f"{_NAME} {_NAME} {_NAME} {_INTEGER}",
        "event": f"{_NAME} {_NATURAL}",
        "loop": rf"{_NAME} {_NATURAL}((?: [^\s|]+)+) \|((?: [^\s|]+)+)",
        "constraint": rf"{_NAME} (<=|=) {_INTEGER}((?: -?[1-9][0-9]* [^\s|]+)*)",
        "dual": rf"{_NAME} (-?[1-9][0-9]*(?:/[1-9][0-9]*)?)",
        "count": f"{_NAME} ([1-9][0-9]*)",
        "derivation": r"(\{.*\})",
        "invariant": f"{_NAME} {_PLACE_OR_SAVED} {_VALUE}",
        "word": rf"{_NAME} {_PLACE}((?: [a-z0-9*:,+-]+)+)",
        "equal": f"{_NAME} {_PLACE} {_PLACE}",
        "case": f"{_NAME} {_NATURAL} {_PLACE} {_VALUE}",
        "case-equal": f"{_NAME} {_NATURAL} {_PLACE} {_PLACE}",
        "excluded": f"{_NAME} (0x(?:0|[1-9a-f][0-9a-f]*)|leave)",
        "flags": f"{_NAME} (nzcv|cr[0-7]) (signed|unsigned|either) (numbers|result){6 * _NUMBER} {_RELATIONS}",
        "symbol": f"(s(?:0|[1-9][0-9]*)) (at|behind) {_NAME} {_NATURAL} {_NATURAL}",
        "name": f"{_NAME} {_PLACE} {_NAME} {_INTEGER}",
        "shown": f"{_NAME} {_NAME} {_NATURAL} {_NATURAL}",
        "miss": f"{_NAME} (0x(?:0|[1-9a-f][0-9a-f]*)) {_NATURAL} {_NAME}",
        "paid": rf"{_NAME}((?: [^\s|]+)*)",
        "must": rf"(fetch|data) {_NAME} {_NAME} {_INTEGER} {_NATURAL} {_NATURAL}((?: [^\s|]+)*)",
        "modified": rf"{_NAME} {_NAME} {_INTEGER} {_NATURAL}",
        "held": rf"{_NAME} {_NAME} (full|{_NAME} {_NATURAL}((?: -?[0-9]+:(?:gone|[0-9]+(?:,[^\s|,]+)*))+))",
        "unchecked": _NAME,
    }.items()
}
ONCE = ("wcet-probe", "image", "entry-function", "target", "unit", "bound", "optimum", "entry")
LEAVE = "leave:"
"""What the names of the ways out of the function begin with, behind which the node's follows; of no edge."""
_LONG = re.compile(rf"[0-9]{{{MOST_DIGITS}}}")

Records = Mapping[str, list[tuple[str, ...]]]


def demand(condition: object, reason: str) -> None:
    """Raise VerificationError with the reason unless the condition holds."""
    if not condition:
        raise VerificationError(f"not verified: {reason}.")


@lru_cache(maxsize=4)
def read_records(text: str) -> Records:
    """The fields of each line by the kind of record.

    Raises:
        VerificationError: a line is no record, or there is more of something than there can be.
    """
    demand(len(text) <= MOST_CHARACTERS, f"the certificate has more than {MOST_CHARACTERS >> 20} MiB")
    demand(text.count("\n") <= MOST_RECORDS, f"the certificate has more than {MOST_RECORDS:,} records")
    demand(text.count("\nnode ") <= MOST_NODES, f"the certificate has more than {MOST_NODES:,} nodes")
    for kind in ("edge", "event", "constraint", "loop", "dual", "count"):
        is_few = text.count(f"\n{kind} ") <= MOST_OF_A_KIND
        demand(is_few, f"the certificate has more than {MOST_OF_A_KIND:,} records of kind {kind}")
    demand(not _LONG.search(text), f"a number of the certificate has {MOST_DIGITS} digits or more")
    records: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in _RECORDS}
    lines = text.split("\n")
    demand(lines.pop() == "" and len(lines) > 1, "the certificate is cut off")
    for number, line in enumerate(lines, 1):
        kind = line.split(" ", 1)[0]
        match = _RECORDS[kind].fullmatch(line) if kind in _RECORDS else None
        if match is None:
            raise VerificationError(f"not verified: line {number} of the certificate is no record: {line[:80]!r}.")
        records[kind].append(match.groups())
    demand(all(len(records[kind]) == 1 for kind in ONCE), "a record of the head is missing or there twice")
    for kind in ("node", "exit", "dual", "count"):
        names = [fields[0] for fields in records[kind]]
        demand(len(set(names)) == len(names), f"two records of kind {kind} have one name")
    return records


@dataclass(frozen=True, slots=True)
class Edge:
    """A transfer of control; ``cost`` besides the nodes'."""

    name: str
    source: str
    target: str
    cost: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The flow graph of a certificate.

    Attributes:
        entry_function: name of the analysed function.
        nodes: address and cost of each.
        entry: the first node.
        edges: in the order of the text.
        exits: nodes that the function may be left from, and what that costs besides.
        leading: edges out of each node.
        excluded: by node, addresses that control does not go to as the prover says, and nobody checks; None: out.
    """

    entry_function: str
    nodes: Mapping[str, tuple[int, int]]
    entry: str
    edges: tuple[Edge, ...]
    exits: Mapping[str, int]
    leading: Mapping[str, list[Edge]] = field(repr=False)
    excluded: Mapping[str, set[int | None]] = field(repr=False)

    def shape(self) -> object:
        """What the certificates of all units have in common."""
        nodes = tuple((name, address) for name, (address, _) in self.nodes.items())
        edges = tuple((edge.name, edge.source, edge.target) for edge in self.edges)
        return self.entry_function, nodes, self.entry, edges, tuple(self.exits)


def graph_of(records: Records) -> Graph:
    """The flow graph in ``records``.

    Raises:
        VerificationError: an edge leads to no node, or is called like a way out of the function.
    """
    nodes = {name: (int(address, 16), int(cost)) for name, address, cost in records["node"]}
    edges = tuple(Edge(name, source, target, int(cost)) for name, source, target, cost in records["edge"])
    leading: dict[str, list[Edge]] = {name: [] for name in nodes}
    (entry,) = records["entry"][0]
    named = {entry, *(name for name, _ in records["exit"]), *(name for name, _ in records["excluded"])}
    named |= {end for edge in edges for end in (edge.source, edge.target)}
    demand(named <= nodes.keys(), "an edge leads to no node")
    demand(not any(edge.name.startswith(LEAVE) for edge in edges), "an edge has the name of a way out of the function")
    for edge in edges:
        leading[edge.source].append(edge)
    excluded: dict[str, set[int | None]] = {}
    for name, address in records["excluded"]:
        excluded.setdefault(name, set()).add(None if address == "leave" else int(address, 16))
    exits = {name: int(cost) for name, cost in records["exit"]}
    return Graph(records["entry-function"][0][0], nodes, entry, edges, exits, leading, excluded)


def factors_of(terms: str) -> dict[str, int]:
    """The factor of each edge and event in the terms of a constraint."""
    words = terms.split()
    return {name: int(factor) for factor, name in zip(words[::2], words[1::2], strict=True)}


class LoopRecord(NamedTuple):
    """A loop: its back edges are taken at most ``most`` times for each time that an edge is that enters it."""

    name: str
    header: str
    most: int
    entering: Sequence[str]
    back: Sequence[str]


def loops_of(records: Records) -> list[LoopRecord]:
    """The loops in ``records``; of one whose first back edge is none the header has no name."""
    targets = {name: target for name, _, target, _ in records["edge"]}
    return [
        LoopRecord(name, targets.get(back.split()[0], ""), int(most), entering.split(), back.split())
        for name, most, entering, back in records["loop"]
    ]


def place_of(text: str) -> Place:
    """The place that records call ``text``."""
    kind, _, where = text.partition(":")
    if not where:
        return text
    return STATIC + int(where, 16) if kind == "static" else int(where) + (SAVED if kind == "saved" else 0)


def invariants_of(records: Records) -> dict[str, dict[Place, Value]]:
    """What is said of places where nodes begin.

    Raises:
        VerificationError: it is said of no node, twice, or of no value.
    """
    found: dict[str, dict[Place, Value]] = {name: {} for name, _, _ in records["node"]}
    for node, text, *value_text in records["invariant"]:
        place = place_of(text)
        demand(node in found, f"an invariant of {text} is about no node")
        demand(place not in found[node], f"two invariants at {node} are about {text}")
        value = value_of_text(node, text, value_text)
        # It would be taken for a saved word of which nothing is known, and be one of which nobody knows that it is one.
        demand(not (is_saved(place) and says_nothing(place, value)), f"nothing is said of {text} at {node}")
        found[node][place] = value
    return found


def value_of_text(node: str, place: str, fields: Sequence[str]) -> Value:
    """The value of a place at a node, of its base, least number, stride and steps.

    Raises:
        VerificationError: it is none.
    """
    base, low, stride, steps = fields[0], *map(int, fields[1:])
    demand(low < WORD and (stride > 0) == (steps > 0), f"the values of {place} at {node} are none")
    is_plain = base in {"number", "any"}
    if low >= WORD // 2 and (not is_plain or low + stride * steps >= WORD):
        low -= WORD
    most = WORD if is_plain and low >= 0 else WORD // 2
    demand(low + stride * steps < most, f"the values of {place} at {node} wrap")
    return Value(base, low, low + stride * steps, stride)


def says_nothing(place: Place, value: Value) -> bool:
    """Whether ``value`` is what a place may hold of which nothing is written."""
    return value == (ANY if isinstance(place, int) else TOP)
