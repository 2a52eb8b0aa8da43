"""Which numbers are addresses of an image, and what its constant tables hold, against its bytes."""

import struct

import pytest

from tests.analyzer.invariants.small_memory import CODE, DATA, small_image
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import ALL, MODULUS, Kind, residue
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Segment, Symbol

TABLE = CODE + 32
WORDS = (0, 12, DATA + 8, 0x12345678)


def constants(words=WORDS, *, big_endian=True):
    data = struct.pack(f"{'>' if big_endian else '<'}{len(words)}I", *words)
    symbols = (Symbol("table", TABLE, len(data), is_function=False), Symbol("f", CODE, 32, is_function=True))
    return Constants(small_image(table=data, symbols=symbols, big_endian=big_endian))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, Kind.NUMBER),
        (4096, Kind.NUMBER),
        (0xFFFFFFFF, Kind.NUMBER),
        (DATA, Kind.STATIC),
        (DATA + 64, Kind.STATIC),  # behind its end, as loops compare with
        (DATA - 0x8000, Kind.STATIC),  # near it: something is added later
        (DATA + 0x20000, Kind.NUMBER),
        (TABLE, Kind.CONSTANT),
        (TABLE - 8, Kind.CONSTANT),
        (TABLE - 12, Kind.ANY),  # in the code, of which no constant data is known
        (CODE, Kind.ANY),
    ],
)
def test_a_number_is_an_address_where_the_image_has_data(value, kind):
    assert constants().kind_of(value) is kind


def test_what_is_in_code_near_data_is_no_address_of_data():
    image = small_image()
    code, _ = image.segments
    image.segments = (code, Segment(CODE + 0x100, b"", 64, writable=True, executable=False))
    assert Constants(image).kind_of(CODE + 8) is Kind.ANY
    assert Constants(image).kind_of(CODE + 0x108) is Kind.STATIC


def test_data_that_lies_as_low_as_sizes_is_refused():
    image = small_image()
    low = Segment(0x1000, b"", 64, writable=True, executable=False)
    image.segments = (*image.segments, low)
    with pytest.raises(AnalysisError, match="cannot be told from sizes"):
        Constants(image)


@pytest.mark.parametrize("big_endian", [False, True])
def test_constant_words_are_those_of_the_table_at_such_addresses(big_endian):
    found = constants(big_endian=big_endian)
    for number, value in enumerate(WORDS):
        told = found.words(residue(TABLE + 4 * number))
        kind = Kind.NULL if value == 0 else found.kind_of(value)
        assert any(part.kind is kind and part.residues >> value % MODULUS & 1 for part in told)
    kinds = {part.kind for part in found.words(ALL)}
    assert {Kind.NULL, Kind.NUMBER, Kind.STATIC} <= kinds


def test_where_no_table_is_no_word_is_told():
    assert not constants().words(residue(TABLE + 13 + 4 * 8))
    assert not Constants(small_image()).words(ALL)


@pytest.mark.parametrize("big_endian", [False, True])
def test_words_that_data_begins_with_are_those_of_the_image(big_endian):
    image = small_image(big_endian=big_endian)
    words = (0, DATA + 8, 300, CODE)
    data = struct.pack(f"{'>' if big_endian else '<'}4I", *words)
    image.segments = (image.segments[0], Segment(DATA, data, 64, writable=True, executable=False))
    told = Constants(image)
    every = residue(0) | residue(4) | residue(8) | residue(12)
    found = {part.kind: part for part in told.initial(every, 0, 0xFFFFFFFF)}
    assert set(found) == {Kind.NULL, Kind.NUMBER, Kind.STATIC, Kind.ANY}
    assert found[Kind.STATIC].residues == residue(DATA + 8)
    assert (found[Kind.NUMBER].residues, found[Kind.NUMBER].least, found[Kind.NUMBER].most) == (residue(300), 9, 9)
    assert [part.kind for part in told.initial(every, DATA + 8, DATA + 8)] == [Kind.NUMBER]
    assert [part.kind for part in told.initial(ALL, DATA + 16, DATA + 60)] == [Kind.NULL]
    assert told.initial(every, DATA + 64, DATA + 128) == ()
    assert DATA + 8 in told.pointers()
