"""What one data access waits for memory where no cache serves it.

Words: set, line (docs/explanation/glossary.md).

*Soundness:* the dearest of the regions that it may be to; a stack may be in any.

Without a cache each access waits as long as the memory takes for one beat, where there are no regions:

>>> table = example('''
... unsigned small[8] __attribute__((aligned(32)));
... unsigned f(unsigned i) { return small[i & 7]; }''')
>>> from wcet_probe.model.target import Basis, Sourced
>>> beat = Sourced(9, Basis.ASSUMED, "an example")
>>> [uncached_cycles(access, MemoryTiming(beat, beat, beat)) for access in table.lines.accesses(0)]
[9]
"""

from __future__ import annotations

from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import MemoryTiming, Target


def uncached_cycles(access: Access, memory: MemoryTiming) -> int:
    """Most cycles of ``access`` on a core without a data cache."""
    return max(memory.single_cycles, region_cycles(access, memory))


def block_waiting_cycles(values: Values, point: int, memory: MemoryTiming) -> int:
    """Most cycles that the accesses of the block at ``point`` wait on a core without a data cache.

    Those of an instruction that makes none, as its predicate is false, wait as well: it costs the dearer of executed
    and skipped, as all else of it does, and a certificate need not show why it is skipped.
    """
    accesses = values.accesses.get(point, ())
    instructions = values.graph.points[point].block.instructions
    made = {one.instruction_address for one in accesses}
    skipped = (op.opcode for one in instructions if one.address not in made for op in one.ops)
    waits = sum(one in {"LOAD", "STORE"} for one in skipped)
    return sum(uncached_cycles(one, memory) for one in accesses) + waits * memory.single_cycles


def region_cycles(access: Access, memory: MemoryTiming) -> int:
    """Most cycles of the uncached regions that ``access`` may be to, with one of its bytes at least."""
    cycles = 0
    for region in memory.regions:
        if access.base is Base.NUMBER:
            low, high = access.offset.unsigned_range()
            if high + access.size_bytes <= region.extent.base_address or region.extent.end_address <= low:
                continue
        own = region.write_cycles if access.is_store else region.read_cycles
        cycles = max(cycles, own.value)
    return cycles


def waiting_cycles(access: Access, target: Target) -> int:
    """Most cycles of ``access`` beside those for a cache."""
    return region_cycles(access, target.memory) if target.dcache else uncached_cycles(access, target.memory)
