"""Tables of what is kept of TACLeBench: the matrix of medians, and a table of programs for each core.

Run it from the project's folder: ``python -m bench.suite_tables`` prints the matrix, ``python -m bench.suite_tables
common`` that of the programs that all builds have, and ``python -m bench.suite_tables cortex-m4`` the programs of a
core; ``--above 1.5`` leaves those whose bound is more than 1.5 of their run in a build of it. ``--page FILE`` writes
all of them into a page, between ``<!-- table: taclebench NAME -->`` and ``<!-- end -->``, where NAME is ``matrix``,
``common`` or a core. The rows are those of ``bench/taclebench.csv``; nothing is computed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.programs import put_table
from bench.suite_rows import LEVELS, PACKAGED, Build, Kept, programs, read
from wcet_probe.errors import UsageError, WcetProbeError

SUITE = 57
"""Programs of the suite."""
BOUNDED = ("BOUNDED", "UNSOUND")
"""Verdicts of a program that has a bound by more than a type's width."""
_MATRIX, _COMMON = "matrix", "common"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked, or write it into a page; 1 where a run was above its bound, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("core", nargs="?", default=_MATRIX, help="whose programs are printed; or matrix, common")
    parser.add_argument("--above", type=float, default=0.0, help="only programs with a greater ratio in instructions")
    parser.add_argument("--page", type=Path, help="a page with places for tables")
    options = parser.parse_args(arguments)
    rows = read()
    texts = {_MATRIX: "\n".join(matrix(rows)), _COMMON: "\n".join(matrix(*common(rows)))}
    for core in dict.fromkeys(row.build.core for row in rows):
        texts[core] = "\n".join(table_of(core, rows, options.above))
    if options.core not in texts:
        raise UsageError(f"no row of {options.core} is kept; those of {', '.join(list(texts)[2:]) or 'no core'} are.")
    if options.page:
        for name, text in texts.items():
            put_table(options.page, f"taclebench {name}", text)
    else:
        print(texts[options.core])
    return int(any(row.verdict == "UNSOUND" for row in rows))


def common(rows: Sequence[Kept]) -> tuple[list[Kept], int]:
    """The rows of those programs that each build has of which no memory is known, and the number of programs."""
    unknown = [row for row in rows if not row.build.known]
    builds, pairs = {row.build for row in unknown}, {(row.build, row.program) for row in unknown}
    chosen = [name for name in programs(rows) if all((build, name) in pairs for build in builds)]
    return [row for row in unknown if row.program in chosen], len(chosen)


def matrix(rows: Sequence[Kept], whole: int = SUITE) -> Iterator[str]:
    """Medians by core and compiler, a column for each level; a line below says how many runs there were.

    ``whole`` is the number of programs of which a cell does not say that there are so many.
    """
    builds = sorted({row.build for row in rows}, key=lambda build: build.place)
    levels = [level for level in LEVELS if any(build.level == level for build in builds)]
    yield f"| core | compiler | {' | '.join(f'-O{level}' for level in levels)} |"
    yield f"|---|---|{'--:|' * len(levels)}"
    for key in dict.fromkeys((build.core, build.known, build.compiler) for build in builds):
        core, known, compiler = key
        cells = (
            summary([row for row in rows if row.build == Build(core, compiler, at, known)], whole) for at in levels
        )
        yield f"| {core} | {_label(compiler)}{f', {known} known' if known else ''} | {' | '.join(cells)} |"
    observed = [row for row in rows if row.ratio is not None]
    above = sum(row.verdict == "UNSOUND" for row in rows)
    yield f"\n{len(observed):,} bounds were held against a run; {above} of the runs were above."


def summary(rows: Sequence[Kept], whole: int = SUITE) -> str:
    """A cell of the matrix: how many are bounded, and the medians in instructions and in cycles of those that ran."""
    if not rows:
        return ""
    bounded = [row for row in rows if row.verdict in BOUNDED]
    ratios = [row.ratio for row in bounded if row.ratio is not None]
    cycles = [row.cycles_ratio for row in bounded if row.cycles_ratio is not None]
    middles = " / ".join(f"{median(one):.2f}" if one else "-" for one in (ratios, cycles))
    of = "" if len(rows) == whole else f" of {len(rows)}"
    return f"{len(bounded)}{of}: {middles}"


def table_of(core: str, rows: Sequence[Kept], above: float = 0.0) -> Iterator[str]:
    """Programs of ``core`` and a column for each build: bound by run in instructions, and in cycles behind a slash."""
    of_core = [row for row in rows if row.build.core == core]
    builds = sorted({row.build for row in of_core}, key=lambda build: build.place)
    known = {(row.build, row.program): row for row in of_core}
    yield f"| program | {' | '.join(_column(build) for build in builds)} |"
    yield f"|---|{'--:|' * len(builds)}"
    for name in programs(rows):
        of_program = [known.get((build, name)) for build in builds]
        if any(of_program) and (not above or any(row and (row.ratio or 0) > above for row in of_program)):
            yield f"| {name} | {' | '.join(cell(row) for row in of_program)} |"


def cell(row: Kept | None) -> str:
    """What a table says of one program: two ratios, or a letter for why there is none."""
    if row is None:
        return ""
    if row.verdict not in BOUNDED:
        return {"UNBOUNDED": "f", "DID NOT END": "t", "BOUNDED_BY_TYPE": "w"}.get(row.verdict, "!")
    if row.ratio is None:
        return "b"
    cycles = "-" if row.cycles_ratio is None else _short(row.cycles_ratio)
    return f"{_short(row.ratio)} / {cycles}{' a' if row.assumed else ''}{' !' if row.verdict == 'UNSOUND' else ''}"


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"


def _label(compiler: str) -> str:
    return "packaged Clang" if compiler == PACKAGED else "GCC"


def _column(build: Build) -> str:
    short = "Clang" if build.compiler == PACKAGED else "GCC"
    return f"{short} -O{build.level}{', memory known' if build.known else ''}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WcetProbeError as error:
        sys.exit(f"error: {error}")
