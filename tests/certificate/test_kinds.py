"""Words by what they are made of: the operations hold for words of which it is known how they were made."""

import operator
from random import Random

import pytest

from wcet_probe.certificate.congruences import MOST_MODULUS, UNALIGNED, Congruence
from wcet_probe.certificate.kinds import (
    ANYTHING,
    ARENA,
    MIXED,
    NEAR,
    NULL,
    NUMBER,
    PAYLOAD,
    STATIC,
    UNKNOWN,
    ZERO,
    Part,
    added,
    computed,
    followed,
    masked,
    new,
    power_in,
    scaled,
    text_of,
    within,
    word,
    word_of,
)
from wcet_probe.certificate.records import demand

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
    known = Congruence(1 << random.randint(0, 12), 0)
    part = Part(
        f"given{distance:+d}" if kind == "given" else kind,
        kind not in {"null", "given"} and random.random() < 0.5,
        Congruence(known.modulus, value % known.modulus),
    )
    other = Part(NUMBER, True, UNALIGNED)
    return value, times, word((part, other) if random.random() < 0.3 and part.kind != NUMBER else (part,))


def covers(parts, value, times):
    """Whether some part tells of a word that it is made so; of what may be anything, any does."""
    return any(_is_of(part, value, times) for part in parts)


def _is_of(part, value, times):
    if part.kind == UNKNOWN:
        return True
    is_of_class = value % part.value.modulus == part.value.residue
    if part.kind == MIXED:  # a list's head less something is none, too: a lemma
        return is_of_class and (times not in MADE_OF.values() or (part.is_loaded and times == (0, 1)))
    if part.kind.startswith("given") and value != BLOCK + int(part.kind.removeprefix("given")):
        return False
    is_kind = {(0, 0): part.is_number, (1, 0): part.is_arena, (0, 1): part.kind == STATIC}.get(times, False)
    return is_of_class and is_kind and (part.kind != NULL or value == 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_sum_or_difference_is_of_a_kind_that_is_told(seed):
    random = Random(f"sums {seed}")
    for _ in range(3000):
        (one, counts, parts), (other, others, more) = random_word(random), random_word(random)
        sign = random.choice((1, -1))
        is_constant = others == (0, 0) and other and random.random() < 0.5
        if is_constant:
            more = (Part(NUMBER, False, Congruence(MOST_MODULUS, other % MOST_MODULUS), ZERO),)
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
        own = times if is_kept else (0, 0) if mask <= 0xFFFF or times == (0, 0) else (9, 9)
        if all(part.is_number for part in parts) and value == 0:
            own = (0, 0)
        assert covers(found, value & mask, own), (text_of(parts), hex(mask), text_of(found))


def test_a_multiple_and_what_is_computed_otherwise_are_numbers_of_numbers_only():
    number, link = (Part(NUMBER, True, Congruence(4, 2)),), (Part(ARENA, True, Congruence(8, 0)),)
    assert scaled(number, 12) == (Part(NUMBER, True, Congruence(16, 8), None, ZERO),)
    assert [part.kind for part in scaled(link, 4)] == [MIXED]
    assert computed([number, link])[0].kind == MIXED
    assert computed([number, (link[0]._replace(is_loaded=False),)]) == ANYTHING
    assert computed([number, (Part(STATIC, False, ZERO),)]) == ANYTHING
    assert computed([number, number]) == (Part(NUMBER, True, UNALIGNED),)
    assert power_in(number) == 2
    assert power_in((*number, *link)) == 2


def test_what_is_followed_is_no_null_and_no_loaded_number():
    parts = tuple(Part(kind, False, UNALIGNED) for kind in (NULL, NEAR, NUMBER, ARENA))
    loaded = tuple(Part(kind, True, UNALIGNED) for kind in (NUMBER, MIXED, STATIC))
    assert [part.kind for part in followed((*parts, *loaded))] == [NUMBER, ARENA, STATIC]


def test_a_head_is_an_address_with_what_is_behind_it_only():
    head, number = (Part(STATIC, True, UNALIGNED),), (Part(NUMBER, False, Congruence(MOST_MODULUS, 8), ZERO),)
    assert added(head, number, constant=8)[0].kind == STATIC
    assert added(head, number, sign=-1, constant=8)[0].kind == MIXED
    assert added(head, (Part(NUMBER, False, UNALIGNED),))[0].kind == MIXED
    named = (Part(STATIC, False, UNALIGNED),)
    assert added(named, number, sign=-1, constant=8)[0].kind == STATIC
    assert added(named, named, sign=-1) == ANYTHING
    assert added(named, (Part(ARENA, False, UNALIGNED),)) == ANYTHING


def test_a_block_that_is_given_is_known_by_its_distance_alone():
    given = (Part("given+8", False, UNALIGNED),)
    number = (Part(NUMBER, False, ZERO, ZERO),)
    assert added(given, number, sign=-1, constant=16)[0].kind == "given-8"
    assert added(given, number, constant=1000)[0].kind == PAYLOAD
    assert added(added(given, number, constant=1000), number, sign=-1, constant=2000)[0].kind == PAYLOAD
    assert added(given, number, sign=-1, constant=1000)[0].kind == ARENA
    assert added(given, (Part(NUMBER, False, UNALIGNED),))[0].kind == ARENA
    assert new(given, is_loaded=False) == (Part(ARENA, False, UNALIGNED),)
    assert masked(given, WORD - 8)[0].kind == ARENA


def test_the_numbers_that_a_sum_is_made_of_are_told():
    link = (Part(ARENA, True, Congruence(8, 0)),)
    eight = (Part(NUMBER, False, Congruence(MOST_MODULUS, 8), Congruence(MOST_MODULUS, 8)),)
    moved = added(link, (eight[0]._replace(value=Congruence(MOST_MODULUS, 4)),), constant=4)
    assert moved[0].value == Congruence(8, 4)
    assert moved[0].roots == Congruence(8, 0)
    either = word((*link, *moved))
    assert either[0].value == Congruence(4, 0)
    assert either[0].roots == Congruence(8, 0)
    both = added(link, (Part(NUMBER, True, Congruence(4, 0)),))
    assert both[0].roots == Congruence(4, 0)
    assert within(link, either)
    assert not within(either, link)


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
        number = (Part(NUMBER, False, Congruence(MOST_MODULUS, 4), Congruence(MOST_MODULUS, 4)),)
        other = added(other, number, constant=4)
        found = word((*one, *other))
        assert within(one, found)
        assert within(other, found)
        assert operator.eq(word((*found, *one, *other)), found)
