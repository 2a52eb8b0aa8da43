"""M06: M. Masmano, I. Ripoll, A. Crespo, A comparison of memory allocators for real-time applications, JTRES 2006.

Ten seeds of each test, 300,000 mallocs for time and 1,500,000 for fragmentation; one seed of 5,000 when quick.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType

from wcet_probe.answer.papers.exhibit import Cell, Curve, Drawing, Exhibit, Paper, Shape, bars, rounded
from wcet_probe.answer.papers.laboratory import Laboratory
from wcet_probe.answer.papers.points import Run
from wcet_probe.answer.workloads.workload_tally import Distribution, MallocWindow
from wcet_probe.scenarios.workloads.periodic import collection_periods

_NAMES = ("first-fit", "best-fit", "buddy-binary", "dlmalloc27", "half-fit", "tlsf")
_TESTS = (1, 2, 3)
_Counts = dict[str, tuple[tuple[int, ...], ...]]
_MALLOC_CYCLES: _Counts = {
    "first-fit": ((315, 239, 2185, 97), (248, 243, 2274, 97), (291, 279, 4758, 97)),
    "best-fit": ((511, 513, 2330, 112), (347, 352, 2380, 95), (1134, 1133, 6432, 107)),
    "buddy-binary": ((170, 472, 5517, 143), (157, 262, 7433, 105), (161, 263, 5960, 121)),
    "dlmalloc27": ((342, 345, 5769, 114), (249, 278, 5859, 79), (292, 296, 6985, 83)),
    "half-fit": ((196, 332, 1237, 129), (148, 569, 1269, 108), (161, 520, 1491, 128)),
    "tlsf": ((216, 274, 2017, 137), (173, 257, 2056, 115), (196, 230, 2473, 115)),
}
"""Table 5a: average, standard deviation, maximum, minimum of tests 1 to 3."""
_FREE_CYCLES: _Counts = {
    "first-fit": ((163, 189, 1433, 84), (148, 185, 1387, 84), (176, 196, 1529, 85)),
    "best-fit": ((153, 189, 1420, 85), (120, 212, 1292, 84), (143, 178, 1448, 85)),
    "buddy-binary": ((147, 285, 1728, 120), (150, 287, 855, 120), (153, 284, 1412, 120)),
    "dlmalloc27": ((124, 198, 644, 85), (99, 354, 425, 74), (128, 181, 732, 75)),
    "half-fit": ((184, 209, 1273, 104), (173, 216, 1209, 104), (186, 210, 1099, 110)),
    "tlsf": ((201, 220, 1641, 118), (170, 223, 741, 111), (191, 217, 1095, 118)),
}
_COLLECTED = ("best-fit", "dlmalloc27", "tlsf")
"""Figure 5."""
_HEAP_BYTES = 64 << 20
_WINDOWS = 4


def _scale(laboratory: Laboratory) -> tuple[range, int, int]:
    """Seeds, mallocs for time, mallocs for fragmentation."""
    return (laboratory.seeds(10), *((5_000, 5_000) if laboratory.quick else (300_000, 1_500_000)))


def _run(laboratory: Laboratory, name: str, workload: str, arguments: tuple[int, ...]) -> Run:
    return laboratory.run(name, workload, arguments, heap_bytes=_HEAP_BYTES)


def _merged(laboratory: Laboratory, name: str, test: int, role: str, unit: str) -> Distribution:
    """All seeds of a test as one distribution."""
    seeds, mallocs, _ = _scale(laboratory)
    calls: Counter[int] = Counter()
    for seed in seeds:
        calls.update(_run(laboratory, name, f"m06-test{test}", (seed, mallocs)).distributions[role, unit].calls)
    return Distribution(dict(sorted(calls.items())))


def _costs(laboratory: Laboratory, unit: str, table: str, paper: dict[str, _Counts]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for role in ("malloc", "free"):
        for name in _NAMES:
            for test in _TESTS:
                found = _merged(laboratory, name, test, role, unit)
                theirs = paper.get(role, {}).get(name)
                rows.append(
                    (
                        *(role, laboratory.label(name), test),
                        *(rounded(found.mean), rounded(found.deviation), found.most, found.least),
                        *(theirs[test - 1] if theirs else ("-",) * 4),
                    )
                )
    frees = {name: max(_merged(laboratory, name, test, "free", unit).mean for test in _TESTS) for name in _NAMES}
    means = {test: _merged(laboratory, "best-fit", test, "malloc", unit).mean for test in _TESTS}
    shapes = (
        Shape(
            "DL frees fastest on average",
            min(frees, key=lambda name: frees[name]) == "dlmalloc27",
            ", ".join(f"{name} {rounded(value)}" for name, value in frees.items()),
        ),
        Shape(
            "best-fit's mean malloc is worst in test 3",
            means[3] == max(means.values()),
            ", ".join(f"test {test} {rounded(value)}" for test, value in means.items()),
        ),
        *(_bands(laboratory, name, unit) for name in ("half-fit", "tlsf") if unit == "instructions"),
    )
    header = ("", "", "test", "avg", "sd", "max", "min", "paper: avg", "sd", "max", "min")
    groups = tuple(f"{name}, test {test}" for name in _NAMES for test in _TESTS)
    values = {
        "here: mean malloc": tuple(
            float(_merged(laboratory, name, test, "malloc", unit).mean) for name in _NAMES for test in _TESTS
        )
    }
    if "malloc" in paper:
        values["paper: mean malloc"] = tuple(
            float(paper["malloc"][name][test - 1][0]) for name in _NAMES for test in _TESTS
        )
    title = f"{unit.capitalize()} of malloc and free"
    notes = () if paper else ("The paper's table 6 is not in our copy of it; its text gives two numbers, see F3.",)
    return Exhibit(table, title, header, tuple(rows), shapes, notes, bars(unit, groups, values))


def _bands(laboratory: Laboratory, name: str, unit: str) -> Shape:
    """Constant-time allocators take few values: each a path, split or not, small or not, list left empty or not."""
    values = sorted({value for test in _TESTS for value in _merged(laboratory, name, test, "malloc", unit).calls})
    return Shape(
        f"{name}'s mallocs form discrete bands",
        len(values) <= 16,
        f"{len(values)} values: {', '.join(map(str, values[:16]))}{' …' if len(values) > 16 else ''}",
    )


def _table_5(laboratory: Laboratory) -> Exhibit:
    return _costs(laboratory, "cycles", "T5", {"malloc": _MALLOC_CYCLES, "free": _FREE_CYCLES})


def _table_6(laboratory: Laboratory) -> Exhibit:
    return _costs(laboratory, "instructions", "T6", {})


def _table_7(laboratory: Laboratory) -> Exhibit:
    seeds, _, mallocs = _scale(laboratory)
    rows: list[tuple[Cell, ...]] = []
    of: dict[str, Fraction] = {}
    for name in _NAMES:
        cells = []
        for test in _TESTS:
            found = [_run(laboratory, name, f"m06-test{test}", (seed, mallocs)).fragmentation for seed in seeds]
            cells.append(100 * sum(found, Fraction(0)) / len(seeds))
        of[name] = cells[2]
        rows.append((laboratory.label(name), *(rounded(cell, 2) for cell in cells)))
    text = ", ".join(f"{name} {rounded(value, 2)} %" for name, value in of.items())
    shapes = (
        Shape(
            "test 3: TLSF, best-fit and DL waste less than half-fit and the buddy",
            max(of[name] for name in ("tlsf", "best-fit", "dlmalloc27")) < min(of["half-fit"], of["buddy-binary"]),
            text,
        ),
        Shape(
            "TLSF wastes less than best-fit",
            of["tlsf"] < of["best-fit"],
            f"test 3: {rounded(of['tlsf'], 2)} and {rounded(of['best-fit'], 2)} %; both are within a few points",
            known_wrong=True,
        ),
    )
    header = ("", *(f"test {test}, F %" for test in _TESTS))
    notes = ("The paper's text gives about 80 % for half-fit and 70 % for the buddy; its table is not in our copy.",)
    drawing = bars(
        "factor F, per cent",
        _NAMES,
        {f"test {test}": tuple(float(str(row[test])) for row in rows) for test in _TESTS},
    )
    return Exhibit("T7", "Fragmentation, factor F in per cent", header, tuple(rows), shapes, notes, drawing)


def _figure_4(laboratory: Laboratory) -> Exhibit:
    """Live and reached memory over time, test 3: behind each quarter of the run."""
    _, mallocs, _ = _scale(laboratory)
    rows: list[tuple[Cell, ...]] = []
    for name in _NAMES:
        samples = _run(laboratory, name, "m06-test3", (0, mallocs)).samples
        quarters = [samples[len(samples) * part // _WINDOWS - 1] for part in range(1, _WINDOWS + 1)]
        rows.append(
            (laboratory.label(name), *(sample.reached_bytes for sample in quarters), max(s.live_bytes for s in samples))
        )
    header = ("", *(f"reached\n{part}/{_WINDOWS}" for part in range(1, _WINDOWS + 1)), "most\nlive")
    runs = {name: _run(laboratory, name, "m06-test3", (0, mallocs)) for name in _NAMES}
    curves = [
        Curve(name, tuple((float(s.operation), float(s.reached_bytes)) for s in run.samples))
        for name, run in runs.items()
    ]
    live = runs["tlsf"].samples
    curves.append(Curve("live", tuple((float(s.operation), float(s.live_bytes)) for s in live)))
    reached = {name: run.peak_reached_bytes for name, run in runs.items()}
    shape = Shape(
        "half-fit and the binary buddy take more memory than TLSF, best-fit and DL",
        max(reached[name] for name in ("tlsf", "best-fit", "dlmalloc27"))
        < min(reached[name] for name in ("half-fit", "buddy-binary")),
        ", ".join(f"{name} {value:,}" for name, value in reached.items()),
    )
    notes = ("The paper's figure shows the first 1,400 mallocs, without numbers.",)
    drawing = Drawing("operations", "bytes", tuple(curves))
    return Exhibit("F4", "Memory reached over time, bytes", header, tuple(rows), (shape,), notes, drawing)


def _figure_2(laboratory: Laboratory) -> Exhibit:
    """One task under best-fit: live memory, and the highest address so far."""
    run = _run(laboratory, "best-fit", "m06-figure2", (200,))
    found = 100 * run.fragmentation
    samples = run.samples
    rows: list[tuple[Cell, ...]] = [
        (sample.operation, sample.live_bytes, sample.reached_bytes) for sample in samples[:: max(1, len(samples) // 16)]
    ]
    shape = Shape(
        "memory used stays above live memory, which falls at the end of the hold (F > 0)",
        found > 0 and len({sample.live_bytes for sample in samples}) > 2,
        f"F = {rounded(found, 2)} % here, with our sizes; 47.06 % in the paper, which does not give its sizes",
    )
    drawing = Drawing(
        "operations",
        "bytes",
        (
            Curve("used", tuple((float(s.operation), float(s.reached_bytes)) for s in samples)),
            Curve("live", tuple((float(s.operation), float(s.live_bytes)) for s in samples)),
        ),
    )
    notes = ("Period 15 and hold 60 are the paper's; three blocks of 100 bytes a period are our choice.",)
    title = f"Memory of one task under {laboratory.label('best-fit')}, bytes"
    return Exhibit("F2", title, ("operation", "live", "used"), tuple(rows), (shape,), notes, drawing)


def _quarters(windows: tuple[MallocWindow, ...]) -> list[MallocWindow]:
    """The run in four stretches."""
    found = []
    for part in range(_WINDOWS):
        first, *rest = (
            windows[len(windows) * part // _WINDOWS : max(1, len(windows) * (part + 1) // _WINDOWS)] or (windows[-1:])
        )
        for window in rest:
            first = first.joined(window)
        found.append(first)
    return found


def _figure_3(laboratory: Laboratory) -> Exhibit:
    """Instructions of malloc over time, test 3, seed 0: mean, deviation and most of each quarter of the run."""
    _, mallocs, _ = _scale(laboratory)
    rows: list[tuple[Cell, ...]] = []
    curves = []
    spread: dict[str, list[tuple[Fraction, Fraction]]] = {}
    for name in _NAMES:
        run = _run(laboratory, name, "m06-test3", (0, mallocs))
        cells: list[Cell] = []
        spread[name] = []
        for quarter in _quarters(run.windows):
            mean = Fraction(quarter.instructions, max(1, quarter.calls))
            variance = Fraction(quarter.squares, max(1, quarter.calls)) - mean**2
            spread[name].append((mean, variance))
            cells += [rounded(mean), quarter.most]
        rows.append((laboratory.label(name), *cells))
        curves.append(
            Curve(f"{name}, most", tuple((float(w.operation), float(w.most)) for w in run.windows if w.calls))
        )
    best = spread["best-fit"]
    levels = sorted(_merged(laboratory, "buddy-binary", 3, "malloc", "instructions").calls)
    apart = sorted({b - a for a, b in pairwise(levels)})
    constant = {name: _merged(laboratory, name, 3, "malloc", "instructions").most for name in ("half-fit", "tlsf")}
    shapes = (
        Shape(
            "best-fit's mean and variance grow with time",
            best[0][0] < best[-1][0] and best[0][1] < best[-1][1],
            "mean "
            + ", ".join(rounded(mean) for mean, _ in best)
            + "; variance "
            + ", ".join(rounded(variance) for _, variance in best),
        ),
        Shape(
            "the binary buddy's mallocs form bands, one for each split",
            len(levels) <= 2 * 20,
            f"{len(levels)} values from {levels[0]} to {levels[-1]}, {', '.join(map(str, apart))} apart",
        ),
        Shape(
            "half-fit and TLSF stay below 139 and 170 instructions",
            constant["half-fit"] < 139 and constant["tlsf"] < 170,
            f"half-fit at most {constant['half-fit']}, TLSF at most {constant['tlsf']}",
        ),
    )
    titles = [title for part in range(1, _WINDOWS + 1) for title in (f"{part}/{_WINDOWS}\nmean", "\nmost")]
    notes = ("The picture has the most of each stretch; the paper has a dot for each malloc, and no numbers.",)
    drawing = Drawing("operations", "instructions of malloc", tuple(curves))
    title = "Instructions of malloc over time, test 3"
    return Exhibit("F3", title, ("", *titles), tuple(rows), shapes, notes, drawing)


def _figure_5(laboratory: Laboratory) -> Exhibit:
    """Factor F against the period of the task that deallocates: one set of test 3's tasks, and 50 seeds of requests."""
    periods, mallocs, seeds = collection_periods(), _collected_mallocs(laboratory), laboratory.seeds(50)
    rows: list[tuple[Cell, ...]] = []
    shapes: list[Shape] = []
    curves = [Curve("paper, first and last", ((0.0, 7.0), (float(periods[-1]), 45.0)), paper=True)]
    for name in _COLLECTED:
        found = _collected(laboratory, name, "m06-test4", seeds)
        rows.append((laboratory.label(name), *(rounded(each, 2) for each in found)))
        places = zip(periods, found, strict=True)
        curves.append(Curve(name, tuple((float(period), float(each)) for period, each in places)))
        shapes.append(
            Shape(
                f"{name}: F rises with the period of deallocation, from a few per cent to tens of per cent",
                _rises(found),
                ", ".join(rounded(each, 1) for each in found),
            )
        )
    notes = (
        "F here is the most memory reached over the most that is live with immediate deallocation.",
        f"{len(seeds)} seed(s) of {mallocs:,} mallocs; the paper has 50 seeds and does not say how many mallocs.",
    )
    drawing = Drawing("period of deallocation, steps", "factor F, per cent", tuple(curves))
    title = "Factor F against the period of delayed deallocation, per cent"
    return Exhibit("F5", title, ("", *map(_collection, periods)), tuple(rows), tuple(shapes), notes, drawing)


