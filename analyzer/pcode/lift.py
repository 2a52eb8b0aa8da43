"""Machine code to p-code: the only file that imports pypcode, and no pypcode type leaves it.

P-code is the register-transfer language of SLEIGH (Ghidra's processor descriptions; the operations are defined in
Ghidra's "P-Code Reference Manual"). Values are unsigned integers of a width in bytes; a varnode is such a value in the
space ``const`` (its offset is the value), ``register``, ``unique`` (temporaries of one instruction) or ``ram``.

Words: lifting, P-code, varnode (docs/explanation/glossary.md).

*Soundness:* SLEIGH's descriptions are taken at their word, but for the errors that are put right here (`_pointers`,
`_branch_if_false`, and of `Lifter` `_saturated`, `_literal_pair`, `_guarded_ops`, `_with_carry`, `_written_back`,
`_aligned_stack`), traps end what is executed (`_trap`), and results that p-code does not tell are unknown
(`UNKNOWN_RESULTS`); tests compare them with another engine.
Code does not change while it is lifted, an image holds one instruction set, no branch leads into a Thumb IT block (see
`Lifter.lift`), and system registers are storage: what they do to the core is not part of p-code.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, NamedTuple

import pypcode

from wcet_probe.analyzer.pcode.semantics import WHERE_DEFINED
from wcet_probe.errors import DecodeError
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

CodeReader = Callable[[int, int], bytes]
"""``read(address, size_bytes)``: the code bytes from ``address`` on, fewer where the code ends."""

_LONGEST_BYTES = 4
_IMAGES = 4
"""So many images keep what was translated of them."""
FLOAT_OPERATION = "float"
"""User operation of a floating-point instruction without p-code."""
SATURATION, SPECIAL_REGISTER = "saturation", "special_register"
UNKNOWN_RESULTS = frozenset({SATURATION, SPECIAL_REGISTER})
"""User operations that write their output, of which nothing is known, and no more: sums, halves and bytes that are
saturated, which SLEIGH computes otherwise than the core does, and what time or the core may change unseen."""
_ARM_FLOATS = re.compile(r"[sdq]\d+|fpscr|fpsid|fpexc|mvfr\d")
_POWERPC_FLOATS = re.compile(r"f\d+|vs\d+|vr\d+_\d+|fp_\w+|fpscr")
_JUMPS = frozenset({"BRANCH", "CBRANCH", "CALL"})
_ENDS = _JUMPS | {"BRANCHIND", "CALLIND", "RETURN"}
_SEMIHOSTING = 0xAB
"""Of ``bkpt`` in Thumb code: Semihosting for AArch32 and AArch64, section 3."""
_ALWAYS = 14
"""From this condition on an instruction of Arm is executed whatever the flags are."""
_STM_OF_SP, _LDRD_BEHIND = 0xE8AD, 0xE95F
"""First halfwords in Thumb: ``stm sp!, {…}``, and ``ldrd`` from before the program counter."""
_STRHT = 0x0020_00B0
"""Of A32, but sign and kind of its offset, bits 27 to 20 and 7 to 4: SLEIGH stores elsewhere, or a word, or always."""
_SAT16, _MOVE_SHIFTED, _LSR_32 = 0xF320, 0xEA4F, 0x0010
"""In Thumb: first halfword of ``ssat16`` and, but for one bit, ``usat16``; both halfwords of ``lsr rd, rm, #32``."""
_STSWI = 0x7C00_05AA
_MFSPR, _MFTB = 0x7C00_02A6, 0x7C00_02E6
_KEPT_SPECIAL = frozenset({1, 8, 9, 256, *range(272, 280)})
"""Special registers of PowerPC that programs alone change: XER, which is refused, LR, CTR, USPRG0, SPRG0 to 7."""
_TRAP_ALWAYS = 31
"""The field TO with all conditions: Power ISA, book I, section 3.3.11."""
_ARM_ALIASES = {"r13": "sp", "r14": "lr", "r15": "pc"}


class Varnode(NamedTuple):
    """A value of ``size_bytes`` bytes at ``offset`` of ``space``; in the space ``const`` the offset is the value."""

    space: str
    offset: int
    size_bytes: int


