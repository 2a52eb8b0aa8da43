"""How often a place of a source is executed at most in one call of the analysed function, by the source alone.

Compilers leave out executions of a statement, move it, or make one of two; what the source says of it stays. A place
is executed once for each call of its function, times the counts of the loops around it; a function is called once for
each execution of the places that call it.

Words: flow fact, marker, loop bound (docs/explanation/glossary.md).

*Soundness:* the counts of loops are those of pragmas and facts, which are assumed. No number is told of a function that
calls itself or whose address is taken, nor where code is not parsed, a loop has no pragma, calls are hidden in macros,
or a header is not there; nor of one that a compiler may call where the source does not, as for a division or to copy.
That no code without its source calls what has one is asked elsewhere (`restrictions`), as it is of the binary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.analyzer.facts.binding import source_loop
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_loops import PASTING
from wcet_probe.analyzer.facts.source_parts import SourceFunction, SourceLoop
from wcet_probe.model.proof import Assumption

_HIDING = re.compile(
    r"_*(?:alias|ifunc|weakref|(?:builtin_)?(?:(?:sig)?setjmp|eh_return)|returns_twice|getcontext|vfork)_*|__(?:real|wrap)_.*"
)
"""Attributes and functions by which code is executed that no call names, or again; and names that the linker gives."""
_LIBRARY = frozenset(
    {"abort", "bcmp", "bcopy", "bzero", "exp10", "exp10f", "exp2", "exp2f", "fma", "fmaf", "fmod", "fmodf"}
    | {"fputc", "fputs", "fwrite", "ldexp", "ldexpf", "memccpy", "memchr", "memcmp", "memcpy", "memmove", "mempcpy"}
    | {"memset", "pow", "powf", "putc", "putchar", "puts", "sincos", "sincosf", "sincosl", "sqrt", "sqrtf", "stpcpy"}
    | {"strcat", "strchr", "strcmp", "strcpy", "strlen", "strncat", "strncmp", "strncpy", "strnlen", "strrchr"}
)
"""Functions of the library that compilers call for statements and other calls: ISO C 7.1.3 keeps their names for it."""


_BY_SUM = "every emulated run holds the sums against it that rest on it"


class UncountedError(Exception):
    """It does not follow from the sources how often a place is executed; the message says why."""


@dataclass(slots=True)
class SourceExecutions:
    """The numbers for calls of the function ``entry`` of the sources ``index``.

    Attributes:
        index, entry: as said above.
        most: executions of the body of a loop for each of its entries, beside what pragmas say.
        totals: executions of the body of a loop in one call of the entry.
        asked: the loops whose numbers were asked for.
    """

    index: SourceIndex
    entry: str
    most: Mapping[SourceLoop, int] = field(default_factory=dict)
    totals: Mapping[SourceLoop, int] = field(default_factory=dict)
    asked: list[SourceLoop] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def of_function(self, name: str) -> int:
        """How often the function ``name`` is called at most, the call of the entry among them.

        Raises:
            UncountedError: that does not follow.
        """
        self._function(name)
        self._function(self.entry)
        if self.index.missing:
            raise UncountedError(f"{min(self.index.missing)}, which is included, is not among the sources")
        if name.startswith("_") or name in _LIBRARY:
            raise UncountedError(f"{name} has a name that compilers may call where the source does not")
        if name in self._open:
            raise UncountedError(f"{name} calls itself")
        files = self.index.files
        if self.index.misread:
            raise UncountedError(f"compilers may read {min(self.index.misread)} otherwise")
        if any(name in one.repeated for one in files.values()):
            raise UncountedError(f"a macro may repeat a call of {name}")
        if any(name in one.mentioned for one in files.values()):
            raise UncountedError(f"the address of {name} may be taken")
        if any(name in words or PASTING in words for words in self.index.macros.values()):
            raise UncountedError(f"macros may call {name}")
        if self.index.renames:
            raise UncountedError(f"by the pragma redefine_extname {name} may be called by another name")
        self._open.append(name)
        sites = [(file, line) for file, one in files.items() for called, line in one.calls if called == name]
        total = sum((self.at(*site) for site in sites), int(name == self.entry))
        self._open.pop()
        return total

    def at(self, file: str, line: int, body: SourceLoop | None = None) -> int:
        """How often the statement at a line is executed at most; or the body of the loop ``body``, which begins there.

        Raises:
            UncountedError: that does not follow.
        """
        source = self.index.files.get(file)
        if source is None:
            raise UncountedError(f"{file} tells nothing by line")
        around = [one for one in source.functions if one.first_line <= line <= one.last_line]
        if len(around) != 1:
            raise UncountedError(f"{file}:{line} is in no function")
        (function,) = around
        if function.name in source.not_parsed:
            raise UncountedError(f"not all of {function.name} is understood")
        hiding = self._hiding()
        if hiding:
            raise UncountedError(f"{min(hiding)} may have code executed that no call names")
        executed = self.of_function(function.name)
        for loop in source.loops:  # those around others first
            is_before = function.first_line <= loop.first_line <= line
            # Of a loop in a macro, or that is not parsed, only the line is known where it begins.
            if not is_before or (line not in loop and loop.first_line < loop.last_line):
                continue
            limits = self._limits(loop, executed)
            if executed and (not limits or loop.first_line == loop.last_line):
                raise UncountedError(f"no pragma says how often the loop at {file}:{loop.first_line} is repeated")
            executed = min(limits, default=0) + executed * (line in loop.header_lines and loop != body)
        return executed

    def _hiding(self) -> set[str]:
        files = self.index.files.values()
        called = {name for one in files for name, _ in one.calls}
        defined = {function.name for one in files for function in one.functions}
        names = called.union(defined, *(one.mentioned for one in files))
        return {name for name in names if _HIDING.fullmatch(name)}

    def _limits(self, loop: SourceLoop, entries: int) -> list[int]:
        """What is said of the executions of the body of ``loop``, if it is entered so often."""
        self.asked.append(loop)
        said = [self.most[loop]] if loop in self.most else []
        # Whether the round that a `break` ends is counted, pragmas do not say.
        said += [loop.pragma[1] + loop.left_inside] if loop.pragma is not None else []
        return [entries * most for most in said] + ([self.totals[loop]] if loop in self.totals else [])

    def _function(self, name: str) -> SourceFunction:
        found = [one for source in self.index.files.values() for one in source.functions if one.name == name]
        if len(found) != 1:
            raise UncountedError(f"the sources have {len(found) or 'no'} functions {name}")
        return found[0]


def said_of_loops(
    facts: Facts, parameters: Mapping[str, int], index: SourceIndex
) -> tuple[dict[SourceLoop, int], dict[SourceLoop, int]]:
    """The least that facts say of the bodies of source loops: for each entry, and in all.

    Raises:
        UsageError: a fact speaks of no loop, or its expression has no value.
    """
    most: dict[SourceLoop, int] = {}
    totals: dict[SourceLoop, int] = {}
    for fact in facts.loops if facts.flows else ():
        told = [(most, fact.maximum), (totals, fact.total if fact.within is None else None)]
        for known, said in told if fact.place.offset is None else ():
            if said is not None:
                loop, number = source_loop(fact.where, fact.place, index), evaluate(said, parameters)
                known[loop] = min(number, known.get(loop, number))
    return most, totals


def counted_loops(facts: Facts, index: SourceIndex, asked: Sequence[SourceLoop]) -> Iterator[Assumption]:
    """The facts of loops that tell what sums take off, whether or not the binary has these loops.

    Raises:
        UsageError: a fact speaks of no loop.
    """
    for fact in facts.loops if asked else ():
        if fact.place.offset is None and source_loop(fact.where, fact.place, index) in asked:
            said = ", ".join(f"{name} {told}" for name, told in (("max", fact.maximum), ("total", fact.total)) if told)
            yield Assumption(f"fact {fact.where}", f"{fact.place}, by the source: {said}: {fact.because}", _BY_SUM)
