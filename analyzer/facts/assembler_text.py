"""Assembler code within C: whether it may hold a loop of its own, which no statement of the source tells.

Words: loop bound, basic block (docs/explanation/glossary.md).
"""

from __future__ import annotations

import re

_STATEMENT = re.compile(rb"\b(?:__)?asm(?:__)?\b")
_STRING = re.compile(rb'"((?:\\.|[^"\\])*)"')
_BACK = re.compile(rb"[\w.$%=]:|\b[0-9]+b\b|\.\s*[-+]|\bb\w*(?:\.\w+)?\s+\.")
"""A label, or a branch to a numbered one in front, or to a place that is told from where it stands itself."""


def may_go_back(code: bytes) -> bool:
    """Whether assembler code in the C text ``code`` may be a loop, or one end of it.

    Soundness: none is claimed, see `source_loops`; the directive ``.rept`` and macros of the assembler make no loops.
    """
    return bool(_STATEMENT.search(code)) and any(_BACK.search(text) for text in _STRING.findall(code))
