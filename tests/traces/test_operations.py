import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.errors import UsageError
from wcet_probe.traces.operations import TraceRow, checked, heap_operations


def slots(*rows):
    return [(one.is_free, one.slot, one.size_bytes) for one in heap_operations(rows)]


def test_slots_are_used_again():
    rows = [TraceRow("malloc", 1, 10), TraceRow("malloc", 2, 20), TraceRow("free", 1), TraceRow("calloc", 3, 30)]
    assert slots(*rows) == [(False, 0, 10), (False, 1, 20), (True, 0, 0), (False, 0, 30)]


def test_a_realloc_is_a_malloc_and_a_free_of_the_old_block():
    rows = [TraceRow("malloc", 1, 10), TraceRow("realloc", 1, 50, new_block=2), TraceRow("free", 2)]
    assert slots(*rows) == [(False, 0, 10), (False, 1, 50), (True, 0, 0), (True, 1, 0)]


def test_a_realloc_of_nothing_allocates_and_one_to_nothing_frees():
    assert slots(TraceRow("realloc", 0, 5, new_block=1), TraceRow("realloc", 1, 0)) == [(False, 0, 5), (True, 0, 0)]


def test_a_memalign_has_room_to_align_in_and_a_request_of_nothing_is_one_of_a_byte():
    assert slots(TraceRow("memalign", 1, 100, 64), TraceRow("malloc", 2, 0)) == [(False, 0, 164), (False, 1, 1)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([TraceRow("free", 7)], "row 1 of the trace frees block 7, which was never allocated"),
        ([TraceRow("free", 0)], "row 1 of the trace frees block 0, which was never allocated"),
        (
            [TraceRow("malloc", 1, 1), TraceRow("free", 1), TraceRow("free", 1)],
            "row 3 of the trace frees block 1, which was freed before",
        ),
        ([TraceRow("malloc", 1, 1), TraceRow("malloc", 1, 1)], "row 2 of the trace allocates block 1, which is held"),
        ([TraceRow("malloc", 0, 1)], "row 1 of the trace allocates block 0, which is no block"),
        ([TraceRow("sbrk", 1, 1)], "row 1 of the trace is of kind 'sbrk'"),
    ],
)
def test_what_no_program_can_do_is_refused_by_its_row(rows, message):
    with pytest.raises(UsageError, match=message):
        list(heap_operations(rows))
    with pytest.raises(UsageError, match=message):
        list(checked(rows))


@given(st.lists(st.tuples(st.sampled_from(["malloc", "realloc", "free"]), st.integers(0, 9)), max_size=60))
def test_blocks_that_are_live_at_once_have_slots_of_their_own(steps):
    rows, live, block = [], [], 0
    for kind, which in steps:
        if kind == "malloc" or not live:
            block += 1
            live.append(block)
            rows.append(TraceRow("malloc", block, 8))
        elif kind == "free":
            rows.append(TraceRow("free", live.pop(which % len(live))))
        else:
            block += 1
            rows.append(TraceRow("realloc", live.pop(which % len(live)), 8, new_block=block))
            live.append(block)
    held, most = set(), 0
    for one in heap_operations(rows):
        if one.is_free:
            held.remove(one.slot)
        else:
            assert one.slot not in held
            held.add(one.slot)
            most = max(most, len(held))
            assert one.slot < most + 1
    assert len(held) == len(live)
    assert list(checked(rows)) == rows
