"""Unaligned accesses: what is charged of them, what facts tell, and that no run exceeds it."""

from __future__ import annotations

import json
import random
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.end_to_end.test_cache_soundness import SLOW_CYCLES, analysed, provable
from tests.end_to_end.test_line_crossing import PACKED
from tests.random_programs import arguments, packed_source
from tests.support import assembler, cache_config, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.dcache.misses import data_misses
from wcet_probe.analyzer.dcache.unaligned_accesses import with_unaligned_accesses
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.answer.facts import fact_skeleton
from wcet_probe.answer.facts.fact_skeleton import pointer_candidates
from wcet_probe.answer.witness.contradiction import check_accesses
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main
from wcet_probe.errors import ContradictionError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange, Target

COLD = InitialCache.COLD
DATA = ".data\n.balign 64\n.globl buf\nbuf: .space 256\n"
BODIES = {
    "a word of static data": ("ldr r1, =buf+4\nldr r0, [r1]", 0),
    "a word at a multiple of 2": ("ldr r1, =buf+6\nldr r0, [r1]", 1),
    "a word at an odd address": ("ldr r1, =buf+5\nstr r0, [r1]", 2),
    "a halfword at an even address": ("ldr r1, =buf+6\nldrh r0, [r1]", 0),
    "a halfword at an odd address": ("ldr r1, =buf+7\nstrh r0, [r1]", 1),
    "a byte": ("ldrb r0, [r0, #3]", 0),
    "a word of the stack": ("ldr r0, [sp, #12]", 0),
    "a word of the stack that lies badly": ("str r0, [sp, #7]", 2),
    "a word at an unknown address": ("ldr r0, [r0]", 2),
    "a halfword at an unknown address": ("ldrsh r0, [r0]", 1),
    "a word of a table with any index": ("ldr r1, =buf\nldr r0, [r1, r0, lsl #2]", 0),
    "a word of a table of halfwords": ("ldr r1, =buf\nldr r0, [r1, r0, lsl #1]", 1),
    "a halfword of such a table": ("ldr r1, =buf\nldrh r0, [r1, r0, lsl #1]", 0),
    "several words, which must be aligned": ("ldmia r0, {r1-r3}", 0),
    "two words, which must be aligned": ("ldrd r1, r2, [r0]", 0),
    "one that may be skipped": ("cmp r0, #0\nit ne\nldrne r0, [r0]", 2),
}


def longer_of(body: str, told: Pointers, target: Target) -> int:
    """What the accesses of a function of one block are charged for being unaligned."""
    code = assembler({"f": f"{body}\nbx lr\n.ltorg"}, target) + DATA
    prepared = analysed(guest_of(code, target), "f").prepared
    pointers = PointerFacts(told, {})
    data = data_misses(prepared.values, target, pointers)
    found = with_unaligned_accesses(data, prepared.values, target, pointers, prepared.costs)
    return sum(found.points.values()) - sum(data.points.values())


@pytest.mark.parametrize("case", BODIES)
def test_each_access_is_charged_the_most_that_its_class_allows(case):
    body, cycles = BODIES[case]
    target = load_target("cortex-m4")
    assert longer_of(body, Pointers(), target) == cycles
    assert longer_of(body, Pointers(), replace(target, unaligned=())) == 0
    slow = replace(target.memory, first_beat_cycles=replace(target.memory.first_beat_cycles, value=9))
    assert longer_of(body, Pointers(), replace(target, memory=slow)) == cycles * (1 + 9)
    cached = replace(target, memory=slow, dcache=cache_config(4, 2, 16))
    assert longer_of(body, Pointers(), cached) == cycles


@pytest.mark.parametrize(
    ("told", "body", "cycles"),
    [
        (Pointers(4), "ldr r0, [r0, #8]", 0),
        (Pointers(4), "ldr r0, [r0, #6]", 1),
        (Pointers(4), "ldr r0, [r0, #5]", 2),
        (Pointers(2), "ldr r0, [r0, #8]", 1),
        (Pointers(8, remainder=6), "ldr r0, [r0, #2]", 0),
        (Pointers(8, remainder=6), "ldr r0, [r0]", 1),
    ],
)
def test_facts_tell_which_accesses_are_aligned(told, body, cycles):
    assert longer_of(body, told, load_target("cortex-m4")) == cycles


