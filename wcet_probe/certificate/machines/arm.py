# SPDX-License-Identifier: 0BSD
"""What ARM and Thumb-2 instructions do, read from the disassembler's text: the checker's own small transfer function.

What is not known here leaves nothing known of the registers that it writes and of the memory that it may write to
(`Machine.havoc`). Flags are followed where they come from a comparison, a subtraction, or a result that was tested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce

from wcet_probe.certificate.machines.arm_accesses import access_memory, loaded_registers, name_held, stored_registers
from wcet_probe.certificate.machines.arm_text import LR, MOST_TEXTS, PC, SP, immediate_of, operands_in, register_of
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.operands import may_be_skipped
from wcet_probe.certificate.values import numbers
from wcet_probe.certificate.values.numbers import ANY, LINK, TOP, WORD, Value, constant
from wcet_probe.certificate.values.state import Comparison, State, assume, computed, joined, name_of_sum
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import Isa

REGISTERS = tuple(f"r{number}" for number in range(15))
_CONDITIONS = {
    "eq": ("==", False), "ne": ("!=", False), "hs": (">=", False), "cs": (">=", False), "lo": ("<", False),
    "cc": ("<", False), "hi": (">", False), "ls": ("<=", False), "ge": (">=", True), "lt": ("<", True),
    "gt": (">", True), "le": ("<=", True), "mi": ("<", True), "pl": (">=", True), "vs": None, "vc": None,
}  # fmt: skip
_BIT = numbers.number(0, 1)
_SIGNS, _OVERFLOWS = {"mi", "pl"}, {"vs", "vc"}
_SHIFTS: Mapping[str, Callable[[Value, Value], Value]] = {
    "lsl": numbers.shift_left,
    "lsr": numbers.shift_right,
    "asr": numbers.shift_right_signed,
}
_BINARY: Mapping[str, Callable[[Value, Value], Value]] = {
    "add": numbers.add,
    "addw": numbers.add,
    "sub": numbers.subtract,
    "subw": numbers.subtract,
    "rsb": lambda a, b: numbers.subtract(b, a),
    "and": numbers.conjunction,
    "orr": numbers.disjunction,
    "eor": numbers.exclusive,
    "adc": numbers.add,
    "bic": lambda a, b: numbers.conjunction(a, numbers.complement(b)),
    "orn": lambda a, b: numbers.disjunction(a, numbers.complement(b)),
    "mul": numbers.multiply,
    "udiv": numbers.divide,
    **_SHIFTS,
}
_UNARY: Mapping[str, Callable[[Value], Value]] = {
    "mov": lambda a: a,
    "movw": lambda a: a,
    "mvn": numbers.complement,
    "uxtb": lambda a: numbers.extended(a, 8, is_signed=False),
    "uxth": lambda a: numbers.extended(a, 16, is_signed=False),
    "sxtb": lambda a: numbers.extended(a, 8, is_signed=True),
    "sxth": lambda a: numbers.extended(a, 16, is_signed=True),
    "clz": numbers.leading_zeros,
}
_LOW_BITS = {"uxtb": 0xFF, "uxth": 0xFFFF}
_RESULTS = {"tst": numbers.conjunction, "teq": numbers.exclusive, "cmn": numbers.add}
_COMPARING = {"cmp", *_RESULTS}
_OTHERS = {*_COMPARING, "movt", "adr", "ubfx", "bfi", "bfc", "it", "nop", "b", "bl", "bx", "bxns", "blx", "cbz",
           "cbnz"}  # fmt: skip
_FLAGLESS = {"str", "strb", "strh", "strd", "push", "stm", "stmdb", "stmib", "stmda", "ldr", "ldrb", "ldrh", "ldrsb",
             "ldrsh", "ldrd", "pop", "ldm", "ldmdb", "ldmib", "ldmda", "tbb", "tbh"}  # fmt: skip
_KEEPS_FLAGS = {"mla", "mls", "umull", "smull", "umlal", "smlal", "sdiv", "rev", "rev16", "rbit"}
"""Without a suffix: of their results nothing is known."""
_KNOWN = {*_BINARY, *_UNARY, *_OTHERS, *_FLAGLESS}
_WITH_FLAGS = {*_BINARY, *_UNARY} - {"addw", "subw", "movw", "clz", "udiv", "uxtb", "uxth", "sxtb", "sxth"}
_STATUS = re.compile(
    r"(msr\S* (cpsr_f\b|[ax]psr|spsr|primask|basepri|faultmask)"
    r"|mrs\S* \w+, (cpsr|control|[aeix]*psr|spsr|primask|basepri|faultmask)|cps\S* [aif]+$)"
)
"""Uses of status registers that are no stack pointer, and do not exchange registers as another mode of ARM does."""
_READS_POINTER = re.compile(r"mrs\S* \w+, [mp]sp$")
_WRITES_PROCESS_STACK = re.compile(r"msr\S* psp,")
"""A write of PSP, which is not the stack pointer in use: assumption *main-stack*."""
_BANKED = tuple(f"r{number}" for number in range(8, 15))


def entry_state() -> State:
    """What is known where the analysed function is entered."""
    return State({SP: Value("stack", 0, 0, 0), LR: LINK})


def mnemonic(instruction: Instruction) -> tuple[str, bool, str | None]:
    """The name without condition and width, whether it sets the flags, and its condition."""
    branches = instruction.control is Control.CONDITIONAL_BRANCH
    return _mnemonic(instruction.text.split(" ", 1)[0], may_be_skipped(instruction), branches)


@lru_cache(MOST_TEXTS)
def _mnemonic(text: str, predicated: bool, branches: bool) -> tuple[str, bool, str | None]:  # noqa: FBT001  (a key)
    name = text.removesuffix(".w").removesuffix(".n")
    if name == "it" or re.fullmatch("it[te]{0,3}", name):
        return "it", False, None
    condition = None
    is_conditional = predicated or branches
    if is_conditional and (name not in {"bl", "b", "blx", "bx", "bxns"} or predicated) and name[-2:] in _CONDITIONS:
        name, condition = name[:-2], name[-2:]
    if predicated and condition is None:
        return name, False, "?"
    if name not in _KNOWN and name.endswith("s") and name[:-1] in _WITH_FLAGS:
        return name[:-1], True, condition
    return name, False, condition


def execute(machine: Machine, instruction: Instruction, state: State) -> list[Outcome]:
    """Execute ``instruction``, which changes ``state``: the ways on, of which the last may fall through."""
    found = outcomes_of(machine, instruction, state)
    falling = [way.state for way in found if way.way == "fall"]
    leaving = [way for way in found if way.way != "fall"]
    following = instruction.address + instruction.size_bytes
    return [*leaving, Outcome("fall", following, reduce(joined, falling))] if falling else leaving


def outcomes_of(machine: Machine, instruction: Instruction, state: State) -> list[Outcome]:
    """As `execute`, but for each way in which a conditional instruction is executed, or is not."""
    machine.begin(instruction, state)
    return machine.released(_ways(machine, instruction, state), SP)


def fulfilled(instruction: Instruction, state: State) -> State | None:
    """What holds where the condition of ``instruction`` is fulfilled; None where that cannot be."""
    _, _, condition = mnemonic(instruction)
    return state if condition is None else _assumed(state, condition, holds=True)


def _ways(machine: Machine, instruction: Instruction, state: State) -> list[Outcome]:
    name, sets_flags, condition = mnemonic(instruction)
    following = instruction.address + instruction.size_bytes
    if name in {"cbz", "cbnz"}:
        return _compare_and_branch(instruction, name, state, following)
    if condition is None:
        return _executed(machine, instruction, name, state, following, sets_flags=sets_flags)
    taken, skipped = _assumed(state, condition, holds=True), _assumed(state, condition, holds=False)
    found = []
    if taken is not None:
        found = _executed(machine, instruction, name, taken, following, sets_flags=sets_flags)
    return found if skipped is None else [*found, Outcome("fall", following, skipped)]


def _assumed(state: State, condition: str, *, holds: bool) -> State | None:
    meaning = _CONDITIONS.get(condition)
    asserted = state.flags.get("nzcv")
    if asserted is not None and condition in {*_SIGNS, *_OVERFLOWS} and not asserted.is_result:
        is_met = _is_met(condition, asserted.left_value, asserted.right_value)
        return state.copy() if is_met in {None, holds} else None
    if meaning is None or asserted is None:
        return state.copy()
    relation, is_signed = meaning
    if asserted.is_result and condition not in {"eq", "ne", *_SIGNS}:
        return state.copy()
    found = assume(state, "nzcv", relation, is_signed=is_signed, holds=holds)
    return state.copy() if found is state else found


def _is_met(condition: str, left: Value, right: Value) -> bool | None:
    """Whether ``left - right`` is negative, or does not fit a signed word; None where one of them is no known word."""
    if not (left.is_number and right.is_number and left.is_constant and right.is_constant):
        return None
    one, other = (numbers.signed(side.low) for side in (left, right))
    exact = one - other
    is_wrong = not -WORD // 2 <= exact < WORD // 2
    found = is_wrong if condition in _OVERFLOWS else (exact < 0) != is_wrong
    return found == (condition in {"mi", "vs"})


def _compare_and_branch(instruction: Instruction, name: str, state: State, following: int) -> list[Outcome]:
    register = register_of(operands_in(instruction)[0])
    state.flags["zero"] = Comparison(state.name(register), state.read(register), None, constant(0))
    outcomes = []
    for way, address, is_zero in (
        ("jump", instruction.branch_target, name == "cbz"),
        ("fall", following, name != "cbz"),
    ):
        found = assume(state, "zero", "==", is_signed=False, holds=is_zero)
        if found is not None:
            found = found.copy()
            found.flags.pop("zero", None)
            outcomes.append(Outcome(way, address, found))
    return outcomes


def _executed(
    machine: Machine, instruction: Instruction, name: str, state: State, following: int, *, sets_flags: bool
) -> list[Outcome]:
    """As `execute`, its condition being fulfilled."""
    match instruction.control:
        case Control.CALL if instruction.branch_target is not None:
            state.write(LR, constant(following | (machine.image.isa is Isa.THUMB)), machine.fresh())
            return [Outcome("call", instruction.branch_target, state)]
        case Control.BRANCH | Control.CONDITIONAL_BRANCH if instruction.branch_target is not None:
            return [Outcome("jump", instruction.branch_target, state)]
        case Control.NEXT:
            _compute(machine, instruction, name, state, sets_flags=sets_flags)
            _settle(machine, instruction, name, state)
            return [Outcome("fall", following, state)]
    return _indirect(machine, instruction, name, state, following)


def _indirect(machine: Machine, instruction: Instruction, name: str, state: State, following: int) -> list[Outcome]:
    """A jump to where a register, or a word of memory, says."""
    state.carry = None
    thumb = machine.image.isa is Isa.THUMB
    operands = operands_in(instruction)
    if name in {"tbb", "tbh"}:
        return _table(machine, instruction, state, way="jump", halfwords_from=instruction.address + 4)
    called: object = None
    if name in {"bx", "bxns", "blx"}:
        target = _read(state, register_of(operands[0]), instruction, thumb=thumb)
        called = name_held(state, register_of(operands[0]))
    elif name == "mov":
        target, called = _second_operand(state, operands[1:], instruction, thumb=thumb)
    elif name == "add" and not thumb:
        values = [_read(state, register_of(operands[1]), instruction, thumb=thumb)]
        target = numbers.add(values[0], _second_operand(state, operands[2:], instruction, thumb=thumb)[0])
    elif name == "ldr" and _is_table(instruction):
        return _table(machine, instruction, state, way="jump")
    elif name in {"pop", "ldr", "ldm", "ldmdb", "ldmib", "ldmda"}:
        target = loaded_registers(machine, instruction, name, state)[PC][0]
        _compute(machine, instruction, name, state, sets_flags=False)
        _settle(machine, instruction, name, state)
        state.drop(PC)
    else:
        target = ANY
    way = "call" if name == "blx" else "jump" if name == "add" or _is_table(instruction) else "return"
    if name == "blx":
        state.write(LR, constant(following | thumb), machine.fresh())
    if target.base == "link" and target == LINK:
        return [Outcome("return", None, state)]
    found = machine.targets(target, called)
    # Its lowest bit tells the instruction set, but where Thumb jumps by mov; by that ARM changes it from ARMv7 on.
    if found is None or (not (thumb and name == "mov") and not _is_of(thumb, found)):
        return [Outcome(machine.way_of(way, target), None, state, is_assumed=True)]
    return [Outcome(way, address, state.copy()) for address in dict.fromkeys(word & ~1 for word in found)]


def _is_of(thumb: bool, addresses: Iterable[int]) -> bool:  # noqa: FBT001  (which of the two sets it is)
    """Whether jumps to these addresses stay in the instruction set."""
    return all(address & 1 == thumb for address in addresses)


def _is_table(instruction: Instruction) -> bool:
    return any(access.index is not None for access in instruction.accesses)


def _table(
    machine: Machine, instruction: Instruction, state: State, *, way: str, halfwords_from: int | None = None
) -> list[Outcome]:
    """A jump by a table in read-only memory: of addresses, or of distances in halfwords from an address."""
    (access,) = instruction.accesses
    found = machine.table(machine.address_of(access, state), access.bytes_each)
    if found is None or (halfwords_from is None and not _is_of(machine.image.isa is Isa.THUMB, found)):
        return [Outcome(way, None, state, is_assumed=True)]
    targets = [entry & ~1 if halfwords_from is None else halfwords_from + 2 * entry for entry in found]
    return [Outcome(way, address, state.copy()) for address in dict.fromkeys(targets)]


def _compute(machine: Machine, instruction: Instruction, name: str, state: State, *, sets_flags: bool) -> None:
    thumb = machine.image.isa is Isa.THUMB
    operands = operands_in(instruction)
    if name in {"it", "nop"}:
        return
    carry, state.carry = state.carry or _BIT, None
    if name in _FLAGLESS and instruction.accesses:
        access_memory(machine, instruction, name, state)
        return
    if name in {"vpush", "vpop"} and len(instruction.accesses) == 1:
        (access,) = instruction.accesses
        size, pointer = constant(access.count * access.bytes_each), state.read(SP)
        machine.havoc(instruction, state)
        moved = numbers.subtract(pointer, size) if name == "vpush" else numbers.add(pointer, size)
        state.write(SP, moved, machine.fresh())
        return
    try:
        known = _result(state, name, operands, instruction, carry, thumb=thumb)
    except (ValueError, KeyError, IndexError):
        known = None
    if name in _COMPARING and known is not None:
        state.flags["nzcv"] = known[2]
        return
    if known is None or len(instruction.writes - {PC}) != 1:
        flags_before = dict(state.flags) if name in _KEEPS_FLAGS else {}
        machine.havoc(instruction, state, stored_registers(instruction))
        state.flags |= flags_before
        return
    value, old_name, flags = known
    (destination,) = instruction.writes - {PC}
    if sets_flags:
        state.carry = _shifted_out(state, name, operands)
    state.write(destination, value, machine.fresh() if old_name is None else old_name)
    if sets_flags:
        if not flags.is_result:
            flags = flags._replace(difference=state.name(destination))
        else:
            flags = Comparison(state.name(destination), value, None, constant(0), is_result=True)
        state.flags["nzcv"] = flags


def _settle(machine: Machine, instruction: Instruction, name: str, state: State) -> None:
    """What the core does to the stack pointer besides: of Thumb its lowest two bits are 0 (ARMv7-M ARM, B1.4.1)."""
    if name[:3] in {"msr", "mrs", "cps"} and not _STATUS.match(instruction.text):
        writes_other = _WRITES_PROCESS_STACK.match(instruction.text) is not None
        machine.used |= {"main-stack"} if writes_other else set()
        is_apart = writes_other or _READS_POINTER.match(instruction.text)
        for register in (*(() if is_apart else _BANKED), *instruction.writes):  # what is read may be a stack pointer
            state.write(register, ANY, machine.fresh())
    if SP not in instruction.writes or machine.image.isa is not Isa.THUMB:
        return
    pointer = state.read(SP)
    is_aligned = pointer.low % 4 == pointer.stride % 4 == 0 and (pointer.is_plain or pointer.base == "stack")
    if not is_aligned:
        state.write(SP, numbers.unknown(pointer), machine.fresh())


_NO_FLAGS = Comparison(None, TOP, None, constant(0), None, is_result=True)


def _shifted_out(state: State, name: str, operands: list[str]) -> Value | None:
    """The bit that a shift to the left by a constant leaves in the carry flag; None of other instructions."""
    bits = immediate_of(operands[-1]) if name == "lsl" and operands[-1].startswith("#") else 0
    if not 0 < bits < 32:
        return None
    value = state.read(register_of(operands[-2]))
    return numbers.conjunction(numbers.shift_right(value, constant(32 - bits)), constant(1))


def _result(
    state: State, name: str, operands: list[str], instruction: Instruction, carry: Value, *, thumb: bool
) -> tuple[Value, object, Comparison] | None:
    """The value that an instruction computes, its name if another place holds it, and what flags would tell."""
    if name in _COMPARING:
        return TOP, None, _compared(state, name, operands, instruction, thumb=thumb)
    if name in _UNARY:
        value, named = _second_operand(state, operands[1:], instruction, thumb=thumb)
        return _UNARY[name](value), _name_of_part(name, named), _NO_FLAGS
    if name in _BINARY:
        if len(operands) == 2 or (len(operands) == 3 and operands[2].split(" ")[0] in {*_SHIFTS, "ror", "rrx"}):
            operands = [operands[0], *operands]
        left = register_of(operands[1])
        a = _read(state, left, instruction, thumb=thumb)
        b, right_name = _second_operand(state, operands[2:], instruction, thumb=thumb)
        a = numbers.add(a, carry) if name == "adc" else a
        if name in _SHIFTS:  # of a register, its lowest byte says how far
            b = numbers.conjunction(b, constant(0xFF))
        by_constant = b.is_number and b.is_constant
        left_name = name_held(state, left)
        is_sum = name == "add" and not by_constant
        own = name_of_sum(left_name, a, right_name, b) if is_sum else _name_of(name, left_name, b)
        if name == "sub":
            return numbers.subtract(a, b), own, Comparison(left_name, a, right_name, b)
        if name == "add" and by_constant and 0 < b.low < WORD // 2:
            # The flags are those of the comparison with -b: a carry where the sum is 2**32 or more.
            return numbers.add(a, b), own, Comparison(left_name, a, None, constant(WORD - b.low))
        return _BINARY[name](a, b), own, _NO_FLAGS
    numeric = [immediate_of(one) for one in operands if one.startswith("#")]
    old = state.read(register_of(operands[0]))
    match name:
        case "movt":
            low = numbers.conjunction(old, constant(0xFFFF))
            return numbers.disjunction(low, constant(numeric[0] << 16)), None, _NO_FLAGS
        case "adr":
            pc = instruction.address + (4 if thumb else 8)
            return constant((pc & ~3) + numeric[0]), None, _NO_FLAGS
        case "ubfx":
            value = numbers.shift_right(state.read(register_of(operands[1])), constant(numeric[0]))
            return numbers.conjunction(value, constant((1 << numeric[1]) - 1)), None, _NO_FLAGS
        case "bfi":
            mask = (1 << numeric[1]) - 1
            field = numbers.conjunction(state.read(register_of(operands[1])), constant(mask))
            field = numbers.shift_left(field, constant(numeric[0]))
            rest = numbers.conjunction(old, constant(~(mask << numeric[0])))
            return numbers.disjunction(rest, field), None, _NO_FLAGS
        case "bfc":
            mask = (1 << numeric[1]) - 1 << numeric[0]
            return numbers.conjunction(old, constant(~mask)), None, _NO_FLAGS
    return None


def _name_of_part(name: str, of: object) -> object:
    """The name of what ``name`` makes of the value called ``of``: of all or of the lowest bits of it."""
    if name == "mov" or of is None:
        return of
    return computed(numbers.conjunction, of, constant(_LOW_BITS[name])) if name in _LOW_BITS else None


def _name_of(name: str, left: object, b: Value) -> object:
    """The name of what ``name`` makes of two operands, of which the second is ``b``; None where that is no constant."""
    return computed(_BINARY[name], left, b) if b.is_number and b.is_constant and name != "adc" else None


def _compared(state: State, name: str, operands: list[str], instruction: Instruction, *, thumb: bool) -> Comparison:
    left = register_of(operands[0])
    a = _read(state, left, instruction, thumb=thumb)
    b, right = _second_operand(state, operands[1:], instruction, thumb=thumb)
    left_name = name_held(state, left)
    if name == "cmp":
        return Comparison(left_name, a, right, b)
    if name == "cmn" and b.is_number and b.is_constant and 0 < b.low < WORD // 2:
        return Comparison(left_name, a, None, constant(WORD - b.low))  # as of a sum
    result = _RESULTS[name](a, b)
    is_same = (name == "tst" and right == left_name) or (name == "teq" and b == constant(0))
    name_of_result = _name_of("and", left_name, b) if name == "tst" else None
    asserted = (left_name, a) if is_same else (name_of_result, result)
    return Comparison(*asserted, None, constant(0), is_result=True)


def _second_operand(
    state: State, operands: list[str], instruction: Instruction, *, thumb: bool
) -> tuple[Value, object]:
    """An immediate, or a register, shifted or not; with its name, if it is no more than a register."""
    if operands[0].startswith("#"):
        if len(operands) != 1:
            raise ValueError(operands)
        return constant(immediate_of(operands[0])), None
    register = register_of(operands[0])
    value = _read(state, register, instruction, thumb=thumb)
    if thumb and register == PC and len(operands) == 1:
        value = constant(instruction.address + 4)  # of a register; to a number the aligned one is added
    if len(operands) == 1:
        return value, name_held(state, register)
    shift, amount = operands[1].split(" ") if " " in operands[1] else (operands[1], "#1")
    bits = (
        constant(immediate_of(amount)) if amount.startswith("#") else numbers.unknown(state.read(register_of(amount)))
    )
    if shift in _SHIFTS:
        return _SHIFTS[shift](value, bits), None
    return ANY if value.may_be_stack else TOP, None


def _read(state: State, register: str, instruction: Instruction, *, thumb: bool) -> Value:
    if register != PC:
        return state.read(register)
    return TOP if thumb else constant(instruction.address + 8)
