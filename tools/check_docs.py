"""Hold the documentation to the truth: every path, command and option that it names exists and works.

Checked in the Markdown files of ``DOCUMENTS``:

* relative links and their anchors;
* paths in backticks (``tools/check_docs.py``); a file that is the reader's own is excused by a comment
  ``<!-- docs-check: ignore NAME -->`` in the same document;
* ``make`` targets, in backticks and in blocks;
* options in backticks (``--heap``, or inside a ``wcet-probe`` command): some command's ``--help`` lists them;
* ``wcet-probe`` commands, and examples that are made, in ``sh`` and ``console`` blocks: they are run, in a folder of
  each document whose entries are links to the repository's, and end with the exit status that a trailing ``# exit N``
  states, or else 0. In a ``console`` block the lines below a ``$ `` command are its output; ``…`` stands for any text
  and, alone on a line, for any lines. A command that needs no file is run once for all documents. A block marked
  ``no-run`` is only read.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOCUMENTS = ("*.md", "*/README.md", "docs/**/*.md", "allocators/**/README.md")
GENERATED = (".venv", "build", "dist")
SUFFIXES = (".c", ".h", ".ini", ".json", ".ld", ".md", ".py", ".s", ".S", ".toml", ".txt", ".yml")
TIME_LIMIT_SECONDS = 300
AT_ONCE = 2
"""Documents that are looked at side by side."""

FENCE = re.compile(r"^\s*(```+|~~~+)\s*(.*)$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]:\s*(\S+)")
CODE = re.compile(r"(`+)(.+?)\1")
PATH = re.compile(r"^[\w.@+*-]+(/[\w.@+*-]+)*/?$")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
EXCUSE = re.compile(r"<!--\s*docs-check:\s*ignore\s+(\S+)\s*-->")
STATUS = re.compile(r"\s+#\s*exit\s+(\d+)\s*$")
WHOLE = re.compile(r"(?P<command>wcet-probe(?: (?:--)?\w[\w:=,-]*)*)(?: >(?P<file>[\w-]+\.json))?")
"""A command that reads no file of the reader's and writes none but what it prints: it is run once for all documents."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a document says and that is not so."""

    document: str
    line: int
    text: str

    def __str__(self) -> str:
        """The problem as compilers print theirs."""
        return f"{self.document}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a block, with the exit status and the output that the document states."""

    line: int
    text: str
    status: int
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A Markdown file, split into prose (line number, text) and the commands of its blocks."""

    path: Path
    prose: tuple[tuple[int, str], ...]
    commands: tuple[Command, ...]
    excused: frozenset[str]


@dataclass(frozen=True, slots=True)
class Result:
    """What a command did."""

    status: int
    stdout: str
    stderr: str


Run = Callable[[str], Result]


def split(path: Path) -> Document:
    """Read the document at ``path``."""
    prose: list[tuple[int, str]] = []
    commands: list[Command] = []
    fence, kind, start, block = "", "", 0, list[str]()
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if not fence:
            if match:
                fence, kind, start, block = match[1], match[2], number + 1, []
            else:
                prose.append((number, line))
        elif match and match[1].startswith(fence) and not match[2]:
            commands.extend(_commands(kind.split(), start, block))
            fence = ""
        else:
            block.append(line)
    return Document(path, tuple(prose), tuple(commands), frozenset(EXCUSE.findall(text)))


def _commands(kind: list[str], start: int, block: list[str]) -> Iterator[Command]:
    if not kind or kind[0] not in {"sh", "console"} or "no-run" in kind:
        return
    prompt = "$ " if kind[0] == "console" else ""
    block = textwrap.dedent("\n".join(block)).split("\n")
    number = 0
    while number < len(block):
        first, line = number, block[number].strip()
        number += 1
        if not line.startswith(prompt) or not line or line.startswith("#"):
            continue
        while line.endswith("\\") and number < len(block):
            line = line[:-1] + block[number].strip()
            number += 1
        line = line.removeprefix(prompt)
        output = list[str]()
        while prompt and number < len(block) and not block[number].startswith(prompt):
            output.append(block[number].rstrip())
            number += 1
        status = STATUS.search(line)
        yield Command(start + first, STATUS.sub("", line), int(status[1]) if status else 0, tuple(output))


def anchors(path: Path) -> set[str]:
    """The anchors of a Markdown file's headings, made as code hosts make them."""
    headings = (line for _, line in split(path).prose if re.match(r"#+ ", line))
    texts = (re.sub(r"[^\w\s-]", "", heading.lstrip("#").strip().lower()) for heading in headings)
    return {re.sub(r"\s", "-", text) for text in texts}


