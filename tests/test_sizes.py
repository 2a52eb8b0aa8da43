from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.errors import UsageError
from wcet_probe.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4096", 4096), ("4K", 4096), ("4k", 4096), ("4KiB", 4096), ("16 KiB", 16384), ("4M", 4 << 20), ("3GiB", 3 << 30)],
)
def test_sizes_are_powers_of_1024(text, size_bytes):
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "00", "-4", "4.5K", "4KB", "4 MB", "K", "0x10", "1_0", "٤", "4K 4K", "9" * 5000])
def test_everything_else_is_refused(text):
    with pytest.raises(UsageError, match="is no size in bytes"):
        parse_size(text)


@pytest.mark.parametrize("text", ["0", "0K", "0 MiB"])
def test_nothing_is_refused_as_nothing(text):
    with pytest.raises(UsageError, match="holds nothing"):
        parse_size(text)


@pytest.mark.parametrize("text", ["4GiB", "4294967296", "9999999999G"])
def test_sizes_are_those_of_32_bit_machines(text):
    with pytest.raises(UsageError, match="32-bit"):
        parse_size(text)


@given(st.integers(1, 2**32 - 1))
def test_a_formatted_size_reads_back(size_bytes):
    assert parse_size(format_size(size_bytes)) == size_bytes


@given(st.text())
def test_any_text_is_a_size_or_one_usage_error(text):
    with suppress(UsageError):
        assert 0 < parse_size(text) < 2**32
