# SPDX-License-Identifier: 0BSD
"""What PowerPC instructions compute, written as Python: all of a word, the carry and the condition fields too.

Registers 0 to 31 stand in ``R``, behind them lr, ctr, the carry, and of each condition field whether it is less,
greater and equal; of its summary of overflows nothing is known.
"""

from __future__ import annotations

from wcet_probe.certificate.runs.code import ALL, SIGN, Lines, address_of, extended, opaque, signed, unknown_instruction
from wcet_probe.model.instruction import AccessKind, Instruction

SP, LINK_REGISTER, PLACES = 1, 32, 59
_CTR, _CARRY, _FIELDS = 33, 34, 35
NUMBER_OF = {**{f"r{number}": number for number in range(32)}, "lr": LINK_REGISTER, "ctr": _CTR}
_A, _B = signed("a"), signed("b")
_OF_A = {
    266: "a + b", 40: "b - a", 235: "a * b", 75: f"{_A} * {_B} >> 32", 11: "a * b >> 32", 104: "-a",
    491: "divw(a, b)", 459: "divwu(a, b)",
}  # fmt: skip
"""Of two registers, into the first one; by the extended opcode."""
_CARRYING = {
    10: "a + b", 8: f"(a ^ {ALL}) + b + 1", 138: f"a + b + R[{_CARRY}]", 136: f"(a ^ {ALL}) + b + R[{_CARRY}]",
    202: f"a + R[{_CARRY}]", 200: f"(a ^ {ALL}) + R[{_CARRY}]", 234: f"a + {ALL} + R[{_CARRY}]",
    232: f"(a ^ {ALL}) + {ALL} + R[{_CARRY}]",
}  # fmt: skip
"""The same, whose carry is kept."""
_OF_S = {
    28: "s & b", 60: f"s & (b ^ {ALL})", 124: f"(s | b) ^ {ALL}", 284: f"s ^ b ^ {ALL}", 316: "s ^ b", 444: "s | b",
    412: f"s | (b ^ {ALL})", 476: f"s & b ^ {ALL}", 24: "s << (b & 63)", 536: "s >> (b & 63)",
    26: "32 - s.bit_length()", 922: extended("(s & 65535)", 16), 954: extended("(s & 255)", 8),
}  # fmt: skip
"""Of the first register, into the second one."""
_BITS = {33: "not (a or b)", 129: "a and not b", 193: "a != b", 225: "not (a and b)", 257: "a and b", 289: "a == b",
         417: "a or not b", 449: "a or b"}  # fmt: skip
_INDEXED = range(23, 440, 32)
_ALGEBRAIC = {42, 43, 343, 375}
_OF_THREADS = {598, 854}
"""sync and eieio, which change no register."""


def compiled(instruction: Instruction, word: int) -> tuple[Lines, str | None]:
    """What ``instruction``, of encoding ``word``, does, and, if it may go elsewhere than on, what is executed next.

    Raises:
        LostError: nothing is known of it.
    """
    try:
        if word >> 26 in {16, 18} or (word >> 26 == 19 and word >> 1 & 0x3FF in {16, 528}):
            return _branch(instruction, word)
        if instruction.timing_class.startswith("float"):
            is_compared = "compare" in instruction.timing_class or "status" in instruction.timing_class
            fields = range(_FIELDS, PLACES) if is_compared else range(_FIELDS + 3, _FIELDS + 6)
            return opaque(instruction, NUMBER_OF, () if instruction.accesses else fields), None
        if instruction.accesses:
            return _accessed(instruction, word), None
        return _computed(word), None
    except (ValueError, KeyError) as error:
        raise unknown_instruction(instruction) from error


def _bit(number: int) -> str:
    return "NOTHING" if number % 4 == 3 else f"R[{_FIELDS + 3 * (number // 4) + number % 4}]"


def _branch(instruction: Instruction, word: int) -> tuple[Lines, str | None]:
    following = instruction.address + 4
    options, bit = (word >> 21 & 31, word >> 16 & 31) if word >> 26 != 18 else (20, 0)
    lines: Lines = []
    if word >> 26 == 19:
        lines.append(f"t = R[{LINK_REGISTER if word >> 1 & 0x3FF == 16 else _CTR}]")
    target = "jump(t)" if word >> 26 == 19 else str(instruction.branch_target)
    tests = []
    if not options & 4:
        lines.append(f"R[{_CTR}] = R[{_CTR}] - 1 & {ALL}")
        tests.append(f"R[{_CTR}] {'==' if options & 2 else '!='} 0")
    if not options & 16:
        tests.append(_bit(bit) if options & 8 else f"not {_bit(bit)}")
    if word & 1:
        lines.append(f"R[{LINK_REGISTER}] = {following}")
    if not tests:
        return lines, target
    target = f"jump(t, {following})" if word >> 26 == 19 else target
    return lines, f"{target} if {' and '.join(tests)} else {following}"


