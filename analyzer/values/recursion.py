"""How deep a recursion goes, where values show that it goes no deeper.

The supergraph follows recursion to a depth and symbols out the calls beyond it. Where no value leads to such a call,
the depth is proved; else a greater one is tried, as long as an argument gets narrower.

*Soundness:* without an error no execution comes to a call that is left out, so the graph has all of their paths.
"""

from __future__ import annotations

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import Cut
from wcet_probe.analyzer.values.analysis import Values
from wcet_probe.analyzer.values.state import Base
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

_MOST_DEPTH = 128
_MOST_EXTENT = 1 << 12
"""Of an argument that counts how deep recursion goes."""


def deeper(image: Image, values: Values, depth: int) -> int | None:
    """The depth to try next after ``depth``; None where no deeper recursion is possible.

    Raises:
        AnalysisError: nothing shows how deep it goes.

    *Soundness:* None only where no state leads to a call that is left out.
    """
    cuts = {(cut.context, cut.address): cut for cut in values.graph.cuts}
    points = values.graph.points
    reached = [
        cut
        for index in sorted(values.states)
        if (cut := cuts.get((points[index].context, points[index].block.address)))
    ]
    if not reached:
        return None
    if depth == 1 or (depth < _MOST_DEPTH and all(_gets_narrower(image, values, cut) for cut in reached)):
        return 2 * depth
    raise unbounded_recursion(image, reached[0])


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


def _gets_narrower(image: Image, values: Values, cut: Cut) -> bool:
    """Whether an argument has others of few values in the last call that is followed than in the one before, or half."""
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
        or (name in before and 2 * value.extent <= before[name].extent)
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
