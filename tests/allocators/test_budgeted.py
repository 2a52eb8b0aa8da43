"""The budgeted allocator over others: conformance, stacks of exact sizes, the checker against broken heaps, names."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from wcet_probe.catalog.lookup import allocator_names, load_allocator
from wcet_probe.cli import main
from wcet_probe.errors import UsageError

from .conformance import HEAP, WORD, Conformance, Host, Model, Subject
from .tlsf_model import Tlsf

NO_HEAP, OBJECT, STACK_ADDRESS, STACK_LENGTH, OTHERS, SHARED = range(1, 7)
"""enum budgeted_violation."""

SIZES, N = (8, 16, 32, 64), 2
BASE, DEDICATED, FIRST_SIZE, FIRST_TOP, FIRST_END = range(5)
OTHERS_TOP = FIRST_TOP + 3 * len(SIZES)


@dataclass
class Budgeted:
    """Stacks of offsets in front of X's model, at the defaults."""

    shared: Model
    start: int
    word: int
    stacks: dict[int, list[int]] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        offset = self.start
        for size in SIZES:
            stride = max(size, 2 * self.word)
            self.stacks[size] = [offset + stride * i for i in reversed(range(N))]
            self.owner |= dict.fromkeys(self.stacks[size], size)
            offset += stride * N

    def malloc(self, size: int) -> int | None:
        return self.stacks[size].pop() if self.stacks.get(size) else self.shared.malloc(size)

    def free(self, offset: int) -> None:
        if offset in self.owner:
            self.stacks[self.owner[offset]].append(offset)
        else:
            self.shared.free(offset)


def dedicated_bytes(word: int) -> int:
    return sum(N * max(size, 2 * word) for size in SIZES)


def over_tlsf(heap_bytes: int, word: int) -> Budgeted:
    left = heap_bytes - dedicated_bytes(word)
    return Budgeted(Tlsf(left, 5, word), left, word)


class TestOverTlsf(Conformance):
    subject: ClassVar[Subject] = Subject("budgeted:tlsf", model=over_tlsf)

    def test_stacks_are_used_first_and_do_not_fragment(self, host: Host) -> None:
        client = self.client(host, HEAP)
        first = [client.malloc(64) for _ in range(N + 1)]
        start = HEAP - dedicated_bytes(WORD)
        assert [offset is not None and offset >= start for offset in first] == [True] * N + [False]
        for offset in first:
            assert offset is not None
            client.free(offset)
        assert client.malloc(63) not in first[:N]
        assert client.malloc(64) == first[N - 1]

    def test_no_line_or_branch_stays_unexecuted(self, tmp_path: Path) -> None:
        """But in X the refusal of arenas that are too small: the budget refuses them first."""
        with pytest.raises(AssertionError, match=r"^\[\('tlsf\.c', \d+\)\]"):
            super().test_no_line_or_branch_stays_unexecuted(tmp_path)

    @pytest.mark.parametrize(
        ("index", "value", "violation"),
        [
            (BASE, 0, NO_HEAP),
            (FIRST_SIZE, 24, OBJECT),
            (FIRST_END, 0, OBJECT),
            (FIRST_TOP, HEAP, STACK_ADDRESS),
            (FIRST_TOP, HEAP - dedicated_bytes(WORD) + 1, STACK_ADDRESS),
            (OTHERS_TOP, HEAP, OTHERS),
        ],
    )
    def test_the_checker_notices(self, host: Host, index: int, value: int, violation: int) -> None:
        control = (ctypes.c_size_t * (OTHERS_TOP + 1)).in_dll(host.library, "budgeted_control")
        assert host.init(HEAP) == 0
        control[index] = value if index in (BASE, FIRST_SIZE) or not value else host.arena + value
        assert host.check() == violation

    def test_the_checker_notices_a_cycle_and_the_shared_heap(self, host: Host) -> None:
        assert host.init(HEAP) == 0
        start = host.arena + HEAP - dedicated_bytes(WORD)
        link = ctypes.c_size_t.from_address(start)
        kept, link.value = link.value, start
        assert host.check() == STACK_LENGTH
        link.value = kept
        assert host.check() == 0
        ctypes.c_size_t.from_address(host.arena + WORD).value = 3
        assert host.check() > SHARED


def test_names():
    assert "budgeted:tlsf" in allocator_names()
    assert "budgeted" not in allocator_names()
    composed, shared = load_allocator("budgeted:best-fit", {"budget-buckets": 4}), load_allocator("best-fit")
    assert composed.name == "budgeted:best-fit"
    own = {f"budget-size-{i}": 8 * i for i in range(1, 9)} | {f"budget-buckets-{i}": -1 for i in range(1, 9)}
    common = {"budget-objects": 4, "budget-configuration": 1, "budget-buckets": 4}
    assert composed.values == {**common, **own, **shared.values}
    assert set(shared.sources) < set(composed.sources)
    assert composed.literature[1:] == shared.literature
    assert composed.alignment_bytes == shared.alignment_bytes
    assert composed.minimum_heap_bytes > shared.minimum_heap_bytes


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("budgeted", "budgeted:tlsf"),
        ("budgeted:", "budgeted:tlsf"),
        ("budgeted:budgeted", "stands over another"),
        ("budgeted:budgeted:tlsf", "stands over another"),
        ("budgeted:cama", "cama's malloc takes a cache set, .* has none to pass on; try budgeted:tlsf"),
        ("budgeted:nothing", "unknown allocator"),
        ("tlsf:tlsf", "unknown allocator"),
    ],
)
def test_what_cannot_be_named(name, message):
    with pytest.raises(UsageError, match=message):
        load_allocator(name)


def test_parameters_that_are_ranges(capfd):
    """Each value in the range is taken, one outside is refused, and documents hold the ends."""
    values = {"budget-configuration": 5, "budget-size-1": 143, "budget-buckets-1": 7}
    assert load_allocator("budgeted:tlsf", values).values["budget-size-1"] == 143
    for name, value in (("budget-size-1", 0), ("budget-buckets-1", -2), ("budget-buckets-1", 65536)):
        with pytest.raises(UsageError, match=rf"{name} of budgeted:tlsf cannot be {value}; choose one of -?\d+ to"):
            load_allocator("budgeted:tlsf", {name: value})
    assert main(["show", "budgeted:tlsf", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    shown = {one["name"]: (one["choices"], one["span"]) for one in document["parameters"]}
    assert shown["budget-size-1"] == ([], [1, 16777216])
    assert shown["sl-bits"] == ([4, 5], None)


def test_each_object_has_its_own_number_of_buckets(tmp_path):
    """Sizes of the program's own, on the host; the second has no buckets, and is served by X."""
    own = {"budget-objects": 3, "budget-configuration": 5}
    own |= {"budget-size-1": 24, "budget-size-2": 40, "budget-size-3": 64}
    own |= {"budget-buckets-1": 3, "budget-buckets-2": 0, "budget-buckets-3": 1}
    host = Host(Subject("budgeted:tlsf", values=own), tmp_path)
    assert host.init(HEAP) == 0
    start = HEAP - (3 * 32 + 64 if WORD == 8 else 3 * 24 + 64)
    found = {size: [host.malloc(size) for _ in range(4)] for size in (24, 40, 64)}
    assert {size: sum(one >= start for one in blocks) for size, blocks in found.items()} == {24: 3, 40: 0, 64: 1}
    for block in (*found[64], *found[40], *found[24]):
        host.free(block)
        assert host.check() == 0
    assert [host.malloc(64) >= start, host.malloc(40) >= start, host.malloc(24) >= start] == [True, False, True]
