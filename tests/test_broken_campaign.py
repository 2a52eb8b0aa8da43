"""Random broken binaries: none that a run refutes is proved."""

import pytest

from tests import broken_campaign
from tests.broken_campaign import BINARIES, ROLES, SMALL, SUBJECTS, not_shown, run_slice, shown_broken, subject
from tests.broken_code import Broken, broken, dropped, instructions_of, patched

SLICES = len(SUBJECTS) * len(ROLES)


@pytest.mark.parametrize(
    ("role", "text", "part", "register"),
    [
        ("malloc", "addi r1, r1", "malloc-small", "r1"),
        pytest.param("free", "lwz r30, 8(r1)", "free-large", "r30", marks=pytest.mark.slow),
    ],
)
def test_what_does_not_leave_what_its_caller_keeps_is_not_proved(role, text, part, register, monkeypatch):
    """Before, nothing asked for the registers that the caller keeps, nor for the stack pointer: both were proved."""
    monkeypatch.setattr(broken_campaign, "LIMIT_S", 200.0)
    program = subject("cama", "mpc603e")
    (one,) = (each for each in instructions_of(program, role) if each.text.startswith(text))
    change = dropped(program, one.address)
    found = not_shown(Broken(patched(program, change), (change,)), role, [part])
    assert found == f"followed to its end: a return with another {register} than the caller had"


def test_a_few_that_are_refuted_are_not_proved():
    program, refuted = subject("cama", "mpc603e"), 0
    for number in range(1000, 1020):
        one = broken(program, "init", number)
        if shown_broken(one.program):
            refuted += 1
            assert not_shown(one, "init", ["init"]), one.text
        if refuted == 2:
            return
    raise AssertionError("too few were refuted")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2 * SLICES))
def test_none_of_a_slice_that_is_refuted_is_proved(number):
    found = run_slice(number)
    assert found["binaries"] == BINARIES
    assert found["refuted"] > 0
    assert not found["findings"]


@pytest.mark.parametrize(
    ("why", "without_check", "outcome"),
    [
        ("a block is not aligned", "a block is not aligned", "proved"),
        ("the check of the heap is 5", "", "proved, and refuted by its check alone"),
        ("init refuses its heap", "init refuses its heap", "proved, and refuses any heap"),
        ("", "", None),
    ],
)
def test_a_binary_that_is_refuted_and_proved_is_a_finding(why, without_check, outcome, monkeypatch):
    monkeypatch.setattr(broken_campaign, "not_shown", lambda *_: "")
    monkeypatch.setattr(broken_campaign, "shown_broken", lambda _, checks=True: why if checks else without_check)
    found = run_slice(3, binaries=1)
    assert (found["binaries"], found.get(outcome)) == (1, 1 if outcome else None)
    assert len(found["findings"]) == (outcome == "proved")
    assert all("proved, and a block is not aligned" in one for one in found["findings"])


def test_small_parts_are_parts_of_cama():
    assert {part for role in ROLES for part in broken_campaign.parts_of(subject("cama", "mpc603e"), role)} > set(SMALL)
