"""What a whole analysis knows of memory: read-only content, words of flow facts, whose addresses may be held.

Words: abstract location, flow fact (docs/explanation/glossary.md).

*Soundness:* only segments that are not writable keep their content; of words the facts are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.states.held_addresses import HeldAddresses
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

MOST_READ = 1024
"""Most addresses of read-only memory that one load is followed to."""
_BIT_BANDS = ((0x2200_0000, 0x2000_0000), (0x4200_0000, 0x4000_0000))
"""Where aliases begin, and where the memory that they stand for does."""
_LAST, _ALIAS_OF_A_BYTE = 0x1FF_FFFF, 32


@dataclass(slots=True)
class Memory:
    """What is known of the image's memory for the whole analysis, and what was learnt of it.

    Attributes:
        image: whose segments that are not writable keep their content.
        words: what flow facts say of words, by address.
        stack_escapes: whether a stack address may have been stored outside the stack.
        held: where one may have been stored on the stack; unless it is said, anywhere.
        above: registers that hold, at entry, no address below the stack pointer, though they may hold one of the stack.
        saving: the operations that save registers, see `saved_words`, if what they save is assumed to stay.
        assumes_plain_frames: whether what is loaded from the stack is assumed to be no address of it.
    """

    image: Image
    words: Mapping[int, StridedInterval] = field(default_factory=dict)
    stack_escapes: bool = False
    held: HeldAddresses = field(default_factory=HeldAddresses)
    above: frozenset[Location] = frozenset()
    saving: Mapping[tuple[int, int], int] = field(default_factory=dict)
    assumes_plain_frames: bool = False
    _parts: list[tuple[int, bytes]] = field(default_factory=list)
    _tables: dict[tuple[StridedInterval, int], StridedInterval | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._parts = [(s.address, s.data) for s in self.image.segments if not s.writable]

    def is_static(self, address: int) -> bool:
        """Whether the image owns the memory there; what else is there may be a device."""
        return any(s.address <= address < s.address + s.size_bytes for s in self.image.segments)

    def changes_a_bit(self, low: int, high: int) -> bool:
        """Whether a store from ``low`` on, to ``high`` at most, may change a bit of the image that lies elsewhere.

        *Soundness:* each word of an alias stands for one bit (bit-banding: Cortex-M4 TRM, ARM DDI 0439, section 3.7).
        That a core is one that has none is not told from others here.
        """
        for alias, band in _BIT_BANDS if self.image.isa is Isa.THUMB else ():
            if high < alias or low > alias + _LAST:
                continue
            at = max(low, alias), min(high, alias + _LAST)
            first, last = (band + (address - alias) // _ALIAS_OF_A_BYTE for address in at)
            for one in self.image.segments:
                begin, end = max(first, one.address), min(last, one.address + one.size_bytes - 1)
                if begin <= end and not (low <= begin and end <= high):
                    return True
        return False

    def constant(self, address: int, size_bytes: int) -> int | None:
        """The content of read-only memory."""
        for base, data in self._parts:
            if base <= address and address + size_bytes <= base + len(data):
                raw = data[address - base : address - base + size_bytes]
                return int.from_bytes(raw, "big" if self.image.big_endian else "little")
        return None

    def table(self, addresses: StridedInterval, size_bytes: int) -> StridedInterval | None:
        """What read-only memory holds at any of ``addresses``; None where one of them is not read-only memory."""
        key = addresses, size_bytes
        if key not in self._tables:
            self._tables[key] = self._table(addresses, size_bytes)
        return self._tables[key]

    def _table(self, addresses: StridedInterval, size_bytes: int) -> StridedInterval | None:
        result = strided.bottom(8 * size_bytes)
        for address in addresses.values():
            content = self.constant(address, size_bytes)
            if content is None:
                return None
            result = strided.join(result, strided.constant(8 * size_bytes, content))
        return result
