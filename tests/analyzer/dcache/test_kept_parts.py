"""Parts of a call and the lines that they keep: no walk through the code, in any cache, misses more often."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest

from tests.analyzer.dcache.test_worked_examples import example
from tests.analyzer.kept_stores import storing
from tests.end_to_end.test_cache_soundness import analysed
from tests.support import cache_config, guest_of
from wcet_probe.analyzer.dcache.footprints import crowding, data_footprint, kept_lines
from wcet_probe.analyzer.dcache.kept_parts import MOST_PARTS, KeptPart, kept_parts
from wcet_probe.analyzer.domains.cache_sets import stores_evict
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import AnalysisError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

LINE = 16
POLICIES = ("lru", "fifo", "plru", "random", "round-robin")


@cache
def functions(seed):
    guest = guest_of(storing(seed, 4), load_target("mpc603e"), ".c")
    found = []
    for number in range(4):
        try:
            found.append(analysed(guest, f"f{number}").prepared.values)
        except AnalysisError:
            continue
    return found


def any_address(draw, spans, start, config):
    """The address of a byte that an access may be to; None stands for anywhere, mostly in one set."""
    if spans is None:
        number = config.sets * draw.randrange(1 << 12) + draw.choice((0, 0, draw.randrange(config.sets)))
        return number * config.line_bytes
    base, low, end = draw.choice(spans)
    return draw.randrange(low, end) + (start if base is Base.STACK else 0)


class Walk:
    """A walk along edges, whether the code can take it or not: misses, executions and entries."""

    def __init__(self, draw, values, where, config, start):
        self.misses, self.evicting, self.taken = Counter(), Counter(), Counter()
        simulated = CacheSimulation(config, draw.choice((InitialCache.COLD, InitialCache.DIRTY)))
        for _ in range(draw.randrange(60)):  # what was before
            simulated.access(config.line_bytes * draw.randrange(64), is_write=draw.random() < 0.5)
        point, edge = 0, None
        for _ in range(400):
            self.taken[edge] += 1
            for access in values.accesses.get(point, ()):
                key = point, access.instruction_address
                hit = simulated.access(any_address(draw, where.get(key), start, config), is_write=access.is_store)
                self.evicting[key] += not access.is_store or stores_evict(config)
                self.misses[key] += not hit and (config.write_allocate or not access.is_store)
            edge = draw.choice(values.leaving[point])
            if edge.target == EXIT:
                break
            point = edge.target


def caches(draw):
    sets, ways, policy = draw.choice((1, 2, 4, 8)), draw.choice((1, 2, 4)), Replacement(draw.choice(POLICIES))
    return cache_config(sets, ways, LINE, policy, write_allocate=draw.random() < 0.5, seed=draw.randrange(8))


def excess(part, walk):
    """By how much the misses on the part's lines are more than what is said of them; none if not above zero."""
    own = [one for one in walk.misses if part.nodes is None or one[0] in part.nodes]
    strays = sum(walk.evicting[one] for one in part.strays)
    misses = sum(walk.misses[one] for one in own if one not in part.strays and one not in part.crowding)
    each = part.lines.strays_for_each if part.strays else 1
    entered = 1 if part.nodes is None else sum(walk.taken[edge] for edge in part.entries)
    return each * (misses - part.lines.number * entered) - part.lines.in_a_set * strays


def whole(call, config, stack_pointer):
    """What all of the call keeps, as a part."""
    lines = kept_lines(call[0], config, stack_pointer, in_part=True)
    return [] if lines is None else [KeptPart(lines, call[1], crowding(call[2], lines, config))]


def refuted(seeds, config_of=caches, changed=lambda part: part):
    """How many parts are held against walks, and how many of them refuted."""
    held = wrong = 0
    for seed in seeds:
        draw = random.Random(seed)
        for values in functions(seed % 8):
            config = config_of(draw)
            call = data_footprint(values, config)
            start = 1 << 16 | 8 * draw.randrange(64)  # of the stack, anywhere in the cache
            for known in (None, start):
                parts = [*whole(call, config, known), *kept_parts(values, call, config, known)]
                walks = [Walk(draw, values, call[2], config, start) for _ in range(4 if parts else 0)]
                held += len(parts)
                wrong += sum(any(excess(changed(one), walk) > 0 for walk in walks) for one in parts)
    return held, wrong


def test_no_walk_misses_more_often_in_a_part_than_its_lines_and_entries_and_strays_allow():
    held, wrong = refuted(range(24))
    assert held > 150
    assert wrong == 0


def test_walks_refute_that_a_part_keeps_a_line_less():
    _, wrong = refuted(
        range(48), changed=lambda one: one._replace(lines=one.lines._replace(number=one.lines.number // 2))
    )
    assert wrong > 10


TWO = """
struct { unsigned one[128], other[128]; } all __attribute__((aligned(512)));
unsigned f(unsigned n, unsigned count, unsigned *p) {
    unsigned sum = *p;
    for (unsigned i = 0; i < 99; i++) { sum = sum * 5 + all.one[n >> 25]; n = n * 7 + sum; }
    for (unsigned i = 0; i < 99; i++) { sum = sum * 5 + all.other[n >> 25]; n = n * 7 + sum; }
    return sum;
}"""


def told(ways=1, *, is_held=False):
    one = example(TWO, spec=f"d:sets=16,ways={ways},line=32,policy=lru")
    config = one.lines.places.config
    call = data_footprint(one.values, config)
    held = frozenset(call[2] if is_held else ())
    return call[0], call[1], config, kept_parts(one.values, call, config, None, held)


def test_a_stray_outside_of_a_loop_evicts_nothing_in_it():
    found, strays, config, parts = told(ways=2)
    assert (len(strays), kept_lines(found, config)[:3]) == (1, (32, 2, 1))
    assert [(one.lines.number, one.strays, len(one.entries)) for one in parts] == [(16, frozenset(), 1)] * 2


def test_what_a_larger_part_keeps_is_told_of_no_smaller_one():
    *_, parts = told(is_held=True)
    assert parts == ()
    assert len(told()[-1]) == 2
    assert MOST_PARTS > 2


STACK = """
unsigned words[8] __attribute__((aligned(32)));
unsigned f(unsigned n) {
    volatile unsigned own[4];
    unsigned sum = 0;
    for (unsigned i = 0; i < 9; i++) { own[i & 3] = sum; sum = sum * 5 + words[n >> 29]; n = n * 7 + sum; }
    return sum;
}"""


@pytest.mark.parametrize("known", [None, 0x1000])
def test_of_a_stack_somewhere_and_other_lines_each_may_be_strays_to_the_other(known):
    one = example(STACK, spec="d:sets=16,ways=1,line=32,policy=lru")
    config = one.lines.places.config
    parts = kept_parts(one.values, data_footprint(one.values, config), config, known)
    if known is None:
        assert [(each.lines.number, len(each.strays)) for each in parts] == [(1, 1), (2, 1)]
        assert parts[0].strays != parts[1].strays
    else:
        assert [(each.strays, each.crowding) for each in parts] == [(frozenset(), frozenset())]
