"""States that a search found, as texts that are kept beside an allocator and are candidates of its scenarios.

A text has a head, a key a line, and then the operations. Where all of them are few they are written out; else the text
says what was changed of a constructed state, whose digest it has: ``=FIRST..LAST`` stands for operations of that state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from hashlib import sha256
from types import MappingProxyType

from wcet_probe.catalog.own_allocator import FOUND
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import FoundBy, InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Builder, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.operation_text import operation_word, operations_of, words_of
from wcet_probe.scenarios.traces import trace_of

_FORMAT = "wcet-probe-found 1"
_NO_BASE = "none"
_SHORT_CHARACTERS = 4000
"""So many characters of operations are written out: such a text outlives a change of the constructed state."""

_WORDS_PER_LINE = 8
_COPY = re.compile(r"=(\d+)(?:\.\.(\d+))?", re.ASCII)
_KEYS = (
    "format",
    "allocator",
    "parameters",
    "heap",
    "scenario",
    "target",
    "unit",
    "value",
    "constructed",
    "evaluations",
    "seed",
    "origin",
    "base",
    "initial-cache",
    "set-up-refusals",
    "refused",
    "measured",
    "digest",
)


BaseOf = Callable[[str, int | None], Sequence[Operation]]
"""Gives the set-up of a constructed state by its variant and the line of the data cache that it is built for."""


@dataclass(frozen=True, slots=True)
class FoundState:
    """A state that a search found dearer than every candidate that was known.

    Attributes:
        allocator, parameters: the allocator's name, and the values of all its parameters.
        heap_bytes: size of the heap.
        scenario: which it is a candidate of.
        found_by: the search.
        operations, measured: the set-up, and the operation that is measured.
        initial_cache: content of the caches before it.
        set_up_refusals: how many allocations of the set-up are refused.
        refused: whether the measured allocation is.
    """

    allocator: str
    parameters: Mapping[str, int]
    heap_bytes: int
    scenario: str
    found_by: FoundBy
    operations: tuple[Operation, ...]
    measured: Operation
    initial_cache: InitialCache
    set_up_refusals: int
    refused: bool

    @property
    def file_name(self) -> str:
        """How its file is called: one that is dearer in the same unit on the same target takes its place."""
        by = self.found_by
        values = "-".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        inner = self.allocator.partition(":")[2]
        place = f"-over-{inner.replace(':', '-')}" if inner else ""
        build = f"-{sha256(values.encode()).hexdigest()[:8]}" if values else ""
        return f"{self.scenario}-{self.heap_bytes}-{by.unit}-{by.target}{place}{build}.txt"


@dataclass(frozen=True, slots=True)
class Base:
    """A constructed state that a found one is told by.

    Attributes:
        line_bytes: the line of the data cache that it was built for, None without one.
        operations: its set-up.
    """

    line_bytes: int | None
    operations: Sequence[Operation]


def found_text(found: FoundState, base: Base | None) -> str:
    """``found`` as text, told by the state ``base`` that it was made from, where that is much shorter."""
    body, told = _lines(words_of(found.operations)), _NO_BASE
    if base and sum(map(len, body)) > _SHORT_CHARACTERS:
        changes = _lines(_changes(base.operations, found.operations))
        if sum(map(len, changes)) < sum(map(len, body)):
            body, told = changes, f"{base.line_bytes or 0} {_digest(base.operations)}"
    by = found.found_by
    values = (
        _FORMAT,
        found.allocator,
        " ".join(f"{name}={value}" for name, value in sorted(found.parameters.items())),
        found.heap_bytes,
        found.scenario,
        by.target,
        by.unit,
        by.value,
        by.constructed,
        by.evaluations,
        by.seed,
        by.origin,
        told,
        found.initial_cache.value,
        found.set_up_refusals,
        "yes" if found.refused else "no",
        operation_word(found.measured),
        _digest(found.operations),
    )
    head = [f"{key} {value}".rstrip() for key, value in zip(_KEYS, values, strict=True)]
    return "\n".join([*head, *body]) + "\n"


def read_found(file: str, text: str, base_of: BaseOf) -> FoundState:
    """The state that ``found_text`` wrote.

    Parameters:
        file: its name, for errors.
        text: its content.
        base_of: gives the constructed state that it may change.

    Raises:
        UsageError: the text is none, or the constructed state that it changes is another one now.
    """
    head = _head(file, text)
    try:
        words = [word for line in text.splitlines()[len(_KEYS) :] for word in line.split()]
        operations = tuple(_told(words, _base(file, head, base_of)))
        (measured,) = operations_of([head["measured"]])
        found = FoundState(
            allocator=head["allocator"],
            parameters=_values(head),
            heap_bytes=int(head["heap"]),
            scenario=head["scenario"],
            found_by=FoundBy(
                target=head["target"],
                unit=head["unit"],
                value=int(head["value"]),
                constructed=int(head["constructed"]),
                evaluations=int(head["evaluations"]),
                seed=int(head["seed"]),
                origin=head["origin"],
            ),
            operations=operations,
            measured=measured,
            initial_cache=InitialCache(head["initial-cache"]),
            set_up_refusals=int(head["set-up-refusals"]),
            refused={"yes": True, "no": False}[head["refused"]],
        )
    except (KeyError, ValueError) as error:
        raise _malformed(file, str(error)) from error
    if _digest(operations) != head["digest"]:
        raise UsageError(f"{file} does not hold the operations that were found: its digest differs; restore the file.")
    return found


def with_found_states(family: Family) -> Family:
    """``family``, whose scenarios have the states as candidates that were found of an allocator.

    Those are offered that were found with its parameters on a heap of the size. What is checked of them is how many
    blocks are in use: nobody predicts the rest.
    """
    builders = {scenario: partial(_plans, scenario, builder) for scenario, builder in family.builders.items()}

    def state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
        return family.state(guest, replace(plan, scenario="random") if plan.found_by else plan)

    return replace(family, builders=MappingProxyType(builders), state=state)


def _plans(scenario: str, builder: Builder, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    constructed = builder(request)
    every = [(f"{FOUND}/{file}", text) for file, text in sorted(request.allocator.found)]
    texts = [(file, text) for file, text in every if _is_of(scenario, request, _head(file, text))]
    if not texts:
        return constructed

    def base_of(variant: str, line_bytes: int | None) -> Sequence[Operation]:
        same = line_bytes == request.data_line_bytes
        plans = constructed if same else builder(replace(request, data_line_bytes=line_bytes))
        return next((operations_in(plan) for plan in plans if plan.variant == variant), ())

    found = {}
    for file, text in texts:
        plan = _plan(read_found(file, text, base_of))
        if plan.variant in found:
            raise UsageError(f"{file} is a second state that was {plan.variant}; delete the cheaper one of the two.")
        found[plan.variant] = plan
    return (*constructed, *found.values())


def operations_in(plan: ScenarioPlan) -> tuple[Operation, ...]:
    """The set-up of ``plan``."""
    trace = plan.trace
    columns = zip(trace.kinds, trace.slots, trace.sizes_bytes, trace.cache_sets, strict=True)
    return tuple(
        Operation(OperationKind.FREE if kind else OperationKind.MALLOC, slot, size, cache_set)
        for kind, slot, size, cache_set in columns
    )


def _is_of(scenario: str, request: HeapRequest, head: Mapping[str, str]) -> bool:
    asked = (request.allocator.name, dict(request.allocator.values), request.heap_bytes, scenario)
    return (head["allocator"], _values(head), int(head["heap"]), head["scenario"]) == asked


def _plan(found: FoundState) -> ScenarioPlan:
    by, operations = found.found_by, found.operations
    search = f"{by.evaluations} evaluations with seed {by.seed}" if by.evaluations else "by another program than ours"
    live = _live_blocks(operations)
    is_free = found.measured.kind is OperationKind.FREE
    call = "free of one of them" if is_free else f"malloc({found.measured.size_bytes})"
    return ScenarioPlan(
        scenario=found.scenario,
        variant=f"found by search for {by.unit} on {by.target}",
        trace=trace_of(operations, max((o.slot for o in (*operations, found.measured)), default=0) + 1),
        measured=found.measured,
        initial_cache=found.initial_cache,
        state=f"{live} blocks in use after {len(operations)} operations that a search found; {call}",
        why=(
            f"A search found it: {by.value} {by.unit} on {by.target}, the constructed ones take {by.constructed}.",
            f"It was made from: {by.origin}; {search}.",
            "No rule gives it, and nothing is predicted of it but the blocks in use.",
        ),
        prediction={} if found.set_up_refusals else {"used blocks": live},
        refused=found.refused,
        set_up_may_refuse=bool(found.set_up_refusals),
        found_by=by,
    )


def _live_blocks(operations: Iterable[Operation]) -> int:
    live: set[int] = set()
    for operation in operations:
        (live.discard if operation.kind is OperationKind.FREE else live.add)(operation.slot)
    return len(live)


def _head(file: str, text: str) -> Mapping[str, str]:
    lines = [line.partition(" ") for line in text.splitlines()[: len(_KEYS)]]
    if tuple(key for key, _, _ in lines) != _KEYS or lines[0][2] != _FORMAT:
        raise _malformed(file, "its head has other keys, or another format")
    head = {key: value for key, _, value in lines}
    try:
        _values(head), int(head["heap"])
    except ValueError as error:
        raise _malformed(file, str(error)) from error
    return head


def _values(head: Mapping[str, str]) -> Mapping[str, int]:
    return {name: int(value) for name, _, value in (word.partition("=") for word in head["parameters"].split())}


def _malformed(file: str, why: str) -> UsageError:
    return UsageError(
        f"{file} is no state that a search found ({why}); delete it, and write one with "
        "wcet-probe search --start constructed --keep."
    )


def _base(file: str, head: Mapping[str, str], base_of: BaseOf) -> Sequence[Operation]:
    """The operations of the constructed state that the text changes; none where it writes all of them out."""
    if head["base"] == _NO_BASE:
        return ()
    line_bytes, _, digest = head["base"].partition(" ")
    base = base_of(head["origin"], int(line_bytes) or None)
    if _digest(base) != digest:
        raise UsageError(
            f"{file} changes the constructed state {head['origin']!r} of {head['scenario']}, which is another one now; "
            "delete the file, and search again with wcet-probe search --start constructed --keep."
        )
    return base


def _told(words: Iterable[str], base: Sequence[Operation]) -> Iterator[Operation]:
    """The operations that ``words`` tell, some of them by where they are in ``base``."""
    for word in words:
        copied = _COPY.fullmatch(word)
        if not copied:
            yield from operations_of([word])
            continue
        first, last = int(copied[1]), int(copied[2] or copied[1])
        if not first <= last < len(base):
            raise ValueError(f"{word!r} is not in the constructed state")
        yield from base[first : last + 1]


def _changes(base: Sequence[Operation], operations: Sequence[Operation]) -> Iterator[str]:
    at = 0
    for start, other, size in SequenceMatcher(None, base, operations, autojunk=False).get_matching_blocks():
        yield from words_of(operations[at:other])
        if size:
            yield f"={start}..{start + size - 1}" if size > 1 else f"={start}"
        at = other + size


def _lines(words: Iterable[str]) -> list[str]:
    every = list(words)
    return [" ".join(every[at : at + _WORDS_PER_LINE]) for at in range(0, len(every), _WORDS_PER_LINE)]


def _digest(operations: Iterable[Operation]) -> str:
    return sha256(" ".join(map(operation_word, operations)).encode()).hexdigest()
