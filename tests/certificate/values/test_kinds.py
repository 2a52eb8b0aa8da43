"""Words by what they are made of: the operations hold for words of which it is known how they were made."""

import operator
from random import Random

import pytest

from wcet_probe.certificate.kernel.records import demand
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.kinds import (
    ANYTHING,
    ARENA,
    MIXED,
    NEAR,
    NULL,
    NUMBER,
    PAYLOAD,
    STATIC,
    TABLE,
    UNKNOWN,
    Part,
    added,
    bitwise,
    computed,
    followed,
    masked,
    multiples,
    new,
    reaching,
    scaled,
    shifted,
    text_of,
    within,
    word,
    word_of,
)
from wcet_probe.certificate.values.numbers import number
from wcet_probe.certificate.values.residues import (
    ALL,
    MODULUS,
    members,
    of_class,
    of_value,
    residue,
    text_of_residues,
)

WORD = 1 << 32
ARENA_START, STATIC_START, BLOCK = 0x3000_0028, 0x0040_0010, 0x3000_0140
MADE_OF = {"arena": (1, 0), "static": (0, 1), "number": (0, 0)}


def random_word(random):
    """A word that somebody made: its value, how often the arena's start and static data are in it; and what is told."""
    kind = random.choice([*MADE_OF, "null", "given"])
    times = MADE_OF["arena" if kind == "given" else "number" if kind == "null" else kind]
    distance = 8 * random.randint(-4, 12) if kind == "given" else 4 * random.randrange(1, 1 << 10)
    base = {"arena": ARENA_START, "static": STATIC_START, "given": BLOCK}.get(kind, 0)
    value = 0 if kind == "null" else base + distance
    modulus = 1 << random.randint(0, 6)
    known = of_class(Congruence(modulus, value % modulus)) | residue(random.randrange(MODULUS))
    part = Part(
        f"given{distance:+d}" if kind == "given" else kind,
        kind not in {"null", "given"} and random.random() < 0.5,
        known,
    )
    if kind == "static" and not part.is_loaded and random.random() < 0.5:
        part = part._replace(reach=(value - random.randrange(64), value + random.randrange(64)))
    other = Part(NUMBER, True, ALL)
    return value, times, word((part, other) if random.random() < 0.3 and part.kind != NUMBER else (part,))


def covers(parts, value, times):
    """Whether some part tells of a word that it is made so; of what may be anything, any does."""
    return any(_is_of(part, value, times) for part in parts)


