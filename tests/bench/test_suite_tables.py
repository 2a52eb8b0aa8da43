"""What is kept of TACLeBench: rows under version control, the matrix of their medians, tables by core.

Tests: bench.suite_rows, bench.suite_tables.
"""

import json
from pathlib import Path

import pytest

from bench import suite, suite_rows, suite_tables
from bench.programs import Row
from bench.suite_rows import Build, Kept, keep, kept_of, read
from bench.suite_tables import cell, common, matrix, summary, table_of
from wcet_probe.errors import UsageError

CLANG = Build("cortex-m4", "zig", "2")
GCC = Build("mpc603e", "powerpc-linux-gnu-gcc", "s")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "taclebench.md"


def row(program: str, bound: int | None, observed: int | None, build: Build = CLANG, verdict: str = "BOUNDED") -> Kept:
    cycles = bound / observed + 1 if bound and observed else None
    return Kept(build, program, verdict, "", bound, observed, cycles, 1.5, 80, "2026-11-29")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(suite_rows, "KEPT", tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


def test_rows_are_read_as_they_were_written(kept):
    rows = [row("lift", 30, 20), row("fac", None, None, verdict="UNBOUNDED"), row("md5", 8, 8, GCC)]
    keep(rows)
    assert read() == rows
    first = kept.read_bytes()
    keep(rows)
    assert kept.read_bytes() == first


def test_a_row_takes_the_place_of_that_of_the_same_program_and_build(kept):
    keep([row("lift", 30, 20), row("fac", 3, 2), row("lift", 9, 8, GCC)])
    keep([row("lift", 25, 20)])
    assert [(one.build, one.program, one.bound) for one in read(kept)] == [
        (CLANG, "lift", 25),
        (CLANG, "fac", 3),
        (GCC, "lift", 9),
    ]


def test_a_suite_is_kept_by_its_command(tmp_path, kept, monkeypatch):
    (tmp_path / "bench" / "kernel" / "fac").mkdir(parents=True)
    rows = tmp_path / "rows.json"
    told = {"name": "fac", "verdict": "BOUNDED", "bound": 30, "observed": 20, "bound_cycles": 50, "observed_cycles": 20}
    rows.write_text(json.dumps({**told, "assumed": "saved-registers"}) + "\n")
    monkeypatch.setattr(suite, "routines", lambda *_: ())
    asked = [str(tmp_path), "--build", str(tmp_path / "build"), "--json", str(rows), "--keep", "2026-11-29"]
    assert suite.main([*asked, "--level", "s", "--initial-data", "--stack-pointer"]) == 0
    (found,) = read(kept)
    assert found.build == Build("cortex-m4", "zig", "s", "memory and stack pointer")
    assert (found.ratio, found.cycles_ratio, found.assumed) == (1.5, 2.5, "saved-registers")


def test_a_bound_by_a_type_has_no_ratio():
    wide = kept_of(CLANG, Row("fac", "BOUNDED_BY_TYPE", 1 << 60, 10, 1 << 61, 20), "2026-11-29")
    assert (wide.ratio, wide.cycles_ratio, cell(wide)) == (None, None, "w")


def test_a_cell_of_the_matrix_has_medians_of_what_is_bounded_and_was_run():
    rows = [row("a", 10, 10), row("b", 30, 10), row("c", 20, 10), row("d", 90, None), row("e", 7, 1, GCC)]
    rows += [row("f", None, None, verdict="DID NOT END"), row("g", 1 << 60, 10, verdict="BOUNDED_BY_TYPE")]
    lines = list(matrix(rows))
    assert lines[0] == "| core | compiler | -O2 | -Os |"
    assert lines[2:4] == [
        "| cortex-m4 | packaged Clang | 4 of 6: 2.00 / 3.00 |  |",
        "| mpc603e | GCC |  | 1 of 1: 7.00 / 8.00 |",
    ]
    assert lines[4] == "\n4 bounds were held against a run; 0 of the runs were above."


def test_a_whole_suite_is_not_told_to_be_part_of_it():
    assert summary([row(str(number), 3, 2) for number in range(57)]) == "57: 1.50 / 2.50"


def test_builds_are_compared_by_the_programs_that_all_of_them_have():
    rows = [
        row("a", 10, 10),
        row("b", 30, 10),
        row("b", 20, 10, GCC),
        row("a", 9, 9, Build("cortex-m4", "zig", "2", "memory")),
    ]
    assert common(rows) == ([rows[1], rows[2]], 1)
    assert "| mpc603e | GCC |  | 1: 2.00 / 3.00 |" in list(matrix(*common(rows)))


@pytest.mark.usefixtures("kept")
def test_a_run_above_its_bound_is_told_everywhere(capsys):
    keep([row("lift", 10, 20, verdict="UNSOUND"), row("fac", 10, 5)])
    assert suite_tables.main([]) == 1
    assert "2 bounds were held against a run; 1 of the runs were above." in capsys.readouterr().out
    assert suite_tables.main(["cortex-m4"]) == 1
    assert "| lift | 0.50 / 1.50 ! |" in capsys.readouterr().out


def test_a_table_of_a_core_has_a_column_for_each_build_and_a_letter_where_there_is_no_ratio():
    known = Build("cortex-m4", "zig", "2", "memory")
    rows = [
        row("lift", 30, 20),
        row("fac", None, None, verdict="UNBOUNDED"),
        row("md5", None, None, verdict="DID NOT END"),
        row("epic", 5000, None),
        row("lift", 20, 20, known),
        row("lift", 9, 3, GCC),
    ]
    assert list(table_of("cortex-m4", rows)) == [
        "| program | Clang -O2 | Clang -O2, memory known |",
        "|---|--:|--:|",
        "| lift | 1.50 / 2.50 | 1.00 / 2.00 |",
        "| fac | f |  |",
        "| md5 | t |  |",
        "| epic | b |  |",
    ]
    assert list(table_of("cortex-m4", rows, above=1.2))[2:] == ["| lift | 1.50 / 2.50 | 1.00 / 2.00 |"]
    assert list(table_of("mpc603e", rows, above=3.5))[2:] == []


@pytest.mark.usefixtures("kept")
def test_a_core_of_which_nothing_is_kept_is_refused():
    keep([row("lift", 30, 20)])
    with pytest.raises(UsageError, match="no row of mpc603e is kept; those of cortex-m4 are"):
        suite_tables.main(["mpc603e"])


@pytest.mark.parametrize("core", ["matrix", "common", "cortex-m4", "cortex-m4f", "arm926ej-s", "mpc603e"])
def test_the_page_has_what_is_kept(core):
    rows = read()
    made = {"matrix": lambda: matrix(rows), "common": lambda: matrix(*common(rows))}
    text = "\n".join(made.get(core, lambda: table_of(core, rows))())
    assert f"<!-- table: taclebench {core} -->\n\n{text}\n\n<!-- end -->" in PAGE.read_text("utf-8")
