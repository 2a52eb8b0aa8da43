"""Bytes of memory by pages, against a dictionary of bytes: what is stored is known, and not what is forgotten."""

import random

import pytest

from wcet_probe.analyzer.values.execution.known_bytes import PAGE_BYTES, Page, forget, joined, load, pages_of, store

# Around the borders of pages, below 0 among them, as offsets in the stack are.
PLACES = [number * PAGE_BYTES + near for number in (-2, -1, 0, 1, 3) for near in (-3, -1, 0, 1, 5)]


def drawn(draw):
    return bytes(draw.randrange(1, 256) for _ in range(draw.choice((1, 2, 4, 8))))


def changed(draw, pages, model):
    """One store or one range that is forgotten, in both."""
    at = draw.choice(PLACES) + draw.randrange(4)
    if draw.random() < 0.7:
        data = drawn(draw)
        store(pages, at, data)
        model.update({at + place: byte for place, byte in enumerate(data)})
        return
    high = at + draw.choice((0, 1, 3, 7, PAGE_BYTES, 3 * PAGE_BYTES, 1 << 32))
    forget(pages, at, high)
    for address in [one for one in model if at <= one <= high]:
        del model[address]


def check(pages, model):
    for at in range(min(PLACES) - 8, max(PLACES) + 20):
        for size in (1, 4):
            told = [model.get(at + place) for place in range(size)]
            assert load(pages, at, size) == (None if None in told else bytes(told)), at


@pytest.mark.parametrize("seed", range(8))
def test_what_is_known_is_what_was_stored_last_and_not_forgotten(seed):
    draw, pages, model = random.Random(f"bytes {seed}"), {}, {}
    for _ in range(40):
        changed(draw, pages, model)
    check(pages, model)


@pytest.mark.parametrize("seed", range(8))
def test_what_two_ways_know_alike_is_known_where_they_meet(seed):
    draw = random.Random(f"joined {seed}")
    pages, model = {}, {}
    for _ in range(20):
        changed(draw, pages, model)
    other, other_model = pages.copy(), model.copy()
    for one, own in ((pages, model), (other, other_model)):
        for _ in range(draw.randrange(6)):
            changed(draw, one, own)
    both = {at: byte for at, byte in model.items() if other_model.get(at) == byte}
    check(joined(pages, other), both)
    check(joined(other, pages), both)
    check(pages, model)
    check(other, other_model)


def test_pages_are_shared_until_one_is_written_and_bytes_that_are_not_known_are_0():
    pages = pages_of([(PAGE_BYTES - 2, b"abcd"), (5 * PAGE_BYTES, b"xy")])
    assert sorted(pages) == [0, 1, 5]
    assert load(pages, PAGE_BYTES - 2, 4) == b"abcd"
    other = pages.copy()
    store(other, 5 * PAGE_BYTES + 2, b"z")
    assert other[0] is pages[0]
    assert (load(pages, 5 * PAGE_BYTES, 3), load(other, 5 * PAGE_BYTES, 3)) == (None, b"xyz")
    met = joined(pages, other)
    assert met[0] is pages[0]
    assert met[5] == Page(b"xy".ljust(PAGE_BYTES, b"\0"), 0b11)
    forget(other, 0, PAGE_BYTES - 1)
    assert other[0] == Page(bytes(PAGE_BYTES), 0)
    assert joined({7: Page(b"a" * PAGE_BYTES, 1)}, {7: Page(b"b" * PAGE_BYTES, 1)})[7] == Page(bytes(PAGE_BYTES), 0)
    assert joined(pages, {}) == {}
    assert joined(pages, pages) is pages
