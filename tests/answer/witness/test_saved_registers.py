"""That registers stay where functions saved them: assumed on request, listed if it is needed, refuted by runs.

Tests: answer.witness.contradiction, answer.firmware.firmware, answer.witness.held.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support import assembler, image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

ASSUMED = ("--assume", "saved-registers")
THUMB = {
    "f": "push {r7, lr}\n sub sp, #8\n add r7, sp, #0\n bl g\n adds r7, #8\n mov sp, r7\n pop {r7, pc}",
    "g": "push {r7, lr}\n sub sp, #16\n add r7, sp, #0\n movs r3, #1\n adds r2, r7, r0\n STORE\n"
    "adds r7, #16\n mov sp, r7\n pop {r7, pc}",
}
ARM = {
    "f": "push {r11, lr}\n add r11, sp, #4\n sub sp, sp, #8\n bl g\n sub sp, r11, #4\n pop {r11, pc}",
    "g": "push {r11, lr}\n add r11, sp, #4\n sub sp, sp, #16\n mov r3, #1\n add r2, sp, r0\n STORE\n"
    "sub sp, r11, #4\n pop {r11, pc}",
}
POWERPC = {
    "f": "stwu 1, -24(1)\n mflr 0\n stw 31, 20(1)\n stw 0, 28(1)\n mr 31, 1\n bl g\n mr 1, 31\n lwz 0, 28(1)\n"
    "lwz 31, 20(1)\n addi 1, 1, 24\n mtlr 0\n blr",
    "g": "stwu 1, -24(1)\n mflr 0\n stw 31, 20(1)\n stw 0, 28(1)\n mr 31, 1\n li 6, 1\n add 5, 31, 3\n STORE\n"
    "mr 1, 31\n lwz 0, 28(1)\n lwz 31, 20(1)\n addi 1, 1, 24\n mtlr 0\n blr",
}
STORES = {"cortex-m4": "strb r3, [r2]", "arm926ej-s": "strb r3, [r2]", "mpc603e": "stb 6, 0(5)"}
SHAPES = {"cortex-m4": THUMB, "arm926ej-s": ARM, "mpc603e": POWERPC}
SAVED = {
    "cortex-m4": {*range(16, 24), *range(32, 40)},
    "arm926ej-s": {*range(16, 24), *range(32, 40)},
    "mpc603e": {*range(20, 24), *range(44, 48)},
}
"""Where saved registers are, counted from where ``g`` stores."""
LINKS = {"mpc603e": {*range(28, 32), *range(52, 56)}}
"""Where addresses to return to are in the frames of callers, of which nothing is assumed."""


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    """A function that bounds ``f`` of some functions, and returns the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def ask(bodies: dict[str, str], *words: str, target: str = "cortex-m4") -> tuple[int, str]:
        core = load_target(target)
        Path("a.elf").write_bytes(image_of(assembler(bodies, core), core).elf)
        code = main(["bound", "a.elf", "--entry", "f", "--target", target, "-q", *words])
        told = capsys.readouterr()
        return code, told.out + told.err

    return ask


def shape(target: str, store: str | None = None) -> dict[str, str]:
    return {name: body.replace("STORE", store or STORES[target]) for name, body in SHAPES[target].items()}


@pytest.mark.parametrize("target", SHAPES)
def test_a_store_of_unknown_target_loses_the_caller_unless_that_is_assumed(target, asked):
    code, text = asked(shape(target), target=target)
    assert (code, "--assume saved-registers" in text) == (ExitCode.NO_BOUND, True)
    code, text = asked(shape(target), *ASSUMED, "--json", target=target)
    ids = [one["id"] for one in json.loads(text)["bound"]["assumptions"]]
    assert (code, "saved-registers" in ids) == (ExitCode.OK, True)


@pytest.mark.parametrize("target", SHAPES)
def test_where_it_is_not_needed_it_is_not_listed(target, asked):
    known = "stb 6, 3(31)" if target == "mpc603e" else "strb r3, [sp, #3]"
    plain, assumed = (asked(shape(target, known), *words, "--json", target=target) for words in ((), ASSUMED))
    assert (plain[0], plain) == (ExitCode.OK, assumed)
    assert "saved-registers" not in plain[1]


@pytest.mark.parametrize("target", SHAPES)
def test_a_run_that_stores_where_a_register_is_saved_contradicts_it(target, asked):
    """The index is tried over both frames and behind them: what is saved is refused, and nothing else is."""
    for index in sorted({*range(1, 60, 3)} - LINKS.get(target, set())):
        code, text = asked(shape(target), *ASSUMED, "--run", f"f({index})", target=target)
        if index in SAVED[target]:
            assert (code, "the assumption saved-registers" in text) == (ExitCode.CONTRADICTION, True), (index, text)
            assert "the store at g" in text
        else:
            assert code == ExitCode.OK, (index, text)


