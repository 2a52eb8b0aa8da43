"""The nouns of wcet-probe: frozen values that every other room exchanges.

Standard library only. Units stand in the names: ``_bytes``, ``_cycles``, ``_bits``; a count has no unit.
Addresses are guest addresses, unsigned 32-bit. The same words are used in code, JSON, CLI and documentation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wcet_probe.proof import Bound


class Isa(StrEnum):
    """Instruction set that an image is compiled to."""

    ARM = "arm"
    THUMB = "thumb"
    POWERPC = "powerpc"


class Basis(StrEnum):
    """Where a number of a target comes from."""

    MANUAL = "manual"
    MEASURED = "measured"
    ASSUMED = "assumed"


class Replacement(StrEnum):
    """Cache replacement policy."""

    LRU = "lru"
    FIFO = "fifo"
    PLRU = "plru"
    RANDOM = "random"


class InitialCache(StrEnum):
    """Content of the caches when the measured call starts.

    ``cold``: every line invalid. ``warm``: what the set-up operations left. ``dirty``: every line valid with data that
    the program never uses, modified in a write-back data cache, so that every first fill also costs a write-back.
    """

    COLD = "cold"
    WARM = "warm"
    DIRTY = "dirty"


class Verdict(StrEnum):
    """What an answer says. ``OBSERVED`` is a witness alone: no bound was asked for."""

    OBSERVED = "OBSERVED"
    BOUNDED = "BOUNDED"
    UNBOUNDED = "UNBOUNDED"
    OVER_BUDGET = "OVER_BUDGET"
    CONTRADICTED = "CONTRADICTED"


# --------------------------------------------------------------------------------------------------------------- target


@dataclass(frozen=True, slots=True)
class Sourced:
    """A number of a target together with where it is from.

    ``source`` names manual, table and page; ``basis`` says whether it was read, measured or assumed.
    """

    value: int
    basis: Basis
    source: str


@dataclass(frozen=True, slots=True)
class Timing:
    """Cycles of one instruction class.

    Attributes:
        cycles: cycles of one executed instruction of the class.
        per_register_cycles: added for each register of a load/store-multiple's list.
        load_use_cycles: added when the next instruction in address order reads a register that this one loads.
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
        seed: seed of the ``random`` replacement.
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

    An access belongs to the region that holds its first byte, and costs its cycles, whatever its size.

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


# ------------------------------------------------------------------------------------------------------------ allocator


@dataclass(frozen=True, slots=True)
class Parameter:
    """A build parameter of an allocator: the macro it sets, its default, the values it may take."""

    name: str
    macro: str
    default: int
    choices: tuple[int, ...]
    description: str


@dataclass(frozen=True, slots=True)
class Complexity:
    """A complexity that the literature claims for an operation, and who claims it."""

    claim: str
    source: str


@dataclass(frozen=True, slots=True)
class SetPromise:
    """An allocator promises to touch the data cache in reserved sets only, but for the block that a call is about.

    Attributes:
        first_set, sets: names of the parameters that tell the reserved sets, where its data and descriptors lie.
        cache_sets, line_bytes: names of the parameters that tell the cache that it is built for.
        source: who promises it.
    """

    first_set: str
    sets: str
    cache_sets: str
    line_bytes: str
    source: str


@dataclass(frozen=True, slots=True)
class Allocator:
    """An allocator: C sources, entry points, parameters, claims. Everything in it is data of ``allocators/``.

    Attributes:
        name: the name on the command line.
        title: full name.
        sources: C files, as ``(file name, text)`` in the order of compilation; headers included.
        entry_points: C symbol by role: ``init``, ``malloc``, ``free``, ``check``.
        alignment_bytes: alignment of the blocks that malloc returns.
        minimum_heap_bytes: smallest heap that ``init`` accepts.
        parameters: build parameters with their values' choices.
        values: the value of each parameter in this build.
        presets: named sets of parameter values, a paper's for instance.
        takes_cache_set: whether malloc takes the cache set of the block as a second argument.
        complexity: claimed complexity by operation (``malloc``, ``free``).
        literature: the papers and sections that the code is written from.
        facts: files of flow facts, as ``(file name, text)``.
        promise: which cache sets it keeps to, or None where it promises nothing.
    """

    name: str
    title: str
    summary: str
    sources: tuple[tuple[str, str], ...]
    entry_points: Mapping[str, str]
    alignment_bytes: int
    minimum_heap_bytes: int
    parameters: tuple[Parameter, ...]
    values: Mapping[str, int]
    presets: Mapping[str, Mapping[str, int]]
    takes_cache_set: bool
    complexity: Mapping[str, Complexity]
    literature: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    promise: SetPromise | None = None


