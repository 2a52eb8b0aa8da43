"""Runs against a model of the held blocks: true versions show nothing, and what is broken is found."""

import pytest

from tests.broken_campaign import subject
from tests.broken_code import dropped, instructions_of, patched
from tests.held_blocks import refuted

OPERATIONS = 1000


@pytest.mark.parametrize(
    ("name", "target"), [("cama", "mpc603e"), ("half-fit", "cortex-m7"), ("kingsley", "arm926ej-s")]
)
def test_a_true_version_is_not_refuted(name, target):
    assert not refuted(subject(name, target), OPERATIONS)


def without(name, target, role, text, index=0):
    """The version without the ``index``-th instruction that begins with ``text``."""
    program = subject(name, target)
    found = [one for one in instructions_of(program, role) if one.text.startswith(text)]
    return patched(program, dropped(program, found[index].address))


@pytest.mark.parametrize(
    ("role", "text", "index", "why"),
    [
        ("free", "lwz r30, 8(r1)", -1, "free does not leave r30"),
        ("free", "addi r1, r1", -1, "free does not leave r1"),
        ("malloc", "rlwinm", 0, ""),
    ],
)
def test_what_is_left_out_is_found(role, text, index, why):
    found = refuted(without("cama", "mpc603e", role, text, index), OPERATIONS)
    assert found
    assert why in found


def test_without_the_check_its_own_words_are_not_looked_at():
    """half-fit keeps the end of its heap for its check alone."""
    program = without("half-fit", "mpc603e", "init", "stw r8, 4(r7)")
    assert refuted(program, OPERATIONS).startswith("the check of the heap is")
    assert not refuted(program, OPERATIONS, checks=False)
