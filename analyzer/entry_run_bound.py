"""The bound of the one run that memory at entry decides, where it is followed on the code alone.

Each passage of control is taken as often as in the run, so the flow problem of its blocks has one solution. Recursion
and calls cost no more than what is executed: no call has blocks of its own. What caches cost is told access by access.

Words: bound, flow problem, must analysis (docs/explanation/glossary.md).

*Soundness:* all executions that begin with this memory are that run (`loops.entry_run`), so none takes a passage more
often. Blocks cost their worst, an access that may miss misses (`followed_caches.RunCache`), an unaligned one costs what
the target's table says of its address. Where one of these is not known, nothing is told; nor where a word of a stack
whose place is known is accessed as an object of the image as well, as that of a task may be, or lies on its code.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import gcd
from typing import NamedTuple

from wcet_probe.analyzer.assumptions import (
    STACK_ALIGNED,
    STACK_SEPARATION,
    STACK_STORES,
    assumed_data,
    of_machine,
    of_process_stack,
    stack_bounds,
    stack_place,
)
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.followed_caches import RunCache, line_of
from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.graph.returning import function_from
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.costs import Costs, block_cycles, check_chargeable, cost_table, taken_cycles
from wcet_probe.analyzer.ipet.flow_problem import UNITS, Unit
from wcet_probe.analyzer.ipet.flow_system import (
    ENTER,
    AuxiliaryVariable,
    Constraint,
    FlowEdge,
    FlowNode,
    FlowProblem,
    Solution,
    flow_system,
    solve,
)
from wcet_probe.analyzer.loops.abstract_execution import MOST_INSTRUCTIONS as MOST_OF_NEST
from wcet_probe.analyzer.loops.abstract_execution import WHOLE
from wcet_probe.analyzer.loops.entry_run import EntryRun, Part, Passage, entry_run
from wcet_probe.analyzer.loops.native_run import Charged, NativeRun, native_run
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.execution.block_functions import Accessed
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value, is_address
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.instruction import AccessKind, Instruction
from wcet_probe.model.proof import AccessRange, Assumption, Bound, FlowGraph, GraphBlock, GraphEdge, PathBlock
from wcet_probe.model.unaligned_access import unaligned_cycles

MOST_INSTRUCTIONS = 500_000_000
"""Most instructions that are followed: 12 to 16 CPU seconds of the native core, as was measured of 27 million."""
MOST_HERE = 6_000_000
"""Most of a run that the native core cannot follow: as much time."""
MOST_UNASKED = 2_000_000
"""Most of a run that is followed where nobody said that memory at entry decides it: a loop may have no end."""
_SOON = 200_000
"""Behind so many the native core begins; shorter runs, most of all, need not rest on it."""
_LONG = WHOLE * MOST_OF_NEST
"""So many are followed of a whole function on its values."""
_WORD, _WORD_BYTES = 1 << 32, 4
_ALWAYS = 14
"""The condition of an instruction that is executed in any case."""


class FollowedBound(NamedTuple):
    """What following a run tells.

    Attributes:
        bound: of the run; None where not each step is decided, or what it costs, or it is longer than is followed.
        is_long: whether so many steps are decided, one after the other, that no run of them is followed on the values.
    """

    bound: Bound | None
    is_long: bool = False


def entry_run_bound(request: BoundRequest, most: int = 0) -> FollowedBound:
    """The bound of ``request`` where memory at entry decides each step and what it costs.

    Facts are not looked at: where there are any, nothing is told; nor, if it is not 0, of a run of more than ``most``.

    Raises:
        UsageError: there is no such function.

    *Soundness:* as said of the module.
    """
    target, image = request.target, request.image
    if request.initial is None or request.facts != Facts() or target.unified_cache or target.memory.regions:
        return FollowedBound(None)
    costs = cost_table(request.instructions, request.costs)
    run, decided, seen = _followed(request, costs, _SOON)
    if run is None and decided >= _SOON:
        found = _natively_followed(request, costs, most)
        run, decided, seen = found or _followed(request, costs, min(most or MOST_HERE, MOST_HERE))
    is_long = decided >= _LONG
    if run is None or not seen.is_told():
        return FollowedBound(None, is_long)
    try:
        check_chargeable(run.blocks.values(), costs, image)
        return FollowedBound(_bound(request, run, seen, costs), is_long)
    except AnalysisError:  # of an instruction that cannot be charged the values' analysis tells more
        return FollowedBound(None, is_long)


def _followed(request: BoundRequest, costs: Costs, most: int) -> tuple[EntryRun | None, int, _Seen]:
    """The run, if it is no longer than that, how much of it was followed, and what was seen."""
    image, target = request.image, request.target
    lifter = image_lifter(target.pcode_language, target.isa, image.segments)
    content = request.initial.at_entry if request.initial else ()
    execution, seen = ConstantExecution(Memory(image), lifter, content), _Seen(request, costs)
    asked = lifter, execution, require_symbol(image, request.entry), seen.take, most, request.stack_pointer
    return (*entry_run(*asked, untold=_LONG), seen)


def _natively_followed(request: BoundRequest, costs: Costs, most: int = 0) -> tuple[EntryRun | None, int, _Seen] | None:
    """The same by the native core; None where it cannot follow the code."""
    image, target = request.image, request.target
    lifter = image_lifter(target.pcode_language, target.isa, image.segments)
    content, seen = request.initial.at_entry if request.initial else (), _Seen(request, costs)
    asked = image, lifter, content, require_symbol(image, request.entry), seen.charged(), most or MOST_INSTRUCTIONS
    found = native_run(*asked, request.stack_pointer, untold=_LONG)
    if found is None:
        return None
    seen.put(found)
    return found.run, found.decided, seen


@dataclass(slots=True)
class _Range:
    """Where the accesses of an instruction went, all of one size, by numbers or all by the stack pointer."""

    on_stack: bool
    size_bytes: int
    low: int
    high: int
    stride: int = 0

    def add(self, offset: int) -> None:
        self.stride = gcd(self.stride, offset - self.low)
        self.low, self.high = min(self.low, offset), max(self.high, offset)


@dataclass(slots=True)
class _Seen:
    """What the accesses of the run are and cost."""

    request: BoundRequest
    costs: Costs
    code: RunCache | None = None
    data: RunCache | None = None
    ranges: dict[tuple[int, bool], _Range | None] = field(default_factory=dict)
    waiting_cycles: int = 0
    is_far: bool = False
    _by_number: set[int] = field(default_factory=set)
    _by_stack: set[int] = field(default_factory=set)
    _lines: dict[int, Sequence[int]] = field(default_factory=dict)
    _told: set[int] = field(default_factory=set)
    _writable: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        target, image = self.request.target, self.request.image
        self.code = RunCache(target.icache) if target.icache else None
        self.data = RunCache(target.dcache) if target.dcache else None
        self._writable = [
            (one.address, one.address + one.size_bytes) for one in image.segments if one.writable and not one.executable
        ]

    def is_told(self) -> bool:
        """Whether the order of an instruction's accesses to its lines is of no matter, and words have one name each."""
        is_ordered = all(one is None or one.is_large for one in (self.code, self.data))
        return is_ordered and self._by_number.isdisjoint(self._by_stack)

    def take(self, part: Part, accesses: Sequence[Accessed]) -> bool:
        """Note what was executed of a block; whether what it costs is known.

        *Soundness:* of an instruction that is executed all accesses take place, or, where it is predicated, none. Those
        of other instructions are the same each time. What is fetched again at once changes nothing in a cache.
        """
        if self.code is not None:
            lines = self._lines.get(part.instructions[0].address) or self._of(part)
            for line in lines:
                self.code.touch(line, is_store=False)
        is_known = not part.is_varied and part.instructions[0].address in self._told
        if not is_known and not self._are_all(part, accesses):
            return False
        return all(self._access(*one) for one in accesses)

    def _of(self, part: Part) -> Sequence[int]:
        """The lines of the code of a block."""
        assert self.code is not None  # noqa: S101  by the caller
        line_bytes, own = self.code.config.line_bytes, part.instructions
        first, last = own[0].address // line_bytes, (part.end_address - 1) // line_bytes
        found = self._lines[own[0].address] = range(first, last + 1)
        return found

    def _are_all(self, part: Part, accesses: Sequence[Accessed]) -> bool:
        """Whether of each instruction as many accesses took place as it makes, or of a predicated one none."""
        made = Counter(address for address, *_ in accesses)
        for one in part.instructions:
            expected = self._expected(one.address)
            if expected is None:
                return False
            count, may_be_skipped = expected
            if made[one.address] != count and not (may_be_skipped and not made[one.address]):
                return False
        self._told.add(part.instructions[0].address)
        return True

    def _access(self, instruction: int, is_store: bool, place: Value | None, size_bytes: int) -> bool:  # noqa: FBT001
        if not is_address(place):
            return self._anywhere(instruction, is_store, size_bytes)
        on_stack, offset = (True, place[0]) if isinstance(place, tuple) else (False, place)
        if is_store and not self._may_be_stored_to(on_stack, offset, size_bytes):
            return False
        self._note((instruction, is_store), on_stack, offset, size_bytes)
        self._name(on_stack, offset, size_bytes)
        target = self.request.target
        if self.data is not None:
            line = line_of(place, size_bytes, self.request.stack_pointer, self.data.config.line_bytes)
            if line is None:
                return False
            self.data.touch(line, is_store=is_store)
            return True
        longer = 0
        if target.unaligned:
            modulus = STACK_ALIGNMENT_BYTES if on_stack else _WORD
            longer = self._longer(instruction, size_bytes, modulus, offset % modulus)
        self.waiting_cycles += longer + (1 + longer) * target.memory.single_cycles
        return True

    def _anywhere(self, instruction: int, is_store: bool, size_bytes: int) -> bool:  # noqa: FBT001
        """Note a load from where is not known: where no data is cached it costs what its alignment says, at most."""
        if is_store or self.data is not None or self.request.stack_pointer is not None:
            return False
        self.ranges[instruction, is_store] = None
        longer = self._longer(instruction, size_bytes, 1, 0)
        self.waiting_cycles += longer + (1 + longer) * self.request.target.memory.single_cycles
        return True

    def _expected(self, address: int) -> tuple[int, bool] | None:
        """How many accesses an instruction makes, and whether it may make none; None: the decoder does not know it."""
        known = self.costs.get(address)
        if known is None:
            return None
        return _accesses(known[0]), known[0].in_it_block or known[0].condition != _ALWAYS

    def _longer(self, address: int, size_bytes: int, modulus: int, residue: int) -> int:
        """What an access takes longer, at most."""
        known = self.costs.get(address)
        timing_class = known[0].timing_class if known else ""
        return unaligned_cycles(self.request.target.unaligned, timing_class, size_bytes, modulus, residue).most

    def charged(self) -> Charged:
        """What the native core is to sum."""
        target = self.request.target
        longer = self._longer if target.unaligned and target.dcache is None else None
        return Charged(target.icache, target.dcache, target.memory.single_cycles, self._expected, longer)

    def put(self, found: NativeRun) -> None:
        """Take over what the native core has summed of a run."""
        self.waiting_cycles, self.is_far = found.waiting_cycles, found.is_far
        for key, one in found.ranges.items():
            self.ranges[key] = _Range(*one) if one is not None else None
        for own, sums in ((self.code, found.code), (self.data, found.data)):
            if own is not None and sums is not None:
                own.fills, own.stored, own.may_store = map(Counter, (sums.fills, sums.stored, sums.may_store))
                own.singles = sums.singles

    def _may_be_stored_to(self, on_stack: bool, offset: int, size_bytes: int) -> bool:  # noqa: FBT001
        """Whether nothing of the image but data is stored to; a store that is to none of it is ``is_far``.

        Where it is not known where the stack is, it is taken to be apart from it.
        """
        pointer = self.request.stack_pointer
        if on_stack and pointer is None:
            return True
        first = (pointer + offset) % _WORD if on_stack and pointer is not None else offset
        end = first + size_bytes
        if end > _WORD:
            return False  # around the end of the address space, to whatever is at its beginning
        if any(low <= first and end <= high for low, high in self._writable):
            return True
        self.is_far |= not on_stack
        parts = self.request.image.segments
        return not any(one.address < end and first < one.address + one.size_bytes for one in parts)

    def _name(self, on_stack: bool, offset: int, size_bytes: int) -> None:  # noqa: FBT001
        """Note by what name words are accessed, where it is known which those of the stack are."""
        pointer = self.request.stack_pointer
        if pointer is not None:
            first = (pointer + offset) % _WORD if on_stack else offset
            own = self._by_stack if on_stack else self._by_number
            own.update(range(first >> 2, (first + size_bytes - 1 >> 2) + 1))

    def _note(self, key: tuple[int, bool], on_stack: bool, offset: int, size_bytes: int) -> None:  # noqa: FBT001
        if key not in self.ranges:
            self.ranges[key] = _Range(on_stack, size_bytes, offset, offset)
            return
        known = self.ranges[key]
        if known is None:
            return
        if (known.on_stack, known.size_bytes) != (on_stack, size_bytes):
            self.ranges[key] = None
        elif not known.low == known.high == offset:
            known.add(offset)

    def accesses(self) -> Iterator[AccessRange]:
        """The ranges that runs are held against; all memory of an instruction whose accesses have no common one."""
        line_bytes = self.data.config.line_bytes if self.data else 0
        for (at, is_store), one in sorted(self.ranges.items()):
            if one is None:
                yield AccessRange(at, (), is_store, "any", 0, 1, _WORD - 1, _WORD_BYTES, "any")
                continue
            base, steps = "stack" if one.on_stack else "number", (one.high - one.low) // one.stride if one.stride else 0
            place = ("stack" if one.on_stack else "static") if line_bytes else "any"
            yield AccessRange(at, (), is_store, base, one.low % _WORD, one.stride, steps, one.size_bytes, place)

    def events(self) -> tuple[tuple[str, int, int], ...]:
        """Names, numbers and costs of what takes place besides."""
        target, found = self.request.target, list[tuple[str, int, int]]()
        if self.code is not None:
            found += self.code.events("fetches", target)
        if self.data is not None:
            found += self.data.events("data", target)
        elif self.waiting_cycles:
            found.append(("followed:waiting", self.waiting_cycles, 1))
        return tuple(found)


