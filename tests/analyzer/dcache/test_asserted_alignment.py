"""Where what facts say of pointers holds: at their accesses, and behind those that have shown it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.dcache.test_worked_examples import example
from wcet_probe.analyzer.dcache.asserted_alignment import asserted_alignments, common
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.values.properties.congruences import Congruences

CLASSES = st.integers(0, 6).flatmap(
    lambda bits: st.builds(Congruence, st.just(1 << bits), st.integers(0, (1 << bits) - 1))
)
ASSERTED = st.dictionaries(st.integers(0, 3), CLASSES, max_size=4)


def numbers(one):
    return {number for number in range(128) if number % one.modulus == one.residue}


@given(ASSERTED, ASSERTED)
def test_where_ways_meet_only_what_both_assert_is_left(one, other):
    met = common(one, other)
    assert met.keys() == one.keys() & other.keys()
    assert all(numbers(one[term]) | numbers(other[term]) <= numbers(met[term]) for term in met)


NODE = "struct node { struct node *next; unsigned key, size; };\n"


def shown(source):
    """How many terms accesses before have shown, for each access of a load or store behind a pointer."""
    walk = example(NODE + source)
    found = asserted_alignments(walk.values, walk.pointers)
    alignments = [one for point in sorted(found) for one in found[point] if one.terms]
    return [sum(each.modulus > 1 for each in one.shown.values()) for one in alignments]


def test_a_first_access_shows_it_to_the_second():
    assert shown("unsigned f(struct node *n) { return n->key ^ n->size; }") == [0, 1]


def test_two_numbers_show_only_their_sum():
    assert shown("unsigned f(char *a, unsigned b) { return *(unsigned *)(a + b) ^ *(unsigned *)(a + b + 4); }") == [
        0,
        0,
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (c) n->key = 1; n->size = 2;", [0, 0]),
        ("n->key = 1; if (c) n->size = 2;", [0, 1]),
        ("if (c) n->key = 1; else n->key = 2; n->size = 3;", None),
    ],
)
def test_what_one_of_two_ways_has_shown_is_not_known_behind_them(body, expected):
    found = shown(f"void f(struct node *n, unsigned c) {{ {body} }}")
    assert found == expected if expected else found[-1] == 1


def test_a_new_node_has_shown_nothing():
    assert shown("unsigned f(struct node *n) { unsigned k = n->key; n = n->next; return k ^ n->size; }") == [0, 1, 0]


def test_where_classes_are_proved_a_pointer_that_steps_by_words_is_no_multiple_of_more():
    """The array was shown to be a multiple of 16; what is behind it by a word more each time was not."""
    walk = example(
        "unsigned f(unsigned *a, unsigned c) { unsigned k = *a; do { a += 1; k ^= *a; } while (--c); return k; }"
    )
    proved = Congruences(walk.values, 16).of_unknown
    found = asserted_alignments(walk.values, walk.pointers, proved)
    first, second = [one for point in sorted(found) for one in found[point] if one.terms]
    assert (first.shown, list(second.shown.values())) == ({}, [Congruence(4, 0)])
