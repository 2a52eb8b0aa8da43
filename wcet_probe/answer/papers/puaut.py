"""P02: I. Puaut, Real-time performance of dynamic memory allocation algorithms, IRISA 1429, 2002.

Caches off, a heap of 4 MiB, as in the paper; its numbers are cycles of a Pentium at 90 MHz, ours of the target. The
analytic worst is the dearest state that is known, of fast-fit and quick-fit the one that the paper describes. What of
the paper's own tables contradicts its text is not claimed (btree-best-fit's 10,414 cycles of table 2).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Literal

from wcet_probe.answer.papers.exhibit import Cell, Curve, Drawing, Exhibit, Paper, Shape, bars, ordered, rounded
from wcet_probe.answer.papers.laboratory import Laboratory
from wcet_probe.errors import ContradictionError

_NAMES = MappingProxyType(
    {
        "first-fit": "first-fit",
        "best-fit": "best-fit",
        "btree-best-fit": "btree-best-fit",
        "fast-fit": "fast-fit",
        "quick-fit": "quick-fit",
        "buddy-binary": "buddy-bin",
        "buddy-fibonacci": "buddy-fibo",
    }
)
"""Our names, and the paper's."""
_TABLE_1 = {
    "first-fit": (16, 16), "best-fit": (16, 16), "btree-best-fit": (10, 10), "fast-fit": (12, 12), "quick-fit": (8, 8),
    "buddy-binary": (16, 0), "buddy-fibonacci": (16, 0),
}  # fmt: skip
_TABLE_2 = {
    "first-fit": (6286, 6239, 6421, 6394, 115014229),
    "best-fit": (7012, 6954, 7144, 7109, 117573562),
    "btree-best-fit": (8872, 8854, 8984, 8937, 10414),
    "fast-fit": (6110, 6067, 6192, 6161, 256382),
    "quick-fit": (67081, 10805, 244529, 6075, 481267),
    "buddy-binary": (46167, 7299, 47041, 8345, 57827),
    "buddy-fibonacci": (39740, 10624, 41654, 9655, 47320),
}
"""Allocation: mpg123 worst and mean, synthetic worst and mean, analytic worst."""
_TABLE_3 = {
    "first-fit": (11065, 9648, 11011),
    "best-fit": (13446, 9964, 11660),
    "btree-best-fit": (11580, 8777, 403299),
    "fast-fit": (10272, 6697, 1478499),
    "quick-fit": (13970, 3036, 207609),
    "buddy-binary": (11017, 10750, 65739),
    "buddy-fibonacci": (18640, 13976, 55341),
}
"""Deallocation: mpg123 worst, synthetic worst, analytic worst."""
_WORKLOADS = ("mpg123", "mean")
_GROWTH_HEAPS = (16 << 10, 64 << 10, 256 << 10, 1 << 20)
_LARGE_HEAPS = (16 << 20, 64 << 20)
"""Of quick-fit, whose list of pages is long enough there to be dearer than the cutting of a page."""
_GAP_CYCLES = MappingProxyType({"mpg123": 72_000, "mean": 500_000})
"""Cycles between two allocations: 0.8 ms of a core at 90 MHz (§3.2, §3.4), and §3.3's."""
_COLUMNS = MappingProxyType({"mpg123": (1, 0, 4), "mean": (3, 2, 4)})
"""Where table 2 has the mean, the observed worst and the analytic worst of each workload."""


def _allocations(laboratory: Laboratory) -> int:
    return 5_000 if laboratory.quick else 100_000


def _cycles(laboratory: Laboratory, name: str, workload: str, role: str) -> tuple[int, Fraction]:
    """The most cycles of an operation under a workload, and the mean."""
    found = laboratory.run(name, workload, (0, _allocations(laboratory))).distributions[role, "cycles"]
    return found.most, found.mean


def _worst(laboratory: Laboratory, name: str, role: Literal["alloc", "free"]) -> int:
    return laboratory.worst(name, role).cycles


