"""Which addresses of static data small operations store: each by itself, and none where a loaded one is moved."""

from dataclasses import replace

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.stored_addresses import Looks, is_copy, stored_addresses
from wcet_probe.analyzer.invariants.typed_memory import Evaluator, typed_memory
from wcet_probe.analyzer.invariants.typed_operations import typed_operation
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.analyzer.values.symbolic.terms import Terms

HEAD = "lis 9, head@ha\naddi 9, 9, head@l\n"
PLAIN = HEAD + "stw 9, 0(9)\naddi 5, 9, 4\nstw 5, 4(9)\nli 3, 0\nblr"
COPIED = HEAD + "lwz 5, 0(9)\nstw 5, 4(9)\nblr"
MOVED = HEAD + "lwz 5, 0(9)\naddi 5, 5, 4\nstw 5, 4(9)\nblr"
CHOSEN = HEAD + "cmpwi 3, 5\nbeq 1f\naddi 5, 9, 4\nb 2f\n1: mr 5, 9\n2: stw 5, 0(9)\nblr"
CARRIED = HEAD + "lwz 5, 0(9)\n1: addi 5, 5, 4\naddi 3, 3, -1\ncmpwi 3, 5\nbne 1b\nstw 3, 0(9)\nblr"
NUMBERS = HEAD + "li 5, 12\nstw 5, 0(9)\nblr"


def stored(first, second):
    guest, values = small_module({"first": first, "second": second})
    lifter, kind_of = lifter_of(guest), Constants(guest.image).kind_of
    operations = [
        typed_operation(role, values[name], guest.image, lifter, Roles(None, None), {}, "r3", kind_of)
        for role, name in (("init", "first"), ("malloc", "second"))
    ]
    operations[1] = replace(operations[1], returned=())
    evaluator = Evaluator(guest.image, operations)
    found = typed_memory(guest.image, operations, evaluator).found
    looks = Looks(
        lambda index, state, term: evaluator.word(index, state, term, found),
        lambda index, state, term: evaluator.value(index, state, term, found),
        evaluator.kind_of,
        evaluator.constants.pointers(),
    )
    head = guest.image.symbols["head"].address
    told = stored_addresses(operations, looks)
    return None if told is None else [(low - head, high - head) for low, high in told]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (COPIED, [(0, 0), (4, 4)]),
        (MOVED, None),
        (CARRIED, None),
        (NUMBERS, [(0, 0), (4, 4)]),
    ],
    ids=["copied", "moved", "carried", "numbers"],
)
def test_addresses_are_told_one_by_one_unless_a_loaded_one_is_moved(second, told):
    assert stored(PLAIN, second) == told


def test_an_address_that_arrives_where_paths_meet_is_one_of_those_that_arrive():
    assert stored(CHOSEN, COPIED) == [(0, 0), (4, 4)]
    assert stored(NUMBERS, COPIED) == []


def test_a_copy_is_a_symbol_or_one_of_some_with_a_constant():
    terms = Terms()
    x, y = terms.symbol((0, 0, 0), 32), terms.symbol((0, 4, 0), 32)
    condition = terms.apply("INT_LESS", (x, y), 8)
    moved = terms.apply("INT_ADD", (x, terms.constant(8, 32)), 32)
    assert is_copy(terms, x)
    assert is_copy(terms, terms.gamma(condition, x, terms.constant(4, 32)))
    assert not is_copy(terms, moved)
    assert is_copy(terms, moved, terms.linear(moved))
    assert not is_copy(terms, terms.apply("INT_ADD", (x, y), 32), terms.linear(terms.apply("INT_ADD", (x, y), 32)))
    assert not is_copy(terms, terms.gamma(condition, x, moved))
