"""The oracle says no: for each check of a run against its proof, a claim that is false, which it must refuse.

Twice: by the tables of the native core, which hold every call of a run, and in the accesses of the second engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from tests.path_check import Proved, lifter_of, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.pcode.interpreter import DataAccess, interpret_call
from wcet_probe.answer.contradiction import (
    check_accesses,
    check_counts,
    check_flows,
    check_loops,
    check_path,
    refusal,
    register_check,
)
from wcet_probe.answer.cross_check import Call, cross_check
from wcet_probe.build.program import Program
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import RETURN_ADDRESS
from wcet_probe.errors import ContradictionError
from wcet_probe.model.held_calls import BrokenClaim, ClaimKind
from wcet_probe.model.proof import AccessRange, Bound, FlowClaim, FlowGraph, RegisterRange, WordClaim
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange

pytestmark = pytest.mark.usefixtures("each_engine")

TARGET = load_target("mpc603e")
HEAP_BYTES = 1 << 14
LINE, WAY = 32, 4096
assert (TARGET.dcache.line_bytes, TARGET.dcache.line_bytes * TARGET.dcache.sets) == (LINE, WAY)

BODY = f"""
stwu 1, -32(1)
mflr 0
stw 0, 36(1)
lwz 5, 0(3)
lwz 6, -{LINE}(3)
lwz 7, -{WAY}(3)
stw 5, 8(3)
bl g
li 9, 3
1: addi 9, 9, -1
cmpwi 9, 0
bne 1b
lwz 0, 36(1)
mtlr 0
addi 1, 1, 32
blr
"""
PUSH, LOAD, NEXT_LINE, SAME_SET, STORE, AFTER_CALL, LOOP = (4 * row for row in (0, 3, 4, 5, 6, 8, 9))
"""Offsets of instructions of ``f``."""


@cache
def proof() -> Proved:
    """``f``, which loads from two lines and a third one in the set of the first, stores, calls, and repeats a loop."""
    source = assembler({"f": BODY, "g": "nop\nblr"}, TARGET)
    return proved(guest_of(source, TARGET), "f")


def at(offset: int) -> int:
    return proof().guest.address("f") + offset


def heap() -> int:
    """The pointer that ``f`` is given."""
    return TARGET.memory_map.heap_address + WAY


def native(bound: Bound, pointer: int, content: dict[int, int]) -> BrokenClaim | None:
    guest = proof().guest
    watched = [claim.loop for claim in bound.loop_claims]
    with guest.machine(HEAP_BYTES, watched=watched, bounds=[bound]) as machine:
        for address, value in content.items():
            machine.memory.write(address, value.to_bytes(4, "big"))
        machine.measure("f", (pointer,), InitialCache.DIRTY)
        (calls,) = machine.held_calls()
        assert calls.calls == 1
        return machine.broken_claim()


def second(bound: Bound, pointer: int, content: dict[int, int]) -> str:
    """The refusal of the second engine's accesses, or nothing."""
    guest = proof().guest
    with guest.machine(HEAP_BYTES) as machine:
        for address, value in content.items():
            machine.memory.write(address, value.to_bytes(4, "big"))
        memory, registers = machine.memory.snapshot(), machine.entry_registers((pointer,))
    run = interpret_call(
        lifter_of(TARGET.pcode_language, TARGET.isa, guest.image.segments),
        memory,
        registers,
        entry_address=at(0),
        return_address=RETURN_ADDRESS,
        step_limit=1000,
    )
    frames = MemoryRange(registers["r1"] - 32, 32)
    try:
        check_accesses(bound, run.accesses, guest.image, TARGET, frames=frames, subject="a test")
        check_path(bound, run.path, guest.image, "a test")
    except ContradictionError as error:
        return str(error)
    return ""


def changed(offset: int, **changes: object) -> Bound:
    """The bound with another claim on the accesses of an instruction."""
    bound = proof().bound
    assert any(each.address == at(offset) for each in bound.accesses)
    return replace(
        bound,
        accesses=tuple(replace(each, **changes) if each.address == at(offset) else each for each in bound.accesses),
    )


def without(offset: int) -> Bound:
    bound = proof().bound
    return replace(bound, accesses=tuple(each for each in bound.accesses if each.address != at(offset)))


def counted(most: int, of_set: int) -> Bound:
    """The three loads, in so many lines, and so many of a set."""
    bound = proof().bound
    loads = {at(offset) for offset in (LOAD, NEXT_LINE, SAME_SET)}
    told = ("a fact", most, of_set)
    return replace(
        bound,
        accesses=tuple(replace(each, lines=told) if each.address in loads else each for each in bound.accesses),
    )


