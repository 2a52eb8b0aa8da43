"""Half-fit: conformance, the model, the checker against broken heaps."""

import ctypes
from dataclasses import replace
from functools import partial

import pytest

from .broken_lists import BROKEN, HEAP_BYTES, SIZE, address_of_control, assert_noticed
from .conformance import WORD, Conformance, Host, Subject
from .tagged_models import HalfFit


class TestHalfFit(Conformance):
    subject = Subject("half-fit", model=HalfFit)


class TestHalfFitByTable(Conformance):
    subject = Subject(
        "half-fit",
        {"alignment": 4, "split-threshold": 64, "bit-search": 1},
        model=partial(HalfFit, alignment=4, threshold=64),
    )


# ------------------------------------------------------------------------------------------------- the checker can fail

LIST_ADDRESS, LIST_FREE_BIT, LIST_CLASS, LIST_LINK, BAD_BITMAP, FREE_BLOCKS = range(9, 15)
"""enum half_fit_violation."""

OWN = {9: LIST_ADDRESS, 10: LIST_FREE_BIT, 11: LIST_LINK}
"""The violations of broken_lists that have another code here."""

CLASS_OF_B = (SIZE - 2 * WORD).bit_length() - 1
LISTS = 2 * WORD
BITMAP = LISTS + 28 * 2 * WORD
"""Offsets in the control structure."""


class TestChecker:
    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory):
        return Host(Subject("half-fit"), tmp_path_factory.mktemp("half-fit"))

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda b: b.name)
    def test_names_the_violation(self, host, breakage):
        assert_noticed(
            host, "half_fit_control", replace(breakage, violation=OWN.get(breakage.violation, breakage.violation))
        )

    @pytest.mark.parametrize("bit", [0, CLASS_OF_B, 27, 31])
    def test_bitmap(self, host, bit):
        host.init(HEAP_BYTES)
        bitmap = ctypes.c_uint32.from_address(address_of_control(host, "half_fit_control") + BITMAP)
        bitmap.value ^= 1 << bit
        assert host.check() == BAD_BITMAP

    def test_list_of_another_class(self, host):
        """The whole heap is one free block; its list and the one before it change places, and so do their bits."""
        host.init(HEAP_BYTES)
        control = address_of_control(host, "half_fit_control")
        index = (HEAP_BYTES - 4 * WORD).bit_length() - 1
        block = ctypes.c_size_t.from_address(control + LISTS + 2 * WORD * index)
        other = control + LISTS + 2 * WORD * (index - 1)
        node = (ctypes.c_size_t * 2).from_address(block.value)
        for word in range(2):
            ctypes.c_size_t.from_address(other + WORD * word).value = block.value
            node[word] = other
        empty = control + LISTS + 2 * WORD * index
        for word in range(2):
            ctypes.c_size_t.from_address(empty + WORD * word).value = empty
        assert host.check() == LIST_CLASS

    def test_free_block_in_no_list(self, host):
        host.init(HEAP_BYTES)
        control = address_of_control(host, "half_fit_control")
        head = control + LISTS + 2 * WORD * ((HEAP_BYTES - 4 * WORD).bit_length() - 1)
        for word in range(2):
            ctypes.c_size_t.from_address(head + WORD * word).value = head
        ctypes.c_uint32.from_address(control + BITMAP).value = 0
        assert host.check() == FREE_BLOCKS
