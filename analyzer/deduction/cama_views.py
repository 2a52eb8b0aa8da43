"""CAMA's memory at one time, as functions, and what its claims say by them.

Words: claim, uninterpreted functions (docs/explanation/glossary.md).

*Soundness:* definitions only; that claims hold of a view is assumed or asked elsewhere
(`analyzer.deduction.cama_claims`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wcet_probe.analyzer.deduction.cama_geometry import START_BYTES, STARTS_PER_PLACE, Geometry
from wcet_probe.analyzer.deduction.formulas import Node, apply, conjunction, disjunction
from wcet_probe.analyzer.deduction.views import Map, unknown_maps, unknown_scalars


@dataclass(frozen=True, slots=True)
class View:
    """The memory and the ghosts at one time. Places, starts and cells as the module tells; sizes divided by 8."""

    left: Map
    right: Map
    prev: Map
    next: Map
    start: Map
    size: Map
    free: Map
    number: Map
    at: Map
    small_size: Map
    tag_class: Map
    tag_free: Map
    tag_low: Map
    link: Map
    before: Map
    owner: Map
    held: Map
    first_large: Map
    first_small: Map
    filled: Map
    arena: Node
    end: Node
    top: Node
    spare: Node
    fresh: Node
    available: Node
    newest: Node
    spares: Node
    used: Node


_PREDICATES = frozenset({"held", "filled"})
MAPS = tuple(
    name
    for name in View.__slots__
    if name not in {"arena", "end", "top", "spare", "fresh", "available", "newest", "spares", "used"}
)


def view_of(name: str) -> View:
    """A view of which nothing is known; ``name`` tells it from others."""
    scalars = unknown_scalars((one for one in View.__slots__ if one not in MAPS), name)
    parts: dict[str, Any] = {**unknown_maps(MAPS, _PREDICATES, name), **scalars}
    return View(**parts)


def page(place: Node) -> Node:
    """The cache page of a place."""
    return apply("page", place)


def class_of(size: Node) -> Node:
    """The class of a size."""
    return apply("class of", size)


def cell(start: Node, number: Node) -> Node:
    """The cell of the set of ``start`` and a class."""
    return apply("cell", start, number)


def class_at(at: Node) -> Node:
    """The class of a cell."""
    return apply("class at", at)


def set_of(start: Node) -> Node:
    """The cache set of a start."""
    return apply("set of", start)


def set_at(at: Node) -> Node:
    """The cache set of a cell."""
    return apply("set at", at)


def is_taken(view: View, place: Node) -> Node:
    """Whether a place was taken once."""
    return view.number(place) >= 1


def is_spare(view: View, place: Node) -> Node:
    """Whether a place is spare."""
    return conjunction(view.number(place) >= 1, view.number(place) <= view.spares)


def is_chained(view: View, place: Node) -> Node:
    """Whether a place is a chained descriptor."""
    return conjunction(view.number(place) >= 1, view.number(place) > view.spares)


def is_linked(view: View, place: Node, geometry: Geometry) -> Node:
    """Whether a place is chained or the sentinel."""
    return disjunction(is_chained(view, place), place.equals(geometry.sentinel))


def is_listed(view: View, place: Node, geometry: Geometry) -> Node:
    """Whether a place is in a list of free blocks."""
    is_large = view.size(place) >= geometry.threshold // START_BYTES
    return conjunction(is_chained(view, place), view.free(place).equals(1), is_large)


def home(view: View, place: Node) -> Node:
    """The cell of the list that a large block belongs into."""
    return cell(view.start(place), class_of(view.size(place)))


def is_small(view: View, start: Node) -> Node:
    """Whether a small block is at ``start``."""
    return view.small_size(start) >= 1


def is_filed(view: View, start: Node) -> Node:
    """Whether a small block at ``start`` is free."""
    return conjunction(is_small(view, start), view.tag_free(start).equals(1))


def small_home(view: View, start: Node) -> Node:
    """The cell of the list that a small block belongs into."""
    return cell(start, view.tag_class(start))


def is_live_header(view: View, start: Node) -> Node:
    """Whether the word before ``start`` is one that operations read."""
    return disjunction(is_small(view, start), view.held(start))


def is_reserved(place: Node, geometry: Geometry) -> Node:
    """Whether a place lies in the reserved sets."""
    return place - geometry.page_places * page(place) <= geometry.area_places - 1


def area_end(view: View, geometry: Geometry) -> Node:
    """The end of the newest area, as a place."""
    return geometry.page_places * page(view.newest) + geometry.area_places


def apart(start: Node, size: Node, other: Node, other_size: Node) -> Node:
    """Whether two blocks are apart."""
    return disjunction(start + size <= other, other + other_size <= start)


def apart_from_places(start: Node, size: Node, first: Node, end: Node) -> Node:
    """Whether a block, whose header is before its start, is apart from places ``first`` up to ``end``."""
    return disjunction(start + size <= STARTS_PER_PLACE * first, start >= STARTS_PER_PLACE * end + 1)
