"""Pragmas' counts of code that is surely of the body: it is executed as often as they say, and not once more."""

from functools import cache

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.catalog.lookup import load_target

SOURCE = """\
typedef unsigned u;
volatile u o;
u words[8] = {3, 1, 4, 0, 5};

void once(u n)
{
    _Pragma("loopbound min 1 max 1")
    for (u i = 0; i < n; i++) {
        o = i;
        o = n;
        o = i ^ n;
    }
}

void inside(u n)
{
    _Pragma("loopbound min 0 max 2")
    for (u i = 0; i < n; i++) {
        _Pragma("loopbound min 0 max 3")
        for (u j = 0; j <= n; j++)
            o = j;
    }
}

void folded(u n)
{
    u i = n;
    _Pragma("loopbound min 0 max 3")
    while ((o = words[i++]) != 0)
        ;
}

void left(u key)
{
    _Pragma("loopbound min 0 max 3")
    for (u i = 0; i < 7; o = i++) {
        o = key;
        if (words[i] == key)
            break;
    }
}

void skipped(u n)
{
    _Pragma("loopbound min 0 max 4")
    for (u i = 0; i < n; i++)
        if (words[i] & 1)
            o = i;
}
"""
LONGEST = {"once": 1, "inside": 2, "folded": 0, "left": 4, "skipped": 4}


@cache
def proof(target, entry):
    return proved(guest_of(SOURCE, load_target(target), ".c"), entry, sources={"guest.c": SOURCE})


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", list(LONGEST))
def test_a_pragmas_count_of_bodies_holds_in_runs(target, entry):
    own = proof(target, entry)
    check_emulated(own, LONGEST[entry])
    longest = attack(own, LONGEST[entry])
    assert longest <= own.bound.instructions
    is_told = any(one.id.startswith("body guest.c:") for one in own.bound.assumptions)
    if entry in {"once", "inside"}:
        assert is_told
        assert longest == own.bound.instructions
    if entry == "folded":  # its only store is of the test, which is executed once more
        assert not is_told
