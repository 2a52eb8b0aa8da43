"""What an abstract domain is: a partial order with joins and widening.

Each domain implements `Lattice`, and is then held against its laws by the one suite of the tests
(``tests/analyzer/test_lattice_laws.py``), which fails for a domain that it does not know. `analyzer.fixpoint` iterates
over any of them. Elements are values: an operation changes none of its operands.

Source: P. Cousot, R. Cousot, Abstract interpretation, POPL 1977; the interface is that of F. Nielson, H. Nielson,
C. Hankin, Principles of Program Analysis, Springer 1999, chapter 4.

*Soundness:* ``join`` and ``widen`` are above both of their operands, ``leq`` answers yes only where all that the first
stands for is in the second.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

Element = TypeVar("Element")


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


class Dual(Lattice[Element]):
    """The order turned around: its least fixpoints are the greatest of the other, for operations given by ``meet``.

    *Soundness:* what is greatest claims most; it is right where an empty claim is the order's bottom, and the claim of
    a path that does not exist its top.
    """

    def __init__(self, lattice: Lattice[Element], meet: Meet[Element]) -> None:
        self._lattice, self._meet = lattice, meet

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
        """The greatest element below both."""
        return self._meet(one, other)


class Meet(Protocol[Element]):
    """The greatest element that is below two."""

    def __call__(self, one: Element, other: Element, /) -> Element:
        """The meet of the two."""
        ...