def _table_1(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for name, (minimum, threshold) in _TABLE_1.items():
        allocator = laboratory.allocator(name)
        values = dict(allocator.values)
        own = ", ".join(f"{key}={value}" for key, value in values.items())
        rows.append((laboratory.label(name), minimum, threshold or "-", own))
    least = {name: dict(laboratory.allocator(name).values).get("minimum-block") for name in _TABLE_1}
    drawing = bars(
        "least block, bytes",
        tuple(_TABLE_1),
        {"paper": tuple(m for m, _ in _TABLE_1.values()), "here": tuple(least[name] or 0 for name in _TABLE_1)},
    )
    header = ("", "M paper", "split paper", "parameters here")
    return Exhibit("T1", "Features of the allocators", header, tuple(rows), drawing=drawing)


def _table_2(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for name, paper in _TABLE_2.items():
        measured: list[Cell] = []
        for workload in _WORKLOADS:
            most, mean = _cycles(laboratory, name, workload, "malloc")
            measured += [most, rounded(mean)]
        worst = laboratory.worst(name, "alloc")
        rows.append((laboratory.label(name), *measured, worst.cycles, *paper, f"{worst.scenario}: {worst.variant}"))
    worst_of = {name: _worst(laboratory, name, "alloc") for name in _NAMES}
    buddies = max(worst_of["buddy-binary"], worst_of["buddy-fibonacci"])
    fits = min(worst_of["first-fit"], worst_of["best-fit"])
    ratios = {
        name: Fraction(worst_of[name]) / _cycles(laboratory, name, workload, "malloc")[1]
        for name in ("buddy-binary", "buddy-fibonacci")
        for workload in _WORKLOADS
    }
    observed = {
        f"{name} {workload}": Fraction(most) / mean
        for name in ("first-fit", "best-fit")
        for workload in _WORKLOADS
        for most, mean in (_cycles(laboratory, name, workload, "malloc"),)
    }
    btree = worst_of["btree-best-fit"]
    quick = {workload: _cycles(laboratory, "quick-fit", workload, "malloc")[1] for workload in _WORKLOADS}
    shapes = (
        Shape(
            "first-fit and best-fit are at least 1,000 times as dear at worst as any buddy",
            fits >= 1000 * buddies,
            f"{fits:,} against {buddies:,} cycles: {fits // buddies:,} times",
        ),
        Shape(
            "first-fit and best-fit cost about the same at worst",
            max(worst_of["first-fit"], worst_of["best-fit"]) * 10 <= fits * 13,
            f"first-fit {worst_of['first-fit']:,}, best-fit {worst_of['best-fit']:,}",
        ),
        ordered(
            "worst allocation: Fibonacci buddy < binary buddy < fast-fit < quick-fit < first-fit",
            {
                _NAMES[name]: worst_of[name]
                for name in ("buddy-fibonacci", "buddy-binary", "fast-fit", "quick-fit", "first-fit")
            },
        ),
        Shape(
            "a buddy's worst allocation is below ten times its mean",
            all(ratio < 10 for ratio in ratios.values()),
            ", ".join(f"{name} {rounded(ratio, 2)}" for name, ratio in ratios.items()),
        ),
        Shape(
            "first-fit's and best-fit's observed worst is below 1.1 times their mean",
            all(ratio < Fraction(11, 10) for ratio in observed.values()),
            ", ".join(f"{name} {rounded(ratio, 2)}" for name, ratio in observed.items()),
        ),
        Shape(
            "quick-fit's mean is worse on mpg123 than on MEAN",
            quick["mpg123"] > quick["mean"],
            f"mpg123 {rounded(quick['mpg123'])}, MEAN {rounded(quick['mean'])}",
        ),
        Shape(
            "btree-best-fit's worst allocation is less than a sixth above its observed one (10,414 cycles, table 2)",
            btree * 6 < 7 * _cycles(laboratory, "btree-best-fit", "mean", "malloc")[0],
            f"§3.1.1, §5.1 and table 3 of the paper have a walk of some 2,000 nodes; here {btree:,} cycles at worst",
            known_wrong=True,
        ),
    )
    paper_titles = ("mpg123 worst", "mean", "synthetic worst", "mean", "analytic")
    header = (
        "",
        *("mpg123\nworst", "\nmean", "MEAN\nworst", "\nmean", "known\nworst"),
        *(f"paper:\n{title}" for title in paper_titles),
        "state",
    )
    drawing = bars(
        "worst allocation, cycles",
        tuple(_NAMES),
        {"paper": tuple(row[4] for row in _TABLE_2.values()), "here": tuple(worst_of.values())},
    )
    return Exhibit("T2", "Allocation, cycles", header, tuple(rows), shapes, _NOTES, drawing)


def _table_3(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for name, paper in _TABLE_3.items():
        worst = laboratory.worst(name, "free")
        measured = (_cycles(laboratory, name, workload, "free")[0] for workload in _WORKLOADS)
        rows.append((laboratory.label(name), *measured, worst.cycles, *paper, f"{worst.scenario}: {worst.variant}"))
    worst_of = {name: _worst(laboratory, name, "free") for name in _NAMES}
    fits, buddies = ("first-fit", "best-fit"), ("buddy-binary", "buddy-fibonacci")
    over = {name: _cycles(laboratory, name, workload, "free")[0] for name in fits for workload in _WORKLOADS}
    shapes = (
        ordered(
            "worst deallocation: sequential fits < buddies < quick-fit < btree-best-fit < fast-fit",
            {
                "sequential fits": max(worst_of[name] for name in fits),
                "buddies": max(worst_of[name] for name in buddies),
                **{name: worst_of[name] for name in ("quick-fit", "btree-best-fit", "fast-fit")},
            },
        ),
        Shape(
            "first-fit and best-fit deallocate dearer under mpg123 than at worst (table 3)",
            any(over[name] > worst_of[name] for name in fits),
            "the paper's observed 11,065 and 13,446 exceed its analytic 11,011 and 11,660; here "
            + ", ".join(f"{name} at most {over[name]:,} of {worst_of[name]:,}" for name in fits),
            known_wrong=True,
        ),
    )
    header = (
        "",
        *("mpg123\nworst", "MEAN\nworst", "known\nworst"),
        *("paper:\nmpg123 worst", "paper:\nsynthetic worst", "paper:\nanalytic"),
        "state",
    )
    drawing = bars(
        "worst deallocation, cycles",
        tuple(_NAMES),
        {"paper": tuple(row[2] for row in _TABLE_3.values()), "here": tuple(worst_of.values())},
    )
    return Exhibit("T3", "Deallocation, cycles", header, tuple(rows), shapes, _NOTES, drawing)


def _figure_1(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = [
        (
            laboratory.label(name),
            *(rounded(_cycles(laboratory, name, workload, "malloc")[1]) for workload in _WORKLOADS),
            _worst(laboratory, name, "alloc"),
        )
        for name in _NAMES
    ]
    drawing = bars(
        "cycles",
        tuple(_NAMES),
        {
            "mean, MEAN": tuple(float(_cycles(laboratory, name, "mean", "malloc")[1]) for name in _NAMES),
            "worst": tuple(_worst(laboratory, name, "alloc") for name in _NAMES),
            "paper: mean, MEAN": tuple(row[3] for row in _TABLE_2.values()),
            "paper: worst": tuple(row[4] for row in _TABLE_2.values()),
        },
    )
    header = ("", "mpg123 mean", "MEAN mean", "worst")
    return Exhibit("F1", "Mean and worst allocation, cycles", header, tuple(rows), drawing=drawing)


def _figure_2(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for name in _NAMES:
        cells: list[Cell] = []
        for workload in _WORKLOADS:
            most, mean = _cycles(laboratory, name, workload, "malloc")
            cells += [rounded(most / mean, 2), rounded(_worst(laboratory, name, "alloc") / mean, 1)]
        rows.append((laboratory.label(name), *cells))
    header = ("", "mpg123\nobserved worst / mean", "\nworst / mean", "MEAN\nobserved worst / mean", "\nworst / mean")
    means = {name: _cycles(laboratory, name, "mean", "malloc") for name in _NAMES}
    drawing = bars(
        "times the mean, MEAN",
        tuple(_NAMES),
        {
            "observed worst": tuple(float(most / mean) for most, mean in means.values()),
            "worst": tuple(float(_worst(laboratory, name, "alloc") / means[name][1]) for name in _NAMES),
            "paper: observed worst": tuple(row[2] / row[3] for row in _TABLE_2.values()),
            "paper: worst": tuple(row[4] / row[3] for row in _TABLE_2.values()),
        },
    )
    return Exhibit("F2", "Worst over mean allocation", header, tuple(rows), drawing=drawing)


def _figure_3(laboratory: Laboratory) -> Exhibit:
    """Share of the time in malloc, if each call took its mean, its observed worst, the witness, or the proven bound."""
    rows: list[tuple[Cell, ...]] = []
    shares: dict[tuple[str, str], tuple[Fraction | None, ...]] = {}
    for workload, name in product(_WORKLOADS, _NAMES):
        most, mean = _cycles(laboratory, name, workload, "malloc")
        witness, bound = _worst(laboratory, name, "alloc"), laboratory.bound_cycles(name, "malloc")
        if bound is not None and bound < max(witness, most):
            message = f"{name}: {max(witness, most):,} cycles of malloc were observed, and {bound:,} are proved"
            raise ContradictionError(f"{message}; report this with the command line.")
        gap = _GAP_CYCLES[workload]
        shares[workload, name] = tuple(
            None if each is None else 100 * Fraction(each) / (gap + Fraction(each))
            for each in (mean, most, witness, bound)
        )
        cells = ("-" if each is None else rounded(each, 2) for each in shares[workload, name])
        theirs = (100 * _TABLE_2[name][column] / (gap + _TABLE_2[name][column]) for column in _COLUMNS[workload])
        known = "-" if bound is None else bound
        rows.append((workload, laboratory.label(name), *cells, known, *(f"{each:.2f}" for each in theirs)))
    titles = ("mean", "observed worst", "witness", "proven bound")
    paper_titles = ("mean", "observed worst", "analytic worst")
    header = (
        "",
        "",
        *(f"{title} %" for title in titles),
        "bound, cycles",
        *(f"paper:\n{each} %" for each in paper_titles),
    )
    notes = (
        (
            f"Between two allocations the application has {_GAP_CYCLES['mpg123']:,} cycles under mpg123 (0.8 ms at the "
            f"paper's 90 MHz) and {_GAP_CYCLES['mean']:,} under the synthetic workload, as §3.3 has it."
        ),
        "The paper's figure has no numbers; its columns here are computed in the same way from its table 2.",
    )
    ours = {title: tuple(float(each[column] or 0) for each in shares.values()) for column, title in enumerate(titles)}
    paper = {f"paper: {title}": tuple(float(str(row[7 + i])) for row in rows) for i, title in enumerate(paper_titles)}
    groups = tuple(f"{name}, {workload}" for workload, name in shares)
    return Exhibit(
        "F3",
        "Share of time spent in malloc",
        header,
        tuple(rows),
        (),
        notes,
        bars("per cent", groups, {**ours, **paper}),
    )


def _figure_4(laboratory: Laboratory) -> Exhibit:
    heaps = _GROWTH_HEAPS[:3] if laboratory.quick else _GROWTH_HEAPS
    costs = {name: [laboratory.worst(name, "alloc", heap).cycles for heap in heaps] for name in _NAMES}
    factor = heaps[-1] // heaps[0]
    grown = {name: Fraction(found[-1], found[0]) for name, found in costs.items()}
    pages = [laboratory.dearest("quick-fit", "alloc", heap).cycles for heap in _LARGE_HEAPS]
    shapes = (
        Shape(
            "first-fit's and best-fit's worst allocation grows with the heap",
            all(grown[name] * 10 > 9 * factor for name in ("first-fit", "best-fit")),
            f"heap times {factor}: " + ", ".join(f"{n} {rounded(grown[n], 1)}" for n in ("first-fit", "best-fit")),
        ),
        Shape(
            "a buddy's grows with the logarithm of the heap",
            all(grown[name] < 3 for name in ("buddy-binary", "buddy-fibonacci")),
            f"heap times {factor}: "
            + ", ".join(f"{n} {rounded(grown[n], 2)}" for n in ("buddy-binary", "buddy-fibonacci")),
        ),
        Shape(
            "quick-fit's does not grow in small heaps",
            grown["quick-fit"] < Fraction(3, 2),
            f"heap times {factor}: {rounded(grown['quick-fit'], 2)}",
        ),
        Shape(
            "quick-fit's grows with the heap in large ones",
            pages[-1] * 10 > 9 * pages[0] * (_LARGE_HEAPS[-1] // _LARGE_HEAPS[0]),
            f"heap times {_LARGE_HEAPS[-1] // _LARGE_HEAPS[0]}: {rounded(Fraction(pages[-1], pages[0]), 2)}, from "
            f"{pages[0]:,} to {pages[-1]:,} cycles where the pages are searched, which {heaps[-1] >> 10:,} KiB cost "
            f"{costs['quick-fit'][-1]:,} with a page cut",
        ),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (laboratory.label(name), *found, *(pages if name == "quick-fit" else ("-",) * len(_LARGE_HEAPS)))
        for name, found in costs.items()
    )
    header = ("", *(f"{heap >> 10} KiB" for heap in heaps), *(f"{heap >> 20} MiB" for heap in _LARGE_HEAPS))
    curves = tuple(
        Curve(
            name,
            tuple(
                (heap / 1024, float(cycles))
                for heap, cycles in (
                    *zip(heaps, found, strict=True),
                    *(zip(_LARGE_HEAPS, pages, strict=True) if name == "quick-fit" else ()),
                )
            ),
        )
        for name, found in costs.items()
    )
    notes = (
        "The paper's figure has no numbers that can be read off; its curves are linear, logarithmic and hybrid.",
        "Of quick-fit large heaps show the second half of the hybrid: its dearest state, behind all pages of the list.",
    )
    drawing = Drawing("heap, KiB", "cycles", curves)
    title = "Worst allocation against the size of the heap, cycles"
    return Exhibit("F4", title, header, rows, shapes, notes, drawing)


_NOTES = (
    "The paper's cycles are a Pentium's with caches off; only shapes are compared, not numbers.",
    "A state named worst-… is the dearest known; paper-… is the paper's own where that is another.",
)
PUAUT = Paper(
    "P02",
    "I. Puaut, Real-time performance of dynamic memory allocation algorithms, publication interne 1429, IRISA, 2002",
    MappingProxyType(
        {
            "T1": _table_1,
            "T2": _table_2,
            "T3": _table_3,
            "F1": _figure_1,
            "F2": _figure_2,
            "F3": _figure_3,
            "F4": _figure_4,
        }
    ),
)
