"""Stores behind what a register held at entry: by a callee analysed by itself, and in the frame of its caller."""

import random

import pytest

from tests.analyzer.loops.one_loop import refuse_or_bound_by_width
from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph import supergraph
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.states.argument_pointers import Pointed, is_above, least_on_stack, pointed_by
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, EmulationError

REGISTER, OTHER = Location("register", 32, 4), Location("register", 36, 4)


def entry():
    """A state in which two registers hold any addresses of the caller."""
    terms = Terms()
    state = State(terms, big_endian=False)
    given = [terms.symbol(("in", one), 32) for one in (REGISTER, OTHER)]
    for one in given:
        state.set_base(one, Base.ANY)
    return terms, state, given


def test_an_address_behind_a_register_s_value_is_told_with_its_distance():
    terms, state, (first, second) = entry()
    index = state.define((1, 0, 0), 32, strided.between(32, 0, 12, 4))
    behind = terms.apply("INT_ADD", (terms.apply("INT_ADD", (first, index), 32), terms.constant(-4, 32)), 32)
    assert pointed_by(state, first) == Pointed(REGISTER, 0, 0)
    assert pointed_by(state, behind) == Pointed(REGISTER, -4, 8)
    unknown = state.define((2, 0, 0), 32)
    double = terms.apply("INT_MULT", (first, terms.constant(2, 32)), 32)
    for other in (unknown, double, terms.apply("INT_ADD", (first, second), 32), terms.constant(8, 32)):
        assert pointed_by(state, other) is None
    assert pointed_by(state, terms.apply("INT_ADD", (first, unknown), 32)) is None
    loaded = state.define((3, 0, 0), 32, base=Base.ANY)
    assert pointed_by(state, loaded) is None


def test_what_lies_above_the_stack_pointer_is_told_by_its_offset_or_by_the_caller():
    terms, state, (first, _) = entry()
    pointer = terms.symbol(("stack pointer",), 32)
    state.set_base(pointer, Base.STACK)
    state.set_known(pointer, strided.constant(32, 0))

    def at(base, offset):
        return terms.apply("INT_ADD", (base, terms.constant(offset, 32)), 32)

    none, above = frozenset(), frozenset({REGISTER})
    assert is_above(state, at(pointer, -8), -8, none)
    assert not is_above(state, at(pointer, -9), -8, none)
    assert not is_above(state, at(pointer, -8), None, none)
    assert is_above(state, at(first, 4), -8, above)
    assert not is_above(state, at(first, 4), 8, above)
    assert not is_above(state, at(first, -4), -8, above)
    assert not is_above(state, at(first, 4), -8, none)
    assert [least_on_stack(Pointed(REGISTER, low, 9), above) for low in (4, -4)] == [4, -(1 << 31)]


CORES = {"cortex-m4": ("r0", "r4", "r5"), "arm926ej-s": ("r0", "r4", "r5")}
SLOTS = 8


def frames(draw):
    """A caller that counts loops by its slots and a kept register, and callees that store behind what they get.

    What is not known gives a loop 64 rounds.
    """
    value = lambda: draw.randrange(1, 40)  # noqa: E731
    given, moved = 4 * draw.choice((draw.randrange(-4, 0), draw.randrange(SLOTS))), 4 * draw.randrange(-2, 3)
    g = [f"push {{r4, r5, {draw.choice(('r6, lr', 'r6, r7, r8, lr'))}}}"]
    saved = g[0][5:-4]
    for _ in range(draw.randrange(1, 4)):
        g += [f"mov r4, #{value()}", f"str r4, [r0, #{4 * draw.randrange(-3, 4)}]"]
    if draw.random() < 0.5:
        g += [f"add r0, r0, #{moved}" if moved >= 0 else f"sub r0, r0, #{-moved}", "bl h"]
    f = ["push {r4, r5, r6, r7, r8, lr}", f"sub sp, sp, #{4 * SLOTS}", "mov r4, #1"]
    for slot in range(SLOTS):
        f += [f"mov r5, #{value()}", f"str r5, [sp, #{4 * slot}]"]
    f += [f"add r0, sp, #{given}" if given >= 0 else f"sub r0, sp, #{-given}", "bl g"]
    for number, slot in enumerate((draw.randrange(SLOTS), None)):
        f += ["mov r5, r4" if slot is None else f"ldr r5, [sp, #{4 * slot}]", "and r5, r5, #63"]
        f += ["add r5, r5, #1", f"{number + 1}: subs r5, r5, #1"]
        f += [f"bne {number + 1}b"]
    f += [f"add sp, sp, #{4 * SLOTS}", "pop {r4, r5, r6, r7, r8, pc}"]
    h = ["push {r5, lr}", f"mov r5, #{value()}", f"str r5, [r0, #{4 * draw.randrange(-3, 4)}]", "pop {r5, pc}"]
    return {"f": f, "g": [*g, f"pop {saved}pc}}"], "h": h}


def bounded(guest):
    request = (guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    return prove(BoundRequest(*request, summaries=True))


@pytest.fixture(name="summarised")
def _all_summarised(monkeypatch):
    def of(guest):
        f, g, h = (require_symbol(guest.image, name).address for name in "fgh")
        called = {f: {g, h}, g: {h}, h: set()}
        monkeypatch.setattr(
            supergraph, "to_summarise", lambda *asked: frozenset(called[asked[1]] - {*asked[2], *asked[4]})
        )

    return of


@pytest.mark.covering(0)
@pytest.mark.parametrize("programs", [10, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", CORES)
def test_no_run_takes_longer_than_what_is_known_of_slots_behind_calls(target, programs, summarised):
    draw, runs, proved = random.Random(f"frames {target}"), 0, 0
    for _ in range(programs):
        bodies = {name: "\n ".join(lines) for name, lines in frames(draw).items()}
        guest = guest_of(assembler(bodies, load_target(target)), load_target(target))
        summarised(guest)
        try:
            with guest.machine() as machine:
                observed = machine.count("f", ())
        except EmulationError:
            continue  # a return address was overwritten
        runs += 1
        try:
            most = bounded(guest).instructions
        except AnalysisError:
            continue
        proved += 1
        assert observed <= most, bodies
    assert runs >= programs // 2
    assert proved >= runs // 2


def test_a_word_that_a_callee_of_a_callee_changes_is_lost_and_its_neighbour_is_not(summarised):
    count = "ldr r5, [sp, #{}]\n1: subs r5, #1\n bne 1b\n"
    bodies = {
        "f": "push {{r4, r5, r6, lr}}\n sub sp, #16\n movs r4, #3\n str r4, [sp, #4]\n str r4, [sp, #8]\n"
        " add r0, sp, #4\n bl g\n {} add sp, #16\n pop {{r4, r5, r6, pc}}",
        "g": "push {r3, lr}\n bl h\n pop {r3, pc}",
        "h": "movs r1, #90\n str r1, [r0, #4]\n bx lr",
    }
    target = load_target("cortex-m4")
    for slot, is_kept in ((4, True), (8, False)):
        guest = guest_of(assembler({**bodies, "f": bodies["f"].format(count.format(slot))}, target), target)
        summarised(guest)
        with guest.machine() as machine:
            observed = machine.count("f", ())
        if is_kept:
            proved = bounded(guest)
            assert proved.summarised == ("g", "h")
            assert proved.instructions == observed
        else:
            refuse_or_bound_by_width(lambda guest=guest: bounded(guest), "f+0x")
