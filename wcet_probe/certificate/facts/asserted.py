# SPDX-License-Identifier: 0BSD
"""Flow facts as they stand in their files, and the marks in sources that they name: the checker's own, plain reading.

A fact is an assumption. What is checked of it: that it stands in the file, word for word; that its number follows from
the parameters; that the function it was written for has not changed; and that the loop it is used for has code of the
lines that the fact names.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from wcet_probe.certificate.facts.plain_source import (
    DIRECTIVE,
    blanked,
    first_definition,
    line_at,
    line_start,
    matching,
    statement_end,
    text_lines,
    without_linkage,
)
from wcet_probe.certificate.facts.two_readings import directives, moved_files, reads_as_compiled
from wcet_probe.certificate.kernel.loops import value_of
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.errors import VerificationError
from wcet_probe.model.image import Image

_KINDS = ("argument", "calls", "flow", "infeasible", "lemma", "loop", "pointer", "recursion", "word")
_PRAGMA = re.compile(r"\bloopbound\s+min\s+(\d+)\s+max\s+(\d+)\b")
_DEFINE = re.compile(r"(?:#|%:)\s*define\s+(\w+)(.*)", re.DOTALL)
_HIDING = re.compile(r"\b(?:for|goto|_*asm_*)\b|\bwhile\b(?!\s*\(\s*0\s*\))")
_JOINED = re.compile(r"\w+(?:\s*(?:##|%:%:)\s*\w+)+")
"""What may be part of a loop in a macro's text, beside a ``do … while (0)``; and what makes one word of several."""
_NO_HEADS = {"for", "while", "if", "switch", "return", "sizeof", "alignas", "typeof", "asm", "volatile"}
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_ADDRESS = re.compile(r"\baddress\s*\(\s*(\w+)\s*\)")
_LAST_LINE = 2**31
_NO_TEST = re.compile(r"do\b|for\s*\([^;]*;\s*;|while\s*\(\s*(?:1|true)\s*\)")