class PcodeOp(NamedTuple):
    """One p-code operation.

    Attributes:
        opcode: name as in the reference manual (``INT_ADD``), or ``TRAP``: the core takes an exception for good.
        output: where the result goes, or None.
        inputs: operands in the manual's order, without the space of ``LOAD`` and ``STORE`` (always ``ram``) and
            without the operation's number of ``CALLOTHER``.
        user_op: name of the operation of a ``CALLOTHER``, else empty.
    """

    opcode: str
    output: Varnode | None
    inputs: tuple[Varnode, ...]
    user_op: str = ""


@dataclass(frozen=True, slots=True)
class LiftedInstruction:
    """A machine instruction and its p-code. A branch to a ``const`` varnode is relative to its own index in ``ops``.

    Instructions of one lifter with equal ``ops`` have the very same, so that what is told of these is told once.
    """

    address: int
    size_bytes: int
    ops: tuple[PcodeOp, ...]


def code_reader(segments: Iterable[Segment]) -> CodeReader:
    """A reader of the executable segments of an image."""
    parts = [(segment.address, segment.data) for segment in segments if segment.executable]

    def read(address: int, size_bytes: int) -> bytes:
        for base, data in parts:
            if base <= address < base + len(data):
                return data[address - base : address - base + size_bytes]
        return b""

    return read


