"""What half-fit claims of its memory whenever no operation runs, as formulas.

Memory is told in units of 8 bytes: ``even`` and ``odd`` are the word at 8 times a unit and the one behind it. A block
is told by the unit of its payload, so that its header is the odd word one unit before, its footer the even word of its
last unit but one boundary tag: ``u + size(u) - 1``. A head of a list is told by its unit as well, as it is a node of
its list, like a free block. Ghost functions are beside them, which only the proof has:

* ``block`` tells the units of blocks, ``size`` their sizes in units, ``free`` is 1 of free ones, else 0;
* ``before`` is the block before a block, 0 of the first one, of which size and free are 0;
* ``link`` and ``back`` are the units that the links of a node lead to;
* ``age`` grows from block to block as they are put into lists, so that no list is a ring without its head;
* ``filled`` tells the classes whose bit is set.

Rigid functions are the same before and behind an operation, and defined: ``class of`` the logarithm of a size in
bytes less the tags, ``power`` a power of two.

Words: claim, data invariant, ghost state, uninterpreted functions (docs/explanation/glossary.md).

*Soundness:* a claim is nothing but a formula: that it holds is assumed at an operation's entry and asked at its ends,
and to be a fact it has to be shown of all operations and of what the caller writes. ``even`` and ``odd`` are all of the
memory but the bitmap, so that nothing is claimed of which words are apart: a store changes its word, whichever it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wcet_probe.analyzer.deduction.claims import Claim
from wcet_probe.analyzer.deduction.formulas import (
    Node,
    apply,
    choice,
    conjunction,
    disjunction,
    equivalence,
    implies,
    negation,
    term,
)
from wcet_probe.analyzer.deduction.views import Map, unknown_maps, unknown_scalars

UNIT = 8
"""Bytes of a unit: the alignment of payloads and sizes."""
MOST_UNIT = (1 << 32) // UNIT - 1
MOST_SIZE = (1 << 28) // UNIT
"""The size of the largest heap, in units: its classes are those below 28."""
CLASSES = 28
LEAST_CLASS = 3
"""Of the least block, of two units."""


@dataclass(frozen=True, slots=True)
class HalfFitGeometry:
    """What the claims depend on of a build.

    Attributes:
        control: the address of `half_fit_control`: two words, the heads, the bitmap.
        data: where static data begin and end, in bytes.
    """

    control: int
    data: tuple[int, int]

    @property
    def heads(self) -> int:
        """The unit of the first head."""
        return self.control // UNIT + 1

    @property
    def bitmap(self) -> int:
        """The address of the bitmap."""
        return UNIT * (self.heads + CLASSES)


@dataclass(frozen=True, slots=True)
class HalfFitView:
    """The memory and the ghosts at one time; ``first`` and ``upper`` are the units of the first block and the fence."""

    even: Map
    odd: Map
    block: Map
    size: Map
    free: Map
    before: Map
    link: Map
    back: Map
    age: Map
    filled: Map
    first: Node
    upper: Node
    count: Node


_SCALARS = frozenset({"first", "upper", "count"})
_PREDICATES = frozenset({"block", "filled"})


def view_of(name: str) -> HalfFitView:
    """A view of which nothing is known; ``name`` tells it from others."""
    maps = (one for one in HalfFitView.__slots__ if one not in _SCALARS)
    parts: dict[str, Any] = {**unknown_maps(maps, _PREDICATES, name), **unknown_scalars(_SCALARS, name)}
    return HalfFitView(**parts)


def class_of(size: Node) -> Node:
    """The class of a size, which is 2 at least."""
    return apply("class of", size)


def power(exponent: Node) -> Node:
    """2 to the power of ``exponent``."""
    return apply("power", exponent)


def is_head(g: HalfFitGeometry, one: Node) -> Node:
    """Whether a unit is a head of a list."""
    return conjunction(one >= g.heads, one < g.heads + CLASSES)


def is_free_block(v: HalfFitView, one: Node) -> Node:
    """Whether a unit is a free block."""
    return conjunction(v.block(one), v.free(one).equals(1))


def is_held(v: HalfFitView, one: Node) -> Node:
    """Whether a unit is a block that the caller holds."""
    return conjunction(v.block(one), v.free(one).equals(0))


def is_node(g: HalfFitGeometry, v: HalfFitView, one: Node) -> Node:
    """Whether a unit is a node of a list."""
    return disjunction(is_head(g, one), is_free_block(v, one))


def home(g: HalfFitGeometry, v: HalfFitView, node: Node) -> Node:
    """The class of the list that a node is in."""
    return choice(is_head(g, node), node - g.heads, class_of(v.size(node)))


def is_of_control(g: HalfFitGeometry, one: Node, *, is_odd: bool) -> Node:
    """Whether a word of a unit is one of the control structure, which ends with the bitmap."""
    return conjunction(one >= g.heads - 1, one < g.heads + CLASSES if is_odd else one <= g.heads + CLASSES)


def is_of_arena(v: HalfFitView, one: Node) -> Node:
    """Whether a unit is one of the arena."""
    return conjunction(one >= v.first - 1, one < v.upper)


@dataclass(frozen=True, slots=True)
class _Clauses:
    geometry: HalfFitGeometry

    def heap(self, v: HalfFitView) -> Node:
        g = self.geometry
        apart = disjunction(v.upper <= g.heads - 1, v.first - 1 >= g.heads + CLASSES + 1)
        inside = conjunction(v.first >= 2, v.upper <= MOST_UNIT + 1, v.upper - v.first <= MOST_SIZE)
        return conjunction(apart, inside, v.first <= v.upper)

    def fences(self, v: HalfFitView) -> Node:
        lower = conjunction(v.even(v.first - 1).equals(0), *self._is_none(v, term(0)))
        return conjunction(v.odd(v.upper - 1).equals(0), *self._is_none(v, v.upper), lower)

    @staticmethod
    def _is_none(v: HalfFitView, one: Node) -> tuple[Node, ...]:
        return negation(v.block(one)), v.size(one).equals(0), v.free(one).equals(0)

    def blocks(self, v: HalfFitView, u: Node) -> Node:
        inside = conjunction(v.size(u) >= 2, u >= v.first, u + v.size(u) <= v.upper)
        return implies(v.block(u), inside, disjunction(v.free(u).equals(0), v.free(u).equals(1)))

    def apart(self, v: HalfFitView, u: Node, w: Node) -> Node:
        apart = disjunction(u + v.size(u) <= w, w + v.size(w) <= u, u.equals(w))
        return implies(conjunction(v.block(u), v.block(w)), apart)

    def behind(self, v: HalfFitView, u: Node) -> Node:
        end = u + v.size(u)
        return implies(v.block(u), disjunction(end.equals(v.upper), v.block(end)))

    def before(self, v: HalfFitView, u: Node) -> Node:
        before = v.before(u)
        is_first = conjunction(u.equals(v.first), before.equals(0))
        return implies(
            v.block(u), disjunction(is_first, conjunction(v.block(before), (before + v.size(before)).equals(u)))
        )

    def tags(self, v: HalfFitView, u: Node) -> Node:
        tag = UNIT * v.size(u) + v.free(u)
        return implies(v.block(u), v.odd(u - 1).equals(tag), v.even(u + v.size(u) - 1).equals(tag))

    def links(self, v: HalfFitView, n: Node) -> Node:
        words = conjunction(v.even(n).equals(UNIT * v.link(n)), v.odd(n).equals(UNIT * v.back(n)))
        return implies(is_node(self.geometry, v, n), words)

    def linked(self, v: HalfFitView, n: Node) -> Node:
        return self._to_node(v, n, v.link(n), v.back)

    def backed(self, v: HalfFitView, n: Node) -> Node:
        return self._to_node(v, n, v.back(n), v.link)

    def _to_node(self, v: HalfFitView, n: Node, other: Node, inverse: Map) -> Node:
        g = self.geometry
        is_same = home(g, v, other).equals(home(g, v, n))
        return implies(is_node(g, v, n), is_node(g, v, other), is_same, inverse(other).equals(n))

    def order(self, v: HalfFitView, u: Node) -> Node:
        older = disjunction(is_head(self.geometry, v.link(u)), v.age(v.link(u)) < v.age(u))
        return implies(is_free_block(v, u), older, v.age(u) <= v.count)

    def bits(self, v: HalfFitView, n: Node) -> Node:
        g = self.geometry
        return implies(is_head(g, n), equivalence(v.filled(n - g.heads), v.link(n).differs(n)))


def half_fit_claims(geometry: HalfFitGeometry) -> tuple[Claim, ...]:
    """All of them."""
    own, unit = _Clauses(geometry), ("unit",)
    return (
        Claim("heap", (), own.heap),
        Claim("fences", (), own.fences),
        Claim("blocks", unit, own.blocks),
        Claim("apart", unit * 2, own.apart, is_symmetric=True),
        Claim("behind", unit, own.behind),
        Claim("before", unit, own.before),
        Claim("tags", unit, own.tags),
        Claim("links", unit, own.links),
        Claim("linked", unit, own.linked),
        Claim("backed", unit, own.backed),
        Claim("order", unit, own.order),
        Claim("bits", unit, own.bits),
    )


def definitions(view: HalfFitView, one: Node) -> Iterator[Node]:
    """What rigid functions are at the size of ``one``; by its width, what a size is."""
    yield view.size(one) >= 0
    yield class_defined(view.size(one))


def class_defined(size: Node) -> Node:
    """What the class of ``size`` is, as far as it is told: the integers know of powers no more than their order."""
    own = class_of(size)
    inside = conjunction(own >= LEAST_CLASS, own < CLASSES)
    return implies(conjunction(size >= 2, size <= MOST_SIZE), inside, power(own) <= UNIT * size - UNIT)
