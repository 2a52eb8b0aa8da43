"""L11: J. Lee, J. Yi, Improving memory efficiency of dynamic memory allocators …, ETRI Journal 33(2), 2011.

The twenty scenarios of §V on the allocators that are ours of the paper's nine: five variants of DJGPP's malloc (which
of them is its test 2 to 6 is not known, so that they are named by mechanism), Kingsley, Lea, TLSF. R_max is the end of
the highest block, and with buckets that of the shared region and all buckets. When quick, one seed of three allocators;
else ten seeds of all eight.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from types import MappingProxyType

from wcet_probe.answer.papers.exhibit import Cell, Curve, Drawing, Exhibit, Paper, Shape, bars, rounded
from wcet_probe.answer.papers.laboratory import Laboratory
from wcet_probe.answer.papers.points import Run
from wcet_probe.answer.workloads.budgeting import Budget, Profile, exhaustive, greedy, profile
from wcet_probe.scenarios.workloads.lee import CONFIGURATIONS, DISTRIBUTIONS
from wcet_probe.scenarios.workloads.named import papers_rows

_ALLOCATORS = (
    *("djgpp-sbrk", "djgpp-carve", "djgpp-quarters", "djgpp-cached", "djgpp-tags"),
    *("kingsley", "dlmalloc28", "tlsf"),
)
_QUICK = ("djgpp-sbrk", "dlmalloc28", "tlsf")
_HEAP_BYTES = 128 << 20
_ORDER = ("s", "r", "o", "n")
_APART_STEPS = (125, 500, 750)
_QUICK_CONFIGURATIONS = ("ocs", "ocmix")
_TABLE_2 = MappingProxyType(
    {
        "oc2l": ("10.74", "2.71", "5.34", "8.31"),
        "oc2s": ("18.85", "3.21", "7.56", "11.76"),
        "ocl": ("14.55", "-1.37", "4.46", "8.43"),
        "ocs": ("14.52", "2.00", "8.48", "11.59"),
        "ocmix": ("15.44", "0.30", "8.20", "13.39"),
    }
)
"""Mean reduction of R_max in per cent: synchronized, non-overlapped, overlapped, random."""
_TABLE_3 = (((4, 10), 15520, 15520), ((4, 20), 34688, 34688), ((5, 10), 16016, 15984))
"""(n, P_max), Σ S_i N_i of the exhaustive and of the greedy algorithm."""
_MEAN_OVERHEAD, _TLSF_OVERHEAD, _CODE_BYTES = "1.66", "9.36", 548


def _seeds(laboratory: Laboratory) -> range:
    return laboratory.seeds(10)


def _chosen(laboratory: Laboratory) -> tuple[str, ...]:
    return _QUICK if laboratory.quick else _ALLOCATORS


def _name(kind: str, sizes: str) -> str:
    return f"l11-{kind}-{sizes}"


@cache
def _profile(workload: str, arguments: tuple[int, ...]) -> Profile:
    return profile(lambda: papers_rows(workload, arguments))


@cache
def _budget(workload: str, arguments: tuple[int, ...]) -> Budget:
    return greedy(_profile(workload, arguments))


def _runs(
    laboratory: Laboratory, allocator: str, workload: str, seed: int, others: tuple[int, ...] = (0,)
) -> tuple[Run, Run]:
    """Without buckets and with them; ``others`` are the workload's arguments behind its seed."""
    arguments = (seed, *others)
    values = tuple(sorted(_budget(workload, arguments).parameters.items()))
    return (
        laboratory.run(allocator, workload, arguments, heap_bytes=_HEAP_BYTES),
        laboratory.run(f"budgeted:{allocator}", workload, arguments, heap_bytes=_HEAP_BYTES, values=values),
    )


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / max(1, len(values))


def _reduction(laboratory: Laboratory, allocator: str, workload: str, others: tuple[int, ...] = (0,)) -> Fraction:
    """Mean over the seeds of what R_max loses by buckets, in per cent."""
    found = []
    for seed in _seeds(laboratory):
        plain, budgeted = _runs(laboratory, allocator, workload, seed, others)
        found.append(100 * (1 - Fraction(budgeted.peak_reached_bytes, plain.peak_reached_bytes)))
    return _mean(found)


