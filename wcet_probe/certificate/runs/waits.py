# SPDX-License-Identifier: 0BSD
"""What a run waits for at most: misses of caches access by access, write-backs, and unaligned accesses.

Nothing is known of a cache at entry, and all that it holds may be modified. A line is in its set for as long as fewer
other lines than the ways that last (rule *age*) were touched there since; of anything but LRU and trees, until
something of its set may have been filled.
"""

from __future__ import annotations

from collections import Counter

from wcet_probe.certificate.caches.residents import lasting_ways
from wcet_probe.model.target import CacheConfig, Replacement, Target

_AGING = {Replacement.LRU, Replacement.PLRU}


class RunCache:
    """One cache along a run.

    Attributes:
        fills: of each set, the accesses that may fill a line.
        singles: stores that may go to memory by themselves.
    """

    def __init__(self, config: CacheConfig) -> None:
        self.line_bytes = config.line_bytes
        self._config, self._ways = config, lasting_ways(config) if config.replacement in _AGING else 1
        self._ages = config.replacement in _AGING
        self._held: dict[int, list[int]] = {}
        self._modified = set[int]()
        self._youngest = -1
        self.fills, self.singles = Counter[int](), 0
        self._modifying, self._perhaps = Counter[int](), Counter[int]()

    def touch(self, line: int, *, is_store: bool = False) -> None:
        """One access."""
        if line == self._youngest and not is_store:
            return
        config, number = self._config, line % self._config.sets
        held = self._held.setdefault(number, [])
        if held and held[0] == line and (not is_store or (config.write_back and line in self._modified)):
            self._youngest = line  # nothing else changes
            return
        is_held = line in held
        is_filling = not is_held and (config.write_allocate or not is_store)
        if is_store:
            self._store(line, number, is_held=is_held)
        elif not is_held:
            self._modified.discard(line)  # it may come from memory
        self.fills[number] += is_filling
        is_there = is_held or is_filling
        self._youngest = line if is_there else -1
        if self._ages:
            if is_held:
                held.remove(line)
            held.insert(0, line if is_there else -1)
            del held[self._ways :]
        elif is_filling:
            held[:] = [line]

    def _store(self, line: int, number: int, *, is_held: bool) -> None:
        """A line that is modified already, if it is there, is modified by no store to it."""
        config = self._config
        is_single = not config.write_back or (not is_held and not config.write_allocate)
        self.singles += is_single
        if config.write_back:
            if is_single:  # it goes to memory, or, if the line is there, modifies it
                self._perhaps[number] += line not in self._modified
            else:
                self._modifying[number] += not is_held or line not in self._modified
            self._modified.add(line)

    def cycles(self, target: Target) -> int:
        """What all of it costs at most: a fill writes back one line, of those that are modified."""
        fill, single = target.memory.line_cycles(self._config.line_bytes), target.memory.single_cycles
        found = self.fills.total() * fill + self.singles * single
        for number, fills in self.fills.items() if self._config.write_back else ():
            sure = min(fills, self._config.ways + self._modifying[number])
            found += sure * fill + min(fills - sure, self._perhaps[number]) * max(0, fill - single)
        return found
