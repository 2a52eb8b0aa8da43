"""What a state knows of a term: of its symbols, and of all that is told of these together with others.

States of different places often tell the same of a term, though they differ in what they hold. What is evaluated for
one of them is evaluated for all.

Words: abstract state, term (docs/explanation/glossary.md).

*Soundness:* a state allows all valuations of symbols under which each of its terms is among what is known of it.
Components have no symbol in common, so that what others tell leaves those of a component as they are: two states with
the same component of a term allow it the same values, whatever is assumed of it besides.
"""

from __future__ import annotations

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term

Component = tuple[frozenset[tuple[Term, StridedInterval]], frozenset[tuple[Term, Base]]]
"""Terms with what is known of each, and symbols that are no numbers."""


class Components:
    """Those of ``state``, which does not change any more."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._parent: dict[Term, Term] = {}
        symbols = state.terms.symbols
        for term in state.known:
            first, *others = sorted(symbols(term)) or [term]
            for other in others:
                if (root := self._root(other)) != self._root(first):
                    self._parent[root] = self._root(first)
        self._known: dict[Term, list[tuple[Term, StridedInterval]]] = {}
        for term, value in state.known.items():
            self._known.setdefault(self._root(min(symbols(term), default=term)), []).append((term, value))

    def _root(self, symbol: Term) -> Term:
        root = symbol
        while (parent := self._parent.get(root)) is not None:
            root = parent
        while symbol != root:
            self._parent[symbol], symbol = root, self._parent[symbol]
        return root

    def of(self, term: Term) -> Component:
        """What is known of ``term``."""
        roots = {self._root(symbol) for symbol in self.state.terms.symbols(term)}
        known = frozenset(one for root in sorted(roots) for one in self._known.get(root, ()))
        bases = frozenset(one for one in self.state.bases.items() if self._root(one[0]) in roots)
        return known, bases
