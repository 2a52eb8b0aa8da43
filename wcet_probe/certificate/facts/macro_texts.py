# SPDX-License-Identifier: 0BSD
"""What macros of C sources may do to what they are given and what is around: execute it again, or end a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from wcet_probe.certificate.facts.two_readings import directives

_DEFINE = re.compile(r"#\s*define\s+(\w+)(?:\(([^)]*)\))?(.*)", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_STRING = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")


class MacroTexts(NamedTuple):
    """Macros by what they do, or those that they speak of.

    Attributes:
        repeating: one of their arguments may stand in their text more than once.
        ending: their text has a semicolon or a brace.
    """

    repeating: frozenset[str]
    ending: frozenset[str]


@lru_cache(maxsize=8)
def macro_texts(texts: tuple[str, ...]) -> MacroTexts:
    """The macros that are defined in ``texts``, whatever conditions their definitions stand in."""
    words: dict[str, set[str]] = {}
    repeating, ending = set[str](), set[str]()
    for directive in (one for text in texts for one in directives(text)):
        found = _DEFINE.match(directive)
        if found is None:
            continue
        name, body = found[1], _STRING.sub(" ", found[3])
        parameters = [*re.findall(r"\w+", found[2] or ""), "__VA_ARGS__"]
        own = _WORD.findall(body)
        words.setdefault(name, set()).update(own)
        if any(own.count(each) > 1 for each in parameters):
            repeating.add(name)
        if re.search(r"[;{}]", body):
            ending.add(name)
    return MacroTexts(*(_with_users(found, words) for found in (repeating, ending)))


def _with_users(found: set[str], words: dict[str, set[str]]) -> frozenset[str]:
    while more := {name for name, own in words.items() if name not in found and own & found}:
        found |= more
    return frozenset(found)


def repeated_spans(code: str, start: int, end: int, repeating: frozenset[str]) -> Iterator[tuple[int, int]]:
    """The parentheses of statements that speak of a macro of ``repeating``: what they hold may be executed again."""
    opened, depth, speaks = 0, 0, False
    groups = list[tuple[int, int]]()
    for found in re.compile(r"[(){};]|\b[A-Za-z_]\w*\b").finditer(code, start, end):
        mark = found[0]
        if mark == "(":
            depth, opened = depth + 1, opened if depth else found.start()
        elif mark == ")":
            depth -= 1
            if depth == 0:
                groups.append((opened, found.start()))
        elif mark in repeating:
            speaks = True
        elif mark in {";", "{", "}"} and depth == 0:
            yield from groups if speaks else ()
            groups, speaks = [], False
