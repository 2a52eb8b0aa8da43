"""Pragmas ``marker`` and ``flowrestriction`` of the TACLeBench suite: sums of executions in one call of the entry.

``flowrestriction 1*inside <= 6*outside`` relates markers, which name the statements behind them, and calls of
functions. What is on the side that must not be less is counted by the source (`source_executions`): compilers leave
out executions of any statement, in copies whose operands are constants, where another store follows, or altogether.
On the other side the binary counts. There a marker is the one call in its statement; of branches and stores it is not
clear that they are not executed where the source does not say so. Such a pragma is dropped, and it is said why,
wherever it is not clear which code it speaks of: where the function that a marker stands in has several copies or
none, or the call has become several or none. A name that is no function's may lack the prefix that the suite's
functions have, the name of the pragma's file: then that function is meant, and the assumption says so.

Words: flow restriction, marker, linear constraint (docs/explanation/glossary.md).

*Soundness:* executions of what is on the right are at most as many as the source says, and of what is on the left
counted at most as often as the source executes them: a call of a function that stores is executed where its line says,
and nowhere else; a function that is called is entered at its first block, unless it is inlined, which counts nothing.
GCC makes one call of two, and one function of two, and gives it the line and the name of one: there a marker's call
must be the only one of its function, and other functions must be there that could have become the one that is counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath

from wcet_probe.analyzer.facts.binding import Analysed
from wcet_probe.analyzer.facts.source_executions import SourceExecutions, UncountedError
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_loops import PASTING
from wcet_probe.analyzer.facts.source_parts import SourceFunction, SourcePoint, SourceRestriction
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.analyzer.pcode.skipping import may_be_skipped
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.build.compilers import functions_of_clang
from wcet_probe.build.image import require_symbol
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.proof import Assumption, FlowClaim, IdleFact

_TERM = re.compile(r"(?:([0-9]+)\s*\*\s*)?([A-Za-z_][\w.-]*)")
_JUMP_BYTES = 8
"""A function of no more bytes may be a jump to another one."""
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
        calls: where they call or jump to another function: their names and the addresses.
    """

    functions: frozenset[str] = frozenset()
    counted: Mapping[str, tuple[str, tuple[Edge, ...]]] = field(default_factory=dict)
    calls: frozenset[tuple[str, int]] = frozenset()


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


def counted_calls(
    values: Values, index: SourceIndex, analysed: Analysed, unexpanded: Unexpanded, *, name: str, number: int
) -> tuple[int, Restricted] | None:
    """How often the function ``name`` is called at most by the source alone, and what says so; None where nothing does.

    Args:
        values: of the analysed code.
        index: its sources.
        analysed: the same code, and the image.
        unexpanded: what is not in the graph: a sum would lack it.
        name: of the function.
        number: tells it from others.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module. The function gives back nothing: compilers call it for what it does, and so
    where the source calls it, while the call of a function for its value may come before the test of a loop. Calls that
    are not expanded count where they stand in the graph; others do not, and need not.
    """
    places = _Places(values, index, analysed, unexpanded)
    if name in unexpanded.counted or not index.function(name).is_void or places.may_be_equal(name):
        return None
    try:
        most = places.most(name)
    except _DroppedError:
        return None
    function, address = index.function(name), require_symbol(analysed.image, name).address
    where = f"{function.file}:{function.first_line}"
    text = (
        f"in one call of the analysed function, {name} is called at most {most:,} times by the source and its pragmas"
    )
    points = values.graph.points
    own = tuple(
        (i, 1) for i in sorted(values.states) if points[i].block.address == points[i].function.address == address
    )
    counts = ((edge, sum(call.key.target == address for call in found.calls)) for edge, found in values.edges.items())
    pragmas = sum(len(source.restrictions) for source in index.files.values())
    constraint = LinearConstraint(
        f"restriction:{2 * pragmas + number}", own, tuple(one for one in counts if one[1]), most
    )
    claim = FlowClaim(where, text, ((address, 1),), (), most)
    return most, Restricted((constraint,), (claim,), Assumption(f"rounds {where}", text, _CHECKED))


