# SPDX-License-Identifier: 0BSD
"""How often a place of the sources is executed at most in one call of a function, by the sources and facts of loops.

A place is executed once for each call of its function, times what facts say of the loops around it; a function is
called once for each execution of the places that call it. Where a text is not plain enough to tell, nothing follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import PurePath
from typing import NamedTuple

from wcet_probe.certificate.facts.asserted import Asserted, Fact, hidden_loops, loop_extent
from wcet_probe.certificate.facts.macro_texts import MacroTexts, macro_texts, repeated_spans
from wcet_probe.certificate.facts.plain_source import DIRECTIVE, blanked, line_at, matching, without_linkage
from wcet_probe.certificate.facts.two_readings import directives
from wcet_probe.certificate.kernel.loops import value_of

_BLOCKS = {"", "if", "for", "while", "switch"}
"""What stands before the parentheses in front of a brace in a body, if that is no function of its own."""
_NO_CALLS = {"for", "while", "if", "switch", "return", "sizeof", "offsetof", "_Static_assert"}
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.MULTILINE)
_NAMED = re.compile(r"[ \t]*#[ \t]*(?:\w|$)")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include\w*|import)\b[ \t]*(.*?)[ \t]*(?:/[/*].*)?$", re.MULTILINE)
_LONGEST_WORD = 200
_LOOP = re.compile(r"\b(for|while|do)\b")
_SIMPLE = re.compile(r"\s*(?!(?:if|for|while|do|switch|else)\b)[^;{}:]*;(?!\s*else\b)")
_UNREAD = re.compile(
    r"""\b_*(?:alias|asm|ifunc|redefine_extname|weakref|(?:builtin_)?(?:eh_return|(?:sig)?setjmp)|getcontext|vfork)_*\b
    |\breturns_twice|\b__(?:real|wrap)_\w|\?\?|\#\#|\^\s*\{""",
    re.VERBOSE,
)
"""What gives code other names, has it executed again, or makes it a function without a name."""
_NAMING = re.compile(r"_Pragma.*?\b(?:weak|redefine_extname)\b", re.DOTALL)
_LIBRARY = re.compile(
    r"<(?:assert|ctype|errno|float|inttypes|iso646|limits|stdalign|stdarg|stdbool|stddef|stdint|stdio|stdlib|string)\.h>"
)


class _Loop(NamedTuple):
    """From where to where a loop stands, where its head ends, and whether that is executed once more than the body.

    Where the end of one that is open is, is not clear: it is taken to go on to the end of its function.
    """

    start: int
    head: int
    end: int
    has_test: bool
    is_open: bool


class _Function(NamedTuple):
    """A block of a text: its name if a function's, its begin and end, and its loops, outer ones first, if plain."""

    name: str
    start: int
    end: int
    loops: tuple[_Loop, ...] | None


