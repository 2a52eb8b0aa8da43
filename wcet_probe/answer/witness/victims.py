"""Replacement that is no function of the accesses: which victims a witness is observed with.

What is evicted depends on a seed where replacement is random, and on where the counter stands where a round robin has
one for all sets. One of them is no worst case: a call is run with many, and the dearest is the witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wcet_probe.model.measurement import CallCost
from wcet_probe.model.target import CacheConfig, Replacement, Target, Victims

MOST_TRIED = 64
"""Seeds of random replacement that are tried."""
LEAST_TRIED = 16
"""Choices that are tried of each candidate state, of however many; of the extreme one then all."""
TRIED_OF_ALL = 4096
"""Choices that are tried of all candidate states together, if not more than ``LEAST_TRIED`` of each.

All of each, for as many states as scenarios have: with fewer the dearest state is not told from its neighbours.
"""
MOST_INSTRUCTIONS = 1 << 25
"""No further choice is tried when this many instructions were run: a count, so that results do not depend on time."""


def victim_choices(target: Target) -> tuple[Victims, ...]:
    """The choices to be tried: the target's own seeds first, then those that follow them, modulo 2**32.

    Of two caches both move on in step: what one does, does not depend on the other, so that `extreme_victims` may take
    the seed of each from another choice. Where the counter of a round robin stands is tried in all ways.
    """
    caches = [cache for cache in (target.icache, target.dcache) if cache and cache.replacement.has_seed]
    count = max((_most(cache) for cache in caches), default=1)
    return tuple(
        Victims(_seed(None if target.unified_cache else target.icache, number), _seed(target.dcache, number), count)
        for number in range(count)
    )


def tried_of_each(states: int) -> int:
    """Most choices to be tried of each of so many candidate states, before the extreme one is chosen."""
    return min(MOST_TRIED, max(LEAST_TRIED, TRIED_OF_ALL // states))


def _most(cache: CacheConfig) -> int:
    if cache.ways == 1:
        return 1
    return cache.ways if cache.replacement is Replacement.ROUND_ROBIN else MOST_TRIED


def _seed(cache: CacheConfig | None, number: int) -> int | None:
    if cache is None or not cache.replacement.has_seed:
        return None
    return (cache.seed + number) % (1 << 32)


def seeded(target: Target, victims: Victims) -> Target:
    """``target`` with the seeds of ``victims``; a unified cache has that of the data."""

    def of(cache: CacheConfig | None, seed: int | None) -> CacheConfig | None:
        return cache if cache is None or seed is None else replace(cache, seed=seed)

    dcache = of(target.dcache, victims.dcache_seed)
    icache = dcache if target.unified_cache else of(target.icache, victims.icache_seed)
    return replace(target, icache=icache, dcache=dcache)


def extreme_victims(target: Target, found: Mapping[Victims, CallCost], *, is_fewest: bool) -> Victims:
    """The choice with the most cycles, or the fewest, put together of those of ``found``, by what each brought.

    Caches of their own do not hear of each other, so the dearest seed of each is looked for by itself; of equal ones
    the first is taken.
    """
    pick = min if is_fewest else max

    def fetching(victims: Victims) -> int:
        measured = found[victims]
        if target.icache is None or target.unified_cache:
            return 0
        return measured.icache.misses * target.memory.line_cycles(target.icache.line_bytes)

    own = pick(found, key=fetching)
    data = pick(found, key=lambda victims: found[victims].cycles - fetching(victims))
    return Victims(own.icache_seed, data.dcache_seed, len(found))
