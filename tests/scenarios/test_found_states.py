"""States that a search found: written, read, offered where they belong, and refused where they are stale or damaged."""

import random
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.catalog.lookup import allocator_names, load_allocator
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import FoundBy, InitialCache, Operation, OperationKind
from wcet_probe.scenarios import found_states
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.found_states import Base, FoundState, found_text, operations_in, read_found
from wcet_probe.scenarios.lookup import family_of
from wcet_probe.scenarios.operation_text import operation_word, operations_of, words_of

MALLOC, FREE = OperationKind.MALLOC, OperationKind.FREE
ALLOCATOR = load_allocator("avl-best-fit")
HEAP_BYTES = 5000


def candidates(allocator=ALLOCATOR, heap_bytes=HEAP_BYTES, line_bytes=32, scenario="worst-free"):
    return family_of(allocator).builders[scenario](HeapRequest(allocator, heap_bytes, line_bytes, 0))


CONSTRUCTED = candidates(replace(ALLOCATOR, found=()))
ORIGIN = CONSTRUCTED[-1]


def found_state(changes, **values):
    operations = list(operations_in(ORIGIN))
    draw = random.Random(changes)
    for _ in range(changes):
        operations.insert(draw.randrange(len(operations)), Operation(MALLOC, len(operations) + 10, 24, 0))
    search = FoundBy("mpc603e", "cycles", 12, 11, 500, 7, ORIGIN.variant)
    made = FoundState(
        allocator=ALLOCATOR.name,
        parameters=ALLOCATOR.values,
        heap_bytes=HEAP_BYTES,
        scenario="worst-free",
        found_by=search,
        operations=tuple(operations),
        measured=ORIGIN.measured,
        initial_cache=InitialCache.DIRTY,
        set_up_refusals=0,
        refused=False,
    )
    return replace(made, **values)


BASE = Base(32, operations_in(ORIGIN))


@pytest.fixture(autouse=True)
def _only_the_shortest_are_written_out(monkeypatch):
    monkeypatch.setattr(found_states, "_SHORT_CHARACTERS", 100)


def with_texts(*texts):
    return replace(ALLOCATOR, found=tuple((f"{number}.txt", text) for number, text in enumerate(texts)))


@given(
    st.lists(
        st.builds(Operation, st.just(FREE), st.integers(0, 9))
        | st.builds(Operation, st.just(MALLOC), st.integers(0, 9), st.integers(1, 2), st.integers(0, 1))
    )
)
def test_rows_of_operations_are_read_as_they_were_written(operations):
    assert list(operations_of(words_of(operations))) == operations


def test_a_row_is_one_word():
    row = [Operation(MALLOC, slot, 8) for slot in range(5)] + [Operation(FREE, slot) for slot in (8, 6, 4)]
    assert list(words_of(row)) == ["+0:8*5", "-8*3/-2"]


@pytest.mark.parametrize("word", ["", "8", "+1", "-1:8", "+1:8*0", "-4*3/-4", "+1:8*99999999", "-4294967296"])
def test_what_is_no_operation_is_refused(word):
    with pytest.raises(ValueError, match=r"no operation|out of range"):
        list(operations_of([word]))


@pytest.mark.parametrize("changes", [1, 40])
def test_a_state_is_read_as_it_was_written_from_the_changes_of_a_constructed_one(changes):
    made = found_state(changes)
    text = found_text(made, BASE)
    assert "\nbase 32 " in text
    assert len(text) < len(found_text(made, None))
    plan = candidates(with_texts(text), line_bytes=None)[-1]
    assert (plan.found_by, operations_in(plan), plan.measured) == (made.found_by, made.operations, made.measured)
    freed = sum(o.kind is FREE for o in made.operations)
    assert plan.prediction == {"used blocks": len(made.operations) - 2 * freed}


