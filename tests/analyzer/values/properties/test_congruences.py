"""Residue classes against the numbers that they stand for."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.random_relational_programs import random_program
from tests.analyzer.relational_programs import LINE_BYTES
from tests.analyzer.relational_runs import Run
from tests.end_to_end.test_cache_soundness import analysed
from tests.examples import examples
from tests.support import assembler, guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.values.properties.congruences import Congruences
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.catalog.lookup import load_target


@settings(max_examples=examples(100))
@given(st.integers(0, 200), st.integers(1, 64), st.integers(0, 9))
def test_the_class_of_a_range_holds_all_of_it(low, stride, steps):
    values = random_program(Random(0)).view.values
    found = Congruences(values, LINE_BYTES).of_number(strided.between(32, low, low + stride * steps, stride))
    assert {(low + stride * step) % found.modulus for step in range(steps + 1)} == {found.residue}


def test_what_merges_where_blocks_meet_is_in_its_class():
    """Variables that are others plus a constant on each edge; loops add to them again and again."""
    checked, sharp = 0, 0
    for seed in range(400):
        random = Random(f"residues {seed}")
        program = random_program(random)
        merged = [(n, v) for n, v in enumerate(program.variables) if v.sources]
        if not merged or program.killed:
            continue
        found = Congruences(program.view.values, LINE_BYTES)
        (number, variable), symbol = merged[0], program.view.symbols[merged[0][0]]
        known = found.of_unknown(symbol, Congruence(program.asserted_bytes, 0))
        sharp += known.modulus > 1
        for _ in range(5):
            run, point, met = Run(program, random), 0, False
            while point is not None and sum(run.points.values()) < 30:
                list(run.block(point))
                point = run.leave(point)
                met |= point == variable.point
                if met:
                    assert run.now.values[number] % known.modulus == known.residue, program
                    checked += 1
    assert checked > 1000
    assert sharp > 20


def test_an_argument_enters_a_loop_that_begins_the_function():
    """The first block is the header: what the caller passes meets what the loop makes of it."""
    target = load_target("mpc603e")
    body = "0: lwz 7, 8(3)\n lwz 3, 0(5)\n addi 3, 3, 8\n cmpwi 7, 0\n bne 0b\n blr"
    values = analysed(guest_of(assembler({"f": body}, target), target), "f").prepared.values
    (symbol,) = (part for access in values.accesses[0][:1] for _, part, _ in access.parts)
    assert Congruences(values, 32).of_unknown(symbol, Congruence(16, 0)) == Congruence(8, 0)


def test_facts_speak_of_numbers_without_a_range():
    assert is_unknown(1, strided.top(32))
    assert not is_unknown(4, strided.top(32))
    assert not is_unknown(1, strided.between(32, 0, 4096))
