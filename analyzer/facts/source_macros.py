"""Which definition of a macro a use of it means, and what loops and loop bounds that holds.

Words: loop bound (docs/explanation/glossary.md).

*Soundness:* as of all that reads sources none is claimed: what a pragma says is an assumption. Where it is not clear
which definition is compiled, no pragma is taken from any: so where the use does not stand in all conditional groups of
the definition, and where a header may have defined the macro anew. Nor where another loop is in the use's arguments,
for compilers tell one line for both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from wcet_probe.analyzer.facts.assembler_text import may_go_back

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_UNDEFINE = re.compile(rb"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.MULTILINE)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|el|endif|include)", re.MULTILINE)
_ELSE = re.compile(rb"^[ \t]*#[ \t]*else", re.MULTILINE)
_NAMING = re.compile(rb"^[ \t]*#[ \t]*(?:undef|if|elif)[^\n]*", re.MULTILINE)
_KEYWORD = re.compile(rb"""\"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\b(for|while)\s*\((?!\s*0\s*\))""")
_LOOP = re.compile(rb"\bfor\b|\bwhile\b(?!\s*\(\s*0\s*\))|\bgoto\b")
"""Of a macro's text, which may be the keyword alone."""
_QUOTED = re.compile(rb"""\"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")
_JOINED = re.compile(rb"\w+(?:(?:\s|\\\r?\n)*(?:##|%:%:|\?\?=\?\?=)(?:\s|\\\r?\n)*\w+)+")
_PARAMETERS = re.compile(rb"\(([\w\s,]*)\)(.*)", re.DOTALL)
_TOKEN = re.compile(rb"\w+|&&|&(?=[~(\s]*[0-9])|[<>!=]=|<<|>>|->|[-+*/%<>|^~!?:,.()\[\]]|\s+|\\\r?\n")
"""What an expression that changes nothing may hold; an ``&`` in front of a number takes no address."""


_LEAVING = frozenset({"break", "return", "goto"})
_LOOPING = (b"for", b"while", b"goto")
_MOST_LOOPS = 64
"""Of a macro; those behind them are overlooked."""
_Bodies = Mapping[str, Sequence[tuple[int, Sequence[str]]]]
"""Of each text of a macro the loops that it holds itself, and its words."""


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


def value_macros(texts: Collection[tuple[str, bytes]]) -> frozenset[str]:
    """The macros with parameters that are expressions which change nothing, as far as these definitions tell.

    Args:
        texts: names and texts of macros, of `definitions`.
    """
    found = {name for name, _ in texts}
    while changing := {name for name, body in texts if name in found and not _is_value(body, found)}:
        found -= changing
    return frozenset(found)


def _is_value(body: bytes, values: Collection[str]) -> bool:
    """Whether a macro is an expression without changes, addresses and calls but of the macros ``values``.

    No word stands beside a parameter, and no parenthesis behind it: with an argument that is a macro's name, or in
    parentheses, the two may be a call.
    """
    split = _PARAMETERS.fullmatch(body)
    if split is None:
        return False
    parameters, text = set(_WORD.findall(split[1])), split[2]
    tokens = [one for one in _TOKEN.findall(text) if one.strip(b" \t\r\n\\")]
    is_expression = not _TOKEN.sub(b"", text) and b"++" not in text and b"--" not in text
    if not is_expression or (b"[" in tokens and b"&" in tokens):
        return False
    pairs = [(one, following) for one, following in pairwise(tokens) if _WORD.fullmatch(one)]
    called = {one.decode() for one, following in pairs if following == b"("}
    side_by_side = {one for pair in pairs if _WORD.fullmatch(pair[1]) for one in pair}
    return called <= {*values, "sizeof"} and parameters.isdisjoint({*side_by_side, *map(str.encode, called)})


def keywords(code: bytes) -> Iterator[int]:
    """Where a keyword of a loop stands outside the texts of macros, and outside strings."""
    return (one.start() for one in _KEYWORD.finditer(code) if one[1] is not None and not in_macro(code, one.start()))


def in_macro(code: bytes, at: int) -> bool:
    """Whether what stands at ``at`` is in the text of a macro, or in a directive that names macros."""
    return any(low <= at < high for low, high in _spans(code))


@lru_cache(maxsize=1)
def _spans(code: bytes) -> tuple[tuple[int, int], ...]:
    return tuple(one.span() for pattern in (_DEFINE, _NAMING) for one in pattern.finditer(code))


def loops_in(text: bytes) -> int:
    """Loops in the text of a macro, those of macros that it uses left out."""
    return len(_LOOP.findall(_QUOTED.sub(b'""', text))) + _joined_keywords(text) + may_go_back(text)


def _joined_keywords(text: bytes) -> int:
    """How often a macro joins words by ``##`` to what may be the keyword of a loop, as a parameter may be any part."""
    head = re.match(rb"\(([^)]*)\)", text)
    parameters = {*_WORD.findall(head[1]), b"__VA_ARGS__"} if head else set()
    joined = (re.findall(rb"\w+", one) for one in _JOINED.findall(text))
    return sum(all(word in parameters or any(word in one for one in _LOOPING) for word in words) for words in joined)


def loops_of_macros(macros: Collection[tuple[str, bytes]]) -> Mapping[str, int]:
    """How many loops the text of each of ``macros`` holds, those of macros it uses included; 0 is left out."""
    bodies: dict[str, list[tuple[int, list[str]]]] = {}
    users: dict[str, set[str]] = {}
    for name, body in macros:
        words = [word.decode() for word in _WORD.findall(body)]
        bodies.setdefault(name, []).append((loops_in(body), words))
        for word in words:
            users.setdefault(word, set()).add(name)
    counts: dict[str, int] = {}
    todo = list(bodies)
    while todo:
        name = todo.pop()
        if name in bodies and name not in counts and _spoken_of(bodies[name]).isdisjoint(bodies.keys() - counts.keys()):
            counts[name] = _loops_of(name, bodies, frozenset(), counts)
            todo += sorted(users.get(name, ()))
    in_circles = {name: _loops_of(name, bodies, frozenset(), counts) for name in bodies.keys() - counts.keys()}
    return {name: count for name, count in (counts | in_circles).items() if count}


def _spoken_of(texts: Sequence[tuple[int, Sequence[str]]]) -> set[str]:
    return {word for _, words in texts for word in words}


def _loops_of(name: str, bodies: _Bodies, open_names: frozenset[str], counts: Mapping[str, int]) -> int:
    """Most loops in a text of the macro ``name``, expanded; as in C, a macro is not expanded within itself.

    ``counts`` are those of macros that do not speak of each other in a circle.
    """
    if name in counts or name not in bodies or name in open_names:
        return counts.get(name, 0)
    opened = open_names | {name}
    most = max(own + sum(_loops_of(word, bodies, opened, counts) for word in words) for own, words in bodies[name])
    return min(most, _MOST_LOOPS)


def repeating_arguments(macros: Collection[tuple[str, bytes]]) -> frozenset[str]:
    """Those of ``macros`` whose text may hold an argument more than once, or speaks of one of them."""
    words, found = list[tuple[str, set[str]]](), set[str]()
    for name, body in macros:
        head = re.match(rb"\(([^)]*)\)", body)
        inside = _WORD.findall(_QUOTED.sub(b" ", body[head.end() :] if head else body))
        words.append((name, {word.decode() for word in inside}))
        if head and any(inside.count(each) > 1 for each in (*_WORD.findall(head[1]), b"__VA_ARGS__")):
            found.add(name)
    while more := {name for name, own in words if name not in found and not own.isdisjoint(found)}:
        found |= more
    return frozenset(found)


def leaving(macros: Collection[tuple[str, bytes]]) -> frozenset[str]:
    """Those of ``macros`` that may end a loop: by a word in their text, or in that of one that it speaks of."""
    words = [(name, {word.decode() for word in _WORD.findall(body)}) for name, body in macros]
    found = set(_LEAVING)
    while more := {name for name, own in words if name not in found and not own.isdisjoint(found)}:
        found |= more
    return frozenset(found - _LEAVING)


def macro_uses(code: bytes, macros: Mapping[str, int], pragmas: Collection[Pragma]) -> Iterator[MacroUse]:
    """The uses of macros that hold loops, outside the texts of macros.

    Args:
        code: without comments and pragmas.
        macros: how many loops each macro of all sources holds: what is not defined above a use here means that.
        pragmas: the loop bounds that stood in ``code``.
    """
    known = _Definitions(code, macros)
    for use in _WORD.finditer(code):
        name, start = use.group(), use.start()
        if not known.may_hold_loops(name) or in_macro(code, start):
            continue
        count, pragma = known.loops(name, start), None
        own = known.of(name, start)
        inside = _arguments(code, use.end())
        is_alone = not loops_in(inside) and not any(known.may_hold_loops(word) for word in _WORD.findall(inside))
        if len(own) == count == 1 and is_alone and _is_meant(own[0].start(), start, code):
            pragma = _pragma_of(own[0], pragmas)
        if count:
            yield MacroUse(start, use.end(), count, pragma)


class _Definitions:
    """The definitions of macros in ``code``; ``macros`` are the loops of those of all sources."""

    def __init__(self, code: bytes, macros: Mapping[str, int]) -> None:
        self._code, self._macros = code, macros
        self._defined: dict[bytes, list[re.Match[bytes]]] = {}
        for one in _DEFINE.finditer(code):
            self._defined.setdefault(one[1], []).append(one)
        self._counted: dict[tuple[bytes, int], int] = {}  # by name and use, where none that is open was met
        self._is_cut = False
        self._ended = [(one[1], one.start()) for one in _UNDEFINE.finditer(code)]

    def may_hold_loops(self, name: bytes) -> bool:
        """Whether ``name`` is a macro that may hold loops."""
        return name.decode() in self._macros

    def of(self, name: bytes, use: int) -> list[re.Match[bytes]]:
        """The definitions that a use may mean, as far as they are in this text."""
        ended = [at for other, at in self._ended if other == name and at < use and _is_meant(at, use, self._code)]
        since = max(ended, default=-1)
        return [one for one in self._defined.get(name, ()) if since < one.start() < use]

    def loops(self, name: bytes, use: int, open_names: frozenset[bytes] = frozenset()) -> int:
        """Most loops that ``name`` may hold at a use, those of macros that it uses included."""
        if name in open_names or name.decode() not in self._macros:  # no text of it, in any source, holds one
            self._is_cut |= name in open_names
            return 0
        if (name, use) in self._counted:
            return self._counted[name, use]
        is_cut, self._is_cut = self._is_cut, False
        own, opened = self.of(name, use), open_names | {name}
        counts = [
            loops_in(one[2]) + sum(self.loops(word, use, opened) for word in _WORD.findall(one[2])) for one in own
        ]
        is_one_of_own = own and _ELSE.search(self._code, own[0].start(), use)
        if not is_one_of_own and not any(_is_meant(one.start(), use, self._code) for one in own):
            counts.append(self._macros.get(name.decode(), 0))
        most = min(max(counts), _MOST_LOOPS)
        if not self._is_cut:
            self._counted[name, use] = most
        self._is_cut |= is_cut
        return most


def _is_meant(definition: int, use: int, code: bytes) -> bool:
    """Whether what is defined at ``definition`` is so wherever the ``use`` is compiled."""
    depth = 0
    for directive in _DIRECTIVE.finditer(code, definition, use):
        match directive[1]:
            case b"if":
                depth += 1
            case b"endif":
                depth -= 1
            case b"include":
                return False
        if depth < 0 or (directive[1] == b"el" and not depth):
            return False
    return True


def _arguments(code: bytes, at: int) -> bytes:
    """What stands in the parentheses that open at ``at``, perhaps behind blanks; all that follows if none closes."""
    depth = 0
    if not code[at:].lstrip().startswith(b"("):
        return b""
    for found in re.finditer(rb"[()]", code[at:]):
        depth += 1 if found.group() == b"(" else -1
        if not depth:
            return code[at : at + found.end()]
    return code[at:]


def _pragma_of(definition: re.Match[bytes], pragmas: Collection[Pragma]) -> Pragma | None:
    """The pragma directly before the one loop of a macro's own text."""
    loop = _LOOP.search(definition[2])
    if loop is None or loops_in(definition[2]) != 1:
        return None
    low, high = definition.start(2), definition.start(2) + loop.start()
    said = [one for one in pragmas if low <= one.start < high]
    between = definition.string[said[-1].start : high] if said else b"-"
    return said[-1] if not between.strip(b" \t\r\n\\") else None
