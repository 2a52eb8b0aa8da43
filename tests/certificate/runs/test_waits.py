"""What caches cost along a run: no cache that begins with anything costs more, and not less than the analysis says."""

from dataclasses import replace
from random import Random

import pytest

from wcet_probe.analyzer.followed_caches import RunCache as Proved
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.runs.waits import RunCache
from wcet_probe.model.target import Replacement


def simulated(config, accesses, random, target):
    """The cycles of one cache, least-recently-used, that holds any lines at entry, most of them modified."""
    sets = {
        number: [(16 * each + number, random.random() < 0.8) for each in random.sample(range(12), config.ways)]
        for number in range(config.sets)
    }
    fill, single, cycles = target.memory.line_cycles(config.line_bytes), target.memory.single_cycles, 0
    for line, is_store in accesses:
        own = sets[line % config.sets]
        held = [one for one in own if one[0] == line]
        cycles += single * (is_store and not config.write_back)
        if not held and is_store and not config.write_allocate:
            cycles += single * config.write_back
            continue
        if not held:
            cycles += fill * (1 + (own[-1][1] and config.write_back))
            del own[-1]
        is_modified = bool(held and held[0][1]) or (is_store and config.write_back)
        own[:] = [(line, is_modified), *(one for one in own if one[0] != line)]
    return cycles


@pytest.mark.parametrize("writes", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("replacement", list(Replacement))
def test_no_cache_costs_more_and_the_analysis_says_as_much(replacement, writes):
    target, random = load_target("mpc603e"), Random(f"{replacement} {writes}")
    for ways in (1, 2, 4):
        shape = {"sets": 16, "ways": ways, "write_back": writes[0], "write_allocate": writes[1]}
        config = replace(target.dcache, **shape, replacement=replacement)
        for _ in range(8):
            count = random.randrange(1, 60)
            accesses = [(16 * random.randrange(6) + random.randrange(2), random.random() < 0.4) for _ in range(count)]
            own, proved = RunCache(config), Proved(config)
            for line, is_store in accesses:
                own.touch(line, is_store=is_store)
                proved.touch(line, is_store=is_store)
            cycles = own.cycles(target)
            assert cycles == sum(count * cost for _, count, cost in proved.events("data", target))
            if replacement is Replacement.LRU:
                assert all(simulated(config, accesses, random, target) <= cycles for _ in range(4))


def test_lines_that_are_there_cost_nothing_again_and_a_line_is_modified_once():
    target = load_target("mpc603e")
    fill = target.memory.line_cycles(target.dcache.line_bytes)
    cache = RunCache(target.dcache)
    for _ in range(5):
        cache.touch(3)
        cache.touch(3, is_store=True)
    assert cache.cycles(target) == 2 * fill  # it, and what it evicts
