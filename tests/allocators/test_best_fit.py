"""Best-fit: conformance, the model, the checker against broken heaps."""

import ctypes
from functools import partial

import pytest

from .broken_lists import BROKEN, FREE_BLOCKS, HEAP_BYTES, Breakage, address_of_control, assert_noticed
from .conformance import WORD, Conformance, Host, Subject
from .tagged_models import BestFit


class TestBestFit(Conformance):
    subject = Subject("best-fit", model=BestFit)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda b: b.name)
    def test_check_names_the_violation(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, "best_fit_control", breakage)

    def test_check_misses_no_free_block(self, host: Host) -> None:
        """The list is empty, the heap is one free block."""
        host.init(HEAP_BYTES)
        head = address_of_control(host, "best_fit_control") + 2 * WORD
        for word in range(2):
            ctypes.c_size_t.from_address(head + WORD * word).value = head
        assert host.check() == FREE_BLOCKS


class TestBestFitOfP02(Conformance):
    subject = Subject(
        "best-fit",
        {"alignment": 4, "minimum-block": 16, "split-threshold": 64},
        model=partial(BestFit, alignment=4, threshold=64),
    )
