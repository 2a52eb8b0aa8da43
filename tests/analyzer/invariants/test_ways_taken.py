"""What a result that is compared tells of the way there: conditions on arguments that hold on each way that is left."""

from random import Random

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import ALL, Kind, Part, members
from wcet_probe.analyzer.invariants.typed_memory import Evaluator
from wcet_probe.analyzer.invariants.typed_operations import typed_operation
from wcet_probe.analyzer.invariants.ways_taken import ways_taken
from wcet_probe.analyzer.values.properties.own_block import Roles

CALLER = (
    "mflr 8\nmr 7, 3\nbl check\nmtlr 8\ncmpwi 3, 0\nbne 3f\nlis 9, head@ha\naddi 9, 9, head@l\n"
    "stw 7, 0(9)\nli 3, 0\nblr\n3: li 3, -1\nblr"
)
REFUSED = "andi. 6, 3, 7\nbne 1f\n"
DONE = "li 3, 0\nblr\n1: li 3, -1\nblr"
MULTIPLES = set(range(0, 64, 8))


PARTED = (
    "andi. 6, 3, 7\nbeq t\nli 5, -1\nb j2\nt: andi. 6, 3, 7\nbne t0\nandi. 6, 3, 4\nbeq t0a\n"
    "andi. 6, 3, 7\nbeq t0aa\nmr 5, 4\nb j2\nt0aa: li 5, 0\nb j1\nt0a: andi. 6, 3, 4\nbeq t0ab\nli 5, 1\n"
    "b j1\nt0ab: li 5, 0\nb j1\nt0: andi. 6, 4, 7\nbeq t0b\nandi. 6, 3, 1\nbeq t0ba\nli 5, 1\nb j1\n"
    "t0ba: li 5, 0\nb j1\nt0b: mr 5, 4\nb j2\nj1: cmpwi 5, -1\nbne j2\nandi. 6, 3, 7\nbeq j2\nli 5, 0\n"
    "j2: cmpwi 4, 9\nbne j3\nli 5, -1\nj3: mr 3, 5\nblr"
)
"""At ``j1`` r6 is 0 on each way, and ``j2`` is behind it and behind the refusal, which passes ``j1`` by."""


def conditions_of(operation, state):
    arriving = {one.symbol: one.arriving for one in operation.meetings if one.arriving}
    return ways_taken(operation.values, arriving, lambda one: operation.situation(one).point)(state)


def stored(check, caller=CALLER):
    """The residues of the argument that is stored behind ``check``, by the induction, and the conditions told there."""
    guest, values = small_module({"f": caller, "check": check})
    constants = Constants(guest.image)
    arena = (Part(Kind.ARENA, False, ALL),)
    operation = typed_operation(
        "init", values["f"], guest.image, lifter_of(guest), Roles(None, None), {"r3": arena}, "r3", constants.kind_of
    )
    evaluator = Evaluator(guest.image, [operation])
    stores = [one for one in operation.accesses if one.access.is_store]
    if not stores:
        return set(), {}  # it is not reached
    (store,) = stores
    state = store.transfer.state
    argument = state.terms.symbol(("in", values["f"].registers["r3"]), 32)
    found = evaluator.word(0, state, store.transfer.value, {(0, argument): arena})
    return {one for part in found for one in members(part.residues)}, conditions_of(operation, state)


def test_where_a_result_is_compared_the_ways_of_refusals_are_left_out():
    assert stored(REFUSED + DONE)[0] == MULTIPLES


def test_what_holds_on_each_of_two_ways_holds_behind_them():
    """Both go on behind the check, by an argument of which nothing is known."""
    residues, told = stored(REFUSED + "cmpwi 4, 0\nbeq 4f\nli 3, 0\nblr\n4: " + DONE)
    assert residues == MULTIPLES
    assert told
    assert all(value.is_constant for value in told.values())


def test_ways_are_looked_for_through_several_places_where_paths_meet():
    inner = "li 5, 0\nb 5f\n1: li 5, -1\n5: cmpwi 4, 9\nbne 6f\nli 5, -1\n6: mr 3, 5\nblr"
    assert stored(REFUSED + inner)[0] == MULTIPLES


