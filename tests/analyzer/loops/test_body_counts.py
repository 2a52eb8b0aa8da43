"""Pragmas' counts of code that is surely of the body: it is executed as often as they say, and not once more."""

from functools import cache
from types import SimpleNamespace

import pytest

from tests.analyzer.loops.debug_unit import CODE_OF_F, debug_unit
from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.facts.binding import BoundFact
from wcet_probe.analyzer.loops import body_counts
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

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
    if entry == "left":  # in the fourth round, of which pragmas do not say whether it is counted
        assert not is_told
        check_emulated(own, 0)


SHARED = """\
volatile unsigned o;
void f(unsigned n)
{
    o = n;
    _Pragma("loopbound min 0 max 4")
    while (n != 0) {
        n >>= 1;
        o = n;
    }
}
"""
SHARED_CODE = (
    CODE_OF_F
    + """\
f: .loc 1 4
ldr r3, =o
again: .loc 1 8
str r0, [r3]
.loc 1 6
cbnz r0, body
bx lr
body: .loc 1 7
lsrs r0, r0, #1
b again
.ltorg
end: .size f, . - f
.bss
o: .space 4
"""
)
"""What GCC makes of it with -Os: one store for both, with the line of the second."""


@pytest.mark.parametrize(("compiler", "is_told"), [("GNU C17 12.2.1", False), ("clang version 22.1.8", True)])
def test_the_lines_of_compilers_that_share_code_tell_nothing_of_bodies(compiler, is_told):
    guest = guest_of(SHARED_CODE + debug_unit(compiler), load_target("cortex-m4"))
    own = proved(guest, "f", sources={"guest.c": SHARED})
    assert any(one.id.startswith("body guest.c:") for one in own.bound.assumptions) is is_told
    if not is_told:
        check_emulated(own, 8)
        assert attack(own, 8) == own.bound.instructions


TWO_IN_ONE = """\
volatile unsigned o;
void f(unsigned n, unsigned x)
{
    _Pragma("loopbound min 0 max 3")
    while (n != 0) {
        _Pragma("loopbound min 0 max 2")
        while (n & 3) {
            o = n;
            n--;
        }
        if (x-- == 0)
            break;
        n >>= 1;
    }
}
"""


def test_two_loops_that_have_become_one_have_no_bound_of_either():
    guest = guest_of(TWO_IN_ONE, load_target("cortex-m4"), ".c", "-Os")
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest, "f", sources={"guest.c": TWO_IN_ONE})


def test_what_runs_are_held_against_speaks_of_all_loops_that_one_has_become():
    image = SimpleNamespace(location=hex)
    facts = [BoundFact("f", header, None, "pragma", "a.c:3", "", "7", 8, offset=1) for header in (16, 32)]
    own = [body_counts._Limited(fact, None, 48, 3, ("an edge",)) for fact in facts]
    claim = body_counts._claim(image, own)
    assert claim.entries == (("0x00000030", 1), ("0x00000010", -7), ("0x00000020", -7))


@pytest.mark.parametrize("before", [0, 48])
def test_what_stands_before_a_loop_as_well_is_not_told_by_runs(before):
    """GCC's loops that are entered at two places have copies: a run entered the loop inside without the one around."""
    points = {
        3: SimpleNamespace(block=SimpleNamespace(address=48)),
        4: SimpleNamespace(block=SimpleNamespace(address=before)),
    }
    values = SimpleNamespace(states=points.keys(), graph=SimpleNamespace(points=points))
    own = [body_counts._Limited(BoundFact("f", 16, None, "pragma", "a.c:3", "", "7", 8), None, 48, 3, ())]
    assert body_counts._is_counted(values, own) == (before != 48)
