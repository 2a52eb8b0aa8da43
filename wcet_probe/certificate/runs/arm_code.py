# SPDX-License-Identifier: 0BSD
"""What ARM and Thumb-2 instructions compute, written as Python: all of a word, the carry and the overflow too.

Registers 0 to 15 stand in ``R``, behind them the result that was tested last, its carry (1 or 0) and its overflow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wcet_probe.certificate.machines.arm import mnemonic
from wcet_probe.certificate.machines.arm_text import immediate_of, operands_in, register_of
from wcet_probe.certificate.runs.code import ALL, Lines, address_of, extended, opaque, signed, unknown_instruction
from wcet_probe.model.instruction import AccessKind, Control, Instruction

SP, LINK_REGISTER, PLACES = 13, 14, 19
NUMBER_OF = {f"r{number}": number for number in range(16)}
_N = "(R[16] >> 31)"
CONDITIONS = {
    "eq": "R[16] == 0", "ne": "R[16] != 0", "hs": "R[17]", "cs": "R[17]", "lo": "not R[17]", "cc": "not R[17]",
    "mi": _N, "pl": f"not {_N}", "vs": "R[18]", "vc": "not R[18]", "hi": "R[17] and R[16] != 0",
    "ls": "not (R[17] and R[16] != 0)", "ge": f"{_N} == R[18]", "lt": f"{_N} != R[18]",
    "gt": f"{_N} == R[18] and R[16] != 0", "le": f"not ({_N} == R[18] and R[16] != 0)",
}  # fmt: skip
_SUMS = {"add": "a + b", "addw": "a + b", "adc": "a + b + R[17]", "sub": "a - b", "subw": "a - b",
         "sbc": f"a + (b ^ {ALL}) + R[17]", "rsb": "b - a", "rsc": f"b + (a ^ {ALL}) + R[17]"}  # fmt: skip
_LOGIC = {"and": "a & b", "orr": "a | b", "eor": "a ^ b", "bic": f"a & (b ^ {ALL})", "orn": f"a | (b ^ {ALL})"}
_TESTS = {"cmp": "sub", "cmn": "add", "tst": "and", "teq": "eor"}
_ALONE = {
    "mov": "b", "movw": "b", "mvn": f"b ^ {ALL}", "uxtb": "b & 255", "uxth": "b & 65535", "clz": "32 - b.bit_length()",
    "sxtb": extended("(b & 255)", 8), "sxth": extended("(b & 65535)", 16),
    "rev": "(b & 255) << 24 | (b & 65280) << 8 | b >> 8 & 65280 | b >> 24",
    "rev16": "(b & 0xff00ff) << 8 | b >> 8 & 0xff00ff", "revsh": extended("((b & 255) << 8 | b >> 8 & 255)", 16),
    "rbit": "int(f'{b.__index__():032b}'[::-1], 2)",
}  # fmt: skip
_ADDING = {
    "uxtab": "(b & 255)", "uxtah": "(b & 65535)", "sxtab": signed("(b & 255)", 8), "sxtah": signed("(b & 65535)", 16),
}  # fmt: skip
_LONG = {"umull": (False, False), "smull": (True, False), "umlal": (False, True), "smlal": (True, True)}
_SHIFTS = {
    "lsl": (f"x << k & {ALL}", "x << k >> 32 & 1"),
    "lsr": ("x >> k", "x << 1 >> k & 1"),
    "asr": (f"{signed('x')} >> k & {ALL}", f"{signed('x')} << 1 >> k & 1"),
    "ror": (f"(x >> k % 32 | x << 32 - k % 32) & {ALL}", "x >> (k - 1) % 32 & 1"),
}
"""What is shifted, and what goes out last; of a distance 0 the carry stays."""
_HALVES = re.compile(r"(smul|smla)([btw])([bt])")
"""Products of signed halves, or of a word and a half, of which the highest 32 bits are taken."""
_HIGHEST = {"smmul": "", "smmla": "({} << 32) + ", "smmls": "({} << 32) - "}
_WITH_SUFFIX = {"adcs", "sbcs", "rscs", "rors", "rrxs"}
_DOES_NOTHING = {"it", "nop", "dmb", "dsb", "isb", "hint", "yield", "sev"}


def compiled(instruction: Instruction, *, thumb: bool) -> tuple[Lines, str | None]:
    """What ``instruction`` does, and, if it may go elsewhere than on, the address of what is executed next.

    Raises:
        LostError: nothing is known of it.
    """
    try:
        name, sets_flags, condition = mnemonic(instruction)
        if name in _WITH_SUFFIX:
            name, sets_flags = name[:-1], True
        lines, following = _Compiler(instruction, thumb).lines(name, sets_flags)
        skipped = str(instruction.address + instruction.size_bytes)
        if condition is not None:
            holds = CONDITIONS[condition]
            if following is not None and following.startswith("jump("):
                following = f"{following[:-1]}, {skipped})"
            if following is not None and not lines:
                return [], f"{following} if {holds} else {skipped}"
            body = [*lines, *([f"return {following}"] if following is not None else [])]
            return [f"if {holds}:", *(f" {one}" for one in body or ["pass"])], skipped if following else None
    except (ValueError, KeyError, IndexError) as error:
        raise unknown_instruction(instruction) from error
    return lines, following


class _Compiler:
    def __init__(self, instruction: Instruction, thumb: bool) -> None:  # noqa: FBT001  (which of the two sets it is)
        self._own, self._thumb = instruction, thumb
        self._operands = operands_in(instruction)
        self._following = instruction.address + instruction.size_bytes

    def lines(self, name: str, sets_flags: bool) -> tuple[Lines, str | None]:  # noqa: FBT001
        own, operands = self._own, self._operands
        if own.control in {Control.BRANCH, Control.CONDITIONAL_BRANCH} and own.branch_target is not None:
            if name in {"cbz", "cbnz"}:
                test = f"{self._read(operands[0])} {'==' if name == 'cbz' else '!='} 0"
                return [], f"{own.branch_target} if {test} else {self._following}"
            return [], str(own.branch_target)
        linked = [f"R[14] = {self._following | self._thumb}"]
        if own.control is Control.CALL and own.branch_target is not None and name != "blx":
            return linked, str(own.branch_target)
        if own.control is not Control.NEXT:
            if name in {"bx", "blx"}:
                return [f"t = {self._read(operands[0])}", *(linked if name == "blx" else [])], "jump(t)"
            if name in {"tbb", "tbh"}:
                size = own.accesses[0].bytes_each
                return [], f"jump({own.address + 4} + 2 * {self._load(self._address(), size)} | 1)"
            if name == "mov" and len(operands) == 2:
                is_free = self._thumb and operands[1] != "lr"  # of the instruction set it says nothing
                return [], f"jump({self._read(operands[1])}{' | 1' if is_free else ''})"
            if name in {"pop", "ldr", "ldm", "ldmdb", "ldmib", "ldmda"}:
                return [*self._settled(self._accessed(name)), "t = R[15]"], "jump(t)"
            if name == "add" and not self._thumb:
                return self._computed(name, sets_flags=False), "jump(R[15])"
            raise ValueError(name)
        if own.timing_class.startswith("float"):
            status = range(16, 19) if "status" in own.timing_class else ()
            return self._settled(opaque(own, NUMBER_OF, status)), None
        if own.accesses:
            return self._settled(self._accessed(name)), None
        return self._settled(self._computed(name, sets_flags)), None

    def _settled(self, lines: Lines) -> Lines:
        """Of Thumb the lowest two bits of the stack pointer are 0; one that is written otherwise is not followed."""
        return [*lines, "R[13] = settled(R[13])"] if self._thumb and "r13" in self._own.writes else lines

    # ------------------------------------------------------------------------------------------------------- operands

    def _read(self, text: str) -> str:
        register = register_of(text)
        if register == "r15":
            return str(self._own.address + (4 if self._thumb else 8))
        return f"R[{NUMBER_OF[register]}]"

    def _second(self, operands: Sequence[str], *, carries: bool = False) -> Lines:
        """What makes ``b`` of the last operand, and, if asked to, the carry of its shift."""
        if operands[0].startswith("#"):
            (text,) = operands
            number = immediate_of(text) & ALL
            return [f"b = {number}", *(["R[17] = NOTHING"] if carries and number > 255 else [])]
        if len(operands) == 1:
            return [f"b = {self._read(operands[0])}"]
        shift, _, amount = operands[1].partition(" ")
        if shift == "rrx":
            carry = ["R[17] = x & 1"] if carries else []
            return [f"x = {self._read(operands[0])}", "b = x >> 1 | R[17] << 31", *carry]
        return self._shift(shift, operands[0], amount, carries=carries)

    def _shift(self, shift: str, text: str, amount: str, *, carries: bool) -> Lines:
        result, out = _SHIFTS[shift]
        far = str(immediate_of(amount)) if amount.startswith("#") else f"{self._read(amount)} & 255"
        lines = [f"x = {self._read(text)}", f"k = {far}", f"b = {result}"]
        return [*lines, f"if k: R[17] = {out}"] if carries else lines

    def _write(self, value: str, place: str | None = None) -> str:
        register = register_of(place or self._operands[0])
        return f"R[{NUMBER_OF[register]}] = {value}"

    # ---------------------------------------------------------------------------------------------------- computations

    def _computed(self, name: str, sets_flags: bool) -> Lines:  # noqa: FBT001
        operands = self._operands
        if name in _DOES_NOTHING:
            return []
        if name in _TESTS:
            return self._two(_TESTS[name], [operands[0], *operands], sets_flags=True)[:-1]
        if name in _SHIFTS:
            first, amount = operands[-2:]
            lines = self._shift(name, first, amount, carries=sets_flags)
            return [*lines, *(["R[16] = b"] if sets_flags else []), self._write("b")]
        if name == "rrx":
            lines = self._second([operands[-1], "rrx"], carries=sets_flags)
            return [*lines, *(["R[16] = b"] if sets_flags else []), self._write("b")]
        if name in _ALONE:
            lines = [*self._second(operands[1:], carries=sets_flags), f"b = {_ALONE[name]}"]
            return [*lines, *(["R[16] = b"] if sets_flags else []), self._write("b")]
        if name in _SUMS or name in _LOGIC:
            if len(operands) == 2 or (len(operands) == 3 and operands[2].split(" ")[0] in {*_SHIFTS, "rrx"}):
                operands = [operands[0], *operands]
            return self._two(name, operands, sets_flags=sets_flags)
        lines = self._other(name, operands)
        if sets_flags and name != "mul":
            raise ValueError(name)
        return [*lines, f"R[16] = {self._read(operands[0])}"] if sets_flags else lines

    def _two(self, name: str, operands: Sequence[str], *, sets_flags: bool) -> Lines:
        if self._thumb and register_of(operands[1]) == "r15" and operands[2].startswith("#"):
            # The program counter is cut down (ARM DDI 0403E, A7.7.7).
            pc, number = self._own.address + 4 & ~3, immediate_of(operands[2])
            if name not in {"addw", "subw"}:
                raise ValueError(name)
            return [self._write(str((pc + number if name == "addw" else pc - number) & ALL), operands[0])]
        lines = [*self._second(operands[2:], carries=sets_flags and name in _LOGIC), f"a = {self._read(operands[1])}"]
        if name in _LOGIC:
            return [
                *lines,
                f"r = {_LOGIC[name]}",
                *(["R[16] = r"] if sets_flags else []),
                self._write("r", operands[0]),
            ]
        lines += [f"t = {_SUMS[name]}", f"r = t & {ALL}"]
        if sets_flags:
            one, other, carry = {
                "sub": ("a", f"(b ^ {ALL})", "a >= b"), "rsb": ("b", f"(a ^ {ALL})", "b >= a"),
                "sbc": ("a", f"(b ^ {ALL})", "t >> 32"), "rsc": ("b", f"(a ^ {ALL})", "t >> 32"),
            }.get(name, ("a", "b", "t >> 32"))  # fmt: skip
            lines += ["R[16] = r", f"R[17] = {carry}", f"R[18] = (({one} ^ r) & ({other} ^ r)) >> 31 & 1"]
        return [*lines, self._write("r", operands[0])]

    def _other(self, name: str, operands: Sequence[str]) -> Lines:
        numbers = [immediate_of(one) for one in operands if one.startswith("#")]
        registers = [f"{self._read(one)}" for one in operands if not one.startswith("#") and " " not in one]
        if name in _LONG:
            is_signed, adds = _LONG[name]
            low, high, *factors = registers
            product = " * ".join(signed(one) if is_signed else one for one in factors)
            lines = [f"t = {product}" + (f" + ({high} << 32 | {low})" if adds else "")]
            return [*lines, self._write(f"t & {ALL}"), self._write(f"t >> 32 & {ALL}", operands[1])]
        if name in {"mul", "mla", "mls"}:
            one, other = registers[-2:] if name == "mul" else registers[1:3]
            sign = {"mul": "", "mla": f"{registers[-1]} + ", "mls": f"{registers[-1]} - "}[name]
            return [self._write(f"({sign}{one} * {other}) & {ALL}")]
        if name == "umaal":
            low, high, one, other = registers
            return [
                f"t = {one} * {other} + {high} + {low}",
                self._write(f"t & {ALL}"),
                self._write("t >> 32", operands[1]),
            ]
        if name in _HIGHEST:
            added = _HIGHEST[name].format(*registers[3:])
            return [self._write(f"({added}{signed(registers[1])} * {signed(registers[2])}) >> 32 & {ALL}")]
        if found := _HALVES.fullmatch(name):
            parts = {"b": "({} & 65535)", "t": "({} >> 16)", "w": "{}"}
            halves = zip(registers[1:3], found.groups()[1:], strict=True)
            factors = [signed(parts[half].format(one), 32 if half == "w" else 16) for one, half in halves]
            product = f"({' * '.join(factors)} >> {16 if found[2] == 'w' else 0})"
            return [self._write(f"({' + '.join((product, *registers[3:]))}) & {ALL}")]
        if name in _ADDING:
            return [*self._second(operands[2:]), self._write(f"({registers[1]} + {_ADDING[name]}) & {ALL}")]
        if name in {"udiv", "sdiv"}:
            one, other = registers[-2:]
            return [self._write(f"{name}({one}, {other})")]
        match name:
            case "movt":
                return [self._write(f"{registers[0]} & 65535 | {numbers[0] << 16}")]
            case "adr":
                pc = self._own.address + (4 if self._thumb else 8)
                return [self._write(str((pc & ~3) + numbers[0]))]
            case "ubfx" | "sbfx":
                field = f"({registers[1]} >> {numbers[0]} & {(1 << numbers[1]) - 1})"
                return [self._write(field if name == "ubfx" else extended(field, numbers[1]))]
            case "bfi" | "bfc":
                mask = (1 << numbers[1]) - 1
                field = f" | ({registers[1]} & {mask}) << {numbers[0]}" if name == "bfi" else ""
                return [self._write(f"{registers[0]} & {ALL ^ mask << numbers[0]}{field}")]
        raise ValueError(name)

    # -------------------------------------------------------------------------------------------------------- accesses

    def _address(self) -> str:
        (access,) = self._own.accesses
        if access.base == "r15" or access.index == "r15":
            number_of = {**NUMBER_OF, "r15": -1}
            return address_of(access, number_of).replace("R[-1]", str(self._own.address + (4 if self._thumb else 8)))
        return address_of(access, NUMBER_OF)

    def _load(self, address: str, size_bytes: int) -> str:
        return f"load({address}, {size_bytes}, {self._own.timing_class!r})"

    def _accessed(self, name: str) -> Lines:
        (access,) = self._own.accesses
        if name[:3] not in {"ldr", "str", "ldm", "stm", "pus", "pop"} or name.startswith(("ldrex", "strex")):
            raise ValueError(name)
        size, operands = access.bytes_each, self._operands
        braced = [one for one in operands if one.startswith("{")]
        if braced:
            listed = sorted(NUMBER_OF[register_of(one)] for one in re.split(r",\s*", braced[0].strip("{}")))
        else:
            listed = [NUMBER_OF[register_of(one)] for one in operands[: access.count]]
        if len(listed) != access.count or any("-" in one for one in braced):
            raise ValueError(name)
        lines, moved = [f"e = {self._address()}"], self._moved(name)
        places = [f"e + {each * size} & {ALL}" if each else "e" for each in range(access.count)]
        if (
            moved is not None
            and moved[0] in listed
            and (access.kind is not AccessKind.STORE or moved[0] != listed[0] or not braced)
        ):
            raise ValueError(name)
        writing = [f"R[{moved[0]}] = {moved[1]}"] if moved is not None else []
        if access.kind is AccessKind.LOAD:
            bits = 8 * size if name.startswith("ldrs") else 32
            values = [
                extended(self._load(place, size), bits) if bits < 32 else self._load(place, size) for place in places
            ]
            lines += [f"v{each} = {value}" for each, value in enumerate(values)]
            return [*lines, *writing, *(f"R[{one}] = v{each}" for each, one in enumerate(listed))]
        # The value of a base that is stored is the old one; the stack pointer is moved before, to tell the frame.
        values = [f"R[{one}]" if one != 15 else "NOTHING" for one in listed]
        lines += [f"v{each} = {value}" for each, value in enumerate(values)]
        kind = self._own.timing_class
        stores = [f"store({place}, {size}, v{each}, {kind!r})" for each, place in enumerate(places)]
        return [*lines, *writing, *stores]

    def _moved(self, name: str) -> tuple[int, str] | None:
        """The register that is written back to, and what."""
        (access,) = self._own.accesses
        operands, size = self._operands, access.count * access.bytes_each
        is_post = operands[-1][0] != "[" and any(one.startswith("[") for one in operands)
        if name in {"push", "pop"}:
            return SP, f"R[13] {'-' if name == 'push' else '+'} {size} & {ALL}"
        if "!" not in self._own.text and not is_post:
            return None
        number = NUMBER_OF[str(access.base)]
        if name in {"stmdb", "stmda", "ldmdb", "ldmda"}:
            return number, f"R[{number}] - {size} & {ALL}"
        if name in {"stm", "stmib", "ldm", "ldmib"}:
            return number, f"R[{number}] + {size} & {ALL}"
        if not is_post:
            return number, "e"
        post = operands[-1]
        if post.startswith("#"):
            return number, f"R[{number}] + {immediate_of(post)} & {ALL}"
        sign, text = ("-", post[1:]) if post.startswith("-") else ("+", post)
        return number, f"R[{number}] {sign} {self._read(text)} & {ALL}"