def _is_of(part, value, times):
    if part.kind == UNKNOWN:
        return True
    if part.reach is not None and not part.reach[0] <= value <= part.reach[1]:
        return False
    is_of_class = bool(part.value >> value % MODULUS & 1)
    if part.kind == MIXED:  # a list's head less something is none, too: a lemma
        return is_of_class and (times not in MADE_OF.values() or (part.is_loaded and times == (0, 1)))
    if part.kind.startswith("given") and value != BLOCK + int(part.kind.removeprefix("given")):
        return False
    is_kind = {(0, 0): part.is_number, (1, 0): part.is_arena, (0, 1): part.kind in {STATIC, TABLE}}.get(times, False)
    return is_of_class and is_kind and (part.kind != NULL or value == 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_or_difference_is_of_a_kind_that_is_told(seed):
    random = Random(f"sums {seed}")
    for _ in range(3000):
        (one, counts, parts), (other, others, more) = random_word(random), random_word(random)
        sign = random.choice((1, -1))
        is_constant = others == (0, 0) and other and random.random() < 0.5
        if is_constant:
            more = (Part(NUMBER, False, residue(other), other % MODULUS),)
        found = added(parts, more, sign=sign, constant=other if is_constant else None)
        times = tuple(a + sign * b for a, b in zip(counts, others, strict=True))
        assert covers(found, (one + sign * other) % WORD, times), (text_of(parts), text_of(more), sign, text_of(found))


@pytest.mark.parametrize("seed", range(4))
def test_a_mask_keeps_addresses_and_classes(seed):
    random = Random(f"masks {seed}")
    for _ in range(3000):
        value, times, parts = random_word(random)
        mask = random.choice((1, 7, 12, 0xFF, 0xFFF8, WORD - 8, WORD - 4, WORD - 64, 0, random.randrange(WORD)))
        is_kept = mask >= WORD - 64
        found = masked(parts, mask)
        own = times if is_kept else (0, 0)
        if all(part.is_number for part in parts) and value == 0:
            own = (0, 0)
        assert covers(found, value & mask, own), (text_of(parts), hex(mask), text_of(found))


FOUR, EIGHT = (of_class(Congruence(one, 0)) for one in (4, 8))


def test_multiples_and_what_is_computed_otherwise_are_numbers():
    number, link = (Part(NUMBER, True, of_class(Congruence(4, 2))),), (Part(ARENA, True, EIGHT),)
    assert scaled(number, 12) == (Part(NUMBER, True, of_class(Congruence(16, 8)), None, 1),)
    assert scaled(link, 4) == (Part(NUMBER, True, of_class(Congruence(32, 0)), None, 1),)
    one = (Part(NUMBER, False, residue(1), 1),)
    assert bitwise(operator.or_, number, one) == (Part(NUMBER, True, of_class(Congruence(4, 3))),)
    assert bitwise(operator.or_, link, one) == (Part(NUMBER, True, of_class(Congruence(8, 1))),)
    assert shifted(one, (3, 4, 40)) == (Part(NUMBER, False, residue(0) | residue(8) | residue(16)),)
    assert computed([number, link]) == computed([number, number]) == (Part(NUMBER, True, ALL),)
    own, named = (Part(ARENA, False, EIGHT),), (Part(STATIC, False, residue(0)),)
    for one in (own, named, ANYTHING):
        assert computed([one]) == computed([number, one]) == (Part(NUMBER, False, ALL),)
    assert multiples(number) == of_class(Congruence(2, 0))
    assert multiples((*number, *link)) == of_class(Congruence(2, 0))
    assert multiples((Part(NUMBER, False, residue(0)),)) == residue(0)


def test_a_number_times_one_is_no_multiple_of_which_facts_do_not_speak():
    """They speak of what is added or subtracted once, however often it was multiplied by 1 or -1 before."""
    odd = (Part(NUMBER, False, of_class(Congruence(4, 1))),)
    assert [part.roots for part in scaled(odd, 2)] == [1]
    assert [part.roots for part in scaled(odd, 1)] == [of_class(Congruence(4, 1))]
    assert [part.roots for part in scaled(odd, 0xFFFFFFFF)] == [of_class(Congruence(4, 3))]
    assert scaled(odd, -1) == scaled(odd, 0xFFFFFFFF)


def test_what_is_followed_is_no_null_and_no_loaded_number():
    parts = tuple(Part(kind, False, ALL) for kind in (NULL, NEAR, NUMBER, ARENA))
    loaded = tuple(Part(kind, True, ALL) for kind in (NUMBER, MIXED, STATIC))
    assert [part.kind for part in followed((*parts, *loaded))] == [NUMBER, ARENA, STATIC]


def test_a_head_is_an_address_with_what_is_behind_it_only():
    head, number = (Part(STATIC, True, ALL),), (Part(NUMBER, False, residue(8), 8),)
    assert added(head, number, constant=8)[0].kind == STATIC
    assert added(head, number, sign=-1, constant=8)[0].kind == MIXED
    assert added(head, (Part(NUMBER, False, ALL),))[0].kind == MIXED
    named = (Part(STATIC, False, ALL),)
    assert added(named, number, sign=-1, constant=8)[0].kind == STATIC
    table = added(named, (Part(NUMBER, False, ALL),))
    assert [part.kind for part in table] == [TABLE]
    assert [part.kind for part in added(table, number, sign=-1, constant=8)] == [TABLE]
    assert new(table, is_loaded=False) == new(head, is_loaded=False)
    assert [one[0].is_computed for one in (head, named, table)] == [True, False, True]
    assert added(named, named, sign=-1) == ANYTHING
    assert added(named, table, sign=-1) == ANYTHING
    assert added(named, (Part(ARENA, False, ALL),)) == ANYTHING


def test_what_is_told_of_where_an_address_lies_holds_of_sums_and_joins():
    named, number = (Part(STATIC, False, FOUR),), (Part(NUMBER, False, FOUR),)
    (table,) = reaching(added(named, number), 0x400010, 0x40007C)
    assert table.kind == TABLE
    assert table.reach == (0x400010, 0x40007C)
    assert reaching((table,), 0x400000, 0x400020)[0].reach == (0x400010, 0x400020)
    assert not reaching((table,), 0x400080, 0x400090)
    constant = (Part(NUMBER, False, residue(4), 4),)
    assert added((table,), constant, constant=4)[0].reach == (0x400014, 0x400080)
    assert added((table,), constant, sign=-1, constant=4)[0].reach == (0x40000C, 0x400078)
    wraps = reaching((table._replace(reach=None),), WORD - 8, WORD - 4)
    assert added(wraps, constant, constant=4)[0].reach is None
    assert added(reaching(named, 0, 8), constant, sign=-1, constant=4)[0].reach is None
    assert added((table,), number)[0].reach is None
    assert added(number, (table,))[0].reach is None
    assert added(constant, (table,), sign=1)[0].reach is None
    assert masked((table,), WORD - 8)[0].reach is None
    assert new((table,), is_loaded=False)[0].reach is None
    (other,) = reaching((table._replace(reach=None),), 0x400000, 0x400008)
    assert word((table, other))[0].reach == (0x400000, 0x40007C)
    assert word((table, table._replace(reach=None)))[0].reach is None
    assert within((table,), word((table, other)))
    assert within((table,), (table._replace(reach=None),))
    assert not within(word((table, other)), (table,))
    assert not within((table._replace(reach=None),), (table,))


def test_where_nothing_but_an_address_of_static_data_may_lie_is_not_told():
    others = tuple(Part(kind, False, ALL) for kind in (ARENA, NUMBER, MIXED, "given+8"))
    loaded = (Part(STATIC, True, ALL),)
    assert reaching((*others, *loaded), 0x400010, 0x40007C) == (*others, *loaded)
    (named,) = reaching((Part(STATIC, False, ALL),), 0, WORD - 4)
    assert named.reach is None
    (table,) = reaching((Part(TABLE, False, FOUR),), 0x400010, 0x40007C)
    assert text_of((table,)) == "table@0x400010-0x40007c:4:0:o0"
    assert word_of(text_of((table,)), demand) == (table,)


def test_a_block_that_is_given_is_known_by_its_distance_alone():
    given = (Part("given+8", False, ALL),)
    number = (Part(NUMBER, False, residue(0)),)
    assert added(given, number, sign=-1, constant=16)[0].kind == "given-8"
    assert added(given, number, constant=1000)[0].kind == PAYLOAD
    assert added(added(given, number, constant=1000), number, sign=-1, constant=2000)[0].kind == PAYLOAD
    assert added(given, number, sign=-1, constant=1000)[0].kind == ARENA
    assert added(given, (Part(NUMBER, False, ALL),))[0].kind == ARENA
    assert new(given, is_loaded=False) == (Part(ARENA, False, ALL),)
    assert masked(given, WORD - 8)[0].kind == ARENA


def test_the_numbers_that_a_sum_is_made_of_are_told():
    link = (Part(ARENA, True, EIGHT),)
    moved = added(link, (Part(NUMBER, False, residue(4), 4),), constant=4)
    assert moved[0].value == of_class(Congruence(8, 4))
    assert moved[0].roots == EIGHT
    either = word((*link, *moved))
    assert either[0].value == FOUR
    assert either[0].roots == EIGHT
    both = added(link, (Part(NUMBER, True, FOUR),))
    assert both[0].roots == FOUR
    assert within(link, either)
    assert not within(either, link)


def test_residues_are_those_of_values_and_have_one_text():
    assert text_of_residues(ALL) == "1:0"
    assert text_of_residues(EIGHT) == "8:0"
    assert text_of_residues(EIGHT | of_class(Congruence(8, 1))) == "8:0,1"
    assert text_of_residues(residue(63)) == "64:63"
    random = Random("values")
    for _ in range(500):
        value = number(
            low := random.randrange(-200, 200), low + random.randrange(800), random.choice((1, 2, 4, 12, 64))
        )
        assert {one % MODULUS for one in value.words()} <= set(members(of_value(value)))


def test_a_word_has_one_text():
    random = Random("texts")
    for _ in range(500):
        parts = [random_word(random)[2] for _ in range(2)]
        own = word(part for each in parts for part in each)
        assert word_of(text_of(own), demand) == own
        assert within(own, own)
        assert within(own, ANYTHING)
        assert all(within(each, own) for each in parts)


def test_joining_is_an_upper_bound_of_its_operands():
    random = Random("joins")
    for _ in range(2000):
        one, other = random_word(random)[2], random_word(random)[2]
        number = (Part(NUMBER, False, residue(4), 4),)
        other = added(other, number, constant=4)
        found = word((*one, *other))
        assert within(one, found)
        assert within(other, found)
        assert operator.eq(word((*found, *one, *other)), found)
