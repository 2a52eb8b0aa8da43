"""Loops by a number that is divided or shrinks otherwise, held against runs; and those by numbers that do not."""

import pytest

from tests.analyzer.loops.one_loop import hold, proof_of
from wcet_probe.analyzer.loops import dwindling
from wcet_probe.errors import AnalysisError

THUMB, ARM, POWERPC = "cortex-m4", "arm926ej-s", "mpc603e"
TENTH = "movw r1, #0xcccd\nmovt r1, #0xcccc"
SIGNED_TENTH = "movw r1, #0x6667\nmovt r1, #0x6666"
WORD = (0, 1, 9, 10, 99, 4_294_967_295, 1_000_000_000, 999_999_999)
SIGNED = (0, 9, -9, -10, 2_147_483_647, -2_147_483_648, 1_000_000_000, -1_000_000_000)

BOUNDED = {
    "decimal digits": (THUMB, f"{TENTH}\n1: umull r2, r3, r1, r0\nlsrs r0, r3, #3\nbne 1b\nbx lr", 10, WORD),
    "until one digit is left": (
        THUMB,
        f"{TENTH}\n1: umull r2, r3, r1, r0\nlsr r3, r3, #3\ncmp r0, #9\nmov r0, r3\nbhi 1b\nbx lr",
        10,
        WORD,
    ),
    "of a signed number": (
        THUMB,
        f"{SIGNED_TENTH}\n1: smull r2, r3, r1, r0\nasr r0, r0, #31\nrsbs r0, r0, r3, asr #2\nbne 1b\nbx lr",
        10,
        SIGNED,
    ),
    "tested in front": (
        THUMB,
        f"{TENTH}\n1: cbz r0, 2f\numull r2, r3, r1, r0\nlsr r0, r3, #3\nb 1b\n2: bx lr",
        11,
        WORD,
    ),
    "a quarter less each time": (
        THUMB,
        "ubfx r0, r0, #0, #16\n1: add r0, r0, r0, lsl #1\nlsr r0, r0, #2\ncmp r0, #3\nbhi 1b\nbx lr",
        34,
        (0, 3, 4, 65535, 50000),
    ),
    "less by the next odd number each time": (
        THUMB,
        "ubfx r0, r0, #0, #15\nmovs r1, #1\n1: subs r0, r0, r1\nadd r1, #2\nbpl 1b\nbx lr",
        182,
        (0, 1, 255, 256, 32_767),
    ),
    "ARM": (
        ARM,
        "ldr r1, =0xcccccccd\n1: umull r2, r3, r1, r0\nmovs r0, r3, lsr #3\nbne 1b\nbx lr\n.ltorg",
        10,
        WORD,
    ),
    "PowerPC": (
        POWERPC,
        "lis 4, 0xcccc\nori 4, 4, 0xcccd\n1: mulhwu 3, 3, 4\nsrwi. 3, 3, 3\nbne 1b\nblr",
        10,
        WORD,
    ),
    "by its divisor": (THUMB, "movs r1, #7\n1: udiv r0, r0, r1\ncmp r0, #0\nbne 1b\nbx lr", 12, (0, 6, 7, 2**32 - 1)),
    "two numbers, of which one is divided by the other": (
        THUMB,
        "and r1, r1, #7\nadds r1, #3\n1: udiv r0, r0, r1\ncmp r0, r1\nbhs 1b\nbx lr",
        20,
        (0, 6, 7, 2**32 - 1),
    ),
}

REFUSED = {
    "grows": "1: add r0, r0, r0, lsr #1\ncmp r0, #3\nbhi 1b\nbx lr",
    "ends at a number that is jumped over": f"{TENTH}\n1: umull r2, r3, r1, r0\nlsr r0, r3, #3\n"
    "cmp r0, #5\nbne 1b\nbx lr",
    "is loaded anew": f"{TENTH}\n1: umull r2, r3, r1, r0\nlsr r0, r3, #3\nldr r0, [r0]\ncmp r0, #0\nbne 1b\nbx lr",
    "is divided by what is not known": "1: udiv r0, r0, r1\ncmp r0, #0\nbne 1b\nbx lr",
    "is put back on one way": f"{TENTH}\n1: umull r2, r3, r1, r0\nlsr r0, r3, #3\ncmp r0, #4\nit eq\nmoveq r0, #44\n"
    "cmp r0, #0\nbne 1b\nbx lr",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_range_of_a_number_is_followed_until_the_loop_ends(name):
    core, text, most, numbers = BOUNDED[name]
    loop = hold(core, text, most, [(number & 0xFFFFFFFF, 3) for number in numbers])
    assert loop.expression == "ranges of numbers, followed"


@pytest.mark.parametrize("name", REFUSED)
def test_what_need_not_become_less_bounds_nothing(name):
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proof_of(THUMB, REFUSED[name])


def test_a_loop_whose_numbers_stay_as_many_is_given_up_early(monkeypatch):
    rounds = []
    following = dwindling._next
    monkeypatch.setattr(dwindling, "_next", lambda *given: rounds.append(given) or following(*given))
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proof_of(THUMB, "movs r1, #0\n1: adds r1, #1\nlsr r2, r0, r1\ncmp r2, r3\nbne 1b\nbx lr")
    assert dwindling._LOOK_BACK <= len(rounds) < dwindling._MOST_ROUNDS, "of all times that it is asked together"


@pytest.mark.parametrize(
    ("before", "between", "now", "left", "ends"),
    [
        (1 << 32, 3 << 30, 1 << 31, 224, True),
        (1 << 32, (1 << 32) - 16, (1 << 32) - 32, 224, False),
        (1 << 32, (1 << 32) - 16, (1 << 32) - 33, 224, True),
        (300, 284, 268, 160, True),
        (2_000, 1_984, 1_968, 224, False),
        (1 << 62, 1 << 62, 1 << 62, 224, False),
        (1 << 61, 1 << 62, (1 << 62) - 1, 224, True),
        (1 << 61, 1 << 62, 1 << 62, 224, False),
    ],
)
def test_numbers_may_be_few_in_time_if_they_halve_or_go_as_fast_as_before_or_ever_faster(
    before, between, now, left, ends
):
    assert dwindling._may_end(before, between, now, left) is ends
