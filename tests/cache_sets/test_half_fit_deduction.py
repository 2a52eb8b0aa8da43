"""What is deduced of half-fit: of which builds, and when accesses are told."""

from dataclasses import replace

import pytest

from tests.analyzer.deduction.half_fit_builds import deduced, program
from tests.support import images_dir
from wcet_probe.analyzer.deduction.obligations import Deduced, Obligation
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.half_fit_deduction import OPERATIONS, geometry_of, shown_accesses
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError

SHOWN = (Obligation(1, 0x100, "bits", is_shown=True),)
ALIGNED = {0x100: frozenset({Congruence(8, 4)})}
PARTS = tuple(Deduced(name, 1, SHOWN, ((),), {}, ALIGNED) for name in OPERATIONS)


def test_accesses_are_told_where_all_is_shown():
    found = shown_accesses(program(), PARTS, ("malloc", "free"))
    assert [(role, one.aligned, one.sets) for role, one in found.items()] == [
        ("malloc", ALIGNED, {}),
        ("free", ALIGNED, {}),
    ]


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_nothing_is_told_where_something_is_open(number):
    wrong = replace(PARTS[number], obligations=(Obligation(1, 0x100, "bits", is_shown=False),))
    for parts in ([*PARTS[:number], *PARTS[number + 1 :]], [*PARTS[:number], wrong, *PARTS[number + 1 :]]):
        assert not shown_accesses(program(), parts, ("malloc", "free"))


def test_nothing_is_told_of_an_allocator_with_another_operation():
    others = {**program().allocator.entry_points, "realloc": "half_fit_realloc"}
    other = replace(program(), allocator=replace(program().allocator, entry_points=others))
    assert not shown_accesses(other, PARTS, ("malloc",))


def test_each_instruction_that_accesses_data_is_told_with_its_class():
    """The lists are at multiples of 8, headers a word before one, and the bitmap is at one."""
    found = deduced("init").aligned
    entry = program().image.symbols["half_fit_init"].address
    assert found[entry + 0x40] == {Congruence(8, 0)}
    assert found[entry + 0x48] == {Congruence(8, 4)}


def test_builds_that_claims_are_not_written_for_are_refused():
    narrow = load_program(load_allocator("half-fit", {"alignment": 4}), load_target("mpc603e"), "zig", images_dir())
    with pytest.raises(UsageError, match="at multiples of 8"):
        geometry_of(narrow)
    tlsf = load_program(load_allocator("tlsf"), load_target("mpc603e"), "zig", images_dir())
    with pytest.raises(UsageError, match="written for half-fit, not for tlsf"):
        geometry_of(tlsf)
