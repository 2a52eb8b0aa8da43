"""Terms and formulas over the integers: what claims are written in, and what a solver is asked.

A formula is never wrong by itself. What is simplified here is equivalent over the integers; nothing wraps around.

Words: uninterpreted functions, SMT (docs/explanation/glossary.md).

*Soundness:* constructors return what is equal to their mathematical meaning for all values of unknowns and functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

Sort = str
"""``int`` or ``bool``."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Node:
    """A term or formula. Equal ones are the same object, so that they are compared by identity.

    Attributes:
        operation: ``int`` and ``bool`` of a constant, ``unknown``, ``apply``, ``sum``, ``choice``, ``equal``,
            ``at most``, ``not``, ``all``, or a condition of words (`analyzer.deduction.words`).
        arguments: what the operation is of.
        sort: of its value.
    """

    operation: str
    arguments: tuple[Any, ...]
    sort: Sort

    def __add__(self, other: Node | int) -> Node:
        return linear(0, [(self, 1), (term(other), 1)])

    def __sub__(self, other: Node | int) -> Node:
        return linear(0, [(self, 1), (term(other), -1)])

    def __mul__(self, factor: int) -> Node:
        return linear(0, [(self, factor)])

    __rmul__ = __mul__
    __radd__ = __add__

    def __le__(self, other: Node | int) -> Node:
        return _at_most(self - other)

    def __lt__(self, other: Node | int) -> Node:
        return _at_most(self - other + 1)

    def __ge__(self, other: Node | int) -> Node:
        return _at_most(term(other) - self)

    def __gt__(self, other: Node | int) -> Node:
        return _at_most(term(other) - self + 1)

    def equals(self, other: Node | int) -> Node:
        """Whether two integers are equal."""
        difference = self - other
        if difference.operation == "int":
            return truth(difference.arguments[0] == 0)
        return _node("equal", (self, term(other)), "bool")

    def differs(self, other: Node | int) -> Node:
        """Whether two integers differ."""
        return negation(self.equals(other))


_NODES: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()


def _node(operation: str, arguments: tuple[Any, ...], sort: Sort) -> Node:
    key = operation, arguments, sort
    found = _NODES.get(key)
    if found is None:
        found = _NODES[key] = Node(operation, arguments, sort)
    return found


def condition(operation: str, *arguments: Any) -> Node:  # noqa: ANN401  words, which are defined on the floor above
    """A condition of words, of which this module knows nothing but that it is true or false."""
    return _node(operation, arguments, "bool")


def term(value: Node | int) -> Node:
    """``value`` as a term."""
    return value if isinstance(value, Node) else _node("int", (value,), "int")


def unknown(name: str, sort: Sort = "int") -> Node:
    """An unknown of this name."""
    return _node("unknown", (name,), sort)


def apply(name: str, *arguments: Node, sort: Sort = "int") -> Node:
    """The function ``name``, of which nothing is known, at integers."""
    return _node("apply", (name, *arguments), sort)


def linear(constant: int, parts: Iterable[tuple[Node, int]]) -> Node:
    """``constant`` plus all parts times their factors."""
    total: dict[Node, int] = {}
    todo = list(parts)[::-1]
    while todo:
        node, factor = todo.pop()
        if node.operation == "int":
            constant += factor * node.arguments[0]
        elif node.operation == "sum":
            constant += factor * node.arguments[0]
            todo.extend((one, factor * own) for one, own in reversed(node.arguments[1]))
        else:
            total[node] = total.get(node, 0) + factor
    rest = tuple((node, factor) for node, factor in total.items() if factor)
    if not rest:
        return term(constant)
    if constant == 0 and len(rest) == 1 and rest[0][1] == 1:
        return rest[0][0]
    return _node("sum", (constant, rest), "int")


def _at_most(difference: Node) -> Node:
    """Whether ``difference`` is not above 0."""
    if difference.operation == "int":
        return truth(difference.arguments[0] <= 0)
    return _node("at most", (difference,), "bool")


def truth(value: bool) -> Node:  # noqa: FBT001  that is what it is of
    """True or false."""
    return _node("bool", (value,), "bool")


TRUE, FALSE = truth(True), truth(False)


def negation(formula: Node) -> Node:
    """Not ``formula``."""
    if formula is TRUE or formula is FALSE:
        return truth(formula is FALSE)
    if formula.operation == "not":
        negated: Node = formula.arguments[0]
        return negated
    return _node("not", (formula,), "bool")


def conjunction(*formulas: Node) -> Node:
    """All of ``formulas``."""
    if FALSE in formulas:
        return FALSE
    flat = (part for one in formulas for part in (one.arguments if one.operation == "all" else (one,)))
    rest = tuple(dict.fromkeys(one for one in flat if one is not TRUE))
    for one in rest:
        if one.operation == "not":
            negated = one.arguments[0]
            if negated in rest or (negated.operation == "all" and all(part in rest for part in negated.arguments)):
                return FALSE
    return TRUE if not rest else rest[0] if len(rest) == 1 else _node("all", rest, "bool")


def disjunction(*formulas: Node) -> Node:
    """At least one of ``formulas``."""
    return negation(conjunction(*map(negation, formulas)))


def equivalence(one: Node, other: Node) -> Node:
    """Whether ``one`` and ``other`` are both true or both false."""
    if one.operation == "not" or other.operation == "not":
        is_odd = (one.operation == "not") != (other.operation == "not")
        plain = equivalence(*(each.arguments[0] if each.operation == "not" else each for each in (one, other)))
        return negation(plain) if is_odd else plain
    if TRUE in {one, other} or FALSE in {one, other}:
        constant, rest = (one, other) if one in {TRUE, FALSE} else (other, one)
        return rest if constant is TRUE else negation(rest)
    if one is other:
        return TRUE
    for whole, part in ((one, other), (other, one)):
        if whole.operation == "equal" and part in whole.arguments:
            first, second = whole.arguments
            found: Node = second if first is part else first
            return found
    return _node("equal", (one, other), "bool")


def implies(premise: Node, *conclusions: Node) -> Node:
    """All of ``conclusions``, where ``premise`` holds."""
    return disjunction(negation(premise), conjunction(*conclusions))


def choice(formula: Node, one: Node | int, other: Node | int) -> Node:
    """``one`` where ``formula`` holds, else ``other``."""
    first, second = term(one), term(other)
    if formula is TRUE or first is second:
        return first
    if formula is FALSE:
        return second
    if first.sort == "bool":
        return conjunction(implies(formula, first), implies(negation(formula), second))
    return _node("choice", (formula, first, second), "int")
