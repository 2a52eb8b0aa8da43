"""What is left of a module, or of the checker, does what it was executed for, and nothing else."""

import importlib
from copy import deepcopy

import pytest

from bench.reading import checker_in, measured, write
from bench.slices import sliced, to_read
from tests.certificate.forgeries import sealed
from tests.certificate.specimens import specimen
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import VerificationError

TEXT = '''"""Text."""

A = 1


def f(x):
    """Of both."""
    if x > A:
        y = 2
    elif x == 0:
        y = 3
    else:
        y = 4
    match y:
        case 2:
            return list(g(x))
        case 4:
            return 7
    return 8


def g(x):
    yield from (x, A)


@property
def h(x):
    """Of none."""
    return (
        x
    )


def k(x):
    yield x
'''


def lines_of(*texts):
    rows = TEXT.split("\n")
    return {rows.index(text) + 1 for text in texts}


def test_what_was_not_executed_raises_an_error_in_its_place():
    ran = ("    if x > A:", "        y = 2", "    match y:", "        case 2:", "            return list(g(x))")
    found = sliced(TEXT, lines_of(*ran, "    yield from (x, A)"))
    space = {}
    exec(found, space)  # noqa: S102  (what stands above)
    assert space["f"](5) == [5, 1]
    for wrong in (
        lambda: space["f"](0),
        lambda: space["f"](-1),
        lambda: space["h"].fget(1),
        lambda: list(space["k"](1)),
    ):
        with pytest.raises(AssertionError):
            wrong()
    assert not [one for one in ("y = 3", "y = 4", "return 7") if one in found]


def test_functions_that_are_left_are_to_be_read_and_what_they_speak_of():
    one = "from m.two import B as C, D\nfrom m import three\nX = 1\nY = C\n\n\ndef f():\n    return Y + three.E\n"
    two = "B = (\n    1\n)\nD = 2\n"
    three = "E = 1\nF = 2\n\n\ndef g():\n    raise AssertionError  # not executed\n"
    assert to_read({"m.one": one, "m.two": two, "m.three": three}) == {"m.one": 2 + 1 + 1 + 1, "m.two": 3, "m.three": 1}


def test_what_is_left_of_the_checker_checks_the_certificate_and_not_a_lower_bound(tmp_path):
    document, binary = specimen("list", "mpc603e", "f")
    is_full, found = measured(lambda: check_bound(document, binary).is_full)
    assert is_full
    write(found, tmp_path)
    left = checker_in(tmp_path)
    assert left.check_bound is not check_bound
    assert importlib.import_module("wcet_probe").certificate.check.check_bound is check_bound  # the loaded one stays
    assert left.check_bound(document, binary).is_full
    lower = deepcopy(document)
    lower["bound"]["instructions"] -= 1
    with pytest.raises((VerificationError, AssertionError)):
        left.check_bound(sealed(lower), binary)
    assert 0 < sum(read.to_read for read in found.values()) < sum(read.lines for read in found.values()) / 2