def _table_1(_laboratory: Laboratory) -> Exhibit:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (f"S_{number + 1}", *(sizes[number] for sizes in CONFIGURATIONS.values())) for number in range(8)
    )
    drawing = bars(
        "bytes", tuple(str(row[0]) for row in rows), {name: tuple(sizes) for name, sizes in CONFIGURATIONS.items()}
    )
    return Exhibit("T1", "Object configurations, bytes", ("", *CONFIGURATIONS), rows, drawing=drawing)


def _figure_3(_laboratory: Laboratory) -> Exhibit:
    """U and U^B of three objects, of which the first has as many buckets as live at U's peak, or as the method says."""
    arguments = (3, 1, 20, 4096, 1024, 256)
    found = _profile("l11-objects", arguments)
    used = found.used((0, 0, 0))
    peak = int(used.argmax())
    naive = (int(found.live[peak, 0]), 0, 0)
    chosen = (greedy(found).buckets[0], 0, 0)
    rows: list[tuple[Cell, ...]] = [
        (title, buckets[0], int(found.used(buckets).max()))
        for title, buckets in (("U", (0, 0, 0)), ("U^B, N_1 = P_1(t_2)", naive), ("U^B, N_1 of figure 4", chosen))
    ]
    most = int(used.max())
    shape = Shape(
        "U^B exceeds U_max where N_1 is what is live at U's peak, and does not with figure 4's N_1",
        int(found.used(naive).max()) > most >= int(found.used(chosen).max()),
        f"U_max {most:,}; U^B_max {rows[1][2]:,} and {rows[2][2]:,} bytes",
    )
    curves = tuple(
        Curve(str(row[0]), tuple((float(t), float(value)) for t, value in enumerate(found.used(buckets))))
        for row, buckets in zip(rows, ((0, 0, 0), naive, chosen), strict=True)
    )
    notes = ("Objects of 4,096, 1,024 and 256 bytes, at random; the picture has the peaks of the trace, sorted.",)
    drawing = Drawing("peak", "bytes in use", curves)
    header = ("", "N_1", "most, bytes")
    return Exhibit("F3", "U(t) and U^B(t)", header, tuple(rows), (shape,), notes, drawing)


def _figure_5(_laboratory: Laboratory) -> Exhibit:
    """P_i(t) of each distribution: how many objects of all sizes are live over time."""
    rows: list[tuple[Cell, ...]] = []
    curves = []
    for kind, words in DISTRIBUTIONS.items():
        live, most, points = 0, 0, list[tuple[float, float]]()
        for number, row in enumerate(papers_rows(_name(kind, "ocmix"), (0, 0))):
            live += 1 if row.kind == "malloc" else -1
            most = max(most, live)
            if number % 64 == 0:
                points.append((float(number), float(live)))
        rows.append((f"td_{kind}", words, most))
        curves.append(Curve(f"td_{kind}", tuple(points)))
    at_once = {str(row[0]): int(row[2]) for row in rows}
    shape = Shape(
        "all 800 objects are live at once under td_s, and those of one size under td_n",
        at_once["td_s"] == 800 and at_once["td_n"] == 100,
        ", ".join(f"{name} {count}" for name, count in at_once.items()),
    )
    drawing = Drawing("operations", "live objects of all sizes", tuple(curves))
    header = ("", "", "most live at once")
    return Exhibit("F5", "Distributions over time", header, tuple(rows), (shape,), (), drawing)