def test_a_short_state_is_written_out_and_needs_no_constructed_one():
    made = found_state(0, operations=tuple(Operation(MALLOC, slot, 8, 3) for slot in range(9)), refused=True)
    text = found_text(made, BASE)
    assert "\nbase none\n" in text
    assert read_found("a.txt", text, lambda *_: pytest.fail("nothing is changed")) == replace(
        made, parameters=dict(made.parameters)
    )


def test_a_state_is_offered_for_its_parameters_its_heap_and_its_scenario_alone():
    allocator = with_texts(found_text(found_state(1), BASE))
    assert candidates(allocator)[-1].variant == "found by search for cycles on mpc603e"
    assert len(candidates(allocator)) == len(CONSTRUCTED) + 1
    others = [
        candidates(replace(allocator, values={**allocator.values, "granule": 16})),
        candidates(allocator, HEAP_BYTES + 8),
        candidates(allocator, scenario="worst-alloc"),
        candidates(replace(load_allocator("avl-best-fit", {"minimum-block": 32}), found=allocator.found)),
    ]
    assert not [plan for plans in others for plan in plans if plan.found_by]


def test_a_state_whose_constructed_one_is_another_now_is_refused_and_never_left_out():
    other = Base(32, operations_in(ORIGIN)[1:])
    with pytest.raises(UsageError, match=r"found/0\.txt changes the constructed state .* is another one now; delete"):
        candidates(with_texts(found_text(found_state(1), other)))
    gone = found_state(1, found_by=replace(found_state(1).found_by, origin="no such state"))
    with pytest.raises(UsageError, match="'no such state' of worst-free, which is another one now"):
        candidates(with_texts(found_text(gone, BASE)))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("heap 5000", "heap", "no state that a search found"),
        ("wcet-probe-found 1", "wcet-probe-found 2", "no state that a search found"),
        ("\nmeasured -", "\nmeasured ~", "no state that a search found"),
        ("\n=0..", "\n=999999..", "is not in the constructed state"),
        ("\n=0..", "\n+9000:8 =0..", "its digest differs"),
        ("\ndigest ", "\ndigest 0", "its digest differs"),
    ],
)
def test_a_damaged_text_is_refused(old, new, why):
    text = found_text(found_state(1), BASE)
    assert old in text
    with pytest.raises(UsageError, match=why):
        candidates(with_texts(text.replace(old, new)))


def test_two_states_of_one_search_are_refused():
    text = found_text(found_state(1), BASE)
    with pytest.raises(UsageError, match="delete the cheaper one"):
        candidates(with_texts(text, text))


def test_each_kept_state_of_the_package_is_a_candidate_and_lies_in_the_file_that_a_dearer_one_replaces():
    checked = 0
    for name in allocator_names():
        for file, text in load_allocator(name).found:
            head = dict(line.partition(" ")[::2] for line in text.splitlines() if not line.startswith(("+", "-", "=")))
            values = {key: int(value) for key, _, value in (one.partition("=") for one in head["parameters"].split())}
            allocator = replace(load_allocator(head["allocator"], values), found=((file, text),))
            plan = candidates(allocator, int(head["heap"]), None, head["scenario"])[-1]
            assert plan.found_by is not None, file
            assert plan.found_by.value > plan.found_by.constructed, file
            assert operation_word(plan.measured) == head["measured"]
            constructed = partial(
                candidates, replace(allocator, found=()), int(head["heap"]), scenario=head["scenario"]
            )

            def base_of(variant, line, constructed=constructed):
                return next(operations_in(one) for one in constructed(line_bytes=line) if one.variant == variant)

            assert read_found(file, text, base_of).file_name == file
            checked += 1
    assert checked


@pytest.mark.parametrize(
    ("evaluations", "told"), [(500, "500 evaluations with seed 7"), (0, "by another program than ours")]
)
def test_how_a_state_was_found_is_told_as_it_was(evaluations, told):
    found_by = replace(found_state(1).found_by, evaluations=evaluations)
    plan = found_states._plan(replace(found_state(1), found_by=found_by))
    assert f"It was made from: {ORIGIN.variant}; {told}." in plan.why
