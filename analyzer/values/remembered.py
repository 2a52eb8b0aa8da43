"""Values that were analysed before, found again where the same is asked: a fact of a loop changes no value.

Who looks for all facts that are missing proves again and again, each time with one answer more. Most of what is
analysed then is what was analysed already.

Words: abstract state, flow fact (docs/explanation/glossary.md).

*Soundness:* an analysis is a function of its arguments; where one is answered by an earlier one, these are equal, and
each call has the effect that it had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import Supergraph
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.analyzer.values.analysis import TooMuchWorkError, analyze_values
from wcet_probe.analyzer.values.execution.call_effects import Callees, CallKey, Effect
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.learning import SymbolRange, SymbolSteps
from wcet_probe.model.image import Image
from wcet_probe.model.target import Target

_MOST_POINTS = 10_000
"""Points whose states are kept; what is analysed after that is analysed again where it is asked for again."""
_OF_AN_ANALYSIS = 20
"""What comes before and behind an analysis takes as long as to execute so many blocks."""


class RememberedValues:
    """The values of one image.

    Args:
        image: the binary.
        lifter: lifter of the image.

    Attributes:
        open_callees: entries of functions of whose loops some had no bound when they were analysed by themselves.
            Who searches on expands them from the beginning, as was done before, so that graphs are those of before.
        is_search: whether what is proved now goes into no answer.
        left: blocks that may still be executed to analyse something; None is any number.
    """

    def __init__(self, image: Image, lifter: Lifter) -> None:
        self.image, self.lifter = image, lifter
        self.open_callees: set[int] = set()
        self.is_search = False
        self.left: int | None = None
        self._without: dict[frozenset[int], RememberedValues] = {}
        self._found: dict[object, list[tuple[Mapping[CallKey, Effect], Values]]] = {}
        self._points = 0

    def without(self, addresses: frozenset[int]) -> RememberedValues:
        """What is remembered of the image without the instructions at ``addresses``; the same object where none are.

        *Soundness:* as of `Lifter.without`.
        """
        if not addresses:
            return self
        if addresses not in self._without:
            self._without[addresses] = RememberedValues(self.image, self.lifter.without(addresses))
        found = self._without[addresses]
        found.open_callees, found.is_search, found.left = self.open_callees, self.is_search, self.left
        return found

    def analyze(  # noqa: PLR0917  as of `analyze_values`
        self,
        image: Image,
        lifter: Lifter,
        graph: Supergraph,
        arguments: Mapping[str | int, StridedInterval],
        words: Mapping[int, StridedInterval] = MappingProxyType({}),
        ranges: Mapping[int, Sequence[SymbolRange]] = MappingProxyType({}),
        rounds: Mapping[tuple[int, int], Sequence[SymbolSteps]] = MappingProxyType({}),
        callees: Callees | None = None,
        called: CallKey | None = None,
        *,
        keeps_saved: bool = False,
    ) -> Values:
        """As `analysis.analyze_values`.

        Raises:
            AnalysisError, UnsummarisedError, IrreducibleError: as that.
            TooMuchWorkError: no blocks are left that may be executed.

        *Soundness:* as said of the module.
        """
        if image is not self.image or lifter is not self.lifter:
            rest = words, ranges, rounds, callees, called
            return analyze_values(image, lifter, graph, arguments, *rest, keeps_saved=keeps_saved)
        given = (frozenset(one.items()) for one in (arguments, words, ranges, rounds))
        known = self._found.setdefault((graph, *given, called, callees is None, keeps_saved), [])
        for effects, values in known:
            if callees is None or all(callees(key) == effect for key, effect in effects.items()):
                return values
        if self.left is not None and self.left <= 0:
            raise TooMuchWorkError
        asked: dict[CallKey, Effect] = {}

        def noted(key: CallKey) -> Effect:
            asked[key] = effect = callees(key)  # type: ignore[misc]  # it is none only where nobody asks
            return effect

        rest = words, ranges, rounds, None if callees is None else noted, called
        values = analyze_values(image, lifter, graph, arguments, *rest, keeps_saved=keeps_saved, most_visits=self.left)
        if self.left is not None:
            self.left -= _OF_AN_ANALYSIS + values.visits
        if self._points + len(values.states) <= _MOST_POINTS:
            self._points += len(values.states)
            known.append((asked, values))
        return values


def remember(image: Image, target: Target) -> RememberedValues:
    """What proofs about ``image`` on ``target`` remember for those that come after them."""
    return RememberedValues(image, image_lifter(target.pcode_language, target.isa, image.segments))
