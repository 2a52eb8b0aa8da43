"""What an unaligned access takes longer: the rows of a table, by what is known of an address."""

import pytest

from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.unaligned_access import Longer, unaligned_cycles

ROWS = load_target("cortex-m4").unaligned


@pytest.mark.parametrize("name", ["cortex-m3", "cortex-m4", "cortex-m4f"])
def test_the_numbers_of_the_manual(name):
    rows = load_target(name).unaligned
    for timing_class in ("load_word", "load_narrow", "store"):
        for address in range(16):
            found = {size: unaligned_cycles(rows, timing_class, size, 16, address) for size in (1, 2, 4)}
            assert found[1] == (0, 0)
            assert found[2] == (address % 2,) * 2
            assert found[4] == ({0: 0, 1: 2, 2: 1, 3: 2}[address % 4],) * 2


@pytest.mark.parametrize("size_bytes", [2, 4])
@pytest.mark.parametrize("modulus", [1, 2, 4, 8, 4096])
def test_a_class_takes_the_least_and_the_most_of_its_addresses(size_bytes, modulus):
    for residue in range(min(modulus, 16)):
        found = [unaligned_cycles(ROWS, "load_word", size_bytes, 8192, one) for one in range(residue, 8192, modulus)]
        least, most = min(one.least for one in found), max(one.most for one in found)
        assert unaligned_cycles(ROWS, "load_word", size_bytes, modulus, residue) == Longer(least, most)


@pytest.mark.parametrize("timing_class", ["load_double", "load_multiple", "store_exclusive", "float_load"])
def test_what_is_in_no_row_takes_no_longer(timing_class):
    rows = load_target("cortex-m4f").unaligned
    assert all(unaligned_cycles(rows, timing_class, 4, 1, 0) == (0, 0) for rows in (rows, ()))