@dataclass(frozen=True, slots=True)
class Fact:
    """An entry of a file of facts: ``where`` is file and line, ``kind`` the name of its table."""

    where: str
    kind: str
    content: Mapping[str, Any]

    def expression(self, key: str) -> str | None:
        """The text of an expression, or None."""
        value = self.content.get(key)
        return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Asserted:
    """All facts about a binary, and the parameters that their files declare, in order."""

    facts: tuple[Fact, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    sources: Mapping[str, str] | None = None

    @property
    def by_line(self) -> Mapping[str, str]:
        """The sources that tell something by line: which read as compilers read them, and no ``#line`` moves."""
        return _telling(tuple((self.sources or {}).items()))

    def at(self, where: str) -> Fact | None:
        """The fact that stands there."""
        return next((fact for fact in self.facts if fact.where == where), None)

    def of(self, kind: str) -> list[Fact]:
        """The facts of one kind."""
        return [fact for fact in self.facts if fact.kind == kind]


def read_asserted(files: Sequence[tuple[str, str]], sources: Mapping[str, str] | None = None) -> Asserted:
    """The facts in ``files``, given as name and text.

    Args:
        files: as the result names them; of an absolute path the last part is what counts.
        sources: source texts by file name, as the line table calls them; None where nobody has them.

    Raises:
        VerificationError: a file is no TOML of facts.
    """
    facts: list[Fact] = []
    declared: list[tuple[str, str]] = []
    for file, text in files:
        shown = PurePath(file).name if PurePath(file).is_absolute() else file
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise VerificationError(f"not verified: {shown} is no TOML ({error}).") from error
        facts += _entries(shown, text, document)
        parameters = document.get("parameters", {})
        demand(isinstance(parameters, dict), f"{shown} declares no table of parameters")
        declared += [(name, str(value)) for name, value in parameters.items()]
    return Asserted(tuple(facts), tuple(declared), sources)


def _entries(shown: str, text: str, document: Mapping[str, Any]) -> Iterator[Fact]:
    lines = text.split("\n")
    for kind in _KINDS:
        tables = document.get(kind, [])
        demand(
            isinstance(tables, list) and all(isinstance(table, dict) for table in tables),
            f"{shown}: {kind} is no array of tables",
        )
        header = re.compile(rf"\s*\[\[\s*{kind}\s*\]\]")
        rows = [number for number, line in enumerate(lines, 1) if header.match(line)]
        for number, table in enumerate(tables):
            where = f"{shown}:{rows[number]}" if len(rows) == len(tables) else shown
            yield Fact(where, kind, table)


def parameters_of(asserted: Asserted, given: Mapping[str, int], image: Image) -> dict[str, int]:
    """The parameters of the run and those that the facts declare, which may speak of addresses of symbols of ``image``.

    Raises:
        VerificationError: one has no value, or is declared over another.
    """
    values = dict(given)
    for name, expression in asserted.declared:
        demand(name not in values, f"the parameter {name} is declared twice")
        unknown = [match[1] for match in _ADDRESS.finditer(expression) if match[1] not in image.symbols]
        demand(not unknown, f"the parameter {name} speaks of symbols that the binary has not: {', '.join(unknown)}")
        places = {f"address({match[1]})": image.symbols[match[1]].address for match in _ADDRESS.finditer(expression)}
        values[name] = value_of(expression, {**values, **places})
    return values


@dataclass(frozen=True, slots=True)
class Extent:
    """A source loop: its lines, those of loops in it, and whether it may test once more than its body runs."""

    file: str
    first_line: int
    last_line: int
    has_test: bool
    inner: tuple[tuple[int, int], ...] = ()

    def encloses(self, other: Extent) -> bool:
        """Whether all lines of another loop are among those of this one."""
        return self.file == other.file and self.first_line <= other.first_line <= other.last_line <= self.last_line

    def owns(self, line: tuple[str, int] | None) -> bool:
        """Whether a line is of this loop, and of none in it."""
        if line is None or line[0] != self.file or not self.first_line <= line[1] <= self.last_line:
            return False
        return not any(first <= line[1] <= last for first, last in self.inner)


def loop_extent(asserted: Asserted, fact: Fact, label: str | None = None, function: str | None = None) -> Extent | None:
    """The source loop that ``fact`` names by label or line; None where the sources do not tell.

    A mark ``/* loop: NAME */`` stands before the loop, or behind its head on the same line. ``label`` and ``function``
    name another loop than that of the fact.
    """
    label = label or fact.content.get("label")
    line = fact.content.get("line") if label is None else None
    for file, text, start, end in _bodies(asserted, fact, function):
        plain = blanked(text)
        if label is not None:
            mark = _mark("loop", str(label)).search(text, start, end)
            if mark is None:
                continue
            of_line = text.rfind("\n", 0, mark.start()) + 1
        elif line is not None:
            of_line = line_start(text, int(line))
        else:
            return None
        found = _extent(file, text, plain, of_line, end)
        if found is not None:
            return found
    return None


def pragma_at(asserted: Asserted, where: str) -> str | None:
    """How often the pragma in a line, FILE:LINE, of a source says that a loop runs; None where none stands."""
    file, _, line = where.rpartition(":")
    rows = text_lines(asserted.by_line.get(file, ""))
    found = _PRAGMA.search(rows[int(line) - 1]) if line.isdigit() and 0 < int(line) <= len(rows) else None
    return found[2] if found else None


def loop_behind(asserted: Asserted, file: str, line: int) -> Extent | None:
    """The first loop that begins on or behind a line of a source."""
    text = asserted.by_line.get(file)
    return None if text is None else _extent(file, text, blanked(text), line_start(text, line), len(text))


def loops_owning(asserted: Asserted, line: tuple[str, int]) -> Sequence[Extent]:
    """The loops of a source that own a line, see `Extent.owns`; and those that no keyword tells, see `hidden_loops`."""
    file, number = line
    text = asserted.by_line.get(file)
    if text is None:
        return _anywhere(asserted, file)
    return _owning(file, text, _macros_of(asserted)).get(number, ())


def hidden_loops(asserted: Asserted, file: str) -> Sequence[Extent]:
    """What may be a loop of a source though no keyword tells: uses of macros, jumps back, and assembly.

    A macro that no source defines is taken for one that hides a loop if it is called in capitals, or in front of a
    statement. In a file that tells nothing by line one may be anywhere.
    """
    text = asserted.by_line.get(file)
    return _anywhere(asserted, file) if text is None else _hidden(file, text, _macros_of(asserted))


def _anywhere(asserted: Asserted, file: str) -> Sequence[Extent]:
    return (Extent(file, 1, _LAST_LINE, has_test=True),) if file in (asserted.sources or {}) else ()


def are_told_apart(asserted: Asserted, extent: Extent, lines: Iterable[tuple[str, int]]) -> bool:
    """Whether one of the lines is of the loop ``extent``, and of none that may be in it."""
    return any(
        extent.owns(line) and sum(map(extent.encloses, loops_owning(asserted, line))) < 2 for line in lines
    )  # fmt: skip


def loops_outside(asserted: Asserted, extent: Extent, lines: Iterable[tuple[str, int]]) -> list[Extent]:
    """The loops that own one of the lines and are neither in the loop ``extent`` nor in what is called there."""
    found = dict.fromkeys(each for line in sorted(lines) for each in loops_owning(asserted, line))
    return [each for each in found if not is_within(asserted, each, extent)]


def is_next_inside(asserted: Asserted, inner: Extent, outer: Extent) -> bool:
    """Whether a loop stands in another one, and in no third one, told by a keyword or not, that stands there."""
    text = asserted.by_line.get(outer.file)
    if text is None or inner == outer or not outer.encloses(inner):
        return False
    others = {*_loops(outer.file, text), *hidden_loops(asserted, outer.file)} - {inner, outer}
    return not any(outer.encloses(each) and each.encloses(inner) for each in others)


def macros_with(asserted: Asserted, words: re.Pattern[str]) -> frozenset[str]:
    """The macros of all sources, if ``words`` stand in the text of one: in which they may be, by others."""
    every = (one for text in (asserted.sources or {}).values() for one in map(_DEFINE.match, directives(text)))
    has_words = any(one is not None and words.search(one[2]) for one in every)
    return _macros_of(asserted)[0] if has_words else frozenset()


def _macros_of(asserted: Asserted) -> tuple[frozenset[str], frozenset[str]]:
    return _macros(tuple((asserted.sources or {}).values()))


@lru_cache(maxsize=8)
def _telling(sources: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    moved = moved_files(dict(sources))
    return {file: text for file, text in sources if file not in moved and reads_as_compiled(text)}


@lru_cache(maxsize=8)
def _macros(texts: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """All macros, and those whose texts may hold a loop."""
    words: dict[str, set[str]] = {}
    hiding = set[str]()
    for text in texts:
        for found in filter(None, map(_DEFINE.match, directives(text))):
            words.setdefault(found[1], set()).update(_WORD.findall(found[2]))
            hiding |= {found[1]} if _may_loop(found[2]) else set()
    while more := {name for name, own in words.items() if name not in hiding and own & hiding}:
        hiding |= more
    return frozenset(words), frozenset(hiding)


def _may_loop(body: str) -> bool:
    """Whether a macro's text may be of a loop: by more than ``do … while (0)``, each whole; its parameters in front."""
    is_whole = len(re.findall(r"\bdo\b", body)) == len(re.findall(r"\bwhile\b", body))
    head = re.match(r"\(([^)]*)\)", body)
    parameters = {*_WORD.findall(head[1]), "__VA_ARGS__"} if head else set()
    joined = [re.findall(r"\w+", one) for one in _JOINED.findall(body)]
    joins = any(all(each in parameters or each in "do for goto while" for each in words) for words in joined)
    return joins or not is_whole or bool(_HIDING.search(body))


@lru_cache(maxsize=64)
def _owning(file: str, text: str, macros: tuple[frozenset[str], frozenset[str]]) -> Mapping[int, Sequence[Extent]]:
    found: dict[int, list[Extent]] = {}
    for one in (*_loops(file, text), *_hidden(file, text, macros)):
        within = {number for first, last in one.inner for number in range(first, last + 1)}
        for number in range(one.first_line, one.last_line + 1):
            if number not in within:
                found.setdefault(number, []).append(one)
    return found


@lru_cache(maxsize=64)
def _hidden(file: str, text: str, macros: tuple[frozenset[str], frozenset[str]]) -> tuple[Extent, ...]:
    plain = DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), without_linkage(blanked(text)))
    loops = [(one.first_line, one.last_line) for one in _loops(file, text)]
    found = []
    for start, end in (*_uses(plain, *macros), *_jumps_back(plain)):
        first, last = line_at(plain, start), line_at(plain, end)
        inner = tuple(one for one in loops if first < one[0] and one[1] <= last)
        found.append(Extent(file, first, last, has_test=True, inner=inner))
    return tuple(found)


def _uses(plain: str, known: frozenset[str], hiding: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where macros that may hold a loop, and assembly, begin and end; of a macro in front of a statement, with that."""
    for word in _WORD.finditer(plain):
        name, end = word[0], word.end()
        is_call = re.compile(r"\s*\(").match(plain, end)
        end = matching(plain, is_call.end() - 1, "(", ")") + 1 if is_call else end
        is_head = is_call and (name.isupper() or _is_a_head(plain, name, word.start(), end))
        if name in hiding or (is_head and name not in known) or name in {"asm", "__asm", "__asm__"}:
            yield word.start(), statement_end(plain, end, len(plain))


def _is_a_head(plain: str, name: str, start: int, end: int) -> bool:
    """Whether a call that ends at ``end`` stands in front of a statement, as the head of a loop does."""
    if name in _NO_HEADS or name.startswith("_") or not re.compile(r"\s*[A-Za-z_{]").match(plain, end):
        return False
    return plain.count("{", 0, start) > plain.count("}", 0, start)


def _jumps_back(plain: str) -> Iterator[tuple[int, int]]:
    """From a label to a jump to it that stands behind it in the same function."""
    for jump in re.finditer(r"\bgoto\b\s*(\w*)", plain):
        label = re.compile(rf"[;{{}}:)]\s*{jump[1]}\s*:") if jump[1] else re.compile(";")
        before = [found.start() for found in label.finditer(plain, 0, jump.start())]
        inside = [start for start in before if _is_in_a_body(plain, start, jump.start())]
        if inside:
            start = inside[0] + 1
            yield start + len(plain[start:]) - len(plain[start:].lstrip()), jump.end()


def _is_in_a_body(plain: str, start: int, end: int) -> bool:
    """Whether no function ends between two places."""
    depth = plain.count("{", 0, start) - plain.count("}", 0, start)
    for mark in plain[start:end]:
        depth += (mark == "{") - (mark == "}")
        if depth < 1 and mark == "}":
            return False
    return True


def is_within(asserted: Asserted, inner: Extent, outer: Extent) -> bool:
    """Whether a loop stands in another one, or in a function that is called there by its name."""
    sources = asserted.by_line
    waiting, seen = [_lines_of(sources[outer.file], outer.first_line, outer.last_line)], set[str]()
    if outer.encloses(inner):
        return True
    while waiting:
        for name in sorted(set(_CALL.findall(waiting.pop())) - seen):
            seen.add(name)
            for file, text in sources.items():
                body = first_definition(text, name)
                if body is None:
                    continue
                first, last = line_at(text, body[0]), line_at(text, body[1])
                if file == inner.file and first <= inner.first_line <= inner.last_line <= last:
                    return True
                waiting.append(blanked(text)[body[0] : body[1]])
    return False


def _lines_of(text: str, first: int, last: int) -> str:
    return "\n".join(blanked(text).split("\n")[first - 1 : last])


@lru_cache(maxsize=64)
def _loops(file: str, text: str) -> tuple[Extent, ...]:
    plain = blanked(text)
    head = re.compile(r"do\b|\w+\s*\(")
    words = [found.start() for found in _LOOP.finditer(plain) if head.match(plain, found.start())]
    starts = [start for start in words if not (plain.startswith("while", start) and _is_end(plain, start))]
    return tuple(one for start in starts if (one := _extent(file, text, plain, start, len(text))) is not None)


def _is_end(plain: str, offset: int) -> bool:
    """Whether the ``while`` at ``offset`` ends a ``do``: a brace is before it, and a semicolon behind."""
    return _ends_do(plain, offset, max(0, plain.rfind("}", 0, offset)))


def _extent(file: str, text: str, plain: str, start: int, end: int) -> Extent | None:
    """The first loop that begins behind ``start``."""
    keyword = _LOOP.search(plain, start, end)
    if keyword is None:
        return None
    last = statement_end(plain, keyword.start(), end)
    first_line = line_at(text, keyword.start())
    inner = [
        (line_at(text, other.start()), line_at(text, statement_end(plain, other.start(), last)))
        for other in _LOOP.finditer(plain, keyword.end(), last)
        if not (other[0] == "while" and _ends_do(plain, other.start(), keyword.start()))
    ]
    # A loop in another on one line is told apart by nothing.
    inner = [(first, end_line) for first, end_line in inner if first > first_line]
    has_test = not _NO_TEST.match(plain, keyword.start())
    return Extent(file, first_line, line_at(text, last), has_test, tuple(inner))


def point_line(asserted: Asserted, fact: Fact, name: str, function: str) -> tuple[str, int] | None:
    """File and line of the statement behind the mark ``/* point: NAME */``."""
    found = point_statement(asserted, fact, name, function)
    return None if found is None else found[:2]


def point_statement(asserted: Asserted, fact: Fact, name: str, function: str) -> tuple[str, int, str] | None:
    """File and line of the statement behind the mark ``/* point: NAME */``, and the text from there on, no comments."""
    found = point_span(asserted, fact, name, function)
    if found is None:
        return None
    file, start, end = found
    text = asserted.by_line[file]
    return file, line_at(text, start), blanked(text)[start:end]


def point_span(asserted: Asserted, fact: Fact, name: str, function: str) -> tuple[str, int, int] | None:
    """File and offset of the statement behind the mark ``/* point: NAME */``, and where its function ends."""
    for file, text, start, end in _bodies(asserted, fact, function):
        mark = _mark("point", name).search(text, start, end)
        if mark is not None:
            statement = re.compile(r"\S").search(blanked(text), mark.end(), end)
            return (file, statement.start(), end) if statement else None
    return None


def _mark(kind: str, name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:/\*|//)\s*{kind}:\s*{re.escape(name)}\s*(?:\*/|\n)")


def function_lines(asserted: Asserted, fact: Fact) -> tuple[str, int, int] | None:
    """File, first and last line of the function of ``fact``."""
    for file, text, start, end in _bodies(asserted, fact, None):
        return file, line_at(text, start), line_at(text, end)
    return None


def lines_of(sources: Mapping[str, str], function: str) -> tuple[str, int, int] | None:
    """File, first and last line of a function; None where no source has it, or more than one."""
    found = [(file, text, first_definition(text, function)) for file, text in sorted(sources.items())]
    bodies = [(file, line_at(text, body[0]), line_at(text, body[1])) for file, text, body in found if body is not None]
    return bodies[0] if len(bodies) == 1 else None


def _bodies(asserted: Asserted, fact: Fact, function: str | None) -> Iterator[tuple[str, str, int, int]]:
    """Files, texts, and where the function begins and ends in them."""
    own = str(fact.content.get("function"))
    for file, text in asserted.by_line.items():
        if function in {None, own} and fact.content.get("file") not in {None, file}:
            continue
        body = first_definition(text, function or own)
        if body is not None:
            yield file, text, *body


_CALL = re.compile(r"\b(?!(?:for|while|if|switch|return|sizeof|_Pragma)\b)([A-Za-z_]\w*)\s*\(")
_LOOP = re.compile(r"\b(for|while|do)\b")


def _ends_do(plain: str, offset: int, first: int) -> bool:
    """Whether the ``while`` at ``offset`` ends a ``do``."""
    before = plain[first:offset].rstrip()
    rest = plain[matching(plain, plain.index("(", offset), "(", ")") + 1 :].lstrip()
    return before.endswith("}") and rest.startswith(";")
