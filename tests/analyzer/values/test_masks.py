"""What is known of a number under a mask tells of it under larger ones, if that was known first."""

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.masks import least_by_masks
from wcet_probe.analyzer.values.terms import Terms


def test_the_least_of_smaller_masks_is_found():
    terms = Terms()
    x, y = (terms.symbol((name,), 32) for name in "xy")

    def masked(symbol, mask):
        return terms.apply("INT_AND", (symbol, terms.constant(mask, 32)), 32)

    smaller, beside, other, larger, late = masked(x, 12), masked(x, 48), masked(y, 12), masked(x, 15), masked(x, 8)
    assert terms.masks(x) == {smaller: 12, beside: 48, larger: 15, late: 8}
    assert terms.masks(y) == {other: 12}
    assert not terms.masks(smaller)
    known = {smaller: strided.between(32, 4, 12), beside: strided.between(32, 16, 48)}
    known |= {other: strided.between(32, 8, 12), late: strided.constant(32, 8)}
    assert least_by_masks(terms, known, larger) == 4
    assert least_by_masks(terms, {}, larger) == 0
