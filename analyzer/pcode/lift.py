"""Machine code to p-code: the only file that imports pypcode, and no pypcode type leaves it.

P-code is the register-transfer language of SLEIGH (Ghidra's processor descriptions; see `operations`).

Words: lifting, P-code, varnode (docs/explanation/glossary.md).

*Soundness:* SLEIGH's descriptions are taken at their word, but for errors that are put right (`corrections`), and
conditions that it forgets (`Lifter._guarded_ops`).
Code does not change while it is lifted, an image holds one instruction set, no branch leads into a Thumb IT block (see
`Lifter.lift`), and system registers are storage: what they do to the core is not part of p-code.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Literal

import pypcode

from wcet_probe.analyzer.pcode.corrections import Encoding, corrected, demand_known_registers
from wcet_probe.analyzer.pcode.exclusives import ordered_access
from wcet_probe.analyzer.pcode.float_moves import arm_transfer, unconditional_float
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.status_registers import stack_limit
from wcet_probe.errors import DecodeError
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

CodeReader = Callable[[int, int], bytes]
"""``read(address, size_bytes)``: the code bytes from ``address`` on, fewer where the code ends."""

_LONGEST_BYTES = 4
_IMAGES = 4
"""So many images keep what was translated of them."""
_ARM_FLOATS, _ARM_STATUS = re.compile(r"[sdq]\d+"), re.compile(r"fpscr|fpsid|fpexc|mvfr\d")
_POWERPC_FLOATS, _POWERPC_STATUS = re.compile(r"f\d+|vs\d+|vr\d+_\d+"), re.compile(r"fp_\w+|fpscr")
_ALWAYS = 14
"""From this condition on an instruction of Arm is executed whatever the flags are."""
_ARM_ALIASES = {"r13": "sp", "r14": "lr", "r15": "pc"}


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
        float_bytes: offsets of all bytes of floating-point registers, in the space ``register``.
        float_status: offsets of all bytes of their status, of which nothing is ever known.
        registers: register by lower-case SLEIGH name; on ARM also ``r13``, ``r14``, ``r15``.
        cut: addresses of the instructions that were lifted as traps, see `without`.
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
        if (language, isa) not in _REGISTERS:
            _REGISTERS[language, isa] = _registers(self._context, isa)
        self.registers, self.float_bytes, self.float_status = _REGISTERS[language, isa]
        self._instructions: dict[int, LiftedInstruction] = {}
        self._ops: dict[tuple[PcodeOp, ...], tuple[PcodeOp, ...]] = {}
        self.translated: dict[tuple[int, int], list[LiftedInstruction]] = {}
        self._guarded: set[int] = set()
        self._left_out: frozenset[int] = frozenset()
        self.cut: set[int] = set()

    def without(self, addresses: frozenset[int]) -> Lifter:
        """A lifter of the same code in which what stands at ``addresses``, if it has no condition, is a trap.

        *Soundness:* as far as these are not executed; which of them were lifted, ``cut`` tells.
        """
        found = self.another()
        vars(found).update(_left_out=addresses, cut=set())
        return found

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

    def is_without_code(self, address: int) -> bool:
        """Whether no byte of code stands at ``address``."""
        return not self._read_code(address, 1)

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
                found = self._trapped(instruction) if instruction.address in self._left_out else instruction
                if self._instructions.setdefault(found.address, found) != found:
                    raise DecodeError(
                        f"the instruction at {instruction.address:#010x} was lifted without the guard of its IT "
                        f"instruction at {address:#010x}: lift an IT block from its start."
                    )
        return self._instructions[address]

    def _trapped(self, instruction: LiftedInstruction) -> LiftedInstruction:
        """``instruction`` as a trap; as it is where it has a condition."""
        if any(op.opcode == "CBRANCH" for op in instruction.ops):
            return instruction
        self.cut.add(instruction.address)
        return replace(instruction, ops=(PcodeOp("TRAP", None, ()),))

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
        if not code and not address:
            raise DecodeError(
                "there is no code at 0x00000000: a call or jump leads to a symbol that the linker has left undefined "
                "(weak, or --unresolved-symbols); link what it stands for, or a stub."
            )
        if not code:
            raise DecodeError(
                f"there is no code at {address:#010x}: a jump or return address is wrong, or leads to a section that "
                "is writable, as a function in RAM among variables does; link that into a section of its own."
            )
        for place in self._places(code, count):
            demand_known_registers(self._encoding(address + place))
        known = self._known(address) if count == 1 else None
        if known is not None:
            return [LiftedInstruction(address, 4, self._ops.setdefault(known, known))]
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
                right = tuple(corrected(self._encoding(mark.offset), guarded))
                same = self._ops.setdefault(right, right)
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

    def _places(self, code: bytes, count: int) -> Iterator[int]:
        """Where in ``code`` each of so many instructions begins."""
        place = 0
        for _ in range(count):
            yield place
            first = int.from_bytes(code[place : place + 2], "big" if self.big_endian else "little")
            place += 2 if self.isa is Isa.THUMB and first >> 11 < 0b11101 else _LONGEST_BYTES

    def _encoding(self, address: int) -> Encoding:
        code, before = self._read_code(address, 4), self._read_code(address - 2, 2)
        return Encoding(address, code, self.isa, self.big_endian, self.registers, self.float_bytes, before)

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

    def _known(self, address: int) -> tuple[PcodeOp, ...] | None:
        """What an instruction does that SLEIGH is not asked for: transfers, what is of ARMv8; None of others."""
        at = self._encoding(address)
        if self.isa is Isa.POWERPC or len(at.code) < 4:
            return None
        ops = unconditional_float(at.float_code)
        if ops is None and self.isa is Isa.THUMB:
            ops = stack_limit(at.halves, self.registers)
            ops = ordered_access(address, at.float_code.word, self.registers) if ops is None else ops
        if ops is not None:
            return tuple(ops)
        ops = arm_transfer(at.float_code)
        condition = at.word >> 28 if self.isa is Isa.ARM else _ALWAYS
        return None if ops is None else tuple(corrected(at, self._guarded_ops(address + 4, condition, ops)))


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


@cache
def _name(opcode: pypcode.OpCode) -> str:
    return str(opcode).removeprefix("OpCode.")


_REGISTERS: dict[tuple[str, Isa], tuple[Mapping[str, Varnode], frozenset[int], frozenset[int]]] = {}
"""`Lifter.registers`, `float_bytes` and `float_status` by language: the same for all code, by which others remember."""


def _registers(context: pypcode.Context, isa: Isa) -> tuple[Mapping[str, Varnode], frozenset[int], frozenset[int]]:
    """The registers by name, and the bytes of those of floating point and of their status."""
    registers = {name.lower(): _varnode(register) for name, register in context.registers.items()}
    if isa is not Isa.POWERPC:
        registers |= {alias: registers[name] for alias, name in _ARM_ALIASES.items()}
    is_powerpc = isa is Isa.POWERPC
    floats, status = (_POWERPC_FLOATS, _POWERPC_STATUS) if is_powerpc else (_ARM_FLOATS, _ARM_STATUS)
    return MappingProxyType(registers), _bytes(registers, floats), _bytes(registers, status)


def _bytes(registers: Mapping[str, Varnode], names: re.Pattern[str]) -> frozenset[int]:
    return frozenset(
        offset
        for name, register in registers.items()
        if names.fullmatch(name)
        for offset in range(register.offset, register.offset + register.size_bytes)
    )


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
