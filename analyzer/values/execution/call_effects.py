"""What a call does to the state of its caller, where the callee is not expanded but analysed once by itself.

A callee is analysed for a caller of which nothing is known but which registers surely hold numbers, and whether a stack
address may have been stored, on the stack or outside of it. Where it returns, its states tell which registers it gives
back, what it may have written, and of which kind its results are.

Words: summary, calling convention, abstract state (docs/explanation/glossary.md).

*Soundness:* the callee's analysis covers each state that its caller can be in: registers and memory hold anything, and
what may be an address of the caller's stack is an address of any kind (``Base.ANY``), whose stores may go anywhere; of
one a little behind what a register held at entry (`argument_pointers`) the caller knows where it goes. Stack addresses
of the callee are offsets from its stack pointer at entry, which the caller knows or else loses its whole stack. A
callee that does not surely give back the stack pointer is refused, and one that is called with a stack pointer that
may not be aligned, as what is known of its frame and of the low bits of addresses rests on that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.states.argument_pointers import Pointed, is_above, least_on_stack, pointed_by
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.held_addresses import (
    ANYWHERE,
    Held,
    both,
    moved,
    register_at_entry,
)
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import SAVED, Location
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.errors import AnalysisError
from wcet_probe.identity import Same
from wcet_probe.model.target import Isa

_BEHIND_ALL_OPERATIONS = 1 << 16
"""Number of an operation that no instruction has: where a call's results are defined."""
_FAR = 1 << 31
_WHOLE_STACK = (-_FAR, _FAR - 1)
_ALL_MEMORY = (0, (1 << 32) - 1)
_CORES = 16


_SAVED: Mapping[Isa, Sequence[str]] = {
    Isa.ARM: tuple(f"r{number}" for number in range(4, 12)),
    Isa.THUMB: tuple(f"r{number}" for number in range(4, 12)),
    Isa.POWERPC: tuple(f"r{number}" for number in range(14, 32)),
}
"""Registers that callees give back, by convention; whether one does is proved."""


_FLOATS: Mapping[Isa, Sequence[str]] = {
    Isa.ARM: tuple(f"d{number}" for number in range(32)),
    Isa.THUMB: tuple(f"d{number}" for number in range(32)),
    Isa.POWERPC: tuple(f"f{number}" for number in range(32)),
}


class CallKey(NamedTuple):
    """What a callee is analysed for: its entry, registers that may hold no number, whether stack addresses escape.

    Unless the stack ``holds`` addresses of it, none was stored there. Where it is not ``is_aligned``, the stack pointer
    may be no multiple of what the calling convention asks for.
    """

    target: int
    pointers: frozenset[Location]
    escapes: bool
    is_aligned: bool
    below: frozenset[Location]
    holds: bool = True


def saved_registers(lifter: Lifter) -> list[Location]:
    """The registers that callees give back by convention."""
    found = (lifter.registers[name] for name in _SAVED[lifter.isa])
    return [Location("register", one.offset, one.size_bytes) for one in found]


@lru_cache(_CORES)
def _float_registers(registers: Same[Mapping[str, Varnode]], isa: Isa) -> frozenset[Location]:
    wide = [registers.value[name] for name in _FLOATS[isa] if name in registers.value]
    if isa is Isa.POWERPC:
        return frozenset(Location(one.space, one.offset, one.size_bytes) for one in wide)
    return frozenset(Location(one.space, one.offset + behind, 4) for one in wide for behind in (0, 4))


def float_registers(lifter: Lifter) -> frozenset[Location]:
    """The registers of floating point as p-code names them: on Arm by words, see `float_moves`."""
    return _float_registers(Same(lifter.registers), lifter.isa)


def plain_call(target: int, lifter: Lifter) -> CallKey:
    """For what a callee is analysed that is called with numbers and an aligned stack pointer."""
    saved = frozenset(saved_registers(lifter))
    return CallKey(target, saved, escapes=False, is_aligned=True, below=saved, holds=False)


class Written(NamedTuple):
    """Bytes from ``low`` to ``high`` that may be written: of the stack, by offset, of memory by address, or of both."""

    base: Base
    low: int
    high: int


_ANYWHERE = Written(Base.ANY, *_WHOLE_STACK)


