"""The sources of an image: their functions, loops and macros, asked by the names and lines that the line table tells.

Words: line table (docs/explanation/glossary.md).

*Soundness:* none is claimed, see `source_loops`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath

from wcet_probe.analyzer.facts.source_headers import LIBRARY_HEADERS
from wcet_probe.analyzer.facts.source_loops import (
    leaving_macros,
    loop_macros,
    macro_calls,
    macro_words,
    parse_source,
    repeating_macros,
    unchanging_macros,
)
from wcet_probe.analyzer.facts.source_parts import SourceFile, SourceFunction, SourceLoop, SourcePoint
from wcet_probe.build.sources import included_files, renumbered_files
from wcet_probe.certificate.facts.plain_source import DIRECTIVE, blanked
from wcet_probe.certificate.facts.two_readings import reads_as_compiled
from wcet_probe.errors import UsageError, unknown_name

_NO_C = (".s", ".S", ".asm")


@dataclass(frozen=True, slots=True)
class SourceIndex:
    """The sources of an image by file name, as the line table calls the files; and the words of each macro's text.

    ``missing`` are the files that they include and that are not there, headers of the language's library left out.
    ``renames`` tells that a text speaks of the pragma ``redefine_extname``, wherever and however it is spelt.
    ``misread`` are those that compilers read otherwise, which may have calls that are not found.
    """

    files: Mapping[str, SourceFile]
    macros: Mapping[str, frozenset[str]] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    renames: bool = False
    misread: frozenset[str] = frozenset()
    _at: dict[tuple[str, int], list[SourceLoop]] = field(default_factory=dict, compare=False, repr=False)
    _loops: dict[tuple[str, str | None], list[SourceLoop]] = field(default_factory=dict, compare=False, repr=False)
    _names: dict[str, set[str]] = field(default_factory=dict, compare=False, repr=False)
    _reach: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    _inside: dict[str, list[SourceFunction]] = field(default_factory=dict, compare=False, repr=False)

    def loops(self, function: str, file: str | None = None) -> list[SourceLoop]:
        """The loops of ``function`` in the order of the text; of all its definitions, unless ``file`` is given."""
        if (function, file) not in self._loops:
            self._loops[function, file] = [
                loop
                for name, source in self.files.items()
                if file in (None, name)
                for loop in source.loops
                if loop.function == function
            ]
        return self._loops[function, file]

    def points(self, function: str, file: str | None = None) -> list[SourcePoint]:
        """The named points of ``function`` in the order of the text."""
        found = [point for name, source in self.files.items() if file in (None, name) for point in source.points]
        return [point for point in found if point.function == function]

    def function(self, name: str, file: str | None = None, line: int | None = None) -> SourceFunction:
        """The source function ``name``; ``file`` and ``line`` choose among several definitions.

        Raises:
            UsageError: there is none, or more than one.
        """
        everything = [function for source in self.files.values() for function in source.functions]
        found = [function for function in everything if function.name == name and file in (None, function.file)]
        if len(found) > 1 and line is not None:
            found = [function for function in found if function.first_line <= line <= function.last_line]
        if len(found) > 1:
            places = ", ".join(f"{function.file}:{function.first_line}" for function in found)
            raise UsageError(f"source function {name!r} is defined more than once ({places}); tell the file.")
        if not found:
            if not everything:
                raise UsageError(f"there is no source for {name!r}; name the folder of the sources, or an offset.")
            raise unknown_name(f"source function{f' of {file}' if file else ''}", name, {f.name for f in everything})
        return found[0]

    def may_call_itself(self, file: str, line: int) -> bool:
        """Whether the function at ``line`` may be called by what it calls: so where it calls what is not known."""
        known = self.files[file].functions if file in self.files else ()
        own = [each for each in known if line in range(each.first_line, each.last_line + 1)]
        if len(own) != 1:
            return True
        reached = self._reached(own[0].name)
        called = {name for source in self.files.values() for each in source.functions for name in each.calls}
        functions = {each.name for source in self.files.values() for each in source.functions}
        return own[0].name in reached or not reached & called <= functions

    def may_switch(self, function: str, file: str | None = None, line: int | None = None) -> bool:
        """Whether ``function`` may have a ``switch`` or a computed ``goto``, which macros that it speaks of may hold.

        Raises:
            UsageError: there is no such function, or more than one.
        """
        own = self.function(function, file, line)
        reached, todo = set[str](), [*own.names, *own.calls]
        while todo:
            name = todo.pop()
            inside = self.macros.get(name, frozenset()) - reached
            reached |= inside
            todo += inside
        return own.switches or not reached.isdisjoint({"switch", "goto"})

    def calls_itself(self, function: str, *, directly: bool = True) -> bool:
        """Whether ``function`` may be called by what it calls; by its own calls of itself only if ``directly``.

        Where a macro has its name, what the macro says may be its name, too.
        """
        own, called = {function, *self.macros.get(function, ())}, self._reached(function)
        if not directly:
            return any(not own.isdisjoint(self._reached(one)) for one in called - own)
        return not own.isdisjoint(called)

    def inside(self, function: str) -> list[SourceFunction]:
        """The function ``function`` and all that it may call, by their names, as far as they are in the sources."""
        if function not in self._inside:
            names = self._reached(function) | {function}
            functions = (one for source in self.files.values() for one in source.functions)
            self._inside[function] = [one for one in functions if one.name in names]
        return self._inside[function]

    def _reached(self, function: str) -> frozenset[str]:
        """The names of what ``function`` calls, and what that does; macros among them."""
        if function not in self._reach:
            called = self._called()
            reached, todo = set[str](), [function]
            while todo:
                inside = called.get(todo.pop(), set())
                todo += inside - reached
                reached |= inside
            self._reach[function] = frozenset(reached)
        return self._reach[function]

    def _called(self) -> Mapping[str, set[str]]:
        """By name of a function or macro what it may call itself."""
        if not self._names:
            for each in (one for source in self.files.values() for one in source.functions):
                self._names.setdefault(each.name, set()).update(each.calls, each.names & self.macros.keys())
            known = {*self._names, *self.macros}
            for name, words in self.macros.items():
                self._names.setdefault(name, set()).update(words & known)
        return self._names

    def loops_at(self, file: str, line: int) -> list[SourceLoop]:
        """The loops that ``line`` may belong to: those with their head on it, else the innermost around it."""
        found = self._at.get((file, line))
        if found is None:
            around = [loop for loop in self.files[file].loops if line in loop] if file in self.files else []
            heads = [loop for loop in around if line in loop.header_lines]
            least = min((loop.last_line - loop.first_line for loop in around), default=0)
            found = heads or [loop for loop in around if loop.last_line - loop.first_line == least]
            self._at[file, line] = found
        return found


_UNREAD = re.compile(r"\w(?:\\|\?\?/)[ \t]*\r?\n\w|^(?:\s|/\*(?:[^*]|\*(?!/))*\*/)*(?:%:|\?\?=)", re.MULTILINE)
"""What the parser does not read: a word that goes on in the next line, a directive that begins with a digraph."""


def _is_misread(text: str) -> bool:
    """Whether the parser may find other words or directives: also where a comment in one has an empty line."""
    if _UNREAD.search(text) or not reads_as_compiled(text):
        return True
    return any("\n\n" in directive for directive in DIRECTIVE.findall(blanked(text)))


def index_sources(sources: Mapping[str, str]) -> SourceIndex:
    """Loops and functions of ``sources``, texts by file name; of those with a path for a name, macros only.

    A file with lines that a ``#line`` gives to other code has another name there, which no line table has.

    Soundness: none is claimed, see `source_loops`.
    """
    return _indexed(tuple((file, text) for file, text in sources.items() if not file.endswith(_NO_C)))


@lru_cache(maxsize=32)
def _indexed(texts: tuple[tuple[str, str], ...]) -> SourceIndex:
    """Both operations of an allocator ask for the same sources; so many are remembered as programs are."""
    macros = loop_macros([text for _, text in texts])
    words = macro_words([text for _, text in texts])
    values = unchanging_macros([text for _, text in texts])
    leaving = leaving_macros([text for _, text in texts])
    misread = frozenset(PurePath(file).name for file, text in texts if _is_misread(text))
    moved = renumbered_files(dict(texts)) | misread
    repeating = repeating_macros([text for _, text in texts])
    named = [(f"{file} (#line)" if file in moved else file, text) for file, text in texts if "/" not in file]
    parsed = {
        file: parse_source(file, text, macros, words, values, leaving_by=leaving, repeating=repeating)
        for file, text in named
    }
    there = {PurePath(file).name for file, _ in texts}
    included = (one for _, text in texts for one in included_files(text))
    missing = frozenset(one for one in included if PurePath(one).name not in there and one not in LIBRARY_HEADERS)
    renames = any("redefine_extname" in text.replace("\\\r\n", "").replace("\\\n", "") for _, text in texts)
    return SourceIndex(parsed, macro_calls([text for _, text in texts]), missing, renames, misread)
