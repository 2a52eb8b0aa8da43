"""A synthetic world for the command line: one allocator, two targets, and a probe that answers at once."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from wcet_probe.answer.witness import probe
from wcet_probe.catalog import lookup as catalog
from wcet_probe.cli import main
from wcet_probe.errors import unknown_name
from wcet_probe.model.allocator import Allocator, Complexity, Parameter
from wcet_probe.model.image import Image, LineTable, Symbol
from wcet_probe.model.measurement import CacheCounts, Measurement, Run
from wcet_probe.model.proof import Assumption, Bound, LoopBound, Origin, PathBlock
from wcet_probe.model.report import Candidate, Report, StateCheck, Verdict
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import (
    Basis,
    CacheConfig,
    Isa,
    MemoryMap,
    MemoryRange,
    MemoryTiming,
    Replacement,
    Sourced,
    Target,
    Timing,
)
from wcet_probe.reports.formats import document
from wcet_probe.reports.formats.document import dumps
from wcet_probe.reports.formats.schema import FORMATS, validate
from wcet_probe.scenarios import lookup as scenarios

GOLDEN = Path(__file__).parent / "golden"
SCENARIOS = ("worst-alloc", "worst-free")

CACHE = CacheConfig(
    sets=128,
    ways=4,
    line_bytes=32,
    replacement=Replacement.LRU,
    write_back=True,
    write_allocate=True,
    seed=0,
    basis=Basis.MANUAL,
    source="Toy manual, table 5, p. 12",
)
CACHED = Target(
    name="toy-cached",
    title="A toy core with caches",
    isa=Isa.POWERPC,
    big_endian=True,
    emulator_model="UC_TOY",
    pcode_language="Toy:BE:32:default",
    compiler_flags={"clang": ("--target=powerpc-none-eabi", "-mcpu=603e"), "gcc": ("-mcpu=603e",)},
    gcc_prefix="powerpc-linux-gnu-",
    linker_emulation="elf32ppc",
    timing={
        "integer": Timing(1, 0, 0, 0, Basis.MANUAL, "Toy manual, table 1, p. 3"),
        "load_multiple": Timing(2, 1, 1, 0, Basis.ASSUMED, "Toy manual, table 2, p. 4", "2 to 3 cycles; 2 is taken"),
    },
    condition_failed=Timing(1, 0, 0, 0, Basis.MANUAL, "Toy manual, table 1, p. 3"),
    icache=replace(CACHE, write_back=False, write_allocate=False),
    dcache=CACHE,
    memory=MemoryTiming(
        Sourced(8, Basis.MANUAL, "Toy manual, table 6, p. 13"),
        Sourced(24, Basis.ASSUMED, "a board of the time"),
        Sourced(3, Basis.MEASURED, "on the bench"),
    ),
    memory_map=MemoryMap(
        MemoryRange(0x10000, 0x10000), MemoryRange(0x40000, 0x10000), MemoryRange(0x60000, 0x1000), 0x10000000
    ),
    modelling_choices=("Cycles add up, one instruction after another, and memory stalls overlap nothing of them.",),
)
PLAIN = replace(CACHED, name="toy-plain", title="A toy core without caches", icache=None, dcache=None)
TARGETS = {target.name: target for target in (CACHED, PLAIN)}
ALLOCATOR = Allocator(
    name="toyfit",
    title="Toy fit",
    summary="An allocator that is made for tests and gives nobody any memory.",
    sources=(("toyfit.h", "/* header */"), ("toyfit.c", "/* source */")),
    entry_points={"init": "toyfit_init", "malloc": "toyfit_malloc", "free": "toyfit_free", "check": "toyfit_check"},
    alignment_bytes=8,
    minimum_heap_bytes=1024,
    parameters=(Parameter("bits", "TOYFIT_BITS", 5, (4, 5), "second-level bits"),),
    values={"bits": 5},
    presets={},
    takes_cache_set=False,
    complexity={"malloc": Complexity("O(1)", "C06 table 1"), "free": Complexity("O(n)", "C06 table 1")},
    literature=("C06: a paper",),
)
IMAGE = Image(
    elf=b"",
    sha256="0123456789abcdef" * 4,
    isa=Isa.POWERPC,
    big_endian=True,
    segments=(),
    symbols={},
    functions=(Symbol("toyfit_malloc", 0x10000, 0x100, True), Symbol("map_size", 0x10100, 0x40, True)),
    code=(),
    lines=LineTable((0x10000, 0x10100, 0x10140), ("toyfit.c", "toyfit.c", ""), (12, 40, 0)),
    compiler="clang version 22.1.8 [ziglang 0.17.0]",
    flags=("-O2", "-std=c11"),
)
PLAN = ScenarioPlan(
    scenario="worst-alloc",
    variant="one free block",
    trace=Trace((), (), (), (), 0),
    measured=Operation(OperationKind.MALLOC, 0, 497),
    initial_cache=InitialCache.DIRTY,
    state="one block of 4194288 bytes is free above the request's row; malloc(497) takes it",
    why=(
        "No list from its class to the end of its row holds a block: the first-level bitmap is searched too.",
        "The block is larger: it is split, and the rest is inserted.",
    ),
    prediction={"free blocks": 1},
)
COUNTS = Measurement(
    instructions=123,
    cycles=1321,
    instruction_cycles=133,
    stall_cycles=1188,
    loads=10,
    stores=12,
    icache=CacheCounts(True, 105, 18, 0, 0, 0, 0),
    dcache=CacheCounts(True, 4, 6, 9, 3, 9, 0),
    touched_instruction_sets=tuple(range(16, 34)),
    touched_data_sets=(0, 1, 5, 17, 60, 61, 127),
    touched_sets_by_region={"static": (0, 1, 60, 61), "heap_metadata": (5, 17), "heap_blocks": (127,), "stack": ()},
    touched_bytes_by_region={"static": 40, "heap_metadata": 16, "heap_blocks": 8, "stack": 0},
    stack_bytes=16,
    runs=(Run(0x10000, 25, 1), Run(0x10100, 49, 2)),
    path=(0, 1, 1),
    path_complete=True,
    result=0x10000020,
)
NO_CACHE = CacheCounts(False, 0, 0, 0, 0, 0, 0)
UNCACHED_COUNTS = replace(
    COUNTS,
    cycles=154,
    instruction_cycles=154,
    stall_cycles=0,
    icache=NO_CACHE,
    dcache=NO_CACHE,
    touched_instruction_sets=(),
    touched_data_sets=(),
    touched_sets_by_region={},
)
CANDIDATES = (Candidate("one free block", 123, 1321), Candidate("rest joins a list", 120, 1178))

LOOP = LoopBound(
    name="map_size+0x8",
    function="map_size",
    address=0x10108,
    context=(0x10020,),
    location="map_size+0x8 (toyfit.c:40)",
    file="toyfit.c",
    line=40,
    max=6,
    total=None,
    origin=Origin.PROVED,
    expression="r3 != 0, steps of 1, 5 at entry",
    where="",
    because="",
)
TOLD = replace(
    LOOP,
    name="toyfit_malloc+0x10",
    function="toyfit_malloc",
    address=0x10010,
    context=(),
    location="toyfit_malloc+0x10 (toyfit.c:12)",
    line=12,
    max=1024,
    total=2048,
    origin=Origin.FACT,
    expression="H // 4096",
    where="toyfit/facts.toml:3",
    because="free blocks never touch",
)
ASSUMPTIONS = (
    Assumption("no-interference", "nothing else runs during the call", "not checked: the integrator's"),
    Assumption("fact toyfit/facts.toml:3", "the loop at toyfit_malloc+0x10 runs at most H // 4096 times", "every run"),
)
BOUND = Bound(
    entry="toyfit_malloc",
    parameters={"H": 4 << 20},
    instructions=126,
    cycles=2642,
    blocks=3,
    loops=(LOOP, TOLD),
    assumptions=ASSUMPTIONS,
    worst_path=(
        PathBlock("toyfit_malloc", (), 0x10000, 0x10064, "toyfit_malloc+0x0 (toyfit.c:12)", 25, 1, 25),
        PathBlock("map_size", (0x10020,), 0x10100, 0x101C4, "map_size+0x0 (toyfit.c:40)", 50, 2, 100),
    ),
    points=(),
    accesses=(),
    registers=(),
    loop_claims=(),
    flow_claims=(),
    certify=lambda: ("no certificate",),
)


def answer(request, progress=lambda _: None):
    """What the probe would answer, from the fixed counts above."""
    if request.scenario not in SCENARIOS:
        raise unknown_name(f"scenario of {request.allocator.name}", request.scenario, SCENARIOS)
    progress("measuring")
    return Report(
        allocator=request.allocator,
        target=request.target,
        plan=replace(PLAN, scenario=request.scenario),
        heap_bytes=request.heap_bytes,
        initial_cache=request.initial_cache or PLAN.initial_cache,
        image=IMAGE,
        candidates=CANDIDATES,
        checks=(StateCheck("free blocks", 1, 1),),
        measurement=COUNTS if request.target.icache or request.target.dcache else UNCACHED_COUNTS,
        cross_check=None,
        verdict=Verdict.BOUNDED if request.prove else Verdict.OBSERVED,
        bound=BOUND if request.prove else None,
    )


class World:
    """Runs the command line in the synthetic world and keeps the requests that reach the probe."""

    def __init__(self, monkeypatch, capsys):
        self.requests = []
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def observe(self, request, progress=lambda _: None, **_):
        self.requests.append(request)
        return answer(request, progress)

    def fail_with(self, error):
        def observe(*_, **__):
            raise error

        self._monkeypatch.setattr(probe, "observe", observe)

    def run(self, *arguments):
        """Exit code, stdout, stderr."""
        code = main(arguments)
        streams = self._capsys.readouterr()
        return code, streams.out, streams.err


def _load_allocator(name, values={}, preset=None):  # noqa: ARG001, B006  (the real one's; never changed)
    if name != ALLOCATOR.name:
        raise unknown_name("allocator", name, [ALLOCATOR.name])
    for key in values:
        if key not in ALLOCATOR.values:
            raise unknown_name(f"parameter of {name}", key, ALLOCATOR.values)
    return replace(ALLOCATOR, values={**ALLOCATOR.values, **values})


def _load_target(name):
    if name not in TARGETS:
        raise unknown_name("target", name, TARGETS)
    return TARGETS[name]


@pytest.fixture(autouse=True)
def _valid_documents(monkeypatch):
    """Every document with a schema that a command prints is valid."""

    def checked(printed):
        if isinstance(printed, dict) and printed["format"] in FORMATS:
            validate(json.loads(dumps(printed)))
        return dumps(printed)

    monkeypatch.setattr(document, "dumps", checked)


@pytest.fixture
def world(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(catalog, "allocator_names", lambda: (ALLOCATOR.name,))
    monkeypatch.setattr(catalog, "load_allocator", _load_allocator)
    monkeypatch.setattr(catalog, "target_names", lambda: tuple(TARGETS))
    monkeypatch.setattr(catalog, "load_target", _load_target)
    monkeypatch.setattr(scenarios, "scenario_names", lambda _: SCENARIOS)
    monkeypatch.setattr(scenarios, "describe", lambda name: f"what {name} is")
    result = World(monkeypatch, capsys)
    monkeypatch.setattr(probe, "observe", result.observe)
    return result


@pytest.fixture
def report(world):
    """The report of one run on the target with caches."""
    world.run("toyfit", "--target", "toy-cached")
    return answer(world.requests[-1])


@pytest.fixture
def golden():
    """Compares a text with a golden file; WCET_PROBE_UPDATE_GOLDEN=1 writes it instead."""

    def compare(name, text):
        file = GOLDEN / name
        if os.environ.get("WCET_PROBE_UPDATE_GOLDEN") == "1":
            file.write_text(text, "utf-8")
        assert text == file.read_text("utf-8")

    return compare
