"""A core as data of ``targets/``: instruction set, timing table, caches, memory. Each number says where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from wcet_probe.errors import UsageError

_WORD_BYTES = 4


class Isa(StrEnum):
    """Instruction set that an image is compiled to."""

    ARM = "arm"
    THUMB = "thumb"
    POWERPC = "powerpc"

    @property
    def stack_pointer(self) -> str:
        """The name of the register that is the stack pointer."""
        return "r1" if self is Isa.POWERPC else "r13"


class Architecture(StrEnum):
    """Architecture of a core, and what an ELF file is built for."""

    V4 = "v4"
    V4T = "v4T"
    V5T = "v5T"
    V5TE = "v5TE"
    V5TEJ = "v5TEJ"
    V6 = "v6"
    V6KZ = "v6KZ"
    V6T2 = "v6T2"
    V6K = "v6K"
    V7 = "v7"
    V7_A = "v7-A"
    V7_R = "v7-R"
    V6_M = "v6-M"
    V6S_M = "v6S-M"
    V7_M = "v7-M"
    V7E_M = "v7E-M"
    V8_M_BASE = "v8-M.base"
    V8_M_MAIN = "v8-M.main"
    POWERPC = "PowerPC"
    POWERPC_BOOK_E = "PowerPC Book E"


class Fpu(StrEnum):
    """Floating-point unit of a core."""

    NONE = "none"
    VFPV3_D16 = "VFPv3-D16"
    VFPV4_SP_D16 = "VFPv4-SP-D16"
    FPV5_D16 = "FPv5-D16"
    POWERPC = "PowerPC"


class Basis(StrEnum):
    """Where a number of a target comes from."""

    MANUAL = "manual"
    MEASURED = "measured"
    ASSUMED = "assumed"


class Replacement(StrEnum):
    """Cache replacement policy.

    ``fifo`` is a round robin with a counter for each set, ``round-robin`` one with a counter for the whole cache.
    """

    LRU = "lru"
    FIFO = "fifo"
    PLRU = "plru"
    RANDOM = "random"
    ROUND_ROBIN = "round-robin"

    @property
    def has_seed(self) -> bool:
        """Whether the victims are not a function of the accesses alone: they depend on a seed, or a counter's start."""
        return self in {Replacement.RANDOM, Replacement.ROUND_ROBIN}


@dataclass(frozen=True, slots=True)
class Sourced:
    """A number of a target together with where it is from.

    ``source`` names manual, table and page; ``basis`` says whether it was read, measured or assumed.
    """

    value: int
    basis: Basis
    source: str


class Result(StrEnum):
    """Which registers of an instruction another one may have to wait for."""

    WRITTEN = "written"
    LOADED = "loaded"
    BASE = "base"


