# SPDX-License-Identifier: 0BSD
"""Memory of a run: what the image, and the assumption *initial-data*, say that it holds, and what was stored since.

Of a device, which is what else a number may be the address of, nothing is known. A store to code, to constants, to a
bit-band alias, or of what is not known where, ends the run. That the stack is in none of the image's data is said by
*initial-data*, or else by *stack-separation*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wcet_probe.certificate.runs.words import NOTHING, LostError, Rests, Stack, Word
from wcet_probe.certificate.values.numbers import WORD
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

Content = Sequence[tuple[int, bytes]]
_ALIASES = ((0x2200_0000, 0x2400_0000), (0x4200_0000, 0x4400_0000))
_ABOVE_BYTES = 64
"""Of the caller's frame so much is memory where the stack pointer is a number: linkage and arguments."""


def memory_at_entry(image: Image, stack_pointer: int | None) -> Content:
    """What *initial-data* says: of all data, but for the object or segment that the stack is in, what the file says."""
    whole = [
        (one.address, one.data.ljust(one.size_bytes, b"\0"))
        for one in sorted(image.segments, key=lambda one: one.address)
        if one.writable and not one.executable and one.size_bytes
    ]
    below = -1 if stack_pointer is None else stack_pointer - 1
    objects = [(one.address, one.address + one.size_bytes) for one in image.symbols.values() if not one.is_function]
    around = [(low, end) for low, end in objects + [(at, at + len(data)) for at, data in whole] if low <= below < end]
    if not around:
        return whole
    low, end = min(around, key=lambda one: one[1] - one[0])
    parts = [
        part
        for at, data in whole
        for part in ((at, data[: max(0, low - at)]), (max(at, end), data[max(0, end - at) :]))
    ]
    return [(at, data) for at, data in parts if data]


