"""What is said of registers and words in a certificate is what the checker finds again, with nothing else in hand."""

import json
import re

import pytest

from tests.analyzer.ipet.hand_made import BEGIN
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of, image_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.ipet.checkable import _NO_LIMITS, _outwards, _Search
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.coverage import Code, run_block
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import WORD, Value, join, number, within
from wcet_probe.certificate.values.state import State
from wcet_probe.cli import main

COMPARED = """\
typedef unsigned u; u pos, size, out; u *keep;
__attribute__((noinline)) u take(u n) {
    u at = pos;
    if (at < n) { out = n; pos = at + 1; return 1; }
    pos = at - n;
    return 0;
}
u entry(u n) { u a[4]; keep = a; a[0] = n; return take(n) + take(a[0] + 1) + take(size); }
"""
LEAST, MOST = 3171870631, 2139095040


def test_nothing_is_learned_of_a_word_of_which_nothing_is_said(tmp_path, monkeypatch, capsys):
    """Of a word that may hold anything no record is written, and a comparison tells the checker nothing of it."""
    printed = []
    monkeypatch.setattr("wcet_probe.cli.streams.print_json", printed.append)
    elf = tmp_path / "compared.elf"
    elf.write_bytes(image_of(COMPARED, load_target("cortex-m4"), ".c").elf)
    assert main(["bound", str(elf), "--entry", "entry", "--target", "cortex-m4", "--json", "-q"]) == 0
    (tmp_path / "bound.json").write_text(json.dumps(printed[0]))
    assert main(["verify", str(tmp_path / "bound.json"), "--image", str(elf)]) == 0, capsys.readouterr().err


STORED_LATER = {
    "f": (
        "sub sp, #16\n ldr r1, [sp, #12]\n cbz r0, 1f\n nop\n1: ldr r2, [sp, #4]\n cbz r0, 2f\n nop\n"
        "2: str r2, [sp, #12]\n mov r3, sp\n str r3, [sp, #4]\n cbz r0, 3f\n nop\n3: add sp, #16\n bx lr"
    ),
}


def test_words_that_turn_out_to_hold_addresses_one_behind_the_other_are_searched_anew():
    """The search ended with an error of the program: what it was told of the same state had changed twice."""
    target = load_target("cortex-m4")
    document, binary = document_of(guest_of(assembler(STORED_LATER, target), target))
    assert {one.verdict for one in check_bound(document, binary).findings} == {"ok"}


BY_FRAME_POINTER = {
    "f": "push {r7, lr}\n mov r7, sp\n bl g\n mov sp, r7\n pop {r7, pc}",
    "g": (
        "push {r7}\n ands r0, r0, #7\n mov r7, sp\n beq 2f\n ldr r3, =0x20000000\n adds r1, r0, r3\n movs r0, #0\n"
        "1: ldrb r2, [r3], #1\n cmp r3, r1\n add r0, r2\n bne 1b\n2: mov sp, r7\n pop {r7}\n bx lr"
    ),
}


def test_loads_beside_a_stored_frame_pointer_are_said_to_miss_the_stack_as_the_bound_assumes():
    """The analysis knows where `ldrb` reads, and the search does not: its certificates were refused."""
    target = load_target("cortex-m4")
    document, binary = document_of(guest_of(assembler(BY_FRAME_POINTER, target), target))
    assert "stack-separation" in {one["id"] for one in document["bound"]["assumptions"]}
    assert "graph" in {
        one.check for one in check_bound(document, binary).findings if one.verdict in {"ok", "not checked"}
    }