class Need(StrEnum):
    """What an instruction needs a register for."""

    ANY = "any"
    ADDRESS = "address"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class Stall:
    """How long a dependent instruction waits for another one: an interlock between neighbours.

    An instruction of ``consumers`` that has ``need`` of a register that an instruction of ``producers`` gives as
    ``result`` starts at the earliest ``cycles`` later than that one has ended. What is executed between the two takes
    its own cycles off the wait.

    Attributes:
        name: what it is.
        producers, consumers: timing classes.
        result: ``written``: registers that the producer writes; ``loaded``: from memory; ``base``: the base of an
            access that it updates.
        need: ``any``: the consumer reads the register; ``address``: for the address of an access; ``shift``: to shift
            it or by it.
        cycles: cycles that the consumer waits if it follows immediately.
        basis: where the number comes from.
        source: manual, table, page.
        note: how the manual's words became this rule.
    """

    name: str
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    result: Result
    need: Need
    cycles: int
    basis: Basis
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class UnalignedAccess:
    """How many more transfers an access of some size is done in at addresses of some alignment.

    Each takes a cycle, and waits for memory like the first one where no cache serves it.

    Attributes:
        timing_classes: of the instructions.
        size_bytes: of the access, a power of two.
        alignment_bytes: the largest power of two that divides the address, less than ``size_bytes``.
        cycles: that it takes more than an aligned access, as many as further transfers.
        basis: where the number comes from.
        source: manual, table, page.
        note: how the manual's words became this row.
    """

    timing_classes: tuple[str, ...]
    size_bytes: int
    alignment_bytes: int
    cycles: int
    basis: Basis
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """Cycles of one instruction class.

    Attributes:
        cycles: cycles of one executed instruction of the class.
        per_register_cycles: added for each register of a load/store-multiple's list.
        load_use_cycles: cycles that an instruction waits if it follows immediately and reads a register that this one
            loads; what is executed between the two takes its own cycles off the wait.
        literal_cycles: added when the address is relative to the program counter.
        taken_cycles: added when a conditional branch is taken.
        basis: where the numbers come from.
        source: manual, table, page.
        note: how a range or a data-dependent count of the manual became these numbers.
    """

    cycles: int
    per_register_cycles: int
    load_use_cycles: int
    taken_cycles: int
    basis: Basis
    source: str
    note: str = ""
    literal_cycles: int = 0


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Geometry and policies of one cache.

    Attributes:
        sets: number of sets, a power of two.
        ways: associativity; a power of two for PLRU.
        line_bytes: bytes of a line, a power of two.
        replacement: which line of a full set is evicted.
        write_back: True for write-back, False for write-through (data cache only).
        write_allocate: whether a write miss fills the line (data cache only).
        seed: of the ``random`` replacement; of ``round-robin`` the way where the counter stands first, modulo the ways.
        basis: where geometry and policies come from.
        source: manual, table, page.
    """

    sets: int
    ways: int
    line_bytes: int
    replacement: Replacement
    write_back: bool
    write_allocate: bool
    seed: int
    basis: Basis
    source: str

    @property
    def size_bytes(self) -> int:
        """Capacity in bytes."""
        return self.sets * self.ways * self.line_bytes


@dataclass(frozen=True, slots=True)
class Victims:
    """With which victims a call was observed, where replacement leaves them open.

    Attributes:
        icache_seed, dcache_seed: in place of ``CacheConfig.seed``; None where the policy has none, or there is no such
            cache. A unified cache has that of the data.
        tried: how many choices were run before, of which this is the extreme one.
    """

    icache_seed: int | None = None
    dcache_seed: int | None = None
    tried: int = 1


OWN_VICTIMS = Victims()
"""Those of the target's own seeds."""


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """A range of guest memory: ``base_address`` and ``size_bytes``."""

    base_address: int
    size_bytes: int

    @property
    def end_address(self) -> int:
        """First address behind the range."""
        return self.base_address + self.size_bytes

    def __contains__(self, address: int) -> bool:
        return self.base_address <= address < self.end_address


@dataclass(frozen=True, slots=True)
class UncachedRegion:
    """Data memory that no cache serves: a scratchpad (tightly coupled memory), or a region that is not cacheable.

    An access with a byte in it costs its cycles once, whatever its size: those of the dearest region where it has bytes
    in several. Of an access that lies in part elsewhere, a cache serves the other lines; without one the dearer place
    is waited for.

    Attributes:
        name: what it is.
        extent: its addresses.
        read_cycles, write_cycles: cycles that one load, one store stalls the core.
    """

    name: str
    extent: MemoryRange
    read_cycles: Sourced
    write_cycles: Sourced


