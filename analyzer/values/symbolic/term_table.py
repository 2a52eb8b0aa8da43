"""Hash-consed terms over symbols: each is a number of a table that knows which terms are made of which.

A term is an operation of p-code on other terms, a constant, or a symbol. Symbols stand for values that are not computed
from others: a register at entry, a loaded word, the value that arrives where paths meet. The same operation on the same
terms is the same term, so copies of a value share what is learnt of it.

Words: term, hash-consing, symbolic variable, gamma node (docs/explanation/glossary.md).

*Soundness:* a table says nothing of values; what it tells of the parts of a term is exact, as terms never change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.symbolic.locations import Overlaps

Term = int
"""Index into a :class:`Terms` table."""

SymbolName = tuple[object, ...]

_NONE = frozenset[int]()
_NO_MASKS: Mapping[int, int] = {}


class Node(NamedTuple):
    """A term: ``opcode`` on ``arguments``; ``const`` carries its value and ``symbol`` its name in ``arguments``."""

    opcode: str
    arguments: tuple[object, ...]
    bits: int


class TermTable:
    """A table of terms.

    Attributes:
        overlaps: the locations that states have held terms in.
        given: the symbols of registers at entry.
        intervals: of each constant, what it may be.
        symbols: the symbols that a term is made of; a look-up in a list, as nothing is asked for more often.
        node: the term that a number stands for, so too.
    """

    def __init__(self) -> None:
        self.overlaps = Overlaps()
        self._nodes: list[Node] = []
        self.node: Callable[[Term], Node] = self._nodes.__getitem__
        self._index: dict[Node, Term] = {}
        self._symbols: list[frozenset[Term]] = []
        self.symbols: Callable[[Term], frozenset[Term]] = self._symbols.__getitem__
        self._depth: list[int] = []
        self._has_low_bits: list[bool] = []
        self._wholes: dict[Term, set[Term]] = {}
        self._masks: dict[Term, dict[Term, int]] = {}
        self._meeting: dict[object, set[Term]] = {}
        self._speaking: dict[object, set[Term]] = {}
        self.given: set[Term] = set()
        self.intervals: dict[Term, StridedInterval] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, term: Term) -> Node:
        return self._nodes[term]

    def meeting(self, place: SymbolName) -> Collection[Term]:
        """The symbols for what arrives where paths meet at ``place``."""
        return self._meeting.get(place, ())

    def speaking(self, place: SymbolName) -> AbstractSet[Term]:
        """The terms that are made of symbols for what arrives where paths meet at ``place``."""
        return self._speaking.get(place, _NONE)

    def made_of(self, symbol: Term) -> AbstractSet[Term]:
        """The terms that ``symbol`` is in, itself among them."""
        return self._wholes[symbol]

    def wholes(self, term: Term) -> AbstractSet[Term] | None:
        """Terms that are made of all that ``term`` is made of, itself among them, and perhaps others.

        None where it is made of no symbol. A whole is a later term than what it is made of.
        """
        found = [self._wholes[symbol] for symbol in self._symbols[term]]
        return min(found, key=len) if found else None

    def masks(self, term: Term) -> Mapping[Term, int]:
        """The terms that are ``term`` under a constant mask, with their masks, in the order in which they were made."""
        return self._masks.get(term, _NO_MASKS)

    def has_low_bits(self, term: Term) -> bool:
        """Whether a mask by a constant is in ``term``."""
        return self._has_low_bits[term]

    def deciding(self, term: Term) -> frozenset[Term]:
        """The symbols that ``term`` is made of, those left out that are only in the parts of gamma nodes.

        *Soundness:* where paths meet, the symbols of the part that is not chosen may be given any value
        (`joins._completed`); the value of the gamma node is not changed by that.
        """
        node = self._nodes[term]
        if node.opcode == "symbol":
            return frozenset({term})
        operands = self.operands(term)
        return frozenset().union(*map(self.deciding, operands[:1] if node.opcode == "GAMMA" else operands))

    def operands(self, term: Term) -> tuple[Term, ...]:
        """The terms that ``term`` is made of; none of a symbol or a constant."""
        node = self._nodes[term]
        return () if node.opcode in ("const", "symbol") else node.arguments  # type: ignore[return-value]

    def constant(self, value: int, bits: int) -> Term:
        """The constant ``value`` modulo 2**bits."""
        return self._make(Node("const", (value & (1 << bits) - 1,), bits))

    def symbol(self, name: SymbolName, bits: int) -> Term:
        """The symbol called ``name``."""
        return self._make(Node("symbol", name, bits))

    def value(self, term: Term) -> int | None:
        """The value of a constant, else None."""
        node = self._nodes[term]
        return node.arguments[0] if node.opcode == "const" else None  # type: ignore[return-value]

    def _make(self, node: Node) -> Term:
        term = self._index.get(node)
        if term is None:
            term = self._index[node] = len(self._nodes)
            self._nodes.append(node)
            if node.opcode in ("const", "symbol"):
                if node.opcode == "symbol":
                    self._wholes[term] = {term}
                    if node.arguments[0] == "phi":
                        self._meeting.setdefault(node.arguments[1], set()).add(term)
                        self._speaking.setdefault(node.arguments[1], set()).add(term)
                    elif node.arguments[0] == "in":
                        self.given.add(term)
                else:
                    self.intervals[term] = strided.constant(node.bits, node.arguments[0])  # type: ignore[arg-type]
                self._symbols.append(frozenset({term}) if node.opcode == "symbol" else frozenset())
                self._depth.append(0)
                self._has_low_bits.append(False)
            else:
                operands: tuple[Term, ...] = node.arguments  # type: ignore[assignment]
                self._symbols.append(frozenset().union(*(self._symbols[operand] for operand in operands)))
                for symbol in self._symbols[term]:
                    self._wholes[symbol].add(term)
                    name = self._nodes[symbol].arguments
                    if name[0] == "phi":
                        self._speaking[name[1]].add(term)
                self._depth.append(1 + max(self._depth[operand] for operand in operands))
                mask = self.value(operands[1]) if node.opcode == "INT_AND" else None
                if mask is not None:
                    self._masks.setdefault(operands[0], {})[term] = mask
                self._has_low_bits.append(mask is not None or any(self._has_low_bits[operand] for operand in operands))
        return term
