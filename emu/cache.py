"""The cache simulation in plain Python: the twin that the native core (``emu/native/cache.c``) is held equal to.

It is written from the definition of each policy and not from the C: lines live in ways, LRU and FIFO keep time stamps.

Modelling choices: as in ``emu/native/cache.h``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wcet_probe.model import CacheConfig, InitialCache, Replacement

_ALIEN = -1


@dataclass(slots=True)
class _Line:
    number: int
    dirty: bool
    filled: int
    used: int


@dataclass(slots=True)
class CacheSimulation:
    """One set-associative cache. ``access`` tells whether it hit; the counts add up.

    Attributes:
        config: geometry and policies.
        initial: ``cold`` or ``dirty``.
    """

    config: CacheConfig
    initial: InitialCache = InitialCache.COLD
    read_hits: int = 0
    read_misses: int = 0
    write_hits: int = 0
    write_misses: int = 0
    writebacks: int = 0
    memory_writes: int = 0
    touched_sets: set[int] = field(default_factory=set)
    _ways: dict[int, list[_Line | None]] = field(default_factory=dict)
    _trees: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    _clock: int = 0
    _random: int = 0

    def __post_init__(self) -> None:
        self._random = (self.config.seed * 2654435761 ^ 0x9E3779B9) & 0xFFFFFFFF or 1

    def access(self, address: int, *, is_write: bool) -> bool:
        """One access to the line that holds ``address``; True for a hit."""
        self._clock += 1
        number = address // self.config.line_bytes
        index = number % self.config.sets
        self.touched_sets.add(index)
        ways = self._ways.setdefault(index, self._initial_ways())
        way = next((w for w, line in enumerate(ways) if line is not None and line.number == number), None)
        self._count(is_write=is_write, hit=way is not None)
        if way is None:
            if is_write and not self.config.write_allocate:
                return False
            way = self._victim(index, ways)
            old = ways[way]
            self.writebacks += old is not None and old.dirty
            ways[way] = _Line(number, dirty=False, filled=self._clock, used=self._clock)
            hit = False
        else:
            hit = True
        line = ways[way]
        assert line is not None  # noqa: S101  (for the type checker: the way was just filled or hit)
        line.used = self._clock
        line.dirty |= is_write and self.config.write_back
        self._point_away(index, way)
        return hit

    @property
    def misses(self) -> int:
        """Reads and writes that missed."""
        return self.read_misses + self.write_misses

    def access_bytes(self, address: int, size_bytes: int, *, is_write: bool) -> None:
        """One access to each line that holds some of ``size_bytes`` bytes at ``address``."""
        line = self.config.line_bytes
        for number in range(address // line, (address + size_bytes - 1) // line + 1):
            self.access(number * line, is_write=is_write)

    def replay(self, accesses: Iterable[tuple[int, bool]]) -> list[bool]:
        """Access by access ``(address, is_write)``: the hits."""
        return [self.access(address, is_write=is_write) for address, is_write in accesses]

    def _initial_ways(self) -> list[_Line | None]:
        if self.initial is InitialCache.COLD:
            return [None] * self.config.ways
        # Ages as if filled in order of ways; a victim is dirty whichever it is.
        return [
            _Line(_ALIEN, self.config.write_back, way - self.config.ways, way - self.config.ways)
            for way in range(self.config.ways)
        ]

    def _count(self, *, is_write: bool, hit: bool) -> None:
        if is_write:
            self.write_hits += hit
            self.write_misses += not hit
            self.memory_writes += not self.config.write_back or (not hit and not self.config.write_allocate)
        else:
            self.read_hits += hit
            self.read_misses += not hit

    def _victim(self, index: int, ways: list[_Line | None]) -> int:
        if None in ways:
            return ways.index(None)
        lines = [line for line in ways if line is not None]
        match self.config.replacement:
            case Replacement.LRU:
                return min(range(len(lines)), key=lambda way: lines[way].used)
            case Replacement.FIFO:
                return min(range(len(lines)), key=lambda way: lines[way].filled)
            case Replacement.PLRU:
                return self._plru_victim(index)
            case Replacement.RANDOM:
                return self._draw() % self.config.ways

    def _plru_victim(self, index: int) -> int:
        """Follow the tree's bits from the root (Al-Zoubi et al., ACM-SE 2004): 0 left, 1 right."""
        tree, low, high = self._trees.get(index, {}), 0, self.config.ways
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if tree.get((low, high), 0) else (low, middle)
        return low

    def _point_away(self, index: int, way: int) -> None:
        tree, low, high = self._trees.setdefault(index, {}), 0, self.config.ways
        while high - low > 1:
            middle = (low + high) // 2
            tree[(low, high)] = int(way < middle)
            low, high = (low, middle) if way < middle else (middle, high)

    def _draw(self) -> int:
        """xorshift32 (Marsaglia 2003)."""
        x = self._random
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self._random = x
        return x
