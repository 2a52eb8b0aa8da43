"""Values through stack slots, calls and gamma nodes: each executed edge is in it, and each register in its range."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.path_check import attack, proved
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.graph.supergraph import EXIT, build_supergraph
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.execution.lost_flow import LostFlowError
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

HEAPLESS = """typedef unsigned u; u g[16];
static __attribute__((noinline)) u pick(u *p, u n) { u s = 0; for (u i = 0; i < n; i++) s += p[i]; return s; }
u spilled(u n) { u a[8]; for (u i = 0; i < 8; i++) a[i] = i * n; return pick(a, n & 7) + pick(g, 16); }
u chosen(u n) { u k = n > 5 ? 3 : n; u j = n & 1 ? k : 2; for (u i = 0; i < k + j; i++) g[i] = n; return k; }
u saved(u n, u m) { u r = pick(g, m & 3); if (n < 4) { g[n] = r; r = pick(g, n); } return r + n + m; }
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_stack_calls_and_choices(target):
    guest, draw = guest_of(HEAPLESS, load_target(target), ".c"), random.Random(2)
    for name in ("spilled", "chosen", "saved"):
        proof = proved(guest, name)
        assert any(edge.target == EXIT for edge in proof.values.edges)
        for _ in range(20):
            attack(proof, draw.choice((draw.randrange(9), draw.getrandbits(32))), draw.getrandbits(32))


@pytest.mark.parametrize("way", ["jump", "fall", "call", "return"])
def test_a_way_without_an_edge_is_an_error_and_is_named(way):
    """Whatever left the edge out: an execution that takes it would be missing in the bound."""
    target = load_target("cortex-m4")
    body = {"f": "cmp r0, #3\n beq 1f\n push {r4, lr}\n bl g\n pop {r4, lr}\n1: bx lr", "g": "adds r0, #1\n bx lr"}
    image = guest_of(assembler(body, target), target).image
    lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
    graph = build_supergraph(image, lifter, image.symbols["f"], {}, {})
    assert analyze_values(image, lifter, graph, {}).states
    lost = next(edge for edge in graph.edges if edge.way == way)
    smaller = replace(graph, edges=tuple(edge for edge in graph.edges if edge != lost))
    with pytest.raises(LostFlowError, match=f"by a {way}.*for which the graph has no edge"):
        analyze_values(image, lifter, smaller, {})


def test_the_check_executes_each_block_anew(monkeypatch):
    """Whatever the iteration makes of a block: the check of what it came to does not take its word."""
    target, executed = load_target("cortex-m4"), []
    body = {"f": "cmp r0, #3\n beq 1f\n str r0, [r1]\n1: bl g\n bl g\n bx lr", "g": "ldr r0, [r1]\n bx lr"}
    image = guest_of(assembler(body, target), target).image
    lifter = Lifter(target.pcode_language, target.isa, code_reader(image.segments))
    graph, block = build_supergraph(image, lifter, image.symbols["f"], {}, {}), Transfer.block

    def counted(self, place, *rest):
        executed.append(place)
        return block(self, place, *rest)

    monkeypatch.setattr(Transfer, "block", counted)
    values = analyze_values(image, lifter, graph, {})
    assert sorted(executed) == sorted([*values.states, *values.states])
    assert sorted(executed[-len(values.states) :]) == sorted(values.states)
    assert sum(map(len, values.accesses.values())) == 3


TRAMPOLINES = {
    "cortex-m4": "push {r4, lr}\nsub sp, #16\nadd r3, sp, #4\norr r3, r3, #1\nblx r3\nadd sp, #16\npop {r4, pc}",
    "arm926ej-s": "push {r4, lr}\nsub sp, #16\nadd r3, sp, #4\nstr r3, [sp]\nldr r3, [sp]\nblx r3\nadd sp, #16\n"
    "pop {r4, pc}",
    "mpc603e": (
        "stwu 1, -32(1)\nmflr 0\nstw 0, 36(1)\naddi 9, 1, 8\nmtctr 9\nbctrl\nlwz 0, 36(1)\nmtlr 0\naddi 1, 1, 32\nblr"
    ),
}


@pytest.mark.parametrize("target", TRAMPOLINES)
def test_code_on_the_stack_is_refused_whatever_a_fact_says_of_the_targets(target):
    """The trampoline of a nested function: what it takes was in no bound where a fact named the function behind it."""
    core = load_target(target)
    called = {"cortex-m4": 0xA, "arm926ej-s": 0x14, "mpc603e": 0x14}[target]
    end = "blr" if target == "mpc603e" else "bx lr"
    guest = guest_of(assembler({"f": TRAMPOLINES[target], "inner": end}, core), core)
    text = f'[[calls]]\nfunction = "f"\noffset = {called:#x}\ntargets = ["inner"]\nbecause = "the only one"\n'
    told = parse_facts(Path("facts.toml"), f'{text}sha256 = "{code_sha256(guest.image, "f")}"\n')
    with pytest.raises(
        AnalysisError, match=r"the branch or call at f\+0x\w+ .*goes to the stack: .* a nested function"
    ):
        proved(guest, "f", told)


OVER_WORDS = {
    "cortex-m4": (
        (
            "push {{r4, lr}}\nsub sp, #8\nmovs r3, #10\n{before}\nldr r2, [sp, #16]\n1: str r3, [sp, #4]\n"
            "str r1, [r2], #4\nldr r3, [sp, #4]\nsubs r3, #1\nbne 1b\nadd sp, #8\npop {{r4, pc}}"
        ),
        "and r4, r0, #4\nadd r4, sp, r4\nmov r2, sp\nstr r2, [r4, #12]",
        "add r4, sp, #4\nstr r4, [sp, #16]",
    ),
    "mpc603e": (
        (
            "stwu 1, -32(1)\nli 6, 10\n{before}\nlwz 5, 40(1)\n1: stw 6, 12(1)\nstw 4, 0(5)\naddi 5, 5, 4\n"
            "lwz 6, 12(1)\naddic. 6, 6, -1\nbne 1b\naddi 1, 1, 32\nblr"
        ),
        "rlwinm 7, 3, 0, 29, 29\nadd 7, 1, 7\nstw 1, 36(7)",
        "addi 7, 1, 12\nstw 7, 40(1)",
    ),
}


@pytest.mark.parametrize("core", OVER_WORDS)
def test_what_a_pointer_given_on_the_stack_leads_to_is_no_frame_of_the_call(core):
    text, _, _ = OVER_WORDS[core]
    guest = guest_of(assembler({"f": text.format(before="")}, load_target(core)), load_target(core))
    proof = proved(guest, "f")
    assert [loop.max for loop in proof.bound.loops] == [10]
    assert "stack-separation" in {one.id for one in proof.bound.assumptions}


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("core", OVER_WORDS)
def test_a_word_above_the_stack_pointer_that_may_have_been_written_leads_anywhere(core, number):
    """Of a stack address that is stored there, perhaps or surely, a store through it changes the frame."""
    text, *before = OVER_WORDS[core]
    guest = guest_of(assembler({"f": text.format(before=before[number - 1])}, load_target(core)), load_target(core))
    with pytest.raises(AnalysisError, match=r"no bound for the loop|not known to be one of its function"):
        proved(guest, "f")
