"""The oracle says no: for each claim on accesses of a run, one that is false, which it must refuse.

Twice: by the tables of the native core, which hold every call of a run, and in the accesses of the second engine.

Tests: answer.witness.contradiction, emu.machine, model.held_calls.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.answer.false_claims import (
    ANYWHERE,
    HEAP_BYTES,
    LINE,
    LOAD,
    LOOP,
    NEXT_LINE,
    PUSH,
    SAME_SET,
    STACK_POINTER,
    STORE,
    TARGET,
    at,
    changed,
    counted,
    counted_across,
    flow,
    heap,
    loop_name,
    native,
    proof,
    second,
    with_word,
    without,
)
from tests.path_check import proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.answer.witness.contradiction import (
    check_accesses,
    refusal,
)
from wcet_probe.errors import ContradictionError
from wcet_probe.model.held_calls import ClaimKind
from wcet_probe.model.proof import AccessRange, Bound
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange

pytestmark = pytest.mark.usefixtures("each_engine")


REFUSED = {
    "an access that is not in the proof": (ClaimKind.ADDRESS, without(LOAD), heap(), {}),
    "one address": (ClaimKind.ADDRESS, changed(LOAD, base="number", low=heap() + 4, stride=0, steps=0), heap(), {}),
    "a stride": (ClaimKind.ADDRESS, changed(LOAD, base="number", low=0, stride=8, steps=0x1FFFFFFF), heap() + 4, {}),
    "the end of a range": (
        ClaimKind.ADDRESS,
        changed(LOAD, base="number", low=heap(), stride=4, steps=3),
        heap() + 16,
        {},
    ),
    "a place on the stack": (ClaimKind.ADDRESS, changed(PUSH, base="stack", low=-28 & 0xFFFFFFFF), heap(), {}),
    "a set": (ClaimKind.SET, changed(LOAD, sets=frozenset({1, 2})), heap(), {}),
    "a second line's set": (ClaimKind.SET, changed(LOAD, **ANYWHERE, sets=frozenset({0})), heap() + LINE - 2, {}),
    "the call's own stack": (ClaimKind.FRAME, changed(STORE, **ANYWHERE), STACK_POINTER - 16, {}),
    "a line's end": (ClaimKind.CROSSES, changed(LOAD, **ANYWHERE), heap() + LINE - 2, {}),
    "a visit": (ClaimKind.VISIT, changed(LOAD, visit="again"), heap(), {}),
    "changes of line": (ClaimKind.CHANGES, changed(LOAD, line_changes=("a fact", 0)), heap(), {}),
    "lines": (ClaimKind.LINES, counted(2, 2), heap(), {}),
    "lines of a set": (ClaimKind.LINES_OF_SET, counted(3, 1), heap(), {}),
    "second lines": (ClaimKind.LINES, counted_across(4, 2), heap() + LINE - 2, {}),
    "second lines of a set": (ClaimKind.LINES_OF_SET, counted_across(5, 1), heap() + LINE - 2, {}),
    "a word's least value": (ClaimKind.WORD, with_word(1, 9), heap(), {heap(): 0}),
    "a word's greatest value": (ClaimKind.WORD, with_word(1, 9), heap(), {heap(): 10}),
}

HOLDS = {
    "the proof": (proof().bound, heap(), {}),
    "another pointer": (proof().bound, heap() + 4 * LINE, {}),
    "one address": (changed(LOAD, base="number", low=heap(), stride=0, steps=0), heap(), {}),
    "the end of a range": (changed(LOAD, base="number", low=heap(), stride=4, steps=4), heap() + 16, {}),
    "a place on the stack": (changed(PUSH, base="stack", low=-32 & 0xFFFFFFFF, stride=0, steps=0), heap(), {}),
    "a set": (changed(LOAD, sets=frozenset({0})), heap(), {}),
    "the stack of a caller": (changed(STORE, **ANYWHERE), STACK_POINTER, {}),
    "changes of line": (changed(LOAD, line_changes=("a fact", 1)), heap(), {}),
    "lines": (counted(3, 2), heap(), {}),
    "second lines": (counted_across(5, 2), heap() + LINE - 2, {}),
    "a word": (with_word(1, 9), heap(), {heap(): 9}),
    "counts of 64 bits": (replace(proof().bound, instructions=1 << 64, cycles=1 << 70), heap(), {}),
    "changes of line beyond 64 bits": (changed(LOAD, line_changes=("a fact", 1 << 64)), heap(), {}),
    "lines beyond 32 bits": (counted(1 << 32, 1 << 32), heap(), {}),
    "a sum beyond 64 bits": (flow({LOOP: 1}, (), 1 << 64), heap(), {}),
}


@pytest.mark.parametrize("claim", REFUSED)
def test_the_native_core_refuses(claim):
    kind, bound, pointer, content = REFUSED[claim]
    broken = native(bound, pointer, content)
    assert broken is not None
    assert (broken.kind, broken.entry) == (kind, "f")


@pytest.mark.parametrize("claim", REFUSED)
def test_the_second_engines_accesses_are_refused_for_the_same(claim):
    kind, bound, pointer, content = REFUSED[claim]
    broken = native(bound, pointer, content)
    said = str(refusal(broken, proof().guest.image, "a test"))
    assert second(bound, pointer, content) == said
    assert (kind is ClaimKind.CROSSES) == ("across a cache line" in said)


@pytest.mark.parametrize("claim", HOLDS)
def test_what_holds_is_not_refused(claim):
    assert native(*HOLDS[claim]) is None
    assert not second(*HOLDS[claim])


# --- visits, in order


def visiting(first: int, again: int) -> Bound:
    bound = proof().bound
    visits = {at(first): "first", at(again): "again"}
    return replace(bound, accesses=tuple(replace(each, visit=visits.get(each.address, "")) for each in bound.accesses))


def test_a_visit_again_needs_the_first_one_and_no_store_between():
    """``lwz 0(3)``, ``lwz -32(3)``, ``lwz -4096(3)``, ``stw 8(3)``: the store is in the line of the first load."""
    for bound, is_refused in (
        (visiting(LOAD, STORE), False),
        (visiting(NEXT_LINE, STORE), True),
        (visiting(STORE, LOAD), True),
    ):
        broken = native(bound, heap(), {})
        assert (broken is not None, bool(second(bound, heap(), {}))) == (is_refused, is_refused)


def test_a_store_ends_a_visit():
    """Of the accesses of a call only the store precedes the loads of another call: visits do not outlive a call."""
    guest, bound = proof().guest, visiting(LOAD, STORE)
    with guest.machine(HEAP_BYTES, bounds=[bound]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        assert machine.broken_claim() is None
    told = visiting(SAME_SET, LOAD)  # from the second call on, the line of LOAD at 4096 was visited, by the call before
    with guest.machine(HEAP_BYTES, bounds=[told]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        assert machine.broken_claim().kind is ClaimKind.VISIT


STORED = """
lwz 5, 0(3)
stw 5, 4(3)
lwz 6, 8(3)
blr
"""


def test_a_line_that_was_stored_to_is_not_visited_any_more():
    made = proved(guest_of(assembler({"f": STORED}, TARGET), TARGET), "f")
    guest, start = made.guest, made.guest.address("f")
    visits = {start: "first", start + 8: "again"}
    bound = replace(
        made.bound, accesses=tuple(replace(each, visit=visits.get(each.address, "")) for each in made.bound.accesses)
    )
    with guest.machine(HEAP_BYTES, bounds=[bound]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        assert machine.broken_claim().kind is ClaimKind.VISIT
    loads = [
        DataAccess(0, start, 64, 4, False),
        DataAccess(1, start + 4, 68, 4, True),
        DataAccess(2, start + 8, 72, 4, False),
    ]
    with pytest.raises(ContradictionError, match="against a fact about visits"):
        check_accesses(bound, loads, guest.image, TARGET, frames=MemoryRange(4096, 64), subject="a test")


def test_counts_begin_anew_with_each_call():
    """What is counted is counted for each call: what holds of one holds of three in a row."""
    guest, start = proof().guest, counted(3, 2)
    changes = {at(offset): ("another fact", 3) for offset in (LOAD, NEXT_LINE, SAME_SET)}
    bound = replace(
        flow({LOOP: 1}, ((loop_name(), 2),), 5),
        accesses=tuple(replace(each, line_changes=changes.get(each.address)) for each in start.accesses),
    )
    watched = [claim.loop for claim in bound.loop_claims]
    with guest.machine(HEAP_BYTES, watched=watched, bounds=[bound]) as machine:
        for _ in range(3):
            machine.measure("f", (heap(),), InitialCache.COLD)
            assert machine.broken_claim() is None
        (calls,) = machine.held_calls()
    assert (calls.calls, calls.flow_maxima, calls.accesses[at(LOAD), False]) == (3, (5,), 3)
    assert (calls.lines, calls.lines_of_set, calls.line_changes) == ({"a fact": 3}, {"a fact": 2}, {"another fact": 3})


def test_lines_of_an_earlier_call_are_counted_again():
    """Three lines, then five, the three among them."""
    guest, bound = proof().guest, counted_across(4, 2)
    with guest.machine(HEAP_BYTES, bounds=[bound]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        assert machine.broken_claim() is None
        machine.measure("f", (heap() + LINE - 2,), InitialCache.COLD)
        broken = machine.broken_claim()
    assert (broken.kind, broken.value) == (ClaimKind.LINES, 5)


def test_an_access_across_lines_ends_in_the_second():
    """The next one, to the first of the two, is to another line."""
    made = proved(guest_of(assembler({"f": "lwz 5, 0(3)\nlwz 6, -4(3)\nblr"}, TARGET), TARGET), "f")
    guest, start = made.guest, made.guest.address("f")
    told = {start: None, start + 4: ("a fact", 0)}
    bound = replace(
        made.bound,
        accesses=tuple(
            replace(each, is_one_line=False, line_changes=told[each.address]) for each in made.bound.accesses
        ),
    )
    with guest.machine(HEAP_BYTES, bounds=[bound]) as machine:
        machine.measure("f", (heap() + LINE - 2,), InitialCache.COLD)
        assert machine.broken_claim().kind is ClaimKind.CHANGES
    loads = [DataAccess(0, start, LINE - 2, 4, False), DataAccess(1, start + 4, LINE - 6, 4, False)]
    with pytest.raises(ContradictionError, match="more than 0 accesses went to another line"):
        check_accesses(bound, loads, guest.image, TARGET, frames=MemoryRange(4096, 64), subject="a test")


def test_a_call_begins_in_no_line():
    """Its first access is to another line than the one before, wherever the call before ended."""
    source = assembler({"f": "cmpwi 4, 0\nbeq 1f\nlwz 5, 0(3)\nblr\n1: lwz 5, 4(3)\nblr"}, TARGET)
    made = proved(guest_of(source, TARGET), "f")
    guest, load = made.guest, made.guest.address("f") + 8
    told = {load: ("a fact", 0)}
    bound = replace(
        made.bound,
        accesses=tuple(replace(each, line_changes=told.get(each.address)) for each in made.bound.accesses),
    )
    with guest.machine(HEAP_BYTES, bounds=[bound]) as machine:
        machine.measure("f", (heap(), 0), InitialCache.COLD)
        assert machine.broken_claim() is None
        machine.measure("f", (heap(), 1), InitialCache.COLD)
        assert machine.broken_claim().kind is ClaimKind.CHANGES


def test_every_kind_of_claim_is_refused_above():
    """A kind that is added later needs its case; some have theirs in `test_call_paths` and `test_saved_registers`."""
    tested = Counter(kind for kind, *_ in REFUSED.values())
    of_paths = {ClaimKind.POINT, ClaimKind.WAY, ClaimKind.SAVED}
    assert set(tested) == set(ClaimKind) - {ClaimKind.FLOW, ClaimKind.INSTRUCTIONS, ClaimKind.CYCLES} - of_paths


def test_accesses_of_other_contexts_are_allowed():
    """What is said of no point in particular is of all of the instruction's: what one of them allows is allowed."""
    start = at(LOAD)
    two = tuple(AccessRange(start, (n,), False, "number", heap() + 4 * n, 0, 0, 4) for n in (0, 1))
    rest = tuple(each for each in proof().bound.accesses if each.address != start)
    for offset, is_refused in ((0, False), (4, False), (8, True)):
        bound = replace(proof().bound, accesses=(*rest, *two))
        assert (native(bound, heap() + offset, {}) is not None) == is_refused
        assert bool(second(bound, heap() + offset, {})) == is_refused