def _compared(field: int, one: str, other: str) -> Lines:
    lines = [f"a = {one}", f"b = {other}"]
    place = _FIELDS + 3 * field
    return [*lines, f"R[{place}] = a < b", f"R[{place + 1}] = a > b", f"R[{place + 2}] = a == b"]


def _recorded() -> Lines:
    """What a full stop sets by a result."""
    return [f"R[{_FIELDS}] = r >> 31", f"R[{_FIELDS + 1}] = (r != 0) & (r < {SIGN})", f"R[{_FIELDS + 2}] = r == 0"]


def _computed(word: int) -> Lines:
    primary, code = word >> 26, word >> 1 & 0x3FF
    d, a, b = (word >> low & 31 for low in (21, 16, 11))
    lower, half = word & 0xFFFF, (word & 0xFFFF ^ 0x8000) - 0x8000
    if primary in {10, 11} or (primary == 31 and code in {0, 32}):
        one = f"R[{a}]"
        other = f"R[{b}]" if primary == 31 else str(half & ALL if primary == 11 else lower)
        if primary == 11 or (code == 0 and primary == 31):
            return _ordered(word >> 23 & 7, one, other)
        return _compared(word >> 23 & 7, one, other)
    if primary == 19:
        return _of_fields(word)
    if primary == 31 and code in {339, 467, 19, 144, *_OF_THREADS}:
        return _moved(word)
    lines, destination = _result(word, primary, code)
    is_recorded = primary in {13, 28, 29} or (primary in {20, 21, 23, 31} and word & 1)
    return [*lines, *(_recorded() if is_recorded else []), f"R[{a if destination == 'a' else d}] = r"]


def _ordered(field: int, one: str, other: str) -> Lines:
    """A comparison of signed words."""
    place = _FIELDS + 3 * field
    lines = [f"a = {one}", f"b = {other}", f"R[{place + 2}] = a == b", f"a = {_A}", f"b = {_B}"]
    return [*lines, f"R[{place}] = a < b", f"R[{place + 1}] = a > b"]


def _of_fields(word: int) -> Lines:
    code, (bit, one, other) = word >> 1 & 0x3FF, (word >> low & 31 for low in (21, 16, 11))
    if code == 150:  # isync
        return []
    if code == 0:  # mcrf
        return [f"{_bit(4 * (bit >> 2) + each)} = {_bit(4 * (one >> 2) + each)}" for each in range(3)]
    if bit % 4 == 3:
        return []
    if one == other and code in {193, 289}:
        return [f"{_bit(bit)} = {code == 289}"]
    return [f"a = {_bit(one)}", f"b = {_bit(other)}", f"{_bit(bit)} = {_BITS[code]}"]


