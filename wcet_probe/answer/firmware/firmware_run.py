"""The observed side of a bound of any firmware: set-up and calls are emulated, and held against all that was proved.

Every call of the entry, whoever calls it, is held natively against the bound, its accesses and facts about them; those
that the script names are also held by loops, sums and arguments, and repeated by the second engine with every register
at every block. A search changes arguments within the ranges that facts declare, and memory that the user names.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from wcet_probe.analyzer.facts.control import argument_place, argument_range
from wcet_probe.analyzer.facts.language import ArgumentFact, Facts
from wcet_probe.answer.firmware.entry_memory import check_entry_memory, check_stack_apart
from wcet_probe.answer.firmware.firmware import FirmwareBound
from wcet_probe.answer.firmware.free_memory import SCRATCH_BYTES, free_map
from wcet_probe.answer.firmware.run_script import (
    CallStatement,
    Statement,
    StoreStatement,
    Value,
    named_words,
    resolved,
    value_text,
)
from wcet_probe.answer.witness.contradiction import check_counts, check_flows, check_loops, refusal
from wcet_probe.answer.witness.cross_check import Call, cross_check
from wcet_probe.answer.witness.held import Held, checked_executions
from wcet_probe.answer.witness.victims import LEAST_TRIED, victim_choices
from wcet_probe.emu.machine import Machine
from wcet_probe.emu.reached_calls import ReachedCall
from wcet_probe.errors import ContradictionError, EmulationError, UnknownOperationError, UsageError, unknown_name
from wcet_probe.isa.timing import costs
from wcet_probe.model.held_calls import ClaimKind, HeldCalls
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.observed_run import Found, Observed, ObservedCall
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa, Target
from wcet_probe.progress import Progress, silent

UNITS = ("instructions", "cycles")
_MOST_INSTRUCTIONS = 1 << 30
_REPEATED_INSTRUCTIONS = 200_000
_REPEATED_CALLS = 16
"""Within one call, those after them are not repeated by the second engine."""
_MOST_CALLS = 100_000
"""Within one call: a few minutes, each being measured by itself."""
_WORDS_IN_REGISTERS = 4
_PATIENCE = 50
"""Changes without improvement after which a search begins again with the inputs of the script, changed at random."""


@dataclass(frozen=True, slots=True)
class SearchInputs:
    """What is searched: so many ``evaluations`` with ``seed``, in ``memory`` given as place and bytes."""

    evaluations: int
    seed: int
    memory: tuple[tuple[Value, int], ...] = ()


@dataclass(slots=True)
class Repetition:
    """What was run before and is run again, held against numbers only.

    Attributes:
        most_instructions: that the guest may take in all.
        most_calls: so many calls of the entry are measured.
        runs: is filled with the measurements of the calls that are told.
    """

    most_instructions: int
    most_calls: int
    runs: list[Measurement] = field(default_factory=list)


def run_firmware(
    found: FirmwareBound,
    script: Sequence[Statement],
    search: SearchInputs | None = None,
    progress: Progress = silent,
    again: Repetition | None = None,
) -> Observed:
    """Run ``script`` and hold it against ``found``, then search for dearer inputs of its last call of the entry.

    Each call of the entry is measured and held, those within other calls as well; what is executed outside of them is
    held against facts about loops only. Where it is run ``again``, of what is proved only the numbers are held, and the
    second engine repeats no call. Where calls are not expanded, no accesses and registers are held.

    Raises:
        UsageError: a name is none of the image, or the entry is never called; for a search: by no statement itself.
        EmulationError: the guest went astray.
        ContradictionError: something that was proved or claimed does not hold; the message names the fact.
    """
    entry = found.bound.entry
    last = next((at for at in reversed(range(len(script))) if _is_call(script[at], entry)), None)
    if last is None and search:
        raise UsageError(
            f"a search changes the inputs of a call of {entry}, and none is run by itself; add it, like "
            f"--run 'init(); {entry}(3)'."
        )
    target = replace(found.target, memory_map=free_map(found.image, found.target))
    watched = [claim.loop for claim in found.bound.loop_claims]
    bounds = () if again or found.bound.summarised else (found.bound,)
    with Machine(
        found.image,
        target,
        found.instructions,
        costs(found.instructions, target),
        SCRATCH_BYTES,
        watched=watched,
        bounds=bounds,
        most_instructions=again.most_instructions if again else _MOST_INSTRUCTIONS,
    ) as machine:
        guest = _Guest(found, found.facts, target, machine, again)
        for at, statement in enumerate(script):
            if at == last:
                guest.before_last = machine.memory.snapshot(), guest.result
            guest.run(statement)
        if not guest.calls:
            raise UsageError(f"{entry}, which is bounded, is never called; add it, like --run 'init(); {entry}(3)'.")
        made, repeated = guest.held, guest.repeated
        dearer = _searched(guest, script[last], search, progress) if search and last is not None else None
        calls = machine.held_calls()[0] if bounds else HeldCalls(guest.held, flow_maxima=guest.flow_maxima)
        held = Held(calls, guest.loop_entries, 0) if again is None else None
        executions = dict(checked_executions(found.bound, held, ())) | guest.argument_checks if held else {}
    if found.bound.initial_data:
        executions["initial-data"] = made
    if found.bound.stack_pointer is not None:
        executions["stack-pointer"] = made
    if "return-address" in executions:
        executions["return-address"] = guest.returns
    most = {unit: max(getattr(call, unit) for call in guest.calls) for unit in UNITS}
    if dearer:
        most = {unit: max(most[unit], getattr(dearer, unit)) for unit in UNITS}
    return Observed(
        statements=tuple(statement.text for statement in script),
        calls=tuple(guest.calls),
        instructions=most["instructions"],
        cycles=most["cycles"],
        found=dearer,
        executions=executions,
        loop_maxima=guest.maxima,
        flow_maxima=held.calls.flow_maxima if held else (),
        held=made,
        repeated=repeated,
    )


@dataclass(slots=True)
class _Guest:
    """A machine, what was proved of its program, and what its runs showed."""

    found: FirmwareBound
    facts: Facts
    target: Target
    machine: Machine
    again: Repetition | None = None
    result: int = 0
    before_last: tuple[dict[int, bytes | bytearray], int] = field(default_factory=lambda: ({}, 0))
    calls: list[ObservedCall] = field(default_factory=list)
    held: int = 0
    repeated: int = 0
    returns: int = 0
    loop_entries: Counter[str] = field(default_factory=Counter)
    maxima: dict[int, int] = field(default_factory=dict)
    flow_maxima: tuple[int, ...] = ()
    argument_checks: dict[str, int] = field(default_factory=dict)

    def run(self, statement: Statement) -> None:
        """Carry out one statement; a call of the entry is measured and held against everything."""
        if isinstance(statement, StoreStatement):
            self.store(self.value(statement.place), statement)
            return
        arguments = tuple(self.value(argument) for argument in statement.arguments)
        if statement.function != self.found.bound.entry:
            self._check_function(statement.function)
            self._calls_within(statement, arguments)
            return
        measured, is_repeated = self.measured(statement.text, arguments)
        self.result = measured.result
        self._tell(statement.text, measured, is_repeated=is_repeated)

    def _calls_within(self, statement: CallStatement, arguments: tuple[int, ...]) -> None:
        """Make a call of another function; those of the entry in it are measured where the guest comes to them.

        Of several the dearest in each unit is told.
        """
        entry, machine = self.found.bound.entry, self.machine
        dearest: dict[str, tuple[int, Measurement, bool]] = {}
        number, first = 0, 3 if self.target.isa is Isa.POWERPC else 0
        at = machine.reach(statement.function, _whole(arguments), entry)
        self._settle(statement.text, is_entry=False)
        while isinstance(at, ReachedCall):
            number += 1
            if number > _MOST_CALLS:
                raise EmulationError(
                    f"{statement.text} calls {entry} more than {_MOST_CALLS:,} times, and each is held by itself: look "
                    "for an endless loop, or run a function that calls it less often."
                )
            given = tuple(at.registers[f"r{first + index}"] for index in range(_WORDS_IN_REGISTERS))
            text = f"call {number} of {entry} in {statement.text}"
            seen = (number, *self.measured(text, given, repeats=number <= _REPEATED_CALLS, reached=at))
            for unit in UNITS:
                dearest[unit] = max(dearest.get(unit, seen), seen, key=lambda one: getattr(one[1], unit))
            at = machine.reach_next(at)
            self._settle(statement.text, is_entry=False)
        self.result = at
        for which, measured, is_repeated in {seen[0]: seen for seen in dearest.values()}.values():
            text = f"call {which} of {number} of {entry} in {statement.text}"
            self._tell(text, measured, is_repeated=is_repeated)

    def _tell(self, text: str, measured: Measurement, *, is_repeated: bool) -> None:
        counts = measured.instructions, measured.cycles
        self.calls.append(ObservedCall(text, *counts, measured.result, is_repeated))
        if self.again:
            self.again.runs.append(measured)

    def store(self, address: int, statement: StoreStatement) -> None:
        """Put the values of ``statement`` at ``address``."""
        order: Literal["big", "little"] = "big" if self.machine.memory.big_endian else "little"
        bits = 8 * statement.size_bytes
        words = [self.value(value) % (1 << bits) for value in statement.values]
        data = b"".join(word.to_bytes(statement.size_bytes, order) for word in words)
        if not self.machine.memory.allows(address, len(data), is_write=True):
            raise UsageError(
                f"{statement.text}: {address:#x} is no memory of the image; store to one of its variables."
            )
        self.machine.memory.write(address, data)

    def value(self, value: Value) -> int:
        """The word that ``value`` stands for."""
        symbols = named_words(self.found.image, self.machine.heap.base_address)
        return resolved(value, symbols, self.result, lambda name: unknown_name("symbol", name, symbols))

    def measured(
        self, text: str, arguments: tuple[int, ...], *, repeats: bool = True, reached: ReachedCall | None = None
    ) -> tuple[Measurement, bool]:
        """The dearest measurement of a call of the entry, over what replacement may evict; each is held against all.

        Parameters:
            text: of the call.
            arguments: its words in registers.
            repeats: whether the second engine repeats it.
            reached: the call, where another one makes it.
        """
        bound, machine, arguments = self.found.bound, self.machine, _whole(arguments)
        registers = reached.registers if reached else machine.entry_registers(arguments)
        self._check_arguments(text, registers, is_reached=reached is not None)
        check_entry_memory(bound.initial_data, machine.memory.read, self.found.image, text)
        self._check_stack(text, registers)
        before = machine.memory.snapshot()
        self.held += 1
        if self.again and self.held > self.again.most_calls:
            raise EmulationError(f"{bound.entry} is called more than {self.again.most_calls:,} times.")
        runs = []
        for victims in victim_choices(self.target)[:LEAST_TRIED]:
            machine.memory.restore(before)
            machine.restart_loop_counts()
            try:
                run = machine.measure(bound.entry, arguments, InitialCache.DIRTY, victims=victims, reached=reached)
                runs.append(run)
            except EmulationError:
                self._settle(text)
                raise
            counts = machine.loop_counts()  # which are settled at once
            self._settle(text)
            sums = check_flows(bound, counts, machine.executions, text)
            self.flow_maxima = tuple(map(max, sums, self.flow_maxima or sums))
            check_counts(bound, runs[-1], text)
        dearest = max(runs, key=lambda one: (one.cycles, one.instructions))
        is_repeated = False
        if repeats and self.again is None and dearest.instructions <= _REPEATED_INSTRUCTIONS:
            call = Call(bound.entry, registers, before, InitialCache.DIRTY)
            is_repeated = self._repeated(call, dearest, text)
        self.repeated += is_repeated
        return dearest, is_repeated

    def _repeated(self, call: Call, measured: Measurement, text: str) -> bool:
        """Repeat a call in the second engine, which knows no floating point: then it is not repeated."""
        try:
            told = None if self.found.bound.summarised else self.found.bound
            self.returns += cross_check(self.found, told, call, measured, text).returns
        except UnknownOperationError:
            return False
        return True

    def _settle(self, text: str, *, is_entry: bool = True) -> None:
        """Hold what was counted of loops and accesses against what is claimed of a call of the entry, or of other code.

        Other code may call the same functions with arguments that the entry never gives them.
        """
        bound, machine, image = self.found.bound, self.machine, self.found.image
        claims = [claim for claim in bound.loop_claims if is_entry or claim.where]
        headers = {claim.loop.name: claim.loop.header_address for claim in claims}
        counts = [count for count in machine.loop_counts() if count.name in headers]
        broken = machine.broken_claim()
        # A fact, or an assumption on saved registers, that is false is the cause of the rest, and is named first.
        if broken is not None and (broken.fact or broken.kind is ClaimKind.SAVED):
            raise refusal(broken, image, text)
        check_loops(claims, counts, image, text)
        if broken is not None:
            raise refusal(broken, image, text, self._control())
        for count in counts:
            self.loop_entries[count.name] += count.entries
            address = headers[count.name]
            self.maxima[address] = max(self.maxima.get(address, 0), count.max_header_executions)
        machine.restart_loop_counts()

    def _control(self) -> tuple[str, ...]:
        """The facts that say where control goes, or does not, as far as the bound rests on them."""
        taken = {assumption.id for assumption in self.found.bound.assumptions}
        facts = self.found.facts
        places = [one.where for kind in (facts.recursions, facts.calls, facts.through) for one in kind]
        places += [one.where for one in facts.infeasible if one.place.offset is not None]
        return tuple(where for where in places if f"fact {where}" in taken)

    def _check_function(self, name: str) -> None:
        if not any(function.name == name for function in self.found.image.functions):
            raise unknown_name("function", name, (function.name for function in self.found.image.functions))

    def _check_stack(self, text: str, registers: Mapping[str, int]) -> None:
        """The stack pointer must be what it is assumed to be, and the stack where nothing is known at entry."""
        told = self.found.bound.stack_pointer
        found = registers["r1" if self.target.isa is Isa.POWERPC else "r13"]
        if told is not None and found != told:
            raise ContradictionError(
                f"CONTRADICTED: the stack pointer is {found:#x} when {text} begins, against the assumption "
                f"stack-pointer, which says {told:#x}; give --stack-pointer {found:#x}, or let a function of the "
                "firmware make the call."
            )
        check_stack_apart(self.found.bound.initial_data, found, self.found.image, text)

    def _check_arguments(self, text: str, registers: Mapping[str, int], *, is_reached: bool) -> None:
        """What facts say of the arguments must hold of these ``registers``, as far as the call is given them."""
        for fact in self.argument_facts():
            name = str(fact.register) if fact.index is None else f"argument {fact.index}"
            place = argument_place(fact, self.target.isa)
            if isinstance(place, int) and not is_reached:
                raise UsageError(
                    f"{name} of {text} is on the stack, and the fact {fact.where} speaks of it: let a function of the "
                    "firmware make the call, and run that."
                )
            value = registers.get(place) if isinstance(place, str) else self._of_stack(registers, place)
            if value is None:
                continue
            low, high = self.range_of(fact)
            signed = value - (1 << 32) if low < 0 and value >> 31 else value
            if not low <= signed <= high:
                told = f"{low} to {high}" if fact.points_to is None else f"that it points to {fact.points_to}, {low:#x}"
                shown = signed if fact.points_to is None else f"{value:#x}"
                raise ContradictionError(
                    f"CONTRADICTED: {name} is {shown} in {text}, against the fact {fact.where}, which says {told}; "
                    "correct the fact, or the call."
                )
            name = f"fact {fact.where}"
            self.argument_checks[name] = self.argument_checks.get(name, 0) + 1

    def _of_stack(self, registers: Mapping[str, int], offset: int) -> int:
        """The word that lies so far from the stack pointer."""
        pointer = registers[self.target.isa.stack_pointer]
        order: Literal["big", "little"] = "big" if self.machine.memory.big_endian else "little"
        return int.from_bytes(self.machine.memory.read(pointer + offset, 4), order)

    def argument_facts(self) -> list[ArgumentFact]:
        """The facts about arguments of the entry."""
        return [fact for fact in self.facts.arguments if fact.function == self.found.bound.entry]

    def range_of(self, fact: ArgumentFact) -> tuple[int, int]:
        """Least and greatest value that ``fact`` declares."""
        return argument_range(fact, self.found.image, self.found.bound.parameters)


def argument_index(fact: ArgumentFact, target: Target) -> int | None:
    """Which argument ``fact`` is about, from 0; None of a register that passes none."""
    if fact.index is not None:
        return fact.index
    first = 3 if target.isa is Isa.POWERPC else 0
    number = int(fact.register[1:]) - first if fact.register and fact.register[1:].isdecimal() else -1
    return number if 0 <= number < 4 else None


def _whole(arguments: tuple[int, ...]) -> tuple[int, ...]:
    """``arguments``, and 0 for those that are not given: what calls before left there is not the second engine's."""
    return arguments + (0,) * (_WORDS_IN_REGISTERS - len(arguments))


