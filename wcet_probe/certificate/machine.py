# SPDX-License-Identifier: 0BSD
"""What the checker knows where an instruction begins, and what it makes of memory, comparisons and control.

Places are registers by name and words of memory (``int``): of the stack by their offset from the stack pointer at the
entry of the analysed function, of static memory by their address and 2**32. A register of which nothing is written is
any number that is not derived from the stack pointer; a word of which nothing is written may be anything.

Rules that rest on an assumption are noted in `Machine.used` when they are applied, see `assumptions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count

from wcet_probe.certificate.numbers import (
    ANY,
    TOP,
    WORD,
    Value,
    add,
    constant,
    extended,
    join,
    mirrored,
    number,
    opposite,
    refined,
    shift_left,
    shift_right,
    shift_right_signed,
    subtract,
    unknown,
    unsigned,
    within,
)
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Access, AccessKind, Instruction, Shift
from wcet_probe.model.target import Isa

Place = str | int
STATIC = WORD
"""The place of a word of static memory is its address and this."""
MOST_TARGETS = 1024
CONDITIONAL_STORES = frozenset({"store_exclusive", "store_conditional"})
"""Classes of instructions that store only if nothing came between: they may leave memory and caches as they are."""
_BIT_BANDS, _ALIAS_BYTES = (0x2200_0000, 0x4200_0000), 0x200_0000
_GENERAL = re.compile("r[0-9]+|lr|ctr")
_HALF = 1 << 31


@dataclass(frozen=True, slots=True)
class Comparison:
    """What flags tell: two operands, by the names of their values, that were subtracted; or a result and zero.

    ``is_signed`` is None where the instruction that reads the flags decides. ``is_result`` says that only equality with
    zero and the sign are known. ``difference`` is the name of what the subtraction left, if it left something.
    ``holding`` are the relations, with whether they are signed, that were found to hold on the way.
    """

    left: object
    left_value: Value
    right: object
    right_value: Value
    is_signed: bool | None = None
    is_result: bool = False
    difference: object = None
    holding: frozenset[tuple[str, bool]] = frozenset()


@dataclass(frozen=True, slots=True)
class Computed:
    """The name of what is computed from one named value and a constant."""

    compute: Callable[[Value, Value], Value]
    operand: object
    constant: Value
    depth: int

    def value(self, operand: Value) -> Value:
        """What it is where the operand is ``operand``."""
        return self.compute(operand, self.constant)


@dataclass(frozen=True, slots=True)
class Sum:
    """The name of the sum of two named values."""

    left: object
    right: object
    depth: int


_DEEPEST = 6
"""So often are names made of names: they are compared as a whole."""


def computed(compute: Callable[[Value, Value], Value], operand: object, constant: Value) -> Computed | None:
    """The name of what is computed from what is called ``operand``; None where that was computed too often already."""
    depth = _depth(operand) + 1
    return Computed(compute, operand, constant, depth) if depth <= _DEEPEST else None


def sum_of(left: object, right: object) -> Sum | None:
    """The name of a sum, as `computed`."""
    depth = max(_depth(left), _depth(right)) + 1
    return Sum(left, right, depth) if depth <= _DEEPEST else None


def _depth(name: object) -> int:
    return name.depth if isinstance(name, Computed | Sum) else 0


@dataclass(slots=True)
class State:
    """What is known at one point of a block.

    Attributes:
        values: of places; see the module for those that are missing.
        names: places with one name hold one value; a place without a name in it has its own. A word of the stack of
            which nothing is known has one, too, once it was written.
        flags: what the flags tell, by their name (``nzcv`` on ARM, ``cr0`` to ``cr7`` on PowerPC).
    """

    values: dict[Place, Value]
    names: dict[Place, object] = field(default_factory=dict)
    flags: dict[str, Comparison] = field(default_factory=dict)

    def copy(self) -> State:
        """The same state, to be changed."""
        return State(dict(self.values), dict(self.names), dict(self.flags))

    def read(self, place: Place) -> Value:
        """What ``place`` holds."""
        return self.values.get(place, TOP if isinstance(place, str) else ANY)

    def name(self, place: Place) -> object:
        """The name of the value in ``place``."""
        return self.names.get(place, place)

    def write(self, place: Place, value: Value, name: object) -> None:
        """``place`` holds ``value``, whose name is ``name``."""
        self.values[place] = value
        self.names[place] = name

    def drop(self, place: Place) -> None:
        """Nothing is known of a word of the stack any more; what was loaded from it keeps the name of its old value."""
        self.values.pop(place, None)
        self.names[place] = object()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way out of a block: to the instruction at ``address``; None leaves the analysed function.

    ``way`` is ``fall``, ``jump``, ``call`` or ``return``. Where the address of a return could not be followed,
    ``is_assumed``: it goes where the caller waits.
    """

    way: str
    address: int | None
    state: State
    is_assumed: bool = False


