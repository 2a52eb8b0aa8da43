"""What the import contracts cannot express."""

import ast
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "wcet_probe" / "model"
CHECKER = ROOT / "wcet_probe" / "certificate"
FOLDERS = ("wcet_probe", "analyzer", "emu", "reports", "scenarios")


@cache
def imports(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The imports of the file, wherever in it."""
    found, left = [], [ast.parse(path.read_text(encoding="utf-8"))]
    while left:  # statements alone: to look into expressions as well takes three times as long
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            left.extend(getattr(node, part, ()))
    return tuple(sorted(found, key=lambda one: one.lineno))


def imported(path: Path) -> Iterator[str]:
    """The top-level names of the modules that the file imports, wherever in it."""
    for node in imports(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        else:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield str(node.module).split(".")[0]


def named_by_imports(path: Path) -> Iterator[str]:
    """The modules that the file names to import them or of them, whatever it names of a package that is a module."""
    for node in imports(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module == "wcet_probe":
            yield from (f"wcet_probe.{alias.name}" for alias in node.names)
        else:
            yield str(node.module)


def importers(module: str) -> set[str]:
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(ROOT)) for path in files if module in imported(path)}


def test_pytest_goes_into_every_folder_of_tests(pytestconfig):
    """Of itself it leaves out each that is called build."""
    folders = {part for file in (ROOT / "tests").rglob("test_*.py") for part in file.relative_to(ROOT).parent.parts}
    patterns = pytestconfig.getini("norecursedirs")
    assert not [folder for folder in folders for pattern in patterns if fnmatch(folder, pattern)]


READERS = ("build_attributes", "compilers", "debug_types", "image")
"""What reads ELF files."""


@pytest.mark.parametrize(
    ("module", "files"),
    [
        ("capstone", "wcet_probe/isa/decode.py"),
        ("elftools", " ".join(f"wcet_probe/build/{one}.py" for one in READERS)),
        ("highspy", "analyzer/ipet/solver.py"),
        ("platformdirs", "wcet_probe/config.py"),
        ("pypcode", "analyzer/pcode/lift.py"),
        ("tree_sitter", "analyzer/facts/source_syntax.py"),
        ("tree_sitter_c", "analyzer/facts/source_syntax.py"),
        ("unicorn", "emu/engine.py"),
    ],
)
def test_an_engine_is_imported_where_it_is_wrapped_only(module, files):
    assert importers(module) == set(files.split())


@pytest.mark.parametrize("name", ["errors.py", *sorted(f"model/{path.name}" for path in MODEL.glob("*.py"))])
def test_the_ground_floor_uses_the_standard_library_only(name):
    foreign = set(imported(MODEL.parent / name)) - sys.stdlib_module_names - {"wcet_probe"}
    assert not foreign


@pytest.mark.parametrize("path", sorted(CHECKER.rglob("*.py")), ids=lambda path: "/".join(path.parts[-2:]))
def test_the_checker_of_certificates_stands_alone(path):
    """What it checks, it must not lean on: only nouns and errors; what it trusts besides, it is given."""
    rooms = [name.split(".")[1:2] for name in named_by_imports(path) if name.split(".")[0] == "wcet_probe"]
    assert all(room and room[0] in {"certificate", "errors", "model"} for room in rooms)
    assert not {"importlib", "imp", "pkgutil", "runpy"} & set(imported(path))
    assert not set(imported(path)) - sys.stdlib_module_names - {"wcet_probe"}
    assert path.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: 0BSD\n")


def test_imports_are_found_wherever_they_stand(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import a.b\nfrom c.d import e\ndef f():\n    if f:\n        import g\n")
    assert list(imported(path)) == ["a", "c", "g"]
    other = tmp_path / "other.py"
    other.write_text("import wcet_probe.emu\nfrom wcet_probe import reports\nfrom wcet_probe.a.b import c\n")
    assert list(named_by_imports(other)) == ["wcet_probe.emu", "wcet_probe.reports", "wcet_probe.a.b"]


def test_every_import_is_found_in_the_tree_itself():
    """Through the links in wcet_probe/, as an editor or a type checker looks for it."""
    missing = []
    for path in (path for folder in (*FOLDERS, "tests", "bench", "tools") for path in (ROOT / folder).rglob("*.py")):
        for node in imports(path):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module and module.split(".")[0] in {"wcet_probe", "tests"} and not node.level:
                place = ROOT.joinpath(*module.split("."))
                if not (place.with_suffix(".py").is_file() or place.is_dir()):
                    missing.append(f"{path}: {module}")
    assert not missing


def test_every_room_says_what_it_is_for():
    for folder in ("analyzer", "emu", "reports", "scenarios", "wcet_probe"):
        for path in (ROOT / folder).rglob("__init__.py"):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            assert len(said) > 20, path
            assert "TODO" not in said, path


ANALYZER = ROOT / "analyzer"
STAGES = sorted(str(path.parent.relative_to(ANALYZER)) for path in ANALYZER.glob("*/**/__init__.py"))


@pytest.mark.parametrize("stage", ["", *STAGES])
def test_every_module_of_the_analyzer_has_its_test_file(stage):
    """Of its own name, where the tests mirror the modules."""
    folder, tests = ROOT / "analyzer" / stage, ROOT / "tests" / "analyzer" / stage
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules
    assert not {name for name in modules if not (tests / f"test_{name}.py").is_file()}
    assert (tests / "__init__.py").is_file()


@pytest.mark.parametrize("stage", STAGES)
def test_the_architecture_page_lists_each_module_of_a_stage(stage):
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| `analyzer/{stage}/` \|.*\|(.*)\|$", page, re.MULTILINE)
    modules = {path.stem for path in (ROOT / "analyzer" / stage).glob("*.py")} - {"__init__"}
    assert set(re.findall("`([a-z_0-9]+)`", row)) == modules


def test_the_architecture_page_lists_each_module_of_the_checker_in_its_room():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    table = page.partition("## How the checker is read")[2].partition("\n## ")[0].partition("|---|")[2]
    rows = re.findall(r"^\| (?:`wcet_probe/certificate/([a-z]+)/` )?\|.*\|(.*)\|$", table, re.MULTILINE)
    listed = {(room, name) for room, names in rows for name in re.findall("`([a-z_0-9]+)`", names)}
    paths = (path.relative_to(CHECKER) for path in CHECKER.rglob("[a-z]*.py"))
    assert listed == {(path.parent.name, path.stem) for path in paths}


BOLD = re.compile(r"\*\*([^*]+)\*\*")
GLOSSARY = ROOT / "docs" / "explanation" / "glossary.md"
SOURCE = re.compile(r"[Oo]wn term|\b(19|20)\d\d\b|as above|Manual, section|Manual\.$|version 5")


def entries() -> list[str]:
    """Of the glossary, each on one line."""
    found = re.findall(r"^\* (.*(?:\n  .*)*)", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return [" ".join(entry.split()) for entry in found]


@pytest.mark.parametrize("stage", ["", *STAGES])
def test_each_module_of_the_analyzer_names_its_words_in_the_glossary(stage):
    known = {word.casefold() for entry in entries() for word in BOLD.findall(entry)}
    for path in (ROOT / "analyzer" / stage).glob("[a-z]*.py"):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found = re.search(r"^Words: (.+) \(docs/explanation/glossary\.md\)\.$", said, re.MULTILINE)
        assert found, path
        words = {word.casefold() for word in found[1].split(", ")}
        assert words <= known, (path, words - known)


def test_each_entry_of_the_glossary_has_its_source_or_says_that_the_word_is_our_own():
    assert len(entries()) > 50
    assert not [entry for entry in entries() if not BOLD.search(entry) or not SOURCE.search(entry)]


def test_no_word_of_the_glossary_has_two_entries():
    words = [word.casefold() for entry in entries() for word in BOLD.findall(entry)]
    assert sorted(words) == sorted(set(words))
