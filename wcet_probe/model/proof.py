"""The nouns of a proof: a bound, the loop bounds and assumptions that it rests on, its worst path, its certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

from wcet_probe.model.watched_loop import WatchedLoop


class Origin(StrEnum):
    """Where the bound of a loop comes from."""

    PROVED = "proved"
    FACT = "fact"
    PRAGMA = "pragma"


@dataclass(frozen=True, slots=True)
class LoopBound:
    """A loop of the binary in one call context, and how often it repeats at most.

    Attributes:
        name: of the loop in the certificates.
        function: the binary function.
        address: of the loop's header.
        context: addresses of the calls that lead to it.
        location: function, offset, source file and line, for people.
        file, line: source position of the header, or empty and 0.
        max: most executions of the header for each entry of the loop.
        total: most executions of the header for each entry of the enclosing loop, or of the function; None if only
            ``max`` is known.
        origin: where ``max`` comes from.
        expression: of a fact or pragma, as it is written; of a proof, the inequality that ends the loop.
        where: of a fact or pragma, its file and line.
        because: of a fact, why it holds.
    """

    name: str
    function: str
    address: int
    context: tuple[int, ...]
    location: str
    file: str
    line: int
    max: int
    total: int | None
    origin: Origin
    expression: str
    where: str
    because: str


@dataclass(frozen=True, slots=True)
class TypeBound:
    """A loop whose bound is the width of a type, and with it the bound of the function.

    Attributes:
        loop: its name in the certificates.
        location: of its header, for people.
        max: most executions of the header for each entry.
        rests_on: the values of which nothing is known, for people.
        remedy: the flow fact to add.
    """

    loop: str
    location: str
    max: int
    rests_on: str
    remedy: str


PROVED = "proved "
"""What the ids of facts begin with that are proved."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a bound takes as given: ``id``, what is assumed, and how it is checked (or that it is not)."""

    id: str
    statement: str
    check: str

    @property
    def is_proved(self) -> bool:
        """Whether it is a fact's alignment that is proved: what is taken as given is what its proof rests on."""
        return self.id.startswith(PROVED)


@dataclass(frozen=True, slots=True)
class PointerVerdict:
    """Whether the alignment that a fact asserts of pointers was proved, as far as that was asked.

    Attributes:
        where: the fact.
        is_proved: whether it follows from what the allocator's operations store.
        accesses: how many accesses of init, malloc and free rest on it, by call path.
        open_accesses: at how many instructions it is not proved.
        why_not: in words; empty where it is proved.
        lemmas: what the proof rests on, by id: lemmas and premises; empty where there is none.
        invariant: what the operations keep of the words that are followed there, in words; empty where nothing is told.
        by: how that was tried: ``induction`` or ``deduction``.
        sets_proved: whether the cache sets that the fact names are proved as well.
    """

    where: str
    is_proved: bool
    accesses: int
    open_accesses: int
    why_not: str = ""
    lemmas: tuple[str, ...] = ()
    invariant: str = ""
    by: str = "induction"
    sets_proved: bool = False


@dataclass(frozen=True, slots=True)
class IdleFact:
    """The fact at ``where`` speaks of the analysed code and has no effect on the bound; ``why`` says so in words."""

    where: str
    why: str


INITIAL_DATA = "--initial-data"
"""Where the fact stands that memory holds at entry what is told, if that has no effect."""


@dataclass(frozen=True, slots=True)
class LoopClaim:
    """A loop and the most executions of its header for each entry, whatever the context: to be held against runs.

    Attributes:
        loop: what is watched.
        max_header: the most executions.
        origin, where: as of a `LoopBound`.
        is_told: whether runs tell its rounds from executions of copies of its header. Others are not in a `Bound`.
    """

    loop: WatchedLoop
    max_header: int
    origin: Origin
    where: str
    is_told: bool = True


@dataclass(frozen=True, slots=True)
class FlowClaim:
    """A weighted sum of executions in one call of the entry is at most ``constant``: to be held against runs.

    Attributes:
        where: of the fact, its file and line.
        statement: what is claimed, in words.
        blocks: address of a block's first instruction and the weight of its executions.
        entries: name of a claimed loop and the weight of its entries.
        constant: the limit.
    """

    where: str
    statement: str
    blocks: tuple[tuple[int, int], ...]
    entries: tuple[tuple[str, int], ...]
    constant: int

    @property
    def loops(self) -> frozenset[str]:
        """Names of the loops that are entered, and of those whose headers the blocks are."""
        return frozenset({name for name, _ in self.entries} | {f"{address:#010x}" for address, _ in self.blocks})


