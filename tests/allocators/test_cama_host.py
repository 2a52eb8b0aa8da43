"""CAMA on the host: the C against the model, the checker against broken heaps, sanitizers and coverage."""

from __future__ import annotations

import ctypes
import json
import random
import shutil
import struct
import subprocess

import pytest

from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.scenarios.cama.heap import Cama

from .cama_builds import (
    CAMA,
    DRIVER,
    FREE,
    INIT,
    INIT_AT,
    MALLOC,
    NONE,
    PARAMETERS,
    SOURCES,
    Host,
    Violation,
    geometry_of,
    random_steps,
)
from .conformance import SIZE_MAX, WARNINGS, WORD
from .host_compiler import CC, compile_or_fail, sanitizing


@pytest.fixture(scope="module", params=PARAMETERS, ids=lambda name: name.replace(" ", "-"))
def host(request, tmp_path_factory):
    return Host(tmp_path_factory.mktemp("cama"), PARAMETERS[request.param])


@pytest.fixture(scope="module")
def default_host(tmp_path_factory):
    return Host(tmp_path_factory.mktemp("cama"), {})


# ---------------------------------------------------------------------------------------------------- against the model


@pytest.mark.parametrize("seed", range(6))
def test_every_operation_does_what_the_model_says(host, seed):
    geometry = host.geometry
    heap_bytes = random.Random(seed).choice((1 << 14, 1 << 16, 1 << 18))
    assert host.init(heap_bytes) == 0
    assert host.check() is Violation.HEAP_SOUND
    live = {}
    for code, argument, other, start in random_steps(seed, geometry, heap_bytes, 250):
        if code == MALLOC:
            before = host.contents()
            assert host.malloc(argument, other) == start
            if start is None:
                assert host.contents() == before
            else:
                assert geometry.set_of(start) == other
                assert start % geometry.alignment == 0
                assert start + argument <= heap_bytes
                assert all(start + argument <= o or o + s <= start for o, s in live.items())
                live[start] = argument
                ctypes.memset(host.arena + start, start % 251, argument)
        else:
            size = live.pop(other)
            assert ctypes.string_at(host.arena + other, size) == bytes([other % 251]) * size
            host.free(other)
        assert host.check() is Violation.HEAP_SOUND


@pytest.mark.parametrize("order", ["upwards", "downwards", "shuffled"])
def test_exhaustion_and_recovery_of_large_blocks(host, order):
    geometry = host.geometry
    host.init(1 << 16)
    available = host.control.available
    live, size = [], geometry.threshold + 3 * geometry.alignment
    while True:
        cache_set = geometry.set_of(host.control.top - host.arena + len(live) % 2 * geometry.line_bytes)
        if (offset := host.malloc(size - WORD, cache_set)) is None:
            break
        live.append(offset)
    assert len(live) > 30
    assert host.check() is Violation.HEAP_SOUND
    if order == "downwards":
        live.reverse()
    elif order == "shuffled":
        random.Random(1).shuffle(live)
    for offset in live:
        host.free(offset)
        assert host.check() is Violation.HEAP_SOUND
    # All is one piece again between two areas, and the break is behind the last one.
    assert host.control.newest > host.control.oldest
    assert host.control.top == geometry.top_behind(host.control.newest)
    assert host.control.available > available
    assert host.malloc(size - WORD, geometry.set_of(geometry.top_behind(host.control.oldest))) is not None


def test_small_blocks_are_served_again(host):
    size, steps = 2 * host.geometry.alignment, []
    host.init(1 << 14)
    for _ in range(2):
        while (offset := host.malloc(size - WORD, host.geometry.set_of(host.control.top - host.arena))) is not None:
            steps.append(offset)
        first = set(steps)
        for offset in steps:
            host.free(offset)
        again = {host.malloc(size - WORD, host.geometry.set_of(offset)) for offset in steps}
        assert again == first
        assert host.check() is Violation.HEAP_SOUND
        steps.clear()
        for offset in first:
            host.free(offset)