# ---------------------------------------------------------------------------------------------------------------- image


@dataclass(frozen=True, slots=True)
class Segment:
    """A loadable part of an image: ``data`` at ``address``, zero-filled up to ``size_bytes``."""

    address: int
    data: bytes
    size_bytes: int
    writable: bool
    executable: bool


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or object of an image. ``address`` has no Thumb bit."""

    name: str
    address: int
    size_bytes: int
    is_function: bool


@dataclass(frozen=True, slots=True)
class LineTable:
    """Source positions: row i covers ``[addresses[i], addresses[i+1])``; a row with line 0 covers nothing."""

    addresses: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    def find(self, address: int) -> tuple[str, int] | None:
        """File name and line of ``address``, or None where the table has none."""
        row = bisect_right(self.addresses, address) - 1
        if row < 0 or self.lines[row] == 0:
            return None
        return self.files[row], self.lines[row]


@dataclass(frozen=True, slots=True)
class Image:
    """A linked ELF: the identity of all that follows.

    Attributes:
        elf: the file's bytes.
        sha256: hex digest of ``elf``.
        isa: instruction set; for ARM the set of the functions without mapping symbols.
        big_endian: byte order of data.
        segments: what is loaded.
        symbols: functions and objects by name.
        functions: functions in address order.
        code: address ranges that hold instructions, in order; on ARM cut by the ``$a/$t/$d`` mapping symbols.
        lines: source positions.
        compiler: identity of the compiler, as it states it.
        flags: the compiler's flags.
    """

    elf: bytes = field(repr=False)
    sha256: str
    isa: Isa
    big_endian: bool
    segments: tuple[Segment, ...] = field(repr=False)
    symbols: Mapping[str, Symbol] = field(repr=False)
    functions: tuple[Symbol, ...] = field(repr=False)
    code: tuple[MemoryRange, ...] = field(repr=False)
    lines: LineTable = field(repr=False)
    compiler: str
    flags: tuple[str, ...]

    def function_at(self, address: int) -> Symbol | None:
        """The function that holds ``address``, or None."""
        row = bisect_right(self.functions, address, key=lambda symbol: symbol.address) - 1
        if row < 0:
            return None
        function = self.functions[row]
        return function if address < function.address + max(1, function.size_bytes) else None

    def location(self, address: int) -> str:
        """``function+0x12 (file.c:34)`` for messages and listings; falls back to the address."""
        function = self.function_at(address)
        where = f"{function.name}+{address - function.address:#x}" if function else f"{address:#010x}"
        line = self.lines.find(address)
        return f"{where} ({line[0]}:{line[1]})" if line else where


class Control(StrEnum):
    """What an instruction does to the flow of control."""

    NEXT = "next"
    BRANCH = "branch"
    CONDITIONAL_BRANCH = "conditional-branch"
    CALL = "call"
    INDIRECT = "indirect"


class AccessKind(StrEnum):
    """Direction of a memory access."""

    LOAD = "load"
    STORE = "store"
    LOAD_STORE = "load-store"


class Shift(StrEnum):
    """Shift of an index register."""

    LSL = "lsl"
    LSR = "lsr"
    ASR = "asr"
    ROR = "ror"
    RRX = "rrx"


@dataclass(frozen=True, slots=True)
class Access:
    """A data access of an instruction, its effective address computed from the registers before the instruction.

    The address is ``base + displacement ± (index shifted)``; ``count`` accesses of ``bytes_each`` bytes follow each
    other upwards from there. A missing ``base`` is 0 (an absolute address, a literal load resolved by the decoder).
    ``align_mask`` is applied to the sum last: a ``dcbz`` clears the whole line that holds its address.
    """

    kind: AccessKind
    base: str | None
    displacement: int
    bytes_each: int
    count: int = 1
    index: str | None = None
    subtract_index: bool = False
    shift: Shift = Shift.LSL
    shift_bits: int = 0
    align_mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Instruction:
    """A decoded machine instruction with all that the observer and the analyzer charge it for.

    Attributes:
        address: where it is.
        size_bytes: 2 or 4.
        text: mnemonic and operands.
        timing_class: key of ``Target.timing``.
        registers: number of registers transferred by a load/store multiple, else 0.
        condition: ARM condition code 0..14 that is to be evaluated on the flags (14: always). Only for A32; in
            Thumb-2 an IT block sets ``in_it_block`` instead.
        in_it_block: predicated by a Thumb-2 IT instruction.
        control: what it does to the flow of control.
        branch_target: target of a direct branch or call.
        accesses: data accesses, in order.
        reads, writes: registers by canonical name (``r0`` … ``r15``; ``sp`` is ``r13`` on ARM and ``r1`` on PowerPC).
        loaded: registers that receive loaded data.
        problem: why it cannot be charged or followed, or None. Executing such an instruction is an error.
    """

    address: int
    size_bytes: int
    text: str
    timing_class: str
    registers: int = 0
    condition: int = 14
    in_it_block: bool = False
    control: Control = Control.NEXT
    branch_target: int | None = None
    accesses: tuple[Access, ...] = ()
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class InstructionCost:
    """Cycles of one instruction at one address under a target's timing table, cache and memory stalls apart.

    ``executed_cycles`` includes the load-use stall with the next instruction in address order; ``skipped_cycles`` is
    charged instead when the condition fails; ``taken_cycles`` is added when a conditional branch is taken.
    """

    executed_cycles: int
    skipped_cycles: int
    taken_cycles: int


# ------------------------------------------------------------------------------------------------------ trace, scenario


class OperationKind(StrEnum):
    """Kind of a heap operation."""

    MALLOC = "malloc"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Operation:
    """One heap operation. ``slot`` names the block: malloc stores its result there, free takes it from there."""

    kind: OperationKind
    slot: int
    size_bytes: int = 0
    cache_set: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """A sequence of operations, as columns of equal length.

    Attributes:
        kinds: 0 for malloc, 1 for free.
        slots: block names, 0 ≤ slot < ``slot_count``.
        sizes_bytes: requested sizes, 0 for free.
        cache_sets: requested cache sets, for allocators that take one.
        slot_count: number of slots.
    """

    kinds: tuple[int, ...]
    slots: tuple[int, ...]
    sizes_bytes: tuple[int, ...]
    cache_sets: tuple[int, ...]
    slot_count: int

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> Operation:
        kind = OperationKind.FREE if self.kinds[index] else OperationKind.MALLOC
        return Operation(kind, self.slots[index], self.sizes_bytes[index], self.cache_sets[index])


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """A scenario for one heap: how to reach the state, what to measure, and why.

    Attributes:
        scenario: its name, e.g. ``worst-alloc``.
        trace: operations that reach the state.
        measured: the one operation that is measured.
        initial_cache: content of the caches before the measured call, unless the user asks for another.
        state: the state that is predicted, in words, for the first screen.
        why: why the measured operation is the slowest (or fastest) from there; one sentence an entry.
        prediction: the same state as numbers, compared with the guest's heap after set-up.
        variant: which of the scenario's candidate states this is.
        driver: what the cost grows with, as a closed form: ``nodes visited = floor(H / 2M)``; empty if constant.
        driver_value: its value for this heap.
        refused: whether the measured allocation is to be refused.
    """

    scenario: str
    variant: str
    trace: Trace
    measured: Operation
    initial_cache: InitialCache
    state: str
    why: tuple[str, ...]
    prediction: Mapping[str, int | str]
    driver: str = ""
    driver_value: int | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a guest heap as its walker found it: header and payload in bytes, free or in use."""

    address: int
    size_bytes: int
    header_bytes: int
    free: bool