class _Source(NamedTuple):
    """A text without comments, strings and directives; its directives; and its blocks that stand in no other.

    What stands in ``repeated`` a macro may have executed more than once.
    """

    code: str
    directives: str
    functions: tuple[_Function, ...]
    repeated: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class SourceCounts:
    """The numbers for one call of the function ``entry``; the facts that they rest on are added to ``used``."""

    asserted: Asserted
    parameters: Mapping[str, int]
    entry: str
    used: dict[str, Fact] = field(default_factory=dict)
    _known: dict[str, int | None] = field(default_factory=dict)

    def of_place(self, file: str, offset: int) -> int | None:
        """How often what stands at ``offset`` of ``file`` is executed at most; None where it does not follow."""
        source = self._sources.get(file)
        around = [one for one in source.functions if one.start < offset < one.end] if source else []
        if source is None or len(around) != 1:
            return None
        executed = self._calls(around[0].name)
        if executed == 0:
            return 0
        if around[0].loops is None or self._is_hidden(file, source, around[0]):
            return None
        if any(low < offset < high for low, high in source.repeated):
            return None
        for loop in around[0].loops:
            if loop.start <= offset <= loop.end:
                entries, executed = executed, self._rounds(file, source, loop, executed)
                if offset <= loop.head and loop.has_test:
                    executed = None if entries is None or executed is None else executed + entries
        return executed

    def of_loop(self, file: str, line: int) -> int | None:
        """How often the body of the one loop that begins in ``line`` of ``file`` is executed at most."""
        source = self._sources.get(file)
        own = [loop for loop in _loops_at(source, line) if not loop.is_open] if source else []
        return self.of_place(file, own[0].head + 1) if len(own) == 1 else None

    @property
    def _sources(self) -> Mapping[str, _Source]:
        """All of them; none where one is not plain, or the entry may call what is not there."""
        texts = self.asserted.sources or {}
        return _closed(tuple(sorted(texts.items())), self.entry) if len(self.asserted.by_line) == len(texts) else {}

    def _is_hidden(self, file: str, source: _Source, function: _Function) -> bool:
        """Whether a macro in the function may hold a loop."""
        first, last = line_at(source.code, function.start), line_at(source.code, function.end)
        return any(one.first_line <= last and first <= one.last_line for one in hidden_loops(self.asserted, file))

    def _rounds(self, file: str, source: _Source, loop: _Loop, entries: int | None) -> int | None:
        """The least that facts say of the executions of the body of a loop that is entered so often."""
        line = line_at(source.code, loop.start)
        if loop.is_open or len(_loops_at(source, line)) > 1:
            return None
        limits: list[tuple[int, Fact]] = []
        for fact in self.asserted.of("loop"):
            extent = None if "offset" in fact.content else loop_extent(self.asserted, fact)
            if extent is None or (extent.file, extent.first_line) != (file, line):
                continue
            for key, times in (("max", entries), ("total", None if "within" in fact.content else 1)):
                said = fact.expression(key)
                if said is not None and times is not None:
                    limits.append((max(0, value_of(said, self.parameters)) * times, fact))
        if not limits:
            return None
        least, fact = min(limits, key=lambda each: each[0])
        self.used[fact.where] = fact
        return least

    def _calls(self, name: str) -> int | None:
        """How often a function is called, the call of the entry among them."""
        if name not in self._known:
            self._known[name] = None  # where it calls itself
            self._known[name] = self._called(name)
        return self._known[name]

    def _called(self, name: str) -> int | None:
        defined = [one for source in self._sources.values() for one in source.functions if one.name == name]
        if len(defined) != 1 or name.startswith("_") or not name:
            return None
        word, total = re.compile(rf"\b{name}\b(\s*\()?"), int(name == self.entry)
        for file, source in self._sources.items():
            if word.search(source.directives):
                return None
            for found in word.finditer(source.code):
                times = self._at_site(file, source, found.start()) if found[1] else None
                if times is None:
                    return None
                total += times
        return total

    def _at_site(self, file: str, source: _Source, offset: int) -> int | None:
        """How often what looks like a call is executed; of a declaration, 0."""
        if any(one.start < offset < one.end for one in source.functions):
            return self.of_place(file, offset)
        before = source.code[max(source.code.rfind(mark, 0, offset) for mark in ";{}") + 1 : offset]
        # What stands behind the name of a parameter is executed where its function is called.
        return 0 if before.count("(") == before.count(")") and not re.search(r"[\[=]", before) else None


def _loops_at(source: _Source, line: int) -> list[_Loop]:
    """The loops that begin in a line."""
    found = [loop for one in source.functions for loop in one.loops or ()]
    return [loop for loop in found if line_at(source.code, loop.start) == line]


@lru_cache(maxsize=8)
def _closed(texts: tuple[tuple[str, str], ...], entry: str) -> Mapping[str, _Source]:
    """The sources by file; none where one is not plain, or includes, or the entry may call, what is not there."""
    by_macros = macro_texts(tuple(text for _, text in texts))
    read = ((file, _read(text, by_macros)) for file, text in texts if file.endswith((".c", ".h")))
    sources = {file: source for file, source in read if source is not None}
    included = {name for source in sources.values() for name in _INCLUDE.findall(source.directives)}
    there = {f'"{PurePath(file).name}"' for file, _ in texts}
    defined: dict[str, set[str]] = {}
    for source in sources.values():
        for found in _DEFINE.finditer(source.directives):
            defined.setdefault(found[1], set()).update(_WORD.findall(found[2]))
        for one in source.functions:
            defined.setdefault(one.name, set()).update(_WORD.findall(source.code[one.start : one.end]))
    macros = {found[1] for source in sources.values() for found in _DEFINE.finditer(source.directives)}
    calls = {found for one in sources.values() for text in one[:2] for found in _CALLED.findall(text)}
    waiting, seen = [entry], set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        if name not in defined:
            return {}
        inside = {word for word in defined[name] if word in calls or word in macros} - (_NO_CALLS - macros) - seen
        waiting += sorted(word for word in inside if not word.startswith("__builtin_"))
    plain = all(name in there or _LIBRARY.fullmatch(name) for name in included)
    return sources if plain and len(sources) == len(texts) else {}


