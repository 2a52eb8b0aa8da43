"""A claim that is false on the path that a call took is refused, though other call paths allow what the run showed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.path_check import Proved, lifter_of, proved
from tests.support import assembler, guest_of, images_dir
from wcet_probe.analyzer.pcode.interpreter import Interpretation, interpret_call
from wcet_probe.answer.call_paths import check_call_path
from wcet_probe.answer.contradiction import check_accesses
from wcet_probe.answer.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.emu.machine import RETURN_ADDRESS
from wcet_probe.errors import ContradictionError
from wcet_probe.model.proof import Bound
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
    with guest.machine() as machine:
        registers = machine.entry_registers(arguments)
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


def with_claims(made: Proved, *changes: dict[str, object]) -> Bound:
    """The bound with changes of what is said of the last function's load, one for each of its points."""
    load = max(one.address for one in made.bound.accesses if not one.is_store)
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
    if not is_false:
        return held(made, bound, done)
    with pytest.raises(ContradictionError, match=r"the load at g.* against what the proof says .*on this call path"):
        held(made, bound, done)


def test_the_fact_of_the_path_is_named():
    made, done = twice()
    bound = with_claims(made, exactly(HEAP + 40) | {"fact": "a.toml:1"}, exactly(HEAP) | {"fact": "a.toml:2"})
    with pytest.raises(ContradictionError, match=r"call path; the fact a\.toml:1 speaks of it"):
        held(made, bound, done)


def test_a_claim_without_a_point_is_of_all():
    made, done = twice()
    bound = with_claims(made, exactly(HEAP) | {"point": None}, exactly(HEAP + 40) | {"point": None})
    held(made, bound, done)


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
    if not is_false:
        return held(made, bound, done)
    with pytest.raises(ContradictionError, match="on this call path"):
        held(made, bound, done)


def test_a_way_that_the_values_exclude_is_refused():
    made, done = twice()
    edges = made.bound.point_edges
    held(made, made.bound, done)
    for left in range(len(edges)):
        with pytest.raises(ContradictionError, match="excludes on this call path"):
            held(made, replace(made.bound, point_edges=edges[:left] + edges[left + 1 :]), done)


def test_a_fact_that_is_false_on_one_call_path_ends_in_a_contradiction():
    """Where a freed block does not merge, its start is computed from the payload, 8 bytes behind a multiple of 16."""
    allocator = load_allocator("buddy-binary")
    ((name, text),) = allocator.facts
    true, false = (f'functions = ["push"]\nmultiple_of = "{one}"' for one in ("alignment", "minimum_block"))
    assert true in text
    request = ProbeRequest(
        allocator=replace(allocator, facts=((name, text.replace(true, false)),)),
        target=TARGET,
        scenario="best-free",
        heap_bytes=4992,
        seed=1,
        initial_cache=None,
        compiler="zig",
        cross_check=True,
        prove=True,
        cache_dir=images_dir(),
    )
    with pytest.raises(
        ContradictionError, match=r"the store at buddy_binary_free.* on this call path; the fact .* of it"
    ):
        observe(request)
    assert observe(replace(request, allocator=allocator)).bound
