"""An answer with its provenance: the verdict, the witness, the bound, and all that was asked and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache, OperationKind, ScenarioPlan
from wcet_probe.model.target import Target


class Verdict(StrEnum):
    """What an answer says. ``OBSERVED`` is a witness alone: no bound was asked for.

    ``BOUNDED_BY_TYPE`` is a bound that rests on the width of a type (``Bound.by_type``): it holds, and says nothing.
    """

    OBSERVED = "OBSERVED"
    BOUNDED = "BOUNDED"
    BOUNDED_BY_TYPE = "BOUNDED_BY_TYPE"
    UNBOUNDED = "UNBOUNDED"
    OVER_BUDGET = "OVER_BUDGET"
    CONTRADICTED = "CONTRADICTED"


@dataclass(frozen=True, slots=True)
class StateCheck:
    """One predicted fact of the heap state, and what the guest's heap showed."""

    fact: str
    predicted: int | str
    found: int | str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate state of a scenario, and what the measured operation cost there."""

    variant: str
    instructions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """A second engine's account of the measured call; it shares no code with the first, and agrees with it.

    The misses and write-backs are of a second cache simulation, fed with the second engine's fetches and accesses. They
    are None where there is no such cache, and with warm caches, whose content only the first engine knows. ``returns``
    are those of functions to their callers, as far as there is a proof whose graph tells calls.
    """

    engine: str
    instructions: int
    loads: int
    stores: int
    icache_misses: int | None
    dcache_misses: int | None
    dcache_writebacks: int | None
    returns: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """What of a question the answer does not repeat.

    Attributes:
        seed: of a random scenario.
        cache_options: texts of the options that changed the target's caches.
        initial_cache: content of the caches that was asked for, or None for the scenario's own.
        compiler: ``zig`` or a command.
        cross_check: whether a second engine was asked for; None where that was left to the length of the call.
    """

    seed: int = 0
    cache_options: tuple[str, ...] = ()
    initial_cache: InitialCache | None = None
    compiler: str = "zig"
    cross_check: bool | None = None


@dataclass(frozen=True, slots=True)
class Witness:
    """The dearest known call in one unit, and the state in which it was measured.

    Attributes:
        plan: the scenario's plan of the state.
        initial_cache: content of the caches before the call.
        checks: predicted state against the guest's heap, each equal.
        measurement: what was counted.
        cross_check: the second engine's account, or None.
    """

    plan: ScenarioPlan
    initial_cache: InitialCache
    checks: tuple[StateCheck, ...]
    measurement: Measurement
    cross_check: CrossCheck | None

    def value(self, unit: str) -> int:
        """What was counted in ``unit``, ``instructions`` or ``cycles``."""
        return {"instructions": self.measurement.instructions, "cycles": self.measurement.cycles}[unit]

    @property
    def refused(self) -> bool:
        """Whether the call is an allocation that returned no block."""
        return self.plan.measured.kind is OperationKind.MALLOC and not self.measurement.result


@dataclass(frozen=True, slots=True)
class Report:
    """All of an answer plus its provenance. Renderers only read it.

    Attributes:
        allocator: what was measured, with its parameter values.
        target: the core, with the caches as configured for this run.
        plan: the scenario's plan for this heap.
        heap_bytes: size of the heap.
        initial_cache: content of the caches before the measured call.
        image: the binary.
        candidates: what was measured in each candidate state of the scenario; the plan's is the extreme one in cycles.
        checks: predicted state against the guest's heap, each equal.
        measurement: the witness.
        cross_check: the second engine's account of the measured call.
        verdict: what the answer says.
        bound: the proved upper bound, where it was asked for and found.
        no_bound: why there is none, in words, where it was asked for and not found.
        question: the rest of what was asked.
        instructions: code of the image in order of addresses.
        loop_maxima: by address of a bounded loop's header, its most executions for one entry of the loop in any run.
        flow_maxima: of each flow claim of the bound, the largest sum that any call had.
        no_cross_check: why the second engine did not repeat a call, in words; empty where it repeated all of them.
        executions: by the id of an assumption that runs were held against, in how many executions of what it speaks of;
            none of an assumption that no run can check.
        in_instructions: the witness in instructions, where it is another one than in cycles.
        left_out: candidate states that are none: the heap refuses the block that is freed, or the allocator does not
            come back from the calls that lead there.
    """

    allocator: Allocator
    target: Target
    plan: ScenarioPlan
    heap_bytes: int
    initial_cache: InitialCache
    image: Image
    candidates: tuple[Candidate, ...]
    checks: tuple[StateCheck, ...]
    measurement: Measurement
    cross_check: CrossCheck | None
    verdict: Verdict
    bound: Bound | None = None
    no_bound: str = ""
    question: Question = Question()
    instructions: tuple[Instruction, ...] = field(default=(), repr=False)
    loop_maxima: Mapping[int, int] = field(default_factory=dict)
    flow_maxima: tuple[int, ...] = ()
    no_cross_check: str = ""
    executions: Mapping[str, int] = field(default_factory=dict)
    in_instructions: Witness | None = None
    left_out: tuple[str, ...] = ()

    @property
    def witnesses(self) -> Mapping[str, Witness]:
        """The dearest known call by unit, ``instructions`` and ``cycles``; in a best case, the cheapest."""
        seen = Witness(self.plan, self.initial_cache, self.checks, self.measurement, self.cross_check)
        return {"instructions": self.in_instructions or seen, "cycles": seen}
