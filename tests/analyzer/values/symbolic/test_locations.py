"""Which locations share bytes: the index against the definition."""

import random

import pytest

from wcet_probe.analyzer.values.symbolic.locations import Location, Overlaps


@pytest.mark.parametrize("seed", range(4))
def test_the_index_knows_all_that_overlap_and_no_other(seed):
    draw, index, added = random.Random(seed), Overlaps(), set()
    for _ in range(300):
        space = draw.choice(("register", "stack"))
        location = Location(space, draw.randrange(-80, 80), draw.choice((1, 2, 4, 8, 40)))
        index.add(location)
        added.add(location)
        probe = draw.choice(sorted(added))
        found = index.add(probe)
        assert len(found) == len(set(found))
        assert set(found) == {one for one in added if one.overlaps(probe)}
