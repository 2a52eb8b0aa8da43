"""Buckets by L11's method: the greedy and the exhaustive choice against the definition, and what is built of them."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.support import images_dir
from wcet_probe.answer.workloads.budgeting import EffectRequest, Profile, exhaustive, greedy, measure_effect, profile
from wcet_probe.answer.workloads.workload_run import WorkloadRequest, run_workload
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.model.target import without_caches
from wcet_probe.scenarios.workloads.lee import CONFIGURATIONS, DISTRIBUTIONS, lee_scenario
from wcet_probe.scenarios.workloads.named import workload
from wcet_probe.traces.operations import TraceRow, heap_operations

TARGET = without_caches(load_target("cortex-m4"))


@st.composite
def traces(draw):
    """Rows of a trace of three sizes."""
    rows, held, block = [], [], 0
    for _ in range(draw(st.integers(1, 25))):
        if held and draw(st.booleans()):
            rows.append(TraceRow("free", held.pop(draw(st.integers(0, len(held) - 1)))))
        else:
            block += 1
            held.append(block)
            rows.append(TraceRow("malloc", block, draw(st.sampled_from((8, 24, 40)))))
    return rows


def live_at_all_times(rows, sizes):
    """P_i(t) behind each row, and the bytes of other sizes, by the definition."""
    size_of, now, other, found = {}, dict.fromkeys(sizes, 0), 0, []
    for row in rows:
        size, by = (row.size_bytes, 1) if row.kind == "malloc" else (size_of[row.block], -1)
        size_of[row.block] = size
        if size in now:
            now[size] += by
        else:
            other += by * size
        found.append((tuple(now.values()), other))
    return found


@settings(max_examples=examples(25), deadline=None)
@given(traces(), st.sampled_from(((40, 24, 8), (40, 8), (24,))))
def test_both_choices_against_the_definition(rows, sizes):
    times = live_at_all_times(rows, sizes)

    def used(buckets):
        return max(
            other + sum(s * max(n, p) for s, n, p in zip(sizes, buckets, live, strict=True)) for live, other in times
        )

    found = profile(lambda: rows, sizes)
    most = [max(live[i] for live, _ in times) for i in range(len(sizes))]
    limit = used((0,) * len(sizes))
    assert found.most_live == tuple(most)
    allowed = [n for n in itertools.product(*(range(p + 1) for p in most)) if used(n) <= limit]
    best = max(sum(s * n for s, n in zip(sizes, buckets, strict=True)) for buckets in allowed)
    quick, whole = greedy(found), exhaustive(found)
    assert (quick.most_used_bytes, whole.most_used_bytes) == (limit, limit)
    assert quick.buckets in allowed
    assert whole.buckets in allowed
    assert whole.dedicated_bytes == best >= quick.dedicated_bytes
    assert quick.most_used_with_buckets_bytes == used(quick.buckets)


def test_the_sizes_with_most_bytes_are_chosen():
    rows = [TraceRow("malloc", number, size) for number, size in enumerate((1, 1, 1, 50, 9, 9), 1)]
    assert profile(lambda: rows, most_sizes=2).sizes == (50, 9)


def test_what_cannot_be_chosen():
    with pytest.raises(UsageError, match="0 sizes are to have buckets; give 1 to 8"):
        profile(list)
    with pytest.raises(UsageError, match="choices of buckets are too many"):
        exhaustive(profile(lambda: workload("l11-s-oc2s").rows(0, 0)))


def test_buckets_are_built_and_serve_all_that_they_are_meant_for():
    rows = workload("l11-s-ocs").rows
    chosen = greedy(profile(lambda: rows(0, 0)))
    assert set(chosen.buckets) == {100}
    request = EffectRequest("tlsf", "l11", TARGET, 1 << 20, "zig", images_dir())
    effect = measure_effect(request, chosen, lambda: rows(0, 0))
    assert (effect.refused, effect.refused_with_buckets) == (0, 0)
    strides = sum(-(-size // 8) * 8 * 100 for size in chosen.sizes)
    assert effect.reached_with_buckets_bytes == strides < effect.reached_bytes
    assert effect.code_with_buckets_bytes > effect.code_bytes


def test_sizes_without_buckets_are_left_out_of_the_build():
    found = profile(lambda: workload("l11-n-oc2s").rows(0, 0))
    chosen = greedy(found)
    assert sum(map(bool, chosen.buckets)) == chosen.parameters["budget-objects"] < 8
    nothing = Profile((16,), found.live[:, :1] * 0, found.other_bytes)
    assert greedy(nothing).parameters == {
        "budget-objects": 1,
        "budget-configuration": 5,
        "budget-size-1": 16,
        "budget-buckets-1": 0,
    }


def test_an_allocator_with_no_buckets_is_as_one_without():
    values = {"budget-objects": 1, "budget-configuration": 5, "budget-size-1": 16, "budget-buckets-1": 0}
    allocators = load_allocator("tlsf"), load_allocator("budgeted:tlsf", values)
    runs = [
        run_workload(
            WorkloadRequest(one, TARGET, 64 << 10, "zig", images_dir()),
            heap_operations(workload("mean").rows(0, 300)),
        )
        for one in allocators
    ]
    assert runs[0].peak_reached_bytes == runs[1].peak_reached_bytes


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_distributions_over_time(kind):
    """100 of each size at most; all at once under td_s, one size at a time under td_n, some with seed 3 under td_r."""
    sizes = CONFIGURATIONS["oc2s"]
    live = [one for one, _ in live_at_all_times(list(lee_scenario(kind, sizes, 3)), sizes)]
    assert [max(column) for column in zip(*live, strict=True)] == [100] * 8
    assert live[-1] == (0,) * 8
    at_once = max(sum(map(bool, row)) for row in live)
    assert at_once == {"s": 8, "n": 1, "o": 4, "r": 7}[kind]
