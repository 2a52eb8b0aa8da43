"""How far pointers move: no access of a run is outside of what is said of it."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from tests.analyzer.walking_pointers import walking
from tests.emu.second_engine import interpret
from tests.end_to_end.test_cache_soundness import analysed, check
from tests.support import guest_of
from wcet_probe.analyzer.dcache.pointer_extents import Extent, PointerExtents, _checked
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, EmulationError
from wcet_probe.model.scenario import InitialCache

CORES = ("mpc603e", "arm926ej-s", "cortex-m4")
WIDE = 1 << 14


def extents_of(one):
    stage = one.prepared.bounded({})
    return PointerExtents(stage.prepared.values, {loop.header: loop.max_header for loop in stage.loops.flow})


def refuted(source, target, words=(0, 3, 0xFFFF_FFFF)):
    """How many wide accesses have an extent; no run is outside of one."""
    guest = guest_of(source, load_target(target), ".c")
    try:
        one = analysed(guest, "f")
        extents = extents_of(one)
    except AnalysisError:
        return 0
    known, told = defaultdict(list), 0
    for accesses in one.prepared.values.accesses.values():
        for access in accesses:
            found = extents.of(access)
            known[access.instruction_address].append(found)
            told += found is not None and access.offset.extent > WIDE
    stack_register = guest.target.isa.stack_pointer
    with guest.machine() as machine:
        memory, registers = machine.memory.snapshot(), machine.entry_registers((0,))
        for word in words:
            registers = machine.entry_registers((word,))
            try:
                done = interpret(guest, memory, registers, "f")
            except EmulationError:
                return 0  # it walked too far
            for access in done.accesses:
                said = known[access.instruction_address]
                assert said
                if None not in said:
                    stack = registers[stack_register]
                    places = [(one, access.address - stack * (one.base is Base.STACK)) for one in said]
                    is_in = any(one.low <= place <= one.high for one, place in places)
                    assert is_in, (source, target, hex(access.instruction_address), hex(access.address), said)
    return told


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", CORES)
def test_no_access_is_outside_of_its_extent(target):
    assert sum(refuted(walking(seed), target) for seed in range(6)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("target", CORES)
@pytest.mark.parametrize("part", range(10))
def test_no_access_is_outside_of_its_extent_in_many_programs(target, part):
    assert sum(refuted(walking(seed), target) for seed in range(1000 + 40 * part, 1040 + 40 * part)) > 40


@pytest.mark.covering(0)
@pytest.mark.parametrize("seed", range(6))
def test_no_run_of_a_walking_program_is_above_its_bound_in_small_caches(seed):
    guest = guest_of(walking(seed), load_target("mpc603e"), ".c")
    draw = random.Random(seed)
    try:
        one = analysed(guest, "f")
        one.prepared.bounded({})
    except AnalysisError:
        return
    for ways, policy in ((4, "lru"), (8, "plru"), (4, "fifo"), (2, "random")):
        spec = f"d:sets={draw.choice((16, 64, 128))},ways={ways},line=32,policy={policy},write=back,allocate=yes"
        assert check(one, spec, [(0,), (5,), (0xFFFF_FFFF,)]) == 3 * len(InitialCache)


NEST = """unsigned a[400];
unsigned f(unsigned n) {
  unsigned s = n;
  for (unsigned i = 0; i < 7; i++) {
    unsigned *p = a + 10;
    for (unsigned j = 0; j < 5; j++) { if (s & 1) { s += *p; p += 3; } else { s ^= *p; p += 2; } }
  }
  return s; }
"""


def test_a_pointer_that_begins_anew_moves_no_further_than_in_one_round():
    guest = guest_of(NEST, load_target("mpc603e"), ".c")
    one = analysed(guest, "f")
    extents, table = extents_of(one), guest.address("a")
    found = {extents.of(access) for own in one.prepared.values.accesses.values() for access in own}
    assert None not in found
    assert min(extent.low for extent in found if extent.base is Base.NUMBER) == table + 40
    # Each of two ways moves it on as often as there are rounds, as far as is known.
    assert max(extent.high for extent in found if extent.base is Base.NUMBER) <= table + 40 + 4 * 5 * (2 + 3)


def test_nothing_is_said_without_the_bound_of_a_loop_or_past_the_last_address():
    one = analysed(guest_of(NEST, load_target("mpc603e"), ".c"), "f")
    extents = PointerExtents(one.prepared.values, {})
    assert None in {extents.of(access) for own in one.prepared.values.accesses.values() for access in own}
    assert _checked(Extent(Base.NUMBER, -4, 0)) is None
    assert _checked(Extent(Base.NUMBER, 0, 1 << 32)) is None
    assert _checked(Extent(Base.STACK, -4, 0)) == (Base.STACK, -4, 0)


def test_sums_of_extents():
    stack, number = Extent(Base.STACK, -8, 0), Extent(Base.NUMBER, 1, 3)
    assert number.plus(number, -2) == (Base.NUMBER, -5, 1)
    assert number.plus(stack) == (Base.STACK, -7, 3)
    assert stack.plus(stack) is None
    assert number.plus(stack, 4) is None