class Lifter:
    """Lifts instructions of one image, each once.

    Args:
        language: SLEIGH language id, ``Target.pcode_language``.
        isa: instruction set of the code.
        read_code: where the code bytes come from, see `code_reader`.

    Attributes:
        isa: as given.
        big_endian: byte order of memory, registers and temporaries.
        float_bytes: offsets of all bytes of floating-point registers and of their status, in the space ``register``.
        registers: register by lower-case SLEIGH name; on ARM also ``r13``, ``r14``, ``r15``.

        translated: by address and number of instructions, what was translated of this code, by whatever lifter of it.

    Raises:
        DecodeError: pypcode has no such language.
    """

    def __init__(self, language: str, isa: Isa, read_code: CodeReader) -> None:
        self._language = language
        description = _description(language)
        if description is None:
            raise DecodeError(f"pypcode has no language {language!r}: correct pcode_language of the target.")
        self.isa = isa
        self.big_endian = ":BE:" in language
        self._read_code = read_code
        self._context = pypcode.Context(description)
        if isa is not Isa.POWERPC:
            self._context.setVariableDefault("TMode", int(isa is Isa.THUMB))
        registers = {name.lower(): _varnode(register) for name, register in self._context.registers.items()}
        if isa is not Isa.POWERPC:
            registers |= {alias: registers[name] for alias, name in _ARM_ALIASES.items()}
        self.registers: Mapping[str, Varnode] = registers
        floats = _POWERPC_FLOATS if isa is Isa.POWERPC else _ARM_FLOATS
        self.float_bytes = frozenset(
            offset
            for name, register in registers.items()
            if floats.fullmatch(name)
            for offset in range(register.offset, register.offset + register.size_bytes)
        )
        self._flags = registers["xer" if isa is Isa.POWERPC else "cpsr"]
        self._instructions: dict[int, LiftedInstruction] = {}
        self._ops: dict[tuple[PcodeOp, ...], tuple[PcodeOp, ...]] = {}
        self.translated: dict[tuple[int, int], list[LiftedInstruction]] = {}
        self._guarded: set[int] = set()

    def another(self) -> Lifter:
        """A lifter of the same code that has lifted nothing yet, and shares what was translated.

        *Soundness:* it lifts as a new one does. The context of SLEIGH remembers of an IT block which instructions have
        guards; one of them that is asked for alone is translated in a context of its own.
        """
        found = copy(self)
        vars(found).update(_instructions={})
        return found

    def code_word(self, address: int) -> int | None:
        """The word of four bytes at ``address`` of the code; None where there is none."""
        data = self._read_code(address, 4)
        return int.from_bytes(data, "big" if self.big_endian else "little") if len(data) == 4 else None

    def reversed_bits(self, address: int) -> tuple[Varnode, Varnode] | None:
        """Where the result of an ``rbit`` in Thumb code goes and what it is of; None of other instructions.

        SLEIGH does it bit by bit, 100 operations long (Arm ARM DDI 0403, section A7.7.112, encoding T1).
        """
        word = self.code_word(address) if self.isa is Isa.THUMB else None
        if word is None or word & 0xF0F0_FFF0 != 0xF0A0_FA90 or word >> 16 & 0xF != word & 0xF:
            return None
        return self.registers[f"r{word >> 24 & 0xF}"], self.registers[f"r{word & 0xF}"]

    def lift(self, address: int) -> LiftedInstruction:
        """The instruction at ``address`` (without Thumb bit).

        A Thumb IT instruction is lifted together with the instructions it predicates, which thereby get their guards,
        and all of them are remembered. A predicated instruction that is asked for before its IT instruction comes
        without its guard: to enter an IT block by a branch is UNPREDICTABLE (ARMv7-M ARM DDI 0403E A7.3.3), so whoever
        follows the flow of control meets the IT instruction first. Where both lifts occur, the second is an error.

        Raises:
            DecodeError: no code there, no instruction that SLEIGH knows, or an IT block that was entered by a branch.
        """
        if address not in self._instructions:
            for instruction in self._translate(address, 1 + self._predicated_count(address)):
                if self._instructions.setdefault(instruction.address, instruction) != instruction:
                    raise DecodeError(
                        f"the instruction at {instruction.address:#010x} was lifted without the guard of its IT "
                        f"instruction at {address:#010x}: lift an IT block from its start."
                    )
        return self._instructions[address]

    def _predicated_count(self, address: int) -> int:
        """How many instructions the one at ``address`` predicates: its mask ends with the lowest set bit."""
        low, high = self._read_code(address, 2).ljust(2, b"\0")
        mask = low & 0xF
        if self.isa is not Isa.THUMB or high != 0xBF or mask == 0:
            return 0
        return 4 - (mask & -mask).bit_length() + 1

    def _translate(self, address: int, count: int) -> list[LiftedInstruction]:
        if (address, count) not in self.translated:
            if address in self._guarded:
                apart = Lifter(self._language, self.isa, self._read_code)
                apart.lift(address)
                self.translated[address, count] = apart.translated[address, count]
            else:
                end = address + count * _LONGEST_BYTES if count > 1 else address
                perhaps = {*range(address + 2, end, 2)} - self._guarded
                self._guarded |= perhaps  # also where the block cannot be translated as a whole
                lifted = self.translated[address, count] = self._translate_anew(address, count)
                self._guarded -= {*range(lifted[-1].address + lifted[-1].size_bytes, end, 2)} & perhaps
        return self.translated[address, count]

    def _translate_anew(self, address: int, count: int) -> list[LiftedInstruction]:
        code = self._read_code(address, count * _LONGEST_BYTES)
        if not code:
            raise DecodeError(f"there is no code at {address:#010x}: a jump or return address is wrong.")
        if self._is_unconditional_float(code):
            return [LiftedInstruction(address, 4, (PcodeOp("CALLOTHER", None, (), FLOAT_OPERATION),))]
        try:
            ops = self._context.translate(code, base_address=address, max_instructions=count).ops
        except (pypcode.BadDataError, pypcode.UnimplError, pypcode.LowlevelError) as error:
            raise DecodeError(f"SLEIGH cannot lift the instruction at {address:#010x}: {error}.") from error
        lifted: list[LiftedInstruction] = []
        body: list[PcodeOp] = []
        for op in reversed(ops):
            opcode = _name(op.opcode)
            if opcode == "IMARK":
                mark = op.inputs[0]
                condition = self._condition(code, count - 1 - len(lifted))
                guarded = self._guarded_ops(mark.offset + mark.size, condition, body[::-1])
                corrected = tuple(self._correct(mark.offset, guarded))
                same = self._ops.setdefault(corrected, corrected)
                lifted.append(LiftedInstruction(mark.offset, mark.size, same))
                body.clear()
            else:
                body.append(_pcode_op(op, opcode))
        if len(lifted) != count:
            raise DecodeError(
                f"SLEIGH cannot lift the whole IT block at {address:#010x}: only {len(lifted)} of {count}."
            )
        lifted.reverse()
        return lifted

    def _condition(self, code: bytes, place: int) -> int:
        """The condition of an instruction, by its encoding or that of the IT ``place`` instructions before it."""
        if self.isa is Isa.POWERPC or len(code) < 4 or (self.isa is Isa.THUMB and place == 0):
            return _ALWAYS
        if self.isa is Isa.ARM:
            return code[0 if self.big_endian else 3] >> 4
        it = code[self.big_endian]
        return it >> 4 if place == 1 else it >> 4 & 0xE | it >> 5 - place & 1

    def _guarded_ops(self, following: int, condition: int, ops: list[PcodeOp]) -> list[PcodeOp]:
        """``ops`` under a condition: SLEIGH forgets it of some (``ssat`` and ``usat`` of Thumb).

        *Soundness:* what SLEIGH computes of the flags for another instruction under the same condition.
        """
        if condition >= _ALWAYS or not ops or any(op.opcode == "CBRANCH" for op in ops):
            return ops
        *computed, branch = _guard(self._language, self.isa, condition)
        target = branch.inputs[0]._replace(offset=following)
        return [*computed, branch._replace(inputs=(target, *branch.inputs[1:])), *ops]

    def _is_unconditional_float(self, code: bytes) -> bool:
        """Whether ``code`` begins with VSEL, VMAXNM, VRINT or the like of ARMv8, which SLEIGH's languages do not know.

        They write floating-point registers only.
        """
        if self.isa is Isa.POWERPC or len(code) < 4:
            return False
        order: Literal["little", "big"] = "big" if self.big_endian else "little"
        halves = [int.from_bytes(code[i : i + 2], order) for i in (0, 2)]
        first, second = halves if self.isa is Isa.THUMB or self.big_endian else halves[::-1]
        return first >> 8 == 0xFE and second >> 9 & 0b111 == 0b101 and not second >> 4 & 1

    def _literal_pair(self, address: int, ops: list[PcodeOp]) -> list[PcodeOp]:
        """Literal ``ldrd`` of Thumb: two loads of a word, as all other ``ldrd`` are.

        SLEIGH swaps the words, and adds a distance that is to be subtracted.
        """
        for index, op in enumerate(ops):
            if op.inputs and op.inputs[0].space == "ram" and op.inputs[0].size_bytes == 8:
                first, distance = op.inputs[0].offset, self._read_code(address, 4)
                order: Literal["little", "big"] = "big" if self.big_endian else "little"
                if int.from_bytes(distance[:2], order) == _LDRD_BEHIND:
                    first -= 8 * (int.from_bytes(distance[2:], order) & 0xFF)
                words = [Varnode("ram", first + offset, 4) for offset in (0, 4)]
                pair = zip(ops[index + 1 : index + 3], words, strict=True)
                return ops[:index] + [PcodeOp("COPY", half.output, (word,)) for half, word in pair]
        return ops

    def _with_carry(self, ops: list[PcodeOp]) -> list[PcodeOp]:
        """``ands``, ``bics``, ``mvns`` of Thumb in 32 bits: SLEIGH computes their carry, and leaves it where it is."""
        written = {op.output for op in ops}
        computed, carry = self.registers.get("shift_carry"), self.registers["cy"]
        is_lost = computed in written and self.registers["zr"] in written and carry not in written
        return [*ops, PcodeOp("COPY", carry, (computed,))] if computed and is_lost else ops

    def _written_back(self, address: int, ops: list[PcodeOp]) -> list[PcodeOp]:
        """``stm`` of Thumb in 16 bits writes its base back, which SLEIGH leaves out of one that is in the list.

        Raises:
            DecodeError: the base is not the first of the list: what is stored of it is unknown (ARM DDI 0403E,
                A7.7.159); or it is the stack pointer, of which SLEIGH takes ``stm`` for a ``push``.
        """
        half = int.from_bytes(self._read_code(address, 2), "big" if self.big_endian else "little")
        if self.isa is Isa.THUMB and half == _STM_OF_SP:
            raise DecodeError(f"the stm sp! at {address:#010x} is not known: store by another register.")
        if self.isa is not Isa.THUMB or half >> 11 != 0b11000 or not half >> (half >> 8 & 7) & 1:
            return ops
        if half & (1 << (half >> 8 & 7)) - 1:
            raise DecodeError(
                f"the instruction at {address:#010x} stores a base that it writes back, and not first: what it "
                "stores is unknown; store another register."
            )
        return [*ops, PcodeOp("COPY", self.registers[f"r{half >> 8 & 7}"], (self.registers["mult_addr"],))]

    def _aligned_stack(self, ops: list[PcodeOp]) -> list[PcodeOp]:
        """Bits 0 and 1 of the stack pointer are 0 in Thumb, whatever is written (ARM DDI 0403E, B1.4.1).

        What was a multiple of 4 and is moved by multiples of 4 stays as it is.
        """
        pointer = self.registers["sp"]
        if self.isa is not Isa.THUMB or all(op.output != pointer for op in ops):
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

    def _word(self, address: int) -> int:
        """The instruction at ``address`` as a word."""
        return int.from_bytes(self._read_code(address, 4), "big" if self.big_endian else "little")

    def _halves(self, address: int) -> tuple[int, int]:
        """The halfwords of the instruction at ``address``; of a shorter one, with what follows or 0."""
        order: Literal["little", "big"] = "big" if self.big_endian else "little"
        code = self._read_code(address, 4)
        return int.from_bytes(code[:2], order), int.from_bytes(code[2:], order)

    def _saturated(self, address: int, ops: list[PcodeOp]) -> list[PcodeOp]:
        """``ssat`` of ARM, which SLEIGH takes for one of a bit more; of sums, halves and bytes the result is unknown.

        *Soundness:* SLEIGH cuts sums to the width of their operands before it saturates them, and takes halves for
        unsigned, or in Thumb for words. A sum is saturated in its own place, and parts are more than one, or `_SAT16`.
        """
        found = [op for op in ops if op.user_op in {"SignedSaturate", "UnsignedSaturate"}]
        if not found:
            return ops
        first, second = self._halves(address)
        is_of_halves = self.isa is Isa.THUMB and first & 0xFF70 == _SAT16 and not second & 0x70C0
        if is_of_halves or len(found) > 1 or found[0].output == found[0].inputs[0]:
            return _unknown(ops, SATURATION)
        return list(map(_by_sign_bit, ops)) if self.isa is Isa.ARM else ops

    def _is_status_read(self, op: PcodeOp) -> bool:
        """Whether ``op`` reads Arm's Q but to keep it, as ``mrs``: SLEIGH clears Q too often, and has no mode."""
        return self.registers["q"] in op.inputs and op.output != self.registers["q"]

    def _correct(self, address: int, ops: list[PcodeOp]) -> list[PcodeOp]:
        """The p-code of the instruction at ``address`` with SLEIGH's known errors put right, or refused."""
        if any(self._flags in (op.output, *op.inputs) for op in ops):
            raise DecodeError(
                f"the instruction at {address:#010x} accesses the flags as a whole (mtxer, mfxer, msr), which SLEIGH "
                "keeps apart from the single flags: avoid it in measured code."
            )
        ops = list(map(_trap, ops))
        if self.isa is not Isa.POWERPC:
            if self.isa is Isa.ARM and self._word(address) & 0x0F30_00F0 == _STRHT:
                raise DecodeError(f"the strht at {address:#010x} is not known: store by strh.")
            first, second = self._halves(address)
            if self.isa is Isa.THUMB and first & 0xFFEF == _MOVE_SHIFTED and second & 0x70F0 == _LSR_32:
                raise DecodeError(f"the lsr by 32 bits at {address:#010x} is not known: its result is 0, so move that.")
            if any(map(self._is_status_read, ops)):
                return _unknown(ops, SPECIAL_REGISTER)
            ops = self._literal_pair(address, _pointers(self._saturated(address, ops)))
            return self._aligned_stack(self._written_back(address, self._with_carry(ops)))
        ops = [op._replace(opcode=WHERE_DEFINED.get(op.opcode, op.opcode)) for op in ops]
        word = self._word(address)
        if word & 0xFC00_07FE == _STSWI and word >> 11 & 3:
            raise DecodeError(f"the stswi of a part of a word at {address:#010x} is not known: store bytes.")
        if word & 0xFC00_07FE in {_MFSPR, _MFTB} and (word >> 6 & 0x3E0 | word >> 16 & 0x1F) not in _KEPT_SPECIAL:
            return [PcodeOp("CALLOTHER", self.registers[f"r{word >> 21 & 31}"], (), SPECIAL_REGISTER)]
        to_address, to_link_register = word >> 26 == 16, word >> 26 == 19 and word >> 1 & 0x3FF == 16
        decrement_and_if_false = word >> 23 & 0b111 == 0
        return _branch_if_false(ops) if (to_address or to_link_register) and decrement_and_if_false else ops


