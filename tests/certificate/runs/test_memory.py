"""Memory of a run: bytes and words of either order, what is not known, and where stores may go."""

from dataclasses import replace

import pytest

from tests.support import guest_of
from wcet_probe.analyzer.initial_data import apart_from_stack, image_data
from wcet_probe.analyzer.request import InitialData
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.runs.memory import RunMemory, memory_at_entry
from wcet_probe.certificate.runs.words import NOTHING, LostError, Rests, Stack
from wcet_probe.model.image import Segment

SOURCE = """typedef unsigned u; u data[4] = {0x01020304, 5}; u task[64]; const u fixed[2] = {7, 8};
u f(void) { return fixed[data[1] & 1]; }"""


def memory_of(target="cortex-m4", *, content=True, pointer=None, aligned=False):
    image = guest_of(SOURCE, load_target(target), ".c", "-O0").image
    used = Rests()
    stack = Stack(0, used) if pointer is None else pointer
    registers = [NOTHING] * 13 + [stack if pointer is None else pointer - 16]
    found = RunMemory(image, image_data(image) if content else (), stack, (registers, 13), used, aligned)
    return found, image, used


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_words_are_made_of_bytes_in_the_order_of_the_core(target):
    memory, image, _ = memory_of(target)
    data = image.symbols["data"].address
    big = image.big_endian
    assert memory.load(data, 4, "load") == 0x01020304
    assert memory.load(data, 1, "load") == (1 if big else 4)
    assert memory.load(data + 2, 2, "load") == (0x0304 if big else 0x0102)
    assert memory.load(data + 1, 4, "load") == (0x02030400 if big else 0x05010203)
    memory.store(data + 3, 2, 0xAABB, "store")
    assert memory.load(data, 4, "load") == (0x010203AA if big else 0xBB020304)
    memory.store(data + 4, 4, NOTHING, "store")
    assert memory.load(data + 4, 1, "load") is NOTHING
    for each in range(4):
        memory.store(data + 4 + each, 1, each, "store")
    assert memory.load(data + 4, 4, "load") == (0x00010203 if big else 0x03020100)


def test_of_what_nobody_says_nothing_is_known():
    memory, image, used = memory_of(content=False)
    data = image.symbols["data"].address
    assert memory.load(data, 4, "load") is NOTHING
    assert memory.load(image.symbols["fixed"].address, 4, "load") == 7
    assert memory.load(0x4000_0000, 4, "load") is NOTHING
    assert memory.load(Stack(-8, used), 4, "load") is NOTHING
    memory.store(0x4000_0000, 4, 1, "store")  # a device: what it is read as nobody knows
    assert memory.load(0x4000_0000, 4, "load") is NOTHING
    assert used == {"stack-separation"}
    memory.store(data, 1, 9, "store")
    assert (memory.load(data, 1, "load"), memory.load(data, 2, "load")) == (9, NOTHING)


def test_stores_out_of_the_frame_rest_on_an_assumption():
    memory, _, used = memory_of()
    memory._registers[13] = Stack(-16, used)
    memory.store(Stack(-16, used), 4, 1, "store")
    assert not used
    for offset in (-20, -2, 4):
        used.clear()
        memory.store(Stack(offset, used), 4, 2, "store")
        assert used == {"stack-stores"}
    assert memory.load(Stack(-16, used), 4, "load") == 1


@pytest.mark.parametrize("place", ["fixed", "f", "alias", "unknown", "unaligned"])
def test_a_store_to_what_may_not_change_or_is_not_known_ends_the_run(place):
    memory, image, _ = memory_of(aligned=place == "unaligned")
    at = {"alias": 0x2200_0000, "unknown": NOTHING, "unaligned": image.symbols["data"].address + 1}.get(place)
    with pytest.raises(LostError, match=r"constants|bit-band|not known|not aligned"):
        memory.store(image.symbols[place].address if at is None else at, 4, 1, "store")


@pytest.mark.parametrize("alias", [0x2200_0000, 0x42FF_FFFC])
def test_an_alias_is_no_memory_of_its_own_where_the_file_has_a_segment_or_the_stack_is_there(alias):
    _, image, used = memory_of()
    own = Segment(alias, b"\1\2\3\4", 4, writable=True, executable=False)
    image = replace(image, segments=(*image.segments, own))
    for pointer in (None, alias + 8):
        stack = Stack(0, used) if pointer is None else pointer
        registers = [NOTHING] * 13 + [stack if pointer is None else alias]
        memory = RunMemory(image, image_data(image), stack, (registers, 13), used, is_aligned=False)
        assert memory.load(alias, 4, "load") is NOTHING
        with pytest.raises(LostError, match="bit-band alias"):
            memory.store(alias, 4, 1, "store")


def test_a_stack_whose_place_is_told_is_memory_like_any_other():
    memory, _, used = memory_of(pointer=0x2000_8000)
    memory.store(0x2000_8000 - 16, 4, 3, "store")
    memory.store(0x2000_8000 - 20, 4, 3, "store")  # below the stack pointer
    memory.store(0x2000_8000 + 4, 4, 5, "store")  # where the caller keeps what is given
    loaded = [memory.load(0x2000_8000 + offset, 4, "load") for offset in (-16, -20, 4)]
    assert loaded == [3, NOTHING, 5]
    memory._registers[13] = 0x2000_8000 - 8
    memory.store(0x2000_8000 - 15, 1, 9, "store")  # below it by now: what was there before is not there any more
    assert memory.load(0x2000_8000 - 16, 4, "load") is NOTHING
    assert not used


@pytest.mark.parametrize("offset", [None, 0, 4, 256, 1 << 20])
def test_what_memory_holds_at_entry_is_what_the_analysis_says(offset):
    image = guest_of(SOURCE, load_target("cortex-m4"), ".c", "-O0").image
    pointer = None if offset is None else image.symbols["task"].address + offset
    said = apart_from_stack(image, InitialData(image_data(image), ""), pointer)
    assert tuple(memory_at_entry(image, pointer)) == said.at_entry
    twice = replace(image, segments=tuple(reversed(image.segments)))
    assert memory_at_entry(twice, pointer) == memory_at_entry(image, pointer)
