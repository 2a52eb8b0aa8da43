"""What a result that is compared tells of the way there: conditions on arguments that hold on each way that is left."""

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import ALL, Kind, Part, members
from wcet_probe.analyzer.invariants.typed_memory import Evaluator
from wcet_probe.analyzer.invariants.typed_operations import typed_operation
from wcet_probe.analyzer.invariants.ways_taken import ways_taken
from wcet_probe.analyzer.values.own_block import Roles

CALLER = (
    "mflr 8\nmr 7, 3\nbl check\nmtlr 8\ncmpwi 3, 0\nbne 3f\nlis 9, head@ha\naddi 9, 9, head@l\n"
    "stw 7, 0(9)\nli 3, 0\nblr\n3: li 3, -1\nblr"
)
REFUSED = "andi. 6, 3, 7\nbne 1f\n"
DONE = "li 3, 0\nblr\n1: li 3, -1\nblr"
MULTIPLES = set(range(0, 64, 8))


def stored(check, caller=CALLER):
    """The residues of the argument that is stored behind ``check``, by the induction, and the conditions told there."""
    guest, values = small_module({"f": caller, "check": check})
    constants = Constants(guest.image)
    arena = (Part(Kind.ARENA, False, ALL),)
    operation = typed_operation(
        "init", values["f"], guest.image, lifter_of(guest), Roles(None, None), {"r3": arena}, "r3", constants.kind_of
    )
    evaluator = Evaluator(guest.image, [operation])
    (store,) = (one for one in operation.accesses if one.access.is_store)
    state = store.transfer.state
    argument = state.terms.symbol(("in", values["f"].registers["r3"]), 32)
    (word,) = evaluator.word(0, state, store.transfer.value, {(0, argument): arena})
    told = ways_taken({one.symbol: one.arriving for one in operation.meetings if one.arriving})(state)
    return set(members(word.residues)), told


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


def test_of_a_word_that_is_loaded_nothing_is_kept():
    """Only what a call was given is the same in all of it: a word that is loaded may be another one by then."""
    assert not stored("lis 9, head@ha\nlwz 3, head@l(9)\n" + REFUSED + DONE)[1]


def test_where_nothing_arrives_nothing_is_told():
    _, values = small_module({"f": "blr"})
    assert not ways_taken({})(values["f"].states[0])