def test_parts_may_lie_in_what_their_join_does_not_lie_in():
    """Of two ranges of words a join takes one that is around both: where more was known before, another one."""
    high, low = Value("number", LEAST, LEAST, 0), Value("number", 0, MOST, 1)
    said = Value("number", LEAST - (1 << 32), MOST, 1)
    assert [within(one, said) for one in (high, low, join(high, low))] == [True, True, False]
    graph = Graph("f", {"a": (0, 1), "b": (4, 1)}, "a", (), {}, {"a": [], "b": []}, {})
    image = image_of("int entry(void) { return 0; }", load_target("cortex-m4"), ".c")
    search = _Search(Code(image, {}), graph, Machine(image))
    search._order = ["a", "b"]
    search._out = lambda node, _: [("b", State({"r0": one})) for one in (high, low) if node == "a"]
    states = {"a": {}, "b": {"r0": said}}
    assert search._flow(states, State({}))[1]
    assert not search._flow({"a": {}, "b": {"r0": low}}, State({}))[1]


LIMITS = [0, 10, 20, WORD - 1], [-20, -1, 0, 10]
SIGNED = -WORD // 2, WORD // 2 - 1


@pytest.mark.parametrize(
    ("before", "grown", "limits", "widened"),
    [
        ((12, 15), (12, 16), LIMITS, (12, 20)),
        ((12, 15), (12, 20), LIMITS, (12, 20)),
        ((12, 15), (12, 21), LIMITS, (12, WORD - 1)),
        ((12, 15), (11, 15), LIMITS, (10, 15)),
        ((12, 15), (10, 15), LIMITS, (10, 15)),
        ((12, 15), (9, 15), LIMITS, (0, 15)),
        ((-3, 3), (-5, 4), LIMITS, (-20, 10)),
        ((-3, 3), (-21, 3), LIMITS, (SIGNED[0], 3)),
        ((-3, 3), (-3, 11), LIMITS, (-3, SIGNED[1])),
        ((12, 15), (11, 16), _NO_LIMITS, (0, WORD - 1)),
        ((-3, 3), (-3, 4), _NO_LIMITS, (-3, SIGNED[1])),
        ((1, 3), (-1, 3), LIMITS, (-1, 3)),
        ((1, 3), (-1, 3), _NO_LIMITS, (0, WORD - 1)),
    ],
)
def test_a_range_that_grows_goes_to_the_next_limit_on_the_sides_that_it_grows_to(before, grown, limits, widened):
    assert _outwards(number(*before), number(*grown), limits) == number(*widened)


ROUND = """
    movs r0, #0
{number}:
    ldr r2, [r3, r0]
    adds r0, #4
    adds r4, #1
    cmp r0, #{end}
    bne {number}b
"""
"""A loop that is left by equality: only the constant in its code tells where one counter stops, and none the other."""


def _loops(count: int, monkeypatch) -> tuple[int, set[str]]:
    """How many blocks the search executes for loops in a row, and what it says of their counter, of numbers."""
    executed = []
    monkeypatch.setattr(
        "wcet_probe.analyzer.ipet.checkable.run_block", lambda *given: executed.append(given) or run_block(*given)
    )
    monkeypatch.setattr("wcet_probe.analyzer.ipet.checkable._ROUNDS_WITH_ALL_THRESHOLDS", 0)
    loops = "".join(ROUND.format(number=1 + number, end=40 + 20 * number) for number in range(count))
    target = load_target("cortex-m4")
    code = f"{BEGIN}    ldr r3, =0x20000000{loops}    bx lr\n    .size f, . - f\n    .pool\n"
    program = guest_of(code, target)
    bound = prove(BoundRequest(program.image, target, program.instructions, program.costs, "f", Facts(), {}, {}))
    said = {
        line.split(" ", 3)[3] for line in bound.certify()[0].splitlines() if re.match("invariant .* r0 number", line)
    }
    return len(executed), said


def test_the_search_grows_with_the_program(monkeypatch):
    """A value that nothing limits does not go from constant to constant of other loops; a counter stops at its own."""
    (some, said), (twice, _) = _loops(20, monkeypatch), _loops(40, monkeypatch)
    assert twice <= 2.2 * some
    assert {f"number 0 4 {(36 + 20 * number) // 4}" for number in range(20)} <= said
