# SPDX-License-Identifier: 0BSD
"""C sources as compilers read them, who join lines and replace comments first; and whether the plain reading is that.

Where the two differ in a word, code may stand where the plain reading has none: behind a comment in a directive that
goes on in the next line, in a string that a trigraph ends, or in a number with separators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from pathlib import PurePath

from wcet_probe.certificate.facts.plain_source import DIRECTIVE, blanked

_SPLICE = re.compile(r"\\[ \t\r\f\v]*\n")
_NUMBER = r"(?<![\w.])\.?\d(?:[\w.]|'\w)*|"
_RAW = r"""\b(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"|"""
_LEXEMES = r"""(?P<comment>/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)"""
_TRIGRAPHS = {"=": "#", "/": "\\", "'": "^", "(": "[", ")": "]", "!": "|", "<": "{", ">": "}", "-": "~"}
_DIGRAPHS = {"<%": "{", "%>": "}", "%:": "#"}
_DIRECTIVE = re.compile(r"^[ \t\r\f\v\ufeff]*(?:#|%:)[^\n]*", re.MULTILINE)
_MOVING = re.compile(r"(?:#|%:)\s*(?:line\b|\d)[^\"]*(?:\"([^\"]*)\")?")
_PLAIN_MOVE = re.compile(r"(?:#|%:)\s*(?:line\s+)?\d+\s*(?:\"[^\"\\]*\"[ \d\t]*)?")


@lru_cache(maxsize=256)
def reads_as_compiled(text: str) -> bool:
    """Whether words and directives are the same in both readings, with and without trigraphs, raw strings and such."""
    plain = _words(_SPLICE.sub(" ", DIRECTIVE.sub(lambda found: _marked(found[0]), blanked(text))))
    return all(
        _words(_DIRECTIVE.sub(lambda found: _marked(found[0]), re.sub("<%|%>|%:", _of_digraph, code))) == plain
        for code in _codes(text, has_strings=False)
    )


def directives(text: str) -> list[str]:
    """All directives, each in one line without comments, but with its strings; as they may be read."""
    return [found[0].strip() for code in _codes(text, has_strings=True) for found in _DIRECTIVE.finditer(code)]


def moved_files(texts: Mapping[str, str]) -> frozenset[str]:
    """The files to which a ``#line`` gives lines of other code; all, where it is not plain which."""
    found = set[str]()
    for file, text in texts.items():
        for directive in directives(text):
            said = _MOVING.match(directive)
            if said is not None and not _PLAIN_MOVE.fullmatch(directive):
                return frozenset(texts)
            found |= {PurePath(said[1] or file).name} if said is not None else set()
    return frozenset(file for file in texts if PurePath(file).name in found)


@lru_cache(maxsize=256)
def _codes(text: str, *, has_strings: bool) -> tuple[str, ...]:
    """The text behind the compilers' first phases, blanks for comments; in each way in which it may be read."""
    found: dict[str, None] = {}
    trigraphs = (False, True) if "??" in text else (False,)
    numbers = (False, True) if re.search(r"\d'", text) else (False,)
    raw = (False, True) if 'R"' in text else (False,)
    for has_trigraphs, has_separators, has_raw in product(trigraphs, numbers, raw):
        whole = re.sub(r"\?\?([=/'()!<>-])", lambda one: _TRIGRAPHS[one[1]], text) if has_trigraphs else text
        lexemes = re.compile(_RAW * has_raw + _NUMBER * has_separators + _LEXEMES, re.DOTALL)
        code = lexemes.sub(lambda one: _blank(one, has_strings=has_strings), _SPLICE.sub("", whole))
        found[code] = None
    return tuple(found)


def _blank(found: re.Match[str], *, has_strings: bool) -> str:
    is_number = found[0][0] in ".0123456789"
    return found[0] if is_number or (has_strings and found["comment"] is None) else " "


def _of_digraph(found: re.Match[str]) -> str:
    return _DIGRAPHS[found[0]]


def _marked(directive: str) -> str:
    return f" \0 {directive} \0 "


def _words(code: str) -> list[str]:
    return re.findall(r"\w+|\S", code)