@pytest.mark.parametrize(
    "check",
    [
        "cmpwi 4, 0\nbeq 7f\n" + REFUSED + DONE + "\n7: li 3, 0\nblr",
        REFUSED + DONE.replace("-1", "0"),
        REFUSED + DONE.replace("-1", "1").replace("3, 0", "3, -1").replace("3, 1", "3, 0"),
        REFUSED.replace("bne", "beq") + DONE,
        REFUSED + DONE.replace("li 3, -1", "mr 3, 4"),
        "andi. 6, 4, 7\nbne 1f\n" + DONE,
        "cmpwi 4, 0\nbeq 4f\nandi. 6, 3, 7\nbne 1f\nli 3, 0\nblr\n4: andi. 6, 3, 3\nbne 1f\n" + DONE,
    ],
    ids=[
        "a way in that is not checked",
        "a refusal that returns the same",
        "a refusal that is taken for success",
        "the other condition",
        "a result that may be any",
        "a check of another argument",
        "another condition on each way",
    ],
)
def test_what_does_not_hold_on_all_ways_that_are_left_is_not_told(check):
    assert not stored(check)[0] <= MULTIPLES


def test_a_word_that_is_defined_on_some_ways_tells_nothing_of_the_others():
    """What the state knows of it behind a join, it knows of one side alone: the other one refused, with the same -1."""
    residues, told = stored(PARTED, CALLER.replace("cmpwi 3, 0", "cmpwi 3, -1"))
    assert residues == set(range(64))
    assert not told


def test_of_a_word_that_is_loaded_nothing_is_kept():
    """Only what a call was given is the same in all of it: a word that is loaded may be another one by then."""
    assert not stored("lis 9, head@ha\nlwz 3, head@l(9)\n" + REFUSED + DONE)[1]


def test_where_nothing_arrives_nothing_is_told():
    _, values = small_module({"f": "blr"})
    assert not ways_taken(values["f"], {}, lambda _: 0)(values["f"].states[0])


def random_check(random, depth, name="0"):
    """A tree of conditions on both arguments, as assembler and as a function: ends of it return, or go on to a place.

    The function gives the result, and whether it is returned.
    """
    if depth == 0 or random.random() < 0.1:
        result, is_returned = random.choice((0, 0, -1, 1, None)), random.random() < 0.8
        register = 3 if is_returned else 5
        text = f"mr {register}, 4" if result is None else f"li {register}, {result}"
        text += "\nblr\n" if is_returned else "\nb j1\n"
        return text, lambda _, size: (size if result is None else result, is_returned)
    register, mask, branch = random.choice((3, 4, 4)), random.choice((1, 3, 4, 7)), random.choice(("beq", "bne"))
    first, second = (random_check(random, depth - 1, name + one) for one in "ab")
    text = f"andi. 6, {register}, {mask}\n{branch} t{name}\n{first[0]}t{name}: {second[0]}"

    def result_of(arena, size):
        is_zero = (arena if register == 3 else size) & mask == 0
        return (second if is_zero == (branch == "beq") else first)[1](arena, size)

    return text, result_of


def random_check_with_joins(random):
    """A check most of whose ways return at once, and the others meet where the result so far is tested."""
    mask, refused = random.choice((3, 7)), random.choice((-1, -1, 0))
    text, behind = random_check(random, random.choice((2, 3)))
    text = f"andi. 6, 3, {mask}\nbeq t\nli 3, {refused}\nblr\nt: {text}"
    tested, other, more = random.choice((0, -1)), random.choice((0, -1)), random.choice((0, -1))
    text += f"j1: cmpwi 5, {tested}\nbne j2\nandi. 6, 3, 7\nbeq j2\nli 5, {other}\n"
    text += f"j2: cmpwi 4, 9\nbne j3\nli 5, {more}\nj3: mr 3, 5\nblr"

    def result_of(arena, size):
        result, is_returned = (refused, True) if arena & mask else behind(arena, size)
        if is_returned:
            return result
        if result == tested and arena & 7:
            result = other
        return more if size == 9 else result

    return text, result_of


@pytest.mark.covering(0)
@pytest.mark.parametrize("part", range(3))
def test_random_checks_tell_nothing_of_an_argument_that_passes_them(part):
    random, sharp = Random(f"ways taken {part}"), 0
    for _ in range(12):
        text, result_of = random_check_with_joins(random)
        wanted = random.choice((0, 0, 0, -1))
        residues, told = stored(text, CALLER.replace("cmpwi 3, 0", f"cmpwi 3, {wanted}"))
        passing = {arena % 64 for arena in range(64) for size in range(-1, 24) if result_of(arena, size) == wanted}
        assert passing <= residues, text
        sharp += bool(told) and len(residues) < 64
    assert sharp > 1