def require_known_callers(values: Values, index: SourceIndex, analysed: Analysed, unexpanded: Unexpanded) -> None:
    """Refuse to count by the source what code without a source may execute.

    Args:
        values: of the analysed code.
        index: its sources.
        analysed: the same code, and the image.
        unexpanded: what is not in the graph.

    Raises:
        UncountedError: such code may call what has a source.
        ImageError: damaged debug information.

    *Soundness:* a function is of the sources or not, by its lines; one that is not may be a library's, which calls
    nothing of the sources, as all its calls and jumps say.
    """
    why = _Places(values, index, analysed, unexpanded).without_source
    if why:
        raise UncountedError(why)


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
    orders = {"<=": [(left, right)], ">=": [(right, left)], "=": [(left, right), (right, left)]}[relation]
    statement = f"in one call of the analysed function, {' '.join(one.text.split())}"
    meant = {name: found.name for _, name in (*left, *right) if (found := named_function(places.index, one, name))}
    statement += "".join(f"; {name} is taken for {known}" for name, known in sorted(meant.items()) if name != known)
    constraints, claims = [], []
    for row, (less, more) in enumerate(orders):
        weights: dict[int, int] = {}
        variables: dict[str, int] = {}
        edges: dict[Edge | None, int] = {}
        for factor, said in less:
            name = meant.get(said, said)
            variable = places.variable(name)
            if variable is not None:
                variables[variable[0]] = variables.get(variable[0], 0) + factor
                edges |= {edge: edges.get(edge, 0) + factor for edge in variable[1]}
            for address in places.blocks(name):
                weights[address] = weights.get(address, 0) + factor
        most = sum(factor * places.most(meant.get(said, said)) for factor, said in more)
        points = places.values.states
        own = ((i, weights.get(places.values.graph.points[i].block.address, 0)) for i in sorted(points))
        name = f"restriction:{2 * number + row}"
        counted = tuple((i, weight) for i, weight in own if weight)
        constraints.append(
            LinearConstraint(name, counted, tuple(edges.items()), most, tuple(sorted(variables.items())))
        )
        claims.append(FlowClaim(where, statement, tuple(sorted(weights.items())), (), most))
    for name in dict.fromkeys(meant.get(said, said) for _, more in orders for _, said in more):
        statement += f"; {name} at most {places.most(name):,} times by the source and its pragmas of loops"
    claims = [replace(claim, statement=statement) for claim in claims]
    return Restricted(tuple(constraints), tuple(claims), Assumption(f"pragma {where}", statement, _CHECKED))


def _sum(text: str) -> Sequence[tuple[int, str]]:
    terms = [_TERM.fullmatch(part.strip()) for part in text.split("+")]
    if not all(terms):
        raise _DroppedError(f"{text.strip()!r} is no sum of markers and functions")
    return [(int(term[1] or 1), term[2]) for term in terms if term]


def only_call(
    values: Values, index: SourceIndex, analysed: Analysed, unexpanded: Unexpanded, point: SourcePoint
) -> int | None:
    """The block that ends with the one call of a statement, where no other place has such a call; else None.

    *Soundness:* the block is executed where the statement is, and nowhere else, as of a marker.
    """
    try:
        return _Places(values, index, analysed, unexpanded).marked(point)
    except _DroppedError:
        return None


