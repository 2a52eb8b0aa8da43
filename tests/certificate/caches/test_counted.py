"""Limits of misses by counting, and what facts about pointers speak of: true ones hold, forged ones do not."""

import re
from dataclasses import replace
from functools import cache
from unittest import mock

import pytest

from tests.certificate.forgeries import solved_again
from tests.certificate.specimens import specimen
from tests.support import guest_of, images_dir
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, cover
from wcet_probe.certificate.kernel.records import Edge, Graph
from wcet_probe.certificate.names.names import Names, PointerFact, Pointers
from wcet_probe.certificate.names.symbols import Tracer
from wcet_probe.certificate.values.congruences import Congruence, shifted
from wcet_probe.certificate.values.numbers import TOP, number
from wcet_probe.evidence.checking import allocator_binary

COUNTED = ("first-fit", "mpc603e", "malloc")
STRIDED = ("buddy-binary", "arm926ej-s", "malloc")
LONG_STEPS = ("quick-fit", "mpc603e", "malloc")
"""A page is cut into fragments of one size, which may be longer than a line: a fact counts the lines."""
HEAP_BYTES = 5000


@pytest.mark.parametrize(
    "one",
    [COUNTED, STRIDED, LONG_STEPS, ("djgpp-sbrk", "mpc603e", "malloc"), ("first-fit", "arm926ej-s", "free")],
    ids=" ".join,
)
def test_the_bound_is_checked_in_full(one):
    document, binary = specimen(*one)
    assert [found for found in check_bound(document, binary).findings if found.verdict != "ok"] == []


def limits(document, binary):
    found = {one.check: one for one in check_bound(document, binary).findings}
    return found["limits of misses in cycles"]


def constraint_changed(name, change):
    """What changes one constraint of a flow problem."""

    def changed(problem, derivations, followed):
        constraints = tuple(change(one) if one.name == name else one for one in problem.constraints)
        return replace(problem, constraints=constraints), derivations, followed

    return changed


def factors(change):
    return lambda one: replace(
        one, coefficients={edge: change(edge, factor) for edge, factor in one.coefficients.items()}
    )


FORGERIES = {
    "a line fewer than the fact counts": (
        COUNTED,
        "miss:objects:0:most",
        lambda one: replace(one, constant=one.constant - 1),
    ),
    "two misses for a line that is counted": (
        COUNTED,
        "miss:objects:0:most",
        factors(lambda _, factor: 2 * factor),
    ),
    "a byte less for the entry of a traversal": (
        STRIDED,
        "miss:traversal0",
        factors(lambda _, factor: factor + 1 if factor < -32 else factor),
    ),
    "a byte less for a round": (
        STRIDED,
        "miss:traversal0",
        factors(lambda _, factor: factor + 1 if factor == -4 else factor),
    ),
    "a byte more of a line": (
        STRIDED,
        "miss:traversal1",
        factors(lambda _, factor: factor + 1 if factor > 0 else factor),
    ),
    "a line fewer for an entry than the fact counts": (
        LONG_STEPS,
        "miss:traversal2:lines",
        factors(lambda _, factor: factor + 1 if factor < 0 else factor),
    ),
}


@pytest.mark.parametrize(("one", "name", "change"), FORGERIES.values(), ids=FORGERIES)
def test_a_limit_that_is_too_low_is_not_shown(one, name, change):
    document, binary = specimen(*one)
    forged = solved_again(document, constraint_changed(name, change))
    assert forged["bound"]["cycles"] < document["bound"]["cycles"]
    found = limits(forged, binary)
    assert found.verdict == "not checked"
    assert name in found.found


def test_misses_of_another_access_are_no_lines_of_the_traversal():
    """The second loop stores to the block that it cuts off: its misses are counted by the traversal's event."""
    document, binary = specimen("buddy-binary", "cortex-m7", "malloc")
    assert "miss:traversal1" not in limits(document, binary).found
    victim = next(
        line for line in document["bound"]["certificates"][1].split("\n") if re.match("miss .* miss:5.0$", line)
    )
    own = next(
        word for word in document["bound"]["certificates"][1].split() if re.fullmatch(r"miss:\d+\S*:traversal1", word)
    )

    def change(problem, derivations, followed):
        moved = victim.replace("miss:5.0", own)
        return problem, derivations, [moved if line == victim else line for line in followed]

    assert "miss:traversal1" in limits(solved_again(document, change), binary).found


@pytest.mark.parametrize(
    "change",
    [
        factors(lambda _, factor: 2 * factor if factor > 0 else factor),
        lambda one: replace(one, constant=131, coefficients=dict(list(one.coefficients.items())[-1:])),
    ],
    ids=["two misses for a line", "the lines of one entry for all"],
)
def test_each_entry_pays_for_the_lines_of_long_steps(change):
    document, binary = specimen(*LONG_STEPS)
    forged = solved_again(document, constraint_changed("miss:traversal2:lines", change))
    with mock.patch("wcet_probe.certificate.check.check_shown", return_value=""):  # another path is the dearest
        assert "traversal2:lines" in limits(forged, binary).found


