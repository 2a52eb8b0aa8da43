"""A claim that is false on the path that a call took is refused, though other call paths allow what the run showed."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest

from tests.emu.twins import assert_equal, twins
from tests.end_to_end.test_proved_facts_in_runs import Caller
from tests.path_check import Proved, lifter_of, proved
from tests.support import assembler, guest_of, images_dir
from wcet_probe.analyzer.pcode.interpreter import Interpretation, interpret_call
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.witness.call_paths import check_call_path
from wcet_probe.answer.witness.contradiction import check_accesses, refusal
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.compiled import supply
from wcet_probe.emu import machine
from wcet_probe.emu.compiled import Detail, TranslatedCode
from wcet_probe.emu.machine import RETURN_ADDRESS
from wcet_probe.errors import ContradictionError
from wcet_probe.model.held_calls import BrokenClaim, ClaimKind
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange

TARGET = load_target("mpc603e")
TWICE = {"f": "mflr 0\nbl g\naddi 3, 3, 40\nbl g\nmtlr 0\nblr", "g": "lwz 5, 0(3)\nstw 5, 4(3)\nblr"}
WAYS = {"f": "cmpwi 4, 0\nbeq 1f\nlwz 3, 8(3)\n1: lwz 5, 0(3)\nblr"}
HEAP = TARGET.memory_map.heap_address


@cache
def twice() -> tuple[Proved, Interpretation]:
    """``f`` calls ``g`` twice, the second time for 40 bytes further on."""
    made = proved(guest_of(assembler(TWICE, TARGET), TARGET), "f")
    return made, run(made, HEAP)


def run(made: Proved, *arguments: int) -> Interpretation:
    guest = made.guest
    with guest.machine() as used:
        registers = used.entry_registers(arguments)
    return interpret_call(
        lifter_of(TARGET.pcode_language, TARGET.isa, guest.image.segments),
        made.memory,
        registers,
        entry_address=guest.address(made.entry),
        return_address=RETURN_ADDRESS,
        step_limit=100,
    )


def held(made: Proved, bound: Bound, done: Interpretation) -> None:
    """Both checks of the second engine: of instructions, which must not refuse anything here, and of call paths."""
    frames = MemoryRange(TARGET.memory_map.stack.base_address, 64)
    check_accesses(bound, done.accesses, made.guest.image, TARGET, frames=frames, subject="a test")
    check_call_path(bound, done.path, done.accesses, made.guest.image, TARGET, frames=frames, subject="a test")


def native(made: Proved, bound: Bound, *arguments: int) -> BrokenClaim | None:
    """What the native core refuses of the same call, be it made in the engine or in translated code."""
    with twins(made.guest, bounds=[bound]) as (engine, translated):
        assert_equal(engine, translated, lambda used: used.measure("f", arguments, InitialCache.COLD).cycles)
        (calls,) = engine.held_calls()
        assert calls.calls == 1
        return engine.broken_claim()


def with_claims(made: Proved, *changes: dict[str, object], is_store: bool = False) -> Bound:
    """The bound with changes of what is said of the last function's load or store, one for each of its points."""
    load = max(one.address for one in made.bound.accesses if one.is_store == is_store)
    points = sorted({one.point for one in made.bound.accesses if one.address == load})
    assert len(points) == len(changes)
    told = dict(zip(points, changes, strict=True))
    return replace(
        made.bound,
        accesses=tuple(replace(one, **told[one.point]) if one.address == load else one for one in made.bound.accesses),
    )


