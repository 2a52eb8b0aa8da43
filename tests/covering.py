"""Which cases of a test with many parameters the ordinary run takes: a covering array; the rest are campaigns.

A test marked ``covering`` keeps, of all combinations of its parameters, so many that every combination of values of any
two parameters occurs where there are three or more, and every value of each where there are two, or where the mark says
``covering(1)``; ``covering(0)`` keeps one case, and the name of the test decides which, so that all cores have their
tests. The others are marked ``slow``: `make soundness` runs the full matrix.

Source: D. M. Cohen, S. R. Dalal, M. L. Fredman, G. C. Patton, The AETG system, IEEE Trans. Softw. Eng. 23, 1997.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

Case = Sequence[int]
"""The number of the value of each parameter."""


def covering(cases: Sequence[Case], most: int = 2) -> frozenset[int]:
    """Numbers of the ``cases`` that are kept: greedily those with most that is new, of these the least used values.

    Of values of ``most`` parameters all combinations occur, where there are more parameters than that.
    """
    strength = min(most, max(1, len(cases[0]) - 1))
    own = [frozenset(combinations(enumerate(case), strength)) for case in cases]
    missing = frozenset().union(*own)
    used: Counter[tuple[int, int]] = Counter()
    kept: set[int] = set()
    while missing:

        def gain(number: int, missing: frozenset = missing) -> tuple[int, int, int]:
            return len(own[number] & missing), -sum(used[place] for place in enumerate(cases[number])), -number

        best = max((number for number in range(len(cases)) if number not in kept), key=gain)
        kept.add(best)
        missing -= own[best]
        used.update(enumerate(cases[best]))
    return frozenset(kept)


def one_of(cases: Sequence[object], name: str) -> frozenset[int]:
    """The number of one of the ``cases`` of the test called ``name``."""
    return frozenset({zlib.crc32(name.encode()) % len(cases)}) if cases else frozenset()


def numbered(parameters: Iterable[dict[str, object]]) -> list[list[int]]:
    """Parameters by name, as numbers of the values in the order in which they come."""
    seen: dict[str, list[object]] = {}
    found = []
    for one in parameters:
        for name, value in one.items():
            if value not in seen.setdefault(name, []):
                seen[name].append(value)
        found.append([seen[name].index(value) for name, value in one.items()])
    return found
