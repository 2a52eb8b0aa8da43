"""Pragmas ``marker`` and ``flowrestriction`` of the TACLeBench suite: sums of executions in one call of the entry.

``flowrestriction 1*inside <= 6*outside`` relates markers, which name the statements behind them, and calls of
functions. Such a pragma is dropped, and it is said why, wherever it is not clear which code it speaks of: where the
function that a marker stands in has several copies or none, where the statement has no block of its own or several, or
nothing in it that the compiler must leave where it is; and in a loop, which may be unrolled, where that is not one
branch or one call. On the side that must not be less a branch tells nothing, nor does in a loop a call of what only
computes: in a copy of the statement its operands may be constants, and then it is left out (`_Places._lasts`). A name
that is no function's may lack the prefix that the suite's functions have, the name of the pragma's file: then that
function is meant, and the assumption says so.

Words: flow restriction, marker, linear constraint (docs/explanation/glossary.md).

*Soundness:* executions of what is on the right are counted at least as often, and of what is on the left at most as
often, as the source executes them: a store, a call or a branch of the source is executed where its line says, and
nowhere else, but for those that need not last; a function that is called is entered at its first block, unless it is
inlined, which counts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from wcet_probe.analyzer.facts.binding import Analysed
from wcet_probe.analyzer.facts.source_match import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceFunction, SourcePoint, SourceRestriction
from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.pcode.lift import LiftedInstruction
from wcet_probe.analyzer.pcode.skipping import may_be_skipped
from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.build.image import require_symbol, source_copies
from wcet_probe.model.proof import Assumption, FlowClaim, IdleFact

_TERM = re.compile(r"(?:([0-9]+)\s*\*\s*)?([A-Za-z_][\w.-]*)")
_LIBRARY = re.compile(
    r"_*(?:mem|str|stp|wcs|wmem|bcopy|bzero|f?put|fwrite|free|\w*(?:printf|alloc|sin|cos|tan|sqrt|pow|exp|log|gamma|mod)\w*$)"
)
"""Functions of C's library that a compiler knows and that may store, were it ``errno`` only."""
_CHECKED = "every emulated run holds the sum of each call against it"


@dataclass(frozen=True, slots=True)
class Restricted:
    """What one pragma comes to: constraints, what runs are held against, and what is assumed."""

    constraints: tuple[LinearConstraint, ...]
    claims: tuple[FlowClaim, ...]
    assumption: Assumption


@dataclass(frozen=True, slots=True)
class Unexpanded:
    """The functions that are executed in calls that are not expanded, by their names in the binary.

    Attributes:
        functions: all of them.
        counted: the auxiliary variable and the edges that count all executions of one there together, for those that
            have them.
    """

    functions: frozenset[str] = frozenset()
    counted: Mapping[str, tuple[str, tuple[Edge, ...]]] = field(default_factory=dict)


def named_function(index: SourceIndex, one: SourceRestriction, name: str) -> SourceFunction | None:
    """The one function that a pragma means by ``name``."""
    functions = [each for source in index.files.values() for each in source.functions]
    found = [each for each in functions if each.name == name]
    found = found or [each for each in functions if each.name == f"{PurePath(one.file).stem}_{name}"]
    return found[0] if len(found) == 1 else None


class _DroppedError(Exception):
    """It is not clear what a pragma speaks of; the message says why."""


def restrictions(
    values: Values, index: SourceIndex, analysed: Analysed, unexpanded: Unexpanded
) -> Iterator[Restricted | IdleFact]:
    """What the pragmas of the sources of the analysed code say; of each that is dropped, why.

    Args:
        values: of the analysed code.
        index: its sources.
        analysed: the same code, and the image.
        unexpanded: what is not in the graph: a sum would lack it.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module.
    """
    told = [one for source in index.files.values() for one in source.restrictions]
    lines = _lines(values, analysed) if told else set()
    found = [one for one in told if any(file == one.file and _is_in(index, one, line) for file, line in lines)]
    if not found:
        return
    places = _Places(values, index, analysed, unexpanded)
    for number, one in enumerate(found):
        where = f"{one.file}:{one.line}"
        try:
            yield _restricted(places, one, where, number)
        except _DroppedError as error:
            yield IdleFact(where, f"{error}; it is left out")


def _lines(values: Values, analysed: Analysed) -> set[tuple[str, int]]:
    addresses = (one.address for i in values.states for one in values.graph.points[i].block.instructions)
    return {line for address in addresses if (line := analysed.image.lines.find(address))}


def _is_in(index: SourceIndex, one: SourceRestriction, line: int) -> bool:
    functions = index.files[one.file].functions
    return any(each.name == one.function and each.first_line <= line <= each.last_line for each in functions)


