# SPDX-License-Identifier: 0BSD
"""What the checker knows where an instruction begins, and what a comparison or a join of ways makes of it.

Places are registers by name and words of memory (``int``): of the stack by their offset from the stack pointer at the
entry of the analysed function, of static memory by their address and 2**32; a word that a register was saved in has a
second place, `SAVED` and its offset, where *saved-registers* is assumed. A register of which nothing is written is
any number that is not derived from the stack pointer; a word of which nothing is written may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.certificate.values.kinds import Word, word
from wcet_probe.certificate.values.numbers import (
    ANY,
    TOP,
    WORD,
    Value,
    add,
    conjunction,
    constant,
    join,
    mirrored,
    number,
    opposite,
    parts,
    refined,
    shift_left,
    shift_right,
    signed,
    subtract,
    unsigned,
    with_low_bits,
    within,
)

Place = str | int
STATIC = WORD
"""The place of a word of static memory is its address and this."""
SAVED = -(1 << 40)
"""The place of a word of the stack as a register was saved there is its offset and this."""


class Comparison(NamedTuple):
    """What flags tell: two operands, by the names of their values, that were subtracted; or a result and zero.

    ``is_signed`` is None where the instruction that reads the flags decides. ``is_result`` says that only equality with
    zero and the sign are known. ``difference`` is the name of what the subtraction left, if it left something.
    ``holding`` are the relations, with whether they are signed, that were found to hold on the way. Bits of a condition
    field that were computed one by one are a comparison of what has no name and may be any word (`is_of_bits`).
    """

    left: object
    left_value: Value
    right: object
    right_value: Value
    is_signed: bool | None = None
    is_result: bool = False
    difference: object = None
    holding: frozenset[tuple[str, bool]] = frozenset()

    @property
    def is_of_bits(self) -> bool:
        """Whether the bits may be those of no comparison: then none follows of others, as greater of not less."""
        sides = self.left_value, self.right_value
        is_unknown = all(one.is_plain and one.high - one.low == WORD - 1 for one in sides)
        return is_unknown and self.left is self.right is None and not self.is_result


class Computed(NamedTuple):
    """The name of what is computed from one named value and a constant."""

    compute: Callable[[Value, Value], Value]
    operand: object
    constant: Value
    depth: int

    def value(self, operand: Value) -> Value:
        """What it is where the operand is ``operand``."""
        return self.compute(operand, self.constant)


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """The name of what one load found in a table of constants: one of ``words``. Of another load it is another name."""

    words: tuple[int, ...]


class Sum(NamedTuple):
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


def words_named(name: object) -> tuple[int, ...] | None:
    """All that can be called ``name``, where it is made of constants and one word of a table; None of other names."""
    if isinstance(name, Loaded):
        return name.words
    operands = words_named(name.operand) if isinstance(name, Computed) else None
    if operands is None or not isinstance(name, Computed):
        return None
    found = [name.value(constant(one)) for one in operands]
    exact = all(one.is_number and one.is_constant for one in found)
    return tuple(dict.fromkeys(one.low % WORD for one in found)) if exact else None


def name_of_sum(left: object, one: Value, right: object, other: Value) -> object:
    """The name of the sum of two values, neither being a constant of the code, by their names; None if it has none."""
    for name, added in ((left, other), (right, one)):
        if added.is_number and added.is_constant and words_named(name) is not None:
            return computed(add, name, added)
    if left == right and words_named(left) is not None:
        return computed(shift_left, left, constant(1))
    return None if right is None else sum_of(left, right)


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
        kinds: by name, what values are made of, where somebody follows that, see `module_machine`.
        carry: of ARM, the carry flag where the instruction before told it; None where nothing does, as where ways meet.
    """

    values: dict[Place, Value]
    names: dict[Place, object] = field(default_factory=dict)
    flags: dict[str, Comparison] = field(default_factory=dict)
    kinds: dict[object, Word] = field(default_factory=dict)
    carry: Value | None = None

    def copy(self) -> State:
        """The same state, to be changed."""
        return State(dict(self.values), dict(self.names), dict(self.flags), dict(self.kinds), self.carry)

    def read(self, place: Place) -> Value:
        """What ``place`` holds."""
        return self.values.get(place, TOP if isinstance(place, str) else ANY)

    def name(self, place: Place) -> object:
        """The name of the value in ``place``."""
        return self.names.get(place, place)

    def called(self, name: object) -> list[Place]:
        """The places with a value that is called ``name``."""
        names = self.names
        return [place for place in self.values if names.get(place, place) == name]

    def write(self, place: Place, value: Value, name: object) -> None:
        """``place`` holds ``value``, whose name is ``name``."""
        self.values[place] = value
        self.names[place] = name

    def drop(self, place: Place) -> None:
        """Nothing is known of a word of the stack any more; what was loaded from it keeps the name of its old value."""
        self.values.pop(place, None)
        self.names[place] = object()


def saved_words(state: State) -> list[int]:
    """The places of words in which registers are saved."""
    return [place for place in state.values if isinstance(place, int) and is_saved(place)]