def counted_across(most: int, of_set: int) -> Bound:
    """The three loads, which may be across two lines each, as `counted`."""
    bound = counted(most, of_set)
    return replace(bound, accesses=tuple(replace(each, is_one_line=False) for each in bound.accesses))


def with_word(low: int, high: int) -> Bound:
    return replace(proof().bound, words=(WordClaim("a fact", heap(), low, high),))


ANYWHERE = {"base": "number", "low": 0, "stride": 1, "steps": 0xFFFFFFFF}
STACK_POINTER = TARGET.memory_map.stack.end_address - 24
"""At entry."""

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


# ------------------------------------------------------------------------------------------------------- sums and costs


def flow(weights: dict[int, int], entries: tuple[tuple[str, int], ...], constant: int) -> Bound:
    blocks = tuple((at(offset), weight) for offset, weight in weights.items())
    return replace(proof().bound, flow_claims=(FlowClaim("a fact", "a sum", blocks, entries, constant),))


def loop_name() -> str:
    (claim,) = proof().bound.loop_claims
    assert claim.loop.header_address == at(LOOP)
    return claim.loop.name


SUMS = {
    "a block": ({LOOP: 1}, (), 3),
    "a weight": ({LOOP: 2}, (), 6),
    "two blocks": ({LOOP: 1, 0: 5}, (), 8),
    "a negative weight": ({LOOP: 2, 0: -1}, (), 5),
    "entries of a loop": ({}, 7, 7),
    "entries that count against it": ({LOOP: 1}, -1, 2),
}


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("is_false", [False, True])
def test_sums_of_flow_facts(sums, is_false):
    blocks, weight, constant = SUMS[sums]
    entries = ((loop_name(), weight),) if weight else ()
    bound = flow(blocks, entries, constant - is_false)
    guest = proof().guest
    watched = [claim.loop for claim in bound.loop_claims]
    with guest.machine(HEAP_BYTES, watched=watched, bounds=[bound]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        counts, (calls,) = machine.loop_counts(), machine.held_calls()
        broken = machine.broken_claim()
        assert calls.flow_maxima == (constant,)
        if not is_false:
            assert broken is None
            assert check_flows(bound, counts, machine.executions, "a test") == (constant,)
            return
        assert (broken.kind, broken.value, broken.limit, broken.statement) == (
            ClaimKind.FLOW,
            constant,
            constant - 1,
            "a sum",
        )
        with pytest.raises(ContradictionError, match="the flow fact a fact is false in a test: a sum; the sum was"):
            check_flows(bound, counts, machine.executions, "a test")
        assert f"the sum was {constant:,}, and at most {constant - 1:,}" in str(refusal(broken, guest.image, "a test"))


@pytest.mark.parametrize("unit", ["instructions", "cycles"])
def test_costs_of_a_call(unit):
    guest, bound = proof().guest, proof().bound
    with guest.machine(HEAP_BYTES) as machine:
        seen = machine.measure("f", (heap(),), InitialCache.COLD)
    exact = replace(bound, **{unit: getattr(seen, unit)})
    less = replace(bound, **{unit: getattr(seen, unit) - 1})
    check_counts(exact, seen, "a test")
    with pytest.raises(ContradictionError, match=rf"f took [\d,]+ {unit} in a test"):
        check_counts(less, seen, "a test")
    for claimed, kind in ((exact, None), (less, ClaimKind(unit))):
        with guest.machine(HEAP_BYTES, bounds=[claimed]) as machine:
            machine.measure("f", (heap(),), InitialCache.COLD)
            broken = machine.broken_claim()
            assert (broken and broken.kind) == kind
            if broken:
                assert f"f took {getattr(seen, unit):,} {unit}" in str(refusal(broken, guest.image, "a test"))


def test_a_loop_that_repeats_more_often_than_is_claimed():
    (claim,) = proof().bound.loop_claims
    with proof().guest.machine(HEAP_BYTES, watched=[claim.loop]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        counts = machine.loop_counts()
    image = proof().guest.image
    check_loops([replace(claim, max_header=3)], counts, image, "a test")
    with pytest.raises(ContradictionError, match="ran its header 3 times for one entry in a test, and at most 2"):
        check_loops([replace(claim, max_header=2)], counts, image, "a test")


# ------------------------------------------------------------------------------------------------- registers and paths


def register(low: int, **changes: object) -> RegisterRange:
    return replace(RegisterRange(at(AFTER_CALL), (), "r9", "number", low, 0, 0), **changes)


@pytest.mark.parametrize(
    ("ranges", "value", "is_refused"),
    [
        ([register(7)], 7, False),
        ([register(7)], 8, True),
        ([register(0, stride=4, steps=2)], 8, False),
        ([register(0, stride=4, steps=2)], 12, True),
        ([register(0, stride=4, steps=2)], 6, True),
        ([register(8, base="stack")], 4096 + 8, False),
        ([register(8, base="stack")], 8, True),
    ],
)
def test_a_register_outside_of_its_range(ranges, value, is_refused):
    bound = replace(proof().bound, registers=tuple(ranges), points=((at(AFTER_CALL), ()),))
    visit = register_check(bound, proof().guest.image, 4096, "a test")
    visit(at(0), lambda _: 99)
    if not is_refused:
        visit(at(AFTER_CALL), lambda _: value)
        return
    with pytest.raises(ContradictionError, match=r"r9 was .* outside of what the value analysis allows there"):
        visit(at(AFTER_CALL), lambda _: value)


def path() -> list[int]:
    """The executed instructions of ``f``."""
    guest = proof().guest
    g = guest.address("g")
    loop = [at(LOOP), at(LOOP + 4), at(LOOP + 8)]
    return [*range(at(0), at(AFTER_CALL), 4), g, g + 4, at(AFTER_CALL), *loop * 3, *range(at(LOOP + 12), at(64), 4)]


def refused(executed: list[int], bound: Bound | None = None) -> str:
    with pytest.raises(ContradictionError) as caught:
        check_path(bound or proof().bound, executed, proof().guest.image, "a test")
    return str(caught.value)


def test_the_path_of_the_call_is_one_of_the_graph():
    assert check_path(proof().bound, path(), proof().guest.image, "a test") == 1
    assert not second(proof().bound, heap(), {})


def test_a_path_that_leaves_the_graph():
    executed = path()
    assert "where the analysed graph has no edge" in refused([*executed[:4], at(LOOP)])
    assert "where the analysed graph has no edge" in refused([*executed[:4], proof().guest.address("g")])
    assert "where the analysed graph has no edge" in refused([*executed[:4], 0x1234])


@pytest.mark.parametrize("kind", ["fall", "jump", "call", "return"])
def test_an_edge_that_the_graph_has_not(kind):
    graph = proof().bound.graph
    edges = tuple(edge for edge in graph.edges if edge.kind != kind)
    assert len(edges) < len(graph.edges)
    bound = replace(proof().bound, graph=FlowGraph(graph.blocks, edges))
    assert "where the analysed graph has no edge" in refused(path(), bound)


def test_a_function_that_returns_elsewhere():
    """Where another call of ``g`` would go on: the graph has the edge, but it is not this caller's."""
    source = assembler({"f": "mflr 8\nbl g\nbl g\nmtlr 8\nblr", "g": "nop\nblr"}, TARGET)
    made = proved(guest_of(source, TARGET), "f")
    f, g = made.guest.address("f"), made.guest.address("g")
    once, rest = [f, f + 4, g, g + 4], [f + 12, f + 16]
    image = made.guest.image
    assert check_path(made.bound, [*once, f + 8, g, g + 4, *rest], image, "a test") == 2
    with pytest.raises(
        ContradictionError, match=r"did not return to its caller .* against the assumption return-address"
    ):
        check_path(made.bound, [*once, *rest], image, "a test")


# -------------------------------------------------------------------------------------------------------- second engine


@pytest.mark.parametrize(
    "count",
    ["instructions", "loads", "stores", "result", "icache", "dcache", "writebacks", "path", "register", "access"],
)
def test_the_second_engine_disagrees(count):
    guest, bound = proof().guest, proof().bound
    with guest.machine(HEAP_BYTES) as machine:
        call = Call("f", machine.entry_registers((heap(),)), machine.memory.snapshot(), InitialCache.DIRTY)
        seen = machine.measure("f", (heap(),), InitialCache.DIRTY)
    program = Program.__new__(Program)
    for name, value in (("target", TARGET), ("image", guest.image)):
        object.__setattr__(program, name, value)
    assert cross_check(program, bound, call, seen, "a test").returns == 1
    icache, dcache = seen.icache, seen.dcache
    lies = {
        "icache": {"icache": replace(icache, read_misses=icache.read_misses + 1)},
        "dcache": {"dcache": replace(dcache, read_misses=dcache.read_misses + 1)},
        "writebacks": {"dcache": replace(dcache, writebacks=dcache.writebacks + 1)},
    }
    if count == "path":
        bound = replace(bound, graph=FlowGraph(bound.graph.blocks, ()))
    elif count == "register":
        bound = replace(bound, registers=(register(7),), points=((at(AFTER_CALL), ()),))
    elif count == "access":
        bound = without(LOAD)
    else:
        seen = replace(seen, **(lies[count] if count in lies else {count: getattr(seen, count) + 1}))
    with pytest.raises(ContradictionError):
        cross_check(program, bound, call, seen, "a test")


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
