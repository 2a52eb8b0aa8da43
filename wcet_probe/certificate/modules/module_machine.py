# SPDX-License-Identifier: 0BSD
"""The checker's machine, as it follows besides of what words are made (`kinds`): a module's operations, one by one.

What the cells of the allocator's memory hold is told from outside; a load gives what the cells tell that it may go to,
and each store is handed on. Which word an access goes to is asked of its address: a number in the image's data, or,
by *objects-apart*, what it is made of. The block that free is given belongs to the caller until the call: what is
loaded at a constant distance behind its start may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import NamedTuple

from wcet_probe.certificate.machines import powerpc
from wcet_probe.certificate.machines.computations import mask_of
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.operands import NUMBER as DIGITS
from wcet_probe.certificate.machines.operands import Computation, computation, operands_of, register_named
from wcet_probe.certificate.modules.image_words import constant_word, number_word, table_word
from wcet_probe.certificate.modules.instruction_kinds import (
    BITWISE,
    Combined,
    Operand,
    constants_of,
    flags_set,
    is_sum,
    learn_bits,
    leaves_number,
    multiplied,
    otherwise,
    summed,
    unconditional,
)
from wcet_probe.certificate.values.congruences import UNKNOWN_SPAN, Congruence
from wcet_probe.certificate.values.kinds import (
    ANYTHING,
    ARENA,
    CONSTANT,
    NUMBER,
    Part,
    Word,
    added,
    bitwise,
    computed,
    followed,
    indices_of,
    known_as,
    links_of,
    masked,
    multiples,
    new,
    nulls_of,
    numbers_of,
    scaled,
    shifted,
    word,
)
from wcet_probe.certificate.values.numbers import TOP, WORD, Value, constant, signed
from wcet_probe.certificate.values.residues import ALL, MODULUS, members, of_class, of_value, residue
from wcet_probe.certificate.values.state import Comparison, Place, State
from wcet_probe.model.image import Image, Segment
from wcet_probe.model.instruction import Access, AccessKind, Instruction, Shift
from wcet_probe.model.target import Isa

_WORD_BYTES = 4
_STEP = re.compile(r"\], #(-?(?:0x)?[0-9a-f]+)$")
"""By how much the base of an access moves behind it."""
_TEST = re.compile(r"tst(?:\.w)? (\w+), #((?:0x)?[0-9a-f]+)")
_BY_REGISTER = re.compile(r"([a-z]+?)s? \w+, (\w+), (\w+), (lsl|lsr|asr|ror) ([a-z]+\w*)")
"""A computation whose last operand is shifted by a register."""
REST = "static"
"""The cell of all words of static data that have none of their own."""


class Reached(NamedTuple):
    """The cells that an access may go to.

    Attributes:
        cells: their names.
        is_whole: whether it is surely one aligned word.
        is_computed: whether the lemmas speak of words at its place.
    """

    cells: frozenset[str]
    is_whole: bool
    is_computed: bool = False


class Followed(NamedTuple):
    """An access of the instruction at ``address``, and the residues of the numbers that its address is made of."""

    address: int
    roots: int | None


class Accessed(NamedTuple):
    """A word that an instruction accesses: of one of its accesses the one of that number."""

    address: int
    access: int
    number: int


class ModuleMachine(Machine):
    """A machine that follows what words are made of.

    Attributes:
        stored: is told of what is stored in a cell, and by which instruction.
        followed: where accesses go, but for those to the stack and to places that are known as numbers.
        unknown: instructions with a store of which nobody knows where it goes.
        aligned: residues of addresses, by instruction, access and word of it.
    """

    unstored: Mapping[str, Word] = {}
    """What cells hold besides, of which it is not known that it is overwritten already."""
    stepped: Collection[str] = ()
    """Registers that a loop steps through a table."""
    behind_nothing: Word = ANYTHING
    """What is loaded by an address that is made of nothing that could be one."""

    def __init__(
        self,
        image: Image,
        cells: Mapping[str, Word],
        stored: Callable[[str, Word, int], None],
        counted: Collection[int] = (),
        links: Collection[tuple[int, int]] = (),
    ) -> None:
        """``cells`` tell what memory holds, of others nothing is known; the rest are loads of `counted_words`."""
        super().__init__(image)
        self.stored, self.followed, self.unknown = stored, list[Followed](), list[int]()
        self.aligned = dict[Accessed, int]()
        self._cells, self._counted, self._links = cells, counted, links
        self._exact = sorted(int(name.partition(":")[2], 16) for name in cells if name.startswith(f"{REST}:"))
        self._before = State({})
        self._instruction: Instruction | None = None
        self._addresses: dict[int, tuple[Value, Word]] = {}
        self._transfers, self._is_told = 0, True
        self._tests: dict[object, tuple[object, Callable[[int], int]]] = {}
        self._unions: dict[object, tuple[object, object]] = {}
        self._computed_numbers = set[object]()

    # -------------------------------------------------------------------------------------------------------- words

    def word_in(self, state: State, place: Place) -> Word:
        """What ``place`` holds."""
        name = state.name(place)
        return self.narrowed(state.read(place), state.kinds.get(name, ANYTHING), is_known=self._is_known(name))

    def _is_known(self, name: object) -> bool:
        """Whether it is known of what this is made, whatever number it is: told of the node, or computed so."""
        return isinstance(name, str | int) or name in self._computed_numbers

    def narrowed(self, value: Value, parts: Word, *, is_known: bool = False) -> Word:
        """``parts``, which are known as ``value``, too; if not ``is_known``, a constant is what it looks like."""
        if not value.is_number:  # nor is what may be derived from the stack pointer
            return ANYTHING
        if value.is_constant:
            own = constant_word(self.image, value.low % WORD) if parts else ()
            if value.low % WORD == 0 or not is_known or parts == ANYTHING or word(own) != ANYTHING:
                return nulls_of(parts) if value.low % WORD == 0 else own
        return number_word(value, parts)

    def learn(self, state: State) -> None:
        """What is made of a word whose lowest bits were tested, and are zero."""
        for one in list(state.flags.values()):
            if isinstance(one.left, Combined):
                learn_bits(state, one.left, {relation for relation, _ in one.holding})
        known = {state.name(place): value for place, value in state.values.items()}
        known |= {one.left: one.left_value for one in state.flags.values()}
        for name in (*self._tests, *self._unions):
            value = known.get(name)
            if value is not None and value.is_number and value.is_constant:
                self._is(state, name, value.low % WORD)

    def _is(self, state: State, name: object, value: int) -> None:
        """What is called ``name`` is ``value``, and what that tells of what it was computed from."""
        for part in self._unions.get(name, ()) if value == 0 else ():
            self._is(state, part, 0)
        if name in self._tests:
            own, compute = self._tests[name]
            possible = sum(residue(one) for one in range(MODULUS) if compute(one) % WORD == value)
            self._is_among(state, own, possible, is_zero=value == 0)

    def _is_among(self, state: State, name: object, possible: int, *, is_zero: bool) -> None:
        """What is called ``name`` has one of these residues; ``is_zero`` tells that these are of bits that are 0."""
        for part in self._unions.get(name, ()) if is_zero else ():
            self._is_among(state, part, possible, is_zero=True)
        if name in state.kinds and state.kinds[name] != ANYTHING:
            state.kinds[name] = known_as(state.kinds[name], possible)

    # ------------------------------------------------------------------------------------------------------- memory

    def address_of(self, access: Access, state: State, number_of_access: int = 0) -> Value:
        """As a machine does; what an address is made of is an address from here on, and no null."""
        value = Machine.address_of(self, access, state, number_of_access)
        found = self.narrowed(value, self._address_word(access, state, number_of_access))
        found = ANYTHING if value.may_be_stack else followed(found)
        self._addresses.setdefault(number_of_access, (value, found))
        if access.base is not None and access.index is None and not (value.may_be_stack or value.is_constant):
            own = self.word_in(state, access.base)
            offset = self._displacement(access, number_of_access)
            if own != ANYTHING:
                kept = tuple(one for one in own if followed(self._moved((one,), offset)))
                state.kinds[state.name(access.base)] = kept
        return value

    @staticmethod
    def _displacement(access: Access, number_of_access: int) -> int:
        return access.displacement + number_of_access * access.bytes_each

    def _moved(self, parts: Word, offset: int) -> Word:
        return added(parts, constant_word(self.image, offset % WORD), constant=offset) if offset else parts

    def _address_word(self, access: Access, state: State, number_of_access: int) -> Word:
        if access.align_mask != WORD - 1:
            return ANYTHING
        offset = self._displacement(access, number_of_access)
        if access.base is None:
            return constant_word(self.image, offset % WORD) if access.index is None else ANYTHING
        found = self.word_in(state, access.base)
        if access.index is not None:
            index, value = self.word_in(state, access.index), state.read(access.index)
            if access.shift is not Shift.LSL:
                index = computed([index])
            elif access.shift_bits:
                index = scaled(index, 1 << access.shift_bits)
            sign, known = -1 if access.subtract_index else 1, None
            if access.shift is Shift.LSL and value.is_number and value.is_constant:
                known = signed(value.low << access.shift_bits)
                index = constant_word(self.image, known % WORD)
            base = state.read(access.base)
            if known is None and sign > 0 and base.is_number and base.is_constant:
                found, index, known = index, found, signed(base.low)
            found = added(found, index, sign=sign, constant=known)
        return self._moved(found, offset)

    def load(self, address: Value, size_bytes: int, state: State, *, is_signed: bool = False) -> tuple[Value, object]:
        """As a machine does; what is loaded is told by the cells."""
        made_of = self._next(address)
        value, name = Machine.load(self, address, size_bytes, state, is_signed=is_signed)
        if not self._is_of_stack(address, made_of) and name not in state.kinds:
            state.kinds[name] = self._loaded(address, made_of, size_bytes)
        return value, name

    def _loaded(self, place: Value, made_of: Word, size_bytes: int) -> Word:
        if size_bytes < _WORD_BYTES:
            return (Part(NUMBER, False, ALL),)
        table = self.table(place, size_bytes)
        if table is not None:
            return word(part for one in table for part in constant_word(self.image, one))
        if not made_of and self._segment(place) is None:
            return self.behind_nothing
        if made_of and all(part.kind == CONSTANT for part in made_of):
            return table_word(self.image, reduce(or_, (part.value for part in made_of)))
        reached = self._reached(place, made_of, size_bytes)
        if reached is None or any(part.is_of_payload for part in made_of) or not all(one.is_whole for one in reached):
            return ANYTHING
        address = 0 if self._instruction is None else self._instruction.address
        found = list[Part]()
        for one in reached:
            each = ((*self._cells.get(name, ANYTHING), *self.unstored.get(name, ())) for name in one.cells)
            loaded = new(tuple(part for parts in each for part in parts), is_loaded=one.is_computed)
            found += links_of(loaded) if one.is_computed and (address, self._transfers - 1) in self._links else loaded
        return numbers_of(word(found)) if address in self._counted else word(found)

    def store(self, address: Value, size_bytes: int, value: Value, name: object, state: State) -> None:
        """As a machine does; what is stored is told of each cell that it may go to."""
        made_of = self._next(address)
        stored = self.narrowed(value, state.kinds.get(name, ANYTHING), is_known=self._is_known(name))
        Machine.store(self, address, size_bytes, value, name, state)
        if self._is_of_stack(address, made_of):
            return
        reached = self._reached(address, made_of, size_bytes)
        assert self._instruction is not None  # noqa: S101  (one is executed)
        if reached is None:
            self.unknown.append(self._instruction.address)
            return
        for one in reached:
            parts = new(stored, is_loaded=one.is_computed) if one.is_whole else ANYTHING
            for cell in sorted(one.cells):
                self.stored(cell, parts, self._instruction.address)

    def _next(self, address: Value) -> Word:
        """What the address of the next transfer of this instruction is made of."""
        known, found = self._addresses.get(self._transfers, (None, ANYTHING))
        self._transfers += 1
        return found if self._is_told and known == address else ANYTHING

    def _is_of_stack(self, address: Value, made_of: Word) -> bool:
        """Whether an access is to the stack; each that is not to a known place is noted."""
        is_of_stack = address.base == "stack"
        if not (address.is_constant if is_of_stack else self._segment(address)):
            assert self._instruction is not None  # noqa: S101  (one is executed)
            is_known = not is_of_stack and made_of and all(part.is_address for part in made_of)
            roots = reduce(or_, (part.roots for part in made_of)) if is_known else None
            self.followed.append(Followed(self._instruction.address, roots))
        return is_of_stack

    def _segment(self, address: Value) -> Segment | None:
        """The part of the image that an address, known as a number, is in."""
        low, high, segments = address.low, address.high, self.image.segments
        inside = (one for one in segments if one.address <= low and high < one.address + one.size_bytes)
        return next(inside, None) if address.is_number else None

    def _reached(self, address: Value, made_of: Word, size_bytes: int) -> list[Reached] | None:
        """The cells that an access may go to; None where nobody knows, and of what is not written."""
        segment = self._segment(address)
        if segment is not None:
            is_inside = address.high + size_bytes <= segment.address + segment.size_bytes
            if not (segment.writable and is_inside):
                return None
            found = self._of_static(address.low, address.high, of_value(address), size_bytes)
            return [found._replace(is_computed=bool(made_of) and all(part.is_computed for part in made_of))]
        if address.may_be_stack or not made_of or not all(part.is_memory for part in made_of):
            return None
        each = (
            _of_arena(part.value, size_bytes)
            if part.is_arena
            else self._of_static(*(part.reach or (0, WORD - 1)), part.value, size_bytes)
            for part in made_of
        )
        return [one._replace(is_computed=part.is_computed) for part, one in zip(made_of, each, strict=True)]

    def _of_static(self, low: int, high: int, known: int, size_bytes: int) -> Reached:
        is_whole = _is_whole(known, size_bytes)
        own = {
            one
            for one in self._exact
            for first in range(one - size_bytes + 1, one + _WORD_BYTES)
            if low <= first <= high and known >> first % MODULUS & 1
        }
        is_one = is_whole and low == high and own == {low}
        return Reached(frozenset(f"{REST}:{one:#x}" for one in own) | (set() if is_one else {REST}), is_whole)

    # ------------------------------------------------------------------------------------------------- instructions

    def begin(self, instruction: Instruction, state: State) -> None:
        """``instruction`` is executed next, in ``state``."""
        Machine.begin(self, instruction, state)
        self._instruction, self._before = instruction, state.copy()
        self._addresses, self._transfers, self._is_told = {}, 0, True
        for number, access in enumerate(instruction.accesses):
            for each in range(access.count):
                key = Accessed(instruction.address, number, each)
                self.aligned[key] = self.aligned.get(key, 0) | self._residues(access, state, each)

    def _residues(self, access: Access, state: State, number_of_access: int) -> int:
        """The residues of the address of an access."""
        value = Machine.address_of(self, access, state, number_of_access)
        found = self.narrowed(value, self._address_word(access, state, number_of_access))
        return ALL if found == ANYTHING else reduce(or_, (part.value for part in followed(found)), 0)

    def havoc(self, instruction: Instruction, state: State, stored: Collection[str] = ()) -> None:
        """As a machine does; which of its accesses store is not followed, so that only numbers tell where these go."""
        self._is_told = False
        loads = [one for one in instruction.accesses if one.kind is not AccessKind.STORE]
        self.followed += [Followed(instruction.address, None)] * len(loads)
        Machine.havoc(self, instruction, state, stored)

    def released(self, outcomes: list[Outcome], stack_pointer: str) -> list[Outcome]:
        """As a machine does; what the instruction has computed is told by what it was computed from."""
        for outcome in Machine.released(self, outcomes, stack_pointer):
            state, instruction = outcome.state, self._instruction
            assert instruction is not None  # noqa: S101  (it was executed)
            if self.image.isa is Isa.POWERPC and not instruction.accesses:
                self._combine(instruction, state)
            self._name_test(instruction, state)
            for register in sorted(instruction.writes):
                name = state.name(register)
                is_old = isinstance(name, str | int) or name in self._before.names.values()
                if name not in state.kinds and not is_old:
                    state.kinds[name] = self._result(instruction, register, name, state)
        return outcomes

    def _name_test(self, instruction: Instruction, state: State) -> None:
        """Name what Arm's flags tell the lowest bits of, which no register holds."""
        test, flags = _TEST.fullmatch(unconditional(instruction, self.image.isa).text), flags_set(self._before, state)
        if test is not None and flags is not None and flags.is_result and 0 < int(test[2], 0) < MODULUS:
            name = self.fresh() if flags.left is None else flags.left
            self._tests[name] = self._before.name(register_named(test[1])), int(test[2], 0).__and__
            state.flags["nzcv"] = flags._replace(left=name)

    def _combine(self, instruction: Instruction, state: State) -> None:
        """Note of what a bit of a condition field was computed, where it is not known."""
        encoding = self.encoding(instruction.address) or 0
        compute = powerpc.CONDITION_BITS.get(encoding >> 1 & 0x3FF) if encoding >> 26 == 19 else None
        bit, one, other = (encoding >> low & 31 for low in (21, 16, 11))
        if compute is not None and f"cr{bit // 4}" not in state.flags:
            fields = self._before.flags.get(f"cr{one // 4}"), self._before.flags.get(f"cr{other // 4}")
            left = Combined(compute, bit, (one, other), fields)
            state.flags[f"cr{bit // 4}"] = Comparison(left, TOP, None, TOP, is_signed=True)

    def _result(self, instruction: Instruction, register: str, name: object, state: State) -> Word:
        """What an instruction leaves in ``register``, which is called ``name``; ``state`` is behind it."""
        if instruction.accesses:
            is_moved = register == instruction.accesses[0].base and register not in instruction.loaded
            return self._written_back(instruction, register, state) if is_moved and self._is_told else ANYTHING
        found = computation(unconditional(instruction, self.image.isa), register)
        if found is None:
            words = [self.word_in(self._before, one) for one in sorted(instruction.reads)]
            by = _BY_REGISTER.fullmatch(unconditional(instruction, self.image.isa).text)
            if by is not None:
                one, other = (self.word_in(self._before, register_named(text)) for text in by.group(2, 3))
                other = self._shifted(other, by[4], register_named(by[5]))
                made = summed(by[1], [(one, None), (other, None)])
                if by[1] in BITWISE or made is not None:
                    return bitwise(BITWISE[by[1]], one, other) if made is None else made
            return otherwise(words and [*words, *(constant_word(self.image, one) for one in constants_of(instruction))])
        self._note(found, name)
        if leaves_number(found, is_known=self._is_known(self._before.name(found.operands[0]))):
            self._computed_numbers.add(name)
        made, value = self._computed(found), state.read(register)
        is_small = value.is_number and value.high - value.low < UNKNOWN_SPAN
        return indices_of(made) if is_small and not is_sum(found.name) else made

    def _written_back(self, instruction: Instruction, register: str, state: State) -> Word:
        """What an access leaves in the register of its address."""
        if self.image.isa is Isa.POWERPC or "!" in instruction.text:
            return self._addresses[0][1] if 0 in self._addresses and "{" not in instruction.text else ANYTHING
        parts = state.kinds.get(self._before.name(register), ANYTHING)
        own, step = self.narrowed(self._before.read(register), parts), _STEP.search(instruction.text)
        if step is not None:
            return self._moved(own, int(step[1], 0))
        found = operands_of(unconditional(instruction, self.image.isa), register)
        if found is None or found[0] not in {"add", "sub"} or found[2] != 0:
            return ANYTHING
        by, known = self._operand(found[1][1])
        return added(own, by, sign=1 if found[0] == "add" else -1, constant=known)

    def _operand(self, text: str) -> Operand:
        """A register or a constant, and what it is if that is known, as a signed number."""
        value = constant(int(text, 0)) if re.fullmatch(DIGITS, text) else self._before.read(text)
        parts = constant_word(self.image, value.low) if re.fullmatch(DIGITS, text) else self.word_in(self._before, text)
        if not (value.is_number and value.is_constant):
            return parts, None
        return parts, signed(value.low)

    def _note(self, found: Computation, name: object) -> None:
        """Note that a result tells of the lowest bits of an operand, or unites the bits of two."""
        own = self._before.name(found.operands[0])
        mask, last = None if found.bits else mask_of(found.name, found.operands[1:]), found.operands[-1]
        if mask is not None and 0 < mask < MODULUS:
            self._tests[name] = own, mask.__and__
        if found.name in {"lsl", "slwi"} and re.fullmatch(DIGITS, last) and 32 - 6 <= int(last, 0) < 32:
            self._tests[name] = own, (1 << int(last, 0)).__mul__
        if found.name in {"or", "orr"} and not found.bits and not re.fullmatch(DIGITS, found.operands[-1]):
            self._unions[name] = own, self._before.name(found.operands[-1])

    def _computed(self, found: Computation) -> Word:
        name, texts, shift, bits = found
        each = [self._operand(text) for text in texts]
        if bits:
            last, _ = each[-1]
            other = indices_of(computed([last])) if shift == Shift.LSR.value else computed([last])
            each[-1] = (scaled(last, 1 << bits) if shift == Shift.LSL.value else other), None
        mask = mask_of(name, texts[1:])
        if name == "and" and len(each) == 2 and each[0][1] is not None:
            each.reverse()
        if name in {"and", "bic"} and mask is None and len(each) == 2 and each[1][1] is not None:
            mask = (each[1][1] if name == "and" else ~each[1][1]) % WORD
        if mask is not None:
            return masked(each[0][0], mask)
        if name in BITWISE and len(each) == 2:
            return bitwise(BITWISE[name], each[0][0], each[1][0])
        if name in {"lsl", "slw"} and not re.fullmatch(DIGITS, texts[-1]):
            return self._shifted(each[0][0], "lsl", texts[-1])
        made = summed(name, each)
        made = multiplied(name, each) if made is None else made
        return computed([parts for parts, _ in each]) if made is None else made

    def _shifted(self, parts: Word, way: str, register: str) -> Word:
        """What ``parts`` become that are shifted by a register."""
        amount = self._before.read(register)
        if way == "lsl" and amount.is_number and 0 <= amount.low <= amount.high < MODULUS:
            return shifted(parts, amount.words())
        return computed([parts, self.word_in(self._before, register)], multiples(parts) if way == "lsl" else ALL)


def _is_whole(known: int, size_bytes: int) -> bool:
    return size_bytes == _WORD_BYTES and known & ~of_class(Congruence(_WORD_BYTES, 0)) == 0


def _of_arena(known: int, size_bytes: int) -> Reached:
    places = {
        (one + byte) % MODULUS // _WORD_BYTES * _WORD_BYTES for one in members(known) for byte in range(size_bytes)
    }
    return Reached(frozenset(f"{ARENA}:{one}" for one in places), _is_whole(known, size_bytes))
