"""What operations of a replay touch of the data cache, against the same operations measured one by one."""

import random
from dataclasses import replace

import pytest

from tests.support import cache_config, guest_on, images_dir, trace_of
from wcet_probe.build.compilation import build_image
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache

HEAP_BYTES = 1 << 14
TARGETS = ("mpc603e", "arm926ej-s", "cortex-m7")


def machine_of(target):
    guest = guest_on(build_image(load_allocator("tlsf"), target, "zig", images_dir()), target)
    machine = Machine(guest.image, target, guest.instructions, guest.costs, HEAP_BYTES)
    machine.call("tlsf_init", machine.heap.base_address, HEAP_BYTES)
    return machine


def operations(count, seed=1):
    draw, live, found = random.Random(seed), [], []
    for slot in range(count):
        if live and draw.random() < 0.45:
            found.append((1, live.pop(draw.randrange(len(live))), 0))
        else:
            live.append(slot)
            found.append((0, slot, 1 + draw.randrange(300)))
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_each_operation_touches_what_it_does_when_it_is_measured_alone(name):
    target, rows = load_target(name), operations(60)
    every = range(target.dcache.sets)
    with machine_of(target) as machine:  # the stack is at another place than where one call is measured
        found = machine.replay_sets(trace_of(rows), {"stack": every})
    touched = {0: {}, 1: {}}
    with machine_of(target) as machine:
        blocks = {}
        for number, (kind, slot, size) in enumerate(rows):
            call, argument = ("tlsf_free", blocks.get(slot)) if kind else ("tlsf_malloc", size)
            counts = machine.measure(call, (argument,), InitialCache.COLD)
            blocks[slot] = counts.result
            assert found.arguments[number] == argument
            assert kind or found.results[number] == counts.result
            by_region = counts.touched_sets_by_region.items()
            sets_but_stack = set().union(*(sets for region, sets in by_region if region != "stack"))
            assert found.accesses[number] == counts.dcache.hits + counts.dcache.misses
            assert found.unexpected[number] == len(sets_but_stack)
            assert found.accesses[number] >= found.most_in_set[number] >= 1
            first = found.first_accesses(number)
            assert len(first) == min(4, found.unexpected[number])
            cache = target.dcache
            sets = {address // cache.line_bytes % cache.sets for _, address in first}
            assert len(sets) == len(first)
            assert sets <= sets_but_stack
            for region, indices in by_region:
                name = "heap" if region.startswith("heap") else region
                touched[kind][name] = touched[kind].get(name, frozenset()) | set(indices)
    for kind, regions in found.touched.items():
        assert {region: sets for region, sets in regions.items() if region != "stack" and sets} == {
            region: sets for region, sets in touched[kind].items() if region != "stack" and sets
        }


def test_expected_sets_are_expected_of_their_region_only():
    target, trace = load_target("mpc603e"), trace_of(operations(40))
    every = frozenset(range(target.dcache.sets))
    with machine_of(target) as machine:
        everything = machine.replay_sets(trace, dict.fromkeys(machine.memory.regions, every))
    assert not any(everything.unexpected)
    with machine_of(target) as machine:
        found = machine.replay_sets(trace, {"static": every, "stack": every, "code": every})
        heap = machine.heap
    assert all(found.unexpected)
    assert all(address in heap for number in range(40) for _, address in found.first_accesses(number))
    with machine_of(target) as machine:
        assert machine.replay_sets(trace_of([]), {}).accesses == found.accesses[:0]


def test_a_replay_behind_it_is_not_watched():
    with machine_of(load_target("mpc603e")) as machine:
        machine.replay_sets(trace_of(operations(40)), {})
        assert machine.replay_observed(trace_of([(0, 50, 8)])) == 0


def test_the_most_in_a_set_is_counted():
    """One set: all accesses are to it, and one set is touched."""
    target = replace(load_target("mpc603e"), dcache=cache_config(sets=1, ways=4, line_bytes=32))
    with machine_of(target) as machine:
        found = machine.replay_sets(trace_of(operations(20)), {})
    assert found.most_in_set == found.accesses
    assert set(found.unexpected) == {1}


def test_what_cannot_be_watched():
    with machine_of(load_target("cortex-m4")) as machine, pytest.raises(UsageError, match="has no data cache"):
        machine.replay_sets(trace_of([(0, 0, 8)]), {})
    with machine_of(load_target("mpc603e")) as machine, pytest.raises(UsageError, match="too many to watch"):
        machine.replay_sets(trace_of([(0, 0, 8)] * ((1 << 20) + 1)), {})
