"""What accesses cost that may be unaligned, where the target's table says what those take longer.

An access is charged the most that its residue class allows: nothing where it is proved, or asserted, that it is
aligned. Nothing is assumed of an address of which nothing is known.

Words: congruence, asserted (docs/explanation/glossary.md).

*Soundness:* as said of `address_classes` and `asserted_alignment`. Each cycle is one transfer more, which waits for
memory as the first may, at most. A predicated access is charged as if it took place.

The word is one byte behind a multiple of 32, which makes it two cycles dearer on a Cortex-M4:

>>> packed = example('''
... struct __attribute__((packed, aligned(32))) { char kind; unsigned time; } one;
... void f(unsigned now) { *(volatile unsigned *)&one.time = now; }''')
>>> [_class_of(access, packed.lines.places.classes, {}) for access in packed.lines.accesses(0)]
[Congruence(modulus=32, residue=1)]
"""

from __future__ import annotations

from dataclasses import replace

from wcet_probe.analyzer.dcache.address_classes import AddressClasses
from wcet_probe.analyzer.dcache.asserted_alignment import Asserted, asserted_alignments
from wcet_probe.analyzer.dcache.memory_waits import waiting_cycles
from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.ipet.costs import Costs
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.properties.congruences import Congruences
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import Target
from wcet_probe.model.unaligned_access import unaligned_cycles

_MOST_BYTES = 64
"""The largest modulus that is asked for without a cache: facts are held against runs as far as this."""


def with_unaligned_accesses(
    data: DataMisses, values: Values, target: Target, pointers: PointerFacts, costs: Costs
) -> DataMisses:
    """``data``, and what unaligned accesses of ``values`` cost besides.

    Args:
        data: waiting for data.
        values: accesses by point.
        target: with what unaligned accesses take longer; nothing is added where it does not say.
        pointers: what flow facts say of addresses of which nothing else is known.
        costs: instructions by address.

    *Soundness:* as said of the module.
    """
    if not target.unaligned:
        return data
    most = data.lines.places.config.line_bytes if data.lines else _MOST_BYTES
    classes = AddressClasses(Congruences(values, most), pointers, most)
    asserted = asserted_alignments(values, pointers)
    points = dict(data.points)
    for point, accesses in values.accesses.items():
        for access, (own, _) in zip(accesses, asserted.get(point, ()), strict=True):
            timing_class = costs[access.instruction_address][0].timing_class
            known = _class_of(access, classes, own)
            longer = unaligned_cycles(target.unaligned, timing_class, access.size_bytes, *known).most
            if longer:
                points[point] = points.get(point, 0) + longer * (1 + waiting_cycles(access, target))
    counting = data.counting
    return replace(
        data,
        points=points,
        classes=None if data.lines else classes,
        counting=counting and (lambda *kept: with_unaligned_accesses(counting(*kept), values, target, pointers, costs)),
    )


def _class_of(access: Access, classes: AddressClasses, asserted: Asserted) -> Congruence:
    """The sharper of the classes by the parts of the address and by its range."""
    by_parts = classes.of_address(access, asserted)
    if access.base is not Base.NUMBER:
        return by_parts
    return max(by_parts, classes.residues.of_number(access.offset))
