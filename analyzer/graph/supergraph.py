"""The interprocedural flow graph: each call is expanded where it stands, so every call path has its own blocks.

A point is a basic block in a context, the addresses of the calls that lead to it.

Words: supergraph, context, point (docs/explanation/glossary.md).

*Soundness:* a call returns behind itself (the value analysis checks the return address); recursion and calls of unknown
functions are errors unless a flow fact bounds or names them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.graph.cfg import Block, FunctionGraph, IndirectTargets, Returns, function_graph, known_graphs
from wcet_probe.analyzer.graph.expansion import MOST_EXPANDED, to_summarise
from wcet_probe.analyzer.graph.returning import function_from, returning_functions
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image, Symbol

MOST_POINTS = 20_000

Context = tuple[int, ...]

EXIT = -1
"""Target of the edges that return from the analysed function."""


@dataclass(frozen=True, slots=True)
class Point:
    """A basic block in a context; ``copy`` tells the copies apart that `split` makes of it, 0 is the original.

    ``return_address`` is where its function returns to; None where that is the caller of the analysed function.
    ``frame`` is where the function was entered that returns there, as context and address: the function itself, or the
    first of those that jumped to each other. Where the block pops the frame of a caller, both are that caller's, and it
    ``unwinds``. ``resumed_by`` is the call whose table says where its block goes on, see `inline_tables`; None for any
    other block. ``left_out`` are the ways out of the block that have no edge on purpose, as `Edge` has ``way`` and
    ``address``: they lead to no return, or to recursion that is not followed.
    """

    index: int
    context: Context
    function: Symbol
    block: Block
    copy: int = 0
    return_address: int | None = None
    frame: tuple[Context, int] | None = None
    left_out: frozenset[tuple[str, int | None]] = frozenset()
    unwinds: bool = False
    resumed_by: int | None = None


Unwinding = Mapping[tuple[Context, int], int]
"""Where the returns lead that pop the frame of a caller, by context and address of their block: `EXIT` where that is
the caller of the analysed function."""


class Edge(NamedTuple):
    """Control goes from point ``source`` to point ``target`` (or ``EXIT``).

    ``way`` says how it leaves the block: ``fall``, ``jump``, ``call`` or ``return``; ``address`` is where it then goes,
    None behind a return.
    """

    source: int
    target: int
    way: str
    address: int | None


class TooManyPointsError(AnalysisError):
    """The graph with each call expanded is larger than is analysed."""


class Cut(NamedTuple):
    """A call of ``function`` at ``site``, the end of the block at ``address`` in ``context``, that has no edge."""

    context: Context
    address: int
    site: int
    function: str


@dataclass(frozen=True, slots=True)
class Supergraph:
    """Points, the first of which is the entry, and edges.

    ``unresolved`` are the addresses of indirect branches and calls whose targets are not known, ``dead_ends`` those of
    blocks that are left out because no return can be reached from them, ``cuts`` the calls that are left out because
    recursion would go deeper than it was followed. The functions that start at ``summarised`` are not expanded where
    they are called: the edge of the call leads behind it.
    """

    points: tuple[Point, ...]
    edges: tuple[Edge, ...]
    unresolved: tuple[int, ...]
    dead_ends: tuple[int, ...] = ()
    cuts: tuple[Cut, ...] = ()
    summarised: frozenset[int] = frozenset()

    def is_summary(self, edge: Edge) -> bool:
        """Whether ``edge`` is a call that leads behind itself, the callee not being expanded."""
        return edge.way == "call" and edge.address in self.summarised and edge.target != EXIT

    @property
    def entry(self) -> Symbol:
        """The analysed function."""
        return self.points[0].function

    def successors(self) -> Mapping[int, tuple[Edge, ...]]:
        """Edges by their source."""
        return _grouped(self.points, self.edges, "source")

    def predecessors(self) -> Mapping[int, tuple[Edge, ...]]:
        """Edges by their target, ``EXIT`` included."""
        return _grouped(self.points, self.edges, "target")


@dataclass(frozen=True, slots=True)
class _Frame:
    """A function in a context: where it returns to, which functions wait for it, and which one it returns for.

    ``resumes`` is the block that calls it if it goes on elsewhere than behind the call, see `inline_tables`.
    """

    context: Context
    symbol: Symbol
    return_to: tuple[_Frame, int] | None
    waiting: tuple[int, ...]
    handed_over_by: _Frame | None = None
    resumes: Block | None = None

    @property
    def entered(self) -> tuple[Context, int]:
        """Where the first function was entered of those that jumped to each other."""
        first = self
        while first.handed_over_by is not None:
            first = first.handed_over_by
        return first.context, first.symbol.address


def build_supergraph(  # noqa: PLR0917  the binary, the entry, and what is known of both
    image: Image,
    lifter: Lifter,
    entry: Symbol,
    indirect: IndirectTargets,
    recursion_depths: Mapping[str, int],
    return_sites: Collection[int] = frozenset(),
    depth: int = 1,
    *,
    all_known: bool = True,
    whole: Collection[int] | None = None,
    most: int = MOST_EXPANDED,
    unbounded: Collection[int] = (),
    given: Collection[int] = (),
    counted: Collection[int] = (),
    most_visits: int | None = None,
    unwinding: Unwinding = MappingProxyType({}),
    resolved: Collection[int] = (),
    opened: Collection[Cut] = (),
) -> Supergraph:
    """Expand ``entry`` and all that it calls.

    Args:
        image: the binary.
        lifter: lifter of the image.
        entry: the analysed function.
        indirect: known targets of indirect branches and calls.
        recursion_depths: how often each recursive function may stand in a call path, by name, as flow facts say.
        return_sites: addresses of indirect jumps that may go to the return address of their function.
        depth: how often any other function is followed in a call path; a further call is one of the graph's cuts.
        all_known: whether ``indirect`` has all targets that can be reached; else no indirect branch or call is left
            out, though the targets that it has may never return.
        whole: where functions start that are always expanded; None if all are. Where the graph would have too many
            points, calls of others lead behind themselves (`expansion`).
        most: points up to which all calls are expanded.
        unbounded: see `expansion.to_summarise`.
        given: see there.
        counted: see there.
        most_visits: see there.
        unwinding: returns that pop the frame of a caller, as values tell; whoever uses the graph shows that they do.
        resolved: where functions start that can be summarised though not all targets are known: theirs are.
        opened: calls that are followed though they are deeper than ``depth``.

    Raises:
        TooManyPointsError: the graph would be too large.
        AnalysisError: a call of what is no code, or no way to return.

    *Soundness:* where all targets are known, an execution that returns comes to no dead end; whoever uses the
    graph shows that none comes to a cut.
    """
    known = returning_functions(image, lifter, entry.address, indirect, return_sites)
    if all_known:
        known = replace(known, branching=frozenset())
    if not known.may_matter(entry.address):
        raise never_returns(entry.name)
    builder = _Builder(image, lifter, indirect, recursion_depths, known, depth, unwinding, opened)
    if whole is not None:
        unknown = [function for function in known.branching if function not in resolved]
        never = {*whole, *unknown, *known.popping, *known.resuming}
        parts = {"unbounded": unbounded, "given": given, "counted": counted}
        builder.summarise(entry, never, most, most_visits, **parts)
    return builder.build(entry)


def never_returns(name: str) -> AnalysisError:
    """The error that no path through the function ``name`` leads to a return."""
    return AnalysisError(
        f"{name} never returns as far as the flow facts allow it: there is no worst-case execution "
        "time; look for an endless loop, or for a recursion fact with too small a max."
    )


class _Builder:
    def __init__(  # noqa: PLR0917  as of `build_supergraph`
        self,
        image: Image,
        lifter: Lifter,
        indirect: IndirectTargets,
        recursion_depths: Mapping[str, int],
        returns: Returns,
        depth: int,
        unwinding: Unwinding,
        opened: Collection[Cut],
    ) -> None:
        self._unwinding, self._opened = unwinding, opened
        self._depth, self._cuts, self._summarised = depth, list[Cut](), frozenset[int]()
        self._image, self._lifter, self._indirect, self._returns = image, lifter, indirect, returns
        self._depths = recursion_depths
        self._graphs: dict[int, FunctionGraph] = {}
        self._known = known_graphs(lifter, indirect, returns)
        self._points: list[Point] = []
        self._index: dict[tuple[Context, int], int] = {}
        self._edges: list[Edge] = []
        self._left_out: dict[int, set[tuple[str, int | None]]] = {}
        self._todo: list[tuple[_Frame, int]] = []

    def summarise(
        self,
        entry: Symbol,
        whole: Collection[int],
        most: int,
        most_visits: int | None,
        *,
        unbounded: Collection[int],
        given: Collection[int],
        counted: Collection[int],
    ) -> None:
        """Choose what is not expanded."""

        def graph(address: int) -> FunctionGraph:
            return self._graph(function_from(self._image, address))

        self._summarised = to_summarise(graph, entry.address, whole, most, unbounded, given, counted, most_visits)

    def build(self, entry: Symbol) -> Supergraph:
        self._point(_Frame((), entry, None, (entry.address,)), entry.address)
        while self._todo:
            self._expand(*self._todo.pop())
        unresolved = sorted({address for graph in self._graphs.values() for address in graph.unresolved})
        dead_ends = sorted({address for graph in self._graphs.values() for address in graph.dead_ends})
        for index, omitted in self._left_out.items():
            self._points[index] = replace(self._points[index], left_out=frozenset(omitted))
        parts = tuple(self._points), tuple(self._edges), tuple(unresolved), tuple(dead_ends)
        return Supergraph(*parts, tuple(sorted(set(self._cuts))), self._summarised)

    def _graph(self, symbol: Symbol) -> FunctionGraph:
        found = self._graphs.get(symbol.address)
        if found is None:
            found = self._known.get(symbol.address)
            if found is None:
                found = function_graph(self._image, self._lifter, symbol, self._indirect, self._returns)
                self._known[symbol.address] = found
            self._graphs[symbol.address] = found
        return found

    def _point(self, frame: _Frame, address: int) -> int:
        key = frame.context, address
        if key not in self._index:
            block = self._graph(frame.symbol).blocks.get(address)
            if block is None:
                raise AnalysisError(
                    f"control reaches {self._image.location(address)}, which is no block of {frame.symbol.name}: "
                    "give the function its size in the ELF."
                )
            if len(self._points) == MOST_POINTS:
                raise TooManyPointsError(
                    f"{self._points[0].function.name} has more than {MOST_POINTS:,} basic blocks when each call is "
                    "expanded: analyse the functions that it calls most by themselves."
                )
            self._index[key] = len(self._points)
            left = self._left_by(frame, address)
            back = None if left.return_to is None else left.return_to[1]
            place = len(self._points), frame.context, frame.symbol, block
            by = frame.resumes.last_address if frame.resumes is not None and block.returns else None
            point = Point(*place, return_address=back, frame=left.entered, unwinds=left is not frame, resumed_by=by)
            self._points.append(point)
            self._todo.append((frame, address))
        return self._index[key]

    def _expand(self, frame: _Frame, address: int) -> None:
        source = self._index[frame.context, address]
        block = self._points[source].block
        blocks = self._graph(frame.symbol).blocks
        for target in block.jumps:
            if target in blocks:
                self._connect(source, self._point(frame, target), "jump", target)
            else:
                self._leave_out(source, "jump", target)
        behind = block.falls_to
        if behind is not None and block.falls:
            if behind in blocks:
                self._connect(source, self._point(frame, behind), "fall", behind)
            else:
                self._leave_out(source, "fall", behind)
        for target in block.calls:
            if block.resumes is not None or behind in blocks or self._returns.goes_elsewhere(target):
                self._call(frame, source, target, (frame, block.end_address), "call")
            else:
                self._leave_out(source, "call", target)
        for target in block.tail_calls:
            # The function laid out next may be fallen into, or be where an indirect jump goes.
            for way in ("fall", "jump") if target == block.end_address else ("jump",):
                self._call(frame, source, target, frame.return_to, way, by=frame)
        if block.returns:
            self._leave(self._left_by(frame, address), source)

    def _left_by(self, frame: _Frame, address: int) -> _Frame:
        """The frame that a return of the block at ``address`` pops: the function's, or the next of a caller's."""
        wanted = self._unwinding.get((frame.context, address))
        one: _Frame | None = frame if wanted is not None else None
        while one is not None:
            if (EXIT if one.return_to is None else one.return_to[1]) == wanted:
                return one
            one = one.return_to[0] if one.return_to is not None else None
        return frame

    def _leave(self, frame: _Frame, source: int) -> None:
        if frame.return_to is not None and frame.resumes is not None:
            caller, _ = frame.return_to
            for address in frame.resumes.resumes or ():
                if address in self._graph(caller.symbol).blocks:
                    self._connect(source, self._point(caller, address), "return", None)
                else:
                    self._leave_out(source, "return", None)
        elif frame.return_to is None:
            self._connect(source, EXIT, "return", None)
        else:
            caller, address = frame.return_to
            may_stay_away = self._returns.branching or self._returns.popping
            if address in self._graph(caller.symbol).blocks or not may_stay_away:
                self._connect(source, self._point(caller, address), "return", None)
            else:
                self._leave_out(source, "return", None)

    def _leave_out(self, source: int, way: str, address: int | None) -> None:
        """No edge for this way, for no return can be reached on it, or by decision about recursion."""
        self._left_out.setdefault(source, set()).add((way, address))

    def _connect(self, source: int, target: int, way: str, address: int | None) -> None:
        edge = Edge(source, target, way, address)
        if edge not in self._edges[-8:]:
            self._edges.append(edge)

    def _call(  # noqa: PLR0917  an edge, and where it comes from
        self,
        frame: _Frame,
        source: int,
        target: int,
        back: tuple[_Frame, int] | None,
        way: str,
        by: _Frame | None = None,
    ) -> None:
        """A call of ``target``, which returns to ``back``; or, ``by`` a frame, a jump to it in the frame's stead."""
        if not self._returns.may_matter(target):
            self._leave_out(source, way, target)
            return
        if way == "call" and target in self._summarised and back is not None:
            self._connect(source, self._point(*back), way, target)
            return
        site = self._points[source].block.last_address
        symbol = function_from(self._image, target)
        again = by
        while again is not None:
            if again.symbol.address == target:  # a loop through several functions
                self._connect(source, self._point(again, target), way, target)
                return
            again = again.handed_over_by
        depth = frame.waiting.count(target)
        cut = Cut(frame.context, self._points[source].block.address, site, symbol.name)
        if depth >= self._depths.get(symbol.name, self._depth) and cut not in self._opened:
            if symbol.name not in self._depths:
                self._cuts.append(cut)
            self._leave_out(source, way, target)
            return
        block = self._points[source].block
        resumes = by.resumes if by is not None else block if block.resumes is not None else None
        callee = _Frame((*frame.context, site), symbol, back, (*frame.waiting, target), by, resumes)
        self._connect(source, self._point(callee, target), way, target)


