"""How deep a recursion goes, where values show that it goes no deeper.

The supergraph follows recursion to a depth and symbols out the calls beyond it. Where no value leads to such a call,
the depth is proved; else a greater one is tried, as long as an argument gets narrower.

Words: context, supergraph (docs/explanation/glossary.md).

*Soundness:* without an error no execution comes to a call that is left out, so the graph has all of their paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import EXIT, Cut
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

_MOST_DEPTH = 128
_COMPARED = 2
"""Calls of a function in each other that it takes to tell whether an argument gets narrower."""
_MOST_EXTENT = 1 << 12
"""Of an argument that counts how deep recursion goes."""


@dataclass(slots=True)
class Followed:
    """How deep recursion is followed: to ``depth`` everywhere, and at the calls ``opened`` beyond it.

    Deeper everywhere as long as the graph is small enough; then, a call further in each round, in all calls of the
    functions that values lead to. Where that is too large, most of it are calls that no value ever leads to: then only
    those are kept that values take, and a call that they lead to is followed as far as one like it was before.
    """

    depth: int = 1
    opened: set[Cut] = field(default_factory=set)
    _rounds: int = 0
    _reached: Sequence[Cut] = ()
    _alike: frozenset[Cut] = frozenset()
    _taken: frozenset[Cut] = frozenset()
    _is_wide: bool = True
    _is_pruned: bool = False

    def deeper(self, image: Image, values: Values) -> bool:
        """Whether values lead to a call that is not followed: then it is from now on.

        Raises:
            AnalysisError: nothing shows how deep it goes.

        *Soundness:* not so only where no state leads to a call that is left out.
        """
        points = (values.graph.points[index] for index in values.states)
        places = {(point.context, point.block.address) for point in points}
        self._reached = sorted(cut for cut in values.graph.cuts if (cut.context, cut.address) in places)
        if not self._reached:
            return False
        self._taken = frozenset(_taken(values))
        self._alike = frozenset(
            _of_same_functions(values, self._reached)
            if self._is_wide
            else chain(self._reached, _as_before(image, values, self._reached, self._taken))
        )
        tried = self.depth + self._rounds
        if tried > 1 and not (tried < _MOST_DEPTH and all(_gets_narrower(image, values, cut) for cut in self._reached)):
            raise unbounded_recursion(image, self._reached[0])
        self._is_pruned = False
        if self.opened:
            self._open()
        else:
            self.depth *= 2
        return True

    def only_where_reached(self) -> bool:
        """Whether the graph, which was too large, gets smaller: deeper only where the values of the last one led."""
        if not self._reached or self._is_pruned:
            return False
        if self.opened:
            kept = min(self.depth, _COMPARED)
            self._rounds += self.depth - kept  # as many were tried as before
            self.depth, self._is_wide, self._is_pruned = kept, False, True
            self.opened.clear()
            self.opened.update(self._taken, self._reached)
        else:
            self.depth //= 2
            self._open()
        return True

    def _open(self) -> None:
        self.opened.update(self._alike)
        self._rounds += 1


class UnboundedRecursionError(AnalysisError):
    """A function calls itself, nobody knows how often."""

    def __init__(self, place: str, function: str, why: str = "") -> None:
        super().__init__(
            f"{place} calls {function} recursively: bound it by a flow fact, "
            f'[[recursion]] function = "{function}", max_depth = … or max_calls = …, or its argument by [[argument]]'
            + (f" ({why})" if why else "")
        )
        self.place, self.function = place, function


def unbounded_recursion(image: Image, cut: Cut) -> UnboundedRecursionError:
    """The error that a function calls itself, nobody knows how often."""
    return UnboundedRecursionError(image.location(cut.site), cut.function)


def _taken(values: Values) -> Iterator[Cut]:
    """The calls that values take, as they would be cut."""
    points = values.graph.points
    for edge in values.edges:
        if edge.target != EXIT and edge.way != "return":
            source, target = points[edge.source], points[edge.target]
            if len(target.context) > len(source.context):
                yield Cut(source.context, source.block.address, source.block.last_address, target.function.name)


def _of_same_functions(values: Values, reached: Collection[Cut]) -> Iterator[Cut]:
    """The calls that are left out of the functions of which one is called by ``reached``."""
    functions = {cut.function for cut in reached}
    return (cut for cut in values.graph.cuts if cut.function in functions)


def _as_before(image: Image, values: Values, reached: Iterable[Cut], taken: Collection[Cut]) -> Iterator[Cut]:
    """What calls in ``reached`` may call in turn: what the same call does elsewhere, whose caller was called alike.

    A guess, which is too large a graph where it is wrong, and a further round where it is too small.
    """
    arguments = {
        point.context: _arguments(image, values, point.index)
        for point in values.graph.points
        if point.block.address == point.function.address and point.index in values.states
    }
    below = Counter(cut.context[:length] for cut in taken for length in range(len(cut.context) + 1))
    for cut in reached:
        own = arguments.get(cut.context, {}).items()
        others = [
            (len(own & arguments.get(other.context, {}).items()), below[called], called)
            for other in taken
            if (other.site, other.function) == (cut.site, cut.function)
            for called in ((*other.context, other.site),)
        ]
        if others:
            *_, called = max(others)
            new = *cut.context, cut.site
            for one in taken:
                if one.context[: len(called)] == called:
                    yield one._replace(context=(*new, *one.context[len(called) :]))


def _gets_narrower(image: Image, values: Values, cut: Cut) -> bool:
    """Whether an argument has few values in the last call that is followed, and others than before, or half as many.

    One value is half as many as one: it is not narrower.
    """
    entries = [
        arguments
        for point in sorted(values.graph.points, key=lambda point: len(point.context))
        if point.function.name == cut.function
        and point.block.address == point.function.address
        and point.context == cut.context[: len(point.context)]
        and point.index in values.states
        for arguments in (_arguments(image, values, point.index),)
    ]
    if len(entries) < 2:
        return False
    before, last = entries[-2:]
    return any(
        (value.extent < _MOST_EXTENT and value != before.get(name))
        or (name in before and 0 < 2 * value.extent <= before[name].extent)
        for name, value in last.items()
    )


def _arguments(image: Image, values: Values, index: int) -> dict[str, StridedInterval]:
    """What the registers of arguments hold at the entry of a function, as far as they are numbers."""
    state = values.states[index]
    numbers = range(3, 11) if image.isa is Isa.POWERPC else range(4)
    found = {}
    for name in (f"r{number}" for number in numbers):
        term = state.read(values.registers[name])
        if term is not None and state.base(term) is Base.NUMBER:
            found[name] = state.value(term)
    return found
