"""SLEIGH's known errors, put right instruction by instruction, or refused.

Words: lifting, P-code (docs/explanation/glossary.md).

*Soundness:* each function says what SLEIGH does otherwise than the core. Traps end what is executed, and results that
p-code does not tell are unknown (`SPECIAL_REGISTER`). That no other errors are there is nobody's claim: random
encodings are compared with another engine, an instruction at a time (`tests/analyzer/pcode/test_encodings.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple

from wcet_probe.analyzer.pcode.byte_reversals import byte_reversed
from wcet_probe.analyzer.pcode.exclusives import conditional_store, exclusive
from wcet_probe.analyzer.pcode.float_moves import FloatCode, arm_float, powerpc_float
from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.saturations import saturation
from wcet_probe.analyzer.pcode.semantics import WHERE_DEFINED
from wcet_probe.analyzer.pcode.status_registers import masked, powerpc_status, thumb_status, written_flags
from wcet_probe.errors import DecodeError
from wcet_probe.model.target import Isa

_JUMPS = frozenset({"BRANCH", "CBRANCH", "CALL"})
_ENDS = _JUMPS | {"BRANCHIND", "CALLIND", "RETURN"}
_SEMIHOSTING = 0xAB
"""Of ``bkpt`` in Thumb code: Semihosting for AArch32 and AArch64, section 3."""
_STM_OF_SP, _LDRD_BEHIND = 0xE8AD, 0xE95F
"""First halfwords in Thumb: ``stm sp!, {…}``, and ``ldrd`` from before the program counter."""
_LAZY, _LAZY_REGISTERS = 0xEC20, 0x0A00
"""In Thumb: both halfwords of ``vlstm`` and ``vlldm`` without their base (ARM DDI 0553B, C2.4)."""
_STRHT = 0x0020_00B0
"""Of A32, but sign and kind of its offset, bits 27 to 20 and 7 to 4: SLEIGH stores elsewhere, or a word, or always."""
_MOVE_SHIFTED, _LSR_32 = 0xEA4F, 0x0010
"""In Thumb: both halfwords of ``lsr rd, rm, #32``."""
_POP_TO_PC, _POST_INDEXED_TO_PC = (0xF85D, 0xFB00), 0x049D_F000
"""``ldr pc, [sp], #n`` in Thumb, but its distance, and in A32, but that and its condition."""
_POP_WITH_PC, _STORE_ON_STACK = 0xBD00, 0x9000
"""In Thumb, 16 bits: ``pop {…, pc}`` without its other registers, ``str r0, [sp]``."""
_STSWI = 0x7C00_05AA
_DIVW_RECORDED = 0x7C00_03D7
"""``divw.``: the bits of its opcode, OE, which is 0, and Rc."""
_MFSPR, _MFTB = 0x7C00_02A6, 0x7C00_02E6
_KEPT_SPECIAL = frozenset({1, 8, 9, 256, *range(272, 280)})
"""Special registers of PowerPC that programs alone change: XER, which is refused, LR, CTR, USPRG0, SPRG0 to 7."""
_TRAP_ALWAYS = 31
"""The field TO with all conditions: Power ISA, book I, section 3.3.11."""