@lru_cache(maxsize=_IMAGES)
def _first_lifter(language: str, isa: Isa, segments: tuple[Segment, ...]) -> Lifter:
    """To make a context takes longer than most proofs of small functions."""
    return Lifter(language, isa, code_reader(segments))


def image_lifter(language: str, isa: Isa, segments: tuple[Segment, ...]) -> Lifter:
    """A new lifter of an image, which shares with others of this image what was translated.

    Parameters:
        language: SLEIGH language id, ``Target.pcode_language``.
        isa: instruction set of the code.
        segments: of the image.

    Raises:
        DecodeError: pypcode has no such language.

    *Soundness:* as said of `Lifter.another`.
    """
    return _first_lifter(language, isa, segments).another()


@cache
def _guard(language: str, isa: Isa, condition: int) -> tuple[PcodeOp, ...]:
    """What SLEIGH does before ``mvn r0, r0`` under ``condition``: it ends with a branch, taken where that is false."""
    order: Literal["little", "big"] = "big" if ":BE:" in language else "little"
    units = ((0xBF08 | condition << 4, 2), (0x43C0, 2)) if isa is Isa.THUMB else ((condition << 28 | 0x01E0_0000, 4),)
    code = b"".join(unit.to_bytes(size_bytes, order) for unit, size_bytes in units)
    lifter = Lifter(language, isa, lambda address, size_bytes: code[address : address + size_bytes])
    lifter.lift(0)
    ops = lifter.lift(len(code) - units[-1][1]).ops
    return ops[: [op.opcode for op in ops].index("CBRANCH") + 1]


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