@dataclass(frozen=True, slots=True)
class PathBlock:
    """A basic block on the worst path: executed ``executions`` times, ``cost`` instructions or cycles in all."""

    function: str
    context: tuple[int, ...]
    address: int
    end_address: int
    location: str
    instructions: int
    executions: int
    cost: int


@dataclass(frozen=True, slots=True)
class GraphBlock:
    """A basic block, call contexts put together; ``executions`` on the worst path, None where there is none."""

    function: str
    address: int
    end_address: int
    executions: int | None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """Control may go from the block at ``source`` to that at ``target``, call contexts put together.

    ``kind`` is ``fall``, ``jump``, ``call`` or ``return``; the last two lead to another function and back; or
    ``unwind``, a return that pops the frame of a caller and goes back for it; or ``resume``, one that goes elsewhere
    in the caller than behind the call, as a table there says. The functions are those of the two blocks; a fall or
    jump into another one is a tail call. ``executions`` as of a block.
    """

    source: int
    target: int
    kind: str
    source_function: str
    target_function: str
    executions: int | None


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Blocks and edges that can be reached, in order of addresses, with the counts of the worst path."""

    blocks: tuple[GraphBlock, ...] = ()
    edges: tuple[GraphEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessRange:
    """What the value analysis says of a data access: an invariant that every observation must meet.

    ``base`` is ``number`` (an absolute address), ``stack`` (an offset from the stack pointer at entry) or ``any``
    (either, and what is said is said of the absolute address); the address is ``low + k * stride`` for a ``k`` from 0
    to ``steps``, modulo 2**32.

    Attributes:
        address: of the instruction, in ``context``.
        place: ``static``, ``stack``, ``told`` (in ``sets``, as a flow fact says), or ``any``.
        sets: of the data cache that it may be in; None for any.
        visit: ``again``: the call has loaded from the line before, by an access that is a ``first`` one, and has not
            stored to it since, as a flow fact says; or empty.
        line_changes: a flow fact, and how many of the accesses that it speaks of may be to another line than the data
            access before, in the call; or None.
        is_one_line: whether it is to one cache line, as is proved, or assumed and told.
        lines: a flow fact, how many different lines the accesses that it speaks of may be to in the call, and how many
            of them may be in one cache set; or None.
        fact: the flow fact about pointers that any of this rests on; or empty.
        point: index in `Bound.points` of the block that it is said of; None for all that the instruction is in.
    """

    address: int
    context: tuple[int, ...]
    is_store: bool
    base: str
    low: int
    stride: int
    steps: int
    size_bytes: int
    place: str = "any"
    sets: frozenset[int] | None = None
    visit: str = ""
    line_changes: tuple[str, int] | None = None
    is_one_line: bool = True
    lines: tuple[str, int, int] | None = None
    fact: str = ""
    point: int | None = None


@dataclass(frozen=True, slots=True)
class WordClaim:
    """The word at ``address`` is from ``low`` to ``high`` whenever it is loaded, as the fact at ``where`` says."""

    where: str
    address: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Formula:
    """A bound in instructions as a constant and a sum of factors times expressions.

    Attributes:
        parameter: what was varied.
        constant: without any of ``terms``.
        terms: expression, as the flow facts write it, and its factor.
        samples: values of the parameter, each with the bound that was proved for it and that the formula gives.
    """

    parameter: str
    constant: Fraction
    terms: tuple[tuple[str, Fraction], ...]
    samples: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        parts = [str(self.constant), *(f"{factor} * ({text})" for text, factor in self.terms)]
        return " + ".join(parts)


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """What the value analysis says of a register where a block begins; ``base`` and numbers as in `AccessRange`."""

    address: int
    context: tuple[int, ...]
    register: str
    base: str
    low: int
    stride: int
    steps: int


class SavingStore(NamedTuple):
    """The instruction at ``address`` saves registers by those of its stores, in the order of their addresses."""

    address: int
    stores: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A proved upper bound of the WCET of one function.

    Attributes:
        entry: the analysed function.
        parameters: values of the parameters that flow facts speak of.
        instructions: no execution takes more, under the assumptions.
        cycles: likewise, each data access behind a cache taken as a miss.
        blocks: number of basic blocks, each call expanded.
        loops: every loop with its bound.
        assumptions: all that the bound rests on and that is not proved.
        worst_path: blocks of the worst path in instructions, in order of the code.
        points: address and context of each block that can be reached, copies of it by what led there apart; the entry
            is the first.
        accesses, registers: invariants of the data accesses, and of the registers at the entry of blocks.
        loop_claims, flow_claims: what every emulated run is held against, calls of a set-up included.
        certify, certify_callees: make ``certificates`` and ``callee_certificates``; many a question never reads them,
            and they cost as much as the proof.
        worst_path_cycles: as ``worst_path``, of the worst path in cycles; leaving a block is in its cost.
        unattributed_cycles: of the worst path in cycles, misses, single writes and write-backs that are limited over
            several blocks, so in no block's cost; None where there is no worst path.
        graph: what can be executed, with the counts of the worst path in instructions.
        words: what facts say of words in memory, for runs.
        idle_facts: facts about the analysed code that have no effect.
        by_type: the loops with no other bound than the width of a type, on which the numbers rest.
        summarised: functions that were analysed once by themselves, and not expanded where they are called.
        initial_data: what memory is assumed to hold at entry, by address, for runs.
        stack_pointer: its value at entry where that is assumed, for runs.
        pointer_facts: which facts about pointers are proved; empty where nobody asked.
        module: a module certificate of these proofs, where there is one.
        saving_stores: what saves registers, where it is assumed that no other store changes what is saved.
        point_edges: by index in ``points``, from where to where control may go; to None where the call returns.
        point_ends: first addresses behind the blocks of ``points``, where there are edges: code that belongs to two
            functions may be a block of each that ends elsewhere.
    """

    entry: str
    parameters: Mapping[str, int]
    instructions: int
    cycles: int
    blocks: int
    loops: tuple[LoopBound, ...]
    assumptions: tuple[Assumption, ...]
    worst_path: tuple[PathBlock, ...]
    points: tuple[tuple[int, tuple[int, ...]], ...] = field(repr=False)
    accesses: tuple[AccessRange, ...] = field(repr=False)
    registers: tuple[RegisterRange, ...] = field(repr=False)
    loop_claims: tuple[LoopClaim, ...] = field(repr=False)
    flow_claims: tuple[FlowClaim, ...] = field(repr=False)
    certify: Callable[[], tuple[str, ...]] = field(repr=False, compare=False)
    worst_path_cycles: tuple[PathBlock, ...] = field(default=(), repr=False)
    graph: FlowGraph = field(default=FlowGraph(), repr=False)
    unattributed_cycles: int | None = None
    words: tuple[WordClaim, ...] = field(default=(), repr=False)
    idle_facts: tuple[IdleFact, ...] = ()
    by_type: tuple[TypeBound, ...] = ()
    summarised: tuple[str, ...] = ()
    initial_data: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)
    point_edges: tuple[tuple[int, int | None], ...] = field(default=(), repr=False)
    point_ends: tuple[int, ...] = field(default=(), repr=False)
    pointer_facts: tuple[PointerVerdict, ...] = ()
    module: Mapping[str, Any] | None = field(default=None, repr=False)
    saving_stores: tuple[SavingStore, ...] = field(default=(), repr=False)
    stack_pointer: int | None = field(default=None, repr=False)
    certify_callees: Callable[[], tuple[tuple[str, ...], ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def callee_certificates(self) -> tuple[tuple[str, ...], ...]:
        """Such texts of each of the callees that are not expanded, those of inner ones first, if there are any."""
        return self.certify_callees()

    @property
    def certificates(self) -> tuple[str, ...]:
        """Canonical texts, of the instructions and of the cycles, that `wcet_probe.certificate` checks."""
        return self.certify()


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact that would help, if it is true: ``lines`` of its table, and what it does, found by trial."""

    lines: tuple[str, ...]
    effect: str


@dataclass(frozen=True, slots=True)
class Units:
    """A bound in both units."""

    instructions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class FactEffect:
    """One fact, and the bound that is proved without it; None where none can be proved.

    Attributes:
        where: file and line of the fact.
        kind: the table that it stands in, such as ``loop``.
        without: the bound without it.
    """

    where: str
    kind: str
    without: Units | None


@dataclass(frozen=True, slots=True)
class FactEffects:
    """Bounds with all facts, with loop facts only and with none, None where none can be proved.

    ``facts`` has the effect of each fact, or is None where that was not asked for.
    """

    all: Units
    loop_facts_only: Units | None
    no_facts: Units | None
    facts: tuple[FactEffect, ...] | None = None
