"""The tables of bounds: rows that are kept and found again, what is printed of them, and what is counted as missing."""

from __future__ import annotations

from dataclasses import replace
from shutil import copytree

import pytest

from bench import bound_rows
from bench.bound_rows import Cell, compute, program_digest, store, stored
from bench.bounds import HEAPS_BYTES, TARGETS, cells, compute_missing, goal_of, measure_witnesses, print_tables, summary
from wcet_probe.catalog.lookup import allocator_names
from wcet_probe.errors import ContradictionError

CELL = Cell("half-fit", "cortex-m4", 5000)
KEPT = bound_rows.KEPT


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.setattr(bound_rows, "STORE", tmp_path / "bounds")
    monkeypatch.setattr(bound_rows, "KEPT", tmp_path / "bounds.csv")


def test_a_row_is_kept_and_found_again(monkeypatch):
    assert stored(CELL) == []
    assert compute_missing([CELL]) == 0
    rows = stored(CELL)
    assert [row.operation for row in rows] == ["malloc", "free"]
    assert all(row.bounds["instructions"] == row.witnesses["instructions"] for row in rows)
    monkeypatch.setattr("bench.bounds.compute", lambda _: pytest.fail("what is kept is computed again"))
    assert compute_missing([CELL]) == 0


def test_each_bound_of_a_cell_is_proved_once(monkeypatch):
    proved, asked = bound_rows.prove_operation, []
    monkeypatch.setattr(bound_rows, "prove_operation", lambda *given: asked.append(given[1]) or proved(*given))
    assert len(list(compute(CELL))) == 2
    assert sorted(asked) == ["free", "malloc"]


def test_a_row_of_another_program_is_told_and_computed_again(capsys):
    rows = list(compute(CELL))
    store(CELL, [replace(row, program="older") for row in rows])
    print_tables(["half-fit"], ["cortex-m4"], [5000])
    assert "2 rows are of an older version of the program" in capsys.readouterr().out
    assert compute_missing([CELL]) == 0
    assert {row.program for row in stored(CELL)} == {program_digest()}


def test_rows_that_were_not_computed_are_absent_and_counted(capsys):
    store(CELL, compute(CELL))
    print_tables(["half-fit", "tlsf"], ["cortex-m4"], [5000])
    text = capsys.readouterr().out
    assert "5,000 bytes, in cycles: 2 rows, 2 not computed" in text
    assert "| half-fit | cortex-m4 | malloc |" in text
    assert "| tlsf |" not in text


def test_witnesses_of_kept_rows_are_measured_without_a_proof(monkeypatch):
    rows = [replace(row, program="older") for row in compute(CELL)]
    bound_rows.keep(replace(row, witnesses={"instructions": 1, "cycles": 1}) for row in rows)
    monkeypatch.setattr(bound_rows, "prove_operation", lambda *_: pytest.fail("a bound is proved"))
    assert measure_witnesses([CELL, Cell("tlsf", "cortex-m4", 5000)]) == 0
    assert stored(CELL) == [replace(row, program=program_digest(), bounds_program="older") for row in rows]


def test_a_witness_above_the_kept_bound_contradicts(capsys):
    bound_rows.keep(replace(row, bounds={"instructions": 5, "cycles": 5}) for row in compute(CELL))
    assert measure_witnesses([CELL]) == ContradictionError.exit_code
    assert "CONTRADICTED: half-fit took" in capsys.readouterr().err
    assert stored(CELL) == []


def test_what_is_kept_is_printed_where_nothing_is_stored(capsys):
    cell = Cell("tlsf", "mpc603e", 5000)
    for one in (cell, replace(cell, loop_facts_only=True)):
        bound_rows.keep(compute(one))
    print_tables(["tlsf"], ["mpc603e"], [5000])
    text = capsys.readouterr().out
    assert "5,000 bytes, in cycles: 2 rows, 0 not computed" in text
    medians = next(line for line in text.partition(" in cycles:")[2].splitlines() if line.startswith("| constant time"))
    with_all, with_loops = (float(medians.split("|")[number]) for number in (5, 8))
    assert 1.0 <= with_all < with_loops


