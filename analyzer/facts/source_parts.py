"""What a C source holds that facts speak of: functions, loops, named statements, restrictions.

Words: flow fact, marker (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class SourceCounter:
    """A variable that an iteration of a loop changes once at most, by ``step``; nothing else in the loop changes it.

    Attributes:
        name, line: the variable, and where it is declared, which tells it from others of that name.
        step: what is added; of a pointer, in what it points to.
        in_test: whether the test changes it, which may be executed once more than the body.
        is_tested: whether each round of a ``for`` changes and tests it, so that no round is without code of that.
    """

    name: str
    line: int
    step: int
    in_test: bool = False
    is_tested: bool = False


@dataclass(frozen=True, slots=True)
class SourceLoop:
    """A loop of a source; lines count from 1.

    Attributes:
        file: the file's name.
        function: the function it stands in.
        first_line, last_line: its extent.
        header_lines: lines of the statement's head and, of ``do``, of its ``while``; of a backward ``goto``, of the
            label and the jumps.
        label: from a comment ``/* loop: NAME */``, or None.
        pragma: least and most executions of the body for each entry, from a pragma, or None.
        pragma_line: where that pragma stands, or 0.
        test_first: whether its test may be executed once more than its body: not so where there is no test in front.
        left_inside: whether it may be left within its body, in a round that is not executed to its end.
        has_parts: whether its test may be of several, of which the last ones are not always executed.
        number: its place among the loops of the file, from 0, which tells loops on one line apart.
        counters: variables that count its iterations.
    """

    file: str
    function: str
    first_line: int
    last_line: int
    header_lines: tuple[int, ...]
    label: str | None = None
    pragma: tuple[int, int] | None = None
    pragma_line: int = 0
    test_first: bool = True
    left_inside: bool = False
    has_parts: bool = False
    number: int = 0
    counters: tuple[SourceCounter, ...] = ()

    def __contains__(self, line: int) -> bool:
        return self.first_line <= line <= self.last_line

    def __str__(self) -> str:
        return f"the loop of {self.function} at {self.file}:{self.first_line}"


@dataclass(frozen=True, slots=True)
class SourceFunction:
    """A function's definition; ``sha256`` is over its tokens, without comments, white space and pragmas.

    ``calls`` are the names of what it calls, macros among them, ``names`` all that it speaks of, and ``variables`` what
    it declares, parameters among them, as often as it does. ``is_void`` tells that it gives back nothing, ``switches``
    that it has a ``switch`` or is not understood, and ``computed`` are the lines of calls of what is no name.
    """

    file: str
    name: str
    first_line: int
    last_line: int
    sha256: str
    calls: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    variables: tuple[str, ...] = ()
    is_void: bool = False
    switches: bool = False
    computed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceTest:
    """The condition of an ``if``: a comparison.

    Attributes:
        left, right: a variable's name, where the function declares one of that name, a number, or None of all else.
        operator: as in C; ``!=`` 0 of a variable alone.
        text: the condition as it is written.
    """

    left: str | int | None
    operator: str
    right: str | int | None
    text: str

    def of_variables(self, names: Collection[str]) -> SourceTest:
        """The condition, in which all names but these are no variables."""
        left, right = (None if isinstance(one, str) and one not in names else one for one in (self.left, self.right))
        return replace(self, left=left, right=right)

    def __str__(self) -> str:
        return f"`{self.text}`"


@dataclass(frozen=True, slots=True)
class SourcePoint:
    """A statement with a name; ``line`` is its first one, ``test`` the condition of an ``if`` that compares."""

    file: str
    function: str
    name: str
    line: int
    test: SourceTest | None = None


@dataclass(frozen=True, slots=True)
class SourceRestriction:
    """A pragma that relates sums of executions; ``text`` is what it says behind its name."""

    file: str
    function: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """What a source text holds, each in the order of the text; ``markers`` are points that pragmas name.

    ``calls`` are names and lines of calls by name, ``mentioned`` the names that stand elsewhere than there and where
    functions are declared, ``not_parsed`` the functions with code that the parser does not understand, and ``repeated``
    the names that are called in the arguments of a macro which may repeat them.
    """

    functions: tuple[SourceFunction, ...]
    loops: tuple[SourceLoop, ...]
    points: tuple[SourcePoint, ...]
    markers: tuple[SourcePoint, ...] = ()
    restrictions: tuple[SourceRestriction, ...] = ()
    calls: tuple[tuple[str, int], ...] = ()
    mentioned: frozenset[str] = frozenset()
    not_parsed: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()


def encloses(outer: SourceLoop, inner: SourceLoop) -> bool:
    """Whether ``inner`` is ``outer``, or all its lines are in that.

    Soundness: exact, but for loops that share their lines.
    """
    return outer.file == inner.file and outer.first_line <= inner.first_line <= inner.last_line <= outer.last_line