def _is_call(statement: Statement, entry: str) -> bool:
    return isinstance(statement, CallStatement) and statement.function == entry


# ------------------------------------------------------------------------------------------------------------- search


def _searched(guest: _Guest, call: Statement, asked: SearchInputs, progress: Progress) -> Found:
    """Change arguments and memory of ``call`` and keep what makes it dearer in cycles.

    Inputs on which the call goes astray are none that it may be called with, and are passed over.
    """
    if not isinstance(call, CallStatement):  # it is the last call of the entry
        raise TypeError(call)
    snapshot, guest.result = guest.before_last
    guest.machine.memory.restore(snapshot)
    memory, ranges = _places(guest, asked), _ranges(guest, call)
    if not ranges and not memory:
        raise UsageError(
            "nothing may be changed in a search: declare ranges of arguments by facts ([[argument]]), or name memory "
            "with --vary '&buffer:64'."
        )
    arguments = tuple(guest.value(argument) for argument in call.arguments)
    start = _Inputs(arguments, tuple(guest.machine.memory.read(address, size) for address, size in memory))
    draw = random.Random(asked.seed)  # noqa: S311  (a search, no secret)
    best, current, patience = (-1, -1, start), (-1, start), _PATIENCE
    for number in range(asked.evaluations):
        fresh = patience == 0
        inputs = _changed(draw, start if fresh else current[1], ranges, wild=fresh) if number else start
        measured = _evaluated(guest, memory, inputs, f"evaluation {number + 1} of the search")
        cycles, instructions = (measured.cycles, measured.instructions) if measured else (-1, -1)
        patience = _PATIENCE if fresh or cycles > current[0] else patience - 1
        if fresh or cycles >= current[0]:
            current = (cycles, inputs)
        best = max(best, (cycles, instructions, inputs), key=lambda one: one[:2])
        progress(f"input {number + 1} of {asked.evaluations}: {best[0]} cycles", number + 1, asked.evaluations)
    if best[0] < 0 or _evaluated(guest, memory, best[2], "the dearest inputs of the search", repeats=True) is None:
        raise UsageError(f"no input of the search lets {call.function} return; change --run or --vary.")
    return Found(asked.evaluations, asked.seed, best[1], best[0], _script(call, asked, start, best[2]))