def test_what_is_below_the_stack_pointer_is_saved_no_more(asked):
    """``h`` reads a word of its own that no store to a known place wrote: where ``g`` had saved 3 before."""
    bodies = {
        "f": "push {r4, r7, lr}\n sub sp, #12\n mov r7, sp\n movs r4, #3\n bl g\n bl h\n add sp, #12\npop {r4, r7, pc}",
        "g": "push {r4, lr}\n nop\n pop {r4, pc}",
        "h": "sub sp, #8\n mov r2, sp\n str r1, [r2, r0]\n ldr r3, [sp]\n1: subs r3, #1\n bhi 1b\n add sp, #8\n bx lr",
    }
    code, text = asked(bodies, *ASSUMED)
    assert code == ExitCode.NO_BOUND
    assert "h+0x8" in text


def test_a_word_that_was_stored_over_is_not_what_was_saved(asked):
    """A spill to the place of the saved register is read back, and not what was saved: 5 rounds, not 3."""
    bodies = {
        "f": "push {r7, lr}\n mov r7, sp\n movs r4, #3\n bl g\n mov sp, r7\n pop {r7, pc}",
        "g": "push {r4, lr}\n sub sp, #8\n mov r2, sp\n movs r3, #5\n str r3, [sp, #8]\n strb r3, [r2, r0]\n"
        "ldr r3, [sp, #8]\n1: subs r3, #1\n bhi 1b\n add sp, #8\n pop {r4, pc}",
    }
    assert asked(bodies, *ASSUMED)[0] == ExitCode.NO_BOUND


def test_who_moves_the_stack_pointer_by_what_nobody_knows_keeps_nothing(asked):
    bodies = {
        "f": "push {r7, lr}\n mov r7, sp\n bl g\n mov sp, r7\n pop {r7, pc}",
        "g": "push {r7, lr}\n mov r7, sp\n lsls r1, r1, #3\n sub sp, sp, r1\n mov r2, sp\n strb r3, [r2, r0]\n"
        "mov sp, r7\n pop {r7, pc}",
    }
    assert asked(bodies, *ASSUMED)[0] == ExitCode.NO_BOUND


def test_a_later_frame_at_the_same_place_may_be_written(asked):
    """A leaf that saves nothing stores where an earlier callee had saved: no run refutes the assumption by that."""
    leaf = {"h": "sub sp, #16\n mov r2, sp\n strb r3, [r2, r0]\n add sp, #16\n bx lr"}
    body = THUMB["f"].replace("bl g", "mov r4, r0\n bl g\n mov r0, r4\n bl h").replace("{r7, lr}", "{r4, r7, lr}")
    body = body.replace("{r7, pc}", "{r4, r7, pc}").replace("#8", "#12")
    for index in range(0, 16, 3):
        code, text = asked({**shape("cortex-m4"), "f": body, **leaf}, *ASSUMED, "--run", f"f({index})")
        assert code == ExitCode.OK, text


def test_the_store_is_named_and_not_the_loop_that_goes_round_for_it(asked):
    """``g`` gives back another r4 than it was called with, by which ``f`` counts: 2 rounds are proved, 65 run."""
    bodies = {
        "f": "push {r4, r7, lr}\n sub sp, #12\n movs r4, #2\n bl g\n1: subs r4, #1\n bhi 1b\n add sp, #12\n"
        "pop {r4, r7, pc}",
        "g": "push {r4, lr}\n sub sp, #16\n mov r2, sp\n movs r3, #65\n strb r3, [r2, r0]\n add sp, #16\n pop {r4, pc}",
    }
    assert asked(bodies, *ASSUMED, "--run", "f(15)")[0] == ExitCode.OK
    code, text = asked(bodies, *ASSUMED, "--run", "f(16)")
    assert (code, "the store at g" in text, "the assumption saved-registers" in text) == (
        ExitCode.CONTRADICTION,
        True,
        True,
    )


def test_a_store_by_a_pointer_to_where_a_register_is_saved_contradicts_it_too(asked):
    """The place is known, and what is stored is what was there: but no store except the saving one is to go there."""
    bodies = {
        **shape("cortex-m4", "strb r3, [r2]\n add r0, r7, #OFFSET\n bl h"),
        "h": "ldr r1, [r0]\n str r1, [r0]\n bx lr",
    }
    for offset, expected in ((12, ExitCode.OK), (16, ExitCode.CONTRADICTION)):
        known = {name: body.replace("OFFSET", str(offset)) for name, body in bodies.items()}
        code, text = asked(known, *ASSUMED, "--run", "f(0)")
        assert (code, "the store at h" in text) == (expected, expected is ExitCode.CONTRADICTION), text