class _Places:
    """What counts markers and functions: blocks of the analysed code, or the source."""

    def __init__(self, values: Values, index: SourceIndex, analysed: Analysed, unexpanded: Unexpanded) -> None:
        self.values, self.index, self._image, self._unexpanded = values, index, analysed.image, unexpanded
        self._source = SourceExecutions(index, values.graph.entry.name)
        self._analysed = frozenset(analysed.functions)
        self._of_clang = functions_of_clang(analysed.image)

    def most(self, name: str) -> int:
        """How often ``name`` is executed at most, by the source.

        Raises:
            _DroppedError: that is not clear.
        """
        marker = self._named(name)
        if self.without_source:
            raise _DroppedError(f"how often {name!r} is executed at most is not clear: {self.without_source}")
        try:
            return self._source.at(marker.file, marker.line) if marker else self._source.of_function(name)
        except UncountedError as error:
            raise _DroppedError(f"how often {name!r} is executed at most is not clear: {error}") from error

    @cached_property
    def without_source(self) -> str:
        """Why code whose source is not there may execute code whose source is; empty where none does."""
        symbols, image, points = self._image.symbols, self._image, self.values.graph.points
        kinds = {
            name: _is_of(self.index, image, symbols.get(name)) for name in self._analysed | self._unexpanded.functions
        }
        for name, found in sorted(kinds.items()):
            if found == {False, True}:
                return f"{name} is not of the sources alone"
        own = {name for name, found in kinds.items() if found == {True}}
        edges = ((points[edge.source], points[edge.target]) for edge in self.values.edges if edge.target >= 0)
        entered = {
            (one.function.name, other.function.name)
            for one, other in edges
            if other.block.address == other.function.address
        }
        calls = {
            (points[edge.source].function.name, call.key.target)
            for edge, found in self.values.edges.items()
            for call in found.calls
        }
        for name, address in calls | self._unexpanded.calls:
            target = image.function_at(address)
            entered.add((name, target.name if target is not None else ""))
        calling = sorted(one for one, other in entered if one not in own and (other in own or not other))
        return f"{calling[0]} is not of the sources" if calling else ""

    def _named(self, name: str) -> SourcePoint | None:
        """The one marker that is meant; None where that is a function.

        Raises:
            _DroppedError: it is not clear which it is.
        """
        markers = [one for source in self.index.files.values() for one in source.markers if one.name == name]
        functions = [one for source in self.index.files.values() for one in source.functions if one.name == name]
        if len(markers) + len(functions) != 1:
            number = "no" if not markers + functions else "more than one"
            raise _DroppedError(f"there is {number} marker or function {name!r}")
        return markers[0] if markers else None

    def variable(self, name: str) -> tuple[str, tuple[Edge, ...]] | None:
        """What counts the executions of the function ``name`` that are no points of the graph; None without any.

        Raises:
            _DroppedError: it is executed in calls that are not expanded, and nothing counts it there.
        """
        if name not in self._unexpanded.functions:
            return None
        variable = self._unexpanded.counted.get(name)
        if variable is None:
            raise _DroppedError(f"some calls are not expanded, whose executions of {name} the sum would lack")
        return variable

    def blocks(self, name: str) -> Collection[int]:
        """The blocks that count ``name``, no more often than it is executed.

        Raises:
            _DroppedError: it is not clear which they are.
        """
        marker = self._named(name)
        return self._entry(name) if marker is None else [self.marked(marker)]

    # ---------------------------------------------------------------------------------------------------- functions

    def _entry(self, name: str) -> Collection[int]:
        points = self.values.graph.points
        firsts = [i for i in self.values.states if self._is_entry(i, name)]
        inside = {edge.target for edge in self.values.edges if self._is_round(edge.source, edge.target)}
        if inside & set(firsts):
            raise _DroppedError(f"{name} has become a loop that starts at its first block")
        is_counted = name in self._unexpanded.counted
        found = {points[i].block.address for i in firsts}
        found |= {require_symbol(self._image, name).address} if is_counted else set()
        if any(self._may_be_another(name, address) for address in found):
            raise _DroppedError(f"{name} may have become one with another function, whose calls it would count")
        return found

    def _is_entry(self, index: int, name: str) -> bool:
        point = self.values.graph.points[index]
        return point.function.name == name and point.block.address == point.function.address

    def _is_round(self, source: int, target: int) -> bool:
        """Whether an edge stays in one call."""
        points = self.values.graph.points
        return target >= 0 and points[source].context == points[target].context

    def _may_be_another(self, name: str, address: int) -> bool:
        """Whether some executions of the function at ``address`` may be those of another function than ``name``.

        *Soundness:* a function that GCC has replaced by an equal one has no symbol, that of the other one's address, or
        is a jump to the other one. Of calls that are not expanded the lines are not looked at: there any function that
        could be equal to one that calls itself has to be there, but for one that does nothing else than call it once:
        equal to it is what is inlined into that, of which each execution is one of either.
        """
        symbols = self._image.symbols
        if any(one.is_function and one.address == address and one.name != name for one in symbols.values()):
            return True
        if address in self._of_clang:
            return False
        functions = [one for source in self.index.files.values() for one in source.functions if one.name != name]
        gone = {one.name for one in functions if not self._is_apart(one.name)}
        if name in self._unexpanded.functions:
            equal = (one for one in functions if one.name in gone and not one.calls.isdisjoint({name, one.name}))
            return not all(self._only_calls(one, name) for one in equal)
        points = self.values.graph.points
        sites = {
            points[edge.source].block.last_address
            for edge in self.values.edges
            if edge.target >= 0 and points[edge.target].block.address == address
        }
        return any(name not in (called := self._called_at(site)) or not gone.isdisjoint(called) for site in sites)

    def _only_calls(self, function: SourceFunction, name: str) -> bool:
        """Whether all that a function does is to call another one once."""
        calls = [one for one, line in self.index.files[function.file].calls if _has_line(function, line)]
        is_plain = function.is_void and self.index.macros.keys().isdisjoint({function.name, *function.names})
        return calls == [name] and is_plain and not self.index.loops(function.name, function.file)

    def may_be_equal(self, name: str) -> bool:
        """Whether some calls of the function ``name``, which gives back nothing, may be those of another one.

        *Soundness:* as of `_may_be_another`; here any function that is called, gives back nothing and is not there may
        have become one with it.
        """
        address, symbols = require_symbol(self._image, name).address, self._image.symbols
        if any(one.is_function and one.address == address and one.name != name for one in symbols.values()):
            return True
        files = self.index.files.values()
        called = {other for one in files for other, _ in one.calls}
        functions = [one for each in files for one in each.functions if one.is_void and one.name in called - {name}]
        return address not in self._of_clang and not all(self._is_apart(one.name) for one in functions)

    def _is_apart(self, name: str) -> bool:
        symbol = self._image.symbols.get(name)
        return symbol is not None and symbol.size_bytes > _JUMP_BYTES

    def _called_at(self, site: int) -> Collection[str]:
        """The names that the source calls on the line of an instruction."""
        file, line = self._image.lines.find(site) or ("", 0)
        return {name for name, at in self.index.files[file].calls if at == line} if file in self.index.files else ()

    # ------------------------------------------------------------------------------------------------------ markers

    def marked(self, marker: SourcePoint) -> int:
        """The block that ends with the one call of a marker's statement."""
        name = marker.name
        if marker.function in self._unexpanded.functions:
            raise _DroppedError(f"some calls are not expanded, whose executions of marker {name!r} the sum would lack")
        if any(marker.line in loop.header_lines for loop in self.index.files[marker.file].loops):
            raise _DroppedError(f"the statement of marker {name!r} is a loop, or on the line of one")
        blocks = {
            point.block.address: point.block for point in map(self.values.graph.points.__getitem__, self.values.states)
        }
        calls = {
            one.address: block
            for block in blocks.values()
            for one in block.instructions
            if _calls(one) and self._image.lines.find(one.address) == (marker.file, marker.line)
        }
        if len(calls) != 1:
            raise _DroppedError(f"the statement of marker {name!r} has {len(calls) or 'no'} calls, and not one")
        ((call, block),) = calls.items()
        if may_be_skipped(block.instructions[-1]) or not self._stays(call, block.address, marker):
            raise _DroppedError(f"the call of marker {name!r} may be executed where the source does not say so")
        return block.address

    def _stays(self, call: int, address: int, marker: SourcePoint) -> bool:
        """Whether the call at ``call`` is executed where the source says so, and nowhere else.

        *Soundness:* no compiler executes a call of a function that stores where the source has none. GCC makes one of
        two that end two ways, with the line of one.
        """
        points, told = self.values.graph.points, self.values.accesses
        inside = [i for i in self.values.states if call in points[i].context]
        called = {points[i].function.name for i in inside if points[i].context[-1] == call}
        stores = any(one.is_store and one.base is Base.NUMBER for i in inside for one in told.get(i, ()))
        function = self._image.function_at(address)
        if function is not None and function.address in self._of_clang:
            return stores
        files = self.index.files
        sites = [(file, line) for file, one in files.items() for name, line in one.calls if name in called]
        mentioned = any(not called.isdisjoint(one.mentioned) for one in files.values())
        is_hidden = any(not called.isdisjoint(words) or PASTING in words for words in self.index.macros.values())
        return stores and not mentioned and not is_hidden and sites == [(marker.file, marker.line)]


def _has_line(function: SourceFunction, line: int) -> bool:
    return function.first_line <= line <= function.last_line


def _is_of(index: SourceIndex, image: Image, symbol: Symbol | None) -> set[bool]:
    """Whether the lines of a function are of the sources: both where some are."""
    if symbol is None:
        return set()
    first, behind = symbol.address, symbol.address + max(1, symbol.size_bytes)
    rows = (first, *(one for one in image.lines.addresses if first < one < behind))
    return {line[0] in index.files for line in map(image.lines.find, rows) if line is not None}


def _calls(instruction: LiftedInstruction) -> bool:
    return any(op.opcode in {"CALL", "CALLIND"} for op in instruction.ops)
