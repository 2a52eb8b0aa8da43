"""The interprocedural flow graph: each call is expanded where it stands, so every call path has its own blocks.

A point is a basic block in a context, the addresses of the calls that lead to it.

*Soundness:* a call returns behind itself (the value analysis checks the return address); recursion and calls of unknown
functions are errors unless a flow fact bounds or names them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.analyzer.graph.cfg import Block, FunctionGraph, IndirectTargets, function_graph
from wcet_probe.analyzer.graph.loop_forest import IrreducibleError, loop_forest
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image, Symbol

_MOST_POINTS = 20_000
_MOST_SPLITS = 8

Context = tuple[int, ...]

EXIT = -1
"""Target of the edges that return from the analysed function."""


@dataclass(frozen=True, slots=True)
class Point:
    """A basic block in a context; ``copy`` tells the copies apart that `split` makes of it, 0 is the original."""

    index: int
    context: Context
    function: Symbol
    block: Block
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """Control goes from point ``source`` to point ``target`` (or ``EXIT``).

    ``way`` says how it leaves the block: ``fall``, ``jump``, ``call`` or ``return``; ``address`` is where it then goes,
    None behind a return.
    """

    source: int
    target: int
    way: str
    address: int | None


@dataclass(frozen=True, slots=True)
class Supergraph:
    """Points, the first of which is the entry, and edges.

    ``unresolved`` are the addresses of indirect branches and calls whose targets are not known.
    """

    points: tuple[Point, ...]
    edges: tuple[Edge, ...]
    unresolved: tuple[int, ...]

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
    """A function in a context: where it returns to, and which functions wait for it."""

    context: Context
    symbol: Symbol
    return_to: tuple[_Frame, int] | None
    waiting: tuple[int, ...]


def build_supergraph(
    image: Image,
    lifter: Lifter,
    entry: Symbol,
    indirect: IndirectTargets,
    recursion_depths: Mapping[str, int],
) -> Supergraph:
    """Expand ``entry`` and all that it calls.

    Args:
        image: the binary.
        lifter: lifter of the image.
        entry: the analysed function.
        indirect: known targets of indirect branches and calls.
        recursion_depths: how often each recursive function may stand in a call path, by name, as flow facts say.

    Raises:
        AnalysisError: recursion without a fact, a call of no function, or too many points.
    """
    return _Builder(image, lifter, indirect, recursion_depths).build(entry)


class _Builder:
    def __init__(
        self, image: Image, lifter: Lifter, indirect: IndirectTargets, recursion_depths: Mapping[str, int]
    ) -> None:
        self._image, self._lifter, self._indirect = image, lifter, indirect
        self._depths = recursion_depths
        self._graphs: dict[int, FunctionGraph] = {}
        self._points: list[Point] = []
        self._index: dict[tuple[Context, int], int] = {}
        self._edges: list[Edge] = []
        self._todo: list[tuple[_Frame, int]] = []

    def build(self, entry: Symbol) -> Supergraph:
        self._point(_Frame((), entry, None, (entry.address,)), entry.address)
        while self._todo:
            self._expand(*self._todo.pop())
        unresolved = sorted({address for graph in self._graphs.values() for address in graph.unresolved})
        return Supergraph(tuple(self._points), tuple(self._edges), tuple(unresolved))

    def _graph(self, symbol: Symbol) -> FunctionGraph:
        if symbol.address not in self._graphs:
            self._graphs[symbol.address] = function_graph(self._image, self._lifter, symbol, self._indirect)
        return self._graphs[symbol.address]

    def _point(self, frame: _Frame, address: int) -> int:
        key = frame.context, address
        if key not in self._index:
            block = self._graph(frame.symbol).blocks.get(address)
            if block is None:
                raise AnalysisError(
                    f"control reaches {self._image.location(address)}, which is no block of {frame.symbol.name}: "
                    "give the function its size in the ELF."
                )
            if len(self._points) == _MOST_POINTS:
                raise AnalysisError(
                    f"{self._points[0].function.name} has more than {_MOST_POINTS:,} basic blocks when each call is "
                    "expanded: analyse the functions that it calls most by themselves."
                )
            self._index[key] = len(self._points)
            self._points.append(Point(len(self._points), frame.context, frame.symbol, block))
            self._todo.append((frame, address))
        return self._index[key]

    def _expand(self, frame: _Frame, address: int) -> None:
        source = self._index[frame.context, address]
        block = self._points[source].block
        for target in block.jumps:
            self._connect(source, self._point(frame, target), "jump", target)
        if block.falls and block.falls_to is not None:
            self._connect(source, self._point(frame, block.falls_to), "fall", block.falls_to)
        for target in block.calls:
            back = (frame, block.falls_to) if block.falls_to is not None else None
            self._call(frame, source, target, back, "call")
        for target in block.tail_calls:
            way = "fall" if target == block.end_address else "jump"
            self._call(frame, source, target, frame.return_to, way)
        if block.returns:
            self._return(frame, source)

    def _return(self, frame: _Frame, source: int) -> None:
        if frame.return_to is None:
            self._connect(source, EXIT, "return", None)
        else:
            caller, address = frame.return_to
            self._connect(source, self._point(caller, address), "return", None)

    def _connect(self, source: int, target: int, way: str, address: int | None) -> None:
        edge = Edge(source, target, way, address)
        if edge not in self._edges[-8:]:
            self._edges.append(edge)

    def _call(self, frame: _Frame, source: int, target: int, back: tuple[_Frame, int] | None, way: str) -> None:
        site = self._points[source].block.last_address
        symbol = self._image.function_at(target)
        if symbol is None or symbol.address != target:
            raise AnalysisError(
                f"{self._image.location(site)} calls {target:#010x}, where no function starts: "
                "keep the symbols of all functions in the ELF."
            )
        depth = frame.waiting.count(target)
        allowed = self._depths.get(symbol.name, 1)
        if depth >= allowed:
            if symbol.name not in self._depths:
                raise AnalysisError(
                    f"{self._image.location(site)} calls {symbol.name} recursively: "
                    f'bound it by a flow fact, [[recursion]] function = "{symbol.name}", max = …'
                )
            return
        callee = _Frame((*frame.context, site), symbol, back, (*frame.waiting, target))
        self._connect(source, self._point(callee, target), way, target)


def _grouped(points: tuple[Point, ...], edges: tuple[Edge, ...], end: str) -> Mapping[int, tuple[Edge, ...]]:
    found: dict[int, list[Edge]] = {EXIT: [], **{point.index: [] for point in points}}
    for edge in edges:
        found[getattr(edge, end)].append(edge)
    return {index: tuple(group) for index, group in found.items()}


def reducible(graph: Supergraph, image: Image) -> Supergraph:
    """``graph`` with its irreducible loops split.

    Raises:
        AnalysisError: a loop is too tangled; the message names its entries.

    *Soundness:* as said of `split`.
    """
    entries: tuple[int, ...] = ()
    for _ in range(_MOST_SPLITS):
        successors = {
            index: tuple(edge.target for edge in edges if edge.target != EXIT)
            for index, edges in graph.successors().items()
            if index != EXIT
        }
        try:
            loop_forest(successors, 0)
        except IrreducibleError as error:
            entries = error.entries
            graph = split(graph, error.members, entries)
        else:
            return graph
    places = ", ".join(image.location(graph.points[node].block.address) for node in entries)
    raise AnalysisError(
        f"{graph.entry.name} has an irreducible loop, entered at {places}: rewrite its goto, or compile with less "
        "optimisation."
    )


def split(graph: Supergraph, members: Collection[int], entries: Sequence[int]) -> Supergraph:
    """``graph`` with the irreducible loop ``members``, entered at ``entries``, split: it is entered at the first only.

    What entered elsewhere enters a copy of the other members, which leads into the loop through the first entry.

    *Soundness:* the copies have the same blocks and edges, so every path of the graph is a path of the result (node
    splitting: A. Aho, M. Lam, R. Sethi, J. Ullman, Compilers, 2nd edition, section 9.7.6).

    Raises:
        AnalysisError: the graph would have too many points.
    """
    header, *others = entries
    points = list(graph.points)
    copies: dict[int, int] = {}
    for member in sorted(set(members) - {header}):
        point = graph.points[member]
        copies[member] = len(points)
        number = 1 + max(p.copy for p in points if (p.context, p.block.address) == (point.context, point.block.address))
        points.append(replace(point, index=len(points), copy=number))
    if len(points) > _MOST_POINTS:
        raise AnalysisError(f"{graph.entry.name} is too large with its irreducible loops split: analyse it in parts.")
    edges: list[Edge] = []
    for edge in graph.edges:
        enters = edge.target in others and edge.source not in members
        edges.append(replace(edge, target=copies[edge.target]) if enters else edge)
        if edge.source in copies:
            edges.append(replace(edge, source=copies[edge.source], target=copies.get(edge.target, edge.target)))
    return Supergraph(tuple(points), tuple(edges), graph.unresolved)
