"""Lines of a table whose index nobody knows: each misses once in a stay, if nothing else may be in its set between.

Tests: certificate.caches.counted.
"""

from dataclasses import replace
from functools import cache
from unittest import mock

import pytest

from tests.certificate.caches.test_counted import constraint_changed, limits
from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.caches.counted import Counting, _is_kept
from wcet_probe.certificate.caches.misses import DATA, Caches, LinearConstraint

LINES = 9
"""Eight of the table, and that of a word of the stack."""
TABLE = """
 lis 5, table@ha
 addi 5, 5, table@l
 li 6, 60
 mtctr 6
1: rlwinm 7, 3, 2, 24, 29
 lwzx 3, 5, 7
 stw 3, -16(1)
 {more}
 bdnz 1b
 blr
 .balign 32
table: .space 256
"""
ENTERS, BACK = "f+0x0>f+0x10:fall:0x100010", "f+0x10>f+0x10:jump:0x100010"


@cache
def checked(more="nop"):
    target = load_target("mpc603e")
    return document_of(guest_of(assembler({"f": TABLE.format(more=more)}, target), target))


def found(change, more="nop"):
    """What is said of limits where ``change`` is made of that of the lines of the call."""
    document, binary = checked(more)
    with mock.patch("wcet_probe.certificate.check.check_shown", return_value=""):  # other counts may be the dearest
        return limits(solved_again(document, constraint_changed("miss:kept", change)), binary)


def most(constant, **credits_given):
    edges = {"enters": ENTERS, "back": BACK}
    given = {edges[name]: -many for name, many in credits_given.items()}
    return lambda one: replace(one, constant=constant, coefficients={**one.coefficients, **given})


def test_each_line_misses_once():
    document, binary = checked()
    text = document["bound"]["certificates"][1]
    assert "\nmiss f+0x10 0x100014 100 miss:0" in text
    assert "\nmiss f+0x10 0x100018 100 miss:1" in text
    assert limits(document, binary).verdict == "ok"
    assert found(most(LINES)).verdict == "ok"
    assert found(most(0, enters=LINES)).verdict == "ok", "a stay may begin with an edge"
    assert found(most(0, enters=LINES, back=LINES)).verdict == "ok"


@pytest.mark.parametrize(
    "change",
    [
        most(LINES - 1),
        most(0, enters=LINES - 1),
        most(1, enters=LINES - 1),
        lambda one: replace(
            one, constant=LINES, coefficients={name: 2 * factor for name, factor in one.coefficients.items()}
        ),
    ],
    ids=["a line less", "on an edge", "in two parts", "two misses a line"],
)
def test_fewer_are_not_shown(change):
    assert "miss:kept" in found(change).found
    assert found(change).verdict == "not checked"


def is_kept(constant, credited, more="nop"):
    """What the rule says of a limit of the misses of the load from the table and of the store to the stack."""
    seen = []

    def holds(counting, *_):
        seen.append(counting)
        return False

    with mock.patch.object(Counting, "holds", holds), mock.patch.object(Caches, "is_limited", return_value=False):
        limits(*checked(more))
    side = next(side for side in seen[0].caches.sides if side.name == DATA)
    steps = [step for step in side.steps["f+0x10"] if step.instruction_address in {0x100014, 0x100018}]
    own = [(side, "f+0x10", step, 1) for step in steps]
    return _is_kept(seen[0], LinearConstraint("own", {"own": 1}, credited, constant), own)


def test_no_access_is_before_what_gives_so_many():
    """Credits behind the first access would not limit paths; so the rule is asked itself."""
    assert is_kept(LINES, {})
    assert is_kept(0, {"enter": LINES})
    assert is_kept(0, {ENTERS: LINES})
    assert not is_kept(LINES - 1, {})
    assert not is_kept(0, {BACK: LINES})
    assert not is_kept(LINES - 1, {BACK: LINES})
    assert not is_kept(0, {ENTERS: LINES - 1, BACK: LINES})


@pytest.mark.parametrize("more", ["lwz 4, 0(4)", "lwzu 9, 32(8)"])
def test_an_access_to_another_line_in_each_round_may_be_in_each_set(more):
    """By what was loaded, and by a pointer that steps on."""
    assert not is_kept(1000, {}, more)
    assert is_kept(1000, {}, "lwz 9, 0(8)"), "the same line in each round is one more"


def test_no_more_lines_may_be_in_a_set_than_it_keeps():
    """A line of the table and that of the stack may be in one set."""
    with mock.patch("wcet_probe.certificate.caches.counted._kept_ways", return_value=2):
        assert found(most(LINES)).verdict == "ok"
    with mock.patch("wcet_probe.certificate.caches.counted._kept_ways", return_value=1):
        assert found(most(LINES)).verdict == "not checked"
