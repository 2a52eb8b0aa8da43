# SPDX-License-Identifier: 0BSD
"""Executes the analysed function from its entry on what is known there, and sums what the target's table charges.

Code up to an instruction that may go elsewhere is made a function of Python, once. A run that comes to something that
is not known (a condition, an address, an instruction) tells nothing but why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.charge import edge_cost, instruction_cycles, not_charged
from wcet_probe.certificate.kernel.coverage import Code
from wcet_probe.certificate.runs import arm_code, powerpc_code
from wcet_probe.certificate.runs.functions import function_of, needless_before, successors
from wcet_probe.certificate.runs.memory import Content, RunMemory, stack_at
from wcet_probe.certificate.runs.waits import RunCache
from wcet_probe.certificate.runs.words import LINK, NOTHING, Fields, Link, LostError, Rests, Stack, Word
from wcet_probe.certificate.values.numbers import WORD
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import Isa
from wcet_probe.model.unaligned_access import unaligned_cycles

MOST_INSTRUCTIONS = 100_000_000
"""So many are followed; of longer runs nothing is said."""
_LONGEST_BLOCK, _TOLD_AFTER = 100_000, 250_000
_PAGE = 4096


class TooLongError(Exception):
    """A run takes more instructions than it may."""


class Ran(NamedTuple):
    """What a run takes.

    Attributes:
        instructions: of it.
        cycles: at most; None where that is not known.
        untold: why it is not.
        executions: of each instruction, by address.
        used: assumptions that it rests on.
    """

    instructions: int
    cycles: int | None
    untold: str
    executions: Mapping[int, int]
    used: frozenset[str]


class _Part(NamedTuple):
    """Code up to an instruction that may go elsewhere, as a function, and how often it went where.

    ``again`` counts how often one call of the function executed it besides.
    """

    instructions: tuple[Instruction, ...]
    execute: Callable[[], Word]
    ways: dict[int, int]
    lines: range
    again: list[int]


def executed(  # noqa: PLR0917  the binary, and where the run begins
    code: Code,
    binary: Binary,
    entry: str,
    content: Content,
    known: Mapping[str, int],
    pointer: int | None,
    most: int = MOST_INSTRUCTIONS,
    margin: int = 0,
) -> Ran:
    """The run of the function ``entry``.

    Args:
        code: of the image.
        binary: image, costs and target.
        entry: where it begins.
        content: of memory that can be written.
        known: what registers hold.
        pointer: the stack pointer, if it is known.
        most: instructions.
        margin: the stack pointer is so many bytes or more from both ends of the address space.

    Raises:
        LostError: what is executed next is not known.
        TooLongError: it takes more than ``most`` instructions.
    """
    run = _Run(code, binary, content, pointer, margin)
    for register, word in known.items():
        run.registers[run.isa.NUMBER_OF[register]] = word
    return run.follow(code.image.symbols[entry].address, most)


class _Run:
    def __init__(self, code: Code, binary: Binary, content: Content, pointer: int | None, margin: int = 0) -> None:
        target = binary.target
        self._code, self._target, self._progress = code, target, binary.progress
        self._costs = {one.address: cost for one, cost in zip(binary.instructions, binary.costs, strict=True)}
        self.isa = powerpc_code if code.image.isa is Isa.POWERPC else arm_code
        self._used = Rests()
        self._used.margin = margin
        self.registers: list[Word] = [NOTHING] * self.isa.PLACES
        own = self.registers[self.isa.SP] = stack_at(pointer, self._used)
        self.registers[self.isa.LINK_REGISTER] = LINK
        place = self.registers, self.isa.SP
        self._memory = RunMemory(code.image, content, own, place, self._used, not target.unaligned)
        self._fetched = RunCache(target.icache) if target.icache else None
        self._data = RunCache(target.dcache) if target.dcache else None
        self._waiting, self._known = 0, dict[tuple[str, int, int], int]()
        self._untold = self._not_told()
        if not self._untold and (target.dcache or target.unaligned or target.memory.single_cycles):
            self._memory.observe = self._accessed
        self._names = {
            "R": self.registers, "load": self._memory.load, "store": self._memory.store, "NOTHING": NOTHING,
            "Fields": Fields, "bits_of": _bits_of, "settled": _settled, "jump": self._jump, **_DIVISIONS,
            "words": self._memory.words, "stored": self._memory.stored, "shifts": self._memory.shifts,
            "touch": self._data.touch if self._data else None,
        }  # fmt: skip
        self._parts: dict[int, _Part] = {}
        self._texts: dict[int, tuple[list[Instruction], list[str], str]] = {}

    def _not_told(self) -> str:
        target = self._target
        if target.unified_cache:
            return "a cache of both instructions and data"
        if target.memory.regions and target.dcache:
            return "uncached regions"
        return ", ".join(not_charged(target, "cycles"))

    def follow(self, entry: int, most: int) -> Ran:
        """As `executed`."""
        at, before, parts, fetched = entry, entry, self._parts, self._fetched
        done, told = 0, min(_TOLD_AFTER, most)
        try:
            while True:
                part = parts.get(at) or self._part(at)
                done += len(part.instructions)
                if done > told:
                    told = self._tell(done, most)
                if fetched is not None:
                    for line in part.lines:
                        fetched.touch(line)
                before, at = at, part.execute()
                if part.again[0]:
                    done += part.again[0] * len(part.instructions)
                    part.ways[before] = part.ways.get(before, 0) + part.again[0]
                    part.again[0] = 0
                if type(at) is not int:
                    break
                part.ways[at] = part.ways.get(at, 0) + 1
        except LostError as error:
            raise LostError(f"{error}, at or behind {self._code.image.location(before)}") from error
        if not isinstance(at, Link):
            raise LostError(f"a jump to what is not known, at or behind {self._code.image.location(before)}")
        return self._found(done, part)

    def _tell(self, done: int, most: int) -> int:
        if done > most:
            raise TooLongError
        self._progress("executing the run that memory at entry decides", done, most)
        return min(done + _TOLD_AFTER, most)

    # ----------------------------------------------------------------------------------------------------------- parts

    def _part(self, address: int) -> _Part:
        own, lines, following = self._written(address)
        icache = self._target.icache
        size = icache.line_bytes if icache else WORD
        fetched = range(address // size, (own[-1].address + own[-1].size_bytes - 1) // size + 1)
        # Fetched again, lines of which no two are in one set change nothing.
        to_itself = address if icache is None or len(fetched) <= icache.sets else None
        needless = self._needless_behind(following)
        source = function_of(to_itself, (lines, following), needless, self.isa.SP, self._quick)
        again = [0]
        names: dict[str, Any] = {**self._names, "again": again}
        exec(compile(source, f"{address:#x}", "exec"), names)  # noqa: S102  it is made of the image's code by this room alone
        part = self._parts[address] = _Part(tuple(own), names["block"], {}, fetched, again)
        return part

    def _written(self, address: int) -> tuple[list[Instruction], list[str], str]:
        """The code from ``address`` up to an instruction that may go elsewhere, as Python, and where it goes then."""
        if address in self._texts:
            return self._texts[address]
        own: list[Instruction] = []
        lines, following, at = list[str](), None, address
        while following is None:
            instruction = self._code.instructions.get(at)
            if instruction is None or instruction.problem or at not in self._costs:
                raise LostError("there is no instruction that can be executed")
            own.append(instruction)
            found, following = self._compiled(instruction)
            lines += found
            at += instruction.size_bytes
            if len(own) > _LONGEST_BLOCK or own[0].in_it_block:
                raise LostError("code is too long, or is entered inside of an IT block")
            if following is None and instruction.control is not Control.NEXT:
                following = str(at)
        text = self._texts[address] = own, lines, following
        return text

    def _needless_behind(self, following: str) -> frozenset[str]:
        """The registers that all code which may come next writes before it reads them."""
        try:
            each = [needless_before(*self._written(at)[1:], self.isa.SP) for at in successors(following)]
        except LostError:
            return frozenset()
        return frozenset.intersection(*each) if each else frozenset()

    def _compiled(self, instruction: Instruction) -> tuple[list[str], str | None]:
        image = self._code.image
        if image.isa is not Isa.POWERPC:
            return arm_code.compiled(instruction, thumb=image.isa is Isa.THUMB)
        for one in image.segments:
            at = instruction.address - one.address
            if one.executable and at >= 0 and at + 4 <= len(one.data):
                return powerpc_code.compiled(instruction, int.from_bytes(one.data[at : at + 4], "big"))
        raise LostError("code stands nowhere in the image")

    def _jump(self, to: Word, following: int = -1) -> Word:
        """Where a jump to a word goes, which must not change the instruction set.

        To the ``following`` instruction a conditional one must not go: nobody could tell then whether it was executed.
        """
        if type(to) is not int:
            return to
        isa = self._code.image.isa
        if isa is not Isa.POWERPC and to & 1 != (isa is Isa.THUMB):
            raise LostError("a jump changes the instruction set")
        at = to & ~(3 if isa is Isa.POWERPC else 1)
        if at == following:
            raise LostError("a conditional jump leads to the next instruction")
        return at

    # ----------------------------------------------------------------------------------------------------------- costs

    def _quick(self, kind: str, size_bytes: int, is_store: bool) -> str | None:  # noqa: FBT001
        """See `functions.Quick`: what `_accessed` does of an aligned access by a number."""
        if self._memory.observe is None:
            return ""
        if self._data is not None:
            return f"touch(at // {self._data.line_bytes}, is_store={is_store})"
        own = [one for one in self._target.unaligned if one.size_bytes == size_bytes and kind in one.timing_classes]
        is_longer = self._target.memory.single_cycles or any(one.alignment_bytes >= size_bytes for one in own)
        return None if is_longer else ""

    def _accessed(self, address: Word, size_bytes: int, is_store: bool, kind: str) -> None:  # noqa: FBT001
        """What an access costs besides."""
        at = address.offset if isinstance(address, Stack) else address
        if type(at) is not int or self._untold:
            return
        if self._data is not None:
            line_bytes = self._data.line_bytes
            first, last = at // line_bytes, (at + size_bytes - 1) // line_bytes
            if isinstance(address, Stack):
                self._untold = "accesses to the stack, of which nobody says where it is"
            elif at % size_bytes or first != last:
                self._untold = "an unaligned access, by way of a cache"
            else:
                self._data.touch(first, is_store=is_store)
            return
        self._waiting += self._target.memory.single_cycles
        if not self._target.unaligned:
            return
        if isinstance(address, Stack):
            self._used.add("stack-alignment")
        key = kind, size_bytes, at % 8 if isinstance(address, Stack) else at % _PAGE + _PAGE
        if key not in self._known:
            modulus = 8 if isinstance(address, Stack) else _PAGE
            longer = unaligned_cycles(self._target.unaligned, kind, size_bytes, modulus, at % modulus).most
            self._known[key] = longer * (1 + self._target.memory.single_cycles)
        self._waiting += self._known[key]

    def _found(self, instructions: int, last: _Part) -> Ran:
        """What all parts that were executed cost."""
        executions: dict[int, int] = {}
        cycles = self._waiting
        for part in self._parts.values():
            times = sum(part.ways.values()) + (part is last)
            for one in part.instructions:
                cycles += times * instruction_cycles(one, self._costs[one.address])
                executions[one.address] = executions.get(one.address, 0) + times
            for to, count in part.ways.items():
                cycles += count * self._passing(part, to)
        cycles += self._passing(last, None)
        for cache in (self._fetched, self._data):
            cycles += cache.cycles(self._target) if cache is not None else 0
        return Ran(instructions, None if self._untold else cycles, self._untold, executions, frozenset(self._used))

    def _passing(self, part: _Part, to: int | None) -> int:
        return edge_cost(part.instructions[-1], to, self._costs, "cycles")


def _bits_of(word: Word) -> tuple[object, ...]:
    """The condition fields that a word is."""
    if isinstance(word, Fields):
        return word.bits
    places = [31 - 4 * (each // 3) - each % 3 for each in range(24)]
    return tuple(word >> place & 1 for place in places)


def _settled(pointer: Word) -> Word:
    """What is known of a stack pointer of Thumb behind a write: of another one than of words, nothing."""
    if isinstance(pointer, Stack):
        return pointer if pointer.times == 1 and pointer.offset % 4 == 0 else NOTHING
    return pointer if type(pointer) is int and pointer % 4 == 0 else NOTHING


def _quotient(one: Word, other: Word, *, is_signed: bool, by_zero: Word, too_large: Word = WORD // 2) -> Word:
    """A quotient, cut off towards 0."""
    if type(one) is not int or type(other) is not int:
        return NOTHING
    if other == 0:
        return by_zero
    if not is_signed:
        return one // other
    one, other = ((each ^ WORD // 2) - WORD // 2 for each in (one, other))
    found = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
    return too_large if found == WORD // 2 else found % WORD


_DIVISIONS: Mapping[str, Callable[[Word, Word], Word]] = {
    "udiv": lambda a, b: _quotient(a, b, is_signed=False, by_zero=0),
    "sdiv": lambda a, b: _quotient(a, b, is_signed=True, by_zero=0),
    "divwu": lambda a, b: _quotient(a, b, is_signed=False, by_zero=NOTHING),
    "divw": lambda a, b: _quotient(a, b, is_signed=True, by_zero=NOTHING, too_large=NOTHING),
}  # fmt: skip