# ---------------------------------------------------------------------------------------------------------- measurement


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Counts of one cache during the measured call; one access per line touched by a fetch, load or store.

    ``present`` is False for a core without the cache: its counts are then 0 and its accesses go to memory.
    """

    present: bool
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    writebacks: int
    memory_writes: int
    """Single writes to memory: write-through stores and stores that miss without allocating."""

    @property
    def hits(self) -> int:
        """Reads and writes served by the cache."""
        return self.read_hits + self.write_hits

    @property
    def misses(self) -> int:
        """Reads and writes not served by the cache."""
        return self.read_misses + self.write_misses


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of instructions executed one after another, entered at ``address``, with how often it was entered."""

    address: int
    instructions: int
    executions: int


@dataclass(frozen=True, slots=True)
class WatchedLoop:
    """A loop of the binary whose iterations the machine counts in every run.

    Attributes:
        name: what tells it from the others, in messages and counts.
        header_address: the first instruction of its header, which every iteration executes once.
        entry_addresses: the last instruction of each block outside that leads into the loop. None where the header is
            the function's first instruction: whatever reaches it from outside ``body`` then enters the loop.
        body: address ranges of the loop's blocks, the header's among them, callees not.
    """

    name: str
    header_address: int
    entry_addresses: tuple[int, ...]
    body: tuple[MemoryRange, ...]