def _table_2(laboratory: Laboratory) -> Exhibit:
    by_name = {
        (kind, sizes): [_reduction(laboratory, name, _name(kind, sizes)) for name in _chosen(laboratory)]
        for sizes, kind in product(CONFIGURATIONS, DISTRIBUTIONS)
    }
    cells = {key: _mean(found) for key, found in by_name.items()}
    without = max(
        abs(_mean([*found[:index], *found[index + 1 :]]) - cells[key])
        for key, found in by_name.items()
        for index in range(len(found))
    )
    twice = [
        {key: _mean([*found, found[index]]) for key, found in by_name.items()}
        for index in range(len(_chosen(laboratory)))
    ]
    moved = max(abs(one[key] - cells[key]) for one in twice for key in cells)
    turned = sorted(
        {sizes for one in twice for sizes in CONFIGURATIONS if _in_order(one, sizes) != _in_order(cells, sizes)}
    )
    rows: list[tuple[Cell, ...]] = [
        (sizes, *(rounded(cells[kind, sizes], 2) for kind in DISTRIBUTIONS), *_TABLE_2[sizes])
        for sizes in CONFIGURATIONS
    ]
    shapes = [
        Shape(
            f"{sizes}: td_s > td_r > td_o > td_n",
            _in_order(cells, sizes),
            ", ".join(f"td_{kind} {rounded(cells[kind, sizes], 2)} %" for kind in _ORDER),
        )
        for sizes in CONFIGURATIONS
    ]
    shapes += [_all_buckets(laboratory), _limits(laboratory)]
    labels = {"s": "td_s", "n": "td_n", "o": "td_o", "r": "td_r"}
    header = ("", *(f"{labels[kind]}\n%" for kind in DISTRIBUTIONS), *(f"paper:\n{label}" for label in labels.values()))
    notes = (
        (
            f"Mean of {', '.join(map(laboratory.label, _chosen(laboratory)))}; {len(_seeds(laboratory))} seed(s). The "
            "paper has nine allocators; one of DJGPP's test 2 and test 3 is none of ours."
        ),
        f"Without any one of these allocators no cell is further away than {rounded(without, 2)} points.",
        (
            f"With any one of them counted twice, for the one that is not there, no cell moves by more than "
            f"{rounded(moved, 2)} points, and the order comes out otherwise "
            f"{'in ' + ', '.join(turned) if turned else 'in no configuration'}."
        ),
    )
    groups = tuple(f"{sizes} td_{kind}" for sizes in CONFIGURATIONS for kind in DISTRIBUTIONS)
    drawing = bars(
        "reduction of R_max, per cent",
        groups,
        {
            "here": tuple(float(cells[kind, sizes]) for sizes in CONFIGURATIONS for kind in DISTRIBUTIONS),
            "paper": tuple(float(value) for sizes in CONFIGURATIONS for value in _TABLE_2[sizes]),
        },
    )
    return Exhibit("T2", "Reduction of R_max by buckets", header, tuple(rows), tuple(shapes), notes, drawing)


def _in_order(cells: Mapping[tuple[str, str], Fraction], sizes: str) -> bool:
    return all(cells[a, sizes] > cells[b, sizes] for a, b in pairwise(_ORDER))


def _settings(laboratory: Laboratory) -> Exhibit:
    """Table 2 once more for other readings of td_o and td_r, which the paper describes in a sentence each."""
    configurations = _QUICK_CONFIGURATIONS if laboratory.quick else tuple(CONFIGURATIONS)
    asked: dict[str, tuple[str, tuple[int, ...]]] = {
        **{f"td_o, {apart / 10:.0f} % apart": ("l11-overlapped", (apart,)) for apart in _APART_STEPS},
        "td_r, wandering": ("l11-wandering", ()),
    }
    found: dict[str, list[Fraction]] = {
        f"td_{kind}": [
            _mean([_reduction(laboratory, name, _name(kind, sizes)) for name in _chosen(laboratory)])
            for sizes in configurations
        ]
        for kind in _ORDER
    }
    for title, (workload, others) in asked.items():
        found[title] = [
            _mean(
                [
                    _reduction(laboratory, name, workload, (*others, *CONFIGURATIONS[sizes]))
                    for name in _chosen(laboratory)
                ]
            )
            for sizes in configurations
        ]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(rounded(each, 2) for each in row)) for name, row in found.items()
    )
    overlapped = ["td_o", *(name for name in found if name.startswith("td_o,"))]
    held = {
        f"{r} and {o}": sum(
            found["td_s"][n] > found[r][n] > found[o][n] > found["td_n"][n] for n in range(len(configurations))
        )
        for r, o in product(("td_r", "td_r, wandering"), overlapped)
    }
    best = max(held, key=lambda name: held[name])
    shapes = (
        Shape(
            "some reading of td_o and td_r has td_s > td_r > td_o > td_n in all configurations",
            held[best] == len(configurations),
            "configurations in which it holds: " + ", ".join(f"{name} {count}" for name, count in held.items()),
        ),
        Shape(
            "td_s is first under every reading",
            all(row[n] < found["td_s"][n] for name, row in found.items() if name != "td_s" for n in range(len(row))),
            ", ".join(f"{name} at most {rounded(max(row), 2)} %" for name, row in found.items()),
        ),
    )
    notes = ("td_o and td_r as in T2, td_o's intervals begun further apart or closer, and td_r without intervals.",)
    drawing = bars(
        "reduction of R_max, per cent",
        configurations,
        {name: tuple(float(each) for each in row) for name, row in found.items()},
    )
    title = "Reduction of R_max under other readings of td_o and td_r, per cent"
    return Exhibit("T2S", title, ("", *configurations), rows, shapes, notes, drawing)


