"""tools/check_docs.py finds what is false in documents, and nothing else."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("check_docs", ROOT / "tools" / "check_docs.py")
docs = importlib.util.module_from_spec(SPEC)
sys.modules["check_docs"] = docs
SPEC.loader.exec_module(docs)

RESULTS = {
    "wcet-probe --help": docs.Result(0, "Options:\n  --heap SIZE\n\nCommands:\n  show  Show.\n", ""),
    "wcet-probe show --help": docs.Result(0, "Options:\n  --json\n", ""),
    "wcet-probe tlsf --help": docs.Result(0, "Options:\n  --seed N\n", ""),
    "wcet-probe ok": docs.Result(0, "first\nsecond 17\n", "a note\n"),
    "make -C examples/one": docs.Result(0, "", ""),
    "wcet-probe bad": docs.Result(2, "", "wcet-probe: no allocator is called bad\n"),
}


@pytest.fixture
def problems(tmp_path):
    (tmp_path / "Makefile").write_text("demo: x ## measure\n")
    (tmp_path / "allocators/tlsf").mkdir(parents=True)
    (tmp_path / "allocators/tlsf/manifest.toml").touch()
    (tmp_path / "allocators/tlsf.c").touch()

    def check(text):
        (tmp_path / "README.md").write_text(text)
        docs._files.cache_clear()
        found = docs.check(tmp_path, lambda: RESULTS.__getitem__, RESULTS.__getitem__)
        return [(problem.line, problem.text) for problem in found]

    return check


def block(kind, text):
    return f"```{kind}\n{text}\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        "[a](allocators/tlsf.c) [b](https://example.org/x) [c](#the-title-of-it)\n# The title, of it\n",
        "`allocators/tlsf.c` `allocators/` `allocators/*.c` `tlsf.c` `malloc/free` `RESULT.json` `.venv/bin/x.py`\n",
        "<!-- docs-check: ignore mine.toml -->\n`mine.toml`\n",
        "`make demo` and `make demo PYTHON=python3.13`\n",
        "`--heap 4096`, `--seed`, `wcet-probe show --json`, `pip install --require-hashes`\n",
        block("sh", "wcet-probe ok  # a remark\nmake demo").replace("  # a remark", ""),
        block("sh", "wcet-probe bad  # exit 2"),
        block("sh no-run", "wcet-probe bad"),
        block("console", "$ wcet-probe ok\nfirst\nsecond 17"),
        block("console", "$ wcet-probe ok\nfirst\nsecond …"),
        block("console", "$ wcet-probe ok\n…\nsecond 17\n$ wcet-probe ok"),
        block("console", "$ wcet-probe bad  # exit 2\nwcet-probe: no allocator is called …"),
        block("text", "wcet-probe bad\n`nowhere/x.py`"),
        "1. A step:\n\n   ```console\n   $ wcet-probe ok\n   first\n   second 17\n   ```\n",
        block("sh", "make -C examples/one"),
    ],
)
def test_what_is_true_passes(problems, text):
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("\n[a](allocators/half-fit.c)\n", 2, "link to allocators/half-fit.c"),
        ("[a](README.md#elsewhere)\n# Here\n", 1, "no such heading"),
        ("`allocators/half-fit.c`\n", 1, "path allocators/half-fit.c"),
        ("`alocators/`\n", 1, "path alocators/"),
        ("`half-fit.c`\n", 1, "path half-fit.c"),
        ("`allocators/*.py`\n", 1, "path allocators/*.py"),
        ("`make coffee`\n", 1, "make coffee"),
        (block("sh", "\nmake coffee"), 3, "make coffee"),
        ("`--heep`\n", 1, "option --heep"),
        ("`wcet-probe show --heep 1`\n", 1, "option --heep"),
        (block("sh", "wcet-probe bad"), 2, "exit status 2, not 0 (wcet-probe: no allocator is called bad)"),
        (block("sh", "wcet-probe ok  # exit 2"), 2, "exit status 0, not 2"),
        (block("console", "$ wcet-probe ok\nfirst"), 2, "prints something else"),
        (block("console", "$ wcet-probe ok\nfirst\nsecond 18"), 2, "prints something else"),
        (block("console", "$ wcet-probe \\\n  ok\nsecond 17"), 2, "prints something else"),
    ],
)
def test_what_is_false_is_found(problems, text, line, part):
    ((where, what),) = problems(text)
    assert where == line
    assert part in what


def test_the_runner_keeps_what_is_written_out_of_the_repository(tmp_path):
    root, folder = tmp_path / "root", tmp_path / "folder"
    root.mkdir()
    folder.mkdir()
    (root / "data").write_text("given")
    result = docs.runner(root, folder, {})("cat data; echo written > out; echo note >&2; exit 4")
    assert (result.status, result.stdout, result.stderr) == (4, "given", "note\n")
    assert [entry.name for entry in root.iterdir()] == ["data"]
    (own,) = folder.iterdir()
    assert (own / "out").exists()


def test_as_a_program_it_lists_problems_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(docs, "check", lambda *_: [docs.Problem("README.md", 3, "path x.py, which does not exist")])
    monkeypatch.setattr(docs, "runner", lambda *_: None)
    assert docs.main() == 1
    assert capsys.readouterr().out == "README.md:3: path x.py, which does not exist\n"


def test_a_page_of_help_is_that_of_the_command():
    page = docs.page_of_help("wcet-probe show --help")
    assert (page.status, page.stderr) == (0, "")
    assert docs.known_options(docs.page_of_help, "wcet-probe show") >= {"--json", "--help"}
    assert docs.page_of_help("wcet-probe tslf --help").status == 2


def test_a_command_that_is_whole_in_itself_is_run_once_for_all_documents(tmp_path):
    told = {"wcet-probe tlsf --json": docs.Result(0, "{}", "")}
    run = docs.runner(ROOT, tmp_path, told)
    assert run("wcet-probe tlsf --json >tlsf.json") == docs.Result(0, "", "")
    assert [file.read_text() for file in tmp_path.glob("*/tlsf.json")] == ["{}"]
    listed = run("wcet-probe list targets")
    assert listed.status == 0
    assert told["wcet-probe list targets"] == listed
    told["wcet-probe list targets"] = kept = docs.Result(0, "kept", "")
    assert docs.runner(ROOT, tmp_path, told)("wcet-probe list targets") == kept


@pytest.mark.parametrize(
    "text",
    [
        "wcet-probe verify tlsf.json",
        "wcet-probe report tlsf -o dossier",
        "wcet-probe new-allocator examples/own-allocator",
        "wcet-probe tlsf --json >>tlsf.json",
        "wcet-probe tlsf; wcet-probe half-fit",
        "make -C examples/firmware",
    ],
)
def test_a_command_that_reads_or_writes_files_is_not_whole_in_itself(text):
    assert not docs.WHOLE.fullmatch(text)
