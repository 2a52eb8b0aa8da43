"""What is charged where it takes place, and what is counted for the whole call."""

from __future__ import annotations

from tests.analyzer.dcache.test_worked_examples import example
from wcet_probe.analyzer.dcache.charges import KEPT, Charge, KeptCall, fills, kept_constraints, kept_name
from wcet_probe.analyzer.dcache.footprints import KeptLines, data_footprint, kept_lines
from wcet_probe.analyzer.dcache.kept_parts import KeptPart
from wcet_probe.analyzer.graph.supergraph import Edge

FALL, TAKEN = Edge(1, 2, "fall", None), Edge(1, 3, "taken", None)


def charged(*misses):
    place = Charge()
    for point, address in misses:
        place.add(point, (address,))
    return place


def kept(*parts, names=None):
    """The ``parts``, with two accesses of each instruction at 0x20 or above."""
    told = [(name, *one) for name, accesses in (names or {}).items() for one in accesses]
    strays = {one for part in parts for one in part.strays}
    return KeptCall.of(parts, told, {one: 1 + (one[1] >= 0x20) for one in strays})


def test_without_strays_all_misses_are_counted_for_the_whole_call():
    inside, leaving = charged((1, 0x10), (1, 0x14), (2, 0x20)), charged((1, 0x18))
    whole = kept(KeptPart(KeptLines(5, 2, 3), frozenset()))
    executed, limit = kept_constraints(inside, leaving, (FALL, TAKEN), ("miss:0.0",), whole)
    assert not +inside.misses
    assert not +leaving.misses
    assert executed.points == ((1, -2), (2, -1))
    assert executed.edges == ((TAKEN, -1),)
    assert executed.auxiliaries == ((KEPT, 1),)
    assert (limit.points, limit.constant) == ((), 5)
    assert limit.auxiliaries == (("miss:0.0", 1), (KEPT, 1))


def test_strays_stay_charged_and_give_others_more_misses():
    inside = charged((1, 0x10), (1, 0x14), (2, 0x20))
    inside.add(2, (0x20, 0x14), 2)  # a line that they share in the block
    names = {"miss:0.0": {(1, 0x10), (1, 0x14)}, "miss:1.0": {(1, 0x10)}}
    whole = kept(KeptPart(KeptLines(5, 2, 3), frozenset({(1, 0x14), (2, 0x20)})), names=names)
    executed, limit = kept_constraints(inside, Charge(), (FALL, TAKEN), names, whole)
    assert +inside.misses == {1: 1, 2: 3}
    assert executed.points == ((1, -1),)
    assert limit.points == ((1, -2), (2, -4))
    assert limit.constant == 15
    assert limit.auxiliaries == (("miss:1.0", 3), (KEPT, 3))


def test_what_goes_to_crowded_sets_stays_charged_and_evicts_nothing():
    inside = charged((1, 0x10), (1, 0x14))
    names = {"miss:0.0": {(1, 0x14)}, "miss:1.0": {(1, 0x10)}}
    whole = kept(KeptPart(KeptLines(5, 2, 3, frozenset({0})), frozenset(), frozenset({(1, 0x14)})), names=names)
    executed, limit = kept_constraints(inside, Charge(), (FALL, TAKEN), names, whole)
    assert +inside.misses == {1: 1}
    assert executed.points == ((1, -1),)
    assert (limit.points, limit.constant, limit.auxiliaries) == ((), 5, (("miss:1.0", 1), (KEPT, 1)))


