"""What p-code operations of our own are, beside SLEIGH's."""

from wcet_probe.analyzer.pcode.operations import FLOAT_OPERATION, SPECIAL_REGISTER, LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import NO_EFFECT


def test_an_operation_of_unknown_result_is_not_taken_for_one_without_effect():
    """The analysis looks at either set; what is in both would leave a register as it was."""
    assert NO_EFFECT.isdisjoint({SPECIAL_REGISTER, FLOAT_OPERATION})


def test_operations_and_instructions_are_compared_by_what_they_are():
    ops = (PcodeOp("COPY", Varnode("register", 4, 4), (Varnode("const", 4, 4),)),)
    other = (PcodeOp("COPY", Varnode("register", 4, 4), (Varnode("unique", 4, 4),)),)
    assert LiftedInstruction(0x1000, 4, ops) == LiftedInstruction(0x1000, 4, (ops[0]._replace(),))
    assert len({LiftedInstruction(0x1000, 4, ops), LiftedInstruction(0x1000, 4, other)}) == 2
