"""What of the checker a check executes: the lines that somebody must read to believe one certificate.

Run with ``python -m bench.reading [--heap SIZE] [--target NAME] [--folders] [ALLOCATOR ...]`` on certificates that
``python -m bench.checks`` has kept, or with ``--result RESULT.json IMAGE.elf`` on those of own firmware. From each
module is cut what the check has not executed: functions, branches, cases, ends of blocks (`slices`). What is left is
to be read, with docstrings, and with the classes, constants and imports that it speaks of. ``--folders`` has a row for
each folder of the checker. ``--write FOLDER`` writes what is left, of the last check: another checker, which says of
this certificate what the whole one says, and of others the same or nothing, as what was cut raises an error.

What was executed is measured from outside, by `coverage`: nothing of the checker knows of it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from coverage import Coverage

from bench.checks import OPERATIONS, ROOT, TARGETS, Question, checked, program_of, questions
from bench.slices import sliced, to_read
from wcet_probe.catalog.lookup import allocator_names, target_names
from wcet_probe.evidence.checking import check_file_result
from wcet_probe.sizes import parse_size

CHECKER = ROOT / "wcet_probe" / "certificate"


@dataclass(frozen=True, slots=True)
class Read:
    """What a check executes of one module.

    Attributes:
        lines: of the module.
        left: what is left of it if all is cut that was not executed.
        to_read: the lines of it that are to be read.
    """

    lines: int
    left: str
    to_read: int


Measured = tuple[bool, Mapping[Path, Read]]


def measured(check: Callable[[], bool]) -> Measured:
    """Whether ``check`` is full, and what it executes of each module of the checker."""
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
    data, texts = watch.get_data(), {path: path.read_text("utf-8") for path in sorted(CHECKER.rglob("*.py"))}
    left = {path: sliced(text, frozenset(data.lines(str(path)) or ())) for path, text in texts.items()}
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in texts}
    read = to_read({names[path]: text for path, text in left.items()})
    return is_full, {path: Read(text.count("\n"), left[path], read.get(names[path], 0)) for path, text in texts.items()}


def write(found: Mapping[Path, Read], folder: Path) -> None:
    """Write what is left of the checker into ``folder``."""
    for path, read in found.items():
        place = folder / path.relative_to(CHECKER)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(read.left, "utf-8")


def checker_in(folder: Path) -> ModuleType:
    """The module ``check`` of a checker that was written into ``folder``, beside the one that is loaded already."""
    package = importlib.import_module("wcet_probe.certificate")
    loaded = {name: one for name, one in sys.modules.items() if name.startswith(f"{package.__name__}.")}
    # An import sets its module in the package, too.
    inside = dict(vars(package))
    with patch.object(package, "__path__", [str(folder)]):
        for name in loaded:
            del sys.modules[name]
        try:
            return importlib.import_module(f"{package.__name__}.check")
        finally:
            for name in [one for one in sys.modules if one.startswith(f"{package.__name__}.")]:
                del sys.modules[name]
            sys.modules.update(loaded)
            vars(package).update(inside)


def of_question(question: Question) -> Measured | None:
    """What the check of a kept certificate executes; None where none is kept."""
    document = json.loads(question.file.read_text("utf-8"))["document"] if question.file.is_file() else None
    if not document:
        return None
    program = program_of(question)
    return measured(lambda: checked(question, document, program).is_full)


def of_result(result: Path, image: Path, sources: Sequence[Path]) -> Measured:
    """What the check of a result against its image executes."""
    data, elf = result.read_bytes(), image.read_bytes()
    return measured(lambda: check_file_result(json.loads(data), data, elf, source_dirs=sources)[0].is_full)


def folder(path: Path) -> str:
    """The folder that a module stands in."""
    return path.parent.name if path.parent != CHECKER else "check"


def rows(name: str, measured_check: Measured, *, with_folders: bool) -> Iterator[str]:
    """The rows of one check."""
    is_full, found = measured_check
    own = {path: read for path, read in found.items() if read.to_read}
    folders = dict.fromkeys(map(folder, own)) if with_folders else ()
    for label in ("", *folders):
        reads = [read for path, read in own.items() if label in {"", folder(path)}]
        start = f"    {label:46}" if label else f"{name:44}{'full' if is_full else 'open':6}"
        yield f"{start}{len(reads):7}{sum(one.lines for one in reads):9,}{sum(one.to_read for one in reads):9,}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    parser.add_argument("allocators", nargs="*", metavar="ALLOCATOR", type=_allocator)
    parser.add_argument("--heap", default="5000", metavar="SIZE")
    parser.add_argument("--target", action="append", choices=[*target_names()])
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    parser.add_argument("--result", nargs=2, action="append", default=[], metavar=("JSON", "ELF"), type=Path)
    parser.add_argument("--source", action="append", default=[], metavar="DIR", type=Path, help="of own firmware")
    parser.add_argument("--folders", action="store_true", help="a row for each folder")
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="where what is left of the checker goes")
    asked = parser.parse_args()
    names: Sequence[str] = asked.allocators
    if not (names or asked.result):
        names = [name for name in allocator_names() if ":" not in name]
    print(f"{'check':50}{'modules':>7}{'lines':>9}{'to read':>9}")
    for question in questions(names, asked.target or TARGETS, parse_size(asked.heap)) if names else ():
        if question.operation not in (asked.operation or OPERATIONS):
            continue
        name, found = f"{question.operation} of {question.allocator}, {question.target}", of_question(question)
        if found is None:
            print(f"{name:50} no certificate is kept; python -m bench.checks makes one", flush=True)
        else:
            _tell(name, found, asked)
    for result, image in asked.result:
        _tell(result.stem, of_result(result, image, asked.source), asked)
    return 0


def _allocator(name: str) -> str:
    if name not in allocator_names():
        raise argparse.ArgumentTypeError(f"unknown allocator {name!r}: wcet-probe list allocators names them")
    return name


def _tell(name: str, found: Measured, asked: argparse.Namespace) -> None:
    print("\n".join(rows(name, found, with_folders=asked.folders)), flush=True)
    if asked.write:
        write(found[1], asked.write)


if __name__ == "__main__":
    sys.exit(main())