def _accesses(instruction: Instruction) -> int:
    """How many accesses it makes."""
    return sum(one.count * (2 if one.kind is AccessKind.LOAD_STORE else 1) for one in instruction.accesses)


def _bound(request: BoundRequest, run: EntryRun, seen: _Seen, costs: Costs) -> Bound:
    functions = _functions(request.image, run)
    names = {at: f"{function.name}+{at - function.address:#x}" for at, function in functions.items()}
    problems = {unit: _problem(request, run, names, costs, unit, seen.events()) for unit in UNITS}
    solved = {unit: solve(flow_system(problem)) for unit, problem in problems.items()}
    besides = sum(count * cost for _, count, cost in seen.events())
    return Bound(
        entry=request.entry,
        parameters={},
        instructions=solved["instructions"].certified,
        cycles=solved["cycles"].certified,
        blocks=len(run.blocks),
        loops=(),
        assumptions=tuple(_assumptions(request, run, seen)),
        worst_path=tuple(_path(request.image, run, functions, costs, "instructions")),
        points=tuple((at, ()) for at in run.blocks),
        accesses=tuple(seen.accesses()),
        registers=(),
        loop_claims=(),
        flow_claims=(),
        certify=cache(lambda: _certificates(problems, solved)),
        worst_path_cycles=tuple(_path(request.image, run, functions, costs, "cycles")),
        unattributed_cycles=besides,
        graph=_graph(run, functions),
        initial_data=request.initial.at_entry if request.initial else (),
        stack_pointer=_stack_pointer(request, run),
    )


