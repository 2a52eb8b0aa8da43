"""C06: A. Crespo, I. Ripoll, M. Masmano, Dynamic memory management for embedded real-time systems, IFIP 225, 2006.

Table 3's numbers decode to 16,384 free blocks (5 · 2^14 + 75 and 6 · 2^14 + 81), that is 512 KiB of least blocks, and
not to the 4 MiB that its text names; both are measured. Fragmentation is factor F of §5, of 50,000 steps and 100 seeds,
or 2,000 steps and two seeds when quick.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import isqrt
from types import MappingProxyType

from wcet_probe.answer.papers.exhibit import HEAP_BYTES, Cell, Exhibit, Laboratory, Paper, Shape, ordered, rounded
from wcet_probe.scenarios.workloads.periodic import crespo_tasks, periodic_workload
from wcet_probe.traces.operations import TraceRow

_NAMES = MappingProxyType(
    {
        "first-fit": "FF",
        "best-fit": "BF",
        "buddy-binary": "BB",
        "dlmalloc27": "DL",
        "avl-best-fit": "AVL",
        "half-fit": "HF",
        "tlsf": "TLSF",
    }
)
_TABLE_3 = {
    "first-fit": (81995, 1613263), "best-fit": (98385, 1587552), "buddy-binary": (1403, 3898),
    "dlmalloc27": (721108, 3313253), "avl-best-fit": (3116, 11739), "half-fit": (164, 1690), "tlsf": (197, 2448),
}  # fmt: skip
"""Instructions and cycles."""
_TABLE_4 = {
    "first-fit": ("100.01", "85.01", "112.51"),
    "best-fit": ("4.64", "4.54", "7.01"),
    "buddy-binary": ("46.37", "45.00", "48.63"),
    "half-fit": ("82.23", "75.15", "99.10"),
    "tlsf": ("4.33", "4.99", "7.69"),
}
_SMALL_HEAP_BYTES = 512 << 10
_FRAGMENTATION_HEAP_BYTES = 64 << 20
_COMPLEXITY = (
    ("H", ("first-fit", "best-fit", "dlmalloc27")),
    ("log H", ("buddy-binary", "avl-best-fit")),
    ("1", ("half-fit", "tlsf")),
)
_GROWTH_HEAPS = (16 << 10, 256 << 10)
_WORST_CASES = (1 << 10, 4 << 10, 64 << 10)


def _table_1(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    shapes = []
    factor = Fraction(_GROWTH_HEAPS[1], _GROWTH_HEAPS[0])
    for claim, names in _COMPLEXITY:
        for name in names:
            small, large = (laboratory.worst(name, "alloc", heap).instructions for heap in _GROWTH_HEAPS)
            grown = Fraction(large, small)
            rows.append((laboratory.label(name), f"O({claim})", small, large, rounded(grown, 2)))
            holds = {"H": grown * 2 > factor, "log H": 1 <= grown < 3, "1": grown < Fraction(11, 10)}[claim]
            shapes.append(
                Shape(
                    f"{_NAMES[name]}: malloc is O({claim})",
                    holds and (claim != "H" or grown < 2 * factor),
                    f"{small:,} to {large:,} instructions, {rounded(grown, 2)} times in a heap {factor} times as large",
                )
            )
    header = ("", "paper", *(f"{heap >> 10} KiB" for heap in _GROWTH_HEAPS), "times")
    notes = (
        "dlmalloc's dearest known malloc is quadratic in H, not linear: the row shows the paper's state if it has one.",
    )
    return Exhibit(
        "T1", "Complexity of malloc, instructions of the worst state", header, tuple(rows), tuple(shapes), notes
    )


def _table_2(_laboratory: Laboratory) -> Exhibit:
    """Heap that the theory needs for ``M`` live bytes in blocks of ``m`` at most, as a factor of M."""
    rows: list[tuple[Cell, ...]] = []
    for largest in _WORST_CASES:
        harmonic = sum((Fraction(1, i) for i in range(1, largest + 1)), Fraction(0))
        rows.append(
            (
                f"m = {largest:,}",
                rounded(harmonic * 10**12 / 693147180560, 2),
                f"{largest - 2:,}",
                largest.bit_length(),
            )
        )
    header = ("", "first-fit, M Σ 1/i / ln 2", "best-fit, M (m - 2)", "binary buddy, M (1 + log2 m)")
    return Exhibit("T2", "Worst-case heap over live memory M, theory (Robson; Knuth)", header, tuple(rows))


def _table_3(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for name, (instructions, cycles) in _TABLE_3.items():
        small, large = (laboratory.worst(name, "alloc", heap) for heap in (_SMALL_HEAP_BYTES, HEAP_BYTES))
        counts = (small.instructions, small.cycles, large.instructions, large.cycles)
        rows.append((laboratory.label(name), *counts, instructions, cycles, f"{large.scenario}: {large.variant}"))
    worst = {name: laboratory.worst(name, "alloc").instructions for name in _NAMES}
    small_worst = {name: laboratory.worst(name, "alloc", _SMALL_HEAP_BYTES).instructions for name in _NAMES}
    constant = {name: worst[name] == small_worst[name] for name in ("half-fit", "tlsf")}
    ratio = Fraction(worst["tlsf"], worst["half-fit"])
    order = ("half-fit", "tlsf", "buddy-binary", "avl-best-fit", "first-fit", "best-fit", "dlmalloc27")
    shapes = (
        ordered("instructions: HF < TLSF < BB < AVL < FF < BF < DL", {_NAMES[name]: worst[name] for name in order}),
        Shape(
            "HF and TLSF do not depend on the size of the heap",
            all(constant.values()),
            ", ".join(f"{_NAMES[name]} {small_worst[name]} and {worst[name]} instructions" for name in constant),
        ),
        Shape(
            "TLSF is 20 % slower than HF (a claim that depends on the code, not a safe one)",
            Fraction(119, 100) <= ratio <= Fraction(121, 100),
            f"TLSF / HF = {rounded(ratio, 2)} here; 197 / 164 = 1.20 in the paper",
        ),
    )
    header = (
        "",
        *("512 KiB\ninstructions", "\ncycles", "4 MiB\ninstructions", "\ncycles"),
        *("paper:\ninstructions", "paper:\ncycles"),
        "state",
    )
    return Exhibit("T3", "Worst-case malloc", header, tuple(rows), shapes)


def _rows(test: int, seed: int, steps: int) -> Iterator[TraceRow]:
    return periodic_workload(crespo_tasks(test, seed), seed, lambda step, _: step < steps)


def _table_4(laboratory: Laboratory) -> Exhibit:
    seeds, steps = (2, 2_000) if laboratory.quick else (100, 50_000)
    rows: list[tuple[Cell, ...]] = []
    means: dict[tuple[str, int], Fraction] = {}
    for name, paper in _TABLE_4.items():
        cells: list[Cell] = []
        for test in (1, 2, 3):
            found = []
            for seed in range(seeds):
                what = (f"C06 test {test}", f"seed {seed}", f"{steps} steps")
                run = laboratory.run_rows(name, what, partial(_rows, test, seed, steps), _FRAGMENTATION_HEAP_BYTES)
                found.append(100 * run.fragmentation)
            mean = sum(found, Fraction(0)) / seeds
            means[name, test] = mean
            spread = sum(((each - mean) ** 2 for each in found), Fraction(0)) / max(1, seeds - 1)
            cells += [rounded(mean, 2), rounded(Fraction(isqrt(int(spread * 10**6)), 1000), 2)]
        rows.append((laboratory.label(name), *cells, *paper))
    shapes = []
    for test in (1, 2, 3):
        of = {name: means[name, test] for name in _TABLE_4}
        good = max(of["tlsf"], of["best-fit"])
        text = ", ".join(f"{_NAMES[name]} {rounded(value, 2)} %" for name, value in of.items())
        shapes += [
            Shape(
                f"test {test}: TLSF and BF ≪ BB < HF < FF",
                2 * good < of["buddy-binary"] < of["half-fit"] < of["first-fit"],
                text,
            ),
            Shape(f"test {test}: TLSF is within a few points of BF", abs(of["tlsf"] - of["best-fit"]) < 5, text),
        ]
    titles = [title for test in (1, 2, 3) for title in (f"test {test}\nF %", "\nsd")]
    header = ("", *titles, *(f"paper:\ntest {test}" for test in (1, 2, 3)))
    notes = (
        f"{seeds} seeds of {steps:,} steps; the paper gives no periods: see scenarios/workloads/periodic.py for ours.",
    )
    return Exhibit("T4", "Fragmentation, factor F in per cent", header, tuple(rows), tuple(shapes), notes)


CRESPO = Paper(
    "C06",
    "A. Crespo, I. Ripoll, M. Masmano, Dynamic memory management for embedded real-time systems, IFIP vol. 225, 2006",
    MappingProxyType({"T1": _table_1, "T2": _table_2, "T3": _table_3, "T4": _table_4}),
)
