"""The p-code interpreter as a second opinion on a measurement: counts, path, memory, caches, cycles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from unicorn import arm_const, unicorn_const

from tests.support import Guest
from wcet_probe.analyzer.pcode.interpreter import DataAccess, Interpretation, interpret_call
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.emu.cache import Caches as PlainCaches
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.emu.machine import RETURN_ADDRESS, Machine
from wcet_probe.model.image import Segment
from wcet_probe.model.instruction import Control, Instruction, InstructionCost
from wcet_probe.model.measurement import CacheCounts, Measurement
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa, Need, Result, Target

STEP_LIMIT = 100_000
ALWAYS = 14
Memory = Mapping[int, bytes | bytearray]


@lru_cache(64)
def lifter(language: str, isa: Isa, segments: tuple[Segment, ...]) -> Lifter:
    return image_lifter(language, isa, segments)


def interpret(guest: Guest, memory: Memory, registers: Mapping[str, int], function: str) -> Interpretation:
    return interpret_call(
        lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments),
        memory,
        registers,
        entry_address=guest.address(function),
        return_address=RETURN_ADDRESS,
        step_limit=STEP_LIMIT,
    )


def registers_of(machine: Machine, isa: Isa) -> dict[str, int]:
    """What an earlier call left in the registers."""
    names = [f"r{n}" for n in range(32 if isa is Isa.POWERPC else 13)]
    return {name: machine._engine.read_register(name) for name in names}


@dataclass(frozen=True)
class Caches:
    """The plain cache simulation, fed with what the second engine fetched and accessed."""

    _plain: PlainCaches

    @classmethod
    def of(cls, target: Target, initial: InitialCache) -> Caches:
        return cls(PlainCaches.of(target, initial))

    @property
    def icache(self) -> CacheSimulation | None:
        return self._plain.icache

    @property
    def dcache(self) -> CacheSimulation | None:
        return self._plain.dcache

    def feed(self, guest: Guest, second: Interpretation) -> None:
        sizes = {i.address: i.size_bytes for i in guest.instructions}
        accesses = ((one.step, one.address, one.size_bytes, one.is_store) for one in second.accesses)
        self._plain.run(second.path, sizes.__getitem__, accesses)


def counts_of(simulation: CacheSimulation | None) -> CacheCounts:
    names = ("read_hits", "read_misses", "write_hits", "write_misses", "writebacks", "memory_writes")
    return CacheCounts(simulation is not None, *(getattr(simulation, name, 0) for name in names))


def expanded_path(guest: Guest, measurement: Measurement) -> tuple[int, ...]:
    """The measurement's path, instruction by instruction."""
    following = {i.address: i.address + i.size_bytes for i in guest.instructions}

    def addresses() -> Iterator[int]:
        for index in measurement.path:
            address = measurement.runs[index].address
            for _ in range(measurement.runs[index].instructions):
                yield address
                address = following[address]

    return tuple(addresses())


def assert_agree(
    guest: Guest, machine: Machine, function: str, arguments: tuple[int, ...], initial: InitialCache
) -> tuple[Measurement, Interpretation]:
    """Measure the call, repeat it in the interpreter from the same state, and compare all that both know."""
    memory = machine.memory.snapshot()
    registers = registers_of(machine, guest.target.isa) | machine.entry_registers(arguments)
    measurement = machine.measure(function, arguments, initial)
    second = interpret(guest, memory, registers, function)
    assert (measurement.instructions, measurement.loads, measurement.stores, measurement.result) == (
        second.instructions,
        second.loads,
        second.stores,
        second.result,
    )
    assert measurement.path_complete
    assert expanded_path(guest, measurement) == second.path
    assert machine.memory.snapshot() == second.memory
    words = {w for a in second.accesses for w in range(a.address & ~3, a.address + a.size_bytes, 4)}
    assert sum(measurement.touched_bytes_by_region.values()) == 4 * len(words)
    caches = Caches.of(guest.target, initial)
    caches.feed(guest, second)
    assert measurement.icache == counts_of(caches.icache)
    assert measurement.dcache == counts_of(caches.dcache)
    assert set(measurement.touched_instruction_sets) == (caches.icache.touched_sets if caches.icache else set())
    assert set(measurement.touched_data_sets) == (caches.dcache.touched_sets if caches.dcache else set())
    return measurement, second


# ------------------------------------------------------------------------------------------------------------- cycles


def traced_call(machine: Machine, isa: Isa, function: str, arguments: tuple[int, ...]) -> list[tuple[int, int]]:
    """Run the call with a plain hook: address and flags of each instruction that the engine announces."""
    seen: list[tuple[int, int]] = []
    engine = machine._engine._uc
    machine._unhook()
    engine.ctl_flush_tb()

    def note(_engine: object, address: int, _size: int, _user: object) -> None:
        seen.append((address, engine.reg_read(arm_const.UC_ARM_REG_CPSR) if isa is Isa.ARM else 0))

    hook = engine.hook_add(unicorn_const.UC_HOOK_CODE, note)
    machine.call(function, *arguments)
    engine.hook_del(hook)
    engine.ctl_flush_tb()
    return seen