def test_zero_null_huge_and_foreign_sets_change_nothing(host):
    host.init(1 << 14)
    before = host.contents()
    sets = host.geometry.sets
    for size in (0, 1 << 14, (1 << 28) - 8, 1 << 28, (1 << 28) + 1, 1 << 31, SIZE_MAX - 7, SIZE_MAX):
        assert host.malloc(size, 0) is None, size
    for cache_set in (sets, sets + 1, NONE):
        assert host.malloc(8, cache_set) is None
    host.library.cama_free(None)
    assert host.contents() == before


def test_init_refuses_and_changes_nothing(host):
    host.init(1 << 14)
    before, init, arena = host.contents(), host.library.cama_init, host.arena
    alignment = host.geometry.alignment
    assert all(init(arena + off, 8192) for off in range(1, alignment))
    assert all(init(arena, 8192 + off) for off in range(1, alignment))
    assert all(init(arena, size) for size in (0, alignment, 1024, (1 << 28) + alignment, SIZE_MAX + 1 - alignment))
    assert init(None, 8192)
    assert init(SIZE_MAX + 1 - 8192, 8192)
    assert host.contents() == before


def test_least_heap(default_host):
    least = load_allocator("cama").minimum_heap_bytes - 24 + 6 * WORD
    assert default_host.init(least - 2 * WORD)
    assert default_host.init(least) == 0
    for _ in range(2):
        offset = default_host.malloc(1, 32)
        assert offset is not None
        assert default_host.malloc(1, 32) is None
        default_host.free(offset)
        assert default_host.check() is Violation.HEAP_SOUND


@pytest.mark.parametrize("offset_lines", [1, 31, 32, 100])
def test_an_arena_anywhere(default_host, offset_lines):
    default_host.init(1 << 16)
    begin = default_host.arena + offset_lines * 32
    assert default_host.library.cama_init(begin, 1 << 14) == 0
    assert default_host.check() is Violation.HEAP_SOUND
    address = default_host.library.cama_malloc(1000, 77)
    assert address // 32 % 128 == 77
    assert default_host.check() is Violation.HEAP_SOUND


# ------------------------------------------------------------------------------------------------- the checker can fail

LARGE = 512