def test_room_for_locals_that_is_made_by_a_push_saves_nothing(asked):
    """As GCC -Os makes it: ``v`` loads 5 from its own array, which is where r5 of its caller was pushed, 2 there.

    Of what is loaded nothing is known but that it is a byte, so that the loop has 255 rounds.
    """
    bodies = {
        "f": "push {r4, r5, r7, lr}\n movs r5, #2\n bl v\n1: subs r0, #1\n bhi 1b\n pop {r4, r5, r7, pc}",
        "v": "push {r0, r1, r2, r3, r4, r5, r7, lr}\n mov r7, sp\n movs r3, #5\n strb r3, [r7, r0]\n"
        "ldr r0, [r7, #20]\n uxtb r0, r0\n add sp, #24\n pop {r7, pc}",
    }
    code, text = asked(bodies, *ASSUMED)
    assert (code, " 255  proved  r0 <" in text) == (ExitCode.OK, True), text


def test_a_push_that_is_executed_again_right_above_saves_too(asked):
    """``g`` takes back what it pushed and jumps to ``h``, whose push is the next store, one word behind the last."""
    bodies = {
        "f": "push {r4, r7, lr}\n sub sp, #12\n movs r4, #3\n bl g\n1: subs r4, #1\n bhi 1b\n add sp, #12\n"
        "pop {r4, r7, pc}",
        "g": "push {r4, r5, r6, lr}\n mov r5, r0\n movs r0, #64\n bl h\n mov r0, r5\n pop {r4, r5, r6, lr}\n b h",
        "h": "push {r4, r5, r6, lr}\n sub sp, #16\n movs r3, #65\n cmp r0, #64\n beq 1f\n mov r2, sp\n"
        "strb r3, [r2, r0]\n1: add sp, #16\n pop {r4, r5, r6, pc}",
    }
    assert asked(bodies, *ASSUMED, "--run", "f(12)")[0] == ExitCode.OK
    code, text = asked(bodies, *ASSUMED, "--run", "f(16)")
    assert (code, "the store at h" in text) == (ExitCode.CONTRADICTION, True), text


def test_a_register_that_is_saved_across_words_is_not_known_to_stay(asked):
    """Runs hold stores against whole words."""
    body = (
        "addi 1, 1, -OFFSET\n stw 31, 0(1)\n li 6, 1\n add 5, 1, 3\n stb 6, 0(5)\n lwz 31, 0(1)\n"
        "addi 1, 1, OFFSET\n blr"
    )
    for offset, expected in ((24, ExitCode.OK), (22, ExitCode.NO_BOUND)):
        bodies = {**shape("mpc603e"), "g": body.replace("OFFSET", str(offset))}
        assert asked(bodies, *ASSUMED, target="mpc603e")[0] == expected


def test_where_a_bound_is_by_type_anyhow_it_is_not_listed(asked):
    bodies = {"f": "push {r4, lr}\n1: subs r0, #1\n bhi 1b\n pop {r4, pc}"}
    plain, assumed = (asked(bodies, *words, "--json") for words in ((), ASSUMED))
    assert plain == assumed


def random_program(draw: random.Random) -> dict[str, str]:
    """Calls three deep, with arrays in the frames that are stored to by an index which is masked too late to tell.

    The frames have up to three saved registers besides the frame pointer, spills and loops that count in them.
    """
    bodies = {}
    for depth, name in enumerate("fgh"):
        saved = sorted(draw.sample(["r4", "r5", "r6"], draw.randint(0, 3)))
        padding = "r8, " if (len(saved) + 2) % 2 else ""
        kept, locals_ = ", ".join([*saved, "r7"]), 8 * draw.randint(2, 5)
        parts = [f"push {{{kept}, {padding}lr}}", f"sub sp, #{locals_}", "add r7, sp, #0", "str r0, [r7]"]
        parts += [f"movs {one}, #{draw.randint(1, 9)}" for one in saved]
        for _ in range(draw.randint(1, 2)):
            parts += ["ldr r0, [r7]", f"adds r2, r0, #{draw.randint(4, 7)}", "adds r2, r7", "strb r0, [r2]"]
            if name != "h":
                parts += ["ldr r0, [r7]", f"bl {'fgh'[depth + 1]}"]
        if saved and draw.random() < 0.7:
            parts += [f"1: subs {saved[0]}, #1", "bhi 1b"]
        parts += [f"adds r7, #{locals_}", "mov sp, r7", f"pop {{{kept}, {padding}pc}}"]
        bodies[name] = "\n ".join(parts)
    return bodies


@pytest.mark.parametrize("seed", range(4))
def test_no_run_that_keeps_the_assumption_is_above_the_bound(seed, asked):
    """Small indices stay in the arrays of the frames; each run is held against bound, accesses and registers."""
    bodies = random_program(random.Random(seed))
    code, text = asked(bodies, *ASSUMED, "--run", "f(0); f(1); f(3); f(8)")
    assert code == ExitCode.OK, text
    assert "saved-registers" in text
