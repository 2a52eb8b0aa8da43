"""Which code is in the table of the emulator: a function in RAM is hundreds of megabytes from the rest."""

from dataclasses import replace

import pytest

from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.tables import code_table
from wcet_probe.errors import UsageError
from wcet_probe.identity import Same

FAR = 0x1800_0000


def table_of(instructions, costs, target):
    return code_table(Same(instructions), Same(costs), target.isa, "sp", ())


@pytest.fixture(scope="module")
def guest():
    target = load_target("cortex-m4")
    return guest_of(assembler({"f": "movs r0, #1\nadds r0, r0, #2\nbx lr"}, target), target)


@pytest.mark.parametrize("before", [False, True])
def test_code_that_is_far_from_most_has_no_rows(guest, before):
    instructions, costs, target = tuple(guest.instructions), tuple(guest.costs), guest.target
    far = replace(instructions[0], address=instructions[0].address + (-FAR if before else FAR) % (1 << 32))
    both = sorted([*zip(instructions, costs, strict=True), (far, costs[0])], key=lambda one: one[0].address)
    table = table_of(*(tuple(part) for part in zip(*both, strict=True)), target)
    assert table.row_count == table_of(instructions, costs, target).row_count
    assert table.instruction_at(instructions[0].address) == instructions[0]
    with pytest.raises(UsageError, match=r"too far .* without a run"):
        table.row(far.address)
