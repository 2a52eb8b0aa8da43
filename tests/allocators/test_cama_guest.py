"""CAMA in the emulator, on every target and in every build: against the model; the sets that a call touches."""

from __future__ import annotations

import pytest

from tests.support import TARGETS, guest_on, images_dir
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.scenario import InitialCache
from wcet_probe.scenarios.cama.heap import Cama

from .cama_builds import MALLOC, PARAMETERS, Violation, geometry_of, random_steps


def guest(target_name, values):
    allocator, target = load_allocator("cama", values), load_target(target_name)
    return guest_on(build_image(allocator, target, PACKAGED, images_dir()), target)


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("target_name", TARGETS)
def test_guests_do_what_the_model_says(target_name, name):
    geometry, heap_bytes = geometry_of(PARAMETERS[name], 4), 1 << 17
    with guest(target_name, PARAMETERS[name]).machine(heap_bytes) as machine:
        base = machine.heap.base_address
        assert machine.call("cama_init", base, heap_bytes) == 0
        for code, argument, other, start in random_steps(3, geometry, heap_bytes, 60):
            if code == MALLOC:
                assert machine.call("cama_malloc", argument, other) == (0 if start is None else base + start)
            else:
                machine.call("cama_free", base + other)
            assert machine.call("cama_check") == Violation.HEAP_SOUND


@pytest.mark.parametrize("values", [{}, {"descriptor-first-set": 32}], ids=["sets-0-31", "sets-32-63"])
def test_a_call_touches_the_reserved_sets_and_the_blocks_own(values):
    geometry, heap_bytes = geometry_of(values, 4), 1 << 17
    reserved = set(range(geometry.first_set, geometry.first_set + geometry.reserved_sets))
    with guest("mpc603e", values).machine(heap_bytes) as machine:
        base = machine.heap.base_address
        assert machine.call("cama_init", base, heap_bytes) == 0
        for code, argument, other, start in random_steps(5, geometry, heap_bytes, 150):
            if code == MALLOC:
                measured = machine.measure("cama_malloc", (argument, other), InitialCache.COLD)
                own = {other, (other - 1) % geometry.sets} if start is not None else set()
                block = start
            else:
                measured = machine.measure("cama_free", (base + other,), InitialCache.COLD)
                own, block = {geometry.set_of(other), geometry.set_of(other - 4)}, other
            regions = measured.touched_sets_by_region
            assert set(regions["static"]) <= reserved
            assert set(regions["heap_blocks"]) | set(regions["heap_metadata"]) <= reserved | own
            assert not regions["code"]
            if block is not None:
                assert geometry.set_of(block - 4) in {
                    geometry.set_of(block),
                    (geometry.set_of(block) - 1) % geometry.sets,
                }
            stack = set(regions["stack"])
            assert set(measured.touched_data_sets) <= reserved | own | stack


def test_descriptors_and_static_data_are_in_the_reserved_sets():
    values = {"descriptor-first-set": 32}
    geometry, heap_bytes = geometry_of(values, 4), 1 << 17
    reserved = range(geometry.first_set, geometry.first_set + geometry.reserved_sets)
    model = Cama(geometry, heap_bytes)
    with guest("mpc603e", values).machine(heap_bytes) as machine:
        base = machine.heap.base_address
        assert machine.call("cama_init", base, heap_bytes) == 0
        seen = set()
        while (start := model.malloc(200, geometry.set_of(model.top))) is not None:
            assert machine.call("cama_malloc", 200, geometry.set_of(start)) == base + start
            seen.add(machine.memory.read_word(base + start - 4))
        assert len(seen) > 100
        assert all(geometry.set_of(d) in reserved and geometry.set_of(d + 23) in reserved for d in seen)
