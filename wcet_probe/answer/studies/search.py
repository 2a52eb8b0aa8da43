"""Looking for a state worse than the constructed one: seeded random and hill-climbing search over operation sequences.

The search knows nothing of the allocator. It mutates a sequence of allocations and deallocations on a small heap and
keeps what makes the dearest single operation dearer, in instructions. A search that beats the scenario's state shows
that the scenario is not the worst; a search that does not is evidence, never a proof.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import observe
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.compiled.supply import translations
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import EmulationError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.scenario import Operation, OperationKind, Trace
from wcet_probe.model.target import Target
from wcet_probe.progress import Progress, silent
from wcet_probe.scenarios.operation_text import operation_word, operations_of
from wcet_probe.scenarios.traces import trace_of

_SEQUENCE_OPERATIONS = 160
_PATIENCE = 60
"""Mutations without improvement after which a climb starts again from a new random sequence."""

_OPERATIONS_PER_LINE = 10
_HEAD = ("allocator", "parameters", "target", "heap", "evaluations", "seed", "instructions")
"""What a saved case says before its operations, a line each."""

SCENARIO = {OperationKind.MALLOC: "worst-alloc", OperationKind.FREE: "worst-free"}
"""The scenario whose states are compared with, by operation."""


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


def search(request: SearchRequest, progress: Progress = silent) -> SearchResult:
    """Search for a dearer operation than the scenario's.

    Raises:
        UsageError: the heap cannot hold the scenario's state, or nothing is to be evaluated.
        WcetProbeError: as ``observe``.
    """
    if request.evaluations < 1:
        message = f"{request.evaluations} evaluations search nothing; give at least 1."
        raise UsageError(message)
    program = load_program(request.allocator, request.target, request.compiler, request.cache_dir, request.heap_bytes)
    constructed = constructed_instructions(request)
    draw = random.Random(request.seed)  # noqa: S311  (a search, no secret)
    best: tuple[int, tuple[Operation, ...]] = (0, ())
    climbs, patience, text = 0, 0, ""
    current: tuple[int, tuple[Operation, ...]] = (0, ())
    with Machine(
        program.image,
        program.target,
        program.instructions,
        program.costs,
        request.heap_bytes,
        translations=translations(program, request.cache_dir),
    ) as machine:
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
                text = f"sequence {number + 1} of {request.evaluations}: {cost} instructions"
            progress(text, number + 1, request.evaluations)
    again = replay_case(SearchCase(request, best[0], best[1])) if best[1] else best[0]
    if again != best[0]:
        message = (
            f"translated code counted {best[0]} instructions of what takes {again} in the engine: report this with the "
            "command line."
        )
        raise EmulationError(message)
    return SearchResult(request, constructed, best[0], best[1], climbs)


@dataclass(frozen=True, slots=True)
class SearchCase:
    """A sequence that a search found, to be run again.

    Attributes:
        request: the search that found it.
        instructions: what its last operation took.
        sequence: the operations.
    """

    request: SearchRequest
    instructions: int
    sequence: tuple[Operation, ...]


def case_text(result: SearchResult) -> str:
    """The best sequence of ``result`` as text, for ``read_case``.

    After the head ``+SLOT:BYTES`` allocates (``+SLOT:BYTES@SET`` for a cache set) and ``-SLOT`` frees; the last
    operation is the dear one.
    """
    asked = result.request
    defaults = {parameter.name: parameter.default for parameter in asked.allocator.parameters}
    changed = (f"{key}={value}" for key, value in asked.allocator.values.items() if defaults.get(key) != value)
    heads = (
        asked.allocator.name,
        " ".join(changed),
        asked.target.name,
        asked.heap_bytes,
        asked.evaluations,
        asked.seed,
        result.found_instructions,
    )
    words = [operation_word(operation) for operation in result.sequence]
    lines = [f"{key} {value}".rstrip() for key, value in zip(_HEAD, heads, strict=True)]
    lines += [" ".join(words[at : at + _OPERATIONS_PER_LINE]) for at in range(0, len(words), _OPERATIONS_PER_LINE)]
    return "\n".join(lines) + "\n"


def read_case(text: str, compiler: str, cache_dir: Path) -> SearchCase:
    """The case that ``case_text`` wrote.

    Raises:
        UsageError: the text is no case, or names what does not exist.
    """
    lines = text.splitlines()
    heads = dict(line.partition(" ")[::2] for line in lines[: len(_HEAD)])
    try:
        sequence = tuple(operations_of(word for line in lines[len(_HEAD) :] for word in line.split()))
        values = {key: int(value) for key, _, value in (word.partition("=") for word in heads["parameters"].split())}
        heap_bytes, evaluations, seed, instructions = (int(heads[key]) for key in _HEAD[3:])
        request = SearchRequest(
            allocator=load_allocator(heads["allocator"], values),
            target=load_target(heads["target"]),
            kind=sequence[-1].kind,
            heap_bytes=heap_bytes,
            evaluations=evaluations,
            seed=seed,
            compiler=compiler,
            cache_dir=cache_dir,
        )
    except (KeyError, IndexError, ValueError) as error:
        message = f"the text is no case of a search ({error}); write one with wcet-probe search --save FILE."
        raise UsageError(message) from error
    return SearchCase(request, instructions, sequence)


def replay_case(case: SearchCase) -> int:
    """Instructions of the last operation of ``case``, run anew.

    Raises:
        WcetProbeError: as ``observe``.
    """
    asked = case.request
    program = load_program(asked.allocator, asked.target, asked.compiler, asked.cache_dir, asked.heap_bytes)
    with Machine(program.image, program.target, program.instructions, program.costs, asked.heap_bytes) as machine:
        return _counts(program, machine, case.sequence, asked)[-1]


def constructed_instructions(request: SearchRequest) -> int:
    """Most instructions in any candidate state of the scenario that ``request`` compares with.

    Raises:
        WcetProbeError: as ``observe``.
    """
    report = observe(
        ProbeRequest(
            allocator=request.allocator,
            target=request.target,
            scenario=SCENARIO[request.kind],
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
    counts = _counts(program, machine, sequence, request)
    return max(
        ((count, at) for at, (count, o) in enumerate(zip(counts, sequence, strict=True)) if o.kind is request.kind),
        default=(0, 0),
    )


def _counts(
    program: Program, machine: Machine, sequence: tuple[Operation, ...], request: SearchRequest
) -> tuple[int, ...]:
    """Instructions of each operation of ``sequence`` on a fresh heap."""
    if program.allocator.own:
        machine.restart()
    machine.call(program.allocator.entry_points["init"], machine.heap.base_address, request.heap_bytes)
    return machine.replay_counted(_as_trace(sequence))


def _as_trace(sequence: tuple[Operation, ...]) -> Trace:
    return trace_of(sequence, max(o.slot for o in sequence) + 1)


def _random_sequence(draw: random.Random, request: SearchRequest) -> tuple[Operation, ...]:
    sizes = [_size(draw, request.heap_bytes) for _ in range(draw.randrange(1, 6))]
    return tuple(repaired(_operation(draw, sizes, request) for _ in range(_SEQUENCE_OPERATIONS)))


def _operation(draw: random.Random, sizes: list[int], request: SearchRequest) -> Operation:
    cache_set = draw.randrange(request.allocator.cache[0]) if request.allocator.takes_cache_set else 0
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
    return tuple(repaired(operations[: 2 * _SEQUENCE_OPERATIONS])) or sequence


def repaired(operations: Iterable[Operation]) -> Iterator[Operation]:
    """A valid sequence: a slot is freed only while it holds a block, and allocated only while it does not."""
    live: set[int] = set()
    for operation in operations:
        if (operation.kind is OperationKind.FREE) == (operation.slot in live):
            (live.remove if operation.kind is OperationKind.FREE else live.add)(operation.slot)
            yield operation