def _certificates(problems: Mapping[Unit, FlowProblem], solved: Mapping[Unit, Solution]) -> tuple[str, ...]:
    return tuple(certificate(problems[unit], solved[unit]) for unit in UNITS)


def _functions(image: Image, run: EntryRun) -> Mapping[int, Symbol]:
    """The function of each block; of code in none, what is called there, or was called last before it."""
    called = sorted({one.target for one in run.passages if one.kind == "call" and not image.function_at(one.target)})
    before = {at: bisect_right(called, at) for at in run.blocks}
    starts = {at: called[number - 1] if number else at for at, number in before.items()}
    return {at: image.function_at(at) or function_from(image, starts[at]) for at in run.blocks}


def _problem(  # noqa: PLR0917  what a flow problem is made of
    request: BoundRequest,
    run: EntryRun,
    names: Mapping[int, str],
    costs: Costs,
    unit: Unit,
    events: Iterable[tuple[str, int, int]],
) -> FlowProblem:
    """The flow problem: each edge is taken as often as in the run."""
    edges, limits, exits = [], [], {}
    for passage, count in run.passages.items():
        extra = _passing(run, passage, costs, unit)
        if passage.target == EXIT:
            exits[names[passage.source]] = extra
            continue
        name = f"{names[passage.source]}>{names[passage.target]}:{passage.kind}"
        edges.append(FlowEdge(name, names[passage.source], names[passage.target], extra))
        limits.append(Constraint(f"followed:{name}", {name: 1}, "<=", count))
    if not edges:  # by what is limited the checker sees that a run is followed
        limits.append(Constraint("followed:enter", {ENTER: 1}, "<=", 1))
    own = tuple(events) if unit == "cycles" else ()
    return FlowProblem(
        image_sha256=request.image.sha256,
        entry_function=request.entry,
        target=request.target.name,
        unit=unit,
        nodes=tuple(FlowNode(names[at], at, _cost(block, costs, unit)) for at, block in run.blocks.items()),
        edges=tuple(sorted(edges, key=lambda edge: edge.name)),
        entry=names[next(iter(run.blocks))],
        exits=tuple(exits),
        auxiliaries=tuple(AuxiliaryVariable(name, cost) for name, _, cost in own),
        exit_costs=exits,
        constraints=(*limits, *(Constraint(f"most:{name}", {name: 1}, "<=", count) for name, count, _ in own)),
    )


