"""Claims: what is assumed of an allocator's memory at an operation's entry, at each term, and asked at its ends.

Words: claim, data invariant (docs/explanation/glossary.md).

*Soundness:* a claim is nothing but a formula: to be a fact it has to be shown of all operations and of what the caller
writes. It is for all of its variables, so that it may be assumed at any terms, and is shown at unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from wcet_probe.analyzer.deduction.formulas import Node


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim for all of its variables.

    Attributes:
        name: by which it is told.
        kinds: of its variables, such as ``place`` and ``start``.
        of: the claim of a view at these variables.
        is_symmetric: whether it says the same of its two variables in either order.
    """

    name: str
    kinds: tuple[str, ...]
    of: Callable[..., Node]
    is_symmetric: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """The terms of each kind that are spoken of."""

    terms: Mapping[str, tuple[Node, ...]]

    def with_term(self, kind: str, one: Node) -> Named:
        """With one more."""
        return replace(self, terms={**self.terms, kind: (*self.terms.get(kind, ()), one)})

    def __contains__(self, named: tuple[str, Node]) -> bool:
        return named[1] in self.terms.get(named[0], ())


def instances(
    own: tuple[Claim, ...], view: object, named: Named, kind: str, one: Node, *, made: dict[tuple[Any, ...], Node]
) -> Iterator[Node]:
    """The claims at ``one``, of this kind, with all that was named before; ``made`` keeps those of the view."""
    everything = named.with_term(kind, one)
    for claim in own:
        if kind in claim.kinds:
            choices = [everything.terms.get(other, ()) for other in claim.kinds]
            for variables in product(*choices):
                if claim.is_symmetric and variables[0] is not one:
                    continue  # it says the same as the one the other way round
                if any(variable is one and own == kind for variable, own in zip(variables, claim.kinds, strict=True)):
                    key = claim.name, *variables
                    if key not in made:
                        made[key] = claim.of(view, *variables)
                    yield made[key]