@dataclass(frozen=True, slots=True)
class LoopCount:
    """What was counted of a :class:`WatchedLoop`.

    Attributes:
        name: the loop's.
        max_header_executions: most executions of the header for one entry.
        header_executions: executions of the header, over all entries.
        entries: how often the loop was entered.
    """

    name: str
    max_header_executions: int
    header_executions: int
    entries: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Counts of one call: a witness, a lower bound of the WCET that anybody can replay.

    Attributes:
        instructions: instructions from entry to return, an instruction whose condition fails included.
        cycles: instruction cycles and memory stalls together.
        instruction_cycles: of these, cycles by the timing table.
        stall_cycles: of these, cycles of fills, write-backs and single accesses to memory.
        loads, stores: data accesses (an access that straddles a line touches two lines and counts once here).
        icache, dcache: counts of the caches; of a unified one those of its fetches, and of its data accesses.
        touched_instruction_sets: indices of the I-cache sets of executed instructions; empty without I-cache.
        touched_data_sets: indices of D-cache sets of all data accesses; empty without D-cache.
        touched_sets_by_region: D-cache sets by memory region.
        touched_bytes_by_region: bytes of the words that were accessed, by memory region.
        stack_bytes: deepest extent of the stack below the stack pointer at entry.
        runs: what was executed, in order of first execution.
        path: the executed path, as indices into ``runs``, in order.
        path_complete: False where ``path`` was cut at its limit; counts are never cut.
        result: the call's return value.
    """

    instructions: int
    cycles: int
    instruction_cycles: int
    stall_cycles: int
    loads: int
    stores: int
    icache: CacheCounts
    dcache: CacheCounts
    touched_instruction_sets: tuple[int, ...]
    touched_data_sets: tuple[int, ...]
    touched_sets_by_region: Mapping[str, tuple[int, ...]]
    touched_bytes_by_region: Mapping[str, int]
    stack_bytes: int
    runs: tuple[Run, ...]
    path: tuple[int, ...]
    path_complete: bool
    result: int


# --------------------------------------------------------------------------------------------------------------- report


@dataclass(frozen=True, slots=True)
class StateCheck:
    """One predicted fact of the heap state, and what the guest's heap showed."""

    fact: str
    predicted: int | str
    found: int | str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate state of a scenario, and what the measured operation cost there."""

    variant: str
    instructions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """A second engine's account of the measured call; it shares no code with the first, and agrees with it.

    The misses and write-backs are of a second cache simulation, fed with the second engine's fetches and accesses. They
    are None where there is no such cache, and with warm caches, whose content only the first engine knows.
    """

    engine: str
    instructions: int
    loads: int
    stores: int
    icache_misses: int | None
    dcache_misses: int | None
    dcache_writebacks: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """What of a question the answer does not repeat.

    Attributes:
        seed: of a random scenario.
        cache_options: texts of the options that changed the target's caches.
        initial_cache: content of the caches that was asked for, or None for the scenario's own.
        compiler: ``zig`` or a command.
        cross_check: whether a second engine was asked for.
    """

    seed: int = 0
    cache_options: tuple[str, ...] = ()
    initial_cache: InitialCache | None = None
    compiler: str = "zig"
    cross_check: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All of an answer plus its provenance. Renderers only read it.

    Attributes:
        allocator: what was measured, with its parameter values.
        target: the core, with the caches as configured for this run.
        plan: the scenario's plan for this heap.
        heap_bytes: size of the heap.
        initial_cache: content of the caches before the measured call.
        image: the binary.
        candidates: what was measured in each candidate state of the scenario; the plan's is the extreme one.
        checks: predicted state against the guest's heap, each equal.
        measurement: the witness.
        cross_check: the second engine's account, where it was asked for.
        verdict: what the answer says.
        bound: the proved upper bound, where it was asked for and found.
        no_bound: why there is none, in words, where it was asked for and not found.
        question: the rest of what was asked.
        instructions: code of the image in order of addresses.
        loop_maxima: by address of a bounded loop's header, its most executions for one entry of the loop in any run.
        flow_maxima: of each flow claim of the bound, the largest sum that any measured call had.
    """

    allocator: Allocator
    target: Target
    plan: ScenarioPlan
    heap_bytes: int
    initial_cache: InitialCache
    image: Image
    candidates: tuple[Candidate, ...]
    checks: tuple[StateCheck, ...]
    measurement: Measurement
    cross_check: CrossCheck | None
    verdict: Verdict
    bound: Bound | None = None
    no_bound: str = ""
    question: Question = Question()
    instructions: tuple[Instruction, ...] = field(default=(), repr=False)
    loop_maxima: Mapping[int, int] = field(default_factory=dict)
    flow_maxima: tuple[int, ...] = ()
