# SPDX-License-Identifier: 0BSD
"""The arithmetic of certificates: exact, standard library only, nothing of the analyzer or of a solver.

From the text of a certificate (its records: `wcet_probe/analyzer/certificate.py`) it builds the linear program of the
flow graph again: what flows into a node flows out of it, and loop bounds limit back edges. If the dual vector is
feasible, its value bounds every solution (weak duality), so also every path through the graph. It also computes the
loop bounds again from what was found or declared about the loops.

Here the graph is the prover's word, and so are invariants, counters and constraints (`CheckedBound.given`).
`wcet_probe.certificate.check` holds them against the binary.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import floor

from wcet_probe.certificate.kernel.loops import Json, check_derivations, demand, derivation
from wcet_probe.certificate.kernel.records import (
    ONCE,
    factors_of,
    graph_of,
    invariants_of,
    loops_of,
    read_records,
    well_formed,
)
from wcet_probe.certificate.kernel.shapes import check_loops


@dataclass(frozen=True, slots=True)
class CheckedBound:
    """What a certificate proves.

    Attributes:
        entry_function, image_sha256, target, unit: of what, in which unit.
        bound: no execution takes more, if what is given holds.
        loops: derivations of loop bounds, checked.
        given: names of the constraints that have no derivation.
    """

    entry_function: str
    image_sha256: str
    target: str
    unit: str
    bound: int
    loops: tuple[Json, ...]
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Limit:
    """The sum of ``factors`` times edges is at most ``constant``, or equal to it."""

    factors: dict[str, int]
    constant: int
    equal: bool


def check_certificate(text: str) -> CheckedBound:
    """Check that a certificate proves its bound.

    Raises:
        VerificationError: it does not; one sentence says why.
    """
    records = read_records(text)
    demand(not records["word"], "of what words are made a module certificate tells, and no bound")
    head = {kind: records[kind][0][0] for kind in ONCE}
    graph = graph_of(records)
    costs = {name: cost for name, (_, cost) in graph.nodes.items()}
    ends = {"enter": ("", graph.entry), **{f"leave:{name}": (name, "") for name in graph.exits}}
    ends |= {edge.name: (edge.source, edge.target) for edge in graph.edges}
    demand(len(ends) == 1 + len(graph.exits) + len(graph.edges), "two edges have one name")
    gain = {name: costs.get(target, 0) for name, (_, target) in ends.items()}
    for edge in graph.edges:
        gain[edge.name] += edge.cost
    for name, cost in graph.exits.items():
        gain[f"leave:{name}"] += cost
    events = {name: int(cost) for name, cost in records["event"]}
    demand(events.keys().isdisjoint(ends), "an event has the name of an edge")
    gain |= events
    limits = {"enter": _Limit({"enter": 1}, 1, equal=True)}
    flows: dict[str, dict[str, int]] = {name: {} for name in ("", *costs)}
    for name, (source, target) in ends.items():
        flows[target][name] = flows[target].get(name, 0) + 1
        flows[source][name] = flows[source].get(name, 0) - 1
    limits |= {f"flow:{node}": _Limit(flows[node], 0, equal=True) for node in costs}
    loops = loops_of(records)
    check_loops(graph, loops)
    for loop in loops:
        factors = dict.fromkeys(loop.entering, -loop.most) | dict.fromkeys(loop.back, 1)
        limits[f"loop:{loop.name}"] = _Limit(factors, 0, equal=False)
    for name, relation, constant, terms in records["constraint"]:
        factors = factors_of(terms)
        demand(factors.keys() <= gain.keys(), f"constraint {name} speaks of an unknown edge or event")
        limits[name] = _Limit(factors, int(constant), equal=relation == "=")
    parts = 1 + len(costs) + len(loops) + len(records["constraint"])
    demand(len(limits) == parts, "two constraints have one name")

    dual = {name: Fraction(value) for name, value in records["dual"]}
    demand(all(str(dual[name]) == value for name, value in records["dual"]), "a fraction is not in lowest terms")
    _check_dual(gain, limits, dual)
    value = sum(limits[name].constant * multiplier for name, multiplier in dual.items())
    demand(floor(value) == int(head["bound"]), f"the bound is {floor(value)}, not {head['bound']}")
    _check_counts(gain, limits, {name: int(count) for name, count in records["count"]}, head["optimum"])
    invariants_of(records)
    derivations = tuple(derivation(line) for (line,) in records["derivation"])
    bounds = {f"loop:{loop.name}": loop.most for loop in loops}
    check_derivations(derivations, bounds, {name: int(constant) for name, _, constant, _ in records["constraint"]})
    given = sorted(
        limits.keys() - {"enter", *(f"flow:{node}" for node in costs)} - {one["constraint"] for one in derivations}
    )
    function, image, target, unit = (head[kind] for kind in ("entry-function", "image", "target", "unit"))
    return CheckedBound(function, image, target, unit, int(head["bound"]), derivations, tuple(given))


def bound_digest(bound: Json) -> str:
    """SHA-256 of the ``bound`` section of a result as canonical JSON, without its own ``digest``."""
    content = {key: value for key, value in bound.items() if key != "digest"}
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def verify_result(document: Json) -> list[CheckedBound]:
    """Check all certificates of a result, and that the result says what they prove.

    Read are ``image.sha256`` and, in ``bound``: ``certificates``, ``digest``, ``instructions``, ``cycles`` (a number,
    or null without a certificate), and where they are there ``entry``, ``target`` (also at the top) and ``loops`` with
    their ``name``, ``max`` and ``origin``.

    Raises:
        VerificationError: something does not check; one sentence says what.
    """
    with well_formed("result"):
        bound, image = document["bound"], document["image"]["sha256"]
        checked = [check_certificate(text) for text in bound["certificates"]]
        callees_of(bound, checked)
        demand(bound["digest"] == bound_digest(bound), "the digest of the bound section differs")
        proved = {one.unit: one.bound for one in checked}
        demand(len(proved) == len(checked) > 0, "there is not one certificate for each unit")
        for unit in ("instructions", "cycles"):
            demand(bound.get(unit) == proved.get(unit), f"the result says {bound.get(unit)} {unit}, not what is proved")
        for one in checked:
            demand(one.image_sha256 == image, "a certificate is about another image")
            demand(bound.get("entry", one.entry_function) == one.entry_function, "a certificate has another entry")
            for section in (document, bound):
                demand(section.get("target", one.target) == one.target, "a certificate is about another target")
            if "loops" in bound:
                said = Counter((loop["name"], loop["max"], loop["origin"]) for loop in bound["loops"])
                found = Counter((loop["loop"], loop["max_header"], loop["origin"]) for loop in one.loops)
                # Calls that are not expanded are a number in the certificate, without the loops in them.
                is_said = said >= found if bound.get("summarised") else said == found
                demand(is_said, "the loops of the result are not those of the certificate")
    return checked


def callees_of(bound: Json, of: Sequence[CheckedBound]) -> list[tuple[CheckedBound, ...]]:
    """What the certificates of callees that are not expanded prove, in the units of the bound that they are ``of``.

    Raises:
        VerificationError: one does not prove its bound, or they are of different functions, images or targets.
    """
    found = [tuple(check_certificate(text) for text in texts) for texts in bound.get("callees", ())]
    for each in found:
        about = {(one.entry_function, one.image_sha256, one.target) for one in each}
        is_alike = [one.unit for one in each] == [one.unit for one in of] and len(about) == 1
        demand(is_alike, "the certificates of a callee are of different functions, or in other units than the bound")
        is_same = (each[0].image_sha256, each[0].target) == (of[0].image_sha256, of[0].target)
        demand(is_same, f"the certificates of {each[0].entry_function} are about another image or target")
    return found


def _check_dual(gain: Mapping[str, int], limits: Mapping[str, _Limit], dual: Mapping[str, Fraction]) -> None:
    """Multipliers of inequalities are at least 0, and each edge is paid for."""
    paid = dict.fromkeys(gain, Fraction(0))
    for name, multiplier in dual.items():
        demand(name in limits, f"there is no constraint {name}")
        demand(limits[name].equal or multiplier >= 0, f"the multiplier of {name} is negative")
        for edge, factor in limits[name].factors.items():
            paid[edge] += factor * multiplier
    for edge, cost in gain.items():
        demand(paid[edge] >= cost, f"the dual vector is not feasible at {edge}")


def _check_counts(gain: Mapping[str, int], limits: Mapping[str, _Limit], counts: dict[str, int], optimum: str) -> None:
    """The counts are a solution, and reach what is said."""
    if optimum == "none":
        demand(not counts, "there are counts without an optimum")
        return
    demand(counts.keys() <= gain.keys(), "an unknown edge is counted")
    reached = sum(gain[name] * count for name, count in counts.items())
    demand(reached == int(optimum), f"the counts reach {reached}, not {optimum}")
    for name, limit in limits.items():
        value = sum(factor * counts.get(edge, 0) for edge, factor in limit.factors.items())
        met = value == limit.constant if limit.equal else value <= limit.constant
        demand(met, f"the counts do not meet {name}")
