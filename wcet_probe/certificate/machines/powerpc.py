# SPDX-License-Identifier: 0BSD
"""What PowerPC instructions do, read from their encodings: the checker's own small transfer function.

What is not known here leaves nothing known of the registers that it writes and of the memory that it may write to
(`Machine.havoc`). The condition fields are followed where a comparison or a result with a full stop set them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.values import numbers
from wcet_probe.certificate.values.numbers import ANY, LINK, TOP, WORD, Value, constant
from wcet_probe.certificate.values.state import Comparison, State, assume, computed, name_of_sum
from wcet_probe.model.instruction import AccessKind, Instruction

SP, LR = "r1", "lr"
REGISTERS = (*(f"r{number}" for number in range(32)), "lr", "ctr")
RELATIONS = ("<", ">", "==")


def _reversed(a: Value, b: Value) -> Value:
    return numbers.subtract(b, a)


_COMPUTATIONS: Mapping[tuple[int, int], tuple[Callable[[Value, Value], Value], str, str]] = {
    (7, 0): (numbers.multiply, "a", "signed"),
    (8, 0): (_reversed, "a", "signed"),
    (12, 0): (numbers.add, "a", "signed"),
    (13, 0): (numbers.add, "a", "signed"),
    (14, 0): (numbers.add, "a or 0", "signed"),
    (15, 0): (numbers.add, "a or 0", "upper"),
    (24, 0): (numbers.disjunction, "s", "lower"),
    (25, 0): (numbers.disjunction, "s", "upper"),
    (26, 0): (numbers.exclusive, "s", "lower"),
    (27, 0): (numbers.exclusive, "s", "upper"),
    (28, 0): (numbers.conjunction, "s", "lower"),
    (29, 0): (numbers.conjunction, "s", "upper"),
    (31, 8): (_reversed, "a", "b"),
    (31, 10): (numbers.add, "a", "b"),
    (31, 24): (numbers.shift_left, "s", "bits in b"),
    (31, 26): (lambda a, _: numbers.leading_zeros(a), "s", "0"),
    (31, 28): (numbers.conjunction, "s", "b"),
    (31, 40): (_reversed, "a", "b"),
    (31, 60): (lambda a, b: numbers.conjunction(a, numbers.complement(b)), "s", "b"),
    (31, 104): (_reversed, "a", "0"),
    (31, 124): (lambda a, b: numbers.complement(numbers.disjunction(a, b)), "s", "b"),
    (31, 235): (numbers.multiply, "a", "b"),
    (31, 266): (numbers.add, "a", "b"),
    (31, 316): (numbers.exclusive, "s", "b"),
    (31, 412): (lambda a, b: numbers.disjunction(a, numbers.complement(b)), "s", "b"),
    (31, 444): (numbers.disjunction, "s", "b"),
    (31, 459): (numbers.divide, "a", "b"),
    (31, 476): (lambda a, b: numbers.complement(numbers.conjunction(a, b)), "s", "b"),
    (31, 536): (numbers.shift_right, "s", "bits in b"),
    (31, 824): (numbers.shift_right_signed, "s", "bits"),
    (31, 922): (lambda a, _: numbers.extended(a, 16, is_signed=True), "s", "0"),
    (31, 954): (lambda a, _: numbers.extended(a, 8, is_signed=True), "s", "0"),
}
"""What is computed of two operands, by primary and extended opcode: of ``a`` and what is told it is written to the
register of the first field, of ``s``, which that is, to ``a``."""
_OF_GENERAL_REGISTERS = range(32, 48)
"""Primary opcodes of loads and stores by a displacement; behind them are those of floating-point registers."""
_INDEXED = range(23, 440, 32)
_ALGEBRAIC = {42, 43, 343, 375}
_REVERSED = {534, 662, 790, 918}


def entry_state() -> State:
    """What is known where the analysed function is entered."""
    return State({SP: Value("stack", 0, 0, 0), "lr": LINK})


def execute(machine: Machine, instruction: Instruction, state: State) -> list[Outcome]:
    """Execute ``instruction``, which changes ``state``: the ways on, of which the last may fall through."""
    machine.begin(instruction, state)
    return machine.released(_executed(machine, instruction, state), SP)


def _executed(machine: Machine, instruction: Instruction, state: State) -> list[Outcome]:
    following = instruction.address + 4
    word = machine.encoding(instruction.address)
    if word is None:
        return [Outcome("jump", None, state, is_assumed=True)]
    if word >> 26 in {16, 18} or (word >> 26 == 19 and word >> 1 & 0x3FF in {16, 528}):
        return _branch(machine, instruction, word, state, following)
    _compute(machine, instruction, word, state)
    return [Outcome("fall", following, state)]


outcomes_of = execute
"""No instruction but a branch is conditional."""


def _branch(machine: Machine, instruction: Instruction, word: int, state: State, following: int) -> list[Outcome]:
    options, condition = (word >> 21 & 31, word >> 16 & 31) if word >> 26 != 18 else (20, 0)
    falling: State | None = None
    taken: State | None = state
    if not options & 4:
        counter = numbers.subtract(state.read("ctr"), constant(1))
        state.write("ctr", counter, machine.fresh())
        state.flags["count"] = Comparison(state.name("ctr"), counter, None, constant(0))
        is_zero = bool(options & 2)
        taken = assume(state, "count", "==", is_signed=False, holds=is_zero)
        falling = assume(state, "count", "==", is_signed=False, holds=not is_zero)
    if not options & 16:
        if not options & 4:
            # Both conditions: what falls through may be either, and nothing is learnt of it.
            falling, taken = state.copy(), None if taken is None else tested(taken, condition, options)
        else:
            taken, falling = tested(state, condition, options), tested(state, condition, options ^ 8)
    outcomes = []
    if taken is not None:
        outcomes += _taken(machine, instruction, word, taken.copy(), following)
    if falling is not None and options & 20 != 20:
        falling = falling.copy()
        falling.flags.pop("count", None)
        outcomes.append(Outcome("fall", following, falling))
    return outcomes


def tested(state: State, condition: int, options: int) -> State | None:
    """``state`` where a bit of the condition register is as ``options`` say, 8: set, 0: not; None if it cannot be."""
    bit = condition % 4
    if bit == 3:
        return state
    return assume(state, f"cr{condition // 4}", RELATIONS[bit], is_signed=True, holds=bool(options & 8))


def _compute_bit(word: int, compute: Callable[[bool, bool], bool], state: State) -> None:
    """One bit of the condition register, from two: of its field nothing else is told then."""
    bit, *operands = (word >> low & 31 for low in (21, 16, 11))
    one, other = (
        [holds for holds in (False, True) if tested(state, operand, 8 * holds) is not None] for operand in operands
    )
    found, field = {compute(a, b) for a in one for b in other}, f"cr{bit // 4}"
    state.flags.pop(field, None)
    if len(found) == 1 and bit % 4 != 3:
        relation = RELATIONS[bit % 4] if found.pop() else numbers.opposite(RELATIONS[bit % 4])
        holding = frozenset({(relation, True)})
        state.flags[field] = Comparison(None, TOP, None, TOP, is_signed=True, holding=holding)


def _taken(machine: Machine, instruction: Instruction, word: int, state: State, following: int) -> list[Outcome]:
    state.flags.pop("count", None)
    is_call = bool(word & 1)
    register = "lr" if word >> 1 & 0x3FF == 16 else "ctr"
    target, name = (state.read(register), state.name(register)) if word >> 26 == 19 else (None, None)
    if is_call:
        state.write("lr", constant(following), machine.fresh())
    if target is None:
        is_call = is_call and instruction.branch_target != following  # else it asks where it is
        return [Outcome("call" if is_call else "jump", instruction.branch_target, state)]
    way = "call" if is_call else "return" if word >> 1 & 0x3FF == 16 else "jump"
    if target == LINK:
        return [Outcome(way, None, state)]
    found = machine.targets(target, name)
    if found is None:
        return [Outcome(machine.way_of(way, target), None, state, is_assumed=True)]
    return [Outcome(way, address, state.copy()) for address in dict.fromkeys(one & ~3 for one in found)]


def _compute(machine: Machine, instruction: Instruction, word: int, state: State) -> None:
    primary, extended = word >> 26, word >> 1 & 0x3FF
    if instruction.accesses:
        _access(machine, instruction, word, state)
        return
    if primary in {10, 11} or (primary == 31 and extended in {0, 32}):
        _compare(word, state)
        return
    if primary == 31 and extended in {339, 467}:
        _move_special(machine, instruction, word, state)
        return
    if primary == 31 and extended == 146:  # mtmsr, which may change how code is read, and where it and data are
        machine.havoc(instruction, state)
        for register in REGISTERS:
            state.write(register, ANY, machine.fresh())
        return
    if primary == 19 and extended in CONDITION_BITS:
        _compute_bit(word, CONDITION_BITS[extended], state)
        return
    if primary in {19, 31} and (primary == 19 or extended in {19, 144}):
        machine.havoc(instruction, state)
        return
    value, name, destination = _result(word, state)
    if value is None or instruction.writes - {"cr0"} != {destination}:
        kept = dict(state.flags)
        machine.havoc(instruction, state)
        if primary in {20, 31} and not word & 1 and instruction.writes:  # one that seems to do nothing may set a field
            state.flags = kept
        return
    state.write(destination, value, name or machine.fresh())
    if primary in {28, 29, 13} or (primary in {20, 21, 23, 31} and word & 1):
        state.flags["cr0"] = Comparison(state.name(destination), value, None, constant(0), is_signed=True)


CONDITION_BITS: Mapping[int, Callable[[bool, bool], bool]] = {
    33: lambda a, b: not (a or b),
    129: lambda a, b: a and not b,
    193: lambda a, b: a != b,
    225: lambda a, b: not (a and b),
    257: lambda a, b: a and b,
    289: lambda a, b: a == b,
    417: lambda a, b: a or not b,
    449: lambda a, b: a or b,
}
"""Instructions that compute one bit of the condition register from two: crnor to cror. No other field changes."""


def _signed_half(word: int) -> int:
    half = word & 0xFFFF
    return half - 0x10000 if half & 0x8000 else half


def _result(word: int, state: State) -> tuple[Value | None, object, str]:
    """The value that an instruction computes, its name if that is known, and the register that it is written to."""
    primary, extended = word >> 26, word >> 1 & 0x3FF
    d, a, b = (f"r{word >> low & 31}" for low in (21, 16, 11))
    if primary == 21:
        left, begin, end = (word >> low & 31 for low in (11, 6, 1))
        is_shift = begin and left + begin == 32 and end == 31
        shifted = computed(numbers.shift_right, state.name(d), constant(begin)) if is_shift else None
        return _rotated(state.read(d), left, begin, end), shifted, a
    found = _COMPUTATIONS.get((primary, extended if primary == 31 else 0))
    if found is None:
        return None, None, ""
    compute, first, second = found
    source, destination = (d, a) if first == "s" else (a, d)
    half, lower = _signed_half(word), word & 0xFFFF
    told = {"signed": half, "lower": lower, "upper": lower << 16, "bits": word >> 11 & 31, "0": 0}
    other = constant(told[second]) if second in told else state.read(b)
    if first == "a or 0" and a == "r0":
        return other, None, destination
    if second == "bits in b" and not (other.is_number and other.high < 32):
        other = numbers.unknown(other)
    own, name = state.read(source), state.name(source)
    if compute is numbers.disjunction and second == "b" and source == b:  # a move
        return own, name, destination
    return compute(own, other), _name_of(compute, name, own, state.name(b), other), destination


def _name_of(compute: Callable[[Value, Value], Value], left: object, own: Value, right: object, other: Value) -> object:
    """The name of what is computed of a value and an ``other``, which is called ``right`` if it is no constant."""
    if not (other.is_number and other.is_constant):
        return name_of_sum(left, own, right, other) if compute is numbers.add else None
    is_kept = other.low == 0 and compute in {numbers.add, numbers.disjunction, numbers.exclusive}
    return left if is_kept else computed(compute, left, other)


def _rotated(value: Value, left: int, begin: int, end: int) -> Value:
    """``rlwinm``: rotated to the left, and the bits from ``begin`` to ``end`` kept; bit 0 is the highest."""
    if begin > end:
        return ANY if value.may_be_stack else TOP
    mask = (WORD - 1 >> begin) & (WORD - 1 << 31 - end)
    if end <= 31 - left:  # what comes in at the right is masked away
        shifted = numbers.shift_left(value, constant(left)) if left else value
        # A shift alone leaves nothing else to be masked away, and numbers below 0 are what they are.
        return shifted if mask == (WORD - 1 << left) % WORD else numbers.conjunction(shifted, constant(mask))
    if begin >= 32 - left:  # only what came in at the right is kept
        shifted = numbers.shift_right(value, constant(32 - left))
        return shifted if mask == (1 << left) - 1 else numbers.conjunction(shifted, constant(mask))
    return ANY if value.may_be_stack else numbers.conjunction(TOP, constant(mask))


def _compare(word: int, state: State) -> None:
    primary, extended = word >> 26, word >> 1 & 0x3FF
    field, a, b = f"cr{word >> 23 & 7}", f"r{word >> 16 & 31}", f"r{word >> 11 & 31}"
    is_signed = primary == 11 or (primary == 31 and extended == 0)
    if primary == 31:
        right: object = state.name(b)
        value = state.read(b)
    else:
        right = None
        value = constant(_signed_half(word) if is_signed else word & 0xFFFF)
    state.flags[field] = Comparison(state.name(a), state.read(a), right, value, is_signed=is_signed)


def _move_special(machine: Machine, instruction: Instruction, word: int, state: State) -> None:
    """mfspr and mtspr of the link register and the counter."""
    special = {8: "lr", 9: "ctr"}.get(word >> 16 & 31) if word >> 11 & 31 == 0 else None
    general = f"r{word >> 21 & 31}"
    if special is None:
        machine.havoc(instruction, state)
    elif word >> 1 & 0x3FF == 339:
        state.write(general, state.read(special), state.name(special))
    else:
        state.write(special, state.read(general), state.name(general))


def _access(machine: Machine, instruction: Instruction, word: int, state: State) -> None:
    (access,) = instruction.accesses
    primary, extended = word >> 26, word >> 1 & 0x3FF
    code = extended if primary == 31 else primary
    plain = primary in _OF_GENERAL_REGISTERS or (primary == 31 and code in _INDEXED)
    if not plain or (primary == 31 and code in _REVERSED) or access.align_mask != WORD - 1:
        kept = {field: one for field, one in state.flags.items() if field not in instruction.writes}
        machine.havoc(instruction, state, _stored(instruction, word))
        state.flags = kept
        return
    first = word >> 21 & 31
    base = f"r{word >> 16 & 31}"
    update = base in instruction.writes and (code in {33, 35, 37, 39, 41, 43, 45} or (primary == 31 and code & 32 != 0))
    addresses = [machine.address_of(access, state, each) for each in range(access.count)]
    if access.kind is AccessKind.LOAD:
        found = {}
        for number, address in enumerate(addresses):
            is_signed = code in _ALGEBRAIC
            found[f"r{first + number}"] = machine.load(address, access.bytes_each, state, is_signed=is_signed)
        if update:
            state.write(base, addresses[0], machine.fresh())
        for register, (value, name) in found.items():
            # A base that is loaded as well as updated, or in a list, makes the form invalid.
            is_invalid = register == base and (update or len(found) > 1)
            state.write(register, ANY if is_invalid else value, machine.fresh() if is_invalid else name)
    else:
        registers = (f"r{first + number}" for number in range(access.count))
        values = [(state.read(register), state.name(register)) for register in registers]
        if update:
            state.write(base, addresses[0], machine.fresh())
        for address, (value, name) in zip(addresses, values, strict=True):
            machine.store(address, access.bytes_each, value, name, state)


def _stored(instruction: Instruction, word: int) -> frozenset[str]:
    """The general registers that a store stores; they may be parts of its address as well."""
    is_of_others = instruction.timing_class.startswith("float") or instruction.timing_class == "cache_zero"
    if is_of_others or instruction.accesses[0].kind is AccessKind.LOAD:
        return frozenset()
    first = word >> 21 & 31
    return frozenset(f"r{(first + number) % 32}" for number in range(max(instruction.registers, 1)))
