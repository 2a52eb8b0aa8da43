"""Rounds of a nest that are told from one of them: only where it surely stands for all that are left.

Tests: analyzer.loops.abstract_execution.
"""

import random

import pytest

from tests.analyzer.firmware_code import checked, of
from tests.following import following
from tests.path_check import attack, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.loops import abstract_execution
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

ROUNDS = """typedef unsigned u; volatile u o; u n, m; u *const where[2] = {&n, &m};
#define FORK if (x >> (i & 7) & 1) { o = 1; o = x; } else o = 2;
#define LOOP(end) { u e = (end) & 15; for (u j = 0; j < e; j++) o = j; }
void alike(u x) { n = 5; for (u i = 0; i < 60; i++) { FORK if (n < 9) n ^= 3; LOOP(n) n = 5; } }
void at_last(u x) { for (u i = 0; i < 60; i++) { FORK if (i > 20) LOOP(9) } }
void at_times(u x) { for (u i = 0; i < 60; i++) { FORK if ((i & 15) == 15) LOOP(9) else if (i == 3) LOOP(4) } }
void growing(u x) { n = 1; for (u i = 0; i < 60; i++) { FORK LOOP(n) if (i == 11) n = 9; } }
void moved(u x) { n = 1; m = 9; u *p = &n; for (u i = 0; i < 60; i++) { FORK LOOP(*p) if (i == 30) p = &m; } }
void stored(u x) { n = 1; for (u i = 0; i < 60; i++) { FORK LOOP(n) if (i > 30) *where[x & 1] = 8; } }
void just(u x) { n = 3; for (u i = 0; i < 8; i++) { FORK LOOP(n) } }
void once_more(u x) { n = 3; u i = 0; do { FORK LOOP(n) } while (++i < 9); }
"""


@pytest.fixture
def told(monkeypatch):
    """For each time that it was tried: the rounds that were done, and whether the others were told."""
    tried, asked = [], abstract_execution._Following._are_alike

    def noted(own, *others):
        tried.append((own._done[0][0], asked(own, *others)))
        return tried[-1][1]

    monkeypatch.setattr(abstract_execution._Following, "_are_alike", noted)
    monkeypatch.setattr(abstract_execution._Following, "_is_out_of_reach", lambda *_: True)
    return tried


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["alike", "at_last", "at_times", "growing", "moved", "just", "once_more"])
@pytest.mark.usefixtures("told")
def test_the_bound_of_rounds_that_a_later_one_exceeds_is_attained(target, entry):
    proof = of(target, ROUNDS, entry, ".c")
    assert max(checked(proof, (number,)) for number in (0, 1, 0x55, 0xFE, 0xFF)) == proof.bound.instructions


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("alike", [(8, True)]),
        ("at_last", [(8, False), (16, False), (32, True)]),
        ("at_times", [(8, False), (16, False), (32, False)]),
        ("growing", [(8, False), (16, False), (32, False)]),
        ("moved", [(8, False), (16, False), (32, False)]),
        ("stored", [(8, False), (16, False), (32, False)]),
        ("just", []),
        ("once_more", [(8, False)]),
    ],
)
def test_rounds_are_told_from_one_where_no_later_one_takes_more(entry, expected, told):
    """`stored` changes the length of the inner loop, or something else: nobody knows, from then on."""
    proof = of("mpc603e", ROUNDS, entry, ".c")
    assert told == expected
    assert max(attack(proof, number) for number in (0, 1, 0x55, 0xFE, 0xFF)) <= proof.bound.instructions


FEWER = """typedef unsigned u; volatile u o;
void f(u x) { for (u i = 0; i < 200; i++) { if (x >> (i & 7) & 1) o = x; for (u j = i; j < 150; j += 50) o = j; } }
"""


@pytest.mark.parametrize(("most", "is_followed"), [(20_000, True), (2_000, False)])
def test_a_nest_that_can_be_followed_is(most, is_followed):
    """Its last rounds are shorter; where its end is out of reach, most of them are told from one that is not."""
    with following(most):
        proof = of("mpc603e", FEWER, "f", ".c")
    worst = max(attack(proof, argument) for argument in (0, 0xFF))
    assert (proof.bound.instructions == worst) == is_followed
    assert proof.bound.instructions >= worst


def nests(draw: random.Random) -> str:
    """A function of nests with constant counts, whose rounds do what memory, counters and an argument say."""
    forks = ("x >> ({0} & 7) & 1", "o & 1", "{0} == 3", "{0} > 5", "({0} & 3) == 1")
    stores = ("n = {1};", "m = {1};", "*where[x & 1] = {1};", "p = &m;", "p = &n;", "n++;", "o = {0};", "x += {0};")

    def statement(depth: int, counter: str) -> str:
        number, kind = draw.randrange(1, 12), draw.randrange(8 if depth else 10)
        if kind < 3:
            return f"if ({draw.choice(forks).format(counter)}) {{ {statement(depth, counter)} o = {number}; }}"
        if kind < 5:
            return f"LOOP({draw.choice(('n', '*p', 'm', counter))})"
        if kind < 8:
            return draw.choice(stores).format(counter, number)
        body = " ".join(statement(depth + 1, "j") for _ in range(draw.randrange(1, 4)))
        return f"for (u j = 0; j < {number}; j++) {{ {body} }}"

    body = " ".join(statement(0, "i") for _ in range(draw.randrange(2, 5)))
    most = draw.randrange(2, 20)
    return f"{{ u *p = &n; n = 1; m = {draw.randrange(9)}; for (u i = 0; i < {most}; i++) {{ FORK {body} }} }}"


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(8))
def test_runs_of_random_nests_stay_within_what_was_told_from_one_round(target, seed, monkeypatch, told):
    monkeypatch.setattr(abstract_execution, "_STEADY_ROUNDS", 1)
    draw, functions = random.Random(seed), 12
    head = ROUNDS[: ROUNDS.index("void alike")]
    source = head + "".join(f"void f{number}(u x) {nests(draw)}\n" for number in range(functions))
    guest = guest_of(source, load_target(target), ".c")
    for number in range(functions):
        try:
            proof = proved(guest, f"f{number}")
        except AnalysisError:
            continue
        for argument in (0, 0xFF, draw.getrandbits(8), draw.getrandbits(32)):
            attack(proof, argument)
    assert told
