"""Classes and tables as the claims have them, against the arithmetic of ``cama.h``."""

import pytest

from tests.analyzer.deduction.cama_builds import geometry, program
from wcet_probe.analyzer.deduction.cama_geometry import Geometry
from wcet_probe.analyzer.deduction.formulas import condition
from wcet_probe.analyzer.deduction.solver import Questions

OTHER = Geometry(64, 64, 32, 32, 2, 0x400000, 0x401000, (0x400000, 0x500000))


def class_of(g, size):
    """As ``cama.h`` defines it."""
    row = size.bit_length() - 1
    columns = g.classes_per_row.bit_length() - 1
    return min((row - 4) * g.classes_per_row + (size >> (row - columns)) - g.classes_per_row, g.classes - 1)


@pytest.mark.parametrize("g", [OTHER, None], ids=["other", "default"])
def test_the_least_size_of_each_class_is_that_of_the_header(g):
    g = g or geometry()
    for number in range(1, g.classes):
        assert class_of(g, g.least_size(number)) == number
        assert class_of(g, g.least_size(number) - 1) == number - 1


def test_addresses_of_words_of_the_tables_are_those_of_the_header():
    g = geometry()
    words = [g.word_at(number) for number in range(46 * 128)]
    assert len(set(words)) == len(words)
    assert all((at // 32) % 128 < 32 for at in words)
    assert [at for at in range(g.tables - 8, g.tables + 23 * 4096 + 8) if g.is_of_tables(at)] == words
    assert g.word_at(256) == g.tables + 4096
    assert (g.threshold, g.first_large, g.vector_words, g.area_places, g.page_places) == (128, 12, 2, 32, 128)
    assert g.small_sizes == {0: 2, 2: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 10, 10: 12, 11: 14}  # none of 20 or 28 bytes
    assert g.sentinel * 32 == program().image.symbols["cama_control"].address + 32


def test_bits_of_class_and_word_are_those_of_numbers():
    g, questions = geometry(), Questions()
    start, size = 0x60001238, 1000
    constants = [condition("bits constant", value) for value in (start, size)]
    number = g.bits_of_class(constants[1])
    assert questions.bits_hold([], condition("bits equal", number, condition("bits constant", class_of(g, size))))
    plane = condition("bits constant", 2 + class_of(g, size))
    expected = g.word_at((2 + class_of(g, size)) * 128 + start // 32 % 128)
    address = g.bits_of_word(constants[0], plane)
    assert questions.bits_hold([], condition("bits equal", address, condition("bits constant", expected)))
    for small in range(g.first_large):
        least = g.bits_of_least_size(condition("bits constant", small))
        expected = condition("bits equal", least, condition("bits constant", g.least_size(small)))
        assert questions.bits_hold([], expected)
