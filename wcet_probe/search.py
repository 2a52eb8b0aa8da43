"""Looking for a state worse than the constructed one: seeded random and hill-climbing search over operation sequences.

The search knows nothing of the allocator. It mutates a sequence of allocations and deallocations on a small heap and
keeps what makes the dearest single operation dearer, in instructions. A search that beats the scenario's state shows
that the scenario is not the worst; a search that does not is evidence, never a proof.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model import Allocator, Operation, OperationKind, Target, Trace
from wcet_probe.probe import ProbeRequest, observe
from wcet_probe.program import Program, load_program
from wcet_probe.scenarios.traces import trace_of

_SEQUENCE_OPERATIONS = 160
_PATIENCE = 60
"""Mutations without improvement after which a climb starts again from a new random sequence."""

_SCENARIO = {OperationKind.MALLOC: "worst-alloc", OperationKind.FREE: "worst-free"}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is searched.

    Attributes:
        allocator: with its parameter values.
        target: the core; its caches do not matter, instructions are compared.
        kind: whether allocations or deallocations are to become dear.
        heap_bytes: size of the heap.
        evaluations: how many sequences are run.
        seed: seed of the search.
        compiler: as in ``ProbeRequest``.
        cache_dir: where images are kept.
    """

    allocator: Allocator
    target: Target
    kind: OperationKind
    heap_bytes: int
    evaluations: int
    seed: int
    compiler: str
    cache_dir: Path


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found beside what was constructed.

    Attributes:
        request: what was searched.
        constructed_instructions: most instructions in any candidate state of the scenario on the same heap.
        found_instructions: most instructions of one operation in any sequence that was run.
        sequence: the shortest prefix that ends with that operation.
        climbs: how many times the search started anew.
    """

    request: SearchRequest
    constructed_instructions: int
    found_instructions: int
    sequence: tuple[Operation, ...]
    climbs: int

    @property
    def beaten(self) -> bool:
        """Whether the search found something worse than the constructed state."""
        return self.found_instructions > self.constructed_instructions


def search(request: SearchRequest, progress: Callable[[str], None] = lambda _: None) -> SearchResult:
    """Search for a dearer operation than the scenario's.

    Raises:
        UsageError: the heap cannot hold the scenario's state, or nothing is to be evaluated.
        WcetProbeError: as ``observe``.
    """
    if request.evaluations < 1:
        message = f"{request.evaluations} evaluations search nothing; give at least 1."
        raise UsageError(message)
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir)
    constructed = _constructed(request)
    draw = random.Random(request.seed)  # noqa: S311  (a search, no secret)
    best: tuple[int, tuple[Operation, ...]] = (0, ())
    climbs, patience = 0, 0
    current: tuple[int, tuple[Operation, ...]] = (0, ())
    with Machine(program.image, program.target, program.instructions, program.costs, request.heap_bytes) as machine:
        for number in range(request.evaluations):
            fresh = patience == 0
            climbs, patience = climbs + fresh, _PATIENCE if fresh else patience
            sequence = _random_sequence(draw, request) if fresh else _mutated(draw, current[1], request)
            cost, at = _dearest(program, machine, sequence, request)
            if fresh or cost >= current[0]:
                patience = _PATIENCE if fresh or cost > current[0] else patience - 1
                current = (cost, sequence)
            else:
                patience -= 1
            if cost > best[0]:
                best = (cost, sequence[: at + 1])
                progress(f"{number + 1} of {request.evaluations} sequences: {cost} instructions")
    return SearchResult(request, constructed, best[0], best[1], climbs)


def _constructed(request: SearchRequest) -> int:
    report = observe(
        ProbeRequest(
            allocator=request.allocator,
            target=request.target,
            scenario=_SCENARIO[request.kind],
            heap_bytes=request.heap_bytes,
            seed=request.seed,
            initial_cache=None,
            compiler=request.compiler,
            cross_check=False,
            cache_dir=request.cache_dir,
        )
    )
    return max(candidate.instructions for candidate in report.candidates)


def _dearest(
    program: Program, machine: Machine, sequence: tuple[Operation, ...], request: SearchRequest
) -> tuple[int, int]:
    """Most instructions of an operation of the searched kind in ``sequence``, and where it stands; refused ones too."""
    machine.call(program.allocator.entry_points["init"], machine.heap.base_address, request.heap_bytes)
    counts = machine.replay_counted(_as_trace(sequence))
    return max(
        ((count, at) for at, (count, o) in enumerate(zip(counts, sequence, strict=True)) if o.kind is request.kind),
        default=(0, 0),
    )


def _as_trace(sequence: tuple[Operation, ...]) -> Trace:
    return trace_of(sequence, max(o.slot for o in sequence) + 1)


def _random_sequence(draw: random.Random, request: SearchRequest) -> tuple[Operation, ...]:
    sizes = [_size(draw, request.heap_bytes) for _ in range(draw.randrange(1, 6))]
    return tuple(_repaired(_operation(draw, sizes, request) for _ in range(_SEQUENCE_OPERATIONS)))


def _operation(draw: random.Random, sizes: list[int], request: SearchRequest) -> Operation:
    cache_set = draw.randrange(request.allocator.values["cache-sets"]) if request.allocator.takes_cache_set else 0
    slot = draw.randrange(_SEQUENCE_OPERATIONS // 2)
    if draw.random() < 0.55:
        return Operation(OperationKind.MALLOC, slot, draw.choice(sizes), cache_set)
    return Operation(OperationKind.FREE, slot)


def _size(draw: random.Random, heap_bytes: int) -> int:
    return draw.randrange(1, 1 << draw.randrange(1, heap_bytes.bit_length()))


def _mutated(draw: random.Random, sequence: tuple[Operation, ...], request: SearchRequest) -> tuple[Operation, ...]:
    """A few operations replaced, inserted, moved, dropped, or one size changed everywhere."""
    operations = list(sequence)
    sizes = [o.size_bytes for o in operations if o.kind is OperationKind.MALLOC] or [1]
    for _ in range(draw.randrange(1, 5)):
        at = draw.randrange(len(operations))
        match draw.randrange(5):
            case 0:
                operations[at] = _operation(draw, [*sizes, _size(draw, request.heap_bytes)], request)
            case 1:
                operations.insert(at, _operation(draw, sizes, request))
            case 2 if len(operations) > 1:
                operations.insert(draw.randrange(len(operations) - 1), operations.pop(at))
            case 3 if len(operations) > 1:
                del operations[at]
            case _:
                old, new = draw.choice(sizes), _size(draw, request.heap_bytes)
                operations = [replace(o, size_bytes=new) if o.size_bytes == old else o for o in operations]
    return tuple(_repaired(operations[: 2 * _SEQUENCE_OPERATIONS]))


def _repaired(operations: Iterator[Operation] | list[Operation]) -> Iterator[Operation]:
    """A valid sequence: a slot is freed only while it holds a block, and allocated only while it does not."""
    live: set[int] = set()
    for operation in operations:
        if (operation.kind is OperationKind.FREE) == (operation.slot in live):
            (live.remove if operation.kind is OperationKind.FREE else live.add)(operation.slot)
            yield operation
