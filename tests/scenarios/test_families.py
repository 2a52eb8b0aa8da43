"""The walk over chained blocks that takes rows at once is the plain walk, whatever the sizes."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.errors import StateError
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.families import chained_blocks

BASE, FIRST, FLAG = 0x2000_0000, 0x2000_0008, 1
SIZES = st.integers(2, 6).map(lambda words: 4 * words)
STATES = st.lists(st.integers(0, 1), min_size=1, max_size=5)


@st.composite
def rows(draw) -> list[int]:
    """Long rows of one size or of two by turns, with blocks of any size between and behind."""
    sizes = list[int]()
    for _ in range(draw(st.integers(1, 4))):
        turns = draw(st.lists(SIZES, min_size=1, max_size=3))
        sizes += turns * draw(st.integers(1, 300)) + draw(st.lists(SIZES, max_size=3))
    return sizes


def heap(sizes: list[int], states: list[int]) -> tuple[array[int], MemoryRange]:
    """Two words, then the blocks, then one word; what is no tag would be a size that leads astray."""
    words = array("I", [0xFFFF_FFF8]) * (3 + sum(sizes) // 4)
    at = 2
    for number, size in enumerate(sizes):
        words[at] = size | states[number % len(states)]
        at += size // 4
    return words, MemoryRange(FIRST, sum(sizes))


def walked(words: array[int], extent: MemoryRange) -> list[tuple[int, int, int]] | None:
    """Address, size and state of each block, one by one; None where a size is damaged."""
    found, at = [], extent.base_address
    while at < extent.end_address:
        tag = words[(at - BASE) // 4]
        found.append((at, tag & ~FLAG, tag & FLAG))
        if not tag & ~FLAG:
            return None
        at += tag & ~FLAG
    return found if at == extent.end_address else None


def chained(words: array[int], extent: MemoryRange) -> list[tuple[int, int, int]]:
    blocks = chained_blocks(words, BASE, extent, header_bytes=8, flags=FLAG, free={FLAG})
    return list(zip(blocks.addresses, blocks.sizes_bytes, blocks.free, strict=True))


@given(rows(), STATES)
def test_it_finds_what_a_plain_walk_finds(sizes, states):
    words, extent = heap(sizes, states)
    assert chained(words, extent) == walked(words, extent)


@given(rows(), STATES, st.data())
def test_a_damaged_size_is_refused_where_a_plain_walk_goes_astray(sizes, states, data):
    words, extent = heap(sizes, states)
    victim = data.draw(st.integers(0, len(sizes) - 1), "victim")
    damaged = data.draw(st.sampled_from([0, 4, 8, 12, 16, 20, 24, 28, 0xFFFF_FFF8]), "damaged size")
    words[2 + sum(sizes[:victim]) // 4] = damaged
    plain = walked(words, extent)
    if plain is None:
        with pytest.raises(StateError, match="damaged size"):
            chained(words, extent)
    else:
        assert chained(words, extent) == plain
