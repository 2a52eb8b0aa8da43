# SPDX-License-Identifier: 0BSD
"""What the checker makes of memory, and of where control goes.

Rules that rest on an assumption are noted in `Machine.used` when they are applied, see `assumptions`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import NamedTuple

from wcet_probe.certificate.values.held import WHOLE, HeldWords
from wcet_probe.certificate.values.numbers import (
    ANY,
    TOP,
    WORD,
    Value,
    add,
    constant,
    extended,
    join,
    number,
    shift_left,
    shift_right,
    shift_right_signed,
    subtract,
    unknown,
    unsigned,
)
from wcet_probe.certificate.values.state import (
    SAVED,
    STATIC,
    Loaded,
    State,
    is_saved,
    known_words,
    saved_words,
    words_named,
)
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Access, AccessKind, Instruction, Shift
from wcet_probe.model.target import Isa

MOST_TARGETS = 1024
CONDITIONAL_STORES = frozenset({"store_exclusive", "store_conditional"})
"""Classes of instructions that store only if nothing came between: they may leave memory and caches as they are."""
_MOST_PLACES = 16
"""Most words of the stack that one load is followed to."""
_MOST_ROUNDS = 6
"""So often is code followed anew before it is taken that stack addresses may stand anywhere."""
_BIT_BANDS, _ALIAS_BYTES = (0x2200_0000, 0x4200_0000), 0x200_0000
_GENERAL = re.compile("r[0-9]+|lr|ctr")


class Outcome(NamedTuple):
    """One way out of a block: to the instruction at ``address``; None leaves the analysed function.

    ``way`` is ``fall``, ``jump``, ``call`` or ``return``. Where the address of a return could not be followed,
    ``is_assumed``: it goes where the caller waits. A call that is not expanded leads ``over`` the callee that begins
    there to what is behind the call, and registers that are ``unmet`` may hold what the callee is not checked for.
    """

    way: str
    address: int | None
    state: State
    is_assumed: bool = False
    over: int | None = None
    unmet: tuple[str, ...] = ()


@dataclass(slots=True)
class Machine:
    """The image, and what was noted while its code was executed.

    Attributes:
        image: the binary.
        escapes: whether a stack address may stand anywhere in memory.
        found_escape: whether one was stored outside of the stack.
        on_stack: where on the stack one may stand, unless that is anywhere.
        is_separate: whether *stack-separation* is assumed, by which no load through a number finds one in the stack,
            and no store through a number goes there.
        used: rules that rest on an assumption.
        constant_store: an address of memory that is taken to be constant, which a store surely goes to.
        saving: the instructions that save registers, and which of their stores do, if these are assumed to stay.
        executed: how many instructions were, each once for each state; budgets are counted in them.
    """

    image: Image
    escapes: bool = False
    found_escape: bool = False
    on_stack: HeldWords = field(default_factory=HeldWords)
    used: set[str] = field(default_factory=set)
    is_separate: bool = True
    constant_store: int | None = None
    saving: Mapping[int, Collection[int]] = field(default_factory=dict)
    executed: int = 0
    _saves: Collection[int] = ()
    _stores: int = 0
    _read_only: list[tuple[int, bytes]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _holds_stack: bool = False
    _reads_far: bool = False
    _rounds: int = 0

    def __post_init__(self) -> None:
        self._read_only = [(s.address, s.data) for s in self.image.segments if not s.writable]

    @property
    def is_refuted(self) -> bool:
        """Whether something was taken for no stack address, or for none that is stored, that may be one."""
        return not self.escapes and (self.found_escape or self.on_stack.is_refuted)

    def again(self) -> Machine:
        """A machine that takes nothing for true that this one has refuted."""
        return Machine(
            self.image,
            self.escapes or self.found_escape or self._rounds >= _MOST_ROUNDS,
            on_stack=self.on_stack.again(),
            is_separate=self.is_separate,
            saving=self.saving,
            _rounds=self._rounds + 1,
        )

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
            is_saved = self.saving and address.low not in state.values and SAVED + address.low in state.values
            place = address.low + (SAVED if is_saved else 0)
            self.used |= {"saved-registers"} if is_saved else set()
            is_number = place not in state.values and not self._may_hold(address, 4)
            return TOP if is_number else state.read(place), state.name(place)
        self._note_far(is_far=self._is_far(address))
        found = self.table(address, size_bytes)
        if found is not None:
            words: Iterable[Value] = map(constant, found)
            if is_signed:
                words = (extended(word, 8 * size_bytes, is_signed=True) for word in words)
            words = tuple(words)
            return reduce(join, words), Loaded(tuple(dict.fromkeys(word.low % WORD for word in words)))
        if size_bytes < 4:
            part = number(0, (1 << 8 * size_bytes) - 1)
            part = extended(part, 8 * size_bytes, is_signed=True) if is_signed else part
            return self._part(part, address, size_bytes, state), self.fresh()
        otherwise = self._any_of(address, size_bytes, state)
        if not self._is_static_word(address, size_bytes):
            return otherwise, self.fresh()
        place = STATIC + address.low
        return state.values.get(place, otherwise), state.name(place)

    def _part(self, part: Value, address: Value, size_bytes: int, state: State) -> Value:
        """What is loaded of less than a word: it may be a part of a stack address, which parts may become again."""
        ends = address.low & ~3, address.low + size_bytes - 1 & ~3
        if address.base == "stack" and address.is_constant and not any(state.read(end).may_be_stack for end in ends):
            return part
        return part._replace(base="any") if self._may_hold(address, size_bytes) else part

    def _may_hold(self, address: Value, size_bytes: int) -> bool:
        """Whether what is loaded, of which nothing else is known, may be an address of the stack or a part of one."""
        if self.escapes or not address.may_be_stack:
            return self.escapes
        return self.on_stack.may_hold(*self._bytes(address, size_bytes))

    def _any_of(self, address: Value, size_bytes: int, state: State) -> Value:
        """What a load of a word may find: of a few places of the stack, what is known of each."""
        is_word = address.base == "stack" and size_bytes == 4 and (address.low | address.stride) % 4 == 0
        if self.escapes or not is_word or address.size > _MOST_PLACES:
            return ANY if self._may_hold(address, size_bytes) else TOP
        if any(self.on_stack.may_hold(one, one + 4) for one in address.words() if one not in state.values):
            return ANY
        return reduce(join, (state.values.get(one, TOP) for one in address.words()))

    @staticmethod
    def _bytes(address: Value, size_bytes: int) -> tuple[int, int]:
        """Where an access of what may be on the stack may go there."""
        return (address.low, address.high + size_bytes) if address.base == "stack" else WHOLE

    def _note_held(self, address: Value, size_bytes: int, value: Value) -> None:
        """What may be a stack address, or a part of one, may be stored on the stack."""
        if address.may_be_stack and value.may_be_stack and not self.escapes:
            self.on_stack.note(*self._bytes(address, size_bytes))
            self._note_far(is_stack=True)

    def _note_far(self, *, is_stack: bool = False, is_far: bool = False) -> None:
        """A load that is not known to be from the stack may find an address there, whichever code comes first."""
        self._holds_stack |= is_stack
        self._reads_far |= is_far
        is_found = self._holds_stack and self._reads_far
        self.found_escape |= is_found and not self.is_separate
        if is_found and self.is_separate and not self.escapes:
            self.used.add("stack-separation")

    def _is_far(self, address: Value) -> bool:
        """Whether it is a number that may be an address of the stack for all that is known.

        Of several it may be one: a linker may put the stack into a segment of the image, behind its words.
        """
        is_known = address.is_number and address.is_constant and self._is_static(address.low)
        return not address.may_be_stack and not is_known

    def table(self, addresses: Value, size_bytes: int) -> list[int] | None:
        """What stands in read-only memory at all of ``addresses``; None where they are too many or may be written."""
        if not addresses.is_number or addresses.size > MOST_TARGETS:
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
        self._note_saved(address, size_bytes, value, name, state)
        self._note_held(address, size_bytes, value)
        if address.base == "stack":
            low, high = address.low, address.high + size_bytes
            behind = high - WORD  # of what goes beyond the last distance, the rest is at the first one
            for place in [p for p in known_words(state) if (low < p + 4 and p < high) or -WORD // 2 <= p < behind]:
                state.drop(place)
            exact = address.is_constant and size_bytes == 4 and low % 4 == 0
            if exact:
                state.write(low, value, name)
            known = [place for place in known_words(state) if place >= STATIC]
            for place in known if known and not self.is_in_frame(address, size_bytes, state) else ():
                state.drop(place)  # an index, or a distance, may lead out of the stack
            return
        low, high = (address.low, address.high) if address.is_number else (0, WORD - 1)
        if any(base <= low and high + size_bytes <= base + len(data) for base, data in self._read_only):
            self.constant_store = low
        if address.is_number and (high + size_bytes > WORD or self._is_alias(low, high)):
            low, high = 0, WORD - 1  # what is behind the last byte is the first one
        low = -WORD if address.may_be_stack else STATIC + low
        for place in [p for p in known_words(state) if low < p + 4 and p < STATIC + high + size_bytes]:
            state.drop(place)
        if self._is_static_word(address, size_bytes):
            state.write(STATIC + address.low, value, name)
        if self._is_far(address):
            self.used.add("stack-separation")
            self.found_escape |= not self.is_separate  # then what leads there may be of the stack, if it was loaded
        self.found_escape |= value.may_be_stack

    def use_frames(self, end: int, value: Value, state: State) -> None:
        """A callee may store what is in ``value`` to any word of the stack below ``end``; nothing is saved any more."""
        for place in known_words(state):
            if is_saved(place) or -WORD // 2 <= place < end:
                state.drop(place)
        self._note_held(Value("stack", -WORD // 2, end - 1, 1), 1, value)

    def is_in_frame(self, address: Value, size_bytes: int, state: State) -> bool:
        """Whether all bytes there lie between the stack pointer, which is moved already, and that of the caller."""
        pointer = state.read(self.image.isa.stack_pointer)
        is_below = address.is_constant and address.low + size_bytes <= 0
        return is_below and address.base == pointer.base == "stack" and pointer.high <= address.low

    def begin(self, instruction: Instruction, state: State) -> None:  # noqa: ARG002  (for who follows more)
        """``instruction`` is executed next, in ``state``."""
        self.executed += 1
        self._saves, self._stores = self.saving.get(instruction.address, ()), 0

    def _note_saved(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """Of what is saved a store to one known place changes what it overlaps; any other nothing: *saved-registers*.

        If a register is saved in a place that is not known, nothing is known to be saved.
        """
        if not self.saving:
            return
        is_saving = self._stores in self._saves
        self._stores += 1
        is_known = address.base == "stack" and address.is_constant
        low, high = SAVED + address.low, SAVED + address.low + size_bytes
        for place in saved_words(state) if is_known or is_saving else ():
            if not is_known or (low < place + 4 and place < high):
                state.drop(place)
        if is_saving and is_known and size_bytes == 4 and address.low % 4 == 0:
            state.write(low, value, name)

    def released(self, outcomes: list[Outcome], stack_pointer: str) -> list[Outcome]:
        """``outcomes`` of an instruction, behind which what may be below the stack pointer is saved no more."""
        for outcome in outcomes if self.saving else ():
            pointer = outcome.state.read(stack_pointer)
            for place in saved_words(outcome.state):
                if pointer.base != "stack" or place - SAVED < pointer.high:
                    outcome.state.drop(place)
        return outcomes

    def _is_alias(self, first: int, last: int) -> bool:
        """Whether a store may change a bit of another address (bit-banding, Cortex-M4 TRM, ARM DDI 0439)."""
        is_there = any(first < base + _ALIAS_BYTES and base <= last for base in _BIT_BANDS)
        return last - first < WORD - 1 and is_there and self.image.isa is Isa.THUMB

    def _is_static(self, address: int) -> bool:
        """Whether a byte belongs to the image."""
        return any(s.address <= address < s.address + s.size_bytes for s in self.image.segments)

    def _is_static_word(self, address: Value, size_bytes: int) -> bool:
        """Whether it is one aligned word that the image owns; what else is there may be a device."""
        is_word = address.is_number and address.is_constant and size_bytes == 4 and address.low % 4 == 0
        return is_word and self._is_static(address.low)

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
        moved = set[str | None]()
        for access in instruction.accesses:
            for each in range(access.count):
                address = self.address_of(access, state, each)
                moved |= {access.base} if address.may_be_stack else set()
                if access.kind != AccessKind.STORE:
                    self._note_far(is_far=self._is_far(address))
                    may_hold = self._may_hold(address, access.bytes_each)
                    is_tainted |= may_hold
                    self.found_escape |= bool(others) and may_hold
                if access.kind != AccessKind.LOAD:
                    unknown_word = ANY if is_tainted else TOP
                    self.store(address, access.bytes_each, unknown_word, self.fresh(), state)
                    if instruction.timing_class in CONDITIONAL_STORES:  # what was there may be there still
                        for place in {address.low, STATIC + address.low} & state.values.keys():
                            state.drop(place)
        for register in instruction.writes - others:
            known = state.read(register).may_be_stack or is_tainted or register in moved
            state.write(register, ANY if known else TOP, self.fresh())
        state.flags.clear()

    @staticmethod
    def way_of(way: str, target: Value) -> str:
        """``way``, or ``jump`` of a return to a known number that was put where the return address was."""
        return "jump" if way == "return" and target.is_number and target != TOP else way

    def targets(self, value: Value, name: object = None) -> tuple[int, ...] | None:
        """The addresses that a jump to ``value``, called ``name``, may go to; None where they are not known."""
        if not value.is_number:
            return None
        known = words_named(name)
        is_known = known is not None and len(known) <= value.size
        return known if is_known else tuple(value.words()) if value.size <= MOST_TARGETS else None


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
