"""What flow facts say of pointers, where it holds: at an access that a fact speaks of, and behind it.

*Soundness:* a fact speaks of numbers at an access. It holds of them until one of their leaves may have another value:
where it is defined, and behind an edge that is silent about it (`values.brought_back`). Where paths meet it must hold
on all of them; of a number that gets a new name there is told what is told of the numbers that it may be. An access
that may not have taken place tells nothing of what is behind it; nor does more hold behind it than runs are held
against, which show the address, and not the numbers that it is the sum of (`_shown`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.graph.flow_order import in_order
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.analysis import Values, brought_back
from wcet_probe.analyzer.values.congruences import Residue, joined
from wcet_probe.analyzer.values.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.state import defined_at, is_unknown
from wcet_probe.analyzer.values.terms import Term
from wcet_probe.analyzer.values.transfer import Access

_MOST = 1 << 32

Told = Mapping[Term, Residue]
"""The classes of terms."""


class ToldOf(NamedTuple):
    """What is told of the terms of an address: in all, and of it what accesses before have shown."""

    terms: Told
    shown: Told


def told_alignments(values: Values, pointers: PointerFacts) -> Mapping[int, tuple[ToldOf, ...]]:
    """For each access of each point of ``values``, what is told of the terms of its address.

    *Soundness:* as said of the module; the iteration only loses knowledge, and ends where nothing is lost.
    """
    behind: dict[int, Told] = {}
    stale = brought_back(values)
    arriving: dict[int, list[Edge]] = {point: [] for point in values.states}
    for edge in values.edges:
        if edge.target != EXIT:
            arriving[edge.target].append(edge)
    order = [point for point in in_order(values.forest) if point in values.states]
    found: dict[int, tuple[ToldOf, ...]] = {}
    changed = True
    while changed:
        changed = False
        for point in order:
            own, after = _through(values, pointers, point, _met(values, point, arriving[point], behind, stale))
            if behind.get(point) != after:
                behind[point], changed = after, True
            found[point] = own
    return found


def _met(
    values: Values,
    point: int,
    edges: list[Edge],
    behind: Mapping[int, Told],
    stale: Mapping[Edge, frozenset[Term]],
) -> Told:
    """What is told on all ways to ``point`` of what has the same value there."""
    terms = values.terms
    ways = [
        {
            term: told
            for term, told in behind[edge.source].items()
            if all(
                leaf not in stale[edge] and defined_at(terms[leaf].arguments) != point for leaf in terms.leaves(term)
            )
        }
        | _brought(values, edge, behind[edge.source])
        for edge in edges
        if edge.source in behind
    ]
    if point == 0 or not ways:
        return {}
    return {term: reduce(joined, (way[term] for way in ways)) for term in set.intersection(*map(set, ways))}


def _brought(values: Values, edge: Edge, told: Told) -> dict[Term, Residue]:
    """What is told of the leaves that are defined where ``edge`` leads to: a number that is told of, and a constant.

    *Soundness:* such a leaf is what its location holds on the edge, so it comes from what that comes from.
    """
    terms, state = values.terms, values.edges[edge].state
    found: dict[Term, Residue] = {}
    for location, leaf in values.states[edge.target].locations.items():
        if terms[leaf].arguments[:2] == ("phi", (edge.target,)):
            held = state.read(location)
            parts = {} if held is None else terms.linear(held).coefficients
            if len(parts) == 1 and parts.keys() <= told.keys():
                found[leaf] = told[next(iter(parts))]
    return found


def _through(values: Values, pointers: PointerFacts, point: int, told: Told) -> tuple[tuple[ToldOf, ...], Told]:
    known = dict(told)
    found: list[ToldOf] = []
    for access in values.accesses[point]:
        own = {term: _sharper(known.get(term), told) for term, told in told_of(access, pointers).items()}
        found.append(ToldOf(own, {term: known[term] for term in own if term in known}))
        if access.is_certain and access.pointer is not None:
            shown = _shown(access, own)
            known |= {term: _sharper(known.get(term), told.modulo(shown)) for term, told in own.items()}
    return tuple(found), known


def _sharper(known: Residue | None, told: Residue) -> Residue:
    """What is known if it implies what is told, else that: classes are in each other, or have nothing in common."""
    return known if known is not None and joined(known, told) == told else told


def _shown(access: Access, told: Told) -> int:
    """The power of two modulo which the address of ``access`` shows the number in it that facts speak of.

    *Soundness:* all else that is added is known modulo it; of two such numbers only the sum is shown.
    """
    known = STACK_ALIGNMENT_BYTES if access.has_stack_part else _MOST
    steps = [factor * part.stride for factor, term, part in access.parts if term not in told]
    return min((known, *(step & -step for step in steps if step))) if len(told) == 1 else 1


def told_of(access: Access, pointers: PointerFacts) -> Told:
    """What flow facts say of the terms of the address of ``access``, there.

    *Soundness:* of those of which no range is known, nor as much modulo a power of two as is told.
    """
    told = pointers.of(access.instruction_address).variable
    return {
        term: told
        for factor, term, part in access.parts
        if term is not None and is_unknown(factor, part) and part.stride & -part.stride < told.modulus
    }