def is_saved(place: Place) -> bool:
    """Whether it is that of a word as a register was saved there."""
    return isinstance(place, int) and place < SAVED // 2


def known_words(state: State) -> set[int]:
    """The words of memory that are known, or by whose first value something is named, or made of what is told."""
    flags = state.flags.values()
    named = [*state.names.values(), *(name for one in flags for name in (one.left, one.right, one.difference))]
    names = {root for name in named for root in _roots(name)}
    return {place for place in {*state.values, *state.names, *state.kinds, *names} if isinstance(place, int)}


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


_STRICT = {">=": ">", "<=": "<"}


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
    if asserted.is_of_bits:
        result = state.copy()
        result.flags[flags] = asserted._replace(holding=asserted.holding | {(relation, is_signed)})
        return result
    return _compared(state, flags, asserted, relation, is_signed=is_signed)


def _compared(state: State, flags: str, asserted: Comparison, relation: str, *, is_signed: bool) -> State | None:
    """``state`` where what ``asserted`` compares, a comparison, stands in ``relation``; None where that cannot be."""
    found = {(relation, is_signed)}
    if relation in _STRICT and any(one == "!=" for one, _ in asserted.holding):
        relation = _STRICT[relation]
    # What other flags told of the same value since they were set holds as well.
    sides = (asserted.left, asserted.left_value), (asserted.right, asserted.right_value)
    one, other = (held_by(state, *side) for side in sides)
    is_one_word = one == other and one.is_constant and not one.is_plain
    is_same = asserted.left == asserted.right and asserted.left is not None
    if (is_one_word or is_same) and relation in {"!=", "<", ">"}:
        return None
    ways = ((asserted.left, asserted.right, other, relation), (asserted.right, asserted.left, one, mirrored(relation)))
    if any(_contradicts(*each, is_signed=is_signed) for each in ways):
        return None
    left = refined(one, relation, other, is_signed=is_signed)
    right = refined(other, mirrored(relation), one, is_signed=is_signed)
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
    holding = asserted.holding | found | {(relation, is_signed)}
    result.flags[flags] = asserted._replace(left_value=left, right_value=right, holding=holding)
    return result


