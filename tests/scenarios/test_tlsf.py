"""TLSF's scenarios: the states are reached, they are as bad as is known, and no random workload meets a worse one."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenarios.reports import most_instructions
from tests.support import CHOICES, DEFAULTS, TARGETS, images_dir, tlsf, tlsf_guest, trace_of
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import BuildError, StateError, UsageError
from wcet_probe.model.report import Report
from wcet_probe.model.scenario import OperationKind, ScenarioPlan
from wcet_probe.model.target import Target
from wcet_probe.scenarios.families import Extreme, GuestHeap, HeapRequest, extreme_of
from wcet_probe.scenarios.lookup import DESCRIPTIONS, describe, family, scenario_names
from wcet_probe.scenarios.tlsf_heap import HEADER_BYTES, Classes, Layout, walk

SCENARIOS = scenario_names("tlsf")
KIB, MIB = 1 << 10, 1 << 20
HEAPS = (4 * KIB, 5000, 64 * KIB, 100_008, MIB, 4 * MIB, 64 * MIB)
USUAL = [heap if heap <= MIB else pytest.param(heap, marks=pytest.mark.slow) for heap in HEAPS]
FROM_64_KIB = [tuple(heap for heap in HEAPS if 64 * KIB <= heap <= most) for most in (MIB, HEAPS[-1])]
# The longest paths through the default build, found by walking its control flow.
LONGEST = {
    "worst-alloc": {"cortex-m4": 112, "arm926ej-s": 103, "mpc603e": 123},
    "worst-free": {"cortex-m4": 109, "arm926ej-s": 109, "mpc603e": 126},
}


@cache
def report(target: str, scenario: str, heap_bytes: int, sl_bits: int = 5, bit_search: int = 0) -> Report:
    """What the probe answers; it proves the state on its way."""
    allocator = tlsf({"sl-bits": sl_bits, "bit-search": bit_search})
    return observe(request(load_target(target), scenario, heap_bytes, allocator))


def request(target: Target, scenario: str, heap_bytes: int, allocator=None, seed: int = 1) -> ProbeRequest:
    return ProbeRequest(
        allocator or tlsf(), target, scenario, heap_bytes, seed, None, "zig", cross_check=False, cache_dir=images_dir()
    )


def fewest_instructions(found: Report) -> int:
    return min(candidate.instructions for candidate in found.candidates)


def plans(scenario: str, heap_bytes: int, line_bytes: int | None = None, seed: int = 1, **values: int):
    allocator = tlsf(DEFAULTS | {name.replace("_", "-"): value for name, value in values.items()})
    return family("tlsf").builders[scenario](HeapRequest(allocator, heap_bytes, line_bytes, seed))


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("heap_bytes", USUAL)
def test_the_state_is_reached_and_proved(target, scenario, heap_bytes):
    found = report(target, scenario, heap_bytes)
    assert found.checks
    assert all(check.predicted == check.found for check in found.checks)
    assert {check.fact for check in found.checks} == set(found.plan.prediction)
    assert len({candidate.variant for candidate in found.candidates}) == len(found.candidates)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("values", CHOICES)
@pytest.mark.parametrize("heap_bytes", [4 * KIB, MIB])
def test_every_build_reaches_every_state(target, scenario, values, heap_bytes):
    assert report(target, scenario, heap_bytes, values["sl-bits"], values["bit-search"]).checks


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", LONGEST)
@pytest.mark.parametrize("heaps", [FROM_64_KIB[0], pytest.param(FROM_64_KIB[1], marks=pytest.mark.slow)], ids=len)
def test_the_worst_is_the_longest_path_whatever_the_heap(target, scenario, heaps):
    found = {heap: most_instructions(report(target, scenario, heap)) for heap in heaps}
    assert found == dict.fromkeys(heaps, LONGEST[scenario][target])


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("values", CHOICES)
@pytest.mark.parametrize("operation", ["alloc", "free"])
def test_worst_is_worse_than_best(target, values, operation):
    build = (values["sl-bits"], values["bit-search"])
    for heap in (4 * KIB, 64 * KIB, MIB):
        worst, best = (report(target, f"{which}-{operation}", heap, *build) for which in ("worst", "best"))
        assert fewest_instructions(worst) > most_instructions(best)
        assert worst.measurement.cycles > best.measurement.cycles


def test_the_answer_is_the_extreme_of_its_candidates():
    for target in TARGETS:
        for scenario in SCENARIOS:
            found = report(target, scenario, 64 * KIB)
            cycles = [candidate.cycles for candidate in found.candidates]
            wanted = min if extreme_of(scenario) is Extreme.FEWEST_CYCLES else max
            assert found.measurement.cycles == wanted(cycles)


# ------------------------------------------------------------------------------------------------------- falsification


def workload(seed: int, operations: int, heap_bytes: int, largest: int) -> list[tuple[int, int, int]]:
    """Allocations of sizes spread over all classes, deallocations in three moods: random, oldest first, all."""
    draw = random.Random(seed)
    rows, live, slot = [], [], 0
    blocks = max(4, min(300, heap_bytes // 128))
    while len(rows) < operations:
        if live and (len(live) >= blocks or draw.random() < 0.45):
            rows.append((1, live.pop(0 if draw.random() < 0.2 else draw.randrange(len(live))), 0))
        else:
            bits = draw.randrange(3, largest.bit_length())
            size = draw.choice((1 << bits, (1 << bits) + draw.randrange(1 << bits), (1 << bits) - 1, (1 << bits) + 1))
            rows.append((0, slot, size))
            live.append(slot)
            slot += 1
    return rows


WORKLOADS = ((64 * KIB, 4 * KIB), (64 * KIB, 64 * KIB), (MIB, 64 * KIB), (MIB, MIB))
BUILDS = [(target, values) for target in TARGETS for values in CHOICES]


@pytest.mark.covering(0)
@pytest.mark.parametrize(("target", "values"), BUILDS)
def test_no_random_operation_is_worse_than_the_worst(target, values):
    for heap_bytes, largest in WORKLOADS:
        falsify(target, values, heap_bytes, largest)


def falsify(target: str, values: dict[str, int], heap_bytes: int, largest: int) -> None:
    build = (values["sl-bits"], values["bit-search"])
    worst = [most_instructions(report(target, f"worst-{which}", heap_bytes, *build)) for which in ("alloc", "free")]
    best = [fewest_instructions(report(target, f"best-{which}", heap_bytes, *build)) for which in ("alloc", "free")]
    with tlsf_guest(target, values).machine(heap_bytes) as machine:
        for seed in range(2):
            assert machine.call("tlsf_init", machine.heap.base_address, heap_bytes) == 0
            rows = workload(seed, 2500, heap_bytes, largest)
            counts = machine.replay_counted(trace_of(rows))
            assert machine.call("tlsf_check") == 0
            for kind in (0, 1):
                met = [count for (which, _, _), count in zip(rows, counts, strict=True) if which == kind]
                assert max(met) <= worst[kind], (kind, seed)
            # Nothing that succeeds is cheaper than the best; a refusal and a free of NULL may be.
            slots = {slot for which, slot, _ in rows if which == 0 and machine.slot(slot)}
            served = [n for (which, slot, _), n in zip(rows, counts, strict=True) if which == 0 and slot in slots]
            assert min(served, default=best[0]) >= best[0]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 32), operations=st.integers(10, 150))
def test_no_short_workload_is_worse_than_the_worst_on_a_small_heap(target, seed, operations):
    worst = [most_instructions(report(target, f"worst-{which}", 64 * KIB)) for which in ("alloc", "free")]
    with tlsf_guest(target).machine(8 * KIB) as machine:
        machine.call("tlsf_init", machine.heap.base_address, 8 * KIB)
        rows = workload(seed, operations, 8 * KIB, 4 * KIB)
        for (kind, _, _), count in zip(rows, machine.replay_counted(trace_of(rows)), strict=True):
            assert count <= worst[kind]


# -------------------------------------------------------------------------------------------------------------- layout


@pytest.mark.parametrize("sl_bits", [4, 5])
@settings(max_examples=12)
@given(data=st.data())
def test_a_layout_has_exactly_the_sizes_that_were_asked_for(sl_bits, data):
    classes, heap_bytes = Classes(sl_bits), 128 * KIB
    layout = Layout(classes, heap_bytes)
    expected: list[tuple[int, bool]] = []
    for _ in range(data.draw(st.integers(1, 6))):
        kind = data.draw(st.sampled_from(("free", "used", "aligned")))
        size = 8 * data.draw(st.integers(1, 1500))
        if kind == "used":
            size = classes.floor(size)
            layout.used(size)
        elif kind == "free":
            layout.free(size)
        else:
            line = data.draw(st.sampled_from((16, 32, 64)))
            layout.fence_until(data.draw(st.integers(0, line // 8 - 1)) * 8, line)
            continue
        expected.append((layout.position_bytes - size - HEADER_BYTES, kind == "free"))
        layout.fence()
    trace = layout.trace()
    with tlsf_guest("arm926ej-s", {"sl-bits": sl_bits, "bit-search": 0}).machine(heap_bytes) as machine:
        assert machine.call("tlsf_init", machine.heap.base_address, heap_bytes) == 0
        assert machine.replay(trace) == 0
        assert machine.call("tlsf_check") == 0
        heap = GuestHeap(
            read=machine.memory.read,
            read_word=machine.memory.read_word,
            slot=machine.slot,
            symbols={},
            heap=machine.heap,
            values={"sl-bits": sl_bits, "bit-search": 0},
        )
        blocks = {b.address - machine.heap.base_address: b for b in walk(heap)}
    assert all(blocks[offset].free == free for offset, free in expected)
    free_bytes = sum(b.size_bytes for b in blocks.values() if b.free)
    assert free_bytes == heap_bytes - HEADER_BYTES - sum(b.size_bytes for b in blocks.values() if not b.free)
    last = max(blocks)
    assert last + blocks[last].size_bytes == heap_bytes - HEADER_BYTES
    assert blocks[last].free == (layout.room_bytes > 0) or expected[-1][1]


SMALL = [(name, sl_bits, heap) for name in SCENARIOS for sl_bits in (4, 5) for heap in (24, 32, 64, 200, 1000, 2048)]


def remedy(scenario: str, sl_bits: int, heap_bytes: int) -> int | None:
    """The heap that the refusal of ``heap_bytes`` names, or None where there is no refusal."""
    try:
        plans(scenario, heap_bytes, 32, sl_bits=sl_bits)
    except UsageError as error:
        sentence = str(error)
    else:
        return None
    assert f"a heap of {heap_bytes} bytes" in sentence
    assert "--heap" in sentence
    words = sentence.split()
    return int(words[words.index("least") + 1]) if "least" in words else 2 * heap_bytes


@pytest.mark.parametrize(("scenario", "sl_bits", "heap_bytes"), SMALL)
def test_following_the_remedy_leads_to_a_heap_that_works(scenario, sl_bits, heap_bytes):
    steps = 0
    while larger := remedy(scenario, sl_bits, heap_bytes):
        assert larger > heap_bytes
        heap_bytes, steps = larger, steps + 1
    assert steps < 8


def test_the_remedy_works_at_once():
    named = [(name, sl_bits, remedy(name, sl_bits, heap)) for name, sl_bits, heap in SMALL]
    assert [row for row in named if row[2] and remedy(*row)] == []


@pytest.mark.covering
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "random"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_prediction_that_is_wrong_is_noticed(scenario, target, monkeypatch):
    """Each fact of each prediction, changed, must stop the probe."""
    chosen = family("tlsf")
    honest = chosen.builders[scenario]

    for fact in plans(scenario, 64 * KIB)[0].prediction:

        def tampered_plan(plan: ScenarioPlan, fact: str = fact) -> ScenarioPlan:
            return replace(plan, prediction={**plan.prediction, fact: int(plan.prediction[fact]) + 1})

        def lying(heap: HeapRequest, tamper=tampered_plan) -> tuple[ScenarioPlan, ...]:
            return tuple(map(tamper, honest(heap)))

        tampered = replace(chosen, builders=chosen.builders | {scenario: lying})
        monkeypatch.setattr("wcet_probe.answer.witness.probe.family_of", lambda _, tampered=tampered: tampered)
        sentence = rf"the state of {scenario} .* was not reached: {fact} is \d+, predicted was"
        with pytest.raises(StateError, match=sentence):
            observe(request(load_target(target), scenario, 64 * KIB))


def test_random_workloads_are_their_seeds():
    one, same, other = (plans("random", MIB, seed=seed)[0] for seed in (3, 3, 4))
    assert one == same
    assert one.trace != other.trace
    assert len(one.trace) >= 2000


def test_every_scenario_is_described():
    assert set(SCENARIOS) <= set(DESCRIPTIONS)
    assert all(describe(scenario) for scenario in SCENARIOS)
    with pytest.raises(UsageError, match="did you mean 'worst-alloc'"):
        describe("worst-aloc")
    with pytest.raises(UsageError, match="allocator 'tslf' has no scenarios"):
        scenario_names("tslf")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_plan_frees_each_block_at_most_once_and_only_live_ones(scenario):
    for heap_bytes in (4 * KIB, MIB):
        for plan in plans(scenario, heap_bytes, 32):
            live = set()
            for i in range(len(plan.trace)):
                operation = plan.trace[i]
                if operation.kind is OperationKind.MALLOC:
                    live.add(operation.slot)
                else:
                    live.remove(operation.slot)
            assert plan.measured.kind is OperationKind.MALLOC or plan.measured.slot in live
            assert plan.state
            assert plan.why


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free", "best-alloc", "random"])
@pytest.mark.parametrize(
    "values", [{"small-limit": 128}, {"tells-previous": 1}, {"sl-bits": 4, "small-limit": 128, "tells-previous": 1}]
)
def test_every_layout_and_limit_reaches_its_states(target, scenario, values):
    found = observe(request(load_target(target), scenario, 64 * KIB, tlsf(DEFAULTS | values)))
    assert found.checks
    assert found.measurement.result or found.plan.measured.kind is OperationKind.FREE


def test_a_first_row_of_wider_classes_than_sizes_is_refused():
    with pytest.raises(BuildError, match="a size of the first row has a class of its own"):
        observe(request(load_target("cortex-m4"), "worst-alloc", 64 * KIB, tlsf({"sl-bits": 4, "small-limit": 256})))
