"""Names of sums are held against words: a name means one number, before an edge and behind it."""

import random
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.certificate.caches.test_caches import check, edited, one_of, proved, rewritten
from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.caches.annotations import annotations_of
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.records import read_records
from wcet_probe.certificate.machines.computations import kept
from wcet_probe.certificate.names.names import Names, Passage, PointerFact, Pointers
from wcet_probe.certificate.names.symbols import Tracer
from wcet_probe.certificate.values.congruences import (
    BELIEVED,
    MOST_MODULUS,
    Congruence,
    class_of_fact,
    difference,
    shifted,
)
from wcet_probe.certificate.values.numbers import TOP, WORD, Value, constant, number
from wcet_probe.certificate.values.state import State
from wcet_probe.certificate.values.terms import Terms, form_of_name, is_sum
from wcet_probe.errors import VerificationError
from wcet_probe.model.instruction import Instruction

SYMBOLS = frozenset(f"s{number}" for number in range(6))
SUMS = ("buddy-binary", "mpc603e", "free")


def named(name, low=0):
    return Value(f"@{name}", low, low, 0)


def word_of(terms, value, words):
    """The number that a named value is where symbols, and what is local to a node, are ``words``."""
    base = value.base.removeprefix("@")
    form = {} if value.is_number else terms.linear.get(base, {base: 1})
    return (value.low + sum(times * words[part] for part, times in form.items())) % WORD


@pytest.mark.parametrize("seed", range(40))
def test_a_sum_is_the_sum_of_its_parts_however_it_was_computed(seed):
    draw, terms = random.Random(seed), Terms(SYMBOLS)
    words = {name: draw.randrange(WORD) for name in SYMBOLS}
    known = [(named(name), words[name]) for name in sorted(SYMBOLS)] + [(constant(12), 12)]
    for _ in range(30):
        chosen = [(*draw.choice(known), draw.choice((1, 1, -1, 4, 1 << 31))) for _ in range(2)]
        found = terms.sum_of((value, times) for value, _, times in chosen)
        if found is not None:
            word = sum(times * word for _, word, times in chosen) % WORD
            assert word_of(terms, found, words) == word
            known.append((found, word))
    names = {value.base: form_of_name(value.base.removeprefix("@")) for value, _ in known if "+" in value.base}
    assert len({tuple(form.items()) for form in names.values()}) == len(names)


def test_two_sums_of_the_same_have_one_name():
    terms = Terms(SYMBOLS)
    first = terms.sum_of([(terms.sum_of([(named("s0"), 1), (named("s1"), 1)]), 1), (named("s2"), 1)])
    second = terms.sum_of([(named("s0"), 1), (terms.sum_of([(named("s2"), 1), (named("s1", 4), 1)]), 1)])
    assert second == Value(first.base, 4, 4, 0)
    assert terms.sum_of([(first, 1), (named("s2"), -1), (named("s1"), -1)]) == named("s0")
    assert terms.sum_of([(named("s0"), 1), (named("s0"), -1)]) is None


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_has_the_same_value_by_its_names_behind_an_edge(seed):
    draw, terms = random.Random(seed), Terms(SYMBOLS)
    before = {name: draw.randrange(WORD) for name in (*sorted(SYMBOLS), "1a.r3", "entry:r4")}
    begins = set(draw.sample(sorted(SYMBOLS), 3))
    values = {}
    for symbol in sorted(begins):
        parts = [(named(draw.choice(sorted(before)), draw.randrange(64)), draw.choice((1, 1, -1, 4))) for _ in "ab"]
        value = terms.sum_of(parts[: draw.randrange(1, 3)])
        if value is not None:
            values[symbol] = value
    behind = {name: draw.randrange(WORD) for name in begins} | {n: before[n] for n in SYMBOLS - begins}
    behind |= {symbol: word_of(terms, value, before) for symbol, value in values.items()}
    for _ in range(20):
        parts = [(named(draw.choice(sorted(before))), draw.choice((1, -1, 4, 128))) for _ in range(3)]
        own = terms.sum_of(parts)
        base = own.base.removeprefix("@") if own is not None else ""
        for name, added in terms.behind(base, begins, values) if base in terms.linear else ():
            assert word_of(terms, named(name, added), behind) == word_of(terms, named(base), before)


def test_what_is_local_to_a_node_stands_for_nothing_behind_it():
    terms = Terms(SYMBOLS)
    own = terms.sum_of([(named("s0"), 1), (named("1a.r3"), 1)]).base.removeprefix("@")
    assert terms.symbols_of(own) is None
    assert terms.behind(own, set(), {}) == []
    assert terms.behind(own, {"s1"}, {"s1": named("1a.r3", 8)}) == [("s0+s1", -8)]


@pytest.mark.parametrize(
    "name", ["s1+s0", "s0+s0", "s0*1", "s0*0+s1", "s0", "s0+s9", "s0+", "s0*4294967297", "s0+s1+t1"]
)
def test_a_sum_is_written_in_one_way_and_of_symbols_only(name):
    assert not is_sum(name, SYMBOLS)
    assert is_sum("s0*-4+s1", SYMBOLS)