def _restricted(places: _Places, one: SourceRestriction, where: str, number: int) -> Restricted:
    sides = re.split(r"(<=|>=|=)", one.text)
    if len(sides) != 3:
        raise _DroppedError(f"{one.text!r} is no relation of two sums")
    left, relation, right = _sum(sides[0]), sides[1], _sum(sides[2])
    ways = {"<=": [(left, right)], ">=": [(right, left)], "=": [(left, right), (right, left)]}[relation]
    statement = f"in one call of the analysed function, {' '.join(one.text.split())}"
    meant = {name: found.name for _, name in (*left, *right) if (found := named_function(places.index, one, name))}
    statement += "".join(f"; {name} is taken for {known}" for name, known in sorted(meant.items()) if name != known)
    constraints, claims = [], []
    for row, (less, more) in enumerate(ways):
        weights: dict[int, int] = {}
        variables: dict[str, int] = {}
        edges: dict[Edge | None, int] = {}
        for sign, terms in ((1, less), (-1, more)):
            for factor, said in terms:
                name = meant.get(said, said)
                variable = places.variable(name, is_upper=sign < 0)
                if variable is not None:
                    variables[variable[0]] = variables.get(variable[0], 0) + sign * factor
                    edges |= {edge: edges.get(edge, 0) + sign * factor for edge in variable[1]}
                for address in places.blocks(name, is_upper=sign < 0):
                    weights[address] = weights.get(address, 0) + sign * factor
        points = places.values.states
        own = ((i, weights.get(places.values.graph.points[i].block.address, 0)) for i in sorted(points))
        name = f"restriction:{2 * number + row}"
        counted = tuple((i, weight) for i, weight in own if weight)
        constraints.append(LinearConstraint(name, counted, tuple(edges.items()), 0, tuple(sorted(variables.items()))))
        claims.append(FlowClaim(where, statement, tuple(sorted((a, w) for a, w in weights.items() if w)), (), 0))
    return Restricted(tuple(constraints), tuple(claims), Assumption(f"pragma {where}", statement, _CHECKED))


def _sum(text: str) -> Sequence[tuple[int, str]]:
    terms = [_TERM.fullmatch(part.strip()) for part in text.split("+")]
    if not all(terms):
        raise _DroppedError(f"{text.strip()!r} is no sum of markers and functions")
    return [(int(term[1] or 1), term[2]) for term in terms if term]


