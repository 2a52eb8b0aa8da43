"""What CAMA claims of its memory whenever no operation runs: the clauses of `allocators/cama`, as formulas.

Words are told by functions: of a place (a descriptor's 32 bytes, by its address divided by 32), of a start (of a
block, by its address divided by 8), of a cell (a head of a list). Ghost functions are beside them, which only the
proof has:

* ``number`` numbers the places that were taken once: 1 to ``spares`` are spare, in the order of their list from its
  end, those up to ``used`` are chained; ``at`` is its inverse.
* ``small size`` is the size of the small block at a start, divided by 8; 0 where there is none. ``before`` is the
  free small block before it in its list, or 0.
* ``held`` tells starts of blocks that the caller holds, ``owner`` the place that describes such a block, if it is
  large.

Rigid functions are the same before and behind an operation, and defined: ``page`` is the quotient of a place by the
places of a cache page, ``class of`` the class of a size, ``set of`` the cache set of a start, ``cell`` the cell of its
set and a class, ``class at`` and ``set at`` the inverse of it. There are cells for all bits of a vector; those of
classes that there are not are empty, as no block is of such a class (``heads-large``), so that their bits are 0
(``bits``).

Words: claim, data invariant, ghost state, uninterpreted functions (docs/explanation/glossary.md).

*Soundness:* a claim is nothing but a formula: that it holds is assumed at an operation's entry and asked at its ends,
and to be a fact it has to be shown of all operations and of what the caller writes. Words of different functions are
words at different addresses, where they are *live*: all fields of places that are taken, of the sentinel, the word
before blocks that are small or held, the first word of free small ones, and all cells. That live words are apart is
claimed as well (``small-apart`` to ``frontier-apart``), so that a store changes no word but the one that it is to. No
claim and no operation reads a word that is not live.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, STARTS_PER_PLACE, Geometry
from wcet_probe.analyzer.deduction.cama_views import (
    View,
    apart,
    apart_from_places,
    area_end,
    cell,
    class_at,
    class_of,
    home,
    is_chained,
    is_filed,
    is_linked,
    is_listed,
    is_reserved,
    is_small,
    is_spare,
    is_taken,
    page,
    set_at,
    set_of,
    small_home,
)
from wcet_probe.analyzer.deduction.claims import Claim
from wcet_probe.analyzer.deduction.formulas import Node, apply, conjunction, disjunction, implies, negation, term


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The claims as formulas, of a view and of their variables: places ``u`` and ``w``, starts, a cell, a number."""

    geometry: Geometry

    def bounds(self, v: View) -> Node:
        low, high = self.geometry.data
        apart = disjunction(v.end <= low // START_BYTES, v.arena >= -(-high // START_BYTES))
        last_begin = ((1 << 32) - 1 - (1 << 28) - 2 * self.geometry.page_bytes) // START_BYTES
        heap = conjunction(v.arena >= 1, v.arena <= last_begin, v.end - v.arena <= (1 << 28) // START_BYTES)
        return conjunction(heap, apart, v.top <= v.end)

    def newest(self, v: View) -> Node:
        offset = v.newest - self.geometry.page_places * page(v.newest)
        inside = conjunction(
            STARTS_PER_PLACE * v.newest >= v.arena, v.top >= STARTS_PER_PLACE * area_end(v, self.geometry) + 1
        )
        return conjunction(
            offset <= self.geometry.area_places - 4,
            inside,
            v.fresh >= v.newest + 1,
            v.fresh <= area_end(v, self.geometry),
        )

    def counts(self, v: View) -> Node:
        room = STARTS_PER_PLACE * v.used <= STARTS_PER_PLACE * v.fresh - v.arena
        return conjunction(v.spares >= 0, v.spares <= v.used, room)

    def available(self, v: View) -> Node:
        return v.available.equals(v.spares + area_end(v, self.geometry) - v.fresh)

    def spare(self, v: View) -> Node:
        none, some = v.spares <= 0, v.spares >= 1
        return conjunction(implies(none, v.spare.equals(v.fresh)), implies(some, v.number(v.spare).equals(v.spares)))

    def numbers(self, v: View, u: Node) -> Node:
        own = v.number(u)
        inverse = implies(is_taken(v, u), v.at(own).equals(u))
        return conjunction(own >= 0, own <= v.used, inverse, implies(u.equals(self.geometry.sentinel), own.equals(0)))

    def inverse(self, v: View, n: Node) -> Node:
        return implies(conjunction(n >= 1, n <= v.used), v.number(v.at(n)).equals(n))

    def places(self, v: View, u: Node) -> Node:
        is_behind = u >= self.geometry.page_places * page(u) + 1
        inside = conjunction(STARTS_PER_PLACE * u >= v.arena, u < v.fresh, u.differs(v.newest), is_behind)
        return implies(is_taken(v, u), is_reserved(u, self.geometry), inside)

    def spare_list(self, v: View, u: Node) -> Node:
        last = implies(v.number(u).equals(1), v.left(u).equals(v.fresh))
        rest = implies(v.number(u) >= 2, v.number(v.left(u)).equals(v.number(u) - 1))
        return implies(is_spare(v, u), last, rest)

    def chain_right(self, v: View, u: Node) -> Node:
        return implies(
            is_linked(v, u, self.geometry), is_linked(v, v.right(u), self.geometry), v.left(v.right(u)).equals(u)
        )

    def chain_left(self, v: View, u: Node) -> Node:
        return implies(
            is_linked(v, u, self.geometry), is_linked(v, v.left(u), self.geometry), v.right(v.left(u)).equals(u)
        )

    def chain_order(self, v: View, u: Node) -> Node:
        both = conjunction(is_chained(v, u), is_chained(v, v.right(u)))
        return implies(both, v.start(u) + v.size(u) <= v.start(v.right(u)))

    def sentinel(self, v: View) -> Node:
        return conjunction(
            v.size(term(self.geometry.sentinel)).equals(0), v.free(term(self.geometry.sentinel)).equals(0)
        )

    def blocks(self, v: View, u: Node) -> Node:
        inside = conjunction(v.start(u) >= v.arena + 1, v.start(u) + v.size(u) <= v.top)
        used = implies(v.free(u).equals(0), v.size(u) >= self.geometry.threshold // START_BYTES)
        return implies(is_chained(v, u), v.size(u) >= 1, inside, used)

    def blocks_apart(self, v: View, u: Node, w: Node) -> Node:
        both = conjunction(is_chained(v, u), is_chained(v, w), u.differs(w))
        return implies(both, apart(v.start(u), v.size(u), v.start(w), v.size(w)))

    def block_and_place(self, v: View, u: Node, w: Node) -> Node:
        both = conjunction(is_chained(v, u), is_taken(v, w))
        return implies(both, apart_from_places(v.start(u), v.size(u), w, w + 1))

    def block_and_frontier(self, v: View, u: Node) -> Node:
        return implies(is_chained(v, u), apart_from_places(v.start(u), v.size(u), v.newest, area_end(v, self.geometry)))

    def small_blocks(self, v: View, s: Node) -> Node:
        own = self.geometry.small_sizes.items()
        sizes = disjunction(
            *(conjunction(v.tag_class(s).equals(one), v.small_size(s).equals(size)) for one, size in own)
        )
        inside = conjunction(s >= v.arena + 1, s + v.small_size(s) <= v.top)
        return implies(is_small(v, s), v.tag_low(s).equals(1), sizes, inside)

    def small_apart(self, v: View, s: Node, t: Node) -> Node:
        both = conjunction(is_small(v, s), is_small(v, t), s.differs(t))
        return implies(both, apart(s, v.small_size(s), t, v.small_size(t)))

    def small_and_block(self, v: View, s: Node, u: Node) -> Node:
        both = conjunction(is_small(v, s), is_chained(v, u))
        return implies(both, apart(s, v.small_size(s), v.start(u), v.size(u)))

    def small_and_place(self, v: View, s: Node, u: Node) -> Node:
        both = conjunction(is_small(v, s), is_taken(v, u))
        return implies(both, apart_from_places(s, v.small_size(s), u, u + 1))

    def small_and_frontier(self, v: View, s: Node) -> Node:
        return implies(is_small(v, s), apart_from_places(s, v.small_size(s), v.newest, area_end(v, self.geometry)))

    def held(self, v: View, s: Node) -> Node:
        small = conjunction(is_small(v, s), v.tag_free(s).equals(0))
        own = v.owner(s)
        word = 4 * v.tag_class(s) + 2 * v.tag_free(s) + v.tag_low(s)
        large = conjunction(
            word.equals(PLACE_BYTES * own), is_chained(v, own), v.free(own).equals(0), v.start(own).equals(s)
        )
        return implies(v.held(s), disjunction(small, large))

    def heads_large(self, v: View, h: Node) -> Node:
        first = v.first_large(h)
        in_list = conjunction(is_listed(v, first, self.geometry), home(v, first).equals(h), v.prev(first).equals(0))
        return implies(class_at(h) >= self.geometry.first_large, disjunction(first.equals(0), in_list))

    def list_prev(self, v: View, u: Node) -> Node:
        before = v.prev(u)
        first = v.first_large(home(v, u)).equals(u)
        inner = conjunction(
            is_listed(v, before, self.geometry), v.next(before).equals(u), home(v, before).equals(home(v, u))
        )
        is_first = before.equals(0)
        return implies(is_listed(v, u, self.geometry), implies(is_first, first), disjunction(is_first, inner))

    def list_next(self, v: View, u: Node) -> Node:
        behind = v.next(u)
        inner = conjunction(
            is_listed(v, behind, self.geometry), v.prev(behind).equals(u), home(v, behind).equals(home(v, u))
        )
        return implies(is_listed(v, u, self.geometry), disjunction(behind.equals(0), inner))

    def heads_small(self, v: View, h: Node) -> Node:
        first = v.first_small(h)
        in_list = conjunction(is_filed(v, first), small_home(v, first).equals(h), v.before(first).equals(0))
        return implies(class_at(h) < self.geometry.first_large, disjunction(first.equals(0), in_list))

    def small_before(self, v: View, s: Node) -> Node:
        before = v.before(s)
        first = v.first_small(small_home(v, s)).equals(s)
        same_home = small_home(v, before).equals(small_home(v, s))
        inner = conjunction(is_filed(v, before), v.link(before).equals(s), same_home)
        is_first = before.equals(0)
        return implies(is_filed(v, s), implies(is_first, first), disjunction(is_first, inner))

    def small_next(self, v: View, s: Node) -> Node:
        behind = v.link(s)
        same_home = small_home(v, behind).equals(small_home(v, s))
        inner = conjunction(is_filed(v, behind), v.before(behind).equals(s), same_home)
        return implies(is_filed(v, s), disjunction(behind.equals(0), inner))

    def bits(self, v: View, h: Node) -> Node:
        is_large = class_at(h) >= self.geometry.first_large
        large = conjunction(is_large, v.first_large(h).differs(0))
        some = disjunction(large, conjunction(negation(is_large), v.first_small(h).differs(0)))
        return conjunction(implies(some, v.filled(h)), implies(v.filled(h), some))


def claims(geometry: Geometry) -> tuple[Claim, ...]:
    """The claims of CAMA built with this geometry."""
    own = _Clauses(geometry)
    place, start, at = ("place",), ("start",), ("cell",)
    return (
        Claim("arena", (), own.bounds),
        Claim("newest-area", (), own.newest),
        Claim("counts", (), own.counts),
        Claim("available", (), own.available),
        Claim("spare", (), own.spare),
        Claim("sentinel", (), own.sentinel),
        Claim("numbers", place, own.numbers),
        Claim("inverse", ("number",), own.inverse),
        Claim("places", place, own.places),
        Claim("spare-list", place, own.spare_list),
        Claim("chain-right", place, own.chain_right),
        Claim("chain-left", place, own.chain_left),
        Claim("chain-order", place, own.chain_order),
        Claim("blocks", place, own.blocks),
        Claim("blocks-apart", place * 2, own.blocks_apart, is_symmetric=True),
        Claim("block-and-place", place * 2, own.block_and_place),
        Claim("block-and-frontier", place, own.block_and_frontier),
        Claim("small-blocks", start, own.small_blocks),
        Claim("small-apart", start * 2, own.small_apart, is_symmetric=True),
        Claim("small-and-block", start + place, own.small_and_block),
        Claim("small-and-place", start + place, own.small_and_place),
        Claim("small-and-frontier", start, own.small_and_frontier),
        Claim("held", start, own.held),
        Claim("heads-large", at, own.heads_large),
        Claim("list-prev", place, own.list_prev),
        Claim("list-next", place, own.list_next),
        Claim("heads-small", at, own.heads_small),
        Claim("small-before", start, own.small_before),
        Claim("small-next", start, own.small_next),
        Claim("bits", at, own.bits),
    )


def definitions(g: Geometry, view: View, kind: str, one: Node) -> Iterator[Node]:
    """What rigid functions are at ``one``, and what words are by their width."""
    if kind == "place":
        rest = one - g.page_places * page(one)
        free = view.free(one)
        yield conjunction(rest >= 0, rest < g.page_places, view.size(one) >= 0, free >= 0, free <= 1)
        yield from _cells(g, view.start(one), class_of(view.size(one)))
        own = class_of(view.size(one))
        is_large = view.size(one) >= g.threshold // START_BYTES
        yield implies(is_large, own >= g.first_large, own < g.classes)
    if kind == "start":
        yield from _cells(g, one, view.tag_class(one))
        low, free = view.tag_low(one), view.tag_free(one)
        yield conjunction(low >= 0, low <= 1, free >= 0, free <= 1, view.tag_class(one) >= 0)


def sets(g: Geometry, start: Node, number: Node) -> Iterator[Node]:
    """What the set of ``start`` is, and that the cell of it and a class, which its tables have, is of that set."""
    own, page, odd = set_of(start), apply("page of", start), apply("odd starts of", start)
    per_line = g.line_bytes // START_BYTES
    yield start.equals(per_line * g.sets * page + per_line * own + odd)
    yield conjunction(own >= 0, own < g.sets, odd >= 0, odd < per_line)
    yield implies(conjunction(number >= 0, number < 32 * g.vector_words), set_at(cell(start, number)).equals(own))


def _cells(g: Geometry, start: Node, number: Node) -> Iterator[Node]:
    yield implies(conjunction(number >= 0, number < g.classes), class_at(cell(start, number)).equals(number))
