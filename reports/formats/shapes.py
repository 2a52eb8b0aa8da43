"""What the JSON documents hold, as types: the one description of them, which the schemas are generated from.

A key is described where it is made. A record of the model that a document holds as it is stands here by its own class;
a shape that `extends` a record has the record's keys, without some, and keys of its own.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from wcet_probe.answer.studies.growth import Growth
from wcet_probe.model.allocator import Allocator, OwnBuild
from wcet_probe.model.instruction import Control
from wcet_probe.model.measurement import CacheCounts, Measurement, Run
from wcet_probe.model.report import Candidate, CrossCheck, StateCheck, Verdict
from wcet_probe.model.scenario import FoundBy, InitialCache, Operation, OperationKind
from wcet_probe.model.target import CacheConfig, MemoryTiming, Target
from wcet_probe.reports.formats.shapes_base import Address, BinaryShape, LineNumber, Natural, Sha256, ToolShape, extends
from wcet_probe.reports.formats.shapes_bound import BoundShape, FactEffectsShape, FormulaShape, GapShape
from wcet_probe.reports.formats.shapes_module import ModuleDocument

# ---------------------------------------------------------------------------------------------------- hardware and code


@extends(CacheConfig)
class CacheShape(TypedDict):
    """A cache with its capacity."""

    size_bytes: Natural


class CachesShape(TypedDict):
    """The caches as configured; null where the core has none."""

    icache: CacheShape | None
    dcache: CacheShape | None


class BasesShape(TypedDict):
    """How many numbers of a target come from where; a row of a table and a cache count as one each."""

    manual: Natural
    measured: Natural
    assumed: Natural


@extends(Target, "icache", "dcache")
class TargetDocument(TypedDict):
    """A core: every number with its source and basis."""

    format: Literal["wcet-probe-target"]
    version: Literal[1]
    bases: BasesShape
    caches: CachesShape


class SourceShape(TypedDict):
    """A source file."""

    name: str
    sha256: Sha256


@extends(OwnBuild)
class OwnBuildShape(TypedDict):
    """How an allocator that is none of the package is built and called."""

    objects: list[SourceShape]
    elf: SourceShape | None


@extends(Allocator, "found")
class AllocatorDocument(TypedDict):
    """The manifest of an allocator; of the sources, and of states that searches found, only the file names."""

    format: Literal["wcet-probe-allocator"]
    version: Literal[1]
    sources: list[str]
    found: NotRequired[list[str]]
    own: OwnBuildShape | None


@extends(Allocator, "found")
class ManifestShape(TypedDict):
    """The manifest of an allocator, with a hash of each source and of each state that a search found."""

    format: Literal["wcet-probe-allocator"]
    version: Literal[1]
    sources: list[SourceShape]
    found: NotRequired[list[SourceShape]]
    own: OwnBuildShape | None


class FunctionShape(TypedDict):
    """A function; the hash is of its machine code, null where the symbol has no size."""

    name: str
    address: Address
    size_bytes: Natural
    sha256: Sha256 | None


class ImageShape(TypedDict):
    """The binary, and the functions that the bound or the observation reaches."""

    sha256: Sha256
    size_bytes: Natural
    compiler: str
    flags: list[str]
    functions: list[FunctionShape]


class InstructionShape(TypedDict):
    """An instruction that the bound or the observation reaches, and its place in the source."""

    address: Address
    size_bytes: Natural
    text: str
    control: Control
    function: str | None
    file: str | None
    line: Natural | None


class RequestShape(TypedDict):
    """What was asked."""

    scenario: str
    heap_bytes: Natural
    seed: Natural
    parameters: dict[str, int]
    caches: list[str]
    initial_cache: InitialCache | None
    compiler: str
    cross_check: bool | None


# ---------------------------------------------------------------------------------------------------------- observation


class StateShape(TypedDict):
    """The heap state that was reached, and why it is the worst."""

    variant: str
    description: str
    why: list[str]
    checks: list[StateCheck]
    candidates: list[Candidate]
    left_out: NotRequired[list[str]]
    driver: str | None
    driver_value: int | None
    found_by: NotRequired[FoundBy]


class WitnessShape(TypedDict):
    """The dearest known call in a unit, with its costs in both units and its state."""

    value: Natural
    instructions: Natural
    cycles: Natural
    variant: str
    description: str
    why: list[str]
    checks: list[StateCheck]
    driver: str | None
    driver_value: int | None
    found_by: NotRequired[FoundBy]
    initial_cache: InitialCache
    measured_operation: Operation
    refused: NotRequired[bool]
    cross_check: CrossCheck | None


class WitnessesShape(TypedDict):
    """A witness for each unit."""

    instructions: WitnessShape
    cycles: WitnessShape


@extends(CacheCounts)
class CacheCountsShape(TypedDict):
    """Counts of a cache with their sums."""

    hits: Natural
    misses: Natural


class TouchedSetsShape(TypedDict):
    """Sorted indices of cache sets."""

    instruction: list[Natural]
    data: list[Natural]


@extends(Run)
class RunShape(TypedDict):
    """A stretch of executed instructions."""

    address: Address
    function: str | None
    location: str


@extends(Measurement, "touched_instruction_sets", "touched_data_sets")
class ObservedShape(TypedDict):
    """The witness."""

    icache: CacheCountsShape
    dcache: CacheCountsShape
    touched_sets: TouchedSetsShape
    runs: list[RunShape]


class UnitsShape(TypedDict):
    """A number in each unit."""

    instructions: int
    cycles: int


# ------------------------------------------------------------------------------------------------------------ documents


class ResultDocument(TypedDict):
    """The answer for one allocator, target, scenario and heap."""

    format: Literal["wcet-probe-result"]
    version: Literal[1]
    tool: ToolShape
    request: RequestShape
    command: str
    allocator: str
    allocator_manifest: ManifestShape
    target: str
    target_configuration: TargetDocument
    scenario: str
    heap_bytes: Natural
    image: ImageShape
    listing: list[InstructionShape]
    source_lines: dict[str, dict[LineNumber, str]]
    parameters: dict[str, int]
    initial_cache: InitialCache
    measured_operation: Operation
    state: StateShape
    caches: CachesShape
    memory: MemoryTiming
    observed: ObservedShape
    witnesses: WitnessesShape
    cross_check: CrossCheck | None
    no_cross_check: str | None
    bound: BoundShape | None
    no_bound: str | None
    slack: UnitsShape | None
    gap: GapShape | None
    fact_effects: FactEffectsShape | None
    formula: FormulaShape | None
    verdict: Verdict


class FirmwareRequestShape(TypedDict):
    """What was asked of a firmware: names of files, and the hashes of the texts that were read."""

    elf: str
    entry: str
    parameters: dict[str, int]
    caches: list[str]
    facts: list[SourceShape]
    sources: list[SourceShape]


class ObservedCallShape(TypedDict):
    """A call of the bounded function that was run."""

    call: str
    instructions: Natural
    cycles: Natural
    result: Natural
    is_repeated: bool


class FoundInputsShape(TypedDict):
    """What a search for dearer inputs found, with the statements that set them up."""

    evaluations: Natural
    seed: Natural
    instructions: Natural
    cycles: Natural
    script: list[str]


class ObservedRunShape(TypedDict):
    """What was run and held against the bound, with the most of each unit."""

    statements: list[str]
    calls: list[ObservedCallShape]
    instructions: Natural
    cycles: Natural
    held: NotRequired[Natural]
    repeated: NotRequired[Natural]
    found: FoundInputsShape | None


class BoundDocument(TypedDict):
    """A bound of a function of any firmware."""

    format: Literal["wcet-probe-bound"]
    version: Literal[1]
    tool: ToolShape
    request: NotRequired[FirmwareRequestShape]
    target: str
    target_configuration: TargetDocument
    image: ImageShape
    listing: list[InstructionShape]
    source_lines: dict[str, dict[LineNumber, str]]
    sources: list[str]
    verdict: NotRequired[Verdict]
    bound: BoundShape
    observed: NotRequired[ObservedRunShape | None]
    fact_effects: NotRequired[FactEffectsShape]


class ResultsDocument(TypedDict):
    """Several answers, in the order asked."""

    format: Literal["wcet-probe-results"]
    version: Literal[1]
    results: list[ResultDocument | BoundDocument]


class ScenarioDocument(TypedDict):
    """A scenario, and the allocators that offer it."""

    format: Literal["wcet-probe-scenario"]
    version: Literal[1]
    name: str
    description: str
    allocators: list[str]


@extends(Growth)
class GrowthDocument(TypedDict):
    """How the worst case grows with the heap."""

    format: Literal["wcet-probe-growth"]
    version: Literal[1]
    allocator: str
    target: str
    scenario: str


class CellShape(TypedDict):
    """An allocator measured in the state that was built for another one, or for itself."""

    allocator: str
    state_of: str
    instructions: Natural | None
    cycles: Natural | None
    refused: Natural
    note: str


class MatrixDocument(TypedDict):
    """Each allocator in the states of the others."""

    format: Literal["wcet-probe-matrix"]
    version: Literal[1]
    target: str
    scenario: str
    heap_bytes: Natural
    cells: list[CellShape]


class SearchDocument(TypedDict):
    """What a search found beside what was constructed."""

    format: Literal["wcet-probe-search"]
    version: Literal[1]
    allocator: str
    target: str
    operation: OperationKind
    heap_bytes: Natural
    evaluations: Natural
    seed: Natural
    climbs: Natural
    constructed_instructions: Natural
    found_instructions: Natural
    beaten: bool
    sequence: list[Operation]
    kept: str | None


class AttackDocument(TypedDict):
    """What came of changing the constructed states: the dearest one, as operations and the measured one."""

    format: Literal["wcet-probe-attack"]
    version: Literal[1]
    allocator: str
    target: str
    operation: OperationKind
    heap_bytes: Natural
    seed: Natural
    unit: Literal["instructions", "cycles"]
    evaluations: Natural
    constructed: Natural
    known: Natural
    found: Natural
    bound: Natural | None
    beaten: bool
    origin: str
    operations: list[Operation]
    measured: Operation
    kept: str | None


class ReplayToolShape(TypedDict):
    """The program."""

    name: Literal["wcet-probe"]
    version: str


class ColumnsShape(TypedDict):
    """Operations, column by column."""

    kind: list[OperationKind]
    size_bytes: list[Natural]
    instructions: list[Natural]


class ReplayDocument(TypedDict):
    """What each operation of a workload costs."""

    format: Literal["wcet-probe-replay"]
    version: Literal[1]
    tool: ReplayToolShape
    allocator: str
    parameters: dict[str, int]
    target: str
    scenario: str
    variant: str
    heap_bytes: Natural
    seed: Natural
    image: BinaryShape
    operations: ColumnsShape


DOCUMENTS: tuple[type, ...] = (
    ResultDocument,
    ResultsDocument,
    BoundDocument,
    AllocatorDocument,
    TargetDocument,
    ScenarioDocument,
    GrowthDocument,
    MatrixDocument,
    SearchDocument,
    AttackDocument,
    ReplayDocument,
    ModuleDocument,
)
"""Every document that has a schema."""