class _Places:
    """The blocks of markers and functions in the analysed code."""

    def __init__(self, values: Values, index: SourceIndex, analysed: Analysed, unexpanded: Unexpanded) -> None:
        self.values, self.index, self._analysed, self._unexpanded = values, index, analysed, unexpanded
        self._copies = source_copies(analysed.image, {*analysed.functions, *unexpanded.functions})

    def variable(self, name: str, *, is_upper: bool) -> tuple[str, tuple[Edge, ...]] | None:
        """What counts the executions of the function ``name`` that are no points of the graph; None without any.

        Raises:
            _DroppedError: it is executed in calls that are not expanded, and nothing counts it there.
        """
        if name not in self._unexpanded.functions:
            return None
        variable = self._unexpanded.counted.get(name)
        if variable is None or is_upper:
            raise _DroppedError(f"some calls are not expanded, whose executions of {name} the sum would lack")
        return variable

    def blocks(self, name: str, *, is_upper: bool) -> Collection[int]:
        """The block that counts ``name``; none of a function that is not there, on the side that must not be less.

        Raises:
            _DroppedError: it is not clear which it is.
        """
        markers = [one for source in self.index.files.values() for one in source.markers if one.name == name]
        functions = [one for source in self.index.files.values() for one in source.functions if one.name == name]
        if len(markers) + len(functions) != 1:
            number = "no" if not markers + functions else "more than one"
            raise _DroppedError(f"there is {number} marker or function {name!r}")
        if functions:
            return self._entry(functions[0], is_upper=is_upper)
        return [self._marked(markers[0], is_upper=is_upper)]

    def _entry(self, function: SourceFunction, *, is_upper: bool) -> Collection[int]:
        name, points = function.name, self.values.graph.points
        firsts = [i for i in self.values.states if self._is_entry(i, function.name)]
        inside = {i for edge in self.values.edges for i in (edge.target,) if self._is_round(edge.source, edge.target)}
        if inside & set(firsts):
            raise _DroppedError(f"{function.name} has become a loop that starts at its first block")
        if is_upper and (not firsts or self._copies.get(function.name, 0) != 1):
            raise _DroppedError(f"{function.name} is inlined, or is not called")
        first = require_symbol(self._analysed.image, name).address if name in self._unexpanded.counted else None
        return {points[i].block.address for i in firsts} | ({first} if first is not None else set())

    def _is_entry(self, index: int, name: str) -> bool:
        point = self.values.graph.points[index]
        return point.function.name == name and point.block.address == point.function.address

    def _is_round(self, source: int, target: int) -> bool:
        """Whether an edge stays in one call."""
        points = self.values.graph.points
        return target >= 0 and points[source].context == points[target].context

    def _marked(self, marker: SourcePoint, *, is_upper: bool) -> int:
        """The block of a marker's statement.

        *Soundness:* blocks of it that follow each other over a call and its return, and not else, are executed equally
        often; the first is taken.
        """
        name, copies = marker.name, self._copies.get(marker.function, 0)
        if marker.function in self._unexpanded.functions:
            raise _DroppedError(f"some calls are not expanded, whose executions of marker {name!r} the sum would lack")
        if copies != 1:
            raise _DroppedError(f"{marker.function}, in which marker {name!r} stands, has {copies} copies in the code")
        found: dict[int, Block] = {}
        acting: dict[int, LiftedInstruction] = {}
        calls = set[int]()
        for index in sorted(self.values.states):
            block = self.values.graph.points[index].block
            own = [one for one in block.instructions if self._is_at(one.address, marker)]
            if own:
                found[block.address] = block
                acting |= {one.address: one for one in own if _stays(one, block)}
                calls |= {one.address for one in own if _calls(one)}
        firsts = {address for address, block in found.items() if not self._is_behind_call(block, found)}
        if len(firsts) != 1:
            number = "no block" if not found else f"{len(firsts)} blocks"
            raise _DroppedError(f"the statement of marker {name!r} has {number} of its own")
        if not acting:
            raise _DroppedError(f"nothing in the statement of marker {name!r} stores, calls or branches in any case")
        loops = self.index.files[marker.file].loops
        if any(marker.line in loop.header_lines for loop in loops):
            raise _DroppedError(f"the statement of marker {name!r} is a loop, or on the line of one")
        deciding = {address for address, one in acting.items() if not _stores(one)}
        is_one = len(deciding) == 1 and (len(acting) == 1 or deciding == calls)
        is_in_loop = any(marker.line in loop for loop in loops) or self._is_in_loop(firsts)
        if is_in_loop and not is_one:
            raise _DroppedError(f"the loop around marker {name!r} may be unrolled, and nothing in its statement tells")
        if is_upper and not (any(map(self._lasts, calls)) if is_in_loop else calls or acting.keys() - deciding):
            raise _DroppedError(f"a copy of the statement of marker {name!r} may be without its branch or call")
        return firsts.pop()

    def _is_in_loop(self, addresses: Collection[int]) -> bool:
        points = self.values.graph.points
        nodes = {i for i in self.values.states if points[i].block.address in addresses}
        return any(
            shape.loop.nodes & nodes and points[shape.loop.header].context in {points[i].context for i in nodes}
            for shape in loop_shapes(self.values)
        )

    def _lasts(self, call: int) -> bool:
        """Whether each copy of a statement has its own call, if it has the one at ``call``.

        *Soundness:* a compiler folds or shares a call of what only computes, of its own library, and of what it knows
        as C's; or has it inlined in one copy. It keeps a call of another function of the source that stores.
        """
        points, told = self.values.graph.points, self.values.accesses
        inside = [i for i in self.values.states if call in points[i].context]
        called = {points[i].function.name for i in inside if points[i].context[-1] == call}
        functions = {one.name for source in self.index.files.values() for one in source.functions}
        return all(
            name in functions and self._copies.get(name) == 1 and not _LIBRARY.match(name) for name in called
        ) and any(one.is_store and one.base is Base.NUMBER for i in inside for one in told.get(i, ()))

    def _is_at(self, address: int, marker: SourcePoint) -> bool:
        return self._analysed.image.lines.find(address) == (marker.file, marker.line)

    def _is_behind_call(self, block: Block, others: dict[int, Block]) -> bool:
        """Whether control comes to ``block`` only from a call at the end of another block of the same statement."""
        calls = [one for one in others.values() if one.falls_to == block.address and one.calls and not one.falls]
        points = self.values.graph.points
        jumps = [
            edge
            for edge in self.values.edges
            if edge.target >= 0
            and points[edge.target].block.address == block.address
            and points[edge.source].context == points[edge.target].context
            and not self.values.graph.is_summary(edge)
        ]
        return bool(calls) and not jumps


def _stays(instruction: LiftedInstruction, block: Block) -> bool:
    """Whether the compiler must leave the instruction where the source has it, and it is executed in any case."""
    opcodes = {op.opcode for op in instruction.ops}
    is_last = instruction.address == block.last_address
    branches = is_last and ((block.falls and bool(block.jumps)) or (bool(block.tail_calls) and not block.falls))
    return branches or (bool(opcodes & {"STORE", "CALL", "CALLIND"}) and not may_be_skipped(instruction))


def _stores(instruction: LiftedInstruction) -> bool:
    return any(op.opcode == "STORE" for op in instruction.ops)


def _calls(instruction: LiftedInstruction) -> bool:
    return any(op.opcode in {"CALL", "CALLIND"} for op in instruction.ops)