def _read(text: str, by_macros: MacroTexts) -> _Source | None:
    plain = without_linkage(blanked(text))
    code = DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), plain)
    if _UNREAD.search(plain) or _NAMING.search(text.replace("\\\n", "")) or re.search(r"[\\#]", code):
        return None
    if not _is_whole(plain, code) or not _is_nested(code):
        return None
    found = directives(text)
    if not all(_NAMED.match(one) for one in found):
        return None
    functions, offset = list[_Function](), 0
    while (start := code.find("{", offset)) >= 0:
        offset = matching(code, start, "{", "}")
        word = _head_word(code, start)
        name = word if word.isidentifier() else ""
        functions.append(_Function(name, start, offset, _loops(code, start, offset, by_macros) if name else None))
    spans = [span for one in functions for span in repeated_spans(code, one.start, one.end, by_macros.repeating)]
    return _Source(code, "\n".join(found), tuple(functions), tuple(spans))


def _is_nested(code: str) -> bool:
    """Whether each parenthesis is closed in the block in which it is opened: a macro may leave out what it is given."""
    opened = list[str]()
    for mark in re.findall(r"[(){}]", code):
        if mark in "({":
            opened.append(mark)
        elif not opened or opened.pop() + mark not in {"()", "{}"}:
            return False
    return not opened


def _is_whole(plain: str, code: str) -> bool:
    """Whether braces pair, in each branch of an ``#if`` by itself, which holds whole statements, and in each macro.

    And whether nothing is included in a block, as that text would have no function.
    """
    floors, depth, last = [0], 0, 0
    for found in DIRECTIVE.finditer(plain + "\n#endif"):  # one more, so that all of the text stands before one
        marks = re.findall(r"[{}]", code[last : found.start()])
        depths = [depth, *accumulate((1 if mark == "{" else -1 for mark in marks), initial=depth)]
        depth, last = depths[-1], found.end()
        if min(depths) < floors[-1]:
            return False
        word = found[0].strip(" \t#")
        if (word.startswith("define") and not _is_a_part(found[0])) or (depth and word.startswith(("inc", "imp"))):
            return False
        if not word.startswith(("if", "el", "end")):
            continue
        if code[: found.start()].rstrip()[-1:] not in {"", ";", "{", "}"}:
            return False
        if word.startswith("if"):
            floors.append(depth)
        elif depth != floors[-1]:
            return False
        elif word.startswith("end"):
            floors.pop()
        if not floors:
            return last > len(code)
    return False


def _is_a_part(macro: str) -> bool:
    """Whether what stands in a macro leaves nothing open that goes on behind its use."""
    words = _WORD.findall(macro)
    pairs = macro.count("{") == macro.count("}") and macro.count("(") == macro.count(")")
    return pairs and words.count("do") == words.count("while") and "else" not in words


def _head_word(code: str, brace: int) -> str:
    """The word before the parentheses in front of a brace; empty if there are none.

    If what stands there is the end of a declarator, or of a function without a name, that.
    """
    depth, end = 0, len(code[:brace].rstrip())
    for offset in range(end - 1, -1, -1):
        depth += (code[offset] == ")") - (code[offset] == "(")
        if depth == 0:
            before = code[:offset].rstrip() if offset < end - 1 else ""
            word = re.search(r"(?:\w+|[])^])$", before[-_LONGEST_WORD:])
            return word[0] if word else ""
    return ""


def _loops(code: str, start: int, end: int, by_macros: MacroTexts) -> tuple[_Loop, ...] | None:
    """The loops of a body; None where it has jumps or functions of its own, or a loop is not plain."""
    inner = (_head_word(code, found.start()) for found in re.compile("{").finditer(code, start + 1, end))
    if re.compile(r"\bgoto\b").search(code, start, end) or not {*inner} <= _BLOCKS:
        return None
    loops, tails = list[_Loop](), set[int]()
    for found in _LOOP.finditer(code, start, end):
        if found.start() in tails:
            continue
        is_do, head = found[1] == "do", found.end() - 1
        if not is_do:
            if code[found.end() :].lstrip()[:1] != "(":
                return None
            head = matching(code, code.index("(", found.end()), "(", ")")
        brace, simple = re.compile(r"\s*\{").match(code, head + 1), _simple(code, head + 1, by_macros)
        last = matching(code, brace.end() - 1, "{", "}") if brace else simple.end() - 1 if simple else end
        if is_do:
            tail = re.compile(r"\s*(while)\s*\(").match(code, last + 1) if brace else None
            if tail is None:
                return None
            tails.add(tail.start(1))
            last = matching(code, tail.end() - 1, "(", ")")
        loops.append(_Loop(found.start(), head, last, has_test=not is_do, is_open=not brace and not simple))
    return tuple(loops)


def _simple(code: str, start: int, by_macros: MacroTexts) -> re.Match[str] | None:
    """The statement that begins at ``start``, if it ends where it seems to: no macro in it may end it before."""
    found = _SIMPLE.match(code, start)
    if found is None or found[0].count("(") != found[0].count(")"):
        return None
    return found if by_macros.ending.isdisjoint(_WORD.findall(found[0])) else None
