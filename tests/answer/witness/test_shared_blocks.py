"""A run through code that is a block of two functions, and ends in one of them earlier: no other block's end is taken.

GCC jumps far in ARMv6-M by ``bl`` where the link register is saved, so that what stands there is called, too.

Tests: answer.witness.call_paths, answer.witness.contradiction, emu.call_path_tables.
"""

import pytest

from tests.analyzer.firmware_code import THUMB, checked, of, thumb
from tests.path_check import interpret
from wcet_probe.answer.witness.contradiction import check_path
from wcet_probe.emu.call_path_tables import _path_rows
from wcet_probe.emu.tables import code_table
from wcet_probe.errors import ContradictionError
from wcet_probe.identity import Same

FAR = """push {lr}
    cmp r0, #5
    bhi 3f
    cmp r0, #2
    bhi 4f
    adds r0, #1
    2: adds r0, #2
    3: adds r0, #3
    pop {pc}
    4: movs r0, #9
    bl 2b
    b 2b"""


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4"])
def test_each_point_has_the_end_of_its_own_block(target):
    proof = of(target, THUMB + thumb("f", FAR))
    assert max(checked(proof, (number,)) for number in (1, 3, 6)) == proof.bound.instructions
    starts = [address for address, _ in proof.bound.points]
    twice = {start for start in starts if starts.count(start) == 2}
    ends = [{end for at, end in zip(starts, proof.bound.point_ends, strict=True) if at == start} for start in twice]
    assert {2} == {len(one) for one in ends if len(one) > 1}
    guest = proof.guest
    table = code_table(Same(guest.instructions), Same(guest.costs), guest.target.isa, "sp", ())
    rows = _path_rows(Same(proof.bound), Same(table), 0)
    assert [one.behind - one.first for one in rows.points] == [
        (end - start) // 2 for start, end in zip(starts, proof.bound.point_ends, strict=True)
    ]


def test_paths_through_both_are_told_from_others():
    proof = of("cortex-m0plus", THUMB + thumb("f", FAR))
    for number in (1, 3, 6):
        path = list(interpret(proof, number).path)
        check_path(proof.bound, path, proof.guest.image, "a test")
        with pytest.raises(ContradictionError):
            check_path(proof.bound, [path[0], path[-1]], proof.guest.image, "a test")