@pytest.mark.parametrize(
    "steps",
    ["0 16 268435455", "16 16 4097", "4294967280 16 129"],
    ids=["any multiple", "a line could be met again", "forth and back"],
)
def test_steps_that_are_not_known_to_be_short_or_of_one_direction_leave_lines_more_than_once(steps):
    """The size of a fragment is said to be in a range that is wider than it is, in the loop and behind it."""
    document, binary = specimen(*LONG_STEPS)
    own = re.compile(r"invariant (0x100140/take_fragment.0x1[57]|quick_fit_malloc.0x(54|114)').* r7 number 16 16 127$")

    def change(problem, derivations, followed):
        wider = [re.sub("16 16 127$", steps, line) if own.match(line) else line for line in followed]
        assert wider != followed or problem.unit == "cycles"
        return problem, derivations, wider

    found = limits(solved_again(document, change), binary)
    assert found.verdict == "not checked"
    assert "traversal2:lines" in found.found


def test_a_step_that_begins_anew_in_each_round_may_be_another_one():
    """The size of a fragment is said to have a name of its own in each round, in the loop and behind it."""
    document, binary = specimen(*LONG_STEPS)
    header = "0x100140/take_fragment+0x158"

    def change(problem, derivations, followed):
        forged = []
        for line in followed:
            if line == f"name {header} r7 s48 0":
                forged += [f"name {header} r7 s999 0", f"symbol s999 at {header} 16 0"]
            elif not re.match(
                r"(name|shown|must data) (0x100140/take_fragment.0x1[57]|quick_fit_malloc.0x(54|114)).*\bs48\b", line
            ):
                forged.append(line)
        return problem, derivations, forged

    found = limits(solved_again(document, change), binary)
    assert found.verdict == "not checked"
    assert "traversal2:lines" in found.found


@cache
def told(lines, lines_per_set):
    """The binary of `COUNTED` with other numbers in the fact about the lines of the arena."""
    found = load_allocator("first-fit", {})
    facts = []
    for name, text in found.facts:
        own = re.sub(r"(?m)^lines = .*$", f'lines = "{lines}"', text)
        facts.append((name, re.sub(r"(?m)^lines_per_set = .*$", f'lines_per_set = "{lines_per_set}"', own)))
    program = load_program(replace(found, facts=tuple(facts)), load_target("mpc603e"), "zig", images_dir())
    return allocator_binary(program, HEAP_BYTES)


@pytest.mark.parametrize(
    ("lines", "lines_per_set", "verdict"),
    [("heap_lines + 1", "3", "ok"), ("heap_lines + 2", "3", "not checked"), ("heap_lines + 1", "4", "not checked")],
)
def test_lines_are_those_of_the_fact_and_fit_in_their_sets(lines, lines_per_set, verdict):
    """Of four ways one is taken by the list's head."""
    document, _ = specimen(*COUNTED)
    assert limits(document, told(lines, lines_per_set)).verdict == verdict


# ------------------------------------------------------------------------------------------------- facts about pointers


def test_facts_do_not_speak_of_what_isshifted():
    by_fact = Congruence(8, 0)
    assert shifted(by_fact, 2, TOP) == Congruence(4, 0)
    assert shifted(by_fact, 0, TOP) == by_fact
    assert shifted(by_fact, 2, number(0, 64, 8)) == Congruence(32, 0)
    assert shifted(by_fact, None, TOP) == Congruence(1, 0)


FALLS_OUT_OF_A_BLOCK = """
    .syntax unified
    .thumb
    .globl f
    .type f, %function
f:  and r1, r0, #7
1:  ldr r2, [r1]
    subs r3, r3, #1
    bne 1b
    bx lr
    .size f, . - f
"""


def test_facts_do_not_speak_of_a_number_that_the_last_instruction_made_small():
    on = guest_of(FALLS_OUT_OF_A_BLOCK, load_target("cortex-m7"))
    code = Code(on.image, {one.address: one for one in on.instructions})
    start = on.address("f") & ~1
    nodes = {name: (start + offset, 0) for name, offset in (("f", 0), ("loop", 4), ("end", 10))}
    edges = tuple(
        Edge(f"{source}>{target}", source, target, 0)
        for source, target in (("f", "loop"), ("loop", "loop"), ("loop", "end"))
    )
    leading = {name: [edge for edge in edges if edge.source == name] for name in nodes}
    graph = Graph("f", nodes, "f", edges, {"end": 0}, leading, {})
    invariants = {
        name: dict(code.isa.entry_state().values) | ({"r1": number(0, 7)} if name != "f" else {}) for name in nodes
    }
    coverage = cover(code, graph, Said(invariants), {})
    assert isinstance(coverage, Coverage)
    traced = Tracer(code, graph, invariants, coverage, Names({}, {}, Pointers((PointerFact((), (8,)),)))).trace("f")
    (state,) = traced.leaving["f>loop"]
    assert traced.alignments[state.read("r1").base] == Congruence(1, 0)
