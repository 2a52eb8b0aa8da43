"""What is written for an operation computes what it means; whole functions are run by `test_compiled_blocks`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.execution.block_functions import FORMULAS, formula_of


@pytest.mark.parametrize("opcode", sorted(FORMULAS))
@given(data=st.data())
def test_formulas_compute_what_the_operations_mean(opcode, data):
    is_flag = opcode.startswith("BOOL")
    size = 1 if is_flag else data.draw(st.sampled_from([1, 2, 4, 8]))
    is_wide = opcode in {"INT_ADD", "INT_SUB", "INT_AND", "INT_OR", "INT_XOR", "INT_ZEXT"}
    out = data.draw(st.sampled_from([one for one in (1, 2, 4, 8) if one >= size])) if is_wide else 1
    count = 1 if opcode in {"INT_ZEXT", "BOOL_NEGATE"} else 2
    edges = [0, 1, (1 << 8 * size) - 1, 1 << 8 * size - 1, (1 << 8 * size - 1) - 1]
    number = st.integers(0, 1) if is_flag else st.sampled_from(edges) | st.integers(0, (1 << 8 * size) - 1)
    values = [data.draw(number) for _ in range(count)]
    inputs = tuple(Varnode("register", 8 * place, size) for place in range(count))
    formula = formula_of(PcodeOp(opcode, Varnode("register", 64, out), inputs))
    found = eval(formula.format(a="a", b="b"), {"a": values[0], "b": values[-1]})  # noqa: S307  of the table
    assert found == operation(opcode, (size,) * count, out)(*values)
