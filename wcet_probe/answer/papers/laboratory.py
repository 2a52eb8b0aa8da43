"""Who answers what the tables and figures of a paper ask for: from the store, or measured on the spot.

What a paper asks for is found by asking it once with a laboratory that only notes the questions (`planned_points`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from wcet_probe.answer.papers.campaign import attempt
from wcet_probe.answer.papers.points import Document, Kind, Point, Run, Worst, allocator_of, run_of
from wcet_probe.answer.papers.store import Result, ResultStore
from wcet_probe.answer.workloads.workload_run import Placement
from wcet_probe.answer.workloads.workload_tally import UNITS
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.errors import ContradictionError, WcetProbeError
from wcet_probe.model.allocator import Allocator

HEAP_BYTES = 4 << 20
_KEPT = 256
_NO_VALUES: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Laboratory:
    """Measures on one target, each thing once.

    Attributes:
        preset: the paper's parameters; an allocator without them runs with its defaults, and its row says so.
        quick: shorter workloads and fewer seeds.
        most_seeds: of each workload, the first ones; None: as many as the paper has.
        store: what was measured before, and the core, the compiler and the folders to measure with.
        progress: is told what is measured.
        failed: what was tried and could not be measured, with the reasons; it is not tried again.
    """

    preset: str
    quick: bool
    store: ResultStore
    most_seeds: int | None = None
    progress: Callable[[str], None] = lambda _: None
    failed: Mapping[Point, str] = field(default_factory=dict)
    _kept: dict[Point, Document] = field(default_factory=dict)
    _runs: dict[Point, Run] = field(default_factory=dict)

    def seeds(self, published: int, quick: int = 1) -> range:
        """The seeds of a workload that the paper repeats ``published`` times."""
        count = quick if self.quick else published
        return range(count if self.most_seeds is None else min(count, self.most_seeds))

    def label(self, name: str) -> str:
        """The allocator's name with the preset that its row is of."""
        shared = name.partition(":")[2] or name
        return f"{name} ({self.preset if self.preset in load_allocator(shared).presets else 'defaults'})"

    def allocator(self, name: str) -> Allocator:
        """The allocator with the paper's parameters, where it has them."""
        return allocator_of(self._point("run", name, "", 0))

    def worst(self, name: str, role: Literal["alloc", "free"], heap_bytes: int = HEAP_BYTES) -> Worst:
        """The dearest state that is known; of allocators whose paper means another one, that of the paper."""
        return Worst(**self.document(self._point("worst", name, role, heap_bytes)))

    def dearest(self, name: str, role: Literal["alloc", "free"], heap_bytes: int) -> Worst:
        """The dearest state that is known, whatever the paper has."""
        return Worst(**self.document(self._point("dearest", name, role, heap_bytes)))

    def in_state_of(self, name: str, other: str, heap_bytes: int) -> tuple[int, int]:
        """Instructions and cycles of the malloc that is ``other``'s worst, behind the same operations."""
        found = self.document(self._point("in-state-of", name, other, heap_bytes))
        return found["instructions"], found["cycles"]

    def run(
        self,
        name: str,
        workload_name: str,
        arguments: tuple[int, ...],
        *,
        heap_bytes: int = HEAP_BYTES,
        values: Iterable[tuple[str, int]] = _NO_VALUES,
        placement: Placement = "first",
    ) -> Run:
        """The allocator under a workload: its seed and number of allocations, or what else it takes."""
        point = self._point(
            "run", name, workload_name, heap_bytes, values=values, arguments=arguments, placement=placement
        )
        if point not in self._runs:
            if len(self._runs) == _KEPT:
                self._runs.pop(next(iter(self._runs)))
            self._runs[point] = run_of(self.document(point))
        return self._runs[point]

    def bound_cycles(self, name: str, role: str, heap_bytes: int = HEAP_BYTES) -> int | None:
        """The proved bound, or None where none is."""
        found: int | None = self.document(self._point("bound", name, role, heap_bytes))["cycles"]
        return found

    def code_bytes(self, name: str, values: Iterable[tuple[str, int]] = _NO_VALUES) -> int:
        """Bytes of the image's code and constants."""
        return int(self.document(self._point("code", name, "", HEAP_BYTES, values=values))["code_bytes"])

    def per_size(self, name: str, starts: tuple[int, ...], heap_bytes: int = HEAP_BYTES) -> Document:
        """Proved bounds of malloc for ranges of sizes that begin at ``starts``, and of free."""
        return self.document(self._point("per-size", name, "", heap_bytes, arguments=starts))

    def scheduler_cycles(self, facts: str) -> int:
        """The proved bound of H11 figure 10's loop with these facts."""
        return int(self.document(self._point("scheduler", "cama", facts, HEAP_BYTES))["cycles"])

    def document(self, point: Point) -> Document:
        """What ``point`` gave.

        Raises:
            WcetProbeError: it cannot be measured.
            ContradictionError: an observation contradicts a proof.
        """
        if point not in self._kept:
            found = Result(None, self.failed[point]) if point in self.failed else self.store.get(point)
            if found is None:
                self.progress(point.words)
                found = attempt(point, self.store.settings)
                self.store.put(point, found)
            if found.document is None:
                kind = ContradictionError if found.error.startswith(ContradictionError.__name__) else WcetProbeError
                raise kind(f"{point.words}: {found.error.partition(': ')[2] or found.error}")
            if point.kind == "run":
                return found.document
            self._kept[point] = found.document
        return self._kept[point]

    def _point(
        self,
        kind: Kind,
        name: str,
        what: str,
        heap_bytes: int,
        *,
        values: Iterable[tuple[str, int]] = _NO_VALUES,
        arguments: tuple[int, ...] = (),
        placement: Placement = "first",
    ) -> Point:
        return Point(kind, name, self.preset, tuple(values), heap_bytes, what, arguments, placement)


class _Notebook(Laboratory):
    """Notes each question and invents an answer."""

    asked: dict[Point, None]

    def document(self, point: Point) -> Document:
        """An answer of ones."""
        self.asked[point] = None
        return _INVENTED[point.kind]


def planned_points(exhibits: Iterable[Callable[[Laboratory], Any]], laboratory: Laboratory) -> list[Point]:
    """What ``exhibits`` ask for; questions that depend on an answer are not among them, and are measured when asked."""
    notebook = _Notebook(laboratory.preset, laboratory.quick, laboratory.store, laboratory.most_seeds)
    notebook.asked = {}
    for exhibit in exhibits:
        exhibit(notebook)
    return list(notebook.asked)


_INVENTED: MappingProxyType[Kind, Document] = MappingProxyType(
    {
        "worst": {"scenario": "", "variant": "", "instructions": 1, "cycles": 1},
        "run": {
            "operations": 1,
            "refused": 0,
            "distributions": [[role, unit, [1], [1]] for role in ("malloc", "free") for unit in UNITS],
            "peak_live_bytes": 1,
            "peak_reached_bytes": 1,
            "samples": [[1, 1, 1]],
            "windows": [[1, 1, 1, 1, 1, 1]],
            "static_bytes": 0,
        },
        "dearest": {"scenario": "", "variant": "", "instructions": 1, "cycles": 1},
        "in-state-of": {"instructions": 1, "cycles": 1},
        "bound": {"instructions": 1, "cycles": 1, "why": ""},
        "code": {"code_bytes": 1},
        "per-size": {"malloc": [[1, 1, 1, 1]], "free": [1, 1]},
        "scheduler": {"instructions": 1, "cycles": 1},
    }
)
