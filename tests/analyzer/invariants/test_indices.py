"""Words that are stored and are indices of static data are told, if they are nothing else; those loaded that may be."""

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.indices import scaled_to_index
from wcet_probe.analyzer.invariants.typed_operations import Use, typed_operation
from wcet_probe.analyzer.values.properties.own_block import Roles

HEAD = "lis 9, head@ha\naddi 9, 9, head@l\n"
KEPT = HEAD + "slwi 6, 4, 2\nlwzx 7, 9, 6\nstw 4, 4(3)\n"
UNITS = "slwi 6, 5, 2\nlwzx 7, 9, 6\nstw 5, 4(3)\nstwx 7, 3, 4\nblr"
JOINED = "li 5, 8\ncmpwi 7, 0\nbne 1f\nmr 5, 4\n1: "
BODIES = {
    "kept": KEPT + "blr",
    "moved": HEAD + "slwi 6, 4, 2\naddi 6, 6, 8\nlwzx 7, 9, 6\nstw 4, 4(3)\nblr",
    "summed": HEAD + "add 5, 4, 7\nslwi 6, 5, 2\nlwzx 7, 9, 6\nstw 5, 4(3)\nblr",
    "halved": HEAD + "slwi 6, 4, 1\nlwzx 7, 9, 6\nstw 4, 4(3)\nblr",
    "more": HEAD + "slwi 6, 4, 2\nlwzx 7, 9, 6\naddi 4, 4, 1\nstw 4, 4(3)\nblr",
    "not accessed": HEAD + "slwi 6, 4, 2\nadd 7, 9, 6\nstw 4, 4(3)\nblr",
    "size": KEPT + "slwi 6, 4, 3\nstwx 7, 3, 6\nblr",
    "part of a word": KEPT + "slwi 6, 4, 8\nori 6, 6, 1\nstw 6, 8(3)\nblr",
    "size where paths meet": KEPT + JOINED + "slwi 5, 5, 3\nstwx 7, 3, 5\nblr",
    "index where paths meet": KEPT + JOINED + "slwi 5, 5, 2\nlwzx 7, 9, 5\nblr",
    "size in units": HEAD + "srwi 5, 4, 3\n" + UNITS,
    "size in units or the least": HEAD + "li 5, 2\ncmplwi 4, 16\nblt 1f\nsrwi 5, 4, 3\n1: " + UNITS,
    "class": HEAD + "cntlzw 5, 4\n" + UNITS,
    "class by halves": HEAD + "srwi 5, 4, 8\ncmplwi 4, 256\nbge 1f\nsrwi 5, 4, 4\n1: " + UNITS,
    "header": KEPT.replace("4(3)", "-4(3)") + "blr",
    "header where paths meet": KEPT.replace("4(3)", "-4(8)") + "mr 3, 8\ncmpwi 7, 0\nbne 1f\nli 3, 0\n1: blr",
    "header behind a tag": KEPT.replace("4(3)", "4(8)") + "addi 3, 8, 8\nblr",
    "returned": KEPT + "add 3, 9, 6\nblr",
    "loaded twice": HEAD + "lwz 5, 4(3)\nslwi 5, 5, 3\nstwx 4, 8, 5\nlwz 5, 4(3)\nslwi 5, 5, 2\nlwzx 7, 9, 5\nblr",
    "count": "lwz 5, 4(3)\nslwi 5, 5, 2\nstw 5, 0(3)\nblr",
    "loaded": HEAD + "lwz 5, 4(3)\nslwi 5, 5, 2\nlwzx 7, 9, 5\nblr",
    "where paths meet": HEAD + "lwz 4, 4(3)\n" + JOINED + "slwi 5, 5, 2\nlwzx 7, 9, 5\nblr",
}


@pytest.fixture(scope="module")
def module():
    guest, values = small_module({name.replace(" ", "_"): body for name, body in BODIES.items()})
    kind_of, lifter = Constants(guest.image).kind_of, lifter_of(guest)

    def operation(name, roles=Roles(None, None)):  # noqa: B008  a frozen value
        own = values[name.replace(" ", "_")]
        return typed_operation(name, own, guest.image, lifter, roles, {}, "r3", kind_of), kind_of

    return operation


@pytest.mark.parametrize(
    ("name", "is_index"),
    [
        ("kept", True),
        ("moved", True),  # of a table that begins behind the first word
        ("summed", True),
        ("halved", False),  # it is no index of words
        ("more", True),  # of a table that begins a word before
        ("not accessed", False),  # nothing is accessed by it
        ("size", False),
        ("part of a word", False),
        ("size where paths meet", False),
        ("index where paths meet", True),
        ("size in units", False),  # by which an address is computed, in bytes
        ("size in units or the least", False),
        ("class", True),  # no size follows from it
        ("class by halves", True),
    ],
)
def test_what_is_stored_is_an_index_where_it_is_nothing_else(module, name, is_index):
    operation, _ = module(name)
    first = next(one for one in operation.accesses if one.transfer.is_store)
    assert first.use is (Use.INDEX if is_index else Use.OPEN)


@pytest.mark.parametrize(
    ("name", "roles", "is_index"),
    [
        ("kept", Roles("r3", None), True),
        ("header", Roles("r3", None), False),  # neighbours read it
        ("header", Roles(None, None), True),
        ("header where paths meet", Roles(None, "r3"), False),
        ("header behind a tag", Roles(None, "r3"), False),
        ("returned", Roles(None, "r3"), False),
        ("returned", Roles(None, None), True),
    ],
)
def test_what_a_header_keeps_or_is_a_part_of_a_block_is_no_index(module, name, roles, is_index):
    operation, _ = module(name, roles)
    first = next(one for one in operation.accesses if one.transfer.is_store)
    assert first.use is (Use.INDEX if is_index else Use.OPEN)


def test_where_an_address_is_loaded_once_as_an_index_it_is_an_index_each_time(module):
    operation, _ = module("loaded twice")
    assert [one.use for one in operation.accesses if one.symbol is not None][:2] == [Use.INDEX, Use.INDEX]


@pytest.mark.parametrize(
    ("name", "use"), [("count", Use.NUMBER), ("loaded", Use.INDEX), ("where paths meet", Use.INDEX)]
)
def test_what_is_loaded_may_be_an_index_where_it_is_scaled_and_added_to_static_data(module, name, use):
    operation, _ = module(name)
    first = next(one for one in operation.accesses if not one.transfer.is_store)
    assert first.use is use


def test_what_is_added_to_static_data_is_told_though_nothing_is_accessed(module):
    operation, kind_of = module("not accessed")
    argument = operation.values.terms.symbol(("in", operation.values.registers["r4"]), 32)
    assert set(scaled_to_index(operation.values, kind_of)) == {argument}