def test_a_part_of_the_call_keeps_its_lines_from_when_it_is_entered():
    """Two loads in a loop and one behind it; the loop keeps what the whole call does not."""
    inside = charged((1, 0x10), (2, 0x20), (3, 0x30))
    whole = KeptPart(KeptLines(5, 2, 3), frozenset(), frozenset({(1, 0x10)}))
    loop = KeptPart(KeptLines(4, 1, 2), frozenset({(2, 0x24)}), frozenset(), frozenset({1, 2}), (FALL, TAKEN))
    names = {"miss:0.0": {(1, 0x10)}, "miss:1.0": {(1, 0x10), (3, 0x30)}, "miss:2.0": {(2, 0x20)}, "fills": ()}
    both = kept(whole, loop, names=names)
    *executed, first, second = kept_constraints(inside, Charge(), (FALL, TAKEN), names, both)
    assert both.variables(inside) == {(1, 0x10): f"{KEPT}:1", (2, 0x20): f"{KEPT}:0.1", (3, 0x30): KEPT}
    assert not +inside.misses
    assert {one.auxiliaries[0][0]: one.points for one in executed} == {
        KEPT: ((3, -1),),
        f"{KEPT}:1": ((1, -1),),
        f"{KEPT}:0.1": ((2, -1),),
    }
    assert {name for name, _ in first.auxiliaries} == {"miss:2.0", "fills", KEPT, f"{KEPT}:0.1"}
    assert {name for name, _ in second.auxiliaries} == {"miss:0.0", "miss:2.0", f"{KEPT}:1", f"{KEPT}:0.1"}
    assert (first.constant, first.edges) == (5, ())
    # Each stray takes two accesses, and one line of the set, from four lines for each entry, all twice.
    assert (second.name, second.constant, second.edges) == (f"{KEPT}:1", 0, ((FALL, -8), (TAKEN, -8)))
    assert second.points == ((2, -2),)
    assert {factor for _, factor in second.auxiliaries} == {2}


def test_a_part_in_which_the_call_begins_is_entered_once_more():
    loop = kept(KeptPart(KeptLines(4, 1, 2), frozenset(), frozenset(), frozenset({0, 1}), (None, TAKEN)))
    _, limit = kept_constraints(charged((0, 0x10)), Charge(), (TAKEN,), (), loop)
    assert (limit.constant, limit.edges) == (4, ((TAKEN, -4),))


def test_a_part_of_which_no_miss_is_counted_has_no_constraint():
    loop = KeptPart(KeptLines(4, 1, 2), frozenset({(1, 0x10)}), frozenset(), frozenset({1}), (TAKEN,))
    assert not list(kept_constraints(charged((1, 0x10)), Charge(), (TAKEN,), (), kept(loop)))
    silent = KeptCall.of([loop], (), {(1, 0x10): 0})  # a store that evicts nothing
    _, limit = kept_constraints(charged((1, 0x14)), Charge(), (TAKEN,), (), silent)
    assert (limit.points, limit.edges) == ((), ((TAKEN, -8),))


def test_what_rests_on_a_known_stack_pointer_tells_it():
    assert kept_name(KeptLines(5, 2, 3)) == KEPT
    assert kept_name(KeptLines(5, 2, 3, frozenset(), 0x20010), 7) == f"{KEPT}:7:stack-pointer:0x20010"
    assert kept_name(KeptLines(5, 2, 3, frozenset(), 0x20010)) == f"{KEPT}:stack-pointer:0x20010"


def test_a_copy_is_charged_for_itself():
    inside = charged((1, 0x10))
    copy = inside.copied()
    copy.add(1, (0x10,))
    assert (inside.misses[1], copy.misses[1]) == (1, 2)
    assert copy.total(10) == {1: 20}


def test_what_leaves_a_point_is_limited_where_it_is_left():
    limit = fills("some", {2: 3}, {1: 4}, (FALL, TAKEN), (("x", 1),))
    assert (limit.points, limit.edges, limit.auxiliaries) == (((2, -3),), ((TAKEN, -4),), (("x", 1),))


def test_what_misses_once_where_it_is_executed_is_among_the_misses_of_lines_that_are_kept():
    """Two loads in two branches, of the same two lines as one before, which a stray may have evicted."""
    one = example(
        """
        volatile unsigned words[16] __attribute__((aligned(64)));
        unsigned f(unsigned *p) {
            unsigned sum = words[0] + words[8] + p[0];
            return sum & 1 ? sum + words[1] : sum + words[9];
        }""",
        spec="d:sets=16,ways=1,line=32,policy=lru",
    )
    config = one.lines.places.config
    footprint, strays, _ = data_footprint(one.values, config)
    whole = kept_lines(footprint, config)
    assert (whole.number, len(strays)) == (2, 1)
    counted = one.data.counting((KeptPart(whole, strays),), {})
    assert sum(one.data.points.values()) > 0
    assert sum(counted.points.values()) == 0
    (limit,) = (constraint for constraint in counted.constraints if constraint.name == KEPT)
    counting = {name for name, _ in limit.auxiliaries}
    told = {name for own in counted.counted.values() for _, name in own if name is not None}
    stray = {name for own in counted.counted.values() for address, name in own if (0, address) in strays} - {None}
    assert counting >= told - stray
