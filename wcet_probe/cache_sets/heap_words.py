"""Where links in an allocator's memory lead, by induction over its operations: descriptors, heads, static data.

What an operation loads as a link some operation has stored, with its remainder modulo a way of the cache: so the sets
that are accessed behind it are computed, and not told. No flow fact about pointers is believed. What the induction
takes for granted is the structure of the heap, in the same words for every allocator: `LEMMAS`.

*Soundness:* premises ``init-first`` (the others are called once init has returned 0), ``free-gets-held-blocks``,
``caller-writes-own-blocks`` and ``no-interference``; `LEMMAS`. All entry points that the manifest names are analysed,
but for the check of the heap, which is there for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.invariants.contents import NEAR_NULL, Contents, Region, is_anything
from wcet_probe.analyzer.invariants.frontier import Area
from wcet_probe.analyzer.invariants.induction import RESULT, Invariants, Module, invariants
from wcet_probe.analyzer.invariants.obligations import Lemma, Place
from wcet_probe.analyzer.invariants.operations import Operation
from wcet_probe.build.program import Program
from wcet_probe.cache_sets import static_words
from wcet_probe.cache_sets.preparations import Preparations, preparations
from wcet_probe.cache_sets.static_words import are_blocks, arguments_of, module_operations, static_addresses

LEMMAS: Mapping[str, tuple[str, str]] = {
    "stored-before-loaded": (
        (
            "a word of the arena that an operation loads was stored by one since the caller last held it; so "
            "was a word that is loaded through a link from static data, if operations store nothing but "
            "addresses in it"
        ),
        "a word of a descriptor is written when it is laid out or taken, before anything follows a link to it",
    ),
    "blocks-apart": (
        (
            "the word before a block that a call is given or returns, and the block's words, hold nothing of "
            "the allocator that is accessed otherwise than at a distance from the block's start"
        ),
        "blocks and what the allocator lays out for itself cut the arena into disjoint parts",
    ),
    "objects-apart": (
        (
            "an address computed from the arena's start lies in the arena, one computed from static data lies "
            "in static data, and the two and the stack do not overlap"
        ),
        "an address is computed from one in the object that it leads to",
    ),
    "null-is-not-followed": (
        "no word is loaded or stored behind a null link, and no block is computed from one",
        "a list's head is followed where its bit is set or it was compared with null",
    ),
    "frontier-in-its-area": (
        (
            "an address in the allowed sets or at their end that an operation advances by a constant in static "
            "data, wherever it is computed, is not above their end, and what is at the end is not followed"
        ),
        "a counter tells how many objects are left before the end",
    ),
}
"""What is assumed, and why it holds of a sound heap, by id."""


class HeapWords(NamedTuple):
    """Where accesses go, by operation and number among the accesses of its values.

    Attributes:
        addresses: of each access of which it is known; of none where a store may go anywhere.
        rests_on: ids of the lemmas that this rests on.
        sites: by id, the accesses at which a lemma is taken for granted, as operation, address of the instruction and
            whether it writes; nothing of a lemma that speaks of no access.
    """

    addresses: Mapping[str, Mapping[int, Contents]]
    rests_on: tuple[str, ...] = ()
    sites: Mapping[str, frozenset[tuple[str, int, bool]]] = MappingProxyType({})


def heap_words(
    program: Program,
    heap_bytes: int,
    area: Area | None,
    progress: Callable[[str], None] = lambda _: None,
    prepared: Preparations | None = None,
) -> HeapWords:
    """Where the accesses of ``program``'s operations go.

    Where all words are in static data, one lemma suffices (`static_words`).

    Args:
        program: the allocator's image.
        heap_bytes: size of the heap that flow facts speak of.
        area: remainders modulo a way of what the allocator reserves for itself; None: links are not followed.
        progress: is told in words what is being done.
        prepared: the operations, where others prepare them, too.
    """
    progress("following the words that operations load through all operations")
    cache = program.target.dcache
    operations = module_operations(program, heap_bytes, prepared or preparations(program))
    if cache is None or operations is None:
        return HeapWords({})
    if addresses := static_addresses(program, heap_bytes, operations):
        return HeapWords(addresses, (static_words.LEMMA,))
    if area is None:
        return HeapWords({})
    way_bits = (cache.sets * cache.line_bytes).bit_length() - 1
    arguments = [arguments_of(program, one, way_bits) for one in operations]
    found = invariants(Module(program.image, operations, arguments, way_bits, first=0, area=area))
    if found.lost or not are_blocks(found, operations, NEAR_NULL):
        return HeapWords({})
    result: dict[str, dict[int, Contents]] = {one.role: {} for one in operations}
    for (index, place), address in found.addresses.items():
        if not is_anything(address):
            result[operations[index].role][operations[index].moved[place].number] = address
    rests_on = tuple(name for name in LEMMAS if name in {*found.needed, *_of_blocks(found, operations)})
    return HeapWords(result, rests_on, {name.value: _sites(operations, own) for name, own in found.needed.items()})


def _of_blocks(found: Invariants, operations: Sequence[Operation]) -> Iterator[Lemma]:
    """What is taken for granted of the blocks that are returned: else the caller writes where words are."""
    if not are_blocks(found, operations):
        yield Lemma.NULL
    returned = (found.found.get((index, RESULT), ()) for index in range(len(operations)))
    if any(part.region is Region.ARENA for parts in returned for part in parts):
        yield Lemma.OBJECTS


def _sites(operations: Sequence[Operation], places: Iterable[Place]) -> frozenset[tuple[str, int, bool]]:
    return frozenset(
        (operations[index].role, moved.transfer.instruction_address, moved.transfer.is_store)
        for index, place in places
        for moved in (operations[index].moved[place],)
    )
