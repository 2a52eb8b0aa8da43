# SPDX-License-Identifier: 0BSD
"""The part of the checker that computes loop bounds again: standard library only, nothing of the analyzer.

What a derivation says is told in `wcet_probe/analyzer/certificate.py`.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from math import gcd, isqrt
from typing import Any

from wcet_probe.certificate.kernel.records import demand
from wcet_probe.errors import VerificationError

__all__ = ["check_derivations", "demand", "derivation", "value_of"]

Json = Mapping[str, Any]

_COUNTER = ("initial_low", "initial_high", "step", "limit_low", "limit_high", "comparison")
_DECLARED = ("expression", "parameters")


def derivation(line: str) -> Json:
    """A derivation from its JSON object, which must be written in the one canonical way.

    Raises:
        VerificationError: it is not, or lacks a field.
    """
    try:
        found: Json = json.loads(line)
    except (ValueError, RecursionError):
        found = {}
    demand(json.dumps(found, sort_keys=True) == line, "a derivation is no canonical JSON")
    demand(found.keys() >= {"loop", "constraint", "origin", "max_header", "offset"}, "a derivation lacks a field")
    return found


def check_derivations(loops: tuple[Json, ...], bounds: Mapping[str, int], constants: Mapping[str, int]) -> None:
    """Check that loop bounds, and constants that have a derivation, are what the derivations come to.

    Args:
        loops: the derivations.
        bounds: of the back edges for each entry, by the name ``loop:NAME``; each must have a derivation.
        constants: of the other constraints, by name.

    Raises:
        VerificationError: a number is not what its derivation comes to.
    """
    demand(bounds.keys() <= {loop["constraint"] for loop in loops}, "a loop bound has no derivation")
    values = {pair for loop in loops for pair in (loop.get("parameters") or {}).items()}
    demand(len(dict(values)) == len(values), "a parameter has two values")
    for loop in loops:
        name, constraint = loop["loop"], loop["constraint"]
        demand(loop["origin"] in {"proved", "fact", "pragma"}, f"nobody says how loop {name} is bounded")
        unused = _DECLARED if loop["origin"] == "proved" else _COUNTER
        demand(all(loop.get(field) is None for field in unused), f"the derivation of loop {name} says too much")
        # A test of several parts that is entered in its midst is executed twice more than the body: more is never less.
        most_offset = 2 if constraint in bounds and loop["origin"] != "proved" else 0
        demand(loop["offset"] in range(most_offset + 1), f"the offset of loop {name} is not one that it can have")
        value = _comparisons(loop) if loop["origin"] == "proved" else _declared(loop)
        if constraint in bounds:
            most = max(value, 1)
            demand(constraint == f"loop:{name}", f"the derivation of loop {name} is about {constraint}")
            demand(loop["max_header"] == most == bounds[constraint] + 1, f"loop {name} is not bounded by {most}")
        else:
            demand(constants.get(constraint) == loop["max_header"] == value, f"{constraint} is not limited by {value}")


def _comparisons(loop: Json) -> int:
    """How often a counter is compared, from its first value to the comparison that fails."""
    low, high, step = loop["initial_low"], loop["initial_high"], loop["step"]
    least, most, comparison = loop["limit_low"], loop["limit_high"], loop["comparison"]
    numbers = (low, high, step, least, most)
    demand(all(type(number) is int for number in numbers) and step, f"the counter of loop {loop['loop']} is unknown")
    demand(low <= high and least <= most, f"the counter of loop {loop['loop']} has no values")
    if step < 0:
        low, high, step, least, most = -high, -low, -step, -most, -least
        comparison = {">": "<", ">=": "<=", "!=": "!="}.get(comparison)
    if comparison == "!=":
        exact = step == 1 or (low == high and least == most and (most - low) % step == 0)
        demand(exact and high <= least, f"the counter of loop {loop['loop']} may miss its limit")
    demand(comparison in {"<", "<=", "!="}, f"the counter of loop {loop['loop']} runs away from its limit")
    distance = most - low + (comparison == "<=")
    rounds: int = -(-distance // step)
    return max(rounds, 0) + 1


def _declared(loop: Json) -> int:
    """The value of the expression, and for a loop bound the offset."""
    return value_of(loop["expression"], loop["parameters"] or {}) + int(loop["offset"])


_LONGEST_EXPRESSION = 1000
_LARGEST_VALUE = 1 << 128


def value_of(expression: object, parameters: Mapping[str, int]) -> int:
    """The value of an expression of facts; ``address(NAME)`` is a parameter of that name.

    Raises:
        VerificationError: it is none, or has no value.
    """
    shown = str(expression)[:80]
    demand(isinstance(expression, str) and len(expression) <= _LONGEST_EXPRESSION, f"{shown!r} is no expression")
    try:
        value = _evaluate(ast.parse(str(expression), mode="eval").body, parameters)
    except (TypeError, ValueError, SyntaxError, ArithmeticError, RecursionError, KeyError, MemoryError) as error:
        raise VerificationError(f"not verified: the expression {shown!r} has no value.") from error
    return value


def _bounded(value: int) -> int:
    if abs(value) > _LARGEST_VALUE:
        raise ArithmeticError
    return value


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _floor_log2(value: int) -> int:
    return value.bit_length() - 1 if value > 0 else _no_logarithm()


def _ceil_log2(value: int) -> int:
    return (value - 1).bit_length() if value > 0 else _no_logarithm()


def _no_logarithm() -> int:
    raise ArithmeticError


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "gcd": gcd,
    "floor_log2": _floor_log2,
    "ceil_log2": _ceil_log2,
    "isqrt": isqrt,
}


def _evaluate(node: ast.expr, parameters: Mapping[str, int]) -> int:
    """The value of an expression of integers; anything else is a ValueError."""
    match node:
        case ast.Constant(value=int(value)) if type(value) is int:
            return value
        case ast.Name(id=name) if type(parameters[name]) is int:
            return parameters[name]
        case ast.Call(func=ast.Name(id="address"), args=[ast.Name(id=name)], keywords=[]):
            return parameters[f"address({name})"]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_evaluate(left, parameters), _evaluate(right, parameters)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, parameters)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(argument, parameters) for argument in arguments))
    raise ValueError(ast.dump(node))