def _grouped(points: tuple[Point, ...], edges: tuple[Edge, ...], end: str) -> Mapping[int, tuple[Edge, ...]]:
    found: dict[int, list[Edge]] = {EXIT: [], **{point.index: [] for point in points}}
    for edge in edges:
        found[getattr(edge, end)].append(edge)
    return {index: tuple(group) for index, group in found.items()}


def restricted(graph: Supergraph, kept: Collection[int], dead_ends: Collection[int]) -> Supergraph:
    """``graph`` with the points ``kept`` only, among them the first; addresses of blocks that are gone are added.

    *Soundness:* an execution that comes to no other point is a path of the result.
    """
    numbers = {old: new for new, old in enumerate(sorted(kept))} | {EXIT: EXIT}
    gone: dict[int, set[tuple[str, int | None]]] = {}
    for edge in graph.edges:
        if edge.source in numbers and edge.target not in numbers:
            gone.setdefault(edge.source, set()).add((edge.way, edge.address))
    return Supergraph(
        tuple(
            replace(point, index=new, left_out=point.left_out | gone.get(old, set()))
            for old, new in numbers.items()
            if old != EXIT
            for point in (graph.points[old],)
        ),
        tuple(
            edge._replace(source=numbers[edge.source], target=numbers[edge.target])
            for edge in graph.edges
            if edge.source in numbers and edge.target in numbers
        ),
        graph.unresolved,
        tuple(sorted({*graph.dead_ends, *dead_ends})),
        graph.cuts,
        graph.summarised,
    )
