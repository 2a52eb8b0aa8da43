"""Presets: each paper's for each allocator that it studies, and each reaches its worst states below a proved bound."""

from __future__ import annotations

import pytest

from tests.support import images_dir
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.model.report import Verdict

STUDIED = {
    "p02": ("first-fit", "best-fit", "btree-best-fit", "fast-fit", "quick-fit", "buddy-binary", "buddy-fibonacci"),
    "c06": ("first-fit", "best-fit", "buddy-binary", "dlmalloc27", "avl-best-fit", "half-fit", "tlsf"),
    "m06": ("first-fit", "best-fit", "buddy-binary", "dlmalloc27", "half-fit", "tlsf"),
    "l11": (
        *("budgeted", "kingsley", "dlmalloc28", "tlsf"),
        *("djgpp-cached", "djgpp-carve", "djgpp-quarters", "djgpp-sbrk", "djgpp-tags"),
    ),
    "h11": ("cama", "dlmalloc28", "tlsf"),
}
"""What each paper studies."""

VARIANTS = {"aligned": ("fast-fit", "avl-best-fit")}
"""Redesigns of no paper."""

SINGLE = [(preset, name) for preset, names in (STUDIED | VARIANTS).items() for name in names if name != "budgeted"]


def of_one_build() -> list[object]:
    """The presets, those of a build that another one has, too, or the default, marked as campaigns.

    Of the defaults test_bounds holds all states against the bounds.
    """
    cases: list[object] = []
    seen = {(name, tuple(load_allocator(name).values.items())) for _, name in SINGLE}
    for preset, name in SINGLE:
        build = name, tuple(load_allocator(name, {}, preset).values.items())
        cases.append(pytest.param(preset, name, marks=pytest.mark.slow) if build in seen else (preset, name))
        seen.add(build)
    return cases


@pytest.mark.parametrize("preset", STUDIED)
def test_a_paper_has_a_preset_of_what_it_studies(preset):
    names = {name if name != "budgeted" else "budgeted:tlsf" for name in STUDIED[preset]}
    assert names <= set(allocator_names())
    assert all(preset in load_allocator(name).presets for name in names)


@pytest.mark.covering(0)
@pytest.mark.parametrize("operation", ["alloc", "free"])
@pytest.mark.parametrize(("preset", "name"), of_one_build())
def test_a_preset_has_its_worst_states_and_a_bound(preset, name, operation):
    report = observe(
        ProbeRequest(
            load_allocator(name, {}, preset), load_target("cortex-m4"), f"worst-{operation}", 16_384, 0, None, PACKAGED,
            prove=True, cross_check=False, cache_dir=images_dir(),
        )
    )  # fmt: skip
    assert report.checks
    assert report.verdict is Verdict.BOUNDED, report.no_bound
    assert report.measurement.instructions <= report.bound.instructions
    assert report.measurement.cycles <= report.bound.cycles


@pytest.mark.parametrize("name", VARIANTS["aligned"])
def test_the_default_is_not_the_variant(name):
    assert load_allocator(name).values["granule"] == 8
    assert load_allocator(name, {}, "aligned").values["granule"] == 16