def _hold(laboratory: Laboratory) -> Exhibit:
    """Figure 5, and best-fit's mean malloc, for both readings of "in the period range of [30..50]"."""
    periods, seeds = collection_periods(), laboratory.seeds(5)
    mallocs, of_means = _collected_mallocs(laboratory), laboratory.seeds(10)
    rows: list[tuple[Cell, ...]] = []
    shapes: list[Shape] = []
    curves = [Curve("paper, first and last", ((0.0, 7.0), (float(periods[-1]), 45.0)), paper=True)]
    few = min(mallocs, 20_000)
    for hold, ending in (("periods", ""), ("steps", "-hold-steps")):
        found = {name: _collected(laboratory, name, f"m06-test4{ending}", seeds) for name in _COLLECTED}
        means = []
        for test in _TESTS:
            runs = [_run(laboratory, "best-fit", f"m06-test{test}{ending}", (seed, few)) for seed in of_means]
            means.append(
                sum((run.distributions["malloc", "instructions"].mean for run in runs), Fraction(0)) / len(runs)
            )
        for name, row in found.items():
            of_best_fit = (rounded(mean) for mean in means) if name == "best-fit" else ("-",) * len(_TESTS)
            rows.append((f"30 to 50 {hold}", laboratory.label(name), *(rounded(each, 2) for each in row), *of_best_fit))
            places = zip(periods, row, strict=True)
            curves.append(Curve(f"{name}, {hold}", tuple((float(at), float(each)) for at, each in places)))
        shapes += [
            Shape(
                f"held for 30 to 50 {hold}: F rises from a few per cent to tens of per cent (figure 5)",
                all(_rises(row) for row in found.values()),
                "; ".join(f"{name} {', '.join(rounded(each, 1) for each in row)}" for name, row in found.items()),
            ),
            Shape(
                f"held for 30 to 50 {hold}: best-fit's mean malloc is worst in test 3 (table 5)",
                means[2] == max(means),
                ", ".join(f"test {test} {rounded(mean)}" for test, mean in zip(_TESTS, means, strict=True))
                + " instructions; 511, 347 and 1134 cycles in the paper",
            ),
        ]
    notes = (
        f"F: {len(seeds)} seed(s) of {mallocs:,} mallocs; of best-fit's means {len(of_means)} of {few:,}.",
        "All other tables and figures hold blocks for 30 to 50 periods of their task.",
    )
    header = ("hold", "", *map(_collection, periods), *(f"test {test},\nmean malloc" for test in _TESTS))
    drawing = Drawing("period of deallocation, steps", "factor F, per cent", tuple(curves))
    title = "Both readings of the hold: factor F in per cent, and best-fit's mean malloc in instructions"
    return Exhibit("F5S", title, header, tuple(rows), tuple(shapes), notes, drawing)


