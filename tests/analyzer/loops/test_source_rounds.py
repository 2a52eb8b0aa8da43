"""Counts of source loops that the compiler unrolled, on code of the packaged Clang, held against executions."""

import re
from fractions import Fraction
from functools import cache

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.loops import source_rounds
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.image import VariableLocation

SOURCE = """\
typedef unsigned u;
u words[128] = {3, 1, 4, 1, 5, 9, 2, 6};
u lengths[8] = {5, 0, 16, 3, 1, 15, 8, 7};
volatile u sink;

u sum(u n)
{
    u s = 0;
    _Pragma("loopbound min 0 max 100")
    _Pragma("clang loop unroll_count(8)")
    for (u i = 0; i < n; i++)
        s = (s << 1) ^ words[i];
    return s;
}

u twice(u n, u m) { return sum(n) + sum(m); }

u table(u rows)
{
    u s = 0;
    _Pragma("loopbound min 0 max 8")
    for (u r = 0; r < rows; r++) {
        _Pragma("loopbound min 0 max 16")
        _Pragma("clang loop unroll_count(4)")
        for (u i = 0; i < lengths[r]; i++)
            s = (s << 1) ^ words[i];
    }
    return s;
}

u down(u n)
{
    u *to = words + 64, *from = words;
    _Pragma("loopbound min 0 max 60")
    _Pragma("clang loop unroll_count(4)")
    while (n--)
        *to++ = *from++ ^ n;
    return to - words;
}

u find(u n, u key)
{
    _Pragma("loopbound min 0 max 42")
    _Pragma("clang loop unroll_count(4)")
    for (u i = 0; i < n; i += 3) {
        if (words[i] == key)
            return i;
        words[i] = key;
    }
    return n;
}

u skips(u n)
{
    u i = 0, s = 0;
    _Pragma("loopbound min 0 max 90")
    _Pragma("clang loop unroll_count(2)")
    while (i < n) {
        s += words[i];
        if (s & 1)
            i++;
        i++;
    }
    return s;
}
"""
TABLE_LINE = 1 + SOURCE[: SOURCE.index("for (u i = 0; i < lengths")].count("\n")
RUNS = {
    "sum": [(0,), (1,), (7,), (8,), (9,), (99,), (100,)],
    "twice": [(100, 100), (1, 100), (8, 15)],
    "table": [(0,), (3,), (8,)],
    "down": [(0,), (3,), (59,), (60,)],
    "find": [(0, 7), (126, 7), (5, 7), (126, 9)],
    "skips": [(0,), (50,), (89,)],
}


@cache
def guest(target, level):
    return guest_of(SOURCE, load_target(target), ".c", level)


@cache
def proof(target, entry, level="-O2"):
    return proved(guest(target, level), entry, sources={"guest.c": SOURCE})


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("entry", list(RUNS))
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.covering(0)
def test_a_pragmas_count_holds_of_what_the_compiler_made_of_the_loop(target, entry, level):
    proof_of = proof(target, entry, level)
    most = max(attack(proof_of, *arguments) for arguments in RUNS[entry])
    check_emulated(proof_of, *RUNS[entry][-1])
    assert most <= proof_of.bound.instructions


@pytest.mark.parametrize(
    ("target", "entry", "longest"),
    [
        ("cortex-m4", "sum", (100,)),
        ("cortex-m4", "down", (60,)),
        ("mpc603e", "sum", (100,)),
        ("mpc603e", "find", (126, 9)),
        pytest.param("arm926ej-s", "find", (126, 9), marks=pytest.mark.slow),
    ],
)
def test_the_bound_of_an_unrolled_loop_is_near_its_longest_run(target, entry, longest):
    proof_of = proof(target, entry)
    divided = [loop for loop in proof_of.bound.loops if re.fullmatch(r"\([0-9]+\) // [48]", loop.expression)]
    assert divided
    assert any(one.id.startswith("rounds guest.c:") for one in proof_of.bound.assumptions)
    assert proof_of.bound.instructions < 1.4 * attack(proof_of, *longest)


def test_loops_side_by_side_share_the_count_of_their_source_loop():
    (constraint,) = [one for one in proof("mpc603e", "sum").system.constraints if one.name.startswith("rounds:")]
    assert sorted(constraint.coefficients.values())[1:] == [1, 8]
    (claim,) = proof("mpc603e", "sum").bound.flow_claims
    assert sorted(weight for _, weight in claim.blocks)[1:] == [1, 8]


@pytest.mark.parametrize("between", ["\n", " "])
def test_loops_that_the_statements_of_one_were_distributed_to_share_no_count(between):
    # Each of the two runs all iterations, and on one line only the counter tells so.
    source = f"""\
typedef unsigned u;
u words[420], other[100], third[100];
void both(u n)
{{
    _Pragma("loopbound min 0 max 100")
    _Pragma("clang loop distribute(enable) unroll_count(4)")
    for (u i = 0; i < n; i++) {{
        words[2 * i + 1] = words[3 * i] * 5;{between}other[i] = third[i] ^ i;
    }}
}}
"""
    proof_of = proved(guest_of(source, load_target("cortex-m4"), ".c"), "both", sources={"guest.c": source})
    assert [loop.expression for loop in proof_of.bound.loops] == ["(100) // 4"] * 2
    assert attack(proof_of, 100) <= proof_of.bound.instructions


def test_where_nothing_shows_how_often_a_loop_is_unrolled_the_count_stays_and_says_how_loose_it_may_be():
    bound = proof("cortex-m4", "table").bound
    (inner,) = [loop for loop in bound.loops if loop.max == 17]
    (told,) = [one.statement for one in bound.assumptions if one.id == f"pragma {inner.where}"]
    assert re.search(r"may be unrolled: then this is up to \d+ times too much", told)


@pytest.mark.parametrize(("register", "refused"), [(4, False), (6, True)])
def test_a_register_that_moves_by_more_than_is_seen_within_a_round_is_no_counter(register, refused, monkeypatch):
    # The loop's pointer (r6) moves by 16 in a round of 4 iterations, its counter (r4) by 4.
    (inner,) = [loop for loop in proof("cortex-m4", "table").bound.loops if loop.max == 17]
    sign = -1 if register == 4 else 1
    told = tuple(
        VariableLocation(
            "table",
            "i",
            TABLE_LINE,
            1,
            inner.address + 2 * n,
            inner.address + 2 * n + 2,
            ((register, Fraction(sign)),),
            Fraction(n),
        )
        for n in range(4)
    )
    monkeypatch.setattr(source_rounds, "variable_locations", lambda *_: told)
    bound = proved(guest("cortex-m4", "-O2"), "table", sources={"guest.c": SOURCE}).bound
    (found,) = [loop for loop in bound.loops if loop.address == inner.address]
    assert found.expression == ("16" if refused else "(16) // 4")