def spoil_table(host, blocks):
    """By violation, how to provoke it: large blocks 1 and 3 are free, 0, 2 and 4 are used, the small one 5 is free."""
    geometry, arena = host.geometry, host.arena
    used, free = host.descriptor(blocks[0]), host.descriptor(blocks[1])
    size = free.size_and_free & ~1
    key = geometry.set_of(blocks[1]), geometry.class_of(size)

    def write(address, value):
        host.word(address).value = value

    def plant_small():
        """A free small block of the same set in the end of the used block before."""
        planted = arena + blocks[5] - 2 * WORD
        write(planted - WORD, tag_of(host, 3))
        write(planted, 0)
        host.head(geometry.set_of(blocks[5]), geometry.class_of(4 * WORD)).value = planted - WORD

    vector = geometry.word_address(host.tables, key[1] // 32, key[0])
    small_tag = arena + blocks[5] - WORD
    return {
        "no heap": (Violation.NO_HEAP, lambda: setattr(host.control, "arena", 0)),
        "area moved": (Violation.BAD_AREA, lambda: setattr(host.control, "oldest", arena + geometry.page_bytes // 2)),
        "newest area": (Violation.BAD_AREA, lambda: setattr(host.control, "newest", arena + geometry.page_bytes)),
        "right out of the areas": (Violation.BAD_DESCRIPTOR, lambda: setattr(used, "right", arena + blocks[2])),
        "left cleared": (Violation.BAD_LEFT, lambda: setattr(free, "left", 0)),
        "sentinel's left": (Violation.BAD_LEFT, lambda: write(host.sentinel, 0)),
        "size odd": (Violation.BAD_SIZE, lambda: setattr(used, "size_and_free", LARGE + WORD)),
        "size zero": (Violation.BAD_SIZE, lambda: setattr(free, "size_and_free", 1)),
        "size huge": (Violation.BAD_SIZE, lambda: setattr(used, "size_and_free", 1 << 20)),
        "neighbours free": (Violation.BAD_ADJACENT_FREE, lambda: setattr(used, "size_and_free", LARGE + 1)),
        "back pointer": (Violation.BAD_BACK_POINTER, lambda: write(arena + blocks[0] - WORD, 0)),
        "tag of no class": (Violation.BAD_TAG, lambda: write(small_tag, 63 << 2 | 3)),
        "tag even": (Violation.BAD_TAG, lambda: write(small_tag, 2)),
        "chain leads back": (
            Violation.BAD_CHAIN,
            lambda: setattr(host.descriptor(blocks[4]), "right", ctypes.addressof(free)),
        ),
        "another small one listed instead": (Violation.BAD_FREE_MEMBERS, plant_small),
        "spare astray": (Violation.BAD_SPARE, lambda: setattr(host.control, "spare", arena)),
        "too many available": (
            Violation.BAD_AVAILABLE,
            lambda: setattr(host.control, "available", host.control.available + 1),
        ),
        "head astray": (Violation.BAD_LIST_ADDRESS, lambda: setattr(host.head(*key), "value", arena + blocks[0])),
        "used block listed": (
            Violation.BAD_LIST_FREE_BIT,
            lambda: setattr(host.head(*key), "value", ctypes.addressof(used)),
        ),
        "other class": (
            Violation.BAD_LIST_CLASS,
            lambda: setattr(host.head(key[0], geometry.classes - 1), "value", ctypes.addressof(free)),
        ),
        "prev set": (Violation.BAD_LIST_LINK, lambda: setattr(free, "prev", ctypes.addressof(used))),
        "cycle": (Violation.BAD_LIST_LINK, lambda: setattr(free, "next", ctypes.addressof(free))),
        "cycle of small ones": (Violation.BAD_LIST_LINK, lambda: write(arena + blocks[5], small_tag)),
        "bit cleared": (Violation.BAD_VECTOR, lambda: write(vector, 0)),
        "small one marked free only": (
            Violation.BAD_FREE_COUNT,
            lambda: write(arena + blocks[6] - WORD, tag_of(host, 3)),
        ),
    }


def tag_of(host, flags):
    return host.geometry.class_of(4 * WORD) << 2 | flags


def built_heap(host):
    """A heap of five large and two small blocks, of which the large 1 and 3 and the first small one are free."""
    host.init(1 << 14)
    blocks = [host.malloc(LARGE - WORD, host.geometry.set_of(host.control.top - host.arena)) for _ in range(5)]
    blocks += [host.malloc(4 * WORD - WORD, host.geometry.set_of(host.control.top - host.arena)) for _ in range(2)]
    spoils = spoil_table(host, blocks)
    for at in (1, 3, 5):
        host.free(blocks[at])
    assert host.check() is Violation.HEAP_SOUND
    return spoils


def test_check_names_the_violation(default_host):
    spoils = built_heap(default_host)
    assert {violation for violation, _ in spoils.values()} == set(Violation) - {Violation.HEAP_SOUND}
    for name in spoils:
        violation, spoil = built_heap(default_host)[name]
        spoil()
        before = default_host.contents()
        assert default_host.check() is violation, name
        assert default_host.contents() == before
    default_host.init(1 << 14)


# ---------------------------------------------------------------------------------------------- sanitizers and coverage


def cut_without_descriptors(geometry, heap_bytes):
    """Takes a block of the own class, uses the descriptors up, then cuts a free block. Steps as of ``random_steps``."""
    model = Cama(geometry, heap_bytes)

    def malloc(size, lines=0):
        cache_set = (geometry.set_of(model.top) + lines) % geometry.sets
        return MALLOC, size - WORD, cache_set, model.malloc(size - WORD, cache_set)

    yield (own := malloc(geometry.threshold))
    yield malloc(geometry.threshold)
    model.free(own[3])
    yield FREE, 0, own[3], None
    yield MALLOC, own[1], own[2], model.malloc(own[1], own[2])
    yield (found := malloc(4 * geometry.threshold))
    yield malloc(geometry.threshold)
    while model.available:
        yield malloc(geometry.threshold, lines=1 - model.available % 2)
    model.free(found[3])
    yield FREE, 3, found[3], None
    size = geometry.threshold - WORD
    yield MALLOC, size, found[2], model.malloc(size, found[2])
    model.free(own[3])
    yield FREE, 2, own[3], None
    size += geometry.alignment
    yield MALLOC, size, own[2], model.malloc(size, own[2])


def leave_a_list(geometry, heap_bytes):
    """Merges take blocks out of a list of three: from its middle, from its end, the only one. Steps as above."""
    model = Cama(geometry, heap_bytes)
    sizes = (geometry.threshold, geometry.threshold, geometry.page_bytes - 2 * geometry.threshold)
    starts = []
    for size in 3 * sizes:
        cache_set = geometry.set_of(model.top)
        starts.append(model.malloc(size - WORD, cache_set))
        yield MALLOC, size - WORD, cache_set, starts[-1]
    for slot in (0, 3, 6, 4, 1, 7):
        model.free(starts[slot])
        yield FREE, slot, starts[slot], None


def area_at_the_break(geometry, heap_bytes):
    """The break stands where the area begins that is wanted: nothing is skipped. Steps as above."""
    model = Cama(geometry, heap_bytes)

    def malloc(size):
        cache_set = geometry.set_of(model.top)
        return MALLOC, size - WORD, cache_set, model.malloc(size - WORD, cache_set)

    while model.available > 2:
        yield malloc(geometry.threshold)
    yield malloc(-model.top % geometry.page_bytes)
    assert geometry.area_from(model.top) == model.top
    yield malloc(geometry.threshold)


def drive(program):
    """Random operations with every parameter default; every answer as predicted, every heap sound."""
    geometry = geometry_of({})
    steps, expected = [(MALLOC, 8, 0), (FREE, NONE, 0)], [NONE, 0]

    def extend(operations):
        for code, argument, other, start in operations:
            steps.append((code, argument, other))
            expected.append(0 if code == FREE else NONE if start is None else start)

    for heap_bytes in (1 << 14, 1 << 16, 1 << 18):
        steps += [(INIT, heap_bytes, 0), (MALLOC, NONE - 3, 0), (MALLOC, 8, 128)]
        expected += [0, NONE, NONE]
        for place, size in ((0, 1024), (0, 1 << 29), (1, 4096), (2, 4096), (3, 4096)):
            steps.append((INIT_AT, size, place))
            expected.append(1)
        extend(random_steps(heap_bytes, geometry, heap_bytes, 1500))
    for heap_bytes in (1 << 14, 4608):  # with room for another area, and without
        steps += [(INIT, 1 << 14, 0), (INIT_AT, heap_bytes, 0)]
        expected += [0, 0]
        extend(cut_without_descriptors(geometry, heap_bytes))
    for operations in (leave_a_list, area_at_the_break):
        steps.append((INIT, 1 << 16, 0))
        expected.append(0)
        extend(operations(geometry, 1 << 16))
    steps += [(INIT, 1 << 16, 0), (INIT_AT, 1 << 15, 4)]  # the last with a free block before its area
    expected += [0, 0]
    stdin = b"".join(struct.pack("=III", *step) for step in steps)
    done = subprocess.run([program], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers = list(struct.iter_unpack("=II", done.stdout))
    for number, (step, answer, (result, violation)) in enumerate(zip(steps, expected, answers, strict=True)):
        assert result == answer, step
        assert violation == (Violation.NO_HEAP if number < 2 else Violation.HEAP_SOUND), step


def test_sanitizers_find_nothing(tmp_path):
    sources = [*SOURCES, DRIVER]
    compile_or_fail(
        [*CC, *sanitizing(tmp_path), "-std=gnu11", *WARNINGS, f"-I{CAMA}", *sources, "-o", "driver"], tmp_path
    )
    drive(tmp_path / "driver")


def test_no_line_or_branch_stays_unexecuted(tmp_path):
    gcc, gcov = shutil.which("gcc"), shutil.which("gcov")
    if gcc is None or gcov is None:
        pytest.skip("needs gcc and gcov")
    sources = [*SOURCES, DRIVER]
    compile_or_fail([gcc, "-std=gnu11", "--coverage", "-O0", f"-I{CAMA}", *sources, "-o", "driver"], tmp_path)
    drive(tmp_path / "driver")
    done = subprocess.run(
        [gcov, "--branch-probabilities", "--json-format", "--stdout", "driver-cama.c"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    files = [file for line in done.stdout.splitlines() for file in json.loads(line)["files"]]
    lines = [line for file in files for line in file["lines"]]
    assert len(lines) > 100
    assert [line["line_number"] for line in lines if line["count"] == 0] == []
    assert [line["line_number"] for line in lines for branch in line["branches"] if branch["count"] == 0] == []