class Encoding(NamedTuple):
    """An instruction as it stands in the code.

    Attributes:
        address: of the instruction.
        code: four bytes from there on, fewer at the end of the code.
        before: the two bytes in front of it, or none.
        isa: its instruction set.
        big_endian: byte order.
        registers: of the language, by lower-case name.
        floats: the bytes of registers of floating point.
    """

    address: int
    code: bytes
    isa: Isa
    big_endian: bool
    registers: Mapping[str, Varnode]
    floats: frozenset[int]
    before: bytes = b""

    @property
    def word(self) -> int:
        """The instruction as a word."""
        return int.from_bytes(self.code, self._order)

    @property
    def halves(self) -> tuple[int, int]:
        """Its halfwords; of a shorter one, with what follows or 0."""
        return int.from_bytes(self.code[:2], self._order), int.from_bytes(self.code[2:], self._order)

    @property
    def float_code(self) -> FloatCode:
        """The instruction as one that may be of floating point; four bytes of it."""
        first, second = self.halves
        is_thumb = self.isa is Isa.THUMB
        word = first << 16 | second if is_thumb else self.word
        return FloatCode(self.address, word, self.registers, self.floats, is_thumb, self.big_endian)

    @property
    def flags(self) -> Varnode:
        """The register of all flags, which SLEIGH keeps apart from the single ones."""
        return self.registers["xer" if self.isa is Isa.POWERPC else "cpsr"]

    @property
    def _order(self) -> Literal["little", "big"]:
        return "big" if self.big_endian else "little"


def demand_known_registers(at: Encoding) -> None:
    """Refuse what transfers registers that there are not, before SLEIGH is asked, which then writes past its memory.

    Raises:
        DecodeError: ``vldm``, ``vstm``, ``vpush`` or ``vpop`` of none or of more than there are, which is UNPREDICTABLE
            (ARM DDI 0406C, A8.8.332 and A8.8.412), or ``vlstm`` or ``vlldm``, which are encoded so.
    """
    if at.isa is Isa.POWERPC:
        return
    first, second = at.halves if at.isa is Isa.THUMB else (at.word >> 16, at.word & 0xFFFF)
    is_transfer = first & 0x0E00 == 0x0C00 and second & 0x0E00 == 0x0A00 and (at.isa is Isa.ARM or first >> 13 == 7)
    is_of_one, is_of_core_registers = first & 0x0120 == 0x0100, not first & 0x01A0
    if not is_transfer or is_of_one or is_of_core_registers:
        return
    if at.isa is Isa.THUMB and first & 0xFFE0 == _LAZY and second == _LAZY_REGISTERS:
        raise DecodeError(
            f"the instruction at {at.address:#010x} saves or restores registers of floating point around a call of "
            "non-secure code (vlstm, vlldm), which is not followed: bound what stands before and behind that call."
        )
    high, low, is_double = second >> 12, first >> 6 & 1, second & 0x100
    begin, registers = (low << 4 | high, (second & 0xFF) >> 1) if is_double else (high << 1 | low, second & 0xFF)
    if not registers or begin + registers > 32:
        raise DecodeError(f"the instruction at {at.address:#010x} transfers registers that there are not: correct it.")