def _moved(word: int) -> Lines:
    code, d = word >> 1 & 0x3FF, word >> 21 & 31
    if code in _OF_THREADS:
        return []
    fields = range(_FIELDS, PLACES)
    mask = word >> 12 & 0xFF
    if word >> 20 & 1 and (code == 19 or (code == 144 and mask.bit_count() != 1)):  # it may leave fields undefined
        raise ValueError(word)
    if code == 19:
        return [f"R[{d}] = Fields(tuple(R[{fields.start}:{fields.stop}]))"]
    if code == 144:
        own = [each for each in range(24) if mask >> 7 - each // 3 & 1]
        return [f"t = bits_of(R[{d}])", *(f"R[{_FIELDS + each}] = t[{each}]" for each in own)]
    special = {8: LINK_REGISTER, 9: _CTR}[(word >> 16 & 31) | (word >> 11 & 31) << 5]
    return [f"R[{d}] = R[{special}]" if code == 339 else f"R[{special}] = R[{d}]"]


def _result(word: int, primary: int, code: int) -> tuple[Lines, str]:
    """What makes ``r``, and whether it is written to the register of the field a or d."""
    d, a, b = (word >> low & 31 for low in (21, 16, 11))
    lower, half = word & 0xFFFF, (word & 0xFFFF ^ 0x8000) - 0x8000
    if primary in {20, 21, 23}:
        return _rotated(word, primary), "a"
    if primary == 31 and code == 444 and d == b:
        return [f"r = R[{d}]"], "a"
    if primary == 31 and code in {792, 824}:
        far = f"R[{b}] & 63" if code == 792 else str(b)
        lines = [f"s = R[{d}]", f"k = {far}", f"t = {signed('s')}", f"r = t >> k & {ALL}"]
        return [*lines, f"R[{_CARRY}] = (t < 0) & (t >> k << k != t)"], "a"
    lines = [f"a = R[{a}]", f"b = R[{b}]"]
    if primary == 31 and code in _CARRYING:
        return [*lines, f"t = {_CARRYING[code]}", f"r = t & {ALL}", f"R[{_CARRY}] = t >> 32"], "d"
    if primary == 31 and code in _OF_A:
        return [*lines, f"r = {_OF_A[code]} & {ALL}" if code != 75 else f"r = ({_OF_A[code]}) & {ALL}"], "d"
    if primary == 31:
        return [f"s = R[{d}]", f"b = R[{b}]", f"r = ({_OF_S[code]}) & {ALL}"], "a"
    if primary in {14, 15}:
        number = half << 16 if primary == 15 else half
        return [f"r = (R[{a}] + {number}) & {ALL}" if a else f"r = {number & ALL}"], "d"
    if primary in {24, 25, 26, 27, 28, 29}:
        number = lower << 16 if primary % 2 else lower
        if not number and primary < 28:
            return [f"r = R[{d}]"], "a"
        return [f"r = R[{d}] {'|^&'[(primary - 24) // 2]} {number}"], "a"
    if primary == 7:
        return [f"r = R[{a}] * {half} & {ALL}"], "d"
    if primary == 8:
        return [
            f"t = (R[{a}] ^ {ALL}) + {(half & ALL) + 1}",
            f"r = {half} - R[{a}] & {ALL}",
            f"R[{_CARRY}] = t >> 32",
        ], "d"
    if primary in {12, 13}:
        return [f"t = R[{a}] + {half & ALL}", f"r = t & {ALL}", f"R[{_CARRY}] = t >> 32"], "d"
    raise ValueError(word)


def _rotated(word: int, primary: int) -> Lines:
    d, a, far, begin, end = (word >> low & 31 for low in (21, 16, 11, 6, 1))
    mask = (ALL >> begin) & (ALL << 31 - end & ALL)
    if begin > end:
        mask = (ALL >> begin) | (ALL << 31 - end & ALL)
    if primary == 21 and not far:
        return [f"r = R[{d}] & {mask}"]
    lines = [f"s = R[{d}]", f"k = R[{far}] & 31" if primary == 23 else f"k = {far}"]
    kept = f" | R[{a}] & {ALL ^ mask}" if primary == 20 else ""
    return [*lines, f"r = (s << k | s >> 32 - k) & {mask}{kept}"]


def _accessed(instruction: Instruction, word: int) -> Lines:
    (access,) = instruction.accesses
    primary, code = word >> 26, word >> 1 & 0x3FF
    if not (32 <= primary < 48 or (primary == 31 and code in _INDEXED)):
        raise ValueError(word)
    own = code if primary == 31 else primary
    first, base, size = word >> 21 & 31, word >> 16 & 31, access.bytes_each
    is_updating = f"r{base}" in instruction.writes and (
        own in {33, 35, 37, 39, 41, 43, 45} or (primary == 31 and own & 32 != 0)
    )
    registers = range(first, first + access.count)
    is_load = access.kind is AccessKind.LOAD
    if (is_updating and not base) or (is_load and base in registers and (is_updating or access.count > 1)):
        raise ValueError(word)
    lines = [f"e = {address_of(access, NUMBER_OF)}"]
    kind, updating = repr(instruction.timing_class), [f"R[{base}] = e"] if is_updating else []
    places = [f"e + {each * size} & {ALL}" if each else "e" for each in range(access.count)]
    if is_load:
        values = [f"load({place}, {size}, {kind})" for place in places]
        values = [extended(value, 16) for value in values] if own in _ALGEBRAIC else values
        return [*lines, *updating, *(f"R[{one}] = {value}" for one, value in zip(registers, values, strict=True))]
    lines += [f"v{each} = R[{one}]" for each, one in enumerate(registers)]
    return [*lines, *updating, *(f"store({place}, {size}, v{each}, {kind})" for each, place in enumerate(places))]