def _cost(block: Block, costs: Costs, unit: Unit) -> int:
    return len(block.instructions) if unit == "instructions" else block_cycles(block, costs)


def _passing(run: EntryRun, passage: Passage, costs: Costs, unit: Unit) -> int:
    return 0 if unit == "instructions" else taken_cycles(run.blocks[passage.source], passage.kind, costs)


def _path(
    image: Image, run: EntryRun, functions: Mapping[int, Symbol], costs: Costs, unit: Unit
) -> Iterator[PathBlock]:
    """The blocks of the run, with what leaving them costs."""
    leaving = dict.fromkeys(run.blocks, 0)
    for passage, count in run.passages.items():
        leaving[passage.source] += count * _passing(run, passage, costs, unit)
    counts = run.executions()
    for at, block in sorted(run.blocks.items()):
        yield PathBlock(
            function=functions[at].name,
            context=(),
            address=at,
            end_address=block.end_address,
            location=image.location(at),
            instructions=len(block.instructions),
            executions=counts[at],
            cost=counts[at] * _cost(block, costs, unit) + leaving[at],
        )


def _graph(run: EntryRun, functions: Mapping[int, Symbol]) -> FlowGraph:
    counts = run.executions()
    of = {at: function.name for at, function in functions.items()}
    return FlowGraph(
        tuple(GraphBlock(of[at], at, block.end_address, counts[at]) for at, block in sorted(run.blocks.items())),
        tuple(
            GraphEdge(one.source, one.target, one.kind, of[one.source], of[one.target], count)
            for one, count in run.passages.items()
            if one.target != EXIT
        ),
    )


