"""What the disassembler says of one instruction, as plain data, and the arithmetic that the decoders share."""

from __future__ import annotations

from dataclasses import dataclass

from wcet_probe.model.target import Isa


@dataclass(frozen=True, slots=True)
class Record:
    """One disassembled instruction; no type of the disassembler is in it.

    Attributes:
        isa: the instruction set.
        address: where it is.
        size_bytes: 2 or 4.
        encoding: its bits; a 32-bit Thumb instruction has its first halfword on top.
        name: the mnemonic without condition and width suffixes.
        text: mnemonic and operands.
        sets_flags: whether an ARM instruction updates the flags.
        operands: registers in the order of the operands, those of addresses and shifts included.
        immediate: the last immediate operand; of a branch its absolute target.
        reads, writes: registers by canonical name, as far as the disassembler knows.
        shifted: registers of an operand that is shifted, the one that says how far included.
    """

    isa: Isa
    address: int
    size_bytes: int
    encoding: int
    name: str
    text: str
    sets_flags: bool = False
    operands: tuple[str, ...] = ()
    immediate: int | None = None
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    shifted: frozenset[str] = frozenset()

    def bits(self, high: int, low: int) -> int:
        """Bits ``high`` down to ``low`` of the encoding; bit 0 is the least significant."""
        return (self.encoding >> low) & ((1 << (high - low + 1)) - 1)

    def bit(self, position: int) -> bool:
        """Bit ``position`` of the encoding."""
        return bool(self.encoding >> position & 1)

    def register(self, low: int, width: int = 4) -> str:
        """Name of the register whose number stands in ``width`` bits from bit ``low``."""
        return f"r{self.bits(low + width - 1, low)}"


def signed(value: int, bits: int) -> int:
    """``value``, a number of ``bits`` bits, read as two's complement."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