@dataclass(slots=True)
class Machine:
    """The image, and what was noted while its code was executed.

    Attributes:
        image: the binary.
        escapes: whether a stack address may stand in memory that is not a known word of the stack.
        found_escape: whether one was stored so.
        is_separate: whether *stack-separation* is assumed, by which no load through a number finds one in the stack.
        used: rules that rest on an assumption.
        words: what flow facts say of words of static memory, by address.
    """

    image: Image
    escapes: bool = False
    found_escape: bool = False
    used: set[str] = field(default_factory=set)
    words: Mapping[int, Value] = field(default_factory=dict)
    is_separate: bool = True
    _read_only: list[tuple[int, bytes]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _holds_stack: bool = False
    _reads_parts: bool = False
    _reads_far: bool = False

    def __post_init__(self) -> None:
        self._read_only = [(s.address, s.data) for s in self.image.segments if not s.writable]

    def fresh(self) -> object:
        """A name that no value has."""
        return ("value", next(self._numbers))

    # ------------------------------------------------------------------------------------------------------- memory

    def word(self, address: int, size_bytes: int = 4) -> int | None:
        """The content of read-only memory; None where the image has none."""
        return self._content(self._read_only, address, size_bytes)

    def encoding(self, address: int) -> int | None:
        """The instruction at ``address`` as a word; code may stand in a segment that can be written."""
        return self._content([(one.address, one.data) for one in self.image.segments if one.executable], address, 4)

    def _content(self, segments: Iterable[tuple[int, bytes]], address: int, size_bytes: int) -> int | None:
        for base, data in segments:
            if base <= address and address + size_bytes <= base + len(data):
                raw = data[address - base : address - base + size_bytes]
                return int.from_bytes(raw, "big" if self.image.big_endian else "little")
        return None

    def address_of(self, access: Access, state: State, number_of_access: int = 0) -> Value:
        """Where an access goes; ``number_of_access`` counts those of a load or store of several words."""
        address = constant(access.displacement + number_of_access * access.bytes_each)
        if access.base is not None:
            address = add(state.read(access.base), address)
        if access.index is not None:
            index = _scaled(state.read(access.index), access)
            address = subtract(address, index) if access.subtract_index else add(address, index)
        if access.align_mask == WORD - 1:
            return unsigned(address) if address.is_plain else address
        if address.base != "stack":
            return ANY if address.may_be_stack else TOP
        # Nobody knows how the stack pointer is aligned: it is cut down by what the mask takes away at most.
        return Value("stack", address.low - (WORD - 1 - access.align_mask), address.high, 1)

    def load(self, address: Value, size_bytes: int, state: State, *, is_signed: bool = False) -> tuple[Value, object]:
        """What a load finds, and its name; ``is_signed`` extends the sign of less than a word."""
        if address.base == "stack" and address.is_constant and size_bytes == 4 and address.low % 4 == 0:
            return state.read(address.low), state.name(address.low)
        self._note_copies(is_far=self._is_far(address))
        found = self.table(address, size_bytes)
        if found is not None:
            words: Iterable[Value] = map(constant, found)
            if is_signed:
                words = (extended(word, 8 * size_bytes, is_signed=True) for word in words)
            return reduce(join, words), self.fresh()
        if size_bytes < 4:
            part = number(0, (1 << 8 * size_bytes) - 1)
            part = extended(part, 8 * size_bytes, is_signed=True) if is_signed else part
            return self._part(part, address, size_bytes, state), self.fresh()
        if address.is_constant and address.is_number and address.low in self.words:
            return self.words[address.low], self.fresh()
        otherwise = ANY if address.may_be_stack or self.escapes else TOP
        if not self._is_static_word(address, size_bytes):
            return otherwise, self.fresh()
        place = STATIC + address.low
        return state.values.get(place, otherwise), state.name(place)

    def _part(self, part: Value, address: Value, size_bytes: int, state: State) -> Value:
        """What is loaded of less than a word: it may be a part of a stack address, which parts may become again."""
        ends = address.low & ~3, address.low + size_bytes - 1 & ~3
        if address.base == "stack" and address.is_constant and not any(state.read(end).may_be_stack for end in ends):
            return part
        self._note_copies(is_part=address.may_be_stack)
        return replace(part, base="any") if self.escapes else part

    def _note_copies(self, *, is_stack: bool = False, is_part: bool = False, is_far: bool = False) -> None:
        """A word of the stack that holds a stack address may be copied, whichever code comes first.

        In parts, or as a whole by a load that is not known to be from the stack, if nothing is assumed of such loads.
        """
        self._holds_stack |= is_stack
        self._reads_parts |= is_part
        self._reads_far |= is_far
        is_found = self._holds_stack and self._reads_far
        self.found_escape |= (self._holds_stack and self._reads_parts) or (is_found and not self.is_separate)
        if is_found and self.is_separate and not self.escapes:
            self.used.add("stack-separation")

    def _is_far(self, address: Value) -> bool:
        """Whether it is a number that may be an address of the stack for all that is known."""
        return not address.may_be_stack and not (address.is_number and self._is_static(address.low, address.high))

    def table(self, addresses: Value, size_bytes: int) -> list[int] | None:
        """What stands in read-only memory at all of ``addresses``; None where they are too many or may be written."""
        if not addresses.is_number or addresses.count > MOST_TARGETS:
            return None
        found: list[int] = []
        for address in addresses.words():
            word = self.word(address, size_bytes)
            if word is None:
                return None
            found.append(word)
        return found

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """A store. One that is not derived from the stack pointer misses the stack: *stack-separation*."""
        if address.base == "stack":
            low, high = address.low, address.high + size_bytes
            for place in [p for p in _words(state) if low < p + 4 and p < high]:
                state.drop(place)
            exact = address.is_constant and size_bytes == 4 and low % 4 == 0
            if exact:
                state.write(low, value, name)
            self._note_copies(is_stack=exact and value.may_be_stack)
            self.found_escape |= not exact and value.may_be_stack
            known = [place for place in _words(state) if place >= STATIC]
            for place in known if known and not self._is_in_frame(address, state) else ():
                state.drop(place)  # an index, or a distance, may lead out of the stack
            return
        low, high = (address.low, address.high) if address.is_number else (0, WORD - 1)
        if address.is_number and (high + size_bytes > WORD or self._is_alias(low, high)):
            low, high = 0, WORD - 1  # what is behind the last byte is the first one
        low = -WORD if address.may_be_stack else STATIC + low
        for place in [p for p in _words(state) if low < p + 4 and p < STATIC + high + size_bytes]:
            state.drop(place)
        if self._is_static_word(address, size_bytes):
            state.write(STATIC + address.low, value, name)
        if self._is_far(address):
            self.used.add("stack-separation")
        self.found_escape |= value.may_be_stack

    def _is_alias(self, first: int, last: int) -> bool:
        """Whether a store may change a bit of another address (bit-banding, Cortex-M4 TRM, ARM DDI 0439)."""
        is_there = any(first < base + _ALIAS_BYTES and base <= last for base in _BIT_BANDS)
        return last - first < WORD - 1 and is_there and self.image.isa is Isa.THUMB

    def _is_in_frame(self, address: Value, state: State) -> bool:
        """Whether a place of the stack lies between its pointer, which is moved already, and that of the caller."""
        pointer = state.read("r1" if self.image.isa is Isa.POWERPC else "r13")
        return address.is_constant and pointer.base == "stack" and pointer.high <= address.low < 0

    def _is_static(self, first: int, last: int) -> bool:
        """Whether bytes from ``first`` to ``last`` belong to one segment of the image."""
        return any(s.address <= first <= last < s.address + s.size_bytes for s in self.image.segments)

    def _is_static_word(self, address: Value, size_bytes: int) -> bool:
        """Whether it is one aligned word that the image owns; what else is there may be a device."""
        is_word = address.is_number and address.is_constant and size_bytes == 4 and address.low % 4 == 0
        return is_word and self._is_static(address.low, address.low)

    # -------------------------------------------------------------------------------------------------- whole effects

    def havoc(self, instruction: Instruction, state: State, stored: Collection[str] = ()) -> None:
        """The effect of an instruction of which only the registers and the accesses are known.

        Args:
            instruction: it.
            state: before it, and behind it then.
            stored: registers that it stores, which may be parts of its address as well.
        """
        parts = {part for access in instruction.accesses for part in (access.base, access.index)}
        is_tainted = any(state.read(one).may_be_stack for one in {*(instruction.reads - parts), *stored})
        # A register of another file, of floating point for instance, is taken for memory that nobody looks into.
        others = {register for register in instruction.writes | instruction.loaded if not _GENERAL.fullmatch(register)}
        # So is one that is in no set of registers: of status, or a special one.
        is_hidden = not instruction.accesses and not (instruction.writes if is_tainted else instruction.reads)
        self.found_escape |= (bool(others) or is_hidden) and is_tainted
        is_tainted |= self.escapes and (is_hidden or any(not _GENERAL.fullmatch(one) for one in instruction.reads))
        for access in instruction.accesses:
            for each in range(access.count):
                address = self.address_of(access, state, each)
                if access.kind != AccessKind.STORE:
                    self._note_copies(is_far=self._is_far(address))
                    is_tainted |= address.may_be_stack or self.escapes
                    self._note_copies(is_part=bool(others) and address.may_be_stack)
                if access.kind != AccessKind.LOAD:
                    unknown_word = ANY if is_tainted else TOP
                    self.store(address, access.bytes_each, unknown_word, self.fresh(), state)
                    if instruction.timing_class in CONDITIONAL_STORES:  # what was there may be there still
                        for place in {address.low, STATIC + address.low} & state.values.keys():
                            state.drop(place)
        for register in instruction.writes - others:
            known = state.read(register).may_be_stack or is_tainted
            state.write(register, ANY if known else TOP, self.fresh())
        state.flags.clear()

    @staticmethod
    def way_of(way: str, target: Value) -> str:
        """``way``, or ``jump`` of a return to a number that was put where the return address was."""
        return "jump" if way == "return" and not target.may_be_stack else way

    def targets(self, value: Value, mask: int = WORD - 1) -> tuple[int, ...] | None:
        """The addresses that a jump to ``value`` may go to; None where they are not known."""
        if not value.is_number or value.count > MOST_TARGETS:
            return None
        return tuple(dict.fromkeys(word & mask for word in value.words()))


def _words(state: State) -> set[int]:
    """The words of memory that are known, or by whose first value something is named."""
    flags = state.flags.values()
    named = [*state.names.values(), *(name for one in flags for name in (one.left, one.right, one.difference))]
    names = {root for name in named for root in _roots(name)}
    return {place for place in {*state.values, *state.names, *names} if isinstance(place, int)}


def _roots(name: object) -> Iterator[object]:
    """The names of what a value with ``name`` is computed from in the end."""
    match name:
        case Computed():
            yield from _roots(name.operand)
        case Sum():
            yield from _roots(name.left)
            yield from _roots(name.right)
        case _:
            yield name


def _scaled(value: Value, access: Access) -> Value:
    bits = constant(access.shift_bits)
    match access.shift:
        case Shift.LSL:
            return shift_left(value, bits) if access.shift_bits else value
        case Shift.LSR:
            return shift_right(value, bits)
        case Shift.ASR:
            return shift_right_signed(value, bits)
    return unknown(value)


def assume(state: State, flags: str, relation: str, *, is_signed: bool, holds: bool = True) -> State | None:
    """``state`` where the operands that the flags compare stand in ``relation``, or not; None where that cannot be."""
    asserted = state.flags.get(flags)
    if asserted is None:
        return state
    if asserted.is_signed is not None:
        is_signed = asserted.is_signed
    relation = relation if holds else opposite(relation)
    if asserted.is_result and relation not in {"==", "!="}:
        # The sign of a result is known, and no more: ``<`` stands for negative.
        if relation not in {"<", ">="}:
            return state
        is_signed = True
    if (opposite(relation), is_signed) in asserted.holding:
        return None
    left = refined(asserted.left_value, relation, asserted.right_value, is_signed=is_signed)
    right = refined(asserted.right_value, mirrored(relation), asserted.left_value, is_signed=is_signed)
    if left is None or right is None:
        return None
    result = state.copy()
    if not (_tighten(result, asserted.left, left) and _tighten(result, asserted.right, right)):
        return None
    if asserted.difference is not None:
        left_over: Value | None = subtract(left, right)
        if relation in {"==", "!="} and left_over is not None:
            left_over = refined(left_over, relation, constant(0), is_signed=False)
        if left_over is None or not _tighten(result, asserted.difference, left_over):
            return None
    holding = asserted.holding | {(relation, is_signed)}
    result.flags[flags] = replace(asserted, left_value=left, right_value=right, holding=holding)
    return result


def _tighten(state: State, name: object, value: Value) -> bool:
    """Each place with the value called ``name`` holds ``value``, which is part of what it held there.

    Returns:
        Whether that can be, by what ``name`` is computed from.
    """
    for place in state.values:
        own = state.name(place)
        known = narrowed(own, name, value)
        if known is not None and (own == name or within(known, state.values[place])):
            state.values[place] = known
    if isinstance(name, str) and name not in state.names:
        state.values[name] = value
    for own, other in ((name.left, name.right), (name.right, name.left)) if isinstance(name, Sum) else ():
        rest = next((known for place, known in state.values.items() if state.name(place) == other), TOP)
        for place in [p for p in state.values if state.name(p) == own]:
            known = refined(state.values[place], "==", subtract(value, rest), is_signed=True)
            state.values[place] = known or state.values[place]
    origin = _undone(name, value) if isinstance(name, Computed) else None
    return origin is None or not isinstance(name, Computed) or _tighten_origin(state, name.operand, origin)


def _tighten_origin(state: State, name: object, value: Value) -> bool:
    """The value called ``name`` is in ``value``, too; whether that can be."""
    held = [own for place, own in state.values.items() if state.name(place) == name]
    if not held and isinstance(name, str) and name not in state.names:
        held = [TOP]
    known: Value | None = held[0] if held else value
    for is_signed in (False, True) if held else ():
        known = known and refined(known, "==", value, is_signed=is_signed)
    return known is not None and _tighten(state, name, known)


def _undone(name: Computed, value: Value) -> Value | None:
    """What was computed upon, if ``value`` came of it; None where that is not told.

    *Soundness:* adding and subtracting a constant lose nothing modulo 2**32; a shift to the right by k bits loses what
    was below 2**k.
    """
    if not (value.is_plain and name.constant.is_number and name.constant.is_constant):
        return None
    bits = name.constant.low
    if name.compute is add:
        return subtract(value, name.constant)
    if name.compute is subtract:
        return add(value, name.constant)
    if name.compute is shift_right and 0 < bits < 32:
        word, most = unsigned(value), (1 << 32 - bits) - 1
        below = (min(word.high, most) + 1 << bits) - 1
        return replace(number(min(word.low, most) << bits, below), base=value.base)
    return None


def narrowed(own: object, name: object, value: Value) -> Value | None:
    """What is called ``own`` where what is called ``name`` is ``value``; None where that tells nothing."""
    if own == name:
        return value
    if not isinstance(own, Computed):
        return None
    operand = narrowed(own.operand, name, value)
    return None if operand is None else own.value(operand)


def joined(a: State, b: State) -> State:
    """What is known on both ways."""
    values = {
        place: join(a.read(place), b.read(place))
        for place in dict.fromkeys((*a.values, *b.values))
        if isinstance(place, str) or (place in a.values and place in b.values)
    }
    places = dict.fromkeys((*values, *a.names, *b.names))  # a word that was dropped has a name and no value
    names = {place: a.name(place) if a.name(place) == b.name(place) else object() for place in places}
    found = {key: _both(asserted, b.flags[key]) for key, asserted in a.flags.items() if key in b.flags}
    return State(values, names, {key: asserted for key, asserted in found.items() if asserted is not None})


def _both(a: Comparison, b: Comparison) -> Comparison | None:
    """What two comparisons of the same operands tell together; None of others."""
    common = replace(
        a,
        left_value=join(a.left_value, b.left_value),
        right_value=join(a.right_value, b.right_value),
        holding=a.holding & b.holding,
    )
    is_same = common == replace(
        b, left_value=common.left_value, right_value=common.right_value, holding=common.holding
    )  # fmt: skip
    return common if is_same and (a == b or (a.left is not None or a.right is not None)) else None
