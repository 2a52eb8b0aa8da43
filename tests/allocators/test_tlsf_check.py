"""TLSF's checker on the host: every violation that it can name is provoked, and named."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .tlsf_host import (
    ALIGNMENT,
    CONFIGURATIONS,
    HEADER,
    SIZE_MAX,
    TLSF,
    BlockStruct,
    Host,
    Violation,
    configuration_id,
    loaded,
)
from .tlsf_model import class_bounds

Spoil = Callable[[Host], None]
SPOILS: list[tuple[Violation, str, Spoil]] = []
A, B, C, D, E = (HEADER + i * (HEADER + 4 * ALIGNMENT) for i in range(5))
"""Payloads of five blocks of the same size: B and D are free, D at the head of their list."""


@pytest.fixture(params=CONFIGURATIONS, ids=configuration_id)
def host(request: pytest.FixtureRequest, build_tlsf: Callable[[int, int], Path]) -> Iterator[Host]:
    yield from loaded(build_tlsf(*request.param), request.param[0])


def spoils(violation: Violation) -> Callable[[Spoil], Spoil]:
    def register(function: Spoil) -> Spoil:
        SPOILS.append((violation, function.__name__, function))
        return function

    return register


def row_and_list(host: Host, payload: int) -> tuple[int, int]:
    index = class_bounds(host.sl_bits, ALIGNMENT).index(host.block(payload).size_and_free & ~1)
    return index >> host.sl_bits, index & ((1 << host.sl_bits) - 1)


@spoils(Violation.NO_HEAP)
def first_forgotten(host: Host) -> None:
    host.control.first = 0


@spoils(Violation.BAD_PREV_PHYSICAL)
def prev_physical_moved(host: Host) -> None:
    host.block(C).prev_physical += ALIGNMENT


@spoils(Violation.BAD_PREV_PHYSICAL)
def first_block_has_a_block_before_it(host: Host) -> None:
    host.block(A).prev_physical = host.arena


@spoils(Violation.BAD_PREV_PHYSICAL)
def sentinels_prev_physical_moved(host: Host) -> None:
    host.block(host.heap_bytes).prev_physical = host.arena


@spoils(Violation.BAD_SIZE_ALIGNMENT)
def unknown_flag_set(host: Host) -> None:
    host.block(B).size_and_free |= 2


@spoils(Violation.BAD_SIZE_MINIMUM)
def size_zero(host: Host) -> None:
    host.block(A).size_and_free = 0


@spoils(Violation.BAD_CHAIN_END)
def block_beyond_the_sentinel(host: Host) -> None:
    host.block(E + HEADER + 4 * ALIGNMENT).size_and_free += ALIGNMENT


@spoils(Violation.BAD_CHAIN_END)
def size_wraps_around(host: Host) -> None:
    host.block(A).size_and_free = SIZE_MAX + 1 - ALIGNMENT


@spoils(Violation.BAD_ADJACENT_FREE)
def used_block_between_free_ones_marked_free(host: Host) -> None:
    host.block(C).size_and_free |= 1


@spoils(Violation.BAD_SENTINEL)
def sentinel_free(host: Host) -> None:
    host.block(host.heap_bytes).size_and_free = 1


@spoils(Violation.BAD_SENTINEL)
def sentinel_has_a_size(host: Host) -> None:
    host.block(host.heap_bytes).size_and_free = ALIGNMENT


@spoils(Violation.BAD_LIST_ADDRESS)
def link_out_of_the_arena(host: Host) -> None:
    host.block(B).next_free = host.arena + host.heap_bytes


@spoils(Violation.BAD_LIST_ADDRESS)
def link_before_the_arena(host: Host) -> None:
    host.block(B).next_free = host.arena - ALIGNMENT


@spoils(Violation.BAD_LIST_ADDRESS)
def link_misaligned(host: Host) -> None:
    host.block(B).next_free = host.arena + 4


@spoils(Violation.BAD_LIST_FREE_BIT)
def free_block_marked_used(host: Host) -> None:
    host.block(B).size_and_free &= ~1


@spoils(Violation.BAD_LIST_CLASS)
def list_moved_to_another_class(host: Host) -> None:
    fl, sl = row_and_list(host, D)
    host.control.heads[fl][sl + 1] = host.control.heads[fl][sl]
    host.control.heads[fl][sl] = 0


@spoils(Violation.BAD_LIST_LINK)
def back_link_cleared(host: Host) -> None:
    host.block(B).prev_free = 0


@spoils(Violation.BAD_LIST_LINK)
def head_has_a_block_before_it(host: Host) -> None:
    host.block(D).prev_free = host.arena + B - HEADER


@spoils(Violation.BAD_LIST_LINK)
def cycle(host: Host) -> None:
    host.block(B).next_free = host.arena + D - HEADER


@spoils(Violation.BAD_LIST_LINK)
def cycle_of_one(host: Host) -> None:
    host.block(B).next_free = host.arena + B - HEADER


@spoils(Violation.BAD_SL_BITMAP)
def list_without_its_bit(host: Host) -> None:
    fl, sl = row_and_list(host, D)
    host.control.sl_bitmap[fl] &= ~(1 << sl)


@spoils(Violation.BAD_SL_BITMAP)
def bit_without_its_list(host: Host) -> None:
    host.control.sl_bitmap[3] |= 1


@spoils(Violation.BAD_FL_BITMAP)
def row_without_its_bit(host: Host) -> None:
    host.control.fl_bitmap &= ~1


@spoils(Violation.BAD_FL_BITMAP)
def bit_of_no_row(host: Host) -> None:
    host.control.fl_bitmap |= 1 << 31


@spoils(Violation.BAD_FREE_COUNT)
def free_block_in_no_list(host: Host) -> None:
    host.block(D).next_free = 0


def plant_stale_block(host: Host) -> int:
    """Address of a perfect copy of free block B inside the payload of E."""
    stale = host.block(E + HEADER)
    ctypes.pointer(stale)[0] = host.block(B)
    return ctypes.addressof(stale)


@spoils(Violation.BAD_FREE_COUNT)
def list_holds_a_stale_block_too(host: Host) -> None:
    host.block(B).next_free = stale = plant_stale_block(host)
    BlockStruct.from_address(stale).next_free = 0
    BlockStruct.from_address(stale).prev_free = host.arena + B - HEADER


@spoils(Violation.BAD_FREE_MEMBERS)
def list_holds_a_stale_block_instead(host: Host) -> None:
    host.block(D).next_free = plant_stale_block(host)


@pytest.mark.parametrize(("violation", "spoil"), [pytest.param(v, s, id=f"{v.name}-{n}") for v, n, s in SPOILS])
def test_check_names_the_violation(host: Host, violation: Violation, spoil: Spoil) -> None:
    host.init(4096)
    blocks = [host.malloc(4 * ALIGNMENT) for _ in range(5)]
    assert blocks == [A, B, C, D, E]
    host.free(B)
    host.free(D)
    assert host.check() is Violation.HEAP_SOUND
    spoil(host)
    before = host.snapshot() if host.control.first else b""
    assert host.check() is violation
    assert before == (host.snapshot() if host.control.first else b"")


def test_every_violation_of_the_header_is_provoked() -> None:
    declared = re.search(r"enum tlsf_violation \{(.*?)\}", (TLSF / "tlsf.h").read_text(), re.DOTALL)
    assert declared is not None
    assert re.findall(r"^ *TLSF_(\w+)", declared[1], re.MULTILINE) == [violation.name for violation in Violation]
    assert {violation for violation, _, _ in SPOILS} == set(Violation) - {Violation.HEAP_SOUND}
