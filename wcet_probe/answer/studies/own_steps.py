"""Checking an allocator of one's own step by step, from the manifest to its bounds; each failure with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.witness.bench import check_heap
from wcet_probe.build.linked_program import linked_heap_bytes
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import (
    AnalysisError,
    EmulationError,
    ExitCode,
    NoReturnError,
    StrayAccessError,
    WcetProbeError,
)
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.scenario import Operation, OperationKind
from wcet_probe.model.target import Target
from wcet_probe.scenarios.traces import TraceBuilder, trace_of

_SIZES = (1, 24, 100)
"""Bytes that are asked for, as far as the allocator serves them."""

_MOST_INSTRUCTIONS = 50_000_000
_ROUND_BYTES = 24
_BLOCKS = 8
_HEAP_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is checked, what was found, and what to do where it failed (``code`` is then not 0)."""

    name: str
    found: str
    code: ExitCode = ExitCode.OK


@dataclass(frozen=True, slots=True)
class StepsRequest:
    """What is checked: the allocator in ``folder``, for ``target`` on a heap of ``heap_bytes``.

    None: on the heap that it is linked with, else on one of 16 KiB.
    """

    folder: Path
    target: Target
    heap_bytes: int | None
    compiler: str
    cache_dir: Path


class _FailedError(Exception):
    """A step failed; its text is the remedy."""


def own_steps(request: StepsRequest, progress: Callable[[str], None] = lambda _: None) -> Iterator[Step]:
    """The steps of the check, one after the other, up to the first that fails; bounds of both operations come last."""
    try:
        allocator = load_allocator(f"{request.folder}/")
        own = allocator.own
        files = len(own.paths) + len(own.objects) + (own.elf is not None) if own else 0
        heap_bytes = request.heap_bytes or linked_heap_bytes(allocator) or _HEAP_BYTES
        yield Step("manifest", f"{allocator.name}, {files} files, malloc is {allocator.entry_points['malloc']}()")
        check_heap(allocator, heap_bytes)
        progress("building")
        program = load_program(allocator, request.target, request.compiler, request.cache_dir, heap_bytes)
        yield Step("build", f"{len(program.instructions)} instructions for {request.target.name}")
        for name, check in (
            ("init", _init),
            ("malloc", _malloc),
            ("blocks", _blocks),
            ("free", _free),
            ("full", _full),
        ):
            progress(name)
            with _machine(program, heap_bytes) as machine:
                yield Step(name, _checked(check, program.allocator, machine, heap_bytes))
    except WcetProbeError as error:
        yield Step("stopped", str(error), error.exit_code)
        return
    except _FailedError as error:
        yield Step("stopped", str(error), ExitCode.USAGE)
        return
    for kind in OperationKind:
        progress(f"proving a bound of {kind}")
        try:
            bound = prove_operation(program, kind, heap_bytes)
            found = f"at most {bound.instructions:,} instructions, {bound.cycles:,} cycles"
            typed = "".join(f"; by the width of a type at {one.location}: {one.remedy}" for one in bound.by_type)
            yield Step(f"bound of {kind}", found + typed, ExitCode.NO_BOUND if typed else ExitCode.OK)
        except AnalysisError as error:
            asked = (
                f"wcet-probe facts {request.folder}/ --entry {kind} --target {request.target.name} --heap {heap_bytes}"
            )
            remedy = f"{error} Put facts into facts.toml beside the manifest; {asked} writes what is asked for."
            yield Step(f"bound of {kind}", remedy, error.exit_code)
        except WcetProbeError as error:
            yield Step(f"bound of {kind}", str(error), error.exit_code)


def _checked(
    check: Callable[[Allocator, Machine, int], str], allocator: Allocator, machine: Machine, heap_bytes: int
) -> str:
    """What ``check`` finds; of an access behind the heap's end it is told what may be the cause."""
    try:
        return check(allocator, machine, heap_bytes)
    except StrayAccessError as error:
        end = machine.heap.end_address
        if allocator.own is None or not end <= error.address < end + heap_bytes:
            raise
        raise _FailedError(
            f"the allocator goes on behind the heap's end, {end:#x}, as one does that does not ask whether brk or sbrk "
            f"succeeded: let malloc under [call] refuse before it does, or give a larger --heap. ({error})"
        ) from error


def _machine(program: Program, heap_bytes: int) -> Machine:
    return Machine(
        program.image,
        program.target,
        program.instructions,
        program.costs,
        heap_bytes,
        most_instructions=_MOST_INSTRUCTIONS,
    )


