"""The cache simulation in plain Python: the twin that the native core (``emu/native/``) is held equal to.

It is written from the definition of each policy and not from the C: lines live in ways, LRU and FIFO keep time stamps.
A unified cache is one content behind two ports, of fetches and of data accesses, which count apart.

Modelling choices: as in ``emu/native/cache.h``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import CacheConfig, MemoryTiming, Replacement, Target

_ALIEN = -1


@dataclass(slots=True)
class _Line:
    number: int
    dirty: bool
    filled: int
    used: int


@dataclass(slots=True)
class _Content:
    """What a cache holds, with all that its policy remembers."""

    random: int
    fills: int
    ways: dict[int, list[_Line | None]] = field(default_factory=dict)
    trees: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)
    clock: int = 0


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
    _shared: _Content | None = None
    _content: _Content = field(init=False)

    def __post_init__(self) -> None:
        seed = (self.config.seed * 2654435761 ^ 0x9E3779B9) & 0xFFFFFFFF or 1
        self._content = self._shared or _Content(seed, self.config.seed)

    def second_port(self) -> CacheSimulation:
        """Another way into the same cache, with counts of its own."""
        return CacheSimulation(self.config, self.initial, _shared=self._content)

    def access(self, address: int, *, is_write: bool) -> bool:
        """One access to the line that holds ``address``; True for a hit."""
        content = self._content
        content.clock += 1
        number = address // self.config.line_bytes
        index = number % self.config.sets
        self.touched_sets.add(index)
        ways = content.ways.setdefault(index, self._initial_ways())
        way = next((w for w, line in enumerate(ways) if line is not None and line.number == number), None)
        self._count(is_write=is_write, hit=way is not None)
        if way is None:
            if is_write and not self.config.write_allocate:
                return False
            way = self._victim(index, ways)
            content.fills += 1
            old = ways[way]
            self.writebacks += old is not None and old.dirty
            ways[way] = _Line(number, dirty=False, filled=content.clock, used=content.clock)
            hit = False
        else:
            hit = True
        line = ways[way]
        assert line is not None  # noqa: S101  (for the type checker: the way was just filled or hit)
        line.used = content.clock
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
            case Replacement.ROUND_ROBIN:
                return self._content.fills % self.config.ways

    def _plru_victim(self, index: int) -> int:
        """Follow the tree's bits from the root (Al-Zoubi et al., ACM-SE 2004): 0 left, 1 right."""
        tree, low, high = self._content.trees.get(index, {}), 0, self.config.ways
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if tree.get((low, high), 0) else (low, middle)
        return low

    def _point_away(self, index: int, way: int) -> None:
        tree, low, high = self._content.trees.setdefault(index, {}), 0, self.config.ways
        while high - low > 1:
            middle = (low + high) // 2
            tree[(low, high)] = int(way < middle)
            low, high = (low, middle) if way < middle else (middle, high)

    def _draw(self) -> int:
        """xorshift32 (Marsaglia 2003)."""
        x = self._content.random
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self._content.random = x
        return x


@dataclass(frozen=True, slots=True)
class Caches:
    """The caches of a target, as two ports: of fetches, and of data accesses. None where there is no such cache."""

    memory: MemoryTiming
    icache: CacheSimulation | None
    dcache: CacheSimulation | None

    @classmethod
    def of(cls, target: Target, initial: InitialCache) -> Caches:
        """The caches of ``target`` with the content ``initial``, ``cold`` or ``dirty``."""
        icache = CacheSimulation(target.icache, initial) if target.icache else None
        if target.unified_cache and icache:
            return cls(target.memory, icache, icache.second_port())
        return cls(target.memory, icache, CacheSimulation(target.dcache, initial) if target.dcache else None)

    def run(
        self, path: Iterable[int], size_of: Callable[[int], int], accesses: Iterable[tuple[int, int, int, bool]]
    ) -> None:
        """Fetch and access in the order of the program: each instruction is fetched before it accesses data.

        Parameters:
            path: addresses of the executed instructions in order.
            size_of: bytes of the instruction at an address.
            accesses: data accesses in order, as index in ``path``, address, size in bytes, and whether it stores.
        """
        waiting = iter(accesses)
        access = next(waiting, None)
        for step, instruction in enumerate(path):
            if self.icache:
                self.icache.access_bytes(instruction, size_of(instruction), is_write=False)
            while access and access[0] == step:
                _, address, size_bytes, is_store = access
                if self.dcache:
                    self._access(self.dcache, address, size_bytes, is_write=is_store)
                access = next(waiting, None)

    def _access(self, cache: CacheSimulation, address: int, size_bytes: int, *, is_write: bool) -> None:
        """Access the lines with a byte that no region holds."""
        served = [byte for byte in range(address, address + size_bytes) if not self.memory.region_at(byte)]
        for line in dict.fromkeys(byte // cache.config.line_bytes for byte in served):
            cache.access_bytes(line * cache.config.line_bytes, 1, is_write=is_write)
