"""What flow facts say of pointers, where it holds: at an access that a fact speaks of, and behind it.

*Soundness:* a fact speaks of numbers at an access. It holds of them until one of their symbols may have another value:
where it is defined, and behind an edge that kills it (`values.killed_bindings`). Where paths meet it must
hold on all of them; of a number that gets a new name there is asserted what is asserted of the numbers that it may be.
An access that may not have taken place tells nothing of what is behind it; nor does more hold behind it than runs are
held against, which show the address, and not the numbers that it is the sum of (`_shown`).

That the node is a multiple of 16 is asserted of each of the accesses; behind the first one it has shown itself, as a
run would have been refused that does not:

>>> walk = example('''
... struct node { struct node *next; unsigned key, size; };
... unsigned f(struct node *n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum += n->key; if (sum & 1) n->size = sum; n = n->next; }
...     return sum;
... }''')
>>> alignments = asserted_alignments(walk.values, walk.pointers)
>>> [[(len(one.terms), len(one.shown)) for one in alignments[point]] for point in (3, 5, 4)]
[[(1, 0)], [(1, 1)], [(1, 1)]]
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.graph.flow_order import in_order
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.analysis import Values, killed_bindings
from wcet_probe.analyzer.values.congruences import Congruence, joined
from wcet_probe.analyzer.values.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.state import defined_at, is_unknown
from wcet_probe.analyzer.values.terms import Term
from wcet_probe.analyzer.values.transfer import Access

_MOST = 1 << 32

Asserted = Mapping[Term, Congruence]
"""The classes of terms."""


class AssertedOf(NamedTuple):
    """What is asserted of the terms of an address: in all, and of it what accesses before have shown."""

    terms: Asserted
    shown: Asserted


def asserted_alignments(values: Values, pointers: PointerFacts) -> Mapping[int, tuple[AssertedOf, ...]]:
    """For each access of each point of ``values``, what is asserted of the terms of its address.

    *Soundness:* as said of the module; the iteration only loses knowledge, and ends where nothing is lost.
    """
    behind: dict[int, Asserted] = {}
    killed = killed_bindings(values)
    arriving: dict[int, list[Edge]] = {point: [] for point in values.states}
    for edge in values.edges:
        if edge.target != EXIT:
            arriving[edge.target].append(edge)
    order = [point for point in in_order(values.forest) if point in values.states]
    found: dict[int, tuple[AssertedOf, ...]] = {}
    changed = True
    while changed:
        changed = False
        for point in order:
            own, after = _through(values, pointers, point, _met(values, point, arriving[point], behind, killed))
            if behind.get(point) != after:
                behind[point], changed = after, True
            found[point] = own
    return found


def _met(
    values: Values,
    point: int,
    edges: list[Edge],
    behind: Mapping[int, Asserted],
    killed: Mapping[Edge, frozenset[Term]],
) -> Asserted:
    """What is asserted on all ways to ``point`` of what has the same value there."""
    terms = values.terms
    arriving_facts = [
        {
            term: asserted
            for term, asserted in behind[edge.source].items()
            if all(
                symbol not in killed[edge] and defined_at(terms[symbol].arguments) != point
                for symbol in terms.symbols(term)
            )
        }
        | _brought(values, edge, behind[edge.source])
        for edge in edges
        if edge.source in behind
    ]
    if point == 0 or not arriving_facts:
        return {}
    return {
        term: reduce(joined, (arriving_fact[term] for arriving_fact in arriving_facts))
        for term in set.intersection(*map(set, arriving_facts))
    }


def _brought(values: Values, edge: Edge, asserted: Asserted) -> dict[Term, Congruence]:
    """What is asserted of symbols that are defined where ``edge`` leads to: a number with an assertion, and a constant.

    *Soundness:* such a symbol is what its location holds on the edge, so it comes from what that comes from.
    """
    terms, state = values.terms, values.edges[edge].state
    found: dict[Term, Congruence] = {}
    for location, symbol in values.states[edge.target].locations.items():
        if terms[symbol].arguments[:2] == ("phi", (edge.target,)):
            held = state.read(location)
            parts = {} if held is None else terms.linear(held).coefficients
            if len(parts) == 1 and parts.keys() <= asserted.keys():
                found[symbol] = asserted[next(iter(parts))]
    return found


def _through(
    values: Values, pointers: PointerFacts, point: int, asserted: Asserted
) -> tuple[tuple[AssertedOf, ...], Asserted]:
    known = dict(asserted)
    found: list[AssertedOf] = []
    for access in values.accesses[point]:
        own = {term: _sharper(known.get(term), asserted) for term, asserted in asserted_of(access, pointers).items()}
        found.append(AssertedOf(own, {term: known[term] for term in own if term in known}))
        if access.is_certain and access.pointer is not None:
            shown = _shown(access, own)
            known |= {term: _sharper(known.get(term), asserted.modulo(shown)) for term, asserted in own.items()}
    return tuple(found), known


def _sharper(known: Congruence | None, asserted: Congruence) -> Congruence:
    """What is known if it implies what is asserted, else that: classes are in each other, or have nothing in common."""
    return known if known is not None and joined(known, asserted) == asserted else asserted


def _shown(access: Access, asserted: Asserted) -> int:
    """The power of two modulo which the address of ``access`` shows the number in it that facts speak of.

    *Soundness:* all else that is added is known modulo it; of two such numbers only the sum is shown.
    """
    known = STACK_ALIGNMENT_BYTES if access.has_stack_part else _MOST
    steps = [factor * part.stride for factor, term, part in access.parts if term not in asserted]
    return min((known, *(step & -step for step in steps if step))) if len(asserted) == 1 else 1


def asserted_of(access: Access, pointers: PointerFacts) -> Asserted:
    """What flow facts say of the terms of the address of ``access``, there.

    *Soundness:* of those of which no range is known, nor as much modulo a power of two as is asserted.
    """
    asserted = pointers.of(access.instruction_address).variable
    return {
        term: asserted
        for factor, term, part in access.parts
        if term is not None and is_unknown(factor, part) and part.stride & -part.stride < asserted.modulus
    }
