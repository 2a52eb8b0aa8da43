"""Operations of an allocator in the emulator, held against what a heap is to be, by a model of the held blocks.

Blocks lie in the arena, aligned, in the set that was asked for, and overlap none that is held; what the caller wrote
into a block stands there when it is freed; the allocator's own check finds nothing; and an operation leaves the stack
pointer and the registers that its caller keeps.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort

from tests.support import Guest
from wcet_probe.build.program import Program
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import WcetProbeError
from wcet_probe.model.target import Isa

HEAP_BYTES = 1 << 16
_MOST_INSTRUCTIONS = 10_000_000
"""Of one call; the check of a full heap takes 2,000,000."""
_MOST_BLOCKS = 300
_LENGTHS = (200, 800)
"""So many operations a heap gets before it is made anew."""
_CHECKED_EVERY = 200
_ODD_SIZES = (0, 0xFFFF_FFFF, 0xFFFF_FFF8, 0x8000_0000, 0x7FFF_FFFF, 1 << 28, HEAP_BYTES)
_SAVED = {
    Isa.POWERPC: ("r1", "r2", "r13", *(f"r{number}" for number in range(14, 32))),
    Isa.ARM: ("r13", *(f"r{number}" for number in range(4, 12))),
    Isa.THUMB: ("r13", *(f"r{number}" for number in range(4, 12))),
}
_SHOWN_BYTES = 64
"""So many bytes of a block are written and looked at, at its start and at its end."""


REFUSES = "init refuses its heap"


class RefutedError(Exception):
    """Something is not as it is to be; the message says what."""


def refuted(program: Program, operations: int, seed: int = 0, *, checks: bool = True) -> str:
    """What ``operations`` operations showed to be broken; empty if nothing.

    Parameters:
        program: the allocator.
        operations: how many are run.
        seed: of the operations.
        checks: whether the allocator's own check is asked, too.
    """
    guest = Guest(program.image, program.target, program.instructions, program.costs)
    with guest.machine(HEAP_BYTES, _MOST_INSTRUCTIONS) as machine:
        try:
            _run(_Heap(program, machine, random.Random(seed), checks=checks), operations)
        except RefutedError as error:
            return str(error)
        except WcetProbeError as error:
            return f"{type(error).__name__}: {error}"
    return ""


class _Heap:
    """A heap, and the blocks of it that are held."""

    def __init__(self, program: Program, machine: Machine, draw: random.Random, *, checks: bool) -> None:
        self.allocator, self.machine, self.draw, self._checks = program.allocator, machine, draw, checks
        cache = program.target.dcache
        self.line_bytes, self.sets = (cache.line_bytes, cache.sets) if cache else (1, 1)
        self._saved = _SAVED[program.image.isa]
        self._began = False
        self._starts: list[int] = []
        self._blocks: dict[int, tuple[int, bytes]] = {}

    def begin(self) -> None:
        """Make the heap: at first in memory that nobody used, later at times in what is left of the heap before."""
        if not self._began or self.draw.random() < 1 / 2:
            self.machine.restart()
        self._began = True
        self._starts.clear()
        self._blocks.clear()
        if self._call("init", self.machine.heap.base_address, HEAP_BYTES):
            raise RefutedError(REFUSES)

    def take(self, size: int, cache_set: int) -> int:
        """Allocate a block, and write into it; 0 if there is none."""
        heap = self.machine.heap
        block = self._call("malloc", *((size, cache_set) if self.allocator.takes_cache_set else (size,)))
        if not block:
            return 0
        if block % self.allocator.alignment_bytes:
            raise RefutedError(f"a block of {size} bytes at {block:#x} is not aligned")
        if not heap.base_address <= block <= block + size <= heap.base_address + HEAP_BYTES:
            raise RefutedError(f"a block of {size} bytes at {block:#x} is not in the arena")
        if self.allocator.takes_cache_set and block // self.line_bytes % self.sets != cache_set:
            raise RefutedError(f"a block of {size} bytes at {block:#x} is not in set {cache_set}")
        index = bisect_left(self._starts, block)
        behind, before = self._starts[index : index + 1], self._starts[max(0, index - 1) : index]
        if any(block + size > one for one in behind) or any(one + self._blocks[one][0] > block for one in before):
            raise RefutedError(f"a block of {size} bytes at {block:#x} overlaps another one")
        insort(self._starts, block)
        content = self.draw.randbytes(min(size, 2 * _SHOWN_BYTES))
        self._blocks[block] = size, content
        self._shown(block, write=True)
        return block

    def free(self, block: int) -> None:
        """Free a block, or null."""
        if block:
            self._shown(block)
            self._starts.remove(block)
            del self._blocks[block]
        self._call("free", block)

    def check(self) -> None:
        """Look at all blocks, and have the allocator check its heap."""
        for block in self._starts:
            self._shown(block)
        found = self._checks and self.machine.call(self.allocator.entry_points["check"])
        if found:
            raise RefutedError(f"the check of the heap is {found}")

    def _shown(self, block: int, *, write: bool = False) -> None:
        size, content = self._blocks[block]
        parts = ((block, content),)
        if size > len(content):
            parts = (block, content[:_SHOWN_BYTES]), (block + size - _SHOWN_BYTES, content[_SHOWN_BYTES:])
        for address, own in parts:
            if write:
                self.machine.memory.write(address, own)
            elif self.machine.memory.read(address, len(own)) != own:
                raise RefutedError(f"what was written into the block at {block:#x} is there no more")

    def _call(self, role: str, *arguments: int) -> int:
        before = self.machine.registers(self._saved)
        result = self.machine.call(self.allocator.entry_points[role], *arguments)
        after = self.machine.registers(self._saved)
        # The stack pointer is set where a call begins, and then is what the call before left.
        pointer = self.machine.entry_registers(())
        changed = [name for name in self._saved if after[name] != pointer.get(name, before[name])]
        if changed:
            raise RefutedError(f"{role} does not leave {', '.join(changed)}")
        return result


def _run(heap: _Heap, operations: int) -> None:
    done = 0
    while done < operations:
        heap.begin()
        done += _fill(heap, heap.draw.choice(_LENGTHS))


def _fill(heap: _Heap, operations: int) -> int:
    """Random operations of one kind, and then all blocks are freed, or not."""
    draw = heap.draw
    bits = draw.choice((5, 7, 12))
    share = draw.choice((0.3, 0.45, 0.5))
    sets = draw.choice((range(heap.sets), draw.choices(range(heap.sets), k=2)))
    held: list[int] = []
    for number in range(operations):
        if len(held) == _MOST_BLOCKS or (held and draw.random() < share):
            heap.free(held.pop(draw.randrange(len(held))))
        elif draw.random() < 1 / 128:
            heap.free(0)
        else:
            size = 1 + draw.getrandbits(1 + draw.randrange(bits)) if draw.random() < 0.98 else draw.choice(_ODD_SIZES)
            cache_set = draw.choice(sets) if draw.random() < 0.99 else draw.choice((heap.sets, 1 << 31, 0xFFFF_FFFF))
            held.extend(filter(None, [heap.take(size, cache_set)]))
        if number % _CHECKED_EVERY == 0:
            heap.check()
    heap.check()
    if draw.random() < 0.7:
        draw.shuffle(held)
        for block in held:
            heap.free(block)
        heap.check()
    return operations
