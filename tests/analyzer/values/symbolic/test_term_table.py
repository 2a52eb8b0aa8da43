"""What a table of terms tells of the parts of its terms."""

from wcet_probe.analyzer.values.symbolic.terms import Terms


def made():
    terms = Terms()
    x, y = terms.symbol(("in", "x"), 32), terms.symbol(("phi", 7, "y"), 32)
    total = terms.apply("INT_ADD", (x, y), 32)
    masked = terms.apply("INT_AND", (total, terms.constant(12, 32)), 32)
    return terms, x, y, total, masked


def test_the_same_operation_on_the_same_terms_is_the_same_term():
    terms, x, y, total, _ = made()
    before = len(terms)
    assert terms.apply("INT_ADD", (y, x), 32) == total
    assert terms.symbol(("in", "x"), 32) == x
    assert terms.symbol(("in", "x"), 8) != x
    assert len(terms) == before + 1


def test_a_term_is_made_of_its_symbols_and_a_whole_is_later():
    terms, x, y, total, masked = made()
    assert terms.symbols(masked) == {x, y}
    assert terms.symbols(terms.constant(5, 32)) == frozenset()
    assert terms.made_of(x) == {x, total, masked}
    assert set(terms.wholes(total)) >= {total, masked}
    assert terms.wholes(terms.constant(5, 32)) is None
    assert x < total < masked


def test_symbols_are_told_by_where_they_come_from():
    terms, x, y, total, masked = made()
    assert terms.given == {x}
    assert set(terms.meeting(7)) == {y}
    assert terms.speaking(7) == {y, total, masked}
    assert (set(terms.meeting(8)), terms.speaking(8)) == (set(), frozenset())


def test_masks_by_constants_are_found_by_what_they_mask():
    terms, x, _, total, masked = made()
    assert terms.masks(total) == {masked: 12}
    assert terms.masks(x) == {}
    assert [terms.has_low_bits(term) for term in (x, total, masked)] == [False, False, True]


def test_only_what_decides_a_gamma_node_is_decided_by():
    terms, x, y, total, _ = made()
    condition = terms.apply("INT_LESS", (x, terms.constant(3, 32)), 8)
    gamma = terms.gamma(condition, y, terms.constant(9, 32))
    assert terms.symbols(gamma) == {x, y}
    assert terms.deciding(gamma) == {x}
    assert terms.deciding(total) == {x, y}
