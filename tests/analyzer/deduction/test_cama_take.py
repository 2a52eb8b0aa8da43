"""Malloc of CAMA from a list of large blocks: it keeps all claims, and broken versions do not."""

import pytest

from tests.analyzer.deduction.cama_builds import deduced, only, open_of_changed, possible, program
from wcet_probe.analyzer.deduction.cama_free import CHAINED_AND_USED, NOT_HELD
from wcet_probe.analyzer.deduction.cama_joins import ONE_BEGIN, Join
from wcet_probe.analyzer.deduction.cama_malloc import NOTHING_CHANGED, RETURNED, SIZE
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.cama_operations import IN_ITS_SET, LARGE_ENOUGH
from wcet_probe.analyzer.deduction.cama_take import KEPT, _Taking
from wcet_probe.cache_sets.deduction import deduce

ASKED = {CHAINED_AND_USED, NOT_HELD, KEPT, IN_ITS_SET, LARGE_ENOUGH, SIZE, RETURNED, NOTHING_CHANGED, "blocks"}


@pytest.mark.slow
def test_malloc_of_a_list_of_large_blocks_keeps_all_claims():
    found = deduced("malloc-large")
    assert (found.ways, found.open) == (52, ())
    assert {one.what for one in found.obligations} >= ASKED


@pytest.mark.slow
def test_what_is_assumed_on_a_way_is_no_contradiction(monkeypatch):
    """Else all would be shown of it."""
    assert possible("malloc-large", monkeypatch) == [True] * 52


def test_parts_that_do_not_begin_at_one_instruction_are_open(monkeypatch):
    joins = (Join(0x100000, {}, 0, frozenset()), Join(0x100004, {}, 0, frozenset()))
    monkeypatch.setattr(_Taking, "follow", lambda *_: joins)
    found = deduce(program(), ("malloc-large",))[0]
    assert found.open_by_name == {ONE_BEGIN: (0x100000, 0x100004)}


@pytest.mark.slow
def test_a_first_block_that_is_too_small_by_a_word_or_two_is_open(monkeypatch):
    only((), monkeypatch)
    found = open_of_changed("malloc-large", ("size_of(first) < size)", "size_of(first) + 8 < size)"))
    assert found.keys() == {LARGE_ENOUGH}
    assert all("cama_malloc" in place for place in found[LARGE_ENOUGH])


class _EnoughError(Exception):
    """The first way to the join was asked."""


def test_a_block_that_is_made_smaller_as_it_leaves_its_list_is_open(monkeypatch):
    """Else its size before were taken for that behind, and what is done only where they differ is on no way."""
    only((), monkeypatch)
    original, answers = Deduction.end_way, []

    def end_way(self, end, asked):
        asked = list(asked)
        original(self, end, asked)
        if end.is_at_join:
            answers.extend(name for name, formula in asked if not self.terms.questions.holds(formula))
            raise _EnoughError

    monkeypatch.setattr(Deduction, "end_way", end_way)
    rest = "    size_t rest = size_of(descriptor) - size;\n\n"
    taken = "    take_first(descriptor, head, set, class);\n    if (size"
    less = """    size_t whole = size_of(descriptor), rest = whole - size;

    descriptor->size_and_free = CAMA_THRESHOLD | CAMA_FREE_BIT;
"""
    astray = """    take_first(descriptor, head, set, class);
    if ((*(volatile size_t *)&descriptor->size_and_free & ~CAMA_FREE_BIT) != whole)
        ((volatile uintptr_t *)start)[16] = 0;
    if (size"""
    with pytest.raises(_EnoughError):
        open_of_changed("malloc-large", (rest + taken, less + astray))
    assert answers == [KEPT]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "first"),
    [
        ("malloc-large", "    struct cama_descriptor *descriptor = first_of(head);\n    uintptr_t start"),
        ("malloc-small", "    struct cama_small *small = first_of(head);\n"),
    ],
)
def test_a_break_that_is_loaded_behind_a_list_that_was_found_is_left_to_no_other_part(operation, first, monkeypatch):
    """The part where the heap grows does not follow such a way."""
    only((), monkeypatch)
    line, rest = first.split("\n", 1)
    load = "    if (*(volatile uintptr_t *)&cama_control.top == 0x77770)\n        return NULL;\n"
    found = open_of_changed(operation, (first, f"{line}\n{load}{rest}"))
    assert any("though a list was found" in name for name in found)
