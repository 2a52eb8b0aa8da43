"""Who is asked of an operation: z3, if nobody else is named, and anew for each part."""

from wcet_probe.analyzer.deduction.asked import BY_Z3, asking_z3
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.solver import Questions


def test_each_part_asks_z3_anew():
    assert BY_Z3.told() is None
    first, second = BY_Z3.asked(), asking_z3("init")()
    assert isinstance(first, Questions)
    first.assume(unknown("x") >= 3)
    assert first.holds(unknown("x") >= 2)
    assert not second.holds(unknown("x") >= 2)