def _all_buckets(laboratory: Laboratory) -> Shape:
    """Under td_s."""
    wrong = []
    for sizes, seed in product(CONFIGURATIONS, _seeds(laboratory)):
        workload = _name("s", sizes)
        budget = _budget(workload, (seed, 0))
        reached = {_runs(laboratory, name, workload, seed)[1].peak_reached_bytes for name in _chosen(laboratory)}
        if set(budget.buckets) != {100} or len(reached) != 1:
            wrong.append(f"{sizes}, seed {seed}: N_i {budget.buckets}, R^B_max {sorted(reached)}")
    return Shape(
        "td_s: N_i = P_i,max, and R^B_max is equal for all shared allocators",
        not wrong,
        "; ".join(wrong) or f"N_i = 100 in all of {len(CONFIGURATIONS) * len(_seeds(laboratory))} scenarios",
    )


def _limits(laboratory: Laboratory) -> Shape:
    wrong = []
    for kind, sizes, seed in product(DISTRIBUTIONS, CONFIGURATIONS, _seeds(laboratory)):
        workload, arguments = _name(kind, sizes), (seed, 0)
        found, budget = _profile(workload, arguments), _budget(workload, arguments)
        within = all(n <= p for n, p in zip(budget.buckets, found.most_live, strict=True))
        if budget.most_used_with_buckets_bytes > budget.most_used_bytes or not within:
            wrong.append(f"{workload}, seed {seed}")
    return Shape(
        "U^B_max ≤ U_max and N_i ≤ P_i,max in every scenario",
        not wrong,
        "; ".join(wrong) or f"in all of {20 * len(_seeds(laboratory))}",
    )


