# SPDX-License-Identifier: 0BSD
"""What the accesses of a node cost that may be unaligned, and those to uncached regions, by the target's table.

An access is charged the most that is possible by the class of its address: by the invariants, and by what facts say of
numbers of which these know nothing. Nothing is believed of an address that no class is known of.
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.certificate.names.names import Address, Executed
from wcet_probe.certificate.values.congruences import MOST_MODULUS
from wcet_probe.model.instruction import Access, AccessKind
from wcet_probe.model.target import Target
from wcet_probe.model.unaligned_access import unaligned_cycles


def unaligned_accesses(executed: Iterable[Executed], target: Target) -> int:
    """The least that a node has to charge for what unaligned accesses take longer, each cycle with its waiting."""
    cycles = 0
    for instruction, accesses in executed if target.unaligned else ():
        for access, addresses in zip(instruction.accesses, accesses, strict=True):
            times = 2 if access.kind is AccessKind.LOAD_STORE else 1
            for address in addresses:
                known = address.alignment.coarser(MOST_MODULUS)
                own = unaligned_cycles(target.unaligned, instruction.timing_class, access.bytes_each, *known).most
                waiting = region_cycles(access, address, target) if target.dcache else target.memory.single_cycles
                cycles += own * (times + waiting) if target.dcache else own * times * (1 + waiting)
    return cycles


def region_cycles(access: Access, address: Address, target: Target) -> int:
    """What the dearest uncached region costs that an access may be to."""
    value = address.number
    low, high = (value.low, value.high) if value.is_number else (0, (1 << 32) - 1)
    most = 0
    for region in target.memory.regions:
        if low < region.extent.end_address and region.extent.base_address <= high + access.bytes_each - 1:
            reads, writes = region.read_cycles.value, region.write_cycles.value
            most = max(most, {"load": reads, "store": writes}.get(access.kind.value, reads + writes))
    return most
