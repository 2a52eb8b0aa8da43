# SPDX-License-Identifier: 0BSD
"""A plain reading of C sources: their text without comments and strings, its lines, statements and function bodies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|\x1f\n+|[^\n])*", re.MULTILINE)
"""In a text that is `blanked`: it goes on behind the comments in it, whose ends of lines are marked there."""
_LINKAGE = re.compile(
    r"(^[ \t]*#[ \t]*if(?:def\b|[ \t]+defined\b[ \t]*\(?)[ \t]*__cplusplus\b[ \t)]*\n)"
    r"(\s*(?:extern\s*\{|\})\s*)(?=#[ \t]*endif)",
    re.MULTILINE,
)
_HEAD = re.compile(r"(for|while|if|switch|do)\b")
_MARK = re.compile(r"[][(){};]|\b(?:for|while|if|switch|do)\b")
_LEXEMES = re.compile(
    r"""/\*.*?\*/|//(?:\\\r?\n|[^\n])*|"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)""", re.DOTALL
)
"""A string that is not closed, as of a word with an apostrophe that is not compiled, goes to the end of its line."""


@lru_cache(maxsize=64)
def blanked(text: str) -> str:
    """``text`` without comments and strings, each line and column where it was.

    In a comment of a directive a blank of its own, 1F, stands before the ends of lines, which do not end that.
    """
    plain = [*_LEXEMES.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)]
    for found in _LEXEMES.finditer(text):
        if found[0].startswith("/*") and "\n" in found[0] and _is_in_directive(plain, found.start()):
            for end in re.finditer(r"[^\n](?=\n)", found[0]):
                plain[found.start() + end.start()] = "\x1f"
    return "".join(plain)


def _is_in_directive(plain: Sequence[str], offset: int) -> bool:
    """Whether the first of the lines that are one with that of ``offset`` begins with a ``#``."""
    while offset and (plain[offset - 1] != "\n" or (offset > 1 and plain[offset - 2] in "\\\n\x1f")):
        if plain[offset - 1] == "\n" and plain[offset - 2] == "\n" and not _is_marked(plain, offset - 2):
            break
        offset -= 1
    while offset < len(plain) and plain[offset] in " \t":
        offset += 1
    return offset < len(plain) and plain[offset] == "#"


def _is_marked(plain: Sequence[str], offset: int) -> bool:
    """Whether a mark stands before the ends of lines up to that at ``offset``."""
    while offset and plain[offset] == "\n":
        offset -= 1
    return plain[offset] == "\x1f"


def without_linkage(plain: str) -> str:
    """What is `blanked` without the block ``extern "C"`` that C++ alone has, and the end of it, around declarations."""
    return _LINKAGE.sub(lambda found: found[1] + re.sub(r"[^\n]", " ", found[2]), plain)


def line_at(text: str, offset: int) -> int:
    """The number of the line in which ``offset`` is, from 1 on."""
    return text.count("\n", 0, offset) + 1


def line_start(text: str, line: int) -> int:
    """Where the line ``line`` begins; of one that there is not, where the text does."""
    starts = _starts(text)
    return starts[line - 1] if 0 < line <= len(starts) else 0


@lru_cache(maxsize=64)
def _starts(text: str) -> Sequence[int]:
    return (0, *(found.end() for found in re.finditer("\n", text)))


@lru_cache(maxsize=64)
def text_lines(text: str) -> Sequence[str]:
    """The lines of ``text``."""
    return text.split("\n")


def definitions(text: str, function: str) -> list[str]:
    """The texts of the definitions of a function in a source, of which an ``#if`` may choose one."""
    ends = _ends(text)
    return [
        text[max(ends.rfind(mark, 0, start) for mark in ";{}") + 1 : end] for start, end in _functions(text, function)
    ]


@lru_cache(maxsize=64)
def _ends(text: str) -> str:
    """``text`` without comments and strings, and with semicolons for directives."""
    return DIRECTIVE.sub(lambda found: ";" * len(found[0]), blanked(text))


def first_definition(text: str, name: str) -> tuple[int, int] | None:
    """Where the first definition of the function ``name`` begins, from its name on, and ends."""
    return next(iter(_functions(text, name)), None)


@lru_cache(maxsize=256)
def _functions(text: str, name: str) -> tuple[tuple[int, int], ...]:
    """Where definitions of the function ``name`` begin, from its name on, and end."""
    plain, places = blanked(text), list[tuple[int, int]]()
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", plain):
        close = matching(plain, found.end() - 1, "(", ")")
        body = re.compile(r"[^;{}()=,]*\{").match(plain, close + 1) if close > 0 else None
        if body is not None:
            places.append((found.start(), matching(plain, body.end() - 1, "{", "}") + 1))
    return tuple(places)


def matching(text: str, start: int, opening: str, closing: str) -> int:
    """Where what is opened at ``start`` is closed; the last place of ``text`` where it is not."""
    depth = 0
    for offset in range(start, len(text)):
        depth += (text[offset] == opening) - (text[offset] == closing)
        if depth == 0:
            return offset
    return len(text) - 1


def statement_end(plain: str, start: int, end: int) -> int:
    """Where the statement that begins at ``start`` ends, with the ``else`` of an ``if``, or the test of a ``do``."""
    while True:
        found = _HEAD.match(plain, start)
        last = _end_without_else(plain, start, end, found)
        behind = re.compile(r"\s*else\b\s*").match(plain, last + 1) if found and found[1] == "if" else None
        if behind is None:
            return last
        start = behind.end()


def _end_without_else(plain: str, start: int, end: int, found: re.Match[str] | None) -> int:
    """Where a statement ends that begins with ``found``; an ``if`` before its ``else``."""
    offset = found.end() if found else start
    if found and found[1] != "do":
        opened = plain.find("(", start)
        offset = matching(plain, opened, "(", ")") + 1 if opened >= 0 else end
    while offset < end and plain[offset].isspace():
        offset += 1
    if offset < end and plain[offset] == "{":
        last = matching(plain, offset, "{", "}")
    elif _HEAD.match(plain, offset):
        last = statement_end(plain, offset, end)
    else:
        last = _end_behind_prefix(plain, offset, end)
    if found and found[1] == "do":
        tested = plain.find(";", last + 1)
        return end if tested < 0 else tested
    return last


def _end_behind_prefix(plain: str, start: int, end: int) -> int:
    """Where a statement ends that begins with no keyword: one may stand behind a label, an attribute or a pragma."""
    depth = 0
    for found in _MARK.finditer(plain, start, end):
        depth += (found[0] in "([") - (found[0] in ")]")
        if found[0] in "{};" and depth <= 0:
            semicolon = plain.find(";", found.start())
            return end if semicolon < 0 else semicolon
        if found[0].isalpha() and depth <= 0:
            return statement_end(plain, found.start(), end)
    return end


def may_go_on(plain: str, start: int, last: int) -> bool:
    """Whether the statement from ``start`` to ``last`` may go on: by a block behind a macro, or the ``else`` of one."""
    own = plain[start : last + 1]
    is_cut = own.count("{") != own.count("}")
    return is_cut or re.compile(r"(?:\s|#[^\n]*\n)*+else\b").match(plain, last + 1) is not None
