"""What a function is to leave as its caller had it, and which registers it may write to at all.

By the System V ABI of PowerPC (3-14, "Registers") and the procedure call standard of Arm (AAPCS32, 6.1.1).

Words: symbolic execution, saved word (docs/explanation/glossary.md).

*Soundness:* a register that is not told of here may not be written to: fields of the condition register that the caller
keeps, registers that the system keeps, those of floating point, and what says how the core runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from wcet_probe.analyzer.deduction.byte_terms import Bits
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.model.target import Isa

Held = Mapping[tuple[str, int], tuple[int, Word | Bits]]
"""What registers hold, by space and offset, with their sizes in bytes."""

RETURN_ADDRESS = unknown("return address")
"""What the link register holds at entry."""
STACK_POINTER = unknown("stack pointer")
"""What the stack pointer holds at entry."""

_STACK_REGISTERS = {Isa.POWERPC: "r1", Isa.ARM: "sp", Isa.THUMB: "sp"}
_OF_POWERPC = tuple(f"r{number}" for number in range(14, 32))
_OF_ARM = tuple(f"r{number}" for number in range(4, 12))
_SAVED = {Isa.POWERPC: _OF_POWERPC, Isa.ARM: _OF_ARM, Isa.THUMB: _OF_ARM}
_OTHERS_OF_POWERPC = frozenset({
    *("r0", *(f"r{number}" for number in range(3, 13)), "lr", "ctr", "cr0", "cr1", "cr5", "cr6", "cr7"),
    *("xer_so", "xer_ov", "xer_ca", "xer_ov32", "xer_ca32"),
})  # fmt: skip
_OTHERS_OF_ARM = frozenset({
    *("r0", "r1", "r2", "r3", "r12", "lr", "pc", "ng", "zr", "cy", "ov", "q"),
    # What SLEIGH computes with, and the instruction set that a return goes on in.
    *("tmpng", "tmpzr", "tmpcy", "tmpov", "shift_carry", "tb", "isamodeswitch", "mult_addr"),
})  # fmt: skip
_OTHERS = {Isa.POWERPC: _OTHERS_OF_POWERPC, Isa.ARM: _OTHERS_OF_ARM, Isa.THUMB: _OTHERS_OF_ARM}


def of_caller(register: str) -> str:
    """The name of what a register holds at entry."""
    return f"{register} of the caller"


def saved_words(isa: Isa) -> Mapping[str, Word]:
    """What the stack pointer and the registers that the caller keeps hold at entry, by name."""
    saved = {name: unknown(of_caller(name)) for name in _SAVED[isa]}
    return {name: Word(0, ((node, 1),)) for name, node in {_STACK_REGISTERS[isa]: STACK_POINTER, **saved}.items()}


def callers_words(stack_register: str) -> Mapping[str, Word]:
    """Words of the caller that a function stores and gives back, by names: registers' and where it returns to.

    Parameters:
        stack_register: the name of the stack pointer, whose own word is not among them.
    """
    isa = next(isa for isa, name in _STACK_REGISTERS.items() if name == stack_register)
    saved = {of_caller(name): word for name, word in saved_words(isa).items() if name != stack_register}
    return {"return address": Word(0, ((RETURN_ADDRESS, 1),)), **saved}


def may_write(isa: Isa) -> frozenset[str]:
    """The registers that a function may write to, whatever it leaves in them, and those that it may save before."""
    return _OTHERS[isa].union(saved_words(isa))


class Kept:
    """What is to be left of registers where a way returns.

    Args:
        lifter: lifter of the image, which knows where registers are.
        saved: what the stack pointer and the registers that the caller keeps are to hold, by name.
        untouched: those of them that hold that where the way begins, and of which nothing is told until they are read.

    Attributes:
        untouched: as given: what they hold, by space and offset.
        may_write: offsets and sizes of the registers that the way may write to.
    """

    def __init__(self, lifter: Lifter, saved: Mapping[str, Word], untouched: Collection[str]) -> None:
        registers = lifter.registers
        self._saved = {(registers[name].space, registers[name].offset): (name, word) for name, word in saved.items()}
        self.untouched = {place: word for place, (name, word) in self._saved.items() if name in untouched}
        own = (registers[name] for name in may_write(lifter.isa))
        self.may_write = frozenset((one.offset, one.size_bytes) for one in own)

    def still_untouched(self, held: Held) -> frozenset[str]:
        """Those that are untouched where a way that holds this in registers ends."""
        return frozenset(self._saved[place][0] for place in self.untouched.keys() - held.keys())

    def changed(self, held: Held) -> str | None:
        """A register in which a way that returns with this in registers leaves another word; None if there is none."""
        for place, (name, word) in self._saved.items():
            own = self.untouched.get(place) if place not in held else held[place][1]
            if own != word:
                return name
        return None
