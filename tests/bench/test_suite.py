"""The command that makes the table of a suite: what it is given, and where the table goes."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench import programs, suite, suite_rows
from bench.programs import Question, Row, ask, table
from bench.suite_rows import Build, Kept, keep, read
from tests.support import assembler, image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError


def test_a_folder_without_programs_is_refused(tmp_path):
    with pytest.raises(UsageError, match="name a checkout of TACLeBench"):
        suite.main([str(tmp_path)])


def test_a_folder_without_elf_files_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UsageError, match="name a folder with files that end in"):
            programs.main([str(folder), "--check"])


def test_the_table_goes_where_the_page_has_a_place_for_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "bench" / "kernel" / "fac").mkdir(parents=True)
    page, rows = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("before\n<!-- table: cortex-m4 zig O2 -->\nold\n<!-- end -->\nbehind\n")
    rows.write_text(json.dumps({"name": "fac", "verdict": "BOUNDED", "bound": 30, "observed": 20}) + "\n")
    monkeypatch.setattr(suite, "routines", lambda *_: ())
    asked = [str(tmp_path), "--build", str(tmp_path / "build"), "--json", str(rows), "--page", str(page)]
    assert suite.main(asked) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nbehind\n")
    assert "old" not in text
    assert "| fac | BOUNDED | 30 | 20 | 1.500 |" in text
    assert text.count(capsys.readouterr().out.strip()) == 1
    with pytest.raises(UsageError, match="cortex-m4 zig Os"):
        suite.main([*asked, "--level", "s"])


def test_a_bound_by_a_type_is_told_without_a_ratio():
    lines = list(
        table([Row("near", "BOUNDED", 12, 10, 30, 20), Row("wide", "BOUNDED_BY_TYPE", 1 << 60, 10, 1 << 61, 20)])
    )
    assert lines[2:] == [
        "| near | BOUNDED | 12 | 10 | 1.200 | 1.500 | 0.0 | 0 |",
        f"| wide | BOUNDED_BY_TYPE | {1 << 60:,} | 10 |  |  | 0.0 | 0 |",
        "\n1 of 2 bounded, median ratio 1.200; 0 above their bounds.",
    ]


def test_a_program_that_the_compiler_refuses_is_told(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "bench" / "test" / "broken"
    folder.mkdir(parents=True)
    (folder / "broken.c").write_text("int broken_main(void) { return }\n")
    monkeypatch.setattr(suite, "routines", lambda *_: ())
    assert suite.main([str(tmp_path), "--build", str(tmp_path / "build")]) == 0
    assert "NOT COMPILED" in capsys.readouterr().out


def kept_row(program, cpu_seconds, level):
    return Kept(Build("cortex-m4", "zig", level), program, "BOUNDED", "", 3, 2, 1.5, cpu_seconds, 80, "2026-11-29")


def test_what_has_no_row_is_asked_the_cheapest_first_and_kept_as_it_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(suite_rows, "KEPT", tmp_path / "rows.csv")
    for name in ("dear", "cheap", "had", "dearer"):
        (tmp_path / "bench" / "app" / name).mkdir(parents=True)
    monkeypatch.setattr(suite, "routines", lambda *_: ())
    monkeypatch.setattr(suite, "_compile", lambda folder, _: folder / f"{folder.name}.elf")
    keep([kept_row("dearer", 50.0, "1"), kept_row("dear", 9.0, "1"), kept_row("cheap", 1.0, "1")])
    keep([kept_row("had", 1.0, "2")])
    asked = []

    def ask(question):
        asked.append((question.elf.stem, [one.program for one in read() if one.build.level == "2"]))
        return Row(question.elf.stem, "BOUNDED", 3, 2, 3, 2)

    monkeypatch.setattr(suite, "ask", ask)
    given = [str(tmp_path), "--build", str(tmp_path / "build"), "--keep", "2026-11-29", "--missing"]
    assert suite.main(given) == 0
    assert [name for name, _ in asked] == ["cheap", "dear", "dearer"]
    assert [len(kept) for _, kept in asked] == [1, 2, 3]
    assert suite.main(given) == 0
    assert len(asked) == 3


def test_processes_that_keep_rows_wait_for_each_other(tmp_path):
    file = tmp_path / "rows.csv"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: keep([kept_row(f"p{number}", 1.0, "2")], file), range(24)))
    assert len(read(file)) == 24


def test_a_run_above_its_bound_decides_the_exit_code(tmp_path, monkeypatch):
    (tmp_path / "bench" / "app" / "lift").mkdir(parents=True)
    monkeypatch.setattr(suite, "routines", lambda *_: ())
    monkeypatch.setattr(suite, "_compile", lambda folder, _: folder / "lift.elf")
    monkeypatch.setattr(suite, "ask", lambda question: Row(question.elf.stem, "UNSOUND", 1, 2))
    assert suite.main([str(tmp_path), "--build", str(tmp_path / "build")]) == 1


def test_a_run_is_observed_whose_input_takes_a_million_instructions_to_make(tmp_path):
    source = """\
int volatile total;
void sum_init(void) { for (int i = 0; i < 400000; i++) total += i; }
int sum_main(void) { return total; }
"""
    elf = tmp_path / "sum.elf"
    elf.write_bytes(image_of(source, load_target("cortex-m4"), ".c").elf)
    # What the tests' process, of which the program's is a copy, took at most is counted as memory.
    row = ask(Question(elf, "sum_main", "sum_init", "cortex-m4", (), 60, 1 << 14))
    assert (row.verdict, row.observed, row.why) == ("BOUNDED", row.bound, "")


@pytest.mark.parametrize(
    ("asked", "told"), [((), ("UNBOUNDED", "")), (("saved-registers",), ("BOUNDED", "saved-registers"))]
)
def test_a_row_tells_what_was_assumed_for_its_bound(tmp_path, asked, told):
    leave = "mov sp, r7\n pop {r7, pc}"
    bodies = {
        "f": f"push {{r7, lr}}\n sub sp, #8\n add r7, sp, #0\n bl g\n adds r7, #8\n {leave}",
        "g": "push {r7, lr}\n sub sp, #16\n add r7, sp, #0\n adds r2, r7, r0\n strb r3, [r2]\n"
        f"adds r7, #16\n {leave}",
    }
    target, elf = load_target("cortex-m4"), tmp_path / "f.elf"
    elf.write_bytes(image_of(assembler(bodies, target), target).elf)
    row = ask(Question(elf, "f", "f_init", "cortex-m4", (), 60, 1 << 14, assume=asked))
    assert (row.verdict, row.assumed) == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("movs r0, #7\n 1: subs r0, #1\n bne 1b\n bx lr", "in full"),
        ("1: sdiv r0, r0, r1\n cmp r0, #0\n bne 1b\n bx lr", ""),  # no bound, and nothing to check
    ],
)
def test_a_row_tells_what_the_checker_finds(tmp_path, body, told):
    target, elf = load_target("cortex-m4"), tmp_path / "f.elf"
    elf.write_bytes(image_of(assembler({"f": body}, target), target).elf)
    row = ask(Question(elf, "f", "f_init", "cortex-m4", (), 60, 1 << 14, check=True))
    assert row.checked == told
    assert ("1 of 1 bounds are checked in full." in list(table([row]))) == bool(told)
