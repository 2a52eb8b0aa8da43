"""What of the checker a check executes: the lines that somebody must read to believe one certificate.

Run with ``python -m bench.reading [--heap SIZE] [--target NAME] [--rooms] [ALLOCATOR ...]`` on certificates that
``python -m bench.checks`` has kept, or with ``--result RESULT.json IMAGE.elf`` on those of own firmware. A function is
to be read if a line of it was executed, and whole; of a module with such a function so are its docstring, imports and
constants. What merely stands beside them in a module is not. ``--rooms`` has a row for each room of the checker.

What was executed is measured from outside, by `coverage`: nothing of the checker knows of it.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from coverage import Coverage

from bench.checks import OPERATIONS, ROOT, TARGETS, Question, checked, program_of, questions
from wcet_probe.catalog.lookup import allocator_names, target_names
from wcet_probe.evidence.checking import check_file_result
from wcet_probe.sizes import parse_size

CHECKER = ROOT / "wcet_probe" / "certificate"


@dataclass(frozen=True, slots=True)
class Read:
    """What a check executes of one module.

    Attributes:
        lines: of the module.
        to_read: of these, what is in functions that were executed, or in none.
        executed: of these, those that were executed.
    """

    lines: int
    to_read: int
    executed: int


@cache
def functions_of(path: Path) -> tuple[tuple[int, int], ...]:
    """The first and last lines of the outermost functions and methods of a module, with their decorators."""
    found = list[tuple[int, int]]()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                found.append((first, child.end_lineno or first))
            else:
                visit(child)

    visit(ast.parse(path.read_text("utf-8")))
    return tuple(found)


def measured(check: Callable[[], bool]) -> tuple[bool, Mapping[Path, Read]]:
    """What ``check`` returns, and what it executes of each module of the checker."""
    for module in [one for name, one in sys.modules.items() if name.startswith("wcet_probe.certificate")]:
        for remembered in vars(module).values():
            if hasattr(remembered, "cache_clear"):
                remembered.cache_clear()
    watch = Coverage(data_file=None, include=[f"{CHECKER}/*"])
    watch.start()
    try:
        is_full = check()
    finally:
        watch.stop()
    data, found = watch.get_data(), dict[Path, Read]()
    for path in sorted(CHECKER.rglob("*.py")):
        executed = set(data.lines(str(path)) or ())
        own = functions_of(path)
        ran = {span for span in own if any(span[0] < line <= span[1] for line in executed)}
        if ran:
            lines = path.read_text("utf-8").count("\n")
            left = sum(last - first + 1 for first, last in own if (first, last) not in ran)
            found[path] = Read(lines, lines - left, len(executed))
    return is_full, found


def of_question(question: Question) -> tuple[bool, Mapping[Path, Read]] | None:
    """What the check of a kept certificate executes; None where none is kept."""
    document = json.loads(question.file.read_text("utf-8"))["document"] if question.file.is_file() else None
    if not document:
        return None
    program = program_of(question)
    return measured(lambda: checked(question, document, program).is_full)


def of_result(result: Path, image: Path, sources: Sequence[Path]) -> tuple[bool, Mapping[Path, Read]]:
    """What the check of a result against its image executes."""
    data, elf = result.read_bytes(), image.read_bytes()
    return measured(lambda: check_file_result(json.loads(data), data, elf, source_dirs=sources)[0].is_full)


def room(path: Path) -> str:
    """The room that a module stands in."""
    return path.parent.name if path.parent != CHECKER else "door"


def rows(name: str, is_full: bool, found: Mapping[Path, Read], *, with_rooms: bool) -> Iterator[str]:  # noqa: FBT001
    """The rows of one check."""
    groups = {"": [*found]} | ({one: [p for p in found if room(p) == one] for one in map(room, found)} if with_rooms else {})
    for label, paths in groups.items():
        numbers = [sum(getattr(found[path], key) for path in paths) for key in ("lines", "to_read", "executed")]
        start = f"{name:44}{'full' if is_full else 'open':6}" if not label else f"{'':4}{label:46}"
        yield f"{start}{len(paths):4}" + "".join(f"{number:8,}" for number in numbers)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    parser.add_argument("allocators", nargs="*", metavar="ALLOCATOR")
    parser.add_argument("--heap", default="5000", metavar="SIZE")
    parser.add_argument("--target", action="append", choices=[*target_names()])
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    parser.add_argument("--result", nargs=2, action="append", default=[], metavar=("JSON", "ELF"), type=Path)
    parser.add_argument("--source", action="append", default=[], metavar="DIR", type=Path, help="of own firmware")
    parser.add_argument("--rooms", action="store_true", help="a row for each room")
    asked = parser.parse_args()
    names: Sequence[str] = asked.allocators
    if not (names or asked.result):
        names = [name for name in allocator_names() if ":" not in name]
    print(f"{'check':50}{'modules':>7}{'lines':>5}{'to read':>9}{'ran':>7}")
    for question in questions(names, asked.target or TARGETS, parse_size(asked.heap)) if names else ():
        found = of_question(question) if question.operation in (asked.operation or OPERATIONS) else None
        if found is not None:
            name = f"{question.operation} of {question.allocator}, {question.target}"
            print("\n".join(rows(name, *found, with_rooms=asked.rooms)), flush=True)
    for result, image in asked.result:
        print("\n".join(rows(result.stem, *of_result(result, image, asked.source), with_rooms=asked.rooms)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