class RunMemory:
    """Loads and stores of a run.

    Args:
        image: the binary.
        content: of what can be written, where the run begins.
        pointer: the stack pointer at entry.
        registers: of the run, and which of them is the stack pointer.
        used: takes the assumptions that a load or store rests on.
        is_aligned: whether nothing is known of accesses that are not aligned by their size.

    Attributes:
        words: of memory by numbers, each by its address / 4: a number, its four bytes, or something else that is known.
        stored: those that were stored to, and are memory as a whole.
        shifts: by the size of a part of a word in bytes, and its distance from the word, where it stands in it.
        observe: is told of each access before it is made.
    """

    def __init__(  # noqa: PLR0917  where the run begins, and what it changes
        self,
        image: Image,
        content: Content,
        pointer: Word,
        registers: tuple[list[Word], int],
        used: set[str],
        is_aligned: bool,  # noqa: FBT001
    ) -> None:
        self._image, self._used, self._pointer, self._is_aligned = image, used, pointer, is_aligned
        self._registers, self._number = registers
        self._is_apart = bool(content)
        self._content = [*content, *((one.address, one.data) for one in image.segments if not one.writable)]
        self._writable = [
            (one.address, one.address + one.size_bytes) for one in image.segments if one.writable and not one.executable
        ]
        self.words: dict[int, Word] = {}
        self._stack: dict[int, Word] = {}
        self.stored: set[int] = set()
        sizes = range(5)
        self.shifts = [[8 * (4 - size - low if image.big_endian else low) for low in range(4)] for size in sizes]
        self._masks = [(1 << 8 * size) - 1 for size in sizes]
        self.observe: Callable[[Word, int, bool, str], None] | None = None

    def load(self, address: Word, size_bytes: int, kind: str) -> Word:
        """What is at an address, by an instruction of timing class ``kind``."""
        if self.observe is not None:
            self.observe(address, size_bytes, False, kind)
        if type(address) is int:
            words, at = self.words, address
            if at >> 2 not in words and not self._is_known(at, size_bytes):
                return NOTHING
        else:
            words, at = self._stack, _distance(address)
        low = at & 3
        held = words.get(at >> 2, NOTHING)
        if type(held) is int and low + size_bytes <= 4 and not low % size_bytes:
            return held >> self.shifts[size_bytes][low] & self._masks[size_bytes]
        if not low and size_bytes == 4:
            return NOTHING if isinstance(held, list) else held
        self._check_alignment(at, size_bytes)
        found = [self._byte(words, each) for each in range(at, at + size_bytes)]
        if self._image.big_endian:
            found.reverse()
        return sum(byte << 8 * each for each, byte in enumerate(found))

    def _check_alignment(self, at: int, size_bytes: int) -> None:
        if self._is_aligned and at % size_bytes:
            raise LostError("an access is not aligned")

    def _byte(self, words: dict[int, Word], at: int) -> Word:
        if words is self.words and at >> 2 not in words and not self._is_known(at, 1):
            return NOTHING
        held = words.get(at >> 2, NOTHING)
        if isinstance(held, list):
            return held[at & 3]
        return held >> self.shifts[1][at & 3] & 0xFF if type(held) is int else NOTHING

    def store(self, address: Word, size_bytes: int, value: Word, kind: str) -> None:
        """Store the lowest bytes of ``value``."""
        if self.observe is not None:
            self.observe(address, size_bytes, True, kind)
        if type(address) is int:
            words, at = self.words, address
            if (at >> 2 not in self.stored or (at & 3) + size_bytes > 4) and not self._may_be_stored(at, size_bytes):
                return
        else:
            words, at = self._stack, _distance(address)
            pointer = self._registers[self._number]
            if not (isinstance(pointer, Stack) and pointer.offset <= at and at + size_bytes <= 0):
                self._used.add("stack-stores")
        low = at & 3
        if not low and size_bytes == 4:
            words[at >> 2] = value
            return
        self._check_alignment(at, size_bytes)
        is_number, held = type(value) is int, words.get(at >> 2)
        if is_number and type(held) is int and low + size_bytes <= 4 and not low % size_bytes:
            mask, shift = self._masks[size_bytes], self.shifts[size_bytes][low]
            words[at >> 2] = held & ~(mask << shift) | (value & mask) << shift
            return
        for each in range(size_bytes):
            byte = value >> 8 * (size_bytes - 1 - each if self._image.big_endian else each) & 0xFF
            self._keep(words, at + each, byte if is_number else NOTHING)

    def _keep(self, words: dict[int, Word], at: int, byte: Word) -> None:
        held = words.get(at >> 2, NOTHING)
        own = held if isinstance(held, list) else [self._byte(words, at & ~3 | each) for each in range(4)]
        own[at & 3] = byte
        words[at >> 2] = own
        if all(type(one) is int for one in own):
            order = own if self._image.big_endian else own[::-1]
            words[at >> 2] = int.from_bytes(bytes(order), "big")

    def _is_known(self, at: int, size_bytes: int) -> bool:
        """Whether memory is there, which is written down from then on."""
        is_there = False
        for number in range(at >> 2, (at + size_bytes - 1 >> 2) + 1):
            if number not in self.words:
                held = [self._at_entry(4 * number + each) for each in range(4)]
                if all(one is NOTHING for one in held):
                    continue
                self.words[number] = held
                self._keep(self.words, 4 * number, held[0])
            is_there = True
        return is_there

    def _at_entry(self, at: int) -> Word:
        found = [data[at - base] for base, data in self._content if base <= at < base + len(data)]
        return found[0] if len(found) == 1 and not self._is_alias(at, at + 1) else NOTHING

    def _is_alias(self, at: int, end: int) -> bool:
        """Whether a bit of other memory is there, whatever the file says of it."""
        return self._image.isa is Isa.THUMB and any(low < end and at < high for low, high in _ALIASES)

    def _may_be_stored(self, at: int, size_bytes: int) -> bool:
        """Whether a store to a number is to memory; one to a device is not kept."""
        end = at + size_bytes
        if self._is_alias(at, end):
            raise LostError(f"a store goes to {at:#x}, a bit-band alias")
        if any(low <= at and end <= high for low, high in self._writable):
            if not self._is_apart:
                self._used.add("stack-separation")
            self._is_known(at, size_bytes)
            if any(low <= at & ~3 and (at | 3) < high for low, high in self._writable):
                self.stored.add(at >> 2)
            return True
        if any(one.address < end and at < one.address + one.size_bytes for one in self._image.segments):
            raise LostError(f"a store goes to {at:#x}, to code or constants")
        if type(self._pointer) is not int:
            self._used.add("stack-separation")
            return False
        own = self._registers[self._number]
        if type(own) is int and own <= at and end <= self._pointer + _ABOVE_BYTES:
            return True
        for number in range(at >> 2, (end - 1 >> 2) + 1):  # below the stack pointer, where a frame was before
            self.words.pop(number, None)
        return False


def _distance(address: Word) -> int:
    if isinstance(address, Stack) and address.times == 1:
        return address.offset
    raise LostError("an access goes to an address that is not known")


def stack_at(pointer: int | None, used: Rests) -> Word:
    """The stack pointer at entry, which is ``pointer`` if that is known."""
    if pointer is None:
        return Stack(0, used)
    used.add("stack-pointer")
    return pointer % WORD