def check_links(document: Document) -> Iterator[tuple[int, str]]:
    """Links that lead nowhere."""
    for number, line in document.prose:
        for match in LINK.finditer(CODE.sub("", line)):
            target = match[1] or match[2]
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = document.path.parent / name if name else document.path
            if not path.exists():
                yield number, f"link to {name}, which does not exist"
            elif anchor and path.suffix == ".md" and anchor not in anchors(path):
                yield number, f"link to {target}, but there is no such heading"


def _looks_like_path(code: str, root: Path) -> bool:
    if not PATH.match(code) or not re.search(r"[a-z]", code):
        return False
    if code.endswith(SUFFIXES):
        return not code.startswith((".", "*")) and not Path(code).stem.isupper()
    return "/" in code and (code.endswith("/") or (root / code.split("/", maxsplit=1)[0]).exists())


def check_paths(document: Document, root: Path) -> Iterator[tuple[int, str]]:
    """Paths in backticks that do not exist beside the document, in the repository, or as a bare name anywhere in it."""
    for number, line in document.prose:
        for code in (match[2].partition("::")[0] for match in CODE.finditer(line)):
            if not _looks_like_path(code, root) or code in document.excused or code.split("/")[0] in GENERATED:
                continue
            pattern = code.rstrip("/")
            places = (document.path.parent, root)
            if any(any(place.glob(pattern)) for place in places):
                continue
            if "/" in pattern or not any(part.match(pattern) for part in _files(root)):
                yield number, f"path {code}, which does not exist"


@cache
def _files(root: Path) -> tuple[Path, ...]:
    tops = (top for top in root.iterdir() if top.name not in {*GENERATED, ".git"})
    return tuple(path for top in tops for path in ([top] if top.is_file() else top.rglob("*")))


def make_targets(root: Path) -> set[str]:
    """The targets that the Makefile offers."""
    makefile = root / "Makefile"
    text = makefile.read_text(encoding="utf-8") if makefile.exists() else ""
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def check_targets(document: Document, root: Path) -> Iterator[tuple[int, str]]:
    """``make`` targets that the Makefile does not have."""
    inline = ((number, match[2]) for number, line in document.prose for match in CODE.finditer(line))
    blocks = ((command.line, command.text) for command in document.commands)
    for number, text in (*inline, *blocks):
        words = text.split()
        if words[:1] == ["make"] and "-C" not in words:
            for target in (word for word in words[1:] if "=" not in word and re.match(r"[a-z]", word)):
                if target not in make_targets(root):
                    yield number, f"make {target}, but the Makefile has no such target"


def known_options(run: Run, command: str = "wcet-probe") -> set[str]:
    """Every option that the help of ``command`` and of its subcommands lists."""
    text = run(f"{command} --help").stdout
    options = set(OPTION.findall(text))
    section = re.search(r"^Commands:\n((?:[ \t]+.*\n?|\n)+)", text, re.MULTILINE)
    names = re.findall(r"^ {1,4}([a-z][\w-]*)", section[1], re.MULTILINE) if section else []
    return options.union(*(known_options(run, f"{command} {name}") for name in names))


def page_of_help(text: str) -> Result:
    """What a command with ``--help`` prints, without a process of its own, most of which would be its start."""
    from wcet_probe.cli import main as run  # noqa: PLC0415  (the checks themselves need no package)

    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = run(text.split()[1:])
    return Result(status, output.getvalue(), errors.getvalue())


def check_options(document: Document, known: set[str]) -> Iterator[tuple[int, str]]:
    """Options of ``wcet-probe`` in backticks that no help lists."""
    for number, line in document.prose:
        for code in (match[2] for match in CODE.finditer(line)):
            if code.startswith(("--", "wcet-probe ")) and "docs-check" not in code:
                for option in OPTION.findall(code):
                    if option not in known:
                        yield number, f"option {option}, which no command's --help lists"