def test_no_bound_of_packed_data_is_below_what_the_machine_takes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guest = guest_of(PACKED, load_target("cortex-m4"), ".c")
    (tmp_path / "packed.elf").write_bytes(guest.image.elf)
    ring = guest.address("ring")
    calls = {"across": [()], "table": [()], "on_stack": [(7,)]} | {"through": [(ring + 11 * n,) for n in range(8)]}
    for entry, words in calls.items():
        assert main(["bound", "packed.elf", "--entry", entry, "--target", "cortex-m4", "--json"]) == 0
        bound = json.loads(capsys.readouterr().out)["bound"]
        with guest.machine() as machine:
            found = [machine.measure(entry, each, COLD).cycles for each in words]
        assert max(found) <= bound["cycles"], entry
        assert "aligned-accesses" not in {one["id"] for one in bound["assumptions"]}
        if entry in {"across", "on_stack"}:
            assert max(found) == bound["cycles"], entry
        if entry == "across":
            with replace(guest, target=replace(guest.target, unaligned=())).machine() as machine:
                assert machine.measure(entry, words[0], COLD).cycles < bound["cycles"]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4"])
def test_random_packed_programs_stay_within_their_bounds(target):
    unaligned = 0
    for one in provable(3, target, packed_source):
        own = one.guest.target
        slow = replace(own.memory, first_beat_cycles=replace(own.memory.first_beat_cycles, value=SLOW_CYCLES))
        for core in (own, replace(own, memory=slow), replace(own, memory=slow, dcache=cache_config(4, 2, 16))):
            bound = one.bound(core)
            with one.machine(core) as machine, one.machine(replace(core, unaligned=())) as blind:
                for number in range(4):
                    words = arguments(random.Random(number))
                    found = machine.measure(one.entry, words, COLD).cycles
                    assert found <= bound, (one.entry, words)
                    unaligned += found > blind.measure(one.entry, words, COLD).cycles
    assert unaligned > 20


NODES = """
typedef struct node { struct node *next; unsigned unused, value; } node;
node first, second;
unsigned char bytes[32] __attribute__((aligned(8)));
__attribute__((noinline)) unsigned sum(node *one)
{
    unsigned found = 0;
    for (unsigned i = 0; i < 4; i++, one = one->next) found += one->value;
    return found;
}
"""
FACT = "[[pointer]]\nmultiple_of = 4\nbecause = 'nodes are words'\n"


def test_a_fact_about_pointers_is_assumed_and_held_against_runs():
    guest = guest_of(NODES, load_target("cortex-m4"), ".c")
    told = prove(analysed(guest, "sum", parse_facts("facts.toml", FACT)).prepared.request)
    blind = prove(analysed(guest, "sum").prepared.request)
    assert told.cycles + 4 * 2 * 2 == blind.cycles
    assert told.instructions == blind.instructions
    assert "fact facts.toml:1" in {one.id for one in told.assumptions}
    assert "fact facts.toml:1" not in {one.id for one in blind.assumptions}
    assert {one.fact for one in told.accesses if one.base == "number"} == {"facts.toml:1"}
    own = [one for one in told.accesses if one.fact]
    assert {one.stride % 4 for one in own} == {0}
    assert not told.idle_facts
    image, target, frames = guest.image, guest.target, MemoryRange(4096, 64)
    place, at = own[0], guest.address("first")
    for offset in range(4):
        access = DataAccess(0, place.address, at + offset, 4, place.is_store)
        with pytest.raises(ContradictionError) if offset else nullcontext():
            check_accesses(told, [access], image, target, frames=frames, subject="a test")


def test_a_fact_that_would_make_the_bound_smaller_is_proposed():
    request = analysed(guest_of(NODES, load_target("cortex-m4"), ".c"), "sum").prepared.request
    (found,) = pointer_candidates(request)
    assert found.lines[1] == "multiple_of = 4"
    blind = replace(request, target=replace(request.target, unaligned=()))
    assert list(pointer_candidates(blind)) == []


def test_a_fact_that_would_take_too_long_to_try_is_named_with_that(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fact_skeleton, "_MOST_VISITS", 3)
    request = analysed(guest_of(NODES, load_target("cortex-m4"), ".c"), "sum").prepared.request
    (found,) = pointer_candidates(request)
    assert found.effect.startswith("not tried")
