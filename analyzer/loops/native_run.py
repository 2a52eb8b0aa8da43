"""The run that memory at entry decides, followed by the native core: what `entry_run` does, a hundred times as fast.

It is for runs of many millions of instructions. Blocks are lifted here when control first comes to them; what a run
costs is summed in the core, too, as nobody could be told each access.

Words: abstract execution, P-code (docs/explanation/glossary.md).

*Soundness:* as said of `entry_run`, whose twin it is: the core knows no more of a value than `ConstantExecution` does,
but that it holds any number of words of memory which are no numbers. What an access costs is as said of
`followed_caches.RunCache` and of the target's table of unaligned accesses. Tests hold both against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ctypes import byref, c_int32, c_uint32, c_uint64
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.loops import native_core as core
from wcet_probe.analyzer.loops.entry_run import EntryRun, Part, UndecidedError, assembled, part_at
from wcet_probe.analyzer.loops.native_code import Slots, UntranslatableError, accesses_of, encoded
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.execution.needed_operations import needed_of_block
from wcet_probe.analyzer.values.symbolic.locations import Location, Overlaps, part_of
from wcet_probe.errors import AnalysisError, DecodeError
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.target import CacheConfig, Isa, Replacement

_WORD = 1 << 32
_AT_ONCE = 1 << 25
"""Instructions behind which the core comes back, so that Ctrl-C is heard."""
_AGING = frozenset({Replacement.LRU, Replacement.PLRU})
_KINDS = {core.FALLS: "fall", core.JUMPS: "jump", core.CALLS: "call", core.RETURNS: "return", core.EXITS: "return"}


class Charged(NamedTuple):
    """What the core is to sum.

    Attributes:
        code, data: caches, if there are any.
        single_cycles: of an access to memory, where there is no data cache.
        accesses: of an instruction, how many it makes, and whether it may make none; None: nobody knows.
        longer: what an access takes longer, by address of the instruction, bytes, and what is known of where it goes:
            a residue and its modulus. None where no access does.
    """

    code: CacheConfig | None
    data: CacheConfig | None
    single_cycles: int
    accesses: Callable[[int], tuple[int, bool] | None]
    longer: Callable[[int, int, int, int], int] | None


class CacheSums(NamedTuple):
    """What `followed_caches.RunCache` counts: by set, and single stores."""

    fills: Mapping[int, int]
    stored: Mapping[int, int]
    may_store: Mapping[int, int]
    singles: int


class Accesses(NamedTuple):
    """Where the loads, or the stores, of an instruction went: from low to high, a multiple of the stride apart."""

    on_stack: bool
    size_bytes: int
    low: int
    high: int
    stride: int


@dataclass(frozen=True, slots=True)
class NativeRun:
    """What was followed.

    Attributes:
        run: all of it; None where it is not decided, is longer than is followed, or cannot be told.
        decided: so many instructions, from the entry on, are executed by all executions that begin with this memory.
        ranges: accesses by address of the instruction and whether it stores; None: they have nothing in common.
        code, data: of the caches.
        waiting_cycles: of accesses without a cache.
        is_far: whether a store goes to what is in no object of the image.
    """

    run: EntryRun | None
    decided: int
    ranges: Mapping[tuple[int, bool], Accesses | None] = field(default_factory=dict)
    code: CacheSums | None = None
    data: CacheSums | None = None
    waiting_cycles: int = 0
    is_far: bool = False


def native_run(  # noqa: PLR0917  the binary, where the run begins, and what is summed
    image: Image,
    lifter: Lifter,
    content: Iterable[tuple[int, bytes]],
    entry: Symbol,
    charged: Charged,
    most: int,
    stack_pointer: int | None = None,
    *,
    untold: int = 0,
) -> NativeRun | None:
    """The run of ``entry``, and how much of it was followed; None where the core cannot follow it, or has no room.

    Args:
        image: the binary.
        lifter: of it.
        content: what writable memory holds at entry, by address.
        entry: the analysed function.
        charged: what is summed.
        most: instructions that are followed.
        stack_pointer: at entry, if it is known.
        untold: instructions that are followed of a run that may not be told.

    Raises:
        WcetProbeError: the native core is missing.

    *Soundness:* as said of the module.
    """
    with suppress(_NoRoomError), _Core(image, lifter, entry, charged, stack_pointer) as following:
        if following.begins_with(content):
            return following.run(entry, most, untold)
    return None


class _NoRoomError(Exception):
    """The core has no memory left."""


class _Core:
    def __init__(
        self, image: Image, lifter: Lifter, entry: Symbol, charged: Charged, stack_pointer: int | None
    ) -> None:
        self._image, self._lifter, self._charged, self._library = image, lifter, charged, core.load()
        regions = [(one.address, one.size_bytes, one.writable and not one.executable) for one in image.segments]
        self._setup = core.SetupLayout(
            code=_cache(charged.code),
            data=_cache(charged.data),
            regions=(core.RegionLayout * len(regions))(*(core.RegionLayout(*one) for one in regions)),
            region_count=len(regions),
            entry=entry.address,
            stack_pointer=stack_pointer or 0,
            knows_stack_pointer=stack_pointer is not None,
            big_endian=image.big_endian,
            is_thumb=lifter.isa is Isa.THUMB,
            is_unaligned_charged=charged.longer is not None,
            single_cycles=charged.single_cycles,
        )
        self._run: Any = None
        self._parts: dict[int, Part] = {}
        self._overlaps = Overlaps()
        self._places: dict[Location, int] = {}
        self._constants: dict[int, int] = {}
        self._scratch: dict[int, int] = {}
        self._accesses: dict[tuple[int, bool, int], int] = {}
        self._ranges: dict[tuple[int, bool], int] = {}
        self._rows: dict[Sequence[int], int] = {}

    def __enter__(self) -> Self:
        self._run = self._library.wp_run_open(byref(self._setup))
        if not self._run:
            raise _NoRoomError
        try:
            self._slots = self._known_slots()
        except _NoRoomError:
            self._library.wp_run_close(self._run)
            raise
        return self

    def _known_slots(self) -> Slots:
        mode = self._lifter.registers.get("tb")
        return Slots(
            of=self._slot,
            number=self._number,
            unknown=self._new(core.UNKNOWN),
            scratch=self._scratch_of,
            part_of=self._part_of,
            access=self._access,
            float_status=self._lifter.float_status,
            mode=Location(*mode) if mode else None,
        )

    def __exit__(self, *_: object) -> None:
        self._library.wp_run_close(self._run)
        del self._slots  # which holds this object

    # ----------------------------------------------------------------------------------------------------------- state

    def begins_with(self, content: Iterable[tuple[int, bytes]]) -> bool:
        """Memory and registers are as where the function is entered; whether there is room."""
        for name, kind in ((self._lifter.isa.stack_pointer, core.STACK), ("lr", core.LINK)):
            self._slot(Location(*self._lifter.registers[name]), kind)
        constant = [(one.address, bytes(one.data)) for one in self._image.segments if not one.writable]
        return all(
            self._library.wp_run_content(self._run, address, data, len(data)) for address, data in (*content, *constant)
        )

    def _new(self, kind: int, number: int = 0) -> int:
        return _known(self._library.wp_run_slot(self._run, kind, number))

    def _slot(self, place: Location, kind: int = core.UNKNOWN) -> int:
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = self._new(kind)
            sharing = self._overlaps.add(place)
            for one in sharing if len(sharing) > 1 else ():
                others = [self._places[other] for other in self._overlaps.add(one) if other != one]
                found = (c_int32 * (len(others) + 1))(*others, -1)
                _known(self._library.wp_run_overlaps(self._run, self._places[one], found, len(found)))
        return known

    def _number(self, number: int) -> int:
        if number not in self._constants:
            self._constants[number] = self._new(core.NUMBER, number)
        return self._constants[number]

    def _scratch_of(self, number: int) -> int:
        if number not in self._scratch:
            self._scratch[number] = self._new(core.UNKNOWN)
        return self._scratch[number]

    def _part_of(self, place: Location) -> tuple[Location, int] | None:
        return part_of(place, self._lifter)

    def _access(self, address: int, is_store: bool, size_bytes: int) -> int:  # noqa: FBT001
        key = address, is_store, size_bytes
        if key not in self._accesses:
            place = self._ranges.setdefault((address, is_store), len(self._ranges))
            access = core.AccessLayout(place, self._row(address, size_bytes))
            _known(self._library.wp_run_access(self._run, byref(access)))
            self._accesses[key] = len(self._accesses)
        return self._accesses[key]

    def _row(self, address: int, size_bytes: int) -> int:
        longer = self._charged.longer
        row = [0] * core.ROW
        if longer is not None:
            row[: core.STACK_ROW] = [longer(address, size_bytes, _WORD, 1 << zeros) for zeros in range(core.STACK_ROW)]
            row[core.STACK_ROW :] = [longer(address, size_bytes, 8, residue) for residue in (1, 2, 4, 0)]
        found = tuple(row)
        if found not in self._rows:
            _known(self._library.wp_run_row(self._run, (c_uint32 * core.ROW)(*row)))
            self._rows[found] = len(self._rows)
        return self._rows[found]

    # ---------------------------------------------------------------------------------------------------------- blocks

    def _block(self, address: int) -> None:
        part = self._parts[address] = part_at(self._lifter, address)
        found = encoded(part.instructions, needed_of_block(part.instructions, self._lifter), self._slots)
        first, last = 1, 0
        if self._charged.code is not None:
            line_bytes = self._charged.code.line_bytes
            first, last = address // line_bytes, (part.end_address - 1) // line_bytes
        is_told = all(self._is_told(one.address, accesses_of(one)) for one in part.instructions)
        code = core.CodeLayout(
            address, part.end_address, len(part.instructions), len(found), first, last, part.last.returns, is_told
        )
        operations = (core.OperationLayout * len(found))(*(core.OperationLayout(*one) for one in found))
        _known(self._library.wp_run_block(self._run, byref(code), operations))

    def _is_told(self, address: int, counts: frozenset[int]) -> bool:
        """Whether an instruction makes the accesses that the decoder tells of, or, where it may be skipped, none."""
        expected = self._charged.accesses(address)
        if expected is None:
            return False
        count, may_be_skipped = expected
        return counts <= ({count, 0} if may_be_skipped else {count})

    # ------------------------------------------------------------------------------------------------------------- run

    def run(self, entry: Symbol, most: int, untold: int) -> NativeRun | None:
        """As `native_run`."""
        counts = core.CountsLayout()
        follow, tell = self._library.wp_run_follow, self._library.wp_run_counts
        why = core.PAUSED
        with suppress(UndecidedError, AnalysisError, DecodeError):
            while why in {core.PAUSED, core.NEEDS_BLOCK}:
                limit = most if counts.is_told or not counts.decided else min(most, untold)
                if counts.decided >= limit:
                    break
                why = follow(self._run, min(limit, counts.decided + _AT_ONCE))
                tell(self._run, byref(counts))
                if why == core.NEEDS_BLOCK:
                    try:
                        self._block(counts.address)
                    except UntranslatableError:
                        return None
        is_run = why == core.ENDED and counts.is_told and counts.decided <= most and not counts.is_named_twice
        if not is_run:
            return NativeRun(None, counts.decided)
        with suppress(UndecidedError):
            told = bool(counts.tells_alignment), bool(counts.tells_stack_pointer), counts.stack_reach
            return NativeRun(
                run=assembled(entry, self._parts, self._passages(counts.ways), counts.decided, *told),
                decided=counts.decided,
                ranges=dict(self._found_ranges()),
                code=self._sums(self._charged.code, counts.code_singles, of_data=False),
                data=self._sums(self._charged.data, counts.data_singles, of_data=True),
                waiting_cycles=counts.waiting_cycles,
                is_far=bool(counts.is_far),
            )
        return NativeRun(None, counts.decided)

    def _passages(self, count: int) -> Mapping[tuple[int, int, str], int]:
        ways = (core.WayLayout * count)()
        self._library.wp_run_ways(self._run, ways)
        return {
            (one.source, EXIT if one.kind == core.EXITS else one.target, _KINDS[one.kind]): one.count for one in ways
        }

    def _found_ranges(self) -> Iterator[tuple[tuple[int, bool], Accesses | None]]:
        """The ranges of the accesses that were made."""
        for key, number in self._ranges.items():
            found = core.RangeLayout()
            self._library.wp_run_range(self._run, number, byref(found))
            if found.state:
                own = bool(found.on_stack), found.size_bytes, found.low, found.high, found.stride
                yield key, Accesses(*own) if found.state == 1 else None

    def _sums(self, cache: CacheConfig | None, singles: int, *, of_data: bool) -> CacheSums | None:
        if cache is None:
            return None
        sets = cache.sets
        counts = (c_uint64 * (3 * sets))()
        self._library.wp_run_sets(self._run, of_data, counts)
        fills, stored, may_store = (
            {number: counts[first + number] for number in range(sets) if counts[first + number]}
            for first in (0, sets, 2 * sets)
        )
        return CacheSums(fills, stored, may_store, singles)


def _cache(config: CacheConfig | None) -> core.CacheLayout:
    if config is None:
        return core.CacheLayout()
    return core.CacheLayout(
        config.sets,
        effective_ways(config).must,
        config.line_bytes,
        config.replacement in _AGING,
        config.write_back,
        config.write_allocate,
    )


def _known(result: int) -> int:
    """What the core returned, where it had room."""
    if result is False or result < 0:
        raise _NoRoomError
    return result
