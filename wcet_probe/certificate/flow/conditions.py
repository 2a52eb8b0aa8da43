# SPDX-License-Identifier: 0BSD
"""How often the condition of an ``if`` holds: which edges are taken then, once each time.

The condition is an order of two variables, alone on its line. A block that ends with a branch on that line decides it
if the debug information says which registers hold both variables there, and the branch's two sides are opposite orders
of just these two values. Anything else is not followed, and counts as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.certificate.kernel.coverage import Coverage
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.values.numbers import mirrored, opposite
from wcet_probe.certificate.values.state import State
from wcet_probe.model.image import VariableLocation
from wcet_probe.model.instruction import Control

_NAME = r"[A-Za-z_]\w*"
_CONDITION = re.compile(rf"if\s*\(\s*({_NAME})\s*(<=|>=|<|>)\s*({_NAME})\s*\)[ \t]*\{{?[ \t]*(?:\n|$)")


class Condition(NamedTuple):
    """``left relation right``, of two variables of the source function ``function``."""

    function: str
    left: str
    relation: str
    right: str


def condition_of(statement: str, function: str, sources: Collection[str]) -> Condition | None:
    """The condition of the ``if`` at the start of ``statement``; None where it is no order of two names, alone.

    Args:
        statement: a source text without comments, from the statement on.
        function: that it stands in.
        sources: all texts; a name that one of them defines as a macro is no variable.
    """
    found = _CONDITION.match(statement)
    if found is None or found[1] == found[3]:
        return None
    macro = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+(?:{found[1]}|{found[3]})\b", re.MULTILINE)
    if any(macro.search(text) for text in sources):
        return None
    return Condition(function, found[1], found[2], found[3])


def edges_where_true(
    graph: Graph, coverage: Coverage, nodes: Sequence[str], condition: Condition, variables: Sequence[VariableLocation]
) -> Mapping[str, list[str]]:
    """By node, the edges that it is left by where ``condition`` holds.

    Args:
        graph: of the certificate.
        coverage: of it.
        nodes: those that end with a conditional branch on the condition's line.
        condition: of two variables.
        variables: where variables are.
    """
    found: dict[str, list[str]] = {}
    for node in nodes:
        last = coverage.instructions[node][-1]
        registers = [
            _register(variables, condition.function, name, last.address) for name in (condition.left, condition.right)
        ]
        if last.control is not Control.CONDITIONAL_BRANCH or None in registers:
            continue
        left, right = map(str, registers)
        sides = {
            edge.name: set(_orders(coverage.taken[edge.name], left, right))
            for edge in graph.leading[node]
            if edge.name in coverage.taken
        }
        true = [name for name, orders in sides.items() if orders == {condition.relation}]
        false = [name for name, orders in sides.items() if orders == {opposite(condition.relation)}]
        if true and false and len(true) + len(false) == len(sides):
            found[node] = true
    return found


def _orders(state: State, left: str, right: str) -> Iterator[str]:
    """The orders of what two registers hold that were found to hold by a comparison of just these values."""
    names = state.name(left), state.name(right)
    for compared in state.flags.values():
        if compared.is_result or names[0] == names[1]:
            continue
        relations = [relation for relation, _ in compared.holding if relation not in {"==", "!="}]
        if (compared.left, compared.right) == names:
            yield from relations
        elif (compared.right, compared.left) == names:
            yield from map(mirrored, relations)


def _register(variables: Sequence[VariableLocation], function: str, name: str, address: int) -> str | None:
    """The register that holds a variable where the instruction at ``address`` begins; None where that is not said."""
    here = [one for one in variables if (one.function, one.name) == (function, name) and one.low <= address < one.high]
    if len(here) != 1 or here[0].constant or len(here[0].registers) != 1 or here[0].registers[0][1] != 1:
        return None
    return f"r{here[0].registers[0][0]}"
