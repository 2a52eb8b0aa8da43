"""The machine that observes: an image loaded on a target's core, set up at full speed, one call counted exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Self

from wcet_probe.build.image import require_symbol
from wcet_probe.emu.claim_watch import claim_watch
from wcet_probe.emu.compiled import DISAGREED, RETURNED, Detail, TranslatedCode, Translations, repeated_call
from wcet_probe.emu.engine import Engine, EngineFault, register_id
from wcet_probe.emu.faults import culprit, disagreeing, inaccessible, outside, stopped, stray
from wcet_probe.emu.guest_registers import ARM_FLAGS, argument_registers, result_register
from wcet_probe.emu.layout import (
    HARNESS_ADDRESS,
    RETURN_ADDRESS,
    SIZES_ADDRESS,
    SLOTS_ADDRESS,
    first_stack_pointer,
    guest_regions,
    heap_range,
)
from wcet_probe.emu.loops import loop_counts, loop_table, restart_counts
from wcet_probe.emu.measurement import executions, measurement, stall_cycles
from wcet_probe.emu.memory import GuestMemory
from wcet_probe.emu.native import RUNNING
from wcet_probe.emu.observer import Observation, Observer
from wcet_probe.emu.operation_table import parts, write_operations
from wcet_probe.emu.reached_calls import ReachedCall, make_call, reached_call
from wcet_probe.emu.set_watch import OperationSets, SetWatch, sets_to_watch
from wcet_probe.emu.tables import code_table, it_state
from wcet_probe.errors import ImageError, UsageError
from wcet_probe.identity import Same
from wcet_probe.model.held_calls import BrokenClaim, HeldCalls
from wcet_probe.model.image import HEAP_SYMBOL, STACK_SYMBOL, Image
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.measurement import CallCost, Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.model.target import OWN_VICTIMS, Isa, MemoryRange, Target, Victims
from wcet_probe.model.watched_loop import LoopCount, WatchedLoop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wcet_probe.emu.operations import OperationColumns
    from wcet_probe.emu.repeated_calls import CallCounts, RepeatedCalls

_SLOT_BYTES = 4
_LEAST_HEAP_BYTES = 16
"""Of translated code, which takes the size of an access off that of the heap."""


class Machine:
    """A guest: ``image`` on ``target`` with a heap of ``heap_bytes``. Use it as a context manager.

    Replays run in translated code where ``translations`` has some, and count the same; ``measure``, ``count`` never.
    Only where ``translates_calls`` single calls do, too: to compare the engines.
    Calls and replays run without instrumentation, at the engine's full speed, unless they are observed. Where loops are
    watched, their iterations are counted in every run, also in those that are not observed. Each observed call of the
    entry of one of ``bounds`` is held against all that the bound says of it; see ``broken_claim``.

    Raises:
        UsageError: the target's memory map has no room for the heap, or a watched loop is none of the image.
    """

    def __init__(
        self,
        image: Image,
        target: Target,
        instructions: Sequence[Instruction],
        costs: Sequence[InstructionCost],
        heap_bytes: int,
        *,
        watched: Sequence[WatchedLoop] = (),
        bounds: Sequence[Bound] = (),
        most_instructions: int = 0,
        translations: Translations | None = None,
        translates_calls: bool = False,
    ) -> None:
        self._image, self._target = image, target
        is_moved = image.placed(HEAP_SYMBOL) or image.placed(STACK_SYMBOL)  # translated code has the target's places
        self._translates_calls = translates_calls
        self._most_instructions = most_instructions
        regions = self._regions = guest_regions(image, target, heap_bytes)
        self.memory = GuestMemory({region.name: region for region in regions}, image.big_endian)
        is_translatable = self.memory.is_flat and not is_moved
        self._translations, self._translated = translations if is_translatable else None, dict[Detail, TranslatedCode]()
        for segment in image.segments:
            self.memory.load(segment.address, segment.data)
        stack_pointer = "r1" if target.isa is Isa.POWERPC else "r13"
        self._table = code_table(
            Same(tuple(instructions)), Same(tuple(costs)), target.isa, stack_pointer, target.unaligned
        )
        harness = next((s for s in image.functions if s.name == "wp_replay"), None)
        self._harness = MemoryRange(harness.address, harness.size_bytes) if harness else MemoryRange(0, 0)
        self._loops = loop_table(watched, self._table)
        self._observer = Observer(self._table, regions, target, self._harness, self._loops)
        self._engine = Engine(target, regions, self._observer.callback("tlb_fill"), self._observer.handle)
        self._observer.limit(most_instructions)
        self._observed = False
        self._detail = Detail.NOTHING
        self._hooks: tuple[int | None, int | None, int] = (None, None, 0)
        self._claims = claim_watch(image, bounds, self._table, regions, target, self._loops) if bounds else None
        if self._claims:
            self._observer.hold_claims(self._claims.setup)
        self._stack_register = stack_pointer
        self._stack_pointer = first_stack_pointer(image, target)
        self._heap = heap_range(image, target, heap_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._observer.close()

    def broken_claim(self) -> BrokenClaim | None:
        """The first claim of a bound that an observed call violated."""
        return self._claims.broken(self._observer.broken_claim()) if self._claims else None

    def held_calls(self) -> tuple[HeldCalls, ...]:
        """What was counted of the calls that were held against each of the bounds."""
        return self._claims.calls() if self._claims else ()

    def restart(self) -> None:
        """Put static data and heap back as they were in the beginning: what its first call sets up is set up anew."""
        for name, place in self.memory.regions.items():
            if place.writable and not place.harness and name != "stack":
                self.memory.write(place.extent.base_address, bytes(place.extent.size_bytes))
        for segment in self._image.segments:
            if segment.writable:
                self.memory.write(segment.address, segment.data)

    @property
    def heap(self) -> MemoryRange:
        """The heap's bytes."""
        return self._heap

    def slot(self, index: int) -> int:
        """Address of the block that a replay put into slot ``index``."""
        return self.memory.read_word(SLOTS_ADDRESS + _SLOT_BYTES * index)

    def slot_bytes(self, index: int) -> int:
        """Bytes that the block in slot ``index`` was asked for; kept only where the allocator's free is told them."""
        return self.memory.read_word(SIZES_ADDRESS + _SLOT_BYTES * index)

    def call(self, function: str, *arguments: int) -> int:
        """Run ``function`` unobserved; its result.

        Raises:
            ImageError: the image has no such function.
            EmulationError: the guest went astray.
        """
        self._unhook()
        return self._run(function, arguments)

    def replay(self, trace: Trace) -> int:
        """Run all operations of ``trace`` unobserved; how many allocations were refused."""
        self._unhook()
        return self._replay(trace)

    def replay_observed(self, trace: Trace, *, data: bool = True) -> int:
        """As ``replay``, with the caches simulated from cold: they are warm afterwards.

        Without ``data`` instructions and fetches are observed, loads and stores are not.
        """
        self._observer.restart(InitialCache.COLD)
        self._hook(instructions=data)
        return self._replay(trace)

    def replay_counted(self, trace: Trace) -> tuple[int, ...]:
        """As ``replay``; the instructions of each operation, from the allocator's entry to its return."""
        counts: list[int] = []
        self._hook(instructions=False)
        for part in parts(trace):
            self._observer.restart(InitialCache.COLD, operations=len(part))
            self._replay_part(part)
            counts.extend(self._observer.operation_instructions())
        return tuple(counts)

    def replay_operations(self, trace: Trace, initial: InitialCache) -> OperationColumns:
        """As ``replay``, with the caches simulated from ``initial`` on; what each operation counts, and its result.

        Parameters:
            trace: at most 2**20 operations; a longer one is given in parts.
            initial: content of the caches; ``warm`` goes on with what the run before left.
        """
        self._observer.restart(initial, operations=len(trace))
        self._hook(instructions=True)
        self._replay_part(trace)
        return self._observer.operation_columns()

    def replay_sets(self, trace: Trace, expected: Mapping[str, Collection[int]]) -> OperationSets:
        """As ``replay``; what each operation touches of the data cache, from the allocator's entry to its return.

        Parameters:
            trace: at most 2**20 operations.
            expected: sets by name of the region; each of its accesses to another set is told of.

        Raises:
            UsageError: the target has no data cache, or the trace is too long.
            EmulationError: the guest went astray.
        """
        sets = sets_to_watch(self._target, len(trace))
        first = register_id(self._target.isa, result_register(self._target.isa))
        watch = SetWatch(tuple(self.memory.regions.values()), sets, trace.kinds, expected, first)
        self._observer.record_sets(watch.setup)
        try:
            self._observer.restart(InitialCache.COLD, operations=len(trace))
            self._hook(instructions=True)
            self._replay(trace)
        finally:
            self._observer.record_sets(None)
        return watch.result()

    def measure(
        self,
        function: str,
        arguments: Sequence[int],
        initial: InitialCache,
        heap_metadata: Callable[[], Iterable[int]] = tuple,
        victims: Victims = OWN_VICTIMS,
        *,
        reached: ReachedCall | None = None,
    ) -> Measurement:
        """Count one call of ``function``.

        Parameters:
            function: the symbol to call.
            arguments: up to four words.
            initial: content of the caches at entry; ``warm`` takes what ``replay_observed`` left.
            heap_metadata: gives the addresses of all words of the headers of the heap's blocks, as they are at that
                moment; asked before and after the call.
            victims: seeds in place of the target's, where the caches are filled.
            reached: the call is made as it was reached within another one, in place of one with ``arguments``.

        Raises:
            ImageError: the image has no such function.
            EmulationError: the guest went astray or executed what cannot be charged; nothing of it is reported.
        """
        self._observer.seed(victims)
        self._observer.restart(initial)
        self._hook(instructions=True)
        headers = heap_metadata()
        result = self._from(partial(make_call, self._engine, self._hooks, reached)) if reached else None
        result = self._run(function, arguments) if result is None else result
        observation = self._observer.observation()
        return measurement(
            observation,
            self._table,
            self._target,
            stack_pointer=reached.registers[self._stack_register] if reached else self._stack_pointer,
            heap=self._heap,
            result=result,
            heap_metadata=chain(headers, heap_metadata()),
            victims=victims,
        )

    def reach(self, function: str, arguments: Sequence[int], entry: str) -> ReachedCall | int:
        """Run ``function`` unobserved up to the first call of ``entry`` within it; the result where there is none.

        Raises:
            ImageError: the image has no such function.
            EmulationError: the guest went astray.
        """
        symbol, place = require_symbol(self._image, function), require_symbol(self._image, entry).address
        for name, value in self.entry_registers(arguments).items():
            self._engine.write_register(name, value)
        return self._reached(symbol.address, place, goes_on=False)

    def reach_next(self, before: ReachedCall) -> ReachedCall | int:
        """Go on behind the call ``before``, measured last, up to the next one; the result where there is none.

        Raises:
            EmulationError: the guest went astray.
        """
        return self._reached(before.return_address, before.entry_address, goes_on=True)

    def _reached(self, address: int, entry_address: int, *, goes_on: bool) -> ReachedCall | int:
        self._unhook()
        self._engine.set_hooks(*self._hooks)
        found: list[bool] = []

        def start() -> None:
            found.append(self._engine.run_to_either(address, RETURN_ADDRESS, entry_address, goes_on=goes_on))
            if found[0]:
                self._observer.settle(entry_address)  # the block that begins there was announced, and has not run

        result = self._from(start)
        return reached_call(self._engine, self._target.isa, entry_address) if found[0] else result

    def count(self, function: str, arguments: Sequence[int]) -> int:
        """Instructions of one call of ``function``; nothing else is counted."""
        self._observer.restart(InitialCache.COLD)
        self._hook(instructions=False)
        self._run(function, arguments)
        return self._observer.costs().instructions

    def cost(self, function: str, arguments: Sequence[int], initial: InitialCache, victims: Victims) -> CallCost:
        """What one call of ``function`` costs: as `measure`, but nothing is told of sets, words and path."""
        self._observer.seed(victims)
        self._observer.restart(initial)
        self._hook(instructions=True)
        self._run(function, arguments)
        found = self._observer.costs()
        return CallCost(found.instructions, found.cycles + stall_cycles(found, self._target), found.icache)

    def count_from_here(
        self,
        function: str,
        arguments: NDArray[np.uint32] | Sequence[Sequence[int]],
        most_instructions: int = 1 << 20,
    ) -> CallCounts:
        """What calls with ``arguments`` take, a row each, that all begin here: see ``calls_from_here``."""
        width = len(arguments[0]) if len(arguments) else 0
        with self.calls_from_here(function, width, most_instructions) as calls:
            return calls.count(arguments)

    @contextmanager
    def calls_from_here(
        self, function: str, argument_count: int = 1, most_instructions: int = 1 << 20
    ) -> Iterator[RepeatedCalls]:
        """Calls that all begin in the guest's present state, which is put back when the last is made.

        What calls leave below the stack pointer the next one finds there, as after any call. A native loop of
        translated code, for searches; nothing is observed or held against bounds. It ends before the first call that
        fails or takes more than ``most_instructions``. Until then the machine does nothing else.

        Parameters:
            function: the symbol to call.
            argument_count: words that each call takes.
            most_instructions: of one call.

        Raises:
            ImageError: the image has no such function.
            UsageError: there is no translated code, or a call cannot take so many words.
        """
        self._unhook()
        code = self._translation(1)
        if code is None:
            message = "there is no translated code of the image; count its calls one by one."
            raise UsageError(message)
        ours = [each for each in self._regions if each.writable and not each.harness]
        kept = {each: self.memory.read(each.extent.base_address, each.extent.size_bytes) for each in ours}
        asked = repeated_call(
            self._target.isa,
            require_symbol(self._image, function).address,
            self._engine.guest_registers(),
            self.entry_registers((0,) * argument_count),
            kept=kept,
            most_instructions=most_instructions,
        )
        try:
            yield code.repeated(self._observer.handle, asked)
        finally:
            for each, content in kept.items():
                self.memory.write(each.extent.base_address, content)

    def observation(self) -> Observation:
        """What has been counted since the last observed run began, up to a fault where there was one."""
        return self._observer.observation()

    def executions(self, addresses: Sequence[int]) -> tuple[int, ...]:
        """How often the last measured or counted call executed the instruction at each of ``addresses``.

        Raises:
            UsageError: no instruction starts at one of them.
        """
        return executions(self._observer.observation(), self._table, addresses)

    def loop_counts(self) -> tuple[LoopCount, ...]:
        """What was counted of each watched loop, in all runs since ``restart_loop_counts``."""
        return loop_counts(self._loops)

    def restart_loop_counts(self) -> None:
        """Forget what was counted of the watched loops."""
        restart_counts(self._loops)

    def entry_registers(self, arguments: Sequence[int]) -> dict[str, int]:
        """Registers by name as a call with ``arguments`` finds them."""
        return_address = RETURN_ADDRESS | (self._target.isa is Isa.THUMB)
        told = {self._stack_register: self._stack_pointer, "lr": return_address}
        return argument_registers(self._target.isa, arguments) | told

    def registers(self, names: Iterable[str]) -> dict[str, int]:
        """What the registers ``names`` hold behind the last run."""
        return {name: self._engine.read_register(name) for name in names}

    def _hook(self, *, instructions: bool) -> None:
        block = self._observer.callback("block")
        instruction = self._observer.callback("instruction") if instructions else None
        self._hooks = (block, instruction, self._observer.handle)
        self._detail = Detail.DATA if instructions else Detail.FETCHES
        self._observed = True

    def _unhook(self) -> None:
        watches = self._loops.watched or self._most_instructions
        block = self._observer.callback("watch") if watches else None
        self._hooks = (block, None, self._observer.handle)
        self._detail = Detail.NOTHING
        self._observed = False

    def _replay(self, trace: Trace) -> int:
        return sum(self._replay_part(part) for part in parts(trace))

    def _replay_part(self, part: Trace) -> int:
        write_operations(part, self.memory)
        return self._run("wp_replay", (HARNESS_ADDRESS, len(part), SLOTS_ADDRESS, SIZES_ADDRESS), operations=len(part))

    def _translation(self, operations: int) -> TranslatedCode | None:
        """The translated code for a run of so many operations; of a call only where it is there already."""
        found = self._translated.get(self._detail)
        if self._translations is None or self.heap.size_bytes < _LEAST_HEAP_BYTES:
            return None
        if found is not None:
            return found if operations or self._translates_calls or self._detail is Detail.NOTHING else None
        tables = [self._loops.events_before] if self._loops.watched else []
        tables += self._claims.event_tables if self._claims and self._detail is not Detail.NOTHING else []
        detail = self._detail.told if tables else self._detail
        library = self._translations(detail, operations) if operations or self._translates_calls else None
        if library is None:
            return None
        try:
            code = TranslatedCode(library, detail, self._target.isa, self._regions, tables)
        except OSError:  # of an address space that is limited; the engine gives the same answer
            self._translations = None
            return None
        self._translated[self._detail] = code
        return code

    def _start(self, address: int, operations: int) -> None:
        """Run from ``address`` on until the call returns, in translated code as far as that goes.

        Raises:
            EngineFault: the guest did what it must not.
            EmulationError: decoder and lifter disagree about an instruction.
        """
        code = self._translation(operations)
        if code is None:
            self._engine.set_hooks(*self._hooks)
            self._engine.run(address, RETURN_ADDRESS)
            return
        registers = self._engine.guest_registers()
        if self._target.isa is Isa.THUMB:  # as the engine begins a run
            registers |= dict.fromkeys(ARM_FLAGS, 0)
        why = code.run(self._observer.handle, address, registers, self._stack_pointer)
        pc = code.program_counter
        self._engine.take_over(code.registers(), it_state(self._table, self.memory, pc) if why != RETURNED else 0)
        if why == DISAGREED:
            raise disagreeing(self._image, pc)
        if why != RETURNED:
            self._engine.set_hooks(*self._hooks)
            self._engine.run(pc, RETURN_ADDRESS, goes_on=True)

    def _run(self, function: str, arguments: Sequence[int], *, operations: int = 0) -> int:
        symbol = require_symbol(self._image, function)
        if not any(symbol.address in code for code in self._image.code):
            message = f"{function} is no function of the image; name one of its functions."
            raise ImageError(message)
        for name, value in self.entry_registers(arguments).items():
            self._engine.write_register(name, value)
        return self._from(lambda: self._start(symbol.address, operations))

    def _from(self, start: Callable[[], object]) -> int:
        """What the guest returns that ``start`` lets run.

        Raises:
            EmulationError: it went astray, or the observer stopped it.
        """
        try:
            start()
        except EngineFault as fault:
            self._check_stop()
            look = partial(inaccessible, self._table, self.memory, self._engine.read_register)
            pc = culprit(self._table, self._engine.program_counter, look, is_access=fault.is_access)
            self._observer.settle(pc)
            if not any(pc in code for code in self._image.code):
                raise outside(pc) from fault
            raise stray(self._image, pc, look(pc), str(fault)) from fault
        self._check_stop()
        self._observer.finish()
        return self._engine.read_register(result_register(self._target.isa))

    def _check_stop(self) -> None:
        """Raise what the observer stopped the engine for; an earlier run's stop is not this run's."""
        is_seen = self._observed or self._most_instructions
        why, pc, address = self._observer.stopped() if is_seen else (RUNNING, 0, 0)
        if why != RUNNING:
            self._observer.settle(pc)
            raise stopped(self._image, self._table, (why, pc, address), self._most_instructions)
