"""Which definition of a macro a use of it means, and what loops and loop bounds that holds.

*Soundness:* as of all that reads sources none is claimed: what a pragma says is an assumption. Where it is not clear
which definition is compiled, as under ``#if``, no pragma is taken from any.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from wcet_probe.analyzer.facts.assembler_text import may_go_back

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_UNDEFINE = re.compile(rb"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_LOOP = re.compile(rb"\bfor\s*\(|\bwhile\s*\((?!\s*0\s*\))|\bgoto\b")


class Pragma(NamedTuple):
    """A loop bound: where it stands, by byte and line, and least and most executions of the body."""

    start: int
    line: int
    bounds: tuple[int, int]


class MacroUse(NamedTuple):
    """A use of a macro, with the loops that its text holds and, of a single loop, the pragma in front of it."""

    start: int
    end: int
    loops: int
    pragma: Pragma | None


def definitions(code: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and texts of all macros that ``code`` defines, with the parameters in front."""
    return ((match[1].decode(), match[2]) for match in _DEFINE.finditer(code))


def loops_in(text: bytes) -> int:
    """Loops in the text of a macro, those of macros that it uses left out."""
    return len(_LOOP.findall(text)) + may_go_back(text)


def macro_uses(code: bytes, macros: Mapping[str, int], pragmas: Collection[Pragma]) -> Iterator[MacroUse]:
    """The uses of macros that hold loops, outside the texts of macros.

    Args:
        code: without comments and pragmas.
        macros: how many loops each macro of all sources holds: what is not defined above a use here means that.
        pragmas: the loop bounds that stood in ``code``.
    """
    defined: dict[bytes, list[re.Match[bytes]]] = {}
    for one in _DEFINE.finditer(code):
        defined.setdefault(one[1], []).append(one)
    ended = [(one[1], one.start()) for one in _UNDEFINE.finditer(code)]
    spans = [one.span() for own in defined.values() for one in own]
    for use in _WORD.finditer(code):
        name, start = use.group(), use.start()
        if (name not in defined and name.decode() not in macros) or any(low <= start < high for low, high in spans):
            continue
        since = max((at for other, at in ended if other == name and at < start), default=-1)
        own = [one for one in defined.get(name, ()) if since < one.start() < start]
        if not own:
            count, pragma = macros.get(name.decode(), 0), None
        else:
            count = max(_loops_of(one, macros) for one in own)
            pragma = _pragma_of(own[0], pragmas) if len(own) == count == 1 else None
        if count:
            yield MacroUse(start, use.end(), count, pragma)


def _loops_of(definition: re.Match[bytes], macros: Mapping[str, int]) -> int:
    """Loops in the text of a macro, those of macros that it uses included."""
    others = (word.decode() for word in _WORD.findall(definition[2]) if word != definition[1])
    return loops_in(definition[2]) + sum(macros.get(word, 0) for word in others)


def _pragma_of(definition: re.Match[bytes], pragmas: Collection[Pragma]) -> Pragma | None:
    """The pragma directly before the one loop of a macro's own text."""
    loop = _LOOP.search(definition[2])
    if loop is None or loops_in(definition[2]) != 1:
        return None
    low, high = definition.start(2), definition.start(2) + loop.start()
    said = [one for one in pragmas if low <= one.start < high]
    between = definition.string[said[-1].start : high] if said else b"-"
    return said[-1] if not between.strip(b" \t\r\n\\") else None
