"""What the tests of shapes of code ask: proofs, refusals, and code put together by hand."""

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError


def of(target, source, entry="f", suffix=".s"):
    return proved(guest_of(source, load_target(target), suffix), entry)


def refused(target, source, entry="f", suffix=".s"):
    with pytest.raises(AnalysisError) as caught:
        of(target, source, entry, suffix)
    return str(caught.value)


def assumed(proof, name):
    return [one.statement for one in proof.bound.assumptions if one.id == name]


def checked(proof, *runs):
    """All checks of some runs; the most instructions of one."""
    most = max(attack(proof, *arguments) for arguments in runs)
    check_emulated(proof, *runs[-1])
    return most


THUMB = ".syntax unified\n.thumb\n.text\n"
ARM = ".syntax unified\n.text\n"


def thumb(name, body, *, size=True):
    return f".balign 4\n.globl {name}\n.type {name}, %function\n.thumb_func\n{name}:\n{body}\n" + (
        f".size {name}, . - {name}\n" if size else ""
    )


def arm(name, body, *, size=True):
    return f".balign 4\n.globl {name}\n.type {name}, %function\n{name}:\n{body}\n" + (
        f".size {name}, . - {name}\n" if size else ""
    )
