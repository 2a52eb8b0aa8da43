# SPDX-License-Identifier: 0BSD
"""The text of a certificate as records, and the flow graph in it; `docs/explanation/certificates.md` tells the format.

Every line has the one form that it can have, and no number is longer than a proof needs, so that a text from anybody
can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value
from wcet_probe.certificate.values.state import SAVED, STATIC, Place, is_saved
from wcet_probe.errors import VerificationError

MOST_CHARACTERS = 64 << 20
MOST_NODES = 50_000
MOST_RECORDS = 1_000_000
MOST_OF_A_KIND = 250_000
"""So many edges, events, constraints, loops, multipliers, counts: for each of them the linear program holds a row."""
MOST_DIGITS = 400
_SMALLER = "give callees bounds of their own (bound_by), or with --initial-data tell --stack-pointer as well"

_NATURAL, _INTEGER, _NAME = "(0|[1-9][0-9]*)", "(0|-?[1-9][0-9]*)", r"([^\s|\x00-\x1f\x7f-\x9f]{1,4096})"
_NUMBER, _RELATION = f" {_NATURAL}", "(?:[<>=!]=|[<>])[su]"
_RELATIONS = f"(-|{_RELATION}(?:,{_RELATION})*)"
_VALUE = "(number|stack|link|any)" + 3 * f" {_NATURAL}"
_PLACE = "(r[0-9]+|lr|ctr|stack:(?:0|-?[1-9][0-9]{0,8})|static:0x(?:0|[1-9a-f][0-9a-f]{0,7}))"
_PLACE_OR_SAVED = f"{_PLACE[:-1]}|saved:(?:0|-?[1-9][0-9]{{0,8}}))"
_ADDRESS = "0x(?:0|[1-9a-f][0-9a-f]*)"


class _Form(NamedTuple):
    """How records of a kind are written, and what is asked of all of them.

    Attributes:
        pattern: of the fields.
        key: no two records have the same first fields, so many; of 0 there is one record.
        nodes: the fields that name nodes, which there are.
    """

    pattern: str
    key: int | None
    nodes: tuple[int, ...] = ()


_FORMS = {
    "wcet-probe": _Form("(certificate) 1", 0),
    "image": _Form("([0-9a-f]{64})", 0),
    "entry-function": _Form(_NAME, 0),
    "target": _Form(_NAME, 0),
    "unit": _Form("(instructions|cycles)", 0),
    "bound": _Form(_INTEGER, 0),
    "optimum": _Form("(none|0|-?[1-9][0-9]*)", 0),
    "node": _Form(f"{_NAME} ({_ADDRESS}) {_INTEGER}", 1),
    "entry": _Form(_NAME, 0, (0,)),
    "exit": _Form(f"{_NAME} {_INTEGER}", 1, (0,)),
    "edge": _Form(f"{_NAME} {_NAME} {_NAME} {_INTEGER}", 1, (1, 2)),
    "event": _Form(f"{_NAME} {_NATURAL}", 1),
    "loop": _Form(rf"{_NAME} {_NATURAL}((?: [^\s|]+)+) \|((?: [^\s|]+)+)", 1),
    "constraint": _Form(rf"{_NAME} (<=|=) {_INTEGER}((?: -?[1-9][0-9]* [^\s|]+)*)", 1),
    "dual": _Form(rf"{_NAME} (-?[1-9][0-9]*(?:/[1-9][0-9]*)?)", 1),
    "count": _Form(f"{_NAME} ([1-9][0-9]*)", 1),
    "derivation": _Form(r"(\{.*\})", None),
    "invariant": _Form(f"{_NAME} {_PLACE_OR_SAVED} {_VALUE}", 2, (0,)),
    "word": _Form(rf"{_NAME} {_PLACE}((?: [a-z0-9*:,+@-]+)+)", 2, (0,)),
    "equal": _Form(f"{_NAME} {_PLACE} {_PLACE}", 2, (0,)),
    "case": _Form(f"{_NAME} {_NATURAL} {_PLACE} {_VALUE}", 3, (0,)),
    "case-equal": _Form(f"{_NAME} {_NATURAL} {_PLACE} {_PLACE}", 3, (0,)),
    "excluded": _Form(f"{_NAME} ({_ADDRESS}|leave)", 2, (0,)),
    "flags": _Form(
        f"{_NAME} (nzcv|cr[0-7]) (signed|unsigned|either) (numbers|result){6 * _NUMBER} {_RELATIONS}", 2, (0,)
    ),
    "symbol": _Form(f"(s(?:0|[1-9][0-9]*)) (at|behind) {_NAME} {_NATURAL} {_NATURAL}", 1, (2,)),
    "name": _Form(f"{_NAME} {_PLACE} {_NAME} {_INTEGER}", 2, (0,)),
    "shown": _Form(f"{_NAME} {_NAME} {_NATURAL} {_NATURAL}", 2, (0,)),
    "miss": _Form(f"{_NAME} ({_ADDRESS}) {_NATURAL} {_NAME}", 3, (0,)),
    "paid": _Form(rf"{_NAME}((?: [^\s|]+)*)", 1),
    "must": _Form(rf"(fetch|data) {_NAME} {_NAME} {_INTEGER} {_NATURAL} {_NATURAL}((?: [^\s|]+)*)", 5, (1,)),
    "modified": _Form(rf"{_NAME} {_NAME} {_INTEGER} {_NATURAL}", 4, (0,)),
    "held": _Form(rf"{_NAME} {_NAME} (full|{_NAME} {_NATURAL}((?: -?[0-9]+:(?:gone|[0-9]+(?:,[^\s|,]+)*))+))", 2, (1,)),
    "unchecked": _Form(_NAME, 1, (0,)),
}
_PATTERNS = {kind: re.compile(f"{kind} {form.pattern}") for kind, form in _FORMS.items()}
ONCE = tuple(kind for kind, form in _FORMS.items() if form.key == 0)
LEAVE = "leave:"
"""What the names of the ways out of the function begin with, behind which the node's follows; of no edge."""
_LONG = re.compile(rf"[0-9]{{{MOST_DIGITS}}}")