KEPT = {"bic r0, r1, #1": ~1, "and r0, r1, #0xff8": 0xFF8, "uxtb r0, r1": 255, "rlwinm r0, r1, 0, 0, 0x1e": ~1,
        "clrlwi r0, r1, 0x18": 255, "clrrwi r0, r1, 3": ~7, "and r0, r1, #0x101": 0x101}  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_a_mask_keeps_a_number_only_if_it_changes_none_of_its_values(text):
    mask = KEPT[text] % WORD
    one = Instruction(0, 4, text, "alu", reads=frozenset({"r1"}), writes=frozenset({"r0"}))
    before, held = State({"r1": named("s0")}), 0
    for value in (TOP, number(0, 255), number(8, 248, 8), number(0, 254, 2), number(0, WORD - 2, 2), number(0, 512, 8)):
        found = kept(one, "r0", before, State({"r1": value}))
        few = [value.low, value.low + value.stride, value.high]
        changed = any(word & mask != word for word in (value.words() if value.size < 1000 else few))
        assert found in (None, named("s0"))
        assert not (found and changed), value
        held += found is not None
    assert bool(held) == (mask != 0x101)


# ------------------------------------------------------------------------------------------ facts, with remainders


def test_the_remainder_of_a_fact_holds_of_a_number_alone():
    """p is 4 modulo 8 where the fact says so; p - q, and p twice, are not."""
    assert class_of_fact((8, 4)) == Congruence(8, 4)
    assert class_of_fact((24, 4)) == Congruence(8, 4)
    assert difference(BELIEVED, BELIEVED) == Congruence(MOST_MODULUS, 0)
    assert difference(BELIEVED, Congruence(MOST_MODULUS, 4)).modulus == MOST_MODULUS
    assert shifted(BELIEVED, 0, TOP).modulus < BELIEVED.modulus
    assert shifted(BELIEVED, 2, TOP) == Congruence(4, 0)


def test_of_a_constant_no_fact_is_believed_whatever_a_certificate_leaves_out():
    """Else the invariant that tells the number would be dropped, and the fact speak of it."""
    names = Names({"f": {}}, {"s1": ("at", "g", BELIEVED)}, Pointers((PointerFact((), (8, 4)),)))
    tracer = SimpleNamespace(names=names, _graph=SimpleNamespace(entry="f"))
    constants = Passage(frozenset({"s1"}), {}, {"s1": constant(0x20000000)})
    with pytest.raises(VerificationError, match="a constant wherever it begins"):
        Tracer.check_believed(tracer, [constants, constants])
    Tracer.check_believed(tracer, [constants, Passage(frozenset({"s1"}), {}, {"s1": named("1a.r3")})])


# -------------------------------------------------------------------------------------------------------- forgeries


def test_places_hold_sums_of_symbols():
    found = check(proved(*SUMS), *SUMS[:2])
    assert found.is_full, [one for one in found.findings if one.verdict != "ok"]
    text = proved(*SUMS)["bound"]["certificates"][1]
    assert annotations_of(read_records(text), Pointers()).names.sums


NAME = r"^(name \S+ \S+ )(s\d+)\+(s\d+)\*-1 (-?\d+)"
FORGED = {
    "another offset": (edited(NAME, r"\g<1>\2+\3*-1 16"), "is not s"),
    "another sign": (edited(NAME, r"\1\2+\3 \4"), "is not s"),
    "the other order": (edited(NAME, r"\1\3*-1+\2 \4"), "the name of .* is none"),
    "of no symbol": (edited(NAME, r"\1\2+s999*-1 \4"), "the name of .* is none"),
    "a line of a sum": (edited(r"^(must data \S+ s\d+\+\S+) (-?\d+)", r"\1 4096"), "a line that is said to be"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_sum_is_refused(name):
    change, reason = FORGED[name]
    with pytest.raises(VerificationError, match=reason):
        check(rewritten(proved(*SUMS), change), *SUMS[:2])


def test_a_sum_is_claimed_of_no_place_where_the_call_begins():
    def change(lines):
        entry = lines[one_of(lines, "^entry ")].split(" ")[1]
        return [re_named(line, entry) for line in lines]

    def re_named(line, entry):
        words = line.split(" ")
        return f"{line.rsplit(' ', 2)[0]} s2+s28 0" if words[:3] == ["name", entry, "r3"] else line

    with pytest.raises(VerificationError, match=r"claimed where the call begins|is none"):
        check(rewritten(proved(*SUMS), change), *SUMS[:2])


@pytest.mark.parametrize(("second", "is_same"), [("ori", True), ("oris", False)])
def test_a_mask_of_the_upper_half_is_another_one(second, is_same):
    """What oris computed had the name of what ori did, and the line of the one was taken for that of the other."""
    core = load_target("mpc603e")
    body = f"ori 5, 3, 0x100\n {second} 6, 3, 0x100\n lwz 7, 0(5)\n lwz 8, 0(6)\n blr\n"
    document, binary = document_of(guest_of(assembler({"f": body}, core), core))
    fill = core.memory.line_cycles(core.dcache.line_bytes)

    def cheaper(problem, derivations, followed):
        if problem.unit == "cycles" and not is_same:
            (node,) = problem.nodes
            once = {"write-backs:misses": {"enter": -1}}
            constraints = [
                replace(one, coefficients={**one.coefficients, **once.get(one.name, {})}) for one in problem.constraints
            ]
            problem = replace(problem, nodes=(replace(node, cost=node.cost - fill),), constraints=tuple(constraints))
        return problem, derivations, followed

    document = solved_again(document, cheaper)
    assert document["bound"]["cycles"] == 105
    refused = nullcontext() if is_same else pytest.raises(VerificationError, match="costs at least 105 cycles")
    with patch("wcet_probe.certificate.check.check_shown", return_value="nothing"), refused:
        assert check_bound(document, binary).is_full
