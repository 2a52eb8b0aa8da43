"""What flow facts say of pointers, where it holds: at an access that a fact speaks of, and behind it.

Words: asserted, congruence (docs/explanation/glossary.md).

*Soundness:* a fact speaks of numbers at an access. It holds of them until one of their symbols may have another value:
where it is defined, and behind an edge that kills it (`Values.killed`). Where paths meet it must
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

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.domains.congruences import Congruence, joined
from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST = 1 << 32

Asserted = Mapping[Term, Congruence]
"""The classes of terms."""


class AssertedOf(NamedTuple):
    """What is asserted of the terms of an address: in all, and of it what accesses before have shown."""

    terms: Asserted
    shown: Asserted


def asserted_alignments(
    values: Values, pointers: PointerFacts, proved: Callable[[Term, Congruence], Congruence] | None = None
) -> Mapping[int, tuple[AssertedOf, ...]]:
    """For each access of each point of ``values``, what is asserted of the terms of its address.

    Args:
        values: of the function.
        pointers: what facts say.
        proved: where each access is to be proved: the class that is proved of a term of which this one is asserted.

    *Soundness:* as said of the module; a fixpoint, which is checked in one pass. What is to be proved of each term of
    an access holds behind it, as long as it is proved of all accesses.
    """
    killed = values.killed
    terms = values.terms
    facts = {
        point: tuple(asserted_of(access, pointers) for access in values.accesses[point]) for point in values.states
    }
    if not any(own for each in facts.values() for own in each):  # then nothing comes of it
        return {point: tuple(AssertedOf({}, {}) for _ in each) for point, each in facts.items()}

    def behind(point: int, asserted: Asserted) -> Asserted:
        return _through(values, facts[point], point, asserted, proved)[1]

    def along(edge: Edge, asserted: Asserted) -> Asserted:
        """What still has the same value where ``edge`` leads to, and what is another name of it there."""

        def is_same(symbol: Term) -> bool:
            place = defined_at(terms[symbol].arguments)
            if proved is not None and place == ENTRY:  # what the call began with does not change
                return True
            return symbol not in killed[edge] and place != edge.target

        kept = {term: each for term, each in asserted.items() if all(map(is_same, terms.symbols(term)))}
        return kept | _brought(values, edge, asserted, is_own=proved is not None)

    nothing: Asserted = {}
    states = least(values.order, Joined(common), {0: nothing}, behind, along)
    return {
        point: _through(values, facts[point], point, states.get(point, nothing), proved)[0] for point in values.states
    }


def common(one: Asserted, other: Asserted) -> Asserted:
    """What is asserted on both of two ways.

    *Soundness:* the classes are above those of either.
    """
    return {term: joined(each, other[term]) for term, each in one.items() if term in other}


def _brought(values: Values, edge: Edge, asserted: Asserted, *, is_own: bool) -> dict[Term, Congruence]:
    """What is asserted of symbols that are defined where ``edge`` leads to: a number with an assertion, and a constant.

    *Soundness:* such a symbol is what its location holds on the edge, so it comes from what that comes from. Where
    classes are the numbers' own (``is_own``), its class is that of the sum.
    """
    terms, state = values.terms, values.edges[edge].state
    found: dict[Term, Congruence] = {}
    for location, symbol in values.states[edge.target].locations.items():
        if terms[symbol].arguments[:2] == ("phi", (edge.target,)):
            held = state.read(location)
            form = None if held is None else terms.linear(held)
            if form is not None and len(form.coefficients) == 1 and form.coefficients.keys() <= asserted.keys():
                ((part, factor),) = form.coefficients.items()
                found[symbol] = _scaled(asserted[part], factor, form.constant) if is_own else asserted[part]
    return found


def _scaled(one: Congruence, factor: int, constant: int) -> Congruence:
    """The class of ``factor`` times a number of class ``one``, plus ``constant``."""
    modulus = factor * one.modulus | _MOST
    modulus &= -modulus
    return Congruence(modulus, (factor * one.residue + constant) % modulus)


def _through(
    values: Values,
    facts: Sequence[Asserted],
    point: int,
    asserted: Asserted,
    proved: Callable[[Term, Congruence], Congruence] | None,
) -> tuple[tuple[AssertedOf, ...], Asserted]:
    known = dict(asserted)
    found: list[AssertedOf] = []
    for access, fact in zip(values.accesses[point], facts, strict=True):
        own = {term: _sharper(known.get(term), asserted) for term, asserted in fact.items()}
        found.append(AssertedOf(own, {term: known[term] for term in own if term in known}))
        if not access.is_certain or access.pointer is None:
            continue
        if proved is not None:
            known |= {term: _sharper(known.get(term), proved(term, asserted)) for term, asserted in fact.items()}
        else:
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
