"""Scenarios of the budgeted allocator over any other allocator X: X's own, behind the longest way to it.

Allocating all buckets empties every stack: from then on X serves everything, on the heap that the buckets leave, and
X's states are built as X's scenarios say. The dedicated part adds the search for the size, which is longest for a size
that no object has, and to a free one comparison.

Source: L11 §III.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import Block, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.traces import TraceBuilder

_CONTROL = "budgeted_control"
_WORD_BYTES = 4
_ALIGNMENT_BYTES = 8
_OBJECTS_AT, _OBJECT_BYTES = 2 * _WORD_BYTES, 3 * _WORD_BYTES
_CONFIGURATIONS = (
    (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072),
    (8, 16, 32, 64, 128, 256, 512, 1024),
    (5184, 17424, 19008, 35432, 49472, 64032, 80176, 91936),
    (10, 40, 192, 384, 996, 1040, 1978, 2952),
    (10, 40, 1024, 2952, 19008, 32768, 65536, 80176),
)
"""L11 table 1, each by ascending size."""

_WHY_ALLOC = (
    "No object has the size: all of them are compared before the request itself, the sentinel, ends the search.",
    "Its stack is empty: the shared allocator serves the request, from its own worst state.",
)
_WHY_FREE = ("The block lies outside the dedicated region: the shared allocator frees it, from its own worst state.",)
_Builder = Callable[[HeapRequest], tuple[ScenarioPlan, ...]]


@dataclass(frozen=True, slots=True)
class _Budget:
    """The objects, and how many buckets each has."""

    sizes: tuple[int, ...]
    buckets: tuple[int, ...]

    @classmethod
    def of(cls, values: Mapping[str, int]) -> _Budget:
        objects, configuration = values["budget-objects"], values["budget-configuration"]
        own = configuration == len(_CONFIGURATIONS)
        sizes = tuple(values[f"budget-size-{i}"] for i in range(1, 9)) if own else _CONFIGURATIONS[configuration]
        counts = (values[f"budget-buckets-{i}"] for i in range(1, objects + 1))
        return cls(sizes[:objects], tuple(values["budget-buckets"] if count < 0 else count for count in counts))

    def stride(self, index: int) -> int:
        return -(-self.sizes[index] // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES

    @property
    def slots(self) -> int:
        return sum(self.buckets)

    @property
    def filled(self) -> tuple[int, ...]:
        """The objects that have buckets."""
        return tuple(index for index, buckets in enumerate(self.buckets) if buckets)

    @property
    def dedicated_bytes(self) -> int:
        return sum(self.stride(index) * buckets for index, buckets in enumerate(self.buckets))

    def steps(self, size_bytes: int) -> int:
        """Sizes that differ before the search for one ends."""
        return self.sizes.index(size_bytes) if size_bytes in self.sizes else len(self.sizes)

    def emptied(self) -> TraceBuilder:
        """All buckets in use; the slots of an object follow each other."""
        builder = TraceBuilder()
        for size, buckets in zip(self.sizes, self.buckets, strict=True):
            for _ in range(buckets):
                builder.malloc(size)
        return builder


def dedicated_bytes(values: Mapping[str, int]) -> int:
    """What the buckets take at the end of the heap, of the parameters ``values`` of an allocator; 0 without buckets."""
    return _Budget.of(values).dedicated_bytes if "budget-objects" in values else 0


def _of_x(request: HeapRequest, name: str) -> HeapRequest:
    """The request as X's scenarios are to see it: X's name, X's parameters, X's share of the heap."""
    budget = _Budget.of(request.allocator.values)
    left = request.heap_bytes - budget.dedicated_bytes
    if left < request.allocator.minimum_heap_bytes:
        message = (
            f"a heap of {request.heap_bytes} bytes is too small for {budget.slots} buckets of "
            f"{budget.dedicated_bytes} bytes in all; give at least {budget.dedicated_bytes + 4096} with --heap."
        )
        raise HeapTooSmallError(message)
    values = {key: value for key, value in request.allocator.values.items() if not key.startswith("budget-")}
    return replace(
        request, allocator=replace(request.allocator, name=name, values=MappingProxyType(values)), heap_bytes=left
    )


def _behind(budget: _Budget, plan: ScenarioPlan) -> ScenarioPlan:
    """A plan of X after all stacks were emptied, its request off the objects' sizes if a byte less is the same to X."""
    front, measured = budget.emptied().trace(), plan.measured
    size = measured.size_bytes
    if size in budget.sizes and size % _ALIGNMENT_BYTES == 0:
        size -= 1
    is_malloc = measured.kind is OperationKind.MALLOC
    own: dict[str, int | str] = {"free buckets": 0}
    if is_malloc:
        own["sizes compared in vain"] = budget.steps(size)
    return replace(
        plan,
        trace=_joined(front, plan.trace),
        measured=replace(measured, slot=measured.slot + front.slot_count, size_bytes=size),
        state=f"all {budget.slots} buckets are in use; then {plan.state}",
        why=((*_WHY_ALLOC, *plan.why) if is_malloc else (*_WHY_FREE, *plan.why)),
        prediction={**plan.prediction, **own},
    )


