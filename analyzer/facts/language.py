"""What people say of loops, paths and memory: the kinds of facts.

Words: flow fact, assumption (docs/explanation/glossary.md).

*Soundness:* a fact is an assumption. Nothing here or elsewhere in the analyzer decides that one is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from wcet_probe.analyzer.facts.expressions import Expression
from wcet_probe.errors import UsageError


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a function: exactly one of ``name`` (of a loop or point), ``line`` and ``offset`` (bytes) is given.

    ``file`` tells source functions of the same name apart, and may be None where there is one only.
    """

    function: str
    file: str | None = None
    name: str | None = None
    line: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        if self.offset is not None:
            return f"{self.function}+{self.offset:#x}"
        return f"{self.name} of {self.function}" if self.line is None else f"line {self.line} of {self.function}"


@dataclass(frozen=True, slots=True)
class LoopFact:
    """How often a loop's body runs, see `BoundFact`. Of ``maximum``, ``minimum`` and ``total`` one at least is given.

    Attributes:
        where: file and line of the fact, for messages and results.
        place: the loop; by offset it is a loop of the binary, whose header the numbers then speak of.
        maximum, minimum: executions of the body for each entry.
        total: executions of the body in one call of the analysed entry, or for each entry of the loop ``within``.
        within: label of an outer loop, ``label`` or ``function:label``.
        because: why it holds.
        sha256: of the source function, by offset of the binary function; empty where it was not given.
        optional: whether the compiler may have removed the loop, so that there is none in the binary.
    """

    where: str
    place: Place
    maximum: Expression | None
    minimum: Expression | None
    total: Expression | None
    within: str | None
    because: str
    sha256: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Pointee:
    """What a pointer points to: ``offset`` bytes behind the start of the object or function ``symbol``."""

    symbol: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.symbol} + {self.offset:#x}" if self.offset else self.symbol


@dataclass(frozen=True, slots=True)
class ArgumentFact:
    """What an argument at the analysed entry is: its ``index`` from 0, or the ``register`` that holds it.

    It is a number from ``minimum`` to ``maximum``, or the address of ``points_to``, for which these two mean nothing.
    """

    where: str
    function: str
    index: int | None
    register: str | None
    minimum: Expression
    maximum: Expression
    because: str
    points_to: Pointee | None = None


@dataclass(frozen=True, slots=True)
class RecursionFact:
    """At most ``max_depth`` calls of a recursive function are open at a time, or there are ``max_calls`` in all."""

    where: str
    place: Place
    max_depth: Expression | None
    max_calls: Expression | None
    because: str
    sha256: str


@dataclass(frozen=True, slots=True)
class CallsFact:
    """The functions that an indirect call can reach."""

    where: str
    place: Place
    targets: tuple[str, ...]
    because: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ThroughFact:
    """The functions that calls through a member of a structure can reach: ``through`` is ``STRUCTURE.MEMBER``."""

    where: str
    through: str
    targets: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class GivenBoundFact:
    """The bound of the binary function ``function`` is that of ``document``, a file of ``wcet-probe bound --json``."""

    where: str
    function: str
    document: str
    because: str


@dataclass(frozen=True, slots=True)
class InfeasibleFact:
    """A place that is never executed."""

    where: str
    place: Place
    because: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FlowTerm:
    """``weight`` times executions of something in one call of the analysed entry.

    Attributes:
        kind: of a statement (``point``), of the conditional branches on its line (``branch``), of an ``if`` whose
            condition holds (``then``), of a loop's body.
        place: its function and name.
        weight: a whole number.
        sha256: hash of the function that ``place`` is in; empty where it was not given.
    """

    kind: Literal["branch", "loop", "point", "then"]
    place: Place
    weight: Expression
    sha256: str

    def __str__(self) -> str:
        return f"{self.weight} * {self.kind} {self.place}"


@dataclass(frozen=True, slots=True)
class FlowFact:
    """The sum of ``terms`` is at most ``maximum`` in one call of the analysed entry.

    With ``for_each_call`` it is so in each call of the binary function that ``place`` names, its callees included.
    With ``optional`` it is left out where one of its points cannot be counted.
    """

    where: str
    place: Place
    terms: tuple[FlowTerm, ...]
    maximum: Expression
    because: str
    for_each_call: bool = False
    optional: bool = False


Visit = Literal["first", "again"]


@dataclass(frozen=True, slots=True)
class PointerFact:
    """The part of an address of which nothing is known is ``remainder`` modulo ``multiple_of``, a power of two.

    Attributes:
        remainder: None for 0.
        functions: source functions whose accesses it speaks of, with their hashes; none for those that no other
            pointer fact names.
        first_set, sets: the address is in these sets of the data cache; or None.
        symbol: the address is in the object of this name; or None.
        visit: ``again``: the address is in a line that the call has loaded from before, by an access that another
            pointer fact calls ``first``, and has not stored to since; or None.
        visit_line_bytes: largest line of which that holds, for ``again``; or None.
        lines, lines_per_set: most different lines that these addresses are in during one call of the analysed entry,
            and most of them in one cache set; or None.
        line_changes: most of these accesses in one call of the analysed entry that are to another line than the data
            access before; or None.
    """

    where: str
    functions: Mapping[str, str]
    multiple_of: Expression
    first_set: Expression | None
    sets: Expression | None
    because: str
    lines: Expression | None = None
    lines_per_set: Expression | None = None
    symbol: str | None = None
    remainder: Expression | None = None
    visit: Visit | None = None
    visit_line_bytes: Expression | None = None
    line_changes: Expression | None = None


@dataclass(frozen=True, slots=True)
class WordFact:
    """The word of four bytes at ``offset`` of ``symbol`` is from ``minimum`` to ``maximum`` whenever it is loaded.

    With ``field`` it is that member of the object, as the debug information has it, and ``offset`` means nothing. With
    ``points_to`` it is that address, and ``minimum`` and ``maximum`` mean nothing.
    """

    where: str
    symbol: str
    offset: Expression
    minimum: Expression
    maximum: Expression
    because: str
    field: str = ""
    points_to: Pointee | None = None

    @property
    def place(self) -> str:
        """The word, in words."""
        return f"{self.symbol}.{self.field}" if self.field else f"{self.symbol} + {self.offset}"


@dataclass(frozen=True, slots=True)
class Lemma:
    """What is taken as given of the heap.

    ``check`` is one of `file.CHECKS`, ``loops`` names ``function:label``.
    """

    where: str
    id: str
    statement: str
    because: str
    check: str
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a file, and the ``parameters`` that it declares beside those of the run."""

    file: str = ""
    loops: tuple[LoopFact, ...] = ()
    arguments: tuple[ArgumentFact, ...] = ()
    recursions: tuple[RecursionFact, ...] = ()
    calls: tuple[CallsFact, ...] = ()
    through: tuple[ThroughFact, ...] = ()
    given: tuple[GivenBoundFact, ...] = ()
    infeasible: tuple[InfeasibleFact, ...] = ()
    flows: tuple[FlowFact, ...] = ()
    pointers: tuple[PointerFact, ...] = ()
    words: tuple[WordFact, ...] = ()
    lemmas: tuple[Lemma, ...] = ()
    parameters: Mapping[str, Expression] = field(default_factory=lambda: MappingProxyType({}))


def merged_facts(parts: Sequence[Facts]) -> Facts:
    """The facts of several files as one; their parameters must not contradict each other.

    Raises:
        UsageError: two files declare a parameter with different values.
    """
    parameters: dict[str, Expression] = {}
    for part in parts:
        for name, expression in part.parameters.items():
            if parameters.setdefault(name, expression) != expression:
                raise UsageError(
                    f"{part.file}: [parameters] key {name}: another file declares it differently; rename it."
                )
    return Facts(
        file=", ".join(part.file for part in parts),
        loops=tuple(each for part in parts for each in part.loops),
        arguments=tuple(each for part in parts for each in part.arguments),
        recursions=tuple(each for part in parts for each in part.recursions),
        calls=tuple(each for part in parts for each in part.calls),
        through=tuple(each for part in parts for each in part.through),
        given=tuple(each for part in parts for each in part.given),
        infeasible=tuple(each for part in parts for each in part.infeasible),
        flows=tuple(each for part in parts for each in part.flows),
        pointers=tuple(each for part in parts for each in part.pointers),
        words=tuple(each for part in parts for each in part.words),
        lemmas=tuple(each for part in parts for each in part.lemmas),
        parameters=MappingProxyType(parameters),
    )
