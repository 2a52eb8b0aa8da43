"""The shapes of what a bound consists of, see `wcet_probe.reports.formats.shapes`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from wcet_probe.answer.bounds.gap import Cause
from wcet_probe.model.proof import Assumption, FactEffect, IdleFact, LoopBound, PathBlock, PointerVerdict, Units
from wcet_probe.reports.formats.shapes_base import Address, Fraction, Natural, Sha256, extends
from wcet_probe.reports.formats.shapes_module import ModuleShape


@extends(LoopBound)
class LoopShape(TypedDict):
    """A loop in one call context."""

    address: Address
    context: list[Address]
    file: str | None
    line: Natural | None
    where: str | None
    because: str | None
    observed_max: Natural | None


@extends(Assumption)
class AssumptionShape(TypedDict):
    """What the bound takes as given, and in how many executions it was checked; null where it was in none."""

    executions: Natural | None


class FlowClaimShape(TypedDict):
    """A sum of executions that a flow fact limits."""

    where: str
    statement: str
    constant: int
    observed: int | None


@extends(PathBlock, "cost")
class PathBlockShape(TypedDict):
    """A block on the worst path in instructions."""

    address: Address
    end_address: Address
    context: list[Address]
    cost_instructions: Natural


@extends(PathBlock, "cost")
class CyclesBlockShape(TypedDict):
    """A block on the worst path in cycles."""

    address: Address
    end_address: Address
    context: list[Address]
    cost_cycles: Natural


class GraphBlockShape(TypedDict):
    """A basic block, call contexts put together."""

    address: Address
    end_address: Address
    function: str
    worst_executions: Natural | None
    observed_executions: Natural | None


class GraphEdgeShape(TypedDict):
    """An edge between basic blocks, call contexts put together."""

    source: Address
    target: Address
    kind: Literal["fall", "jump", "call", "return", "unwind", "resume"]
    worst_executions: Natural | None


class CallShape(TypedDict):
    """A function calls another one."""

    caller: str
    callee: str
    worst_executions: Natural | None


class GraphShape(TypedDict):
    """What can be executed, with the counts of the worst path in instructions."""

    blocks: list[GraphBlockShape]
    edges: list[GraphEdgeShape]
    calls: list[CallShape]


class TypeBoundShape(TypedDict):
    """A loop with no other bound than the width of a type."""

    loop: str
    location: str
    max: Natural
    rests_on: str
    remedy: str


class BoundShape(TypedDict):
    """A proven upper bound."""

    entry: str
    instructions: Natural
    cycles: Natural
    parameters: dict[str, int]
    blocks: Natural
    assumptions: list[AssumptionShape]
    loops: list[LoopShape]
    flow_claims: list[FlowClaimShape]
    idle_facts: list[IdleFact]
    graph: GraphShape
    worst_path: list[PathBlockShape]
    worst_path_cycles: list[CyclesBlockShape]
    unattributed_cycles: Natural | None
    certificates: list[str]
    by_type: NotRequired[list[TypeBoundShape]]
    summarised: NotRequired[list[str]]
    callees: NotRequired[list[list[str]]]
    pointer_facts: NotRequired[list[PointerVerdict]]
    module: NotRequired[ModuleShape]
    digest: Sha256


class GapBlockShape(TypedDict):
    """A stretch of code that the worst path executes more or less often than was observed."""

    address: Address
    location: str
    code: list[str]
    bound_executions: Natural
    observed_executions: Natural
    instructions: int
    cause: Cause


class GapShape(TypedDict):
    """Where the slack in instructions is."""

    instructions: int
    above_worst_path: int
    blocks: list[GapBlockShape]


class FactEffectsShape(TypedDict):
    """What the facts do to the bound."""

    all: Units
    loop_facts_only: Units | None
    no_facts: Units | None
    facts: list[FactEffect] | None


class TermShape(TypedDict):
    """A factor times an expression."""

    expression: str
    factor: Fraction


class FormulaShape(TypedDict):
    """The bound in instructions over a parameter."""

    parameter: str
    constant: Fraction
    terms: list[TermShape]
    samples: list[dict[str, int]]
