from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.support import tlsf_guest
from wcet_probe.emu import operation_table
from wcet_probe.emu.layout import HARNESS_ADDRESS, MOST_SLOTS
from wcet_probe.emu.operation_table import parts, write_operations
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import Trace

WORD = st.integers(0, 0xFFFFFFFF)


@pytest.fixture(scope="module", params=["cortex-m4", "mpc603e"])
def machine(request):
    with tlsf_guest(request.param).machine() as guest:
        yield guest


@given(rows=st.lists(st.tuples(st.integers(0, 1), st.integers(0, MOST_SLOTS - 1), WORD, WORD), max_size=9))
@settings(max_examples=examples(20), deadline=None)
@pytest.mark.parametrize("as_columns", [tuple, lambda column: array("I", column), lambda column: array("q", column)])
def test_the_guest_reads_the_columns_row_by_row_in_its_order_of_bytes(machine, as_columns, rows):
    columns = [as_columns(column) for column in zip(*rows, strict=True)] or [()] * 4
    written = []
    operation_table.OPERATIONS_AT_ONCE, usual = 4, operation_table.OPERATIONS_AT_ONCE
    try:
        for part in parts(Trace(*columns, MOST_SLOTS)):
            write_operations(part, machine.memory)
            written += [machine.memory.read_word(HARNESS_ADDRESS + 4 * i) for i in range(4 * len(part))]
    finally:
        operation_table.OPERATIONS_AT_ONCE = usual
    assert written == [word for row in rows for word in row]


def test_more_slots_than_there_are_is_an_error_before_anything_runs():
    columns = (array("I", [0, 0]), array("I", [0, MOST_SLOTS]), array("I", [8, 8]), array("I", [0, 0]))
    with pytest.raises(UsageError, match="at most 6 million slots"):
        next(iter(parts(Trace(*columns, MOST_SLOTS + 1))))
