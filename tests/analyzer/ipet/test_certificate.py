"""The text of a certificate: records in their order, zeros left out, numbers in lowest terms."""

import json

from tests.analyzer.flow_problems import NESTED_DERIVATIONS, SHA, nested
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.exact_lp import Constraint
from wcet_probe.analyzer.ipet.flow_system import flow_system, solve

ORDER = ("wcet-probe", "image", "entry-function", "target", "unit", "bound", "optimum", "node", "entry", "exit", "edge")
ORDER += ("event", "loop", "constraint", "dual", "count", "derivation", "invariant")


def text(*constraints, derivations=(), followed=()):
    problem = nested(10, 4, constraints)
    return certificate(problem, solve(flow_system(problem)), derivations, followed).splitlines()


def test_records_stand_in_the_order_of_the_format():
    lines = text(derivations=NESTED_DERIVATIONS, followed=["invariant a r0 number 0 1 3"])
    kinds = [line.split(" ", 1)[0] for line in lines]
    assert [ORDER.index(kind) for kind in kinds] == sorted(ORDER.index(kind) for kind in kinds)
    assert lines[:5] == [
        "wcet-probe certificate 1",
        f"image {SHA}",
        "entry-function f",
        "target core",
        "unit instructions",
    ]
    assert lines[-1] == "invariant a r0 number 0 1 3"


def test_what_is_zero_is_left_out_and_terms_are_sorted():
    lines = text(Constraint("c", {"l-h": 2, "b-g": 0, "a-h": -1}, "<=", 30))
    assert "constraint c <= 30 -1 a-h 2 l-h" in lines
    assert not [line for line in lines if line.startswith(("dual", "count")) and line.endswith(" 0")]


def test_a_multiplier_is_a_fraction():
    lines = text(Constraint("odd", {"h-g": 2, "h-x": 1}, "<=", 7))
    assert any(line.startswith("dual odd ") and "/" in line for line in lines)


def test_an_optimum_may_be_missing():
    assert "optimum none" in text(Constraint("half", {"h-x": 2}, "=", 1))


def test_a_derivation_is_one_object_that_reads_back():
    (line,) = [one for one in text(derivations=NESTED_DERIVATIONS[1:]) if one.startswith("derivation ")]
    read = json.loads(line.removeprefix("derivation "))
    assert (read["loop"], read["expression"], read["parameters"], read["offset"]) == (
        "inner",
        "ceil_log2(n) + 1",
        {"n": 8},
        1,
    )
    assert list(read) == sorted(read)