def _assumptions(request: BoundRequest, run: EntryRun, seen: _Seen) -> Iterator[Assumption]:
    """What the bound rests on.

    *Soundness:* a store by the stack pointer is taken to be to the stack, and one to what is in no object of the image
    to miss it; so is one to its data, where nothing is said of memory, which would say that of the stack.
    """
    target = request.target
    yield from of_machine(target)
    is_apart = bool(request.initial and request.initial.at_entry)
    if seen.is_far or not (is_apart or all(one and one.on_stack for (_, stores), one in seen.ranges.items() if stores)):
        yield STACK_SEPARATION
    if any(one is None or (one.on_stack and is_store) for (_, is_store), one in seen.ranges.items()):
        yield STACK_STORES
    yield from of_process_stack(run.blocks.values())
    on_stack = any(one is None or one.on_stack for one in seen.ranges.values())
    if run.tells_alignment or ((target.dcache or target.unaligned) and on_stack):
        yield STACK_ALIGNED
    if request.initial is not None:  # nothing is said of what stays constant
        initial = replace(request.initial, content=(), entry=request.initial.at_entry)
        yield from assumed_data(replace(request, initial=initial))
    yield from (*stack_place(_stack_pointer(request, run)), *stack_bounds(run.stack_reach))


def _stack_pointer(request: BoundRequest, run: EntryRun) -> int | None:
    """Its value at entry where that is assumed, and something rests on it."""
    return request.stack_pointer if request.target.dcache is not None or run.tells_stack_pointer else None