def test_the_page_has_the_medians_of_the_rows_that_are_kept_whole(monkeypatch):
    monkeypatch.setattr(bound_rows, "KEPT", KEPT)
    page = (bound_rows.ROOT / "docs" / "explanation" / "bounds.md").read_text("utf-8")
    kept = bound_rows.kept_rows(of_any_files=True)
    for heap, title in zip(HEAPS_BYTES, ("5,000 bytes", "64 KiB", "1 MiB", "4 MiB"), strict=True):
        of_heap = [Cell(name, target, heap) for name in sorted(allocator_names()) for target in TARGETS]
        rows = [row for cell in of_heap for row in kept.get(cell, ())]
        assert len(rows) == 2 * len(of_heap)
        section = page.partition(f"\n{title}: 280 of 280 rows")[2].partition(" of 280 rows")[0]
        loops_only = {(row.cell, row.operation): row for found in kept.values() for row in found}
        for unit in ("instructions", "cycles"):
            for line in list(summary(rows, loops_only, unit))[2:]:
                assert f"\n{line}" in section, line


def test_a_kept_bound_of_another_allocator_or_target_is_none(monkeypatch):
    bound_rows.keep(compute(CELL))
    assert list(bound_rows.kept_rows()) == [CELL]
    monkeypatch.setattr(bound_rows, "proved_of", lambda _: "other facts")
    assert bound_rows.kept_rows() == {}


def test_what_is_kept_of_other_files_stays_what_it_is(monkeypatch):
    """Rows of a target whose table had changed were lost when others were kept."""
    other = Cell("tlsf", "cortex-m4", 5000)
    with monkeypatch.context() as patched:
        patched.setattr(bound_rows, "proved_of", lambda _: "other facts")
        bound_rows.keep(compute(other))
    bound_rows.keep(compute(CELL))
    assert list(bound_rows.kept_rows()) == [CELL]
    assert set(bound_rows.kept_rows(of_any_files=True)) == {CELL, other}
    assert bound_rows.KEPT.read_text("utf-8").count("other facts") == 2


def test_a_kept_bound_of_another_shared_header_is_none(monkeypatch, tmp_path):
    for folder in ("allocators", "targets"):
        copytree(bound_rows.ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(bound_rows, "ROOT", tmp_path)
    cells = {name: Cell(name, "cortex-m4", 5000) for name in ("first-fit", "budgeted:first-fit", "kingsley")}
    before = {name: bound_rows.proved_of(cell) for name, cell in cells.items()}
    with (tmp_path / "allocators" / "common" / "list_fit.h").open("a") as file:
        file.write("/* other code */")
    after = {name: bound_rows.proved_of(cell) for name, cell in cells.items()}
    assert [name for name in cells if after[name] == before[name]] == ["kingsley"]


def test_where_a_targets_numbers_are_from_changes_no_row_and_a_number_does(monkeypatch, tmp_path):
    monkeypatch.setattr(bound_rows, "ROOT", tmp_path)
    path = tmp_path / "targets" / "core.toml"
    path.parent.mkdir()
    digests = []
    for text in ('cycles = 1\nbasis = "manual"\n', '# read\ncycles = 1\nbasis = "assumed"\n', "cycles = 2\n"):
        path.write_text(f"[timing.alu]\n{text}", "utf-8")
        digests.append(bound_rows._digest([path]))
    assert digests[0] == digests[1] != digests[2]


def test_with_loop_facts_only_a_bound_is_no_smaller():
    cell = Cell("tlsf", "mpc603e", 5000)
    for all_facts, loops in zip(compute(cell), compute(replace(cell, loop_facts_only=True)), strict=True):
        assert loops.bounds["cycles"] >= all_facts.bounds["cycles"]
        assert not loops.witnesses


def test_a_contradiction_keeps_no_row_and_ends_with_its_exit_code(monkeypatch, capsys):
    def contradicted(_):
        raise ContradictionError("a run exceeds the bound; report this.")

    monkeypatch.setattr("bench.bounds.compute", contradicted)
    assert compute_missing([CELL]) == 5
    assert stored(CELL) == []
    assert "exceeds the bound" in capsys.readouterr().err


def test_worst_row_and_those_above_the_goal_are_told():
    row = next(compute(CELL))
    worse = replace(row, bounds={unit: 3 * bound for unit, bound in row.bounds.items()})
    *_, line = summary([row, worse], {}, "cycles")
    assert line == "| constant time | without caches | 1.15 | 2 | 2.000 | 3.000 half-fit malloc, cortex-m4 | 1 | - |"
    assert goal_of(replace(row, cell=replace(CELL, target="arm926ej-s")), "cycles") == 1.5


def test_every_cell_is_computed_with_all_facts_and_with_loop_facts_only():
    found = list(cells(allocator_names(), TARGETS, HEAPS_BYTES))
    assert len(found) == len(set(found)) == 2 * len(allocator_names()) * len(TARGETS) * len(HEAPS_BYTES)