Step = tuple[Instruction, InstructionCost, bool, bool]
"""An instruction of a path with its cost; whether it executes (or is skipped), and whether it is a branch taken."""


def steps_of(guest: Guest, path: tuple[int, ...], seen: list[tuple[int, int]]) -> Iterator[Step]:
    """The instructions of ``path``, with what the engine announced of them."""
    by_address = {i.address: (i, c) for i, c in zip(guest.instructions, guest.costs, strict=True)}
    announced = iter([*seen, (None, 0)])
    address_at, flags = next(announced)
    for address, following in zip(path, (*path[1:], RETURN_ADDRESS), strict=True):
        instruction, cost = by_address[address]
        is_announced = address_at == address
        executes = is_announced and (instruction.condition == ALWAYS or holds(flags, instruction.condition))
        if is_announced:
            address_at, flags = next(announced)
        assert executes or is_predicated(instruction)
        conditional = instruction.control is Control.CONDITIONAL_BRANCH
        yield instruction, cost, executes, conditional and following != address + instruction.size_bytes
    assert address_at is None


def cycles_of(guest: Guest, path: tuple[int, ...], seen: list[tuple[int, int]]) -> int:
    """Cycles by the timing table: each instruction of the path as executed or skipped, each branch as taken or not."""
    return sum(
        (cost.executed_cycles if executes else cost.skipped_cycles) + cost.taken_cycles * taken
        for _, cost, executes, taken in steps_of(guest, path, seen)
    )


def region_cycles_of(target: Target, access: DataAccess) -> int:
    """What the dearest region costs with a byte of ``access``; without a cache, a byte elsewhere waits for its beat."""
    places = [target.memory.region_at(byte) for byte in range(access.address, access.address + access.size_bytes)]
    costs = [(place.write_cycles if access.is_store else place.read_cycles).value for place in places if place]
    if not target.dcache and None in places:
        costs.append(target.memory.single_cycles)
    return max(costs, default=0)


def unaligned_cycles_of(guest: Guest, second: Interpretation) -> int:
    """What unaligned accesses take longer, by the words of the target's file; each cycle is a transfer that waits."""
    target, longer = guest.target, 0
    classes = {one.address: one.timing_class for one in guest.instructions}
    for access in second.accesses:
        waiting = region_cycles_of(target, access)
        for row in target.unaligned:
            is_of_row = row.size_bytes == access.size_bytes and classes[second.path[access.step]] in row.timing_classes
            if is_of_row and access.address % (2 * row.alignment_bytes) == row.alignment_bytes:
                longer += row.cycles * (1 + waiting)
    return longer


def pipeline_cycles(guest: Guest, path: tuple[int, ...], seen: list[tuple[int, int]]) -> int:
    """Cycles of a core that issues in order by the timing table; each instruction waits until its operands are there.

    Written from what the target's file says of a row and of a rule: no code is shared with what is charged.
    """
    target, now = guest.target, 0
    ready: dict[tuple[str, tuple[str, ...], Need], int] = {}
    everyone = tuple(target.timing)
    for one, _, executes, taken in steps_of(guest, path, seen):
        parts = {name for access in one.accesses for name in (access.base, access.index)}
        needs = {Need.ANY: one.reads, Need.ADDRESS: parts, Need.SHIFT: one.shifted}
        due = (when for (name, who, need), when in ready.items() if one.timing_class in who and name in needs[need])
        row = target.timing[one.timing_class]
        cycles = row.cycles + row.per_register_cycles * one.registers + row.literal_cycles * one.literal
        now = max(now, *due, 0) + (cycles if executes else target.condition_failed.cycles) + row.taken_cycles * taken
        if executes:
            ready = {key: when for key, when in ready.items() if key[0] not in one.writes and when > now}
            bases = {access.base for access in one.accesses} & one.writes - one.loaded
            results = {Result.WRITTEN: one.writes, Result.LOADED: one.loaded, Result.BASE: bases}
            late = [(name, everyone, Need.ANY, row.load_use_cycles) for name in one.loaded]
            late += [
                (name, rule.consumers, rule.need, rule.cycles)
                for rule in target.stalls
                if one.timing_class in rule.producers
                for name in results[rule.result]
            ]
            for name, who, need, wait in late:
                ready[name, who, need] = max(now + wait, ready.get((name, who, need), 0))
    return now


def is_predicated(instruction: Instruction) -> bool:
    return instruction.in_it_block or instruction.condition != ALWAYS


def holds(flags: int, condition: int) -> bool:
    """ARM ARM DDI 0100I, table A3-1."""
    n, z, c, v = (bool(flags >> bit & 1) for bit in (31, 30, 29, 28))
    table = [z, not z, c, not c, n, not n, v, not v, c and not z, not c or z, n == v, n != v]
    return [*table, not z and n == v, z or n != v][condition]
