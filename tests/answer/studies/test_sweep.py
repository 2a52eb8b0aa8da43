"""The matrix and growth over allocators: laws that must hold whatever the numbers are."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.support import images_dir
from wcet_probe.answer.studies.sweep import grow, matrix
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target

KIB = 1024
PUBLISHED_ORDER = ("half-fit", "tlsf", "buddy-binary", "avl-best-fit", "first-fit", "best-fit", "dlmalloc27")
"""C06 table 3: worst-case instructions of one malloc, fewest first."""


def request_for(name, target="cortex-m4", scenario="worst-alloc", heap_bytes=64 * KIB):
    return ProbeRequest(
        allocator=load_allocator(name),
        target=load_target(target),
        scenario=scenario,
        heap_bytes=heap_bytes,
        seed=0,
        initial_cache=None,
        compiler="zig",
        cross_check=False,
        cache_dir=images_dir(),
    )


NAMES = allocator_names()


@pytest.mark.parametrize(
    ("names", "heap_bytes"),
    [
        (NAMES[::5], 16 * KIB),
        pytest.param(NAMES, 16 * KIB, marks=pytest.mark.slow),
        pytest.param(NAMES, 64 * KIB, marks=pytest.mark.slow),
    ],
)
def test_no_allocator_is_slower_in_the_state_of_another_than_in_its_own(names, heap_bytes):
    """In instructions: a state built for somebody else that is worse would be the worst state."""
    requests = [request_for(name, heap_bytes=heap_bytes) for name in names]
    worst = {r.allocator.name: max(c.instructions for c in observe(r).candidates) for r in requests}
    rows = defaultdict(dict)
    for cell in matrix(requests):
        rows[cell.allocator][cell.state_of] = cell.instructions
    assert set(rows) == set(names)
    for name, row in rows.items():
        assert set(row) == set(rows)
        assert max(count for count in row.values() if count is not None) <= worst[name], name


@pytest.mark.parametrize("name", ["half-fit", "tlsf", "cama"])
@pytest.mark.parametrize("scenario", ["worst-alloc", "worst-free"])
def test_constant_time_is_constant(name, scenario):
    found = grow(request_for(name, scenario=scenario), [64 * KIB, 256 * KIB, 1024 * KIB])
    assert found.exact
    assert found.holds
    assert len({sample.instructions for sample in found.samples}) == 1


@pytest.mark.parametrize(("name", "per_node"), [("first-fit", 7), ("best-fit", 8)])
def test_list_walkers_are_exactly_linear_in_the_nodes_visited(name, per_node):
    found = grow(request_for(name), [16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB])
    assert found.exact
    assert f"+ {per_node}·d with nodes visited" in found.formula
    assert [s.driver_value for s in found.samples] == [(s.heap_bytes - 16) // 32 for s in found.samples]


@pytest.mark.slow
@pytest.mark.parametrize("first", [256 * KIB, 512 * KIB])
def test_claims_of_dlmalloc27_do_not_hold(first):
    malloc = grow(request_for("dlmalloc27"), [first // 2, first, 2 * first])
    free = grow(request_for("dlmalloc27", scenario="worst-free"), [first, 2 * first, 4 * first])
    assert (malloc.shape.value, malloc.holds) == ("quadratic", False)
    assert (free.shape.value, free.holds) == ("linear", False)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_the_order_of_worst_cases_that_c06_prints(target):
    counts = [
        observe(request_for(name, target, heap_bytes=4096 * KIB)).measurement.instructions for name in PUBLISHED_ORDER
    ]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(counts)