def _joined(front: Trace, back: Trace) -> Trace:
    return Trace(
        kinds=(*front.kinds, *back.kinds),
        slots=(*front.slots, *(slot + front.slot_count for slot in back.slots)),
        sizes_bytes=(*front.sizes_bytes, *back.sizes_bytes),
        cache_sets=(*front.cache_sets, *back.cache_sets),
        slot_count=front.slot_count + back.slot_count,
    )


def _bucket_plan(
    request: HeapRequest, scenario: str, index: int, cache: InitialCache, *, in_use: bool, variant: str
) -> ScenarioPlan:
    """All buckets of the object are free, or all but one, which is freed."""
    budget, builder = _Budget.of(request.allocator.values), TraceBuilder()
    size, kind = budget.sizes[index], OperationKind.FREE if in_use else OperationKind.MALLOC
    if in_use:
        builder.malloc(size)
    what = "free pushes one that is in use" if in_use else f"malloc({size}) pops one"
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=builder.trace(),
        measured=Operation(kind, 0, 0 if in_use else size),
        initial_cache=cache,
        state=f"{budget.buckets[index] - in_use} bucket(s) of {size} bytes are free; {what}",
        why=(
            f"Object {index} of {len(budget.sizes)}, by size, is found after {index} others; its stack does the rest.",
        ),
        prediction={"free buckets": budget.slots - in_use, "buckets in the stack": budget.buckets[index] - in_use},
        driver="objects passed by" if index else "",
        driver_value=index or None,
    )


# --------------------------------------------------------------------------------------------------- the guest's heap


def _shared_bytes(guest: GuestHeap) -> int:
    """Bytes of X's heap, as the control structure says."""
    return guest.read_word(guest.symbols[_CONTROL] + _WORD_BYTES) - guest.heap.base_address


def _as_x(guest: GuestHeap, shift: int) -> GuestHeap:
    """The guest as X's scenarios are to see it."""
    values = {key: value for key, value in guest.values.items() if not key.startswith("budget-")}
    heap = MemoryRange(guest.heap.base_address, _shared_bytes(guest))
    return replace(guest, slot=lambda slot: guest.slot(slot + shift), heap=heap, values=MappingProxyType(values))


def _stack(guest: GuestHeap, index: int) -> Iterator[int]:
    bucket = guest.read_word(guest.symbols[_CONTROL] + _OBJECTS_AT + _OBJECT_BYTES * index + _WORD_BYTES)
    while bucket:
        yield bucket
        bucket = guest.read_word(bucket)


def _bucket_blocks(guest: GuestHeap) -> Iterator[Block]:
    budget = _Budget.of(guest.values)
    address = guest.heap.base_address + _shared_bytes(guest)
    for index in range(len(budget.sizes)):
        free, stride = set(_stack(guest, index)), budget.stride(index)
        for _ in range(budget.buckets[index]):
            yield Block(address, stride, 0, address in free)
            address += stride


