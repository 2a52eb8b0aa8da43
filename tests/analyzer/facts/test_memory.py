"""Facts about pointers and words: what they are bound to, and what is refused."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support import Guest, assembler, guest_of
from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.memory import Pointers, pointer_facts, word_ranges
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError, WcetProbeError

BODY = "lis 10, buf@ha\n addi 10, 10, buf@l\n lwz 9, 4(10)\n0: lwz 7, 0(3)\n addi 9, 9, -1\n cmpwi 9, 0\n bne 0b\n blr"
BECAUSE = 'because = "the test"\n'


@cache
def guest() -> Guest:
    target = load_target("mpc603e")
    return guest_of(
        assembler({"f": BODY}, target)
        + ".data\n.balign 64\n.globl buf\nbuf: .space 64\n.size buf, 64\nbare:\n.globl bare\n",
        target,
    )


def request(facts: str) -> BoundRequest:
    on = guest()
    return BoundRequest(on.image, on.target, on.instructions, on.costs, "f", parse_facts("f.toml", facts), {}, {"n": 3})


def asserted(facts: str, line_bytes: int | None = 32):
    return pointer_facts(parse_facts("f.toml", facts), index_sources({}), None, {"n": 3}, line_bytes)


def test_a_pointer_fact_without_functions_speaks_of_all_accesses():
    found = asserted(f"[[pointer]]\nmultiple_of = 16\nfirst_set = 2\nsets = 3\n{BECAUSE}")
    assert found.of(0x1234) == Pointers(16, frozenset({2, 3, 4}))
    assert asserted("").of(0x1234) == Pointers(1, None)
    odd = asserted(f'[[pointer]]\nmultiple_of = 8\nremainder = "n + 1"\n{BECAUSE}')
    assert odd.of(0x1234) == Pointers(8, remainder=4)


@pytest.mark.parametrize(("line_bytes", "visit"), [(16, "again"), (32, "again"), (64, None), (None, None)])
def test_visits_are_told_of_lines_that_are_small_enough(line_bytes, visit):
    facts = f'[[pointer]]\nmultiple_of = 4\nvisit = "again"\nvisit_line_bytes = "8 * n + 8"\n{BECAUSE}'
    assert asserted(facts, line_bytes).of(0x1234) == Pointers(4, visit=visit)


def test_an_access_misses_as_often_as_it_is_to_another_line_than_the_one_before():
    target = load_target("mpc603e")
    chase = BODY.replace("lwz 7, 0(3)", "lwz 3, 0(3)")
    on = guest_of(assembler({"f": chase}, target) + ".data\n.balign 64\n.globl buf\nbuf: .space 64\n", target)
    rounds = f'[[word]]\nsymbol = "buf"\noffset = 4\nmin = 1\nmax = 12\n{BECAUSE}'

    def cycles(pointers: str) -> int:
        facts = parse_facts("f.toml", f"[[pointer]]\nmultiple_of = 4\n{pointers}{BECAUSE}{rounds}")
        asked = BoundRequest(on.image, on.target, on.instructions, on.costs, "f", facts, {}, {"n": 3})
        bound = prove(asked)
        assert {access.line_changes for access in bound.accesses} == {("f.toml:1", 3) if pointers else None}
        return bound.cycles

    line_cycles = target.memory.line_cycles(32)
    assert cycles("") - cycles('line_changes = "n"\n') == (12 - 3) * 2 * line_cycles


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (f"[[pointer]]\nmultiple_of = 12\n{BECAUSE}", "12 is no power of two"),
        (f"[[pointer]]\nmultiple_of = 8\nremainder = 8\n{BECAUSE}", "give one from 0 to 7"),
        (f'[[pointer]]\nmultiple_of = 8\nvisit = "often"\n{BECAUSE}', "give 'first' or 'again'"),
        (f'[[pointer]]\nmultiple_of = 8\nvisit = "again"\n{BECAUSE}', "give it with visit = 'again', and only then"),
        (f"[[pointer]]\nmultiple_of = 8\nvisit_line_bytes = 8\n{BECAUSE}", "give it with visit = 'again'"),
        (f"[[pointer]]\nmultiple_of = 8\nline_changes = -1\n{BECAUSE}", "-1 accesses cannot be; give 0 or more"),
        (f"[[pointer]]\nmultiple_of = 8\n{BECAUSE}[[pointer]]\nmultiple_of = 16\n{BECAUSE}", "name those it speaks of"),
    ],
)
def test_pointer_facts_that_are_refused(facts, reason):
    with pytest.raises(UsageError, match=reason):
        asserted(facts)


def test_a_word_fact_bounds_what_is_loaded():
    facts = parse_facts("f.toml", f'[[word]]\nsymbol = "buf"\noffset = 4\nmin = 1\nmax = 12\n{BECAUSE}')
    ((address, numbers),) = word_ranges(facts.words, guest().image, {"n": 3}).items()
    assert address == guest().address("buf") + 4
    assert numbers == strided.between(32, 1, 12)


def test_the_bound_of_a_loop_follows_from_a_word_fact():
    facts = f'[[word]]\nsymbol = "buf"\noffset = 4\nmin = 1\nmax = 12\n{BECAUSE}'
    bound = prove(request(facts))
    assert bound.instructions == 3 + 12 * 4 + 1
    assert any("buf + 4 is 1 to 12" in str(assumption) for assumption in bound.assumptions)
    assert prove(request("")).instructions > 1 << 32


@pytest.mark.parametrize(
    ("keys", "reason"),
    [('symbol = "buf"\nmin = 5\nmax = 4\n', "5 to 4 is no range"), ('symbol = "none"\nmax = 4\n', "none")],
)
def test_word_facts_that_are_refused(keys, reason):
    with pytest.raises(WcetProbeError, match=reason):
        prepare(request(f"[[word]]\n{keys}{BECAUSE}"))


@pytest.mark.parametrize("size", [4, 8])
def test_a_pointer_fact_names_the_object(size):
    facts = f'[[pointer]]\nmultiple_of = {size}\nsymbol = "buf"\n{BECAUSE}'
    bound = prove(request(facts + f'[[word]]\nsymbol = "buf"\noffset = 4\nmax = 12\n{BECAUSE}'))
    through = next(access for access in bound.accesses if access.steps > 1)
    base = guest().address("buf")
    assert (through.place, through.low, through.stride) == ("told", base, size)
    assert through.low + through.stride * through.steps + 4 <= base + 64
    assert any("they are in buf" in str(assumption) for assumption in bound.assumptions)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ('symbol = "none"\n', "none"),
        ('symbol = "bare"\n', "bare has no size"),
        ('symbol = "f"\nfirst_set = 1\nsets = 1\n', "leave out first_set and sets"),
    ],
)
def test_objects_of_pointers_that_are_refused(keys, reason):
    with pytest.raises(WcetProbeError, match=reason):
        prepare(request(f"[[pointer]]\nmultiple_of = 4\n{keys}{BECAUSE}"))