def matches(expected: tuple[str, ...], actual: list[str]) -> bool:
    """Whether ``actual`` is what the document shows, ``…`` standing for any text or, alone, for any lines."""
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += "[^\n]*".join(re.escape(part) for part in line.split("…")) + "\n"
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in actual)) is not None


def check_commands(document: Document, run: Run) -> Iterator[tuple[int, str]]:
    """Commands that end otherwise than the document says, or print something else."""
    for command in document.commands:
        if not re.match(r"(\.venv/bin/)?wcet-probe\b|make -C examples/", command.text):
            continue
        result = run(command.text)
        if result.status != command.status:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            yield command.line, f"{command.text}: exit status {result.status}, not {command.status} ({last})"
        elif command.output:
            actual = (result.stdout + (result.stderr if command.status else "")).splitlines()
            if not matches(command.output, actual):
                shown = "".join(f"\n    {line}" for line in actual)
                yield command.line, f"{command.text}: prints something else:{shown}"


def check(root: Path, run_of: Callable[[], Run], run_help: Run) -> list[Problem]:
    """Every problem of every document below ``root``; each document's commands are run by a ``run_of`` of its own.

    Pages of help, of which options are read, are asked of ``run_help``.
    """
    allocators = sorted(manifest.parent.name for manifest in root.glob("allocators/*/manifest.toml"))
    commands = ("wcet-probe", *(f"wcet-probe {name}" for name in allocators))
    known = set[str]().union(*(known_options(run_help, command) for command in commands))
    paths = {path for pattern in DOCUMENTS for path in root.glob(pattern) if path.is_file()}
    paths = {path for path in paths if not re.match(rf"\.|({'|'.join(GENERATED)})/", str(path.relative_to(root)))}

    def problems(path: Path) -> list[Problem]:
        document = split(path)
        found = (
            *check_links(document),
            *check_paths(document, root),
            *check_targets(document, root),
            *check_options(document, known),
            *check_commands(document, run_of()),
        )
        return [Problem(str(path.relative_to(root)), number, text) for number, text in sorted(found)]

    with ThreadPoolExecutor(AT_ONCE) as executor:
        return [problem for found in executor.map(problems, sorted(paths)) for problem in found]


def runner(root: Path, above: Path, told: dict[str, Result]) -> Run:
    """A function that runs a command in a folder of its own below ``above``.

    The folder looks like ``root`` but keeps what is written to itself. What a command prints that is whole in itself is
    put into ``told``, for the documents that show it, too.
    """
    folder = Path(tempfile.mkdtemp(dir=above))
    for entry in root.iterdir():
        (folder / entry.name).symlink_to(entry)
    environment = os.environ | {
        "PATH": f"{root / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "WCET_PROBE_PROVE_ANEW": "1",  # what is shown was proved, not kept by an earlier run
    }
    if environment.pop("PYTHONDONTWRITEBYTECODE", None):  # else each command would compile all that it imports
        environment["PYTHONPYCACHEPREFIX"] = str(root / "build" / "bytecode")

    def started(text: str) -> Result:
        done = subprocess.run(
            ["/bin/sh", "-c", text],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_SECONDS,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @cache
    def run(text: str) -> Result:
        whole = WHOLE.fullmatch(text)
        if whole is None:
            return started(text)
        if whole["command"] not in told:
            told[whole["command"]] = started(whole["command"])
        found = told[whole["command"]]
        if whole["file"]:
            (folder / whole["file"]).write_text(found.stdout, encoding="utf-8")
        return Result(found.status, "" if whole["file"] else found.stdout, found.stderr)

    return run


def main() -> int:
    """Check this repository; print the problems; 1 if there is one."""
    root = Path(__file__).resolve().parent.parent
    (root / "build").mkdir(exist_ok=True)  # where examples are made
    told = dict[str, Result]()
    with tempfile.TemporaryDirectory() as folder:
        problems = check(root, lambda: runner(root, Path(folder), told), page_of_help)
    for problem in problems:
        print(problem)
    print(
        f"{len(problems)} problems in the documentation" if problems else "the documentation is true", file=sys.stderr
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