Records = Mapping[str, list[tuple[str, ...]]]
T = TypeVar("T")


def demand(condition: object, reason: str) -> None:
    """Raise VerificationError with the reason unless the condition holds."""
    if not condition:
        raise VerificationError(f"not verified: {reason}.")


def existing(one: T | None, reason: str) -> T:
    """``one``, which there has to be.

    Raises:
        VerificationError: there is none, for the reason.
    """
    if one is None:
        raise VerificationError(f"not verified: {reason}.")
    return one


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Turn errors of what is read from a document of anybody, which is called ``what``, into a VerificationError."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        reason = f"the {what} lacks what a verification needs or has it malformed: {error!r}."
        raise VerificationError(reason) from error


def demand_small(text: str) -> None:
    """Refuse a certificate that is too large to be read.

    Raises:
        VerificationError: there is more of something than there can be; the sentence has the remedy.
    """
    many = [(f"{MOST_CHARACTERS >> 20} MiB", len(text) > MOST_CHARACTERS)]
    many += [(f"{MOST_RECORDS:,} records", text.count("\n") > MOST_RECORDS)]
    many += [(f"{MOST_NODES:,} nodes", text.count("\nnode ") > MOST_NODES)]
    for kind in ("edge", "event", "constraint", "loop", "dual", "count"):
        many += [(f"{MOST_OF_A_KIND:,} records of kind {kind}", text.count(f"\n{kind} ") > MOST_OF_A_KIND)]
    found = next((what for what, is_more in many if is_more), None)
    demand(found is None, f"the certificate has more than {found}, and such a one is not read; {_SMALLER}")


@lru_cache(maxsize=4)
def read_records(text: str) -> Records:
    """The fields of each line by the kind of record.

    Raises:
        VerificationError: a line is no record, or there is more of something than there can be; or something is told
            twice, or of no node.
    """
    demand_small(text)
    demand(not _LONG.search(text), f"a number of the certificate has {MOST_DIGITS} digits or more")
    records: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in _FORMS}
    lines = text.split("\n")
    demand(lines.pop() == "" and len(lines) > 1, "the certificate is cut off")
    for number, line in enumerate(lines, 1):
        kind = line.split(" ", 1)[0]
        match = _PATTERNS[kind].fullmatch(line) if kind in _PATTERNS else None
        if match is None:
            raise VerificationError(f"not verified: line {number} of the certificate is no record: {line[:80]!r}.")
        records[kind].append(match.groups())
    demand(all(len(records[kind]) == 1 for kind in ONCE), "a record of the head is missing or there twice")
    nodes = {name for name, *_ in records["node"]}
    for kind, (_, key, of_nodes) in _FORMS.items():
        keys = [fields[:key] for fields in records[kind]] if key is not None else []
        demand(len(set(keys)) == len(keys), f"a record of kind {kind} is told twice")
        are_there = all(fields[one] in nodes for fields in records[kind] for one in of_nodes)
        demand(are_there, f"a record of kind {kind} is of no node")
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
        VerificationError: an edge is called like a way out of the function.
    """
    nodes = {name: (int(address, 16), int(cost)) for name, address, cost in records["node"]}
    edges = tuple(Edge(name, source, target, int(cost)) for name, source, target, cost in records["edge"])
    leading: dict[str, list[Edge]] = {name: [] for name in nodes}
    (entry,) = records["entry"][0]
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


def used_constraints(records: Records) -> set[str]:
    """The names of the constraints that the bound rests on: those with a multiplier."""
    return {name for name, _ in records["dual"]}


def place_of(text: str) -> Place:
    """The place that records call ``text``."""
    kind, _, where = text.partition(":")
    if not where:
        return text
    return STATIC + int(where, 16) if kind == "static" else int(where) + (SAVED if kind == "saved" else 0)


def invariants_of(records: Records) -> dict[str, dict[Place, Value]]:
    """What is said of places where nodes begin.

    Raises:
        VerificationError: it is said of no value.
    """
    found: dict[str, dict[Place, Value]] = {name: {} for name, _, _ in records["node"]}
    for node, text, *value_text in records["invariant"]:
        place, value = place_of(text), value_of_text(node, text, value_text)
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