def _contradicts(name: object, part: object, value: Value, relation: str, *, is_signed: bool) -> bool:
    """Whether what is called ``name``, a constant more or less than ``value``, called ``part``, cannot stand so to it.

    *Soundness:* neither goes round in the words that are compared, all of which lie on one side of the other.
    """
    if part is None or not isinstance(name, Computed) or name.compute not in {add, subtract} or name.operand != part:
        return False
    if not (value.is_number and name.constant.is_number and name.constant.is_constant):
        return False
    step = signed(name.constant.low) * (1 if name.compute is add else -1)
    least, most = (-WORD // 2, WORD // 2 - 1) if is_signed else (0, WORD - 1)
    is_within = least <= min(value.low, value.low + step) and max(value.high, value.high + step) <= most
    return is_within and relation in ({"==", ">", ">="} if step < 0 else {"==", "<", "<="} if step else set())


def apart(state: State) -> list[State]:
    """``state`` with a number of which flags tell below 0, and not below it, if it goes from one to the other.

    *Soundness:* in one of the two it is, and each relation that was found to hold holds of it there.
    """
    for flags, told in state.flags.items():
        places = state.called(told.left)
        value = state.values[places[0]] if places else TOP
        if value.is_number and value.low < 0 <= value.high and told.holding:
            each = [State({**state.values, **dict.fromkeys(places, part)}, state.names, state.flags, state.kinds)
                    for part in parts(value, is_signed=False)]  # fmt: skip
            for relation, is_signed in told.holding:
                found = [assume(one, flags, relation, is_signed=is_signed) for one in each]
                each = [one for one in found if one is not None]
            return each
    return [state]


def held_by(state: State, name: object, value: Value) -> Value:
    """The least range in which what is called ``name`` lies, if in ``value``: by the places that hold it, too."""
    for place in state.called(name) if name is not None else ():
        own = state.values[place]
        if within(own, value):
            value = own
    return value


def _tighten(state: State, name: object, value: Value) -> bool:
    """Each place with the value called ``name`` holds ``value``, which is part of what it held there.

    Returns:
        Whether that can be, by what ``name`` is computed from.
    """
    names = state.names
    for place, old in state.values.items():
        own = names.get(place, place)
        if own == name:
            state.values[place] = value
        elif isinstance(own, Computed):
            known = narrowed(own, name, value)
            state.values[place] = old if known is None or not within(known, old) else known
    if isinstance(name, str | int) and name not in state.names:
        state.values[name] = value
    for own, other in ((name.left, name.right), (name.right, name.left)) if isinstance(name, Sum) else ():
        rest = _known(state, other)
        if value.is_plain and rest.is_plain and not _tighten_origin(state, own, subtract(value, rest)):
            return False
    origin = _undone(state, name, value) if isinstance(name, Computed) else None
    return origin is None or not isinstance(name, Computed) or _tighten_origin(state, name.operand, origin)


def _tighten_origin(state: State, name: object, value: Value) -> bool:
    """The value called ``name`` is in ``value``, too; whether that can be."""
    held = [state.values[place] for place in state.called(name)]
    if not held and isinstance(name, str) and name not in state.names:
        held = [TOP]
    known: Value | None = held[0] if held else value
    for is_signed in (False, True) if held else ():
        known = known and refined(known, "==", value, is_signed=is_signed)
    return known is not None and _tighten(state, name, known)


def _undone(state: State, name: Computed, value: Value) -> Value | None:
    """What was computed upon, if ``value`` came of it; None where that is not told.

    *Soundness:* adding and subtracting a constant lose nothing modulo 2**32; a shift to the right by k bits loses what
    was below 2**k, and a mask some of the other bits: of a number the upper ones, where it is one of the low bits.
    """
    if not (value.is_plain and name.constant.is_number and name.constant.is_constant):
        return None
    bits = name.constant.low
    if name.compute is add:
        return subtract(value, name.constant)
    if name.compute is subtract:
        return add(value, name.constant)
    if name.compute is conjunction:
        word, whole = unsigned(value), _known(state, name.operand)
        if whole.is_number and bits and not bits & (bits + 1):
            return with_low_bits(whole, bits + 1, word)
        return number(word.low, min(word.high + WORD - 1 - bits, WORD - 1))._replace(base=value.base)
    if name.compute is shift_right and 0 < bits < 32:
        word, most = unsigned(value), (1 << 32 - bits) - 1
        below = (min(word.high, most) + 1 << bits) - 1
        return number(min(word.low, most) << bits, below)._replace(base=value.base)
    return None


def _known(state: State, name: object) -> Value:
    """What is called ``name``: as a place holds it, or as it is computed from what one holds; else anything."""
    held = state.called(name)
    if held:
        return held_by(state, name, state.values[held[0]])
    if isinstance(name, Computed):
        return name.value(_known(state, name.operand))
    return state.read(name) if isinstance(name, str) and name not in state.names else ANY


def narrowed(own: object, name: object, value: Value) -> Value | None:
    """What is called ``own`` where what is called ``name`` is ``value``; None where that tells nothing."""
    if own == name:
        return value
    if not isinstance(own, Computed):
        return None
    operand = narrowed(own.operand, name, value)
    return None if operand is None else own.value(operand)


def between_blocks(state: State, equal: Mapping[Place, Place] = MappingProxyType({})) -> State:
    """``state`` with values named by their places, or those they are ``equal`` to, and flags that speak of these."""
    places = {state.name(place): equal.get(place, place) for place in state.values} if state.flags else {}

    def renamed(name: object) -> object:
        if name is None or (isinstance(name, str | int) and state.name(name) == name):
            return equal.get(name, name) if isinstance(name, str | int) else name
        return places.get(name, object())

    flags = {
        key: one._replace(left=renamed(one.left), right=renamed(one.right), difference=renamed(one.difference))
        for key, one in state.flags.items()
    }
    return State(dict(state.values), dict(equal), flags)


def joined(a: State, b: State) -> State:
    """What is known on both ways; places of one name on each have one name, and flags speak of them still."""
    values = {
        place: join(a.read(place), b.read(place))
        for place in {**a.values, **b.values}
        if isinstance(place, str) or (place in a.values and place in b.values)
    }
    places = {**values, **a.names, **b.names}  # a word that was dropped has a name and no value
    both, names = dict[tuple[object, object], object](), dict[Place, object]()
    for place in places:
        one, other = a.names.get(place, place), b.names.get(place, place)
        names[place] = one if one == other else both.setdefault((one, other), object())
    found = {key: _both(asserted, b.flags[key], both) for key, asserted in a.flags.items() if key in b.flags}
    flags = {key: asserted for key, asserted in found.items() if asserted is not None}
    kinds = {name: word((*own, *b.kinds[name])) for name, own in a.kinds.items() if name in b.kinds}
    for place in places if a.kinds and b.kinds else ():
        own, others = a.kinds.get(a.name(place)), b.kinds.get(b.name(place))
        if own is not None and others is not None:
            kinds[names[place]] = word((*own, *others))
    return State(values, names, flags, kinds)


def _both(a: Comparison, b: Comparison, named: Mapping[tuple[object, object], object]) -> Comparison | None:
    """What two comparisons of the same operands tell together; None of others."""
    left, right, difference = (
        one if one == other else named.get((one, other))
        for one, other in ((a.left, b.left), (a.right, b.right), (a.difference, b.difference))
    )
    common = Comparison(
        left,
        join(a.left_value, b.left_value),
        right,
        join(a.right_value, b.right_value),
        a.is_signed,
        a.is_result,
        difference,
        a.holding & b.holding,
    )
    is_same = (a.is_signed, a.is_result) == (b.is_signed, b.is_result)
    return common if is_same and (a == b or left is not None or right is not None) else None