@dataclass(frozen=True, slots=True)
class MemoryTiming:
    """Latency of the memory behind the caches, in core cycles that stall the core.

    A burst of n beats costs ``first_beat_cycles + (n - 1) * next_beat_cycles``. A line fill and a line write-back are
    bursts of ``line_bytes / beat_bytes`` beats; an access that no cache serves and a write-through are single beats.
    ``regions`` do not overlap; data accesses to them go past the caches and have their own cycles.
    """

    beat_bytes: Sourced
    first_beat_cycles: Sourced
    next_beat_cycles: Sourced
    regions: tuple[UncachedRegion, ...] = ()

    def region_at(self, address: int) -> UncachedRegion | None:
        """The region that holds ``address``, or None where the caches serve it."""
        return next((region for region in self.regions if address in region.extent), None)

    def line_cycles(self, line_bytes: int) -> int:
        """Cycles of filling or writing back one line of ``line_bytes`` bytes."""
        beats = max(1, line_bytes // self.beat_bytes.value)
        return self.first_beat_cycles.value + (beats - 1) * self.next_beat_cycles.value

    @property
    def single_cycles(self) -> int:
        """Cycles of one uncached access or one write-through."""
        return self.first_beat_cycles.value


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Where the image and the call live. The heap starts at ``heap_address`` and grows to the size asked for."""

    code: MemoryRange
    data: MemoryRange
    stack: MemoryRange
    heap_address: int


@dataclass(frozen=True, slots=True)
class Target:
    """A core: instruction set, engine model, timing table, caches, memory. Everything in it is data of ``targets/``."""

    name: str
    title: str
    isa: Isa
    big_endian: bool
    emulator_model: str
    pcode_language: str
    compiler_flags: Mapping[str, tuple[str, ...]]
    """Flags by compiler family: ``clang``, ``gcc``."""
    gcc_prefix: str
    linker_emulation: str
    timing: Mapping[str, Timing]
    """By timing class; a class that is not in it cannot be charged."""
    condition_failed: Timing
    """Cost of an instruction whose condition fails (ARM) or that an IT block skips (Thumb-2)."""
    icache: CacheConfig | None
    dcache: CacheConfig | None
    memory: MemoryTiming
    memory_map: MemoryMap
    modelling_choices: tuple[str, ...]
    unified_cache: bool = False
    """Whether ``icache`` and ``dcache`` are one and the same cache, which fetches and data accesses share."""
    stalls: tuple[Stall, ...] = ()
    """Waits of an instruction for another one just before it, beside those of ``Timing.load_use_cycles``."""
    architecture: Architecture | None = None
    """What ELF files are held against; None where nothing is said."""
    fpu: Fpu = Fpu.NONE
    translation: str = ""
    """What must hold so that no access waits for the translation of its address; empty where there is none."""
    aligned_accesses: str = ""
    """What must hold so that no unaligned access takes longer than ``unaligned`` says; empty where none can."""
    unaligned: tuple[UnalignedAccess, ...] = ()
    """What an unaligned access takes longer; nothing is charged of accesses that are in no row."""

    def __post_init__(self) -> None:
        """Refuse a unified cache that is none, and a region that shares a line with cached memory.

        A bound takes an access to a region for one to its line, which therefore must lie in the region as a whole.

        Raises:
            UsageError: the target says that its cache is unified and has none, or two; or a region begins or ends
                inside of a line of the data cache, or of a word where there is none.
        """
        if self.unified_cache and (self.dcache is None or self.icache != self.dcache):
            message = (
                f"{self.name} is said to have one cache for instructions and data, and that is not both its caches; "
                "give it in [cache], or leave it out with --cache u:none."
            )
            raise UsageError(message)
        unit_bytes = self.dcache.line_bytes if self.dcache else _WORD_BYTES
        for region in self.memory.regions:
            if region.extent.base_address % unit_bytes or region.extent.end_address % unit_bytes:
                unit = "line of the data cache" if self.dcache else "word"
                message = (
                    f"the region {region.name} of {self.name} begins or ends inside of a {unit}; "
                    f"let its base_address and size_bytes be multiples of {unit_bytes}."
                )
                raise UsageError(message)

    @property
    def bases(self) -> Mapping[Basis, int]:
        """How many of the target's numbers come from where; a row of a table and a cache count as one each."""
        caches = {id(cache): cache for cache in (self.icache, self.dcache) if cache}.values()
        memory, regions = self.memory, self.memory.regions
        numbers: list[Timing | Stall | UnalignedAccess | CacheConfig | Sourced] = [*self.timing.values()]
        numbers += [*self.stalls, *self.unaligned, *caches]
        numbers += [self.condition_failed, memory.beat_bytes, memory.first_beat_cycles, memory.next_beat_cycles]
        numbers += [number for region in regions for number in (region.read_cycles, region.write_cycles)]
        found = [number.basis for number in numbers]
        return {basis: found.count(basis) for basis in Basis}


def without_caches(target: Target) -> Target:
    """``target`` as a core whose fetches and data accesses no cache serves."""
    return replace(target, icache=None, dcache=None, unified_cache=False)