def _sizes(allocator: Allocator) -> tuple[int, ...]:
    most = allocator.own.largest_request_bytes if allocator.own else 0
    return tuple(dict.fromkeys(min(size, most or size) for size in _SIZES))


def _init(allocator: Allocator, machine: Machine, heap_bytes: int) -> str:
    _set_up(allocator, machine, heap_bytes)
    return f"accepts {heap_bytes} bytes"


def _set_up(allocator: Allocator, machine: Machine, heap_bytes: int) -> None:
    if machine.call(allocator.entry_points["init"], machine.heap.base_address, heap_bytes):
        raise _FailedError(
            f"after init the condition ready does not hold on {heap_bytes} bytes; correct init and ready under [call], "
            "or give a larger --heap."
        )
    _check(allocator, machine, "after init")


def _check(allocator: Allocator, machine: Machine, when: str) -> None:
    if violated := machine.call(allocator.entry_points["check"]):
        raise _FailedError(
            f"check gives {violated} {when}; it must give 0 where the heap is sound: correct check under [call], or "
            "leave it out."
        )


def _malloc(allocator: Allocator, machine: Machine, heap_bytes: int) -> str:
    _set_up(allocator, machine, heap_bytes)
    for size in _sizes(allocator):
        block = machine.call(allocator.entry_points["malloc"], size, 0)
        if not block:
            raise _FailedError(
                f"malloc({size}) is refused on a fresh heap of {heap_bytes} bytes; correct init and malloc under "
                "[call], and [heap], or give a larger --heap."
            )
        heap = machine.heap
        if not heap.base_address <= block <= heap.end_address - size:
            raise _FailedError(
                f"malloc({size}) gives {block:#x}, outside of the heap at {heap.base_address:#x}; give init the arena, "
                "tell under [heap] where it is (symbol, or start and end), let it grow by sbrk, or correct the order "
                "of arguments of malloc."
            )
        if block % allocator.alignment_bytes:
            raise _FailedError(
                f"malloc({size}) gives {block:#x}, which is no multiple of {allocator.alignment_bytes}; correct "
                "alignment_bytes."
            )
    return f"gives blocks in the heap, aligned to {allocator.alignment_bytes} bytes"