class WrittenThrough(NamedTuple):
    """Bytes from ``low`` to ``high`` that may be written, counted from where a register points at the call."""

    register: Location
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Result:
    """A register that may be another after the call: what it is measured from, and what it can be."""

    location: Location
    base: Base
    value: StridedInterval


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call does.

    Attributes:
        results: the registers that it does not surely give back.
        written: what it may write; offsets are from its stack pointer at entry.
        escapes: whether a stack address may be stored outside the stack behind it.
        through: what it may write besides, behind what registers hold at the call.
        above: of what it writes what stores to one known place and those that save registers do, above its stack
            pointer at entry: to frames of its callers, see `saved_words`.
        held: where it may leave addresses of the stack there, from its stack pointer at entry.
    """

    results: tuple[Result, ...]
    written: tuple[Written, ...]
    escapes: bool
    through: tuple[WrittenThrough, ...] = ()
    above: tuple[Written, ...] = ()
    held: Held = ANYWHERE


Callees = Callable[[CallKey], Effect]
"""The effect of calls; it raises `UnsummarisedError` where a callee cannot be analysed by itself."""


class UnsummarisedError(Exception):
    """The function at ``target`` cannot be analysed by itself: it is to be expanded where it is called."""

    def __init__(self, target: int, why: str) -> None:
        super().__init__(why)
        self.target = target


class Summarised(NamedTuple):
    """A call that was not expanded: for what the callee is analysed, and what it may write, as the caller sees it.

    ``above`` is as of `Effect`.
    """

    key: CallKey
    written: tuple[Written, ...]
    through: tuple[WrittenThrough, ...]
    above: tuple[Written, ...] = ()


def key_of(
    state: State,
    target: int,
    stack_pointer: Location,
    saved: Iterable[Location],
    above: frozenset[Location],
    *,
    floats: frozenset[Location] = frozenset(),
    stored: tuple[bool, bool],
) -> CallKey:
    """For what the callee at ``target`` is to be analysed where it is called in ``state``.

    Args:
        state: at the call.
        target: where the callee is entered.
        stack_pointer: of which the callee knows that it is one.
        saved: registers that callees give back: taken for no numbers always, so that fewer calls differ.
        above: registers that hold no address of the caller's own frame at its entry.
        floats: registers of floating point: if one of them may hold no number all are taken for such, so that fewer
            calls differ.
        stored: whether a stack address may have been stored outside the stack, and whether one may have been on it.
    """
    others = {
        location: term
        for location, term in state.locations.items()
        if location.space == "register"
        and location != stack_pointer
        # Low bits of an address: the callee may put one together of what several registers hold.
        and (state.base(term) is not Base.NUMBER or state.has_low_part(term))
    }
    offset = stack_offset(state, stack_pointer)
    below = {location for location, term in others.items() if not is_above(state, term, offset, above)}
    kept = {*saved} if floats.isdisjoint(others) else {*saved, *floats}
    pointers = frozenset({*others, *kept})
    escapes, holds = stored
    return CallKey(target, pointers, escapes, _is_aligned(state, stack_pointer), frozenset({*below, *kept}), holds)


def _is_aligned(state: State, stack_pointer: Location) -> bool:
    """Whether the stack pointer is surely aligned where it was at entry."""
    term = state.read(stack_pointer)
    if term is None or state.base(term) is not Base.STACK:
        return False
    offset = state.value(term)
    return not offset.is_bottom and offset.low % STACK_ALIGNMENT_BYTES == offset.stride % STACK_ALIGNMENT_BYTES == 0


def seen_by_caller(
    state: State, effect: Effect, offset: int | None
) -> tuple[tuple[Written, ...], tuple[WrittenThrough, ...]]:
    """What ``effect`` writes, as the caller sees it in its ``state`` at the call.

    ``offset`` is the stack pointer there, None where it is not known. Offsets are from the caller's stack pointer at
    entry, and registers those at its entry.

    *Soundness:* a register that the callee stores through holds the same at the call and at the callee's entry.
    """
    written = {_moved(one, offset) for one in effect.written}
    through = set[WrittenThrough]()
    for one in effect.through:
        term = state.read(one.register)
        pointed = pointed_by(state, term) if term is not None else None
        if pointed is not None:
            through.add(WrittenThrough(pointed.register, pointed.low + one.low, pointed.high + one.high))
        elif term is None or state.base(term) is Base.ANY or state.has_low_part(term):
            written.add(_ANYWHERE)
        else:
            written.add(_behind(state.base(term), state.value(term), one))
    return _pieces(written, through)


def _behind(base: Base, pointed: StridedInterval, one: WrittenThrough) -> Written:
    """The bytes of ``one`` where its register holds something of ``pointed``: all of its kind if that may wrap."""
    is_stack = base is Base.STACK
    first, last = pointed.signed_range() if is_stack else pointed.unsigned_range()
    least, most = _WHOLE_STACK if is_stack else _ALL_MEMORY
    low, high = first + one.low, last + one.high
    return Written(base, low, high) if least <= low and high <= most else Written(base, least, most)


def _pieces(
    written: Iterable[Written], through: Iterable[WrittenThrough]
) -> tuple[tuple[Written, ...], tuple[WrittenThrough, ...]]:
    """The same bytes in fewer pieces, of those behind registers one for each; one piece where all may be written."""
    merged = tuple(sorted(_merged(written)))
    if any(piece.base is Base.ANY for piece in merged):
        return (_ANYWHERE,), ()
    hulls: dict[Location, WrittenThrough] = {}
    for one in through:
        former = hulls.get(one.register, one)
        hulls[one.register] = WrittenThrough(one.register, min(former.low, one.low), max(former.high, one.high))
    return merged, tuple(hulls[at] for at in sorted(hulls))


def apply_effect(
    state: State, effect: Effect, call: Summarised, place: tuple[int, int], above: frozenset[Location]
) -> None:
    """Make of ``state``, at a call, what holds behind it; ``place`` are the point and the call's address.

    Args:
        state: at the call; it is changed.
        effect: of the callee.
        call: what it writes, as `seen_by_caller` tells.
        place: the point and the call's address.
        above: registers that hold no address of the caller's own frame at its entry.

    *Soundness:* results are values of which the state knows nothing else.
    """
    for one in call.written:
        if one.base is not Base.NUMBER:
            state.forget_range("stack", one.low, one.high)
        if one.base is not Base.STACK:
            state.forget_range("static", *(_ALL_MEMORY if one.base is Base.ANY else (one.low, one.high)))
    for through in call.through:
        state.forget_range("stack", least_on_stack(through, above), _FAR - 1)
        state.forget_range("static", *_ALL_MEMORY)
    for one in call.above:
        state.forget_range(SAVED, one.low, one.high)
    for location, base, value in ((one.location, one.base, one.value) for one in effect.results):
        name = (*place, _BEHIND_ALL_OPERATIONS, location)
        known = None if base is Base.ANY or value.is_top else value
        state.write(location, state.define(name, 8 * location.size_bytes, known, base))


def note_left(memory: Memory, state: State, effect: Effect, offset: int | None) -> None:
    """Note in ``memory`` where ``effect`` leaves addresses of the stack, as its caller sees it.

    Args:
        memory: of the caller.
        state: at the call.
        effect: of the callee.
        offset: the stack pointer there, None where it is not known.

    *Soundness:* what a register held at the call the callee keeps below its stack pointer at entry.
    """
    memory.stack_escapes |= effect.escapes
    for low, high in moved(effect.held, offset):
        memory.held.note(low, high)
    for register in sorted(effect.held.kept):
        term = state.read(register)
        if term is None or state.base(term) is not Base.NUMBER or state.has_low_part(term):
            below = (-_FAR, offset - 1) if offset is not None else _WHOLE_STACK
            memory.held.note(*below, register_at_entry(state, term))


def effect_of(
    terms: Terms,
    returning: Sequence[State],
    accesses: Iterable[Access],
    calls: Iterable[Summarised],
    stack_pointer: Location,
    *,
    escapes: bool,
    held: Held = ANYWHERE,
    saving: Collection[int] = (),
) -> Effect:
    """The effect of a function that was analysed by itself.

    Args:
        terms: of its states.
        returning: its states where it returns.
        accesses: all of its own.
        calls: what it calls without that being expanded.
        stack_pointer: the register.
        escapes: whether a stack address may have been stored outside the stack.
        held: where one may have been stored on the stack.
        saving: the instructions that save registers, where it is assumed that no other store changes what is saved.

    Raises:
        AnalysisError: the stack pointer is not surely what it was.
    """
    for state in returning:
        term = state.read(stack_pointer)
        if term is None or state.base(term) is not Base.STACK or state.value(term) != strided.constant(32, 0):
            raise AnalysisError("the stack pointer is not surely given back.")
    stores = [access for access in accesses if access.is_store and not access.offset.is_bottom]
    written = {_written(access) for access in stores if access.through is None}
    through = {_through(access.through, access.size_bytes) for access in stores if access.through is not None}
    above = {_written(access) for access in stores if access.base is Base.STACK and access.offset.is_constant}
    above |= {_written(access)._replace(base=Base.STACK) for access in stores if access.instruction_address in saving}
    for call in calls:
        written.update(call.written)
        through.update(call.through)
        above.update(call.above)
    locations = sorted({at for state in returning for at in state.locations if at.space == "register"})
    results = [
        _result(returning, location)
        for location in locations
        if location != stack_pointer and not _is_given_back(terms, returning, location)
    ]
    merged, hulls = _pieces(written, through)
    above = {one for one in above if one.high >= 0}
    return Effect(tuple(results), merged, escapes, hulls, tuple(_merged(above)), held._replace(saved=()))


def _through(pointed: Pointed, size_bytes: int) -> WrittenThrough:
    return WrittenThrough(pointed.register, pointed.low, pointed.high + size_bytes - 1)


def _is_given_back(terms: Terms, returning: Iterable[State], location: Location) -> bool:
    symbol = terms.symbol(("in", location), 8 * location.size_bytes)
    return all(state.read(location) == symbol for state in returning)


def _result(returning: Iterable[State], location: Location) -> Result:
    bits = 8 * location.size_bytes
    value, bases = strided.bottom(bits), set[Base]()
    for state in returning:
        term = state.read(location)
        if term is None:
            return Result(location, Base.ANY, strided.top(bits))
        bases.add(Base.ANY if state.has_low_part(term) else state.base(term))
        value = strided.join(value, state.value(term))
    base = Base.NUMBER if bases == {Base.NUMBER} else Base.ANY
    return Result(location, base, value if base is Base.NUMBER else strided.top(bits))


def _written(access: Access) -> Written:
    match access.base:
        case Base.STACK:
            low, high = access.offset.signed_range()
        case Base.NUMBER:
            low, high = access.offset.unsigned_range()
        case _:
            return _ANYWHERE
    return Written(access.base, low, high + access.size_bytes - 1)


def supposed(key: CallKey) -> Effect:
    """What a call within a recursion is supposed to do at first: nothing."""
    return Effect((), (), key.escapes, held=Held())


def covers(supposed_effect: Effect, found: Effect) -> bool:
    """Whether a call that does what was ``found`` does no more than was supposed.

    *Soundness:* by induction over the depth of calls: where the calls within a function do what is supposed, and the
    function then does no more than that, each call of it does.
    """
    return joined(supposed_effect, found, in_haste=False) == joined(supposed_effect, supposed_effect, in_haste=False)


def joined(one: Effect, other: Effect, *, in_haste: bool) -> Effect:
    """An effect that covers both; ``in_haste``, one that hardly grows any more.

    What is written below the stack pointer is then anything below: the frames of all calls that are open at a time.
    """
    results = {each.location: each for each in one.results}
    for each in other.results:
        former = results.get(each.location, each)
        value, base = each.value, Base.NUMBER if former.base is each.base is Base.NUMBER else Base.ANY
        if former != each:
            is_kept = base is Base.NUMBER and not in_haste
            value = strided.join(former.value, each.value) if is_kept else strided.top(each.value.bits)
        results[each.location] = Result(each.location, base, value)
    lowest = min((each.low for each in one.written if each.base is Base.STACK), default=0)
    below = Written(Base.STACK, -_FAR, -1)
    grows = [part for part in other.written if part.base is Base.STACK and part.low < lowest and part.high < 0]
    written = {*one.written, *(below if in_haste and part in grows else part for part in other.written)}
    merged, through = _pieces(written, (*one.through, *other.through))
    if in_haste and through != one.through:  # as the innermost call's argument may move on and on
        merged, through = (_ANYWHERE,), ()
    above = tuple(_merged((*one.above, *other.above)))
    if in_haste and above != one.above:
        above = (Written(Base.STACK, *_WHOLE_STACK),)
    held = ANYWHERE if in_haste and one.held != other.held else both(one.held, other.held)
    order = sorted(results)
    return Effect(tuple(results[at] for at in order), merged, one.escapes or other.escapes, through, above, held)


def moved_above(effect: Effect, offset: int | None) -> tuple[Written, ...]:
    """``above`` of ``effect``, as a caller has it whose stack pointer is at ``offset``: see `seen_by_caller`."""
    return tuple(_moved(one, offset) for one in effect.above)


def _moved(one: Written, offset: int | None) -> Written:
    """``one``, whose offsets are from the stack pointer of a callee, as the caller has it."""
    if one.base is not Base.STACK:
        return one
    return Written(Base.STACK, *_on_stack(one, offset))


def _on_stack(one: Written, offset: int | None) -> tuple[int, int]:
    """Where ``one`` is on the stack of a caller whose stack pointer is at ``offset``: anywhere if that may wrap."""
    if one.base is Base.STACK and one.low == -_FAR and one.high < 0 and offset is not None and -_FAR < offset <= 0:
        return -_FAR, max(-_FAR, one.high + offset)  # all below, as `joined` says; no stack has 2**31 bytes
    if offset is None or one.base is Base.ANY or one.high - one.low >= _FAR:
        return _WHOLE_STACK
    low, high = one.low + offset, one.high + offset
    return (low, high) if low >= -_FAR and high < _FAR else _WHOLE_STACK


def _merged(written: Iterable[Written]) -> list[Written]:
    """The same bytes in fewer pieces: those that touch each other are one."""
    found: list[Written] = []
    for one in sorted(written):
        if found and found[-1].base is one.base and one.low <= found[-1].high + 1:
            found[-1] = Written(one.base, found[-1].low, max(found[-1].high, one.high))
        else:
            found.append(one)
    return found


def stack_offset(state: State, stack_pointer: Location) -> int | None:
    """The stack pointer's offset from its value at entry; None where it is not known."""
    term = state.read(stack_pointer)
    if term is None or state.base(term) is not Base.STACK or not state.value(term).is_constant:
        return None
    return signed(32, state.value(term).value)