def _object_at(guest: GuestHeap, budget: _Budget, address: int) -> int | None:
    """The object among whose buckets the address is."""
    start = guest.heap.base_address + _shared_bytes(guest)
    for index in range(len(budget.sizes)):
        end = start + budget.stride(index) * budget.buckets[index]
        if start <= address < end:
            return index
        start = end
    return None


def _own_facts(guest: GuestHeap, plan: ScenarioPlan) -> dict[str, int | str]:
    budget = _Budget.of(guest.values)
    facts: dict[str, int | str] = {"free buckets": sum(block.free for block in _bucket_blocks(guest))}
    if plan.measured.kind is OperationKind.FREE:
        index = _object_at(guest, budget, guest.slot(plan.measured.slot))
    else:
        steps = facts["sizes compared in vain"] = _steps_on_guest(guest, budget, plan.measured.size_bytes)
        index = steps if steps < len(budget.sizes) else None
    if index is not None:
        facts["buckets in the stack"] = sum(1 for _ in _stack(guest, index))
    return facts


def _steps_on_guest(guest: GuestHeap, budget: _Budget, size_bytes: int) -> int:
    objects = guest.symbols[_CONTROL] + _OBJECTS_AT
    sizes = [guest.read_word(objects + _OBJECT_BYTES * index) for index in range(len(budget.sizes))]
    return sizes.index(size_bytes) if size_bytes in sizes else len(sizes)


# --------------------------------------------------------------------------------------------------------- the family


@dataclass(frozen=True, slots=True)
class _Over:
    """Builders and facts over the scenarios of X: its name and family."""

    name: str
    shared: Family

    def plans_of_x(self, scenario: str, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        """X's own plans, on its share of the heap."""
        return self.shared.builders[scenario](_of_x(request, self.name))

    def behind(self, scenario: str) -> _Builder:
        """The builder of X's plans behind emptied stacks."""

        def build(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
            budget = _Budget.of(request.allocator.values)
            return tuple(_behind(budget, plan) for plan in self.plans_of_x(scenario, request))

        return build

    def worst_free(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        buckets = (
            _bucket_plan(
                request, "worst-free", last, InitialCache.DIRTY, in_use=True, variant="a bucket of the last object"
            )
            for last in _Budget.of(request.allocator.values).filled[-1:]
        )
        return (*self.behind("worst-free")(request), *buckets)

    def best_alloc(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        _of_x(request, self.name)
        buckets = tuple(
            _bucket_plan(request, "best-alloc", first, InitialCache.WARM, in_use=False, variant="the first object")
            for first in _Budget.of(request.allocator.values).filled[:1]
        )
        return buckets or self.behind("best-alloc")(request)

    def best_free(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        buckets = (
            _bucket_plan(
                request, "best-free", first, InitialCache.WARM, in_use=True, variant="a bucket of the first object"
            )
            for first in _Budget.of(request.allocator.values).filled[:1]
        )
        return (*buckets, *self.behind("best-free")(request))

    def random(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        """The workload that X alone would be given on its share; buckets serve their part of it."""
        return self.plans_of_x("random", request)

    def state(self, guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
        """X's facts, where all buckets are in use, and those of the stacks."""
        budget, own = _Budget.of(guest.values), _own_facts(guest, plan)
        if plan.scenario == "random":
            facts = self.shared.state(_as_x(guest, 0), plan)
            return {**facts, "used blocks": int(facts["used blocks"]) + budget.slots - int(own["free buckets"])}
        if "buckets in the stack" in plan.prediction:
            return own
        measured = replace(plan.measured, slot=max(0, plan.measured.slot - budget.slots))
        return {**self.shared.state(_as_x(guest, budget.slots), replace(plan, measured=measured)), **own}


def family_over(name: str, shared: Family) -> Family:
    """The scenarios of ``budgeted:name``, built over those of ``name``."""
    over = _Over(name, shared)
    builders = {scenario: over.behind(scenario) for scenario in shared.builders} | {
        "worst-free": over.worst_free,
        "best-alloc": over.best_alloc,
        "best-free": over.best_free,
        "random": over.random,
    }
    return Family(
        builders=MappingProxyType(builders),
        walk=lambda guest: (*shared.walk(_as_x(guest, 0)), *_bucket_blocks(guest)),
        state=over.state,
    )