SETS = tuple(frozenset({address // 32 % 128}) for address in (HEAP, HEAP + 40))


def exactly(address: int) -> dict[str, object]:
    return {"base": "number", "low": address, "stride": 0, "steps": 0}


@pytest.mark.parametrize(
    ("one", "other", "is_false"),
    [
        ({}, {}, False),
        (exactly(HEAP), exactly(HEAP + 40), False),
        (exactly(HEAP + 40), exactly(HEAP), True),
        ({"sets": SETS[0]}, {"sets": SETS[1]}, False),
        ({"sets": SETS[1]}, {"sets": SETS[0]}, True),
    ],
)
def test_contexts_are_held_apart(one, other, is_false):
    made, done = twice()
    bound = with_claims(made, one, other)
    refused = r"the load at g.* against what the proof says .*on this call path"
    with pytest.raises(ContradictionError, match=refused) if is_false else nullcontext():
        held(made, bound, done)
    broken = native(made, bound, HEAP)
    assert (broken is not None) == is_false
    if broken:
        assert broken.kind is ClaimKind.POINT
        with pytest.raises(ContradictionError, match=refused):
            raise refusal(broken, made.guest.image, "a test")


STACK_POINTER = TARGET.memory_map.stack.end_address - 24
"""At entry."""
ANYWHERE = {"low": 0, "stride": 1, "steps": 0xFFFFFFFF, "sets": None}


@pytest.mark.parametrize("is_false", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "pointer", "is_store"),
    [
        ({"is_one_line": False}, {"is_one_line": True}, HEAP + 30, False),
        ({"base": "any"}, {"base": "number"}, STACK_POINTER - 44, True),
    ],
)
def test_lines_and_frames_are_held_apart_by_the_native_core(first, second, pointer, is_store, is_false):
    """Only the first call's access is across a line, and only its store is below the stack pointer at entry."""
    made, _ = twice()
    points = [ANYWHERE | one for one in ((second, first) if is_false else (first, second))]
    broken = native(made, with_claims(made, *points, is_store=is_store), pointer)
    assert (broken and broken.kind) == (ClaimKind.POINT if is_false else None)


@pytest.mark.parametrize(
    ("offset", "is_one_line", "is_false"), [(30, False, False), (30, True, True), (28, True, False)]
)
def test_an_access_across_a_line_is_refused_where_the_proof_says_one_line_and_only_there(offset, is_one_line, is_false):
    made = proved(guest_of(assembler({"f": "lwz 5, 0(3)\nblr"}, TARGET), TARGET), "f")
    done = run(made, HEAP + offset)
    bound = with_claims(made, {"is_one_line": is_one_line, "sets": None})
    frames = MemoryRange(TARGET.memory_map.stack.base_address, 64)
    with pytest.raises(ContradictionError, match="on this call path") if is_false else nullcontext():
        check_call_path(bound, done.path, done.accesses, made.guest.image, TARGET, frames=frames, subject="a test")


def test_the_fact_of_the_path_is_named():
    made, done = twice()
    bound = with_claims(made, exactly(HEAP + 40) | {"fact": "a.toml:1"}, exactly(HEAP) | {"fact": "a.toml:2"})
    with pytest.raises(ContradictionError, match=r"call path; the fact a\.toml:1 speaks of it"):
        held(made, bound, done)
    assert native(made, bound, HEAP).fact == "a.toml:1"


def test_a_claim_without_a_point_is_of_all():
    made, done = twice()
    bound = with_claims(made, exactly(HEAP) | {"point": None}, exactly(HEAP + 40) | {"point": None})
    held(made, bound, done)
    assert native(made, bound, HEAP) is None


@pytest.mark.parametrize("is_false", [False, True])
def test_copies_of_a_block_are_held_apart(is_false):
    """Behind the branch the load is by the argument, or by a loaded word: two copies of one block."""
    made = proved(guest_of(assembler(WAYS, TARGET), TARGET), "f")
    done = run(made, HEAP, 0)
    load = done.accesses[-1].instruction_address
    points = sorted(one.point for one in made.bound.accesses if one.address == load)
    assert len(points) == 2
    direct = [(0, point) in made.bound.point_edges for point in points]
    assert direct.count(True) == 1
    bound = with_claims(made, *(exactly(HEAP + 4 * (own == is_false)) for own in direct))
    with pytest.raises(ContradictionError, match="on this call path") if is_false else nullcontext():
        held(made, bound, done)
    broken = native(made, bound, HEAP, 0)
    assert (broken and broken.kind) == (ClaimKind.POINT if is_false else None)


def test_a_block_of_the_engine_goes_on_into_the_next_of_the_proof():
    source = assembler({"f": "cmpwi 4, 0\nbeq 1f\naddi 3, 3, 8\n1: lwz 5, 0(3)\nblr"}, TARGET)
    made = proved(guest_of(source, TARGET), "f")
    assert [native(made, made.bound, HEAP, way) for way in (0, 1)] == [None, None]


def test_a_way_that_the_values_exclude_is_refused():
    made, done = twice()
    edges = made.bound.point_edges
    held(made, made.bound, done)
    assert native(made, made.bound, HEAP) is None
    for left in range(len(edges)):
        bound = replace(made.bound, point_edges=edges[:left] + edges[left + 1 :])
        with pytest.raises(ContradictionError, match="excludes on this call path"):
            held(made, bound, done)
        broken = native(made, bound, HEAP)
        assert broken.kind is ClaimKind.WAY
        assert "excludes it on this call path" in str(refusal(broken, made.guest.image, "a test"))


def test_a_fact_that_is_false_on_one_call_path_ends_in_a_contradiction(monkeypatch):
    """Where a freed block does not merge, its start is computed from the payload, 8 bytes behind a multiple of 16.

    Frees of the set-up take that path, and no second engine runs here. As a long one is, the set-up is replayed in
    translated code too: the true facts hold there, and what is false is refused in the same words.
    """
    allocator = load_allocator("buddy-binary")
    ((name, text),) = allocator.facts
    true, false = (f'functions = ["push"]\nmultiple_of = "{one}"' for one in ("alignment", "minimum_block"))
    assert true in text
    request = ProbeRequest(
        allocator=replace(allocator, facts=((name, text.replace(true, false)),)),
        target=TARGET,
        scenario="worst-free",
        heap_bytes=5008,
        seed=1,
        initial_cache=None,
        compiler="zig",
        cross_check=False,
        prove=True,
        cache_dir=images_dir(),
    )
    place = r"the store at buddy_binary_free.* in the set-up of worst-free.* on this call path; the fact .* of it"
    proofs: dict[object, Bound] = {}

    def proving(program: Program, role: str, heap_bytes: int) -> Bound:
        key = program.allocator.facts, role
        proofs[key] = proofs.get(key) or prove_operation(program, role, heap_bytes)
        return proofs[key]

    with pytest.raises(ContradictionError, match=place) as refused:
        observe(request, proving=proving)
    answer = observe(replace(request, allocator=allocator), proving=proving)
    assert answer.bound
    monkeypatch.setattr(supply, "LEAST_OPERATIONS", 0)
    monkeypatch.setattr(supply, "_COMPILED_FOR", dict.fromkeys(Detail, 0))
    used = []
    monkeypatch.setattr(machine, "TranslatedCode", lambda *given: used.append(given) or TranslatedCode(*given))
    with pytest.raises(ContradictionError) as refused_too:
        observe(request, proving=proving)
    assert str(refused_too.value) == str(refused.value)
    assert observe(replace(request, allocator=allocator), proving=proving) == answer
    assert used


NAMES = ["budgeted:tlsf" if name == "budgeted" else name for name in allocator_names()]
FACTS_ABOUT_POINTERS = [name for name in NAMES if any("[[pointer]]" in text for _, text in load_allocator(name).facts)]
SIZES = (1, 7, 12, 24, 40, 100, 300, 900)


def hold_calls(name: str, target: str, heap_bytes: int, calls: int, seed: int) -> int:
    """Every malloc and free of a random caller, which writes into its blocks, held against its bound."""
    program = load_program(load_allocator(name), load_target(target), "zig", images_dir(), heap_bytes)
    bounds = {role: prove_operation(program, role, heap_bytes) for role in ("malloc", "free")}
    caller, blocks, held_accesses = Caller(program, seed), {}, 0
    assert caller.call("init", caller.heap, heap_bytes).result == 0

    def held_call(role: str, *arguments: int) -> int:
        nonlocal held_accesses
        done, stack = caller.call(role, *arguments), caller.stack
        frames = MemoryRange(stack.base_address, stack.size_bytes - 64)
        given = done.path, done.accesses, program.image, program.target
        check_call_path(bounds[role], *given, frames=frames, subject=f"{role}{arguments}")
        held_accesses += len(done.accesses)
        return done.result

    for _ in range(calls):
        if blocks and caller.random.random() < 0.45:
            block = caller.random.choice(sorted(blocks))
            caller.scribble(block, blocks.pop(block))
            held_call("free", block)
            continue
        size_bytes = caller.random.choice(SIZES)
        block = held_call("malloc", size_bytes, caller.random.randrange(128))
        if block:
            blocks[block] = size_bytes
            caller.scribble(block, size_bytes)
    return held_accesses


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpc603e", "arm926ej-s", "cortex-m7"])
@pytest.mark.parametrize("name", FACTS_ABOUT_POINTERS)
def test_accesses_of_calls_are_where_facts_say_on_their_paths(name, target):
    assert hold_calls(name, target, 4992, 150, seed=1) > 300
