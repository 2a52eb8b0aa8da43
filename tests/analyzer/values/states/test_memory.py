"""What is known of memory: read-only bytes as they are, tables against them, and which addresses the image owns."""

from types import SimpleNamespace

import pytest

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

CODE, DATA, FAR = 0x8000, 0x20000000, 0x9000
BYTES = bytes(range(0x10, 0x30))


def memory(*, big_endian=False, isa=Isa.THUMB):
    segments = (
        Segment(CODE, BYTES, len(BYTES), writable=False, executable=True),
        Segment(DATA, b"\x01\x02\x03\x04", 64, writable=True, executable=False),
        Segment(FAR, b"\x07", 8, writable=False, executable=False),
    )
    return Memory(SimpleNamespace(segments=segments, big_endian=big_endian, isa=isa))


@pytest.mark.parametrize("big_endian", [False, True])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_read_only_content_is_that_of_the_file(size, big_endian):
    known = memory(big_endian=big_endian)
    for offset in range(len(BYTES) - size + 1):
        expected = int.from_bytes(BYTES[offset : offset + size], "big" if big_endian else "little")
        assert known.constant(CODE + offset, size) == expected


def test_what_is_writable_or_not_all_in_the_file_is_not_known():
    known = memory()
    assert known.constant(DATA, 4) is None
    assert known.constant(CODE - 1, 2) is None
    assert known.constant(CODE + len(BYTES) - 3, 4) is None
    assert known.constant(FAR, 1) == 7
    assert known.constant(FAR, 4) is None  # what the file leaves out
    assert known.constant(0, 4) is None


def test_a_table_is_all_that_is_at_its_addresses():
    known = memory()
    addresses = strided.between(32, CODE + 2, CODE + 26, 6)
    found = known.table(addresses, 2)
    expected = {known.constant(address, 2) for address in addresses.values()}
    assert expected <= set(found.values())
    assert found == strided.between(16, min(expected), max(expected), 6 * 0x0101)
    assert known.table(addresses, 2) is found


def test_a_table_that_is_not_read_only_to_its_end_is_none():
    known = memory()
    assert known.table(strided.between(32, CODE, CODE + 28, 4), 4) is not None
    assert known.table(strided.between(32, CODE, CODE + 32, 4), 4) is None
    assert known.table(strided.between(32, DATA, DATA + 4, 4), 4) is None
    assert known.table(strided.bottom(32), 4).is_bottom


def test_the_image_owns_what_is_in_its_segments_to_their_full_size():
    known = memory()
    owned = [(CODE, len(BYTES)), (DATA, 64), (FAR, 8)]
    for start, size in owned:
        assert [known.is_static(start + at) for at in (-1, 0, size - 1, size)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("low", "high", "is_bit"),
    [
        (0x22000000, 0x22000003, True),  # bit 0 of the first byte
        (0x22000000 + 32 * 63 + 28, 0x22000000 + 32 * 63 + 31, True),  # bit 7 of the last one
        (0x22000000 + 32 * 64, 0x23FFFFFF, False),
        (0x21FFFFFC, 0x21FFFFFF, False),
        (0x21FFFFFD, 0x22000000, True),
        (0x24000000, 0xFFFFFFFF, False),
        (0x42000000, 0x43FFFFFF, False),  # of which the image has nothing
        (DATA, DATA + 63, False),
        (DATA, 0x22000000, False),  # it may change what lies there anyway
        (DATA + 1, 0x22000000, True),
    ],
)
def test_a_store_to_an_alias_may_change_a_bit_of_the_image(low, high, is_bit):
    assert memory().changes_a_bit(low, high) is is_bit
    assert not memory(isa=Isa.ARM).changes_a_bit(low, high)