def _collection(period_steps: int) -> str:
    return f"{period_steps} steps" if period_steps else "immediate"


def _collected_mallocs(laboratory: Laboratory) -> int:
    return min(_scale(laboratory)[2], 50_000)


def _collected(laboratory: Laboratory, name: str, workload: str, seeds: range) -> list[Fraction]:
    """F in per cent for each period of deallocation, mean of ``seeds``."""
    periods, mallocs = collection_periods(), _collected_mallocs(laboratory)
    found = [Fraction(0)] * len(periods)
    for seed in seeds:
        runs = [_run(laboratory, name, workload, (seed, mallocs, period)) for period in periods]
        for index, run in enumerate(runs):
            found[index] += 100 * (Fraction(run.peak_reached_bytes, runs[0].peak_live_bytes) - 1) / len(seeds)
    return found


def _rises(found: list[Fraction]) -> bool:
    return found[0] < 10 <= found[-1] < 100 and all(a <= b + 1 for a, b in pairwise(found))


MASMANO = Paper(
    "M06",
    "M. Masmano, I. Ripoll, A. Crespo, A comparison of memory allocators for real-time applications, JTRES, 2006",
    MappingProxyType(
        {
            "T5": _table_5,
            "T6": _table_6,
            "T7": _table_7,
            "F2": _figure_2,
            "F3": _figure_3,
            "F4": _figure_4,
            "F5": _figure_5,
            "F5S": _hold,
        }
    ),
)