def _blocks(allocator: Allocator, machine: Machine, heap_bytes: int) -> str:
    """Rows of blocks of one size lie apart by what such a block takes."""
    _set_up(allocator, machine, heap_bytes)
    own, told = allocator.own, []
    least = None
    for size in _sizes(allocator):
        builder = TraceBuilder()
        slots = [builder.malloc(size) for _ in range(6)]
        machine.replay(builder.trace())
        places = sorted(machine.slot(slot) for slot in slots)
        gaps = [other - one for one, other in pairwise(places)]
        if not all(places) or min(gaps) < size:
            raise _FailedError(
                f"blocks of {size} bytes are refused or overlap, at {', '.join(map(hex, places))}; correct malloc "
                "under [call]: is size where it belongs, and is the result the block?"
            )
        taken = sorted(gaps)[len(gaps) // 2]
        least = least or taken
        told.append((size, taken))
    if own:
        grain, smallest = allocator.alignment_bytes, max(least or 0, own.minimum_block_bytes)
        larger = [
            taken - size
            for size, taken in told
            # Blocks of one cache set lie a way of the cache apart, and what is between them is no overhead.
            if not allocator.takes_cache_set and taken > max(smallest, -(-(size + own.overhead_bytes) // grain) * grain)
        ]
        if smallest > own.minimum_block_bytes or larger:
            raise _FailedError(
                f"blocks take more than the manifest says: {', '.join(f'{t} bytes for {s}' for s, t in told)}; set "
                f"minimum_block_bytes = {smallest} and overhead_bytes = {max([own.overhead_bytes, *larger])}."
            )
    found = ", ".join(f"malloc({size}) takes {taken} bytes" for size, taken in told)
    # A least block that is told too large makes sparse states, whose witness is true and too cheap.
    if own and least and least < own.minimum_block_bytes:
        return f"{found}; minimum_block_bytes = {least} lets states hold more blocks"
    return found


def _free(allocator: Allocator, machine: Machine, heap_bytes: int) -> str:
    """No byte of a block in use is touched by other calls, and a heap that is emptied serves the same again."""
    if allocator.own and not allocator.own.calls["free"]:
        return "there is none: nothing is given back"
    _set_up(allocator, machine, heap_bytes)
    builder, sizes = TraceBuilder(), _sizes(allocator)
    asked = [(builder.malloc(size), size) for size in (sizes * _BLOCKS)[:_BLOCKS]]
    machine.replay(builder.trace())
    if not all(machine.slot(slot) for slot, _ in asked):
        raise _FailedError(f"{len(asked)} blocks of up to {sizes[-1]} bytes are refused; give a larger --heap.")
    _fill(machine, asked)
    freed = [Operation(OperationKind.FREE, slot) for slot, _ in asked]
    machine.replay(trace_of(freed[::2], builder.slot_count))
    _check(allocator, machine, "after free")
    _check_kept(machine, asked[1::2], "free")
    again = [Operation(OperationKind.MALLOC, slot, size) for slot, size in asked[::2]]
    machine.replay(trace_of(again, builder.slot_count))
    _fill(machine, [(slot, size) for slot, size in asked[::2] if machine.slot(slot)])
    _check_kept(machine, asked[1::2], "malloc")
    size = sizes[min(1, len(sizes) - 1)]
    rounds = [Operation(OperationKind.MALLOC, one.slot, size) for one in freed]
    rounds = [*freed, *(one for _ in range(heap_bytes // _ROUND_BYTES) for one in (*rounds, *freed))]
    refused = machine.replay(trace_of(rounds, builder.slot_count))
    if refused:
        asked_for = _BLOCKS * (heap_bytes // _ROUND_BYTES)
        raise _FailedError(
            f"{refused} of {asked_for} allocations are refused though all before were freed: free gives nothing back; "
            "correct free under [call], or leave it out where the allocator never takes a block back."
        )
    return "gives blocks back, and leaves the others alone"


def _content(slot: int, size: int) -> bytes:
    return bytes([slot + 1]) * size


def _fill(machine: Machine, used: Sequence[tuple[int, int]]) -> None:
    """All bytes of the blocks in ``used``, by slot and size, are written, as a program that asked for them may."""
    for slot, size in used:
        machine.memory.write(machine.slot(slot), _content(slot, size))


def _check_kept(machine: Machine, used: Sequence[tuple[int, int]], call: str) -> None:
    """Blocks in ``used``, by slot and size, hold what was written into them, after calls of ``call``."""
    for slot, size in used:
        if machine.memory.read(machine.slot(slot), size) != _content(slot, size):
            raise _FailedError(
                f"{call} changes the content of a block of {size} bytes in use, or blocks overlap; correct {call} "
                "under [call]: is each argument right, and is a block as large as it was asked for?"
            )


def _full(allocator: Allocator, machine: Machine, heap_bytes: int) -> str:
    _set_up(allocator, machine, heap_bytes)
    builder, size = TraceBuilder(), _sizes(allocator)[-1]
    for _ in range(heap_bytes // size + 1):
        builder.malloc(size)
    ended, end = "malloc refuses", machine.heap.end_address
    try:
        refused = machine.replay(builder.trace())
    except (NoReturnError, StrayAccessError) as error:
        if isinstance(error, StrayAccessError) and end <= error.address < end + heap_bytes:
            raise
        refused = sum(not machine.slot(slot) for slot in range(builder.slot_count))
        ended = f"malloc does not come back, so that such states are left out ({str(error).partition(';')[0]})"
    except EmulationError as error:
        if allocator.own is None or allocator.own.elf is None:
            raise
        raise _FailedError(
            f"the program does not stop at the end of its heap, {machine.heap.end_address:#x}: correct end of [heap]; "
            f"an sbrk that compares with the stack pointer has no end here. ({error})"
        ) from error
    served = builder.slot_count - refused
    if not refused:
        raise _FailedError(
            f"{served} blocks of {size} bytes are served from {heap_bytes} bytes: the heap has another size than "
            "--heap; correct init under [call], or [heap]."
        )
    taken = max(size, allocator.own.minimum_block_bytes if allocator.own else 0)
    # Blocks of one cache set lie a way of the cache apart, and what is between them is no sign of a smaller heap.
    most = allocator.own.most_blocks if allocator.own else 0
    is_full = 2 * served * taken >= heap_bytes - 2 * allocator.minimum_heap_bytes
    is_full = is_full or allocator.takes_cache_set or 0 < most <= served
    if not is_full:
        raise _FailedError(
            f"only {served} blocks of {size} bytes are served from {heap_bytes} bytes: the heap is smaller than "
            "--heap, as where a header sets size_macro anew; correct [heap], or init under [call], or say most_blocks "
            "where a table of descriptors is full."
        )
    if ended == "malloc refuses":
        _check(allocator, machine, "when the heap is full")
    return f"{served} blocks of {size} bytes are served, then {ended}"
