"""What an access has shown of a symbol is believed behind it, and nowhere else; so is the check of it."""

from dataclasses import replace
from functools import cache

import pytest

from tests.certificate.caches.test_caches import rewritten
from tests.certificate.specimens import specimen
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.names.shown_classes import Shown, shown_behind
from wcet_probe.certificate.values.congruences import UNALIGNED, Congruence, implies
from wcet_probe.certificate.values.numbers import TOP, Value, constant, number
from wcet_probe.certificate.values.state import State
from wcet_probe.errors import VerificationError

SHOWN = ("buddy-binary", "cortex-m7", "malloc")
BY_16 = Congruence(16, 0)


def test_a_bound_that_rests_on_what_is_shown_is_checked_in_full():
    document, binary = specimen(*SHOWN)
    assert any(line.startswith("shown ") for line in document["bound"]["certificates"][1].split("\n"))
    assert check_bound(document, binary).is_full


def test_without_it_the_node_charges_too_little():
    document, binary = specimen(*SHOWN)
    forged = rewritten(document, lambda lines: [line for line in lines if not line.startswith("shown ")])
    with pytest.raises(VerificationError, match="with its misses"):
        check_bound(forged, binary)


def first(lines, kind):
    return next(line for line in lines if line.startswith(f"{kind} "))


def with_field(place, value):
    def change(lines):
        victim = first(lines, "shown")
        words = victim.split(" ")
        words[place] = value(words[place])
        return [" ".join(words) if line == victim else line for line in lines]

    return change


def at_entry(lines):
    victim = first(lines, "shown").split(" ")
    symbol = next(line.split(" ")[3] for line in lines if line.startswith(f"name {first(lines, 'entry')[6:]} "))
    added = " ".join(["shown", first(lines, "entry")[6:], symbol, *victim[3:]])
    place = lines.index(first(lines, "shown"))
    return [*lines[:place], added, *lines[place:]]


def before_the_access(lines):
    """At a node that leads to one where it is shown, and says nothing of it."""
    shown = {tuple(line.split(" ")[1:3]): line for line in lines if line.startswith("shown ")}
    edges = [line.split(" ")[2:4] for line in lines if line.startswith("edge ")]
    named = {(line.split(" ")[1], line.split(" ")[3]) for line in lines if line.startswith("name ")}
    source, line = next(
        (source, line)
        for (node, symbol), line in shown.items()
        for source, target in edges
        if target == node and (source, symbol) not in shown and (source, symbol) in named
    )
    words = line.split(" ")
    place = lines.index(line)
    return [*lines[:place], " ".join([words[0], source, *words[2:]]), *lines[place:]]


def twice(lines):
    place = lines.index(first(lines, "shown"))
    return [*lines[:place], lines[place], *lines[place:]]


FORGERIES = {
    "a greater power of two": (with_field(3, lambda _: "64"), "no access has shown"),
    "another residue": (with_field(4, lambda text: str(int(text) ^ 1)), "no access has shown"),
    "no power of two": (with_field(3, lambda _: "12"), "is none"),
    "of no symbol": (with_field(2, lambda _: "s999"), "of nothing"),
    "of no node": (with_field(1, lambda _: "nowhere"), "of no node"),
    "told twice": (
        lambda lines: [*lines[: (at := lines.index(first(lines, "shown")))], lines[at], *lines[at:]],
        "twice",
    ),
    "at the entry": (at_entry, "where the call begins"),
    "before the access": (before_the_access, "no access has shown"),
}


@pytest.mark.parametrize(("forge", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_class_that_no_access_has_shown_is_refused(forge, reason):
    document, binary = specimen(*SHOWN)
    with pytest.raises(VerificationError, match=reason):
        check_bound(rewritten(document, forge), binary)


# ------------------------------------------------------------------------------------------------------- what is shown


@cache
def instruction(text):
    target = load_target("cortex-m4")
    return guest_of(assembler({"f": f"{text}\n bx lr"}, target), target).instructions[0]


LOAD = "ldr r1, [r0]"
SYMBOL = Value("@s1", 4, 4, 0)


def seen(address, of_class=BY_16, at=TOP, **changed):
    shown = Shown(frozenset({"s1"}))
    shown.see(replace(instruction(LOAD), **changed), [(at, address, of_class)])
    return shown.classes


def test_an_access_shows_the_class_of_its_symbol():
    assert seen(SYMBOL) == {"@s1": BY_16}


def test_an_access_that_may_be_skipped_shows_nothing():
    assert not seen(SYMBOL, condition=1)
    assert not seen(SYMBOL, in_it_block=True)


def test_nothing_is_shown_of_sums_nor_of_addresses_of_which_more_is_known():
    assert not seen(Value("@t1", 4, 4, 0))
    assert not seen(Value("@s1", 0, 16, 16))
    assert not seen(SYMBOL, at=number(0, 4096))


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("lsl.w r1, r3, r2", {"r3": constant(16), "r2": TOP}, Congruence(16, 0)),
        ("lsl.w r1, r3, r2", {"r3": Value("@s1", 8, 8, 0), "r2": TOP}, Congruence(8, 0)),
        ("lsl.w r1, r3, r2", {"r3": TOP, "r2": constant(4)}, UNALIGNED),
        ("lsl.w r1, r3, #2", {"r3": Value("@s1", 4, 4, 0)}, Congruence(64, 16)),
        ("sub.w r1, r3, r2", {"r3": Value("@s1", 4, 4, 0), "r2": constant(8)}, Congruence(16, 12)),
        ("add.w r1, r3, r2", {"r3": Value("@s1", 4, 4, 0), "r2": TOP}, UNALIGNED),
        ("mul r1, r3, r2", {"r3": Value("@s1", 0, 0, 0), "r2": constant(4)}, UNALIGNED),
    ],
)
def test_what_is_computed_has_the_class_of_its_parts(text, values, expected):
    shown = Shown(frozenset(), {"@s1": BY_16})
    assert shown.computed(instruction(text), "r1", State(dict(values))) == expected


def test_a_symbol_that_begins_anew_has_the_class_of_what_it_becomes():
    shown = {"@s1": BY_16, "@s2": Congruence(8, 0)}
    assert shown_behind(shown, "s1", set(), {}) == BY_16
    assert shown_behind(shown, "s1", {"s1"}, {}) == UNALIGNED
    assert shown_behind(shown, "s1", {"s1"}, {"s1": Value("@s2", 4, 4, 0)}) == Congruence(8, 4)
    assert shown_behind(shown, "s1", {"s1"}, {"s1": constant(24)}).coarser(16) == Congruence(16, 8)


def test_a_class_implies_coarser_ones_only():
    assert implies(Congruence(16, 8), Congruence(8, 0))
    assert not implies(Congruence(8, 0), Congruence(16, 8))
    assert not implies(Congruence(16, 8), Congruence(16, 0))
