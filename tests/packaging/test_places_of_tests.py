"""Where a test file stands says what it tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
# Not of modules: whole answers; the repository and what is made of it; the tests themselves, by mutants.
OTHERS = ("end_to_end", "packaging", "mutation")
SAID = re.compile(r"^Tests: ([a-z0-9_., \n]+)\.$", re.MULTILINE)


def module(name: str) -> Path | None:
    """The file of a module, by its dotted name without that of the package; None if there is none."""
    path = Path(*name.split(".")).with_suffix(".py")
    places = (ROOT / "wcet_probe" / path, ROOT / path, TESTS / path)
    return next((place for place in places if place.is_file()), None)


def misplaced(file: Path, text: str) -> Iterator[str]:
    """What is wrong with the place of a test file, by its path in ``tests/``."""
    room, name = file.parent.parts, file.stem.removeprefix("test_")
    if (room and room[0] in OTHERS) or module(".".join((*room, name))):
        return
    allocators = [path.name.replace("-", "_") for path in (ROOT / "allocators").iterdir()]
    # Of one, of a family, or of one in a respect.
    if room == ("allocators",) and any(one.startswith(name) or name.startswith(one) for one in allocators):
        return
    found = SAID.search(ast.get_docstring(ast.parse(text)) or "")
    if not found:
        yield f"{file} has the name of no module, and does not say which ones it tests"
        return
    names = found[1].replace("\n", " ").split(", ")
    yield from (f"{file} tests {one}, which is none" for one in names if not module(one))
    if tuple(names[0].split(".")[:-1]) != room:
        yield f"{file} does not stand where tests of {names[0]} do"


def test_each_test_file_has_the_name_of_a_module_or_says_which_ones_it_tests():
    files = [path for path in TESTS.rglob("test_*.py") if "__pycache__" not in path.parts]
    assert len(files) > 400
    found = [one for file in files for one in misplaced(file.relative_to(TESTS), file.read_text("utf-8"))]
    assert not found


@pytest.mark.parametrize(
    ("name", "text", "is_misplaced"),
    [
        ("analyzer/values/states/test_joins.py", "", False),
        ("analyzer/values/states/test_bound.py", "", True),
        ("analyzer/values/states/test_x.py", '"""More.\n\nTests: analyzer.values.states.joins.\n"""', False),
        ("analyzer/values/states/test_x.py", '"""More.\n\nTests: analyzer.values.states.joins, emu.cache.\n"""', False),
        ("analyzer/values/states/test_x.py", '"""More.\n\nTests: emu.cache, analyzer.values.states.joins.\n"""', True),
        ("analyzer/values/states/test_x.py", '"""More.\n\nTests: analyzer.values.states.joined.\n"""', True),
        ("allocators/test_tlsf_more.py", "", False),
        ("allocators/test_djgpp.py", "", False),
        ("allocators/test_x.py", "", True),
        ("end_to_end/test_x.py", "", False),
        ("test_covering.py", "", False),
    ],
)
def test_a_place_is_judged(name, text, is_misplaced):
    assert bool(list(misplaced(Path(name), text))) == is_misplaced
