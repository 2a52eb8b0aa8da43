"""C06: A. Crespo, I. Ripoll, M. Masmano, Dynamic memory management for embedded real-time systems, IFIP 225, 2006.

Table 3's numbers decode to 16,384 free blocks (5 · 2^14 + 75 and 6 · 2^14 + 81), that is 512 KiB of least blocks, and
not to the 4 MiB that its text names; both are measured. Fragmentation is factor F of §5, of 50,000 steps and 100 seeds,
or 2,000 steps and two seeds when quick.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, isqrt, log2
from types import MappingProxyType
from typing import Literal

from wcet_probe.answer.papers.exhibit import Cell, Curve, Drawing, Exhibit, Paper, Shape, bars, ordered, rounded
from wcet_probe.answer.papers.laboratory import HEAP_BYTES, Laboratory

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
_SIZE_RATIOS = (Fraction(4096, 16), Fraction(8192, 100), Fraction(10240, 1024))
"""The largest size that a task of test 1, 2, 3 asks for, over the smallest (§5)."""
_SMALL_HEAP_BYTES = 512 << 10
_FRAGMENTATION_HEAP_BYTES = 64 << 20
_ROLES: tuple[Literal["alloc", "free"], ...] = ("alloc", "free")
_COMPLEXITY = MappingProxyType(
    {
        "first-fit": ("H", "1"),
        "best-fit": ("H", "1"),
        "dlmalloc27": ("H", "1"),
        "buddy-binary": ("log H", "log H"),
        "avl-best-fit": ("log H", "log H"),
        "half-fit": ("1", "1"),
        "tlsf": ("1", "1"),
    }
)
"""Of malloc and of free, table 1."""
_FREE_HEAPS = (256 << 10, 1 << 20)
_GROWTH_HEAPS = (16 << 10, 256 << 10)
_WORST_CASES = (1 << 10, 4 << 10, 64 << 10)


def _grows(claim: str, grown: Fraction, factor: Fraction) -> bool:
    """Whether a cost that is ``grown`` times as large in a heap ``factor`` times as large is O(``claim``) of it."""
    return {"H": factor / 2 < grown < 2 * factor, "log H": 1 <= grown < 3, "1": grown < Fraction(11, 10)}[claim]


def _table_1(laboratory: Laboratory) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    shapes = []
    for name, claims in _COMPLEXITY.items():
        for role, claim in zip(_ROLES, claims, strict=True):
            known_wrong = (name, role) == ("dlmalloc27", "free")
            heaps, cost = (_FREE_HEAPS, laboratory.dearest) if known_wrong else (_GROWTH_HEAPS, laboratory.worst)
            small, large = (cost(name, role, heap).instructions for heap in heaps)
            grown, factor = Fraction(large, small), Fraction(heaps[1], heaps[0])
            called = "malloc" if role == "alloc" else "free"
            rows.append(
                (
                    *(called, laboratory.label(name), f"O({claim})"),
                    *(f"{heaps[0] >> 10} KiB", small, f"{heaps[1] >> 10} KiB", large, rounded(grown, 2)),
                )
            )
            shapes.append(
                Shape(
                    f"{_NAMES[name]}: {called} is O({claim})",
                    _grows(claim, grown, factor),
                    f"{small:,} to {large:,} instructions, {rounded(grown, 2)} times in a heap {factor} times as large"
                    + (": free of 128 KiB or more consolidates every fast bin" if known_wrong else ""),
                    known_wrong=known_wrong,
                )
            )
    header = ("", "", "paper", "heap", "instructions", "heap", "instructions", "times")
    notes = (
        "dlmalloc's dearest known malloc is quadratic in H, not linear: the row shows the paper's state if it has one.",
    )
    curves = tuple(
        Curve(f"{row[1]} {row[0]}", tuple((float(str(row[at]).split()[0]), float(row[at + 1])) for at in (3, 5)))
        for row in rows
    )
    drawing = Drawing("heap, KiB", "instructions", curves)
    title = "Complexity of malloc and free, instructions of the worst state"
    return Exhibit("T1", title, header, tuple(rows), tuple(shapes), notes, drawing)


def _theory(largest: Fraction) -> dict[str, Fraction]:
    """Table 2: by how much the heap exceeds the live memory at worst, if blocks are ``largest`` times the smallest."""
    harmonic = Fraction(sum(10**15 // i for i in range(1, ceil(largest) + 1)), 10**15)
    return {
        "first-fit": harmonic * 10**12 / 693147180560,
        "best-fit": largest - 2,
        "buddy-binary": 1 + Fraction(log2(largest)),
    }


def _table_2(_laboratory: Laboratory) -> Exhibit:
    """Heap that the theory needs for ``M`` live bytes in blocks of ``m`` at most, as a factor of M."""
    rows: list[tuple[Cell, ...]] = []
    for largest in _WORST_CASES:
        theory = _theory(Fraction(largest))
        fit, best, buddy = theory.values()
        rows.append((f"m = {largest:,}", rounded(fit, 2), f"{int(best):,}", int(buddy), f"{largest:,}"))
    header = ("", "first-fit, M Σ 1/i / ln 2", "best-fit, M (m - 2)", "binary buddy, M (1 + log2 m)", "any, M m")
    drawing = Drawing(
        "largest block m over the smallest",
        "times the live memory",
        tuple(
            Curve(
                title,
                tuple(
                    (float(m), float(str(row[1 + i]).replace(",", "")))
                    for m, row in zip(_WORST_CASES, rows, strict=True)
                ),
            )
            for i, title in enumerate(("first-fit", "best-fit", "binary buddy", "any"))
        ),
    )
    title = "Worst-case heap over live memory M, theory (Robson; Knuth)"
    return Exhibit("T2", title, header, tuple(rows), drawing=drawing)


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
            "TLSF's worst malloc takes 1.20 times the instructions of HF's",
            Fraction(119, 100) <= ratio <= Fraction(121, 100),
            f"TLSF / HF = {rounded(ratio, 2)} here; 197 / 164 = 1.20 in the paper: it is of the code, not the policy",
            known_wrong=True,
        ),
    )
    header = (
        "",
        *("512 KiB\ninstructions", "\ncycles", "4 MiB\ninstructions", "\ncycles"),
        *("paper:\ninstructions", "paper:\ncycles"),
        "state",
    )
    notes = (
        "Table 3's numbers are 5 · 2^14 + 75 and 6 · 2^14 + 81: 16,384 free blocks, not the 131,072 of 4 MB and 16 B.",
    )
    drawing = bars(
        "instructions, 512 KiB",
        tuple(_NAMES[name] for name in _TABLE_3),
        {"here": tuple(small_worst.values()), "paper": tuple(row[0] for row in _TABLE_3.values())},
    )
    return Exhibit("T3", "Worst-case malloc", header, tuple(rows), shapes, notes, drawing)


def _matrix(laboratory: Laboratory) -> Exhibit:
    """Each allocator behind the operations that are another's worst state, as table 3's caption promises."""
    found = {
        name: [laboratory.in_state_of(name, other, _SMALL_HEAP_BYTES)[0] for other in _TABLE_3] for name in _TABLE_3
    }
    rows: tuple[tuple[Cell, ...], ...] = tuple((laboratory.label(name), *counts) for name, counts in found.items())
    own = [counts[index] for index, counts in enumerate(found.values())]
    dearer = [
        f"{_NAMES[name]} in {_NAMES[other]}'s {count:,}, in its own {mine:,}"
        for (name, counts), mine in zip(found.items(), own, strict=True)
        for other, count in zip(_TABLE_3, counts, strict=True)
        if count > mine
    ]
    shape = Shape(
        "no allocator's malloc is dearer in the state that is another's worst than in its own",
        not dearer,
        "; ".join(dearer) or "the diagonal has the most of each row",
    )
    header = ("instructions", *(f"in {_NAMES[other]}'s" for other in _TABLE_3))
    notes = ("A heap of 512 KiB. Other allocators' blocks have other sizes, so that their state is another there.",)
    drawing = bars(
        "instructions",
        tuple(f"in {_NAMES[other]}'s" for other in _TABLE_3),
        {_NAMES[name]: tuple(counts) for name, counts in found.items()},
    )
    return Exhibit("T3M", "Malloc in each other's worst states", header, rows, (shape,), notes, drawing)


def _table_4(laboratory: Laboratory) -> Exhibit:
    seeds, steps = laboratory.seeds(100, quick=2), 2_000 if laboratory.quick else 50_000
    rows: list[tuple[Cell, ...]] = []
    means: dict[tuple[str, int], Fraction] = {}
    for name, paper in _TABLE_4.items():
        cells: list[Cell] = []
        for test in (1, 2, 3):
            found = []
            for seed in seeds:
                run = laboratory.run(name, f"c06-test{test}-steps", (seed, steps), heap_bytes=_FRAGMENTATION_HEAP_BYTES)
                found.append(100 * run.fragmentation)
            mean = sum(found, Fraction(0)) / len(seeds)
            means[name, test] = mean
            spread = sum(((each - mean) ** 2 for each in found), Fraction(0)) / max(1, len(seeds) - 1)
            cells += [rounded(mean, 2), rounded(Fraction(isqrt(int(spread * 10**6)), 1000), 2)]
        theory = (_theory(ratio).get(name) for ratio in _SIZE_RATIOS)
        rows.append(
            (
                laboratory.label(name),
                *cells,
                *paper,
                *("-" if each is None else rounded(100 * (each - 1)) for each in theory),
            )
        )
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
    better = [test for test in (1, 2, 3) if means["tlsf", test] < means["best-fit", test]]
    buddy = [means["buddy-binary", test] for test in (1, 2, 3)]
    shapes += [
        Shape(
            "TLSF fragments less than BF in most cases",
            len(better) > 1,
            f"here in {len(better)} of 3 tests, by "
            + ", ".join(rounded(means["best-fit", test] - means["tlsf", test], 2) for test in (1, 2, 3))
            + " points; the paper's own table has it in 1 of 3",
            known_wrong=True,
        ),
        Shape(
            "the binary buddy wastes 69.59 %",
            all(abs(each - Fraction(6959, 100)) < 5 for each in buddy),
            "here "
            + ", ".join(rounded(each, 2) for each in buddy)
            + " %; the paper's own table has 46.37, 45.00, 48.63",
            known_wrong=True,
        ),
    ]
    titles = [title for test in (1, 2, 3) for title in (f"test {test}\nF %", "\nsd")]
    tests = tuple(f"test {test}" for test in (1, 2, 3))
    header = ("", *titles, *(f"paper:\n{test}" for test in tests), *(f"in theory\n{test}" for test in tests))
    notes = (
        f"{len(seeds)} seeds of {steps:,} steps; the paper has no periods, ours: scenarios/workloads/periodic.py.",
        "In theory: F in per cent at worst by table 2, m being the largest size of the test over its smallest.",
    )
    drawing = bars(
        "factor F, per cent",
        tuple(f"{_NAMES[name]}, test {test}" for name in _TABLE_4 for test in (1, 2, 3)),
        {
            "here": tuple(float(means[name, test]) for name in _TABLE_4 for test in (1, 2, 3)),
            "paper": tuple(float(each) for paper in _TABLE_4.values() for each in paper),
        },
    )
    return Exhibit("T4", "Fragmentation, factor F in per cent", header, tuple(rows), tuple(shapes), notes, drawing)


CRESPO = Paper(
    "C06",
    "A. Crespo, I. Ripoll, M. Masmano, Dynamic memory management for embedded real-time systems, IFIP vol. 225, 2006",
    MappingProxyType({"T1": _table_1, "T2": _table_2, "T3": _table_3, "T3M": _matrix, "T4": _table_4}),
)