def _unknown(ops: list[PcodeOp], user_op: str) -> list[PcodeOp]:
    """That the last result of ``ops`` is unknown, as a whole register, whose parts SLEIGH may write one by one."""
    guard = max((index for index, op in enumerate(ops) if op.opcode == "CBRANCH"), default=-1)
    last = [op.output for op in ops if op.output is not None][-1]
    return [*ops[: guard + 1], PcodeOp("CALLOTHER", Varnode(last.space, last.offset & ~3, 4), (), user_op)]


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


@cache
def _name(opcode: pypcode.OpCode) -> str:
    return str(opcode).removeprefix("OpCode.")


@cache
def _description(language: str) -> pypcode.ArchLanguage | None:
    """Where the language is described; to look for it reads the indices of all processors."""
    return pypcode.ArchLanguage.from_id(language)


# Kept until the interpreter is gone, pypcode would tell on stderr of objects that were not freed.
atexit.register(_name.cache_clear)
atexit.register(_description.cache_clear)
atexit.register(_first_lifter.cache_clear)


def _varnode(varnode: pypcode.Varnode) -> Varnode:
    return Varnode(varnode.space.name, varnode.offset, varnode.size)


def _pcode_op(op: pypcode.PcodeOp, opcode: str) -> PcodeOp:
    """Plain form of ``op``, an ``opcode``; a space pointer or a number of pypcode becomes a name or falls away."""
    inputs = op.inputs
    user_op = ""
    if opcode in ("LOAD", "STORE"):
        space = inputs.pop(0).getSpaceFromConst().name
        if space != "ram":
            raise DecodeError(f"p-code accesses the space {space!r}: only 'ram' is known.")
    elif opcode == "CALLOTHER":
        user_op = inputs.pop(0).getUserDefinedOpName()
    output = None if op.output is None else _varnode(op.output)
    return PcodeOp(opcode, output, tuple(map(_varnode, inputs)), user_op)
