"""What an abstract domain is: a partial order with joins and widening.

Each domain implements `Lattice`, and is then held against its laws by the one suite of the tests
(``tests/analyzer/domains/test_lattice.py``), which fails for a domain that it does not know. `graph.fixpoint` iterates
over any of them. Elements are values: an operation changes none of its operands.

Source: P. Cousot, R. Cousot, Abstract interpretation, POPL 1977; the interface is that of F. Nielson, H. Nielson,
C. Hankin, Principles of Program Analysis, Springer 1999, chapter 4.

Words: lattice, join, widening (docs/explanation/glossary.md).

*Soundness:* ``join`` and ``widen`` are above both of their operands, ``leq`` answers yes only where all that the first
stands for is in the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

Element = TypeVar("Element")
Member = TypeVar("Member")


class Lattice(Protocol[Element]):
    """The operations of a domain. A class that implements it names it as its base, so that the law suite finds it."""

    def bottom(self) -> Element | None:
        """The least element; None where the domain has none, and paths that do not exist stand for it."""
        return None

    def top(self) -> Element | None:
        """The greatest element; None where the domain has none."""
        return None

    def leq(self, one: Element, other: Element) -> bool:
        """Whether ``one`` is below ``other``."""
        ...

    def join(self, one: Element, other: Element) -> Element:
        """The least element, or a least known one, that is above both."""
        ...

    def widen(self, former: Element, grown: Element) -> Element:
        """An element above both such that no chain of them goes on for ever; the join, where all chains are finite."""
        return self.join(former, grown)


class Joined(Lattice[Element]):
    """A domain by its join, all chains of which are finite.

    Args:
        join: of two elements.
        leq: the order; without one, what is below adds nothing.
    """

    def __init__(
        self,
        join: Callable[[Element, Element], Element],
        leq: Callable[[Element, Element], bool] | None = None,
    ) -> None:
        self._join, self._leq = join, leq

    def leq(self, one: Element, other: Element) -> bool:
        """As given; else whether joining ``one`` to ``other`` changes nothing."""
        return self._leq(one, other) if self._leq else self._join(one, other) == other

    def join(self, one: Element, other: Element) -> Element:
        """As given."""
        return self._join(one, other)


class Subsets(Lattice[frozenset[Member]]):
    """The subsets of a finite set, ordered by inclusion."""

    def __init__(self, universe: frozenset[Member]) -> None:
        self._universe = universe

    def bottom(self) -> frozenset[Member]:
        """The empty set."""
        return frozenset()

    def top(self) -> frozenset[Member]:
        """The whole set."""
        return self._universe

    def leq(self, one: frozenset[Member], other: frozenset[Member]) -> bool:
        """Whether ``one`` is in ``other``."""
        return one <= other

    def join(self, one: frozenset[Member], other: frozenset[Member]) -> frozenset[Member]:
        """The union."""
        return one | other

    def meet(self, one: frozenset[Member], other: frozenset[Member]) -> frozenset[Member]:
        """The intersection."""
        return one & other


class Bits(Lattice[int]):
    """The subsets of the first numbers, as the bits of one: of thousands of them, a set for each node is small."""

    def __init__(self, count: int) -> None:
        self._every = (1 << count) - 1

    def bottom(self) -> int:
        """The empty set."""
        return 0

    def top(self) -> int:
        """All numbers."""
        return self._every

    def leq(self, one: int, other: int) -> bool:
        """Whether ``one`` is in ``other``."""
        return one | other == other

    def join(self, one: int, other: int) -> int:
        """The union."""
        return one | other

    def meet(self, one: int, other: int) -> int:
        """The intersection."""
        return one & other


class Truths(Lattice[bool]):
    """False below true."""

    def bottom(self) -> bool:
        """False."""
        return False

    def top(self) -> bool:
        """True."""
        return True

    def leq(self, one: bool, other: bool) -> bool:  # noqa: FBT001  the elements are truth values
        """Whether ``one`` implies ``other``."""
        return other or not one

    def join(self, one: bool, other: bool) -> bool:  # noqa: FBT001
        """Either."""
        return one or other

    def meet(self, one: bool, other: bool) -> bool:  # noqa: FBT001
        """Both."""
        return one and other


class WithMeet(Lattice[Element], Protocol[Element]):
    """A lattice whose order can be turned around."""

    def meet(self, one: Element, other: Element) -> Element:
        """The greatest element that is below both."""
        ...


class Dual(Lattice[Element]):
    """The order turned around: its least fixpoints are the greatest of the other (what holds *on all ways*).

    *Soundness:* what holds on all ways to a node is the meet over them; a path that does not exist excludes nothing.
    """

    def __init__(self, lattice: WithMeet[Element]) -> None:
        self._lattice = lattice

    def bottom(self) -> Element | None:
        """The greatest element of the other."""
        return self._lattice.top()

    def top(self) -> Element | None:
        """The least element of the other."""
        return self._lattice.bottom()

    def leq(self, one: Element, other: Element) -> bool:
        """Whether ``one`` is above ``other`` in the other."""
        return self._lattice.leq(other, one)

    def join(self, one: Element, other: Element) -> Element:
        """The greatest element below both in the other."""
        return self._lattice.meet(one, other)