def corrected(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """The p-code of the instruction at ``address`` with SLEIGH's known errors put right, or refused."""
    if at.isa is not Isa.POWERPC:
        word = at.halves[0] << 16 | at.halves[1] if at.isa is Isa.THUMB else at.word
        ops = exclusive(written_flags(word, ops, at.registers, is_thumb=at.isa is Isa.THUMB))
    if any(at.flags in (op.output, *op.inputs) for op in ops):
        raise DecodeError(_of_all_flags(at))
    ops = list(map(_trap, ops))
    if at.isa is not Isa.POWERPC:
        if at.isa is Isa.ARM and at.word & 0x0F30_00F0 == _STRHT:
            raise DecodeError(f"the strht at {at.address:#010x} is not known: store by strh.")
        first, second = at.halves
        if at.isa is Isa.THUMB and first & 0xFFEF == _MOVE_SHIFTED and second & 0x70F0 == _LSR_32:
            raise DecodeError(f"the lsr by 32 bits at {at.address:#010x} is not known: its result is 0, so move that.")
        ops = thumb_status(at.halves, ops, at.registers) if at.isa is Isa.THUMB else masked(ops)
        if any(map(partial(_is_status_read, at), ops)):
            return _unknown(ops)
        ops = arm_float(at.float_code, _pointers(_saturated(at, ops)), _behind_guard(ops))
        ops = _popped_jump(at, _popped_return(at, _literal_pair(at, ops)))
        return _aligned_stack(at, _written_back(at, _with_carry(at, ops)))
    word = at.word
    ops = [op._replace(opcode=WHERE_DEFINED.get(op.opcode, op.opcode)) for op in _without_overflow(at, ops)]
    ops = byte_reversed(word, conditional_store(at.address, word, ops, at.registers), at.registers)
    ops = powerpc_float(at.float_code, powerpc_status(word, ops, at.registers))
    if word & 0xFC00_07FE == _STSWI and word >> 11 & 3:
        raise DecodeError(f"the stswi of a part of a word at {at.address:#010x} is not known: store bytes.")
    if word & 0xFC00_07FE in {_MFSPR, _MFTB} and (word >> 6 & 0x3E0 | word >> 16 & 0x1F) not in _KEPT_SPECIAL:
        return [PcodeOp("CALLOTHER", at.registers[f"r{word >> 21 & 31}"], (), SPECIAL_REGISTER)]
    to_address, to_link_register = word >> 26 == 16, word >> 26 == 19 and word >> 1 & 0x3FF == 16
    decrement_and_if_false = word >> 23 & 0b111 == 0
    return _branch_if_false(ops) if (to_address or to_link_register) and decrement_and_if_false else ops


def _without_overflow(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ops`` without OV and SO, which SLEIGH has ``divw.`` write, as ``divwo.`` does (Power ISA, book I, 3.3.9)."""
    if at.word & 0xFC00_07FF != _DIVW_RECORDED:
        return ops
    overflows = at.registers["xer_ov"], at.registers["xer_so"]
    return [op for op in ops if op.output not in overflows]


def _of_all_flags(at: Encoding) -> str:
    """Why an instruction is refused that accesses the register of all flags."""
    if at.isa is Isa.POWERPC:
        return (
            f"the instruction at {at.address:#010x} accesses the flags as a whole (mtxer, mfxer), which SLEIGH keeps "
            "apart from the single flags: avoid it in measured code."
        )
    return (
        f"the msr at {at.address:#010x} writes more than the flags N, Z, C, V and Q: the mode of the core, in which "
        "the stack pointer is another, or GE. That is not followed: bound what stands before and behind it as "
        "functions of their own."
    )


def _literal_pair(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """Literal ``ldrd`` of Thumb: two loads of a word, as all other ``ldrd`` are.

    SLEIGH swaps the words, and adds a distance that is to be subtracted.
    """
    for index, op in enumerate(ops):
        if op.inputs and op.inputs[0].space == "ram" and op.inputs[0].size_bytes == 8:
            first = op.inputs[0].offset
            if at.halves[0] == _LDRD_BEHIND:
                first -= 8 * (at.halves[1] & 0xFF)
            words = [Varnode("ram", first + offset, 4) for offset in (0, 4)]
            pair = zip(ops[index + 1 : index + 3], words, strict=True)
            return ops[:index] + [PcodeOp("COPY", half.output, (word,)) for half, word in pair]
    return ops


def _popped_return(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ldr pc, [sp], #n``, by which a function returns that has saved the link register alone, is a return.

    SLEIGH has a jump for it, and a return for ``pop`` and ``ldm`` of the same word, which do the same. So it is held to
    what those are: that it goes back is proved, or assumed where nothing tells of another place.
    """
    first, second = at.halves
    is_thumb = at.isa is Isa.THUMB and (first, second & 0xFF00) == _POP_TO_PC
    is_pop = is_thumb or (at.isa is Isa.ARM and at.word & 0x0FFF_F000 == _POST_INDEXED_TO_PC)
    if not is_pop or not ops or ops[-1].opcode != "BRANCHIND":
        return ops
    return [*ops[:-1], ops[-1]._replace(opcode="RETURN")]


def _popped_jump(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``str r0, [sp, #4]; pop {r0, pc}``, by which code of ARMv6-M jumps that has no register to spare, is a jump.

    So do libgcc's division of 64 bits, where the divisor is 0, and the thunks of LLD.

    *Soundness:* a jump is held to more than a return: all places where it may lead are told, be one behind the call.
    That it is one is seen of the halfword in front, whether that is an instruction or not.
    """
    pop, store = at.halves[0], int.from_bytes(at.before, "little")
    is_stored = store & 0xF8FF == _STORE_ON_STACK | (pop & 0xFF).bit_count()
    if at.isa is not Isa.THUMB or pop & 0xFF00 != _POP_WITH_PC or not is_stored or ops[-1].opcode != "RETURN":
        return ops
    return [*ops[:-1], ops[-1]._replace(opcode="BRANCHIND")]


def _with_carry(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ands``, ``bics``, ``mvns`` of Thumb in 32 bits: SLEIGH computes their carry, and leaves it where it is."""
    written = {op.output for op in ops}
    computed, carry = at.registers.get("shift_carry"), at.registers["cy"]
    is_lost = computed in written and at.registers["zr"] in written and carry not in written
    return [*ops, PcodeOp("COPY", carry, (computed,))] if computed and is_lost else ops


def _written_back(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``stm`` of Thumb in 16 bits writes its base back, which SLEIGH leaves out of one that is in the list.

    Raises:
        DecodeError: the base is not the first of the list: what is stored of it is unknown (ARM DDI 0403E,
            A7.7.159); or it is the stack pointer, of which SLEIGH takes ``stm`` for a ``push``.
    """
    half, _ = at.halves
    if at.isa is Isa.THUMB and half == _STM_OF_SP:
        raise DecodeError(f"the stm sp! at {at.address:#010x} is not known: store by another register.")
    if at.isa is not Isa.THUMB or half >> 11 != 0b11000 or not half >> (half >> 8 & 7) & 1:
        return ops
    if half & (1 << (half >> 8 & 7)) - 1:
        raise DecodeError(
            f"the instruction at {at.address:#010x} stores a base that it writes back, and not first: what it "
            "stores is unknown; store another register."
        )
    return [*ops, PcodeOp("COPY", at.registers[f"r{half >> 8 & 7}"], (at.registers["mult_addr"],))]


def _aligned_stack(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """Bits 0 and 1 of the stack pointer are 0 in Thumb, whatever is written (ARM DDI 0403E, B1.4.1).

    What was a multiple of 4 and is moved by multiples of 4 stays as it is.
    """
    pointer = at.registers["sp"]
    if at.isa is not Isa.THUMB or all(op.output != pointer for op in ops):
        return ops
    multiples = {pointer}
    for op in ops:
        of_4 = [one in multiples or (one.space == "const" and one.offset % 4 == 0) for one in op.inputs]
        is_sum = op.opcode in {"COPY", "INT_ADD", "INT_SUB"} and all(of_4)
        if op.output is not None:
            keep = is_sum or (op.opcode == "INT_MULT" and any(of_4))
            (multiples.add if keep else multiples.discard)(op.output)
    end = len(ops) - (ops[-1].opcode in _ENDS)  # flags are those of the result, which is not cleared
    cleared = PcodeOp("INT_AND", pointer, (pointer, Varnode("const", 0xFFFF_FFFC, 4)))
    return ops if pointer in multiples else [*ops[:end], cleared, *ops[end:]]


def _saturated(at: Encoding, ops: list[PcodeOp]) -> list[PcodeOp]:
    """``ssat`` of ARM, which SLEIGH takes for one of a bit more, and what `saturations` computes otherwise.

    Absolute differences of bytes are among that.

    Raises:
        DecodeError: it is UNPREDICTABLE, or a saturation of sums or parts that is not known.
    """
    found = [op for op in ops if op.user_op in {"SignedSaturate", "UnsignedSaturate", "Absolute"}]
    if not found:
        return ops
    is_thumb = at.isa is Isa.THUMB
    first, second = at.halves
    word = first << 16 | second if is_thumb else at.word
    exact = saturation(at.address, word, at.registers, is_thumb=is_thumb)
    if exact is not None:
        return [*ops[: _behind_guard(ops)], *exact]
    if len(found) > 1 or found[0].output == found[0].inputs[0]:
        raise DecodeError(f"the saturation at {at.address:#010x} is not known: saturate a word.")
    return ops if is_thumb else list(map(_by_sign_bit, ops))


def _is_status_read(at: Encoding, op: PcodeOp) -> bool:
    """Whether ``op`` reads Arm's Q but to keep it, as ``mrs``: SLEIGH clears Q too often, and has no mode."""
    return at.registers["q"] in op.inputs and op.output != at.registers["q"]


def _trap(op: PcodeOp) -> PcodeOp:
    """``op``, or that the core traps: ARM's ``udf`` and ``bkpt``, PowerPC's ``tw`` whose condition is always met.

    A breakpoint with the number of semihosting is a call of the debugger, which comes back: it stays what it is.
    """
    number = op.inputs[0].offset if op.opcode == "CALLOTHER" and op.inputs else None
    if (
        op.user_op == "software_udf"
        or (op.user_op == "software_bkpt" and number != _SEMIHOSTING)
        or (op.user_op == "trapWord" and number == _TRAP_ALWAYS)
    ):
        return PcodeOp("TRAP", None, ())
    return op


def _unknown(ops: list[PcodeOp]) -> list[PcodeOp]:
    """That the last result of ``ops`` is unknown, as a whole register, whose parts SLEIGH may write one by one."""
    last = [op.output for op in ops if op.output is not None][-1]
    return [
        *ops[: _behind_guard(ops)],
        PcodeOp("CALLOTHER", Varnode(last.space, last.offset & ~3, 4), (), SPECIAL_REGISTER),
    ]


def _behind_guard(ops: list[PcodeOp]) -> int:
    """Where what is done under a condition begins."""
    return 1 + max((index for index, op in enumerate(ops) if op.opcode == "CBRANCH"), default=-1)


def _by_sign_bit(op: PcodeOp) -> PcodeOp:
    """``op``, a signed saturation of ARM by its sign bit, where SLEIGH has the number of its bits."""
    if op.user_op not in {"SignedSaturate", "SignedDoesSaturate"}:
        return op
    return op._replace(inputs=(op.inputs[0], op.inputs[1]._replace(offset=op.inputs[1].offset - 1)))


def _pointers(ops: list[PcodeOp]) -> list[PcodeOp]:
    """Literal ``ldrh``, ``ldrsh``, ``ldrsb``, ``ldrd`` of ARM, where SLEIGH loads the pointer from its own value.

    No instruction of these ISAs loads its pointer from memory, so a ``ram`` operand beside a LOAD is an address.
    """
    if not any(op.opcode in ("LOAD", "STORE") for op in ops):
        return ops
    return [op if op.opcode in _JUMPS else op._replace(inputs=tuple(map(_address, op.inputs))) for op in ops]


def _address(varnode: Varnode) -> Varnode:
    return varnode._replace(space="const") if varnode.space == "ram" else varnode


def _branch_if_false(ops: list[PcodeOp]) -> list[PcodeOp]:
    """PowerPC's ``bdnzf``, ``bdzf`` and their kin, where pypcode 3 tests for true; pypcode 4 is right."""
    for index, op in enumerate(ops):
        if op.opcode == "BOOL_AND":
            bit = op.inputs[1]
            if next(earlier.opcode for earlier in reversed(ops[:index]) if earlier.output == bit) == "INT_AND":
                return [*ops[:index], PcodeOp("BOOL_NEGATE", bit, (bit,)), *ops[index:]]
    return ops