def _places(guest: _Guest, asked: SearchInputs) -> list[tuple[int, int]]:
    """Addresses and bytes of the memory that is changed."""
    memory = [(guest.value(place), size) for place, size in asked.memory]
    for (place, size), (address, _) in zip(asked.memory, memory, strict=True):
        if not guest.machine.memory.allows(address, size, is_write=True):
            raise UsageError(f"--vary &{place.symbol}:{size} is not all memory of the image; name fewer bytes.")
    return memory


def _ranges(guest: _Guest, call: CallStatement) -> dict[int, tuple[int, int]]:
    """The ranges that facts declare of the arguments of ``call``, by index."""
    found = ((argument_index(fact, guest.target), guest.range_of(fact)) for fact in guest.argument_facts())
    return {index: limits for index, limits in found if index is not None and index < len(call.arguments)}


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a search changes: the arguments, and the content of each range of memory."""

    arguments: tuple[int, ...]
    memory: tuple[bytes, ...]


def _evaluated(
    guest: _Guest, memory: Sequence[tuple[int, int]], inputs: _Inputs, text: str, *, repeats: bool = False
) -> Measurement | None:
    """What the call takes with ``inputs``, held against everything; None where it goes astray."""
    guest.machine.memory.restore(guest.before_last[0])
    for (address, _), data in zip(memory, inputs.memory, strict=True):
        guest.machine.memory.write(address, data)
    subject = f"{text}, {guest.found.bound.entry}({', '.join(map(hex, inputs.arguments))})"
    try:
        return guest.measured(subject, inputs.arguments, repeats=repeats)[0]
    except EmulationError:
        return None


def _changed(draw: random.Random, inputs: _Inputs, ranges: Mapping[int, tuple[int, int]], *, wild: bool) -> _Inputs:
    """A few arguments or bytes changed; ``wild``: all of them."""
    arguments, memory = list(inputs.arguments), [bytearray(data) for data in inputs.memory]
    spots = [*ranges, *(-1 - index for index, data in enumerate(memory) if data)]
    for spot in spots if wild else draw.choices(spots, k=draw.randrange(1, 4)):
        if spot >= 0:
            arguments[spot] = _drawn(draw, arguments[spot], ranges[spot])
        else:
            data = memory[-1 - spot]
            for _ in range(len(data) if wild else draw.randrange(1, 5)):
                data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    return _Inputs(tuple(arguments), tuple(map(bytes, memory)))


def _drawn(draw: random.Random, word: int, limits: tuple[int, int]) -> int:
    """A value of the range: an end of it, one near the old value, or any."""
    low, high = limits
    old = word - (1 << 32) if low < 0 and word >> 31 else word
    near = min(high, max(low, old + draw.choice((-8, -2, -1, 1, 2, 8))))
    return draw.choice((low, high, near, draw.randint(low, high))) % (1 << 32)


def _script(call: CallStatement, asked: SearchInputs, start: _Inputs, found: _Inputs) -> tuple[str, ...]:
    """Statements that set up what was found, to be run again behind the set-up of the script."""
    lines = []
    for (place, _), data in zip(asked.memory, found.memory, strict=True):
        offset = f" + {place.number}" if place.number else ""
        lines.append(f"u8[&{place.symbol}{offset}] = {', '.join(map(str, data))}")
    values = zip(call.arguments, start.arguments, found.arguments, strict=True)
    arguments = [value_text(value) if old == new else str(new) for value, old, new in values]
    return (*lines, f"{call.function}({', '.join(arguments)})")
