"""A table or figure of a paper as it is found here, and the laboratory that measures what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal

from wcet_probe.answer.probe import ProbeRequest, observe
from wcet_probe.answer.workload_run import WorkloadRequest, WorkloadRun, run_workload
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.target import Target
from wcet_probe.scenarios import scenario_names
from wcet_probe.scenarios.workloads.named import workload
from wcet_probe.traces.operations import TraceRow, heap_operations

Cell = int | str
HEAP_BYTES = 4 << 20
_STATES_OF_PAPERS = ("dlmalloc27", "fast-fit", "quick-fit")
"""The paper's state is of another kind than the dearest known: linear where that is quadratic, or of a root of it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A claim of the paper as a check: whether it ``holds``, and the numbers that say so."""

    name: str
    holds: bool
    why: str


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or figure.

    Attributes:
        name: ``T2``, ``F4`` …, as the paper numbers it.
        title: what it shows.
        header: of the columns; "paper" in a title marks the paper's own numbers.
        rows: cells, whole numbers or texts.
        shapes: what is claimed of it.
        notes: what is to be known: how a figure was read, what differs.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shapes: tuple[Shape, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Worst:
    """The dearest known call of a role: which state, and what it counts."""

    scenario: str
    variant: str
    instructions: int
    cycles: int


@dataclass(slots=True)
class Laboratory:
    """Measures on one target, each thing once.

    Attributes:
        preset: the paper's parameters; an allocator without them runs with its defaults, and its row says so.
        target: the core, with its caches as asked for.
        quick: shorter workloads and fewer seeds.
    """

    preset: str
    target: Target
    quick: bool
    compiler: str
    cache_dir: Path
    progress: Callable[[str], None] = lambda _: None
    _worst: dict[tuple[object, ...], Worst] = field(default_factory=dict)
    _runs: dict[tuple[object, ...], WorkloadRun] = field(default_factory=dict)

    def allocator(self, name: str) -> Allocator:
        """The allocator with the paper's parameters, where it has them."""
        plain = load_allocator(name, {}, None)
        return load_allocator(name, {}, self.preset) if self.preset in plain.presets else plain

    def label(self, name: str) -> str:
        """The allocator's name with the preset that its row is of."""
        return f"{name} ({self.preset if self.preset in self.allocator(name).presets else 'defaults'})"

    def worst(self, name: str, role: Literal["alloc", "free"], heap_bytes: int = HEAP_BYTES) -> Worst:
        """The dearest state that is known; of allocators whose paper means another one, that of the paper."""
        key = (name, role, heap_bytes)
        if key not in self._worst:
            own = f"paper-{role}"
            scenario = own if name in _STATES_OF_PAPERS and own in scenario_names(name) else f"worst-{role}"
            self.progress(f"{name}: {scenario}, {heap_bytes:,} bytes")
            request = ProbeRequest(
                allocator=self.allocator(name),
                target=self.target,
                scenario=scenario,
                heap_bytes=heap_bytes,
                seed=0,
                initial_cache=None,
                compiler=self.compiler,
                cross_check=False,
                cache_dir=self.cache_dir,
            )
            report = observe(request)
            counts = report.measurement
            self._worst[key] = Worst(scenario, report.plan.variant, counts.instructions, counts.cycles)
        return self._worst[key]

    def run(self, name: str, workload_name: str, allocations: int, seed: int = 0) -> WorkloadRun:
        """The allocator under a workload of the papers."""
        what = (workload_name, allocations, seed)
        return self.run_rows(name, what, lambda: workload(workload_name).rows(seed, allocations))

    def run_rows(
        self,
        name: str,
        what: tuple[object, ...],
        rows: Callable[[], Iterable[TraceRow]],
        heap_bytes: int = HEAP_BYTES,
    ) -> WorkloadRun:
        """The allocator under the operations that ``rows`` gives, which ``what`` names."""
        key = (name, heap_bytes, *what)
        if key not in self._runs:
            self.progress(f"{name}: {' '.join(map(str, what))}")
            request = WorkloadRequest(
                self.allocator(name), self.target, heap_bytes, self.compiler, self.cache_dir, prove=False
            )
            self._runs[key] = run_workload(request, heap_operations(rows()))
        return self._runs[key]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: how to cite it, and its tables and figures by name."""

    name: str
    citation: str
    exhibits: Mapping[str, Callable[[Laboratory], Exhibit]]


def rounded(value: Fraction, places: int = 1) -> str:
    """``value`` as a decimal text, rounded half up."""
    scaled = int(value * 10**places + Fraction(1, 2)) if value >= 0 else -int(-value * 10**places + Fraction(1, 2))
    sign, digits = ("-" if scaled < 0 else ""), f"{abs(scaled):0{places + 1}d}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def ordered(name: str, values: Mapping[str, int | Fraction]) -> Shape:
    """The claim that ``values`` rise in the order in which they stand."""
    items = list(values.items())
    wrong = [f"{a} {_shown(x)} ≥ {b} {_shown(y)}" for (a, x), (b, y) in pairwise(items) if x >= y]
    row = ", ".join(f"{label} {_shown(value)}" for label, value in items)
    return Shape(name, not wrong, row if not wrong else f"{'; '.join(wrong)} (all: {row})")


def _shown(value: int | Fraction) -> str:
    return f"{value:,}" if isinstance(value, int) else rounded(value, 2)