def _table_3(_laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    worst = Fraction(1)
    for (objects, most), paper_best, paper_greedy in _TABLE_3:
        for configuration, kind in product(("oc2s", "ocs"), DISTRIBUTIONS):
            sizes = CONFIGURATIONS[configuration][:objects]
            found = _profile("l11-objects", (tuple(DISTRIBUTIONS).index(kind), 0, most, *sizes))
            best, quick = exhaustive(found), greedy(found)
            ratio = Fraction(quick.dedicated_bytes, max(1, best.dedicated_bytes))
            worst = min(worst, ratio)
            rows.append(
                (
                    *(objects, most, f"td_{kind} {configuration}", best.choices, best.examined),
                    *(best.dedicated_bytes, quick.dedicated_bytes, rounded(100 * ratio, 2)),
                    *(paper_best, paper_greedy, rounded(Fraction(100 * paper_greedy, paper_best), 1)),
                )
            )
    shape = Shape(
        "greedy reaches at least 99.8 % of exhaustive",
        worst >= Fraction(998, 1000),
        f"at least {rounded(100 * worst, 2)} % of Σ S_i N_i",
    )
    header = (
        *("n", "P_max", "", "choices", "examined"),
        *("exhaustive\nΣ S_i N_i", "greedy", "%", "paper:\nexhaustive", "paper:\ngreedy", "%"),
    )
    notes = (
        (
            "The paper does not say which sizes and distribution; here the n largest of oc2s and ocs, under each. It "
            "compares times on a machine of its own; here the number of choices stands for them: greedy looks at one."
        ),
        "Choices that cannot be better than the best so far are left out: examined counts the others.",
    )
    drawing = bars(
        "Σ S_i N_i, bytes",
        tuple(f"n={row[0]}, P={row[1]}, {row[2]}" for row in rows),
        {
            "exhaustive": tuple(float(row[5]) for row in rows),
            "greedy": tuple(float(row[6]) for row in rows),
            "paper: greedy": tuple(float(row[9]) for row in rows),
        },
    )
    return Exhibit("T3", "Exhaustive against greedy", header, tuple(rows), (shape,), notes, drawing)


def _figure_6(laboratory: Laboratory) -> Exhibit:
    """R_max and R^B_max, ocmix, seed 0."""
    rows: list[tuple[Cell, ...]] = []
    values: dict[str, tuple[float, ...]] = {}
    for kind in DISTRIBUTIONS:
        found = [_runs(laboratory, name, _name(kind, "ocmix"), 0) for name in _chosen(laboratory)]
        values[f"R, td_{kind}"] = tuple(float(plain.peak_reached_bytes) for plain, _ in found)
        values[f"R^B, td_{kind}"] = tuple(float(budgeted.peak_reached_bytes) for _, budgeted in found)
        buckets = " ".join(map(str, _budget(_name(kind, "ocmix"), (0, 0)).buckets))
        for name, (plain, budgeted) in zip(_chosen(laboratory), found, strict=True):
            change = 100 * (1 - Fraction(budgeted.peak_reached_bytes, plain.peak_reached_bytes))
            counts = (plain.peak_reached_bytes, budgeted.peak_reached_bytes, rounded(change, 2))
            rows.append((f"td_{kind}", laboratory.label(name), *counts, buckets))
    notes = ("The paper's figure has no numbers.",)
    header = ("", "", "R_max", "R^B_max", "reduction %", "N_i from the largest size on")
    drawing = bars("bytes", _chosen(laboratory), values)
    return Exhibit("F6", "R_max with and without buckets, ocmix, bytes", header, tuple(rows), (), notes, drawing)


def _figure_7(laboratory: Laboratory) -> Exhibit:
    """What buckets cost in time, over all twenty scenarios, and in code."""
    rows: list[tuple[Cell, ...]] = []
    overheads: dict[str, Fraction] = {}
    for name in _chosen(laboratory):
        totals = [0, 0]
        for kind, sizes, seed in product(DISTRIBUTIONS, CONFIGURATIONS, _seeds(laboratory)):
            for index, run in enumerate(_runs(laboratory, name, _name(kind, sizes), seed)):
                totals[index] += sum(
                    value * calls
                    for role in ("malloc", "free")
                    for value, calls in run.distributions[role, "instructions"].calls.items()
                )
        overheads[name] = 100 * (Fraction(totals[1], totals[0]) - 1)
        values = tuple(sorted(_budget(_name("r", "ocmix"), (0, 0)).parameters.items()))
        plain, budgeted = laboratory.code_bytes(name), laboratory.code_bytes(f"budgeted:{name}", values)
        rows.append((laboratory.label(name), *totals, rounded(overheads[name], 2), plain, budgeted, budgeted - plain))
    mean = _mean(list(overheads.values()))
    shape = Shape(
        "buckets cost less than 10 % of the time",
        all(value < 10 for value in overheads.values()),
        f"mean {rounded(mean, 2)} %, TLSF {rounded(overheads['tlsf'], 2)} %; "
        f"the paper's {_MEAN_OVERHEAD} % and {_TLSF_OVERHEAD} %, {_CODE_BYTES} bytes of code",
    )
    header = (
        *("", "instructions\nwithout", "with buckets", "more\n%"),
        *("image, bytes\nwithout", "with buckets", "more"),
    )
    notes = (
        (
            "The paper's calls name their object; ours search for it by size and address, up to eight sizes, at a "
            "cost. The image includes the check of all invariants."
        ),
    )
    drawing = bars(
        "more instructions, per cent",
        (*overheads, "mean"),
        {
            "here": (*(float(value) for value in overheads.values()), float(mean)),
            "paper": (*(float(_TLSF_OVERHEAD) if name == "tlsf" else 0.0 for name in overheads), float(_MEAN_OVERHEAD)),
        },
    )
    return Exhibit("F7", "Overhead of buckets", header, tuple(rows), (shape,), notes, drawing)


LEE = Paper(
    "L11",
    "J. Lee, J. Yi, Improving memory efficiency of dynamic memory allocators for real-time embedded systems, ETRI "
    "Journal 33(2), 2011",
    MappingProxyType(
        {
            "T1": _table_1,
            "T2": _table_2,
            "T2S": _settings,
            "T3": _table_3,
            "F3": _figure_3,
            "F5": _figure_5,
            "F6": _figure_6,
            "F7": _figure_7,
        }
    ),
)
