"""Whole-number expressions in declared parameters: the bounds of flow facts, ``H // (2*M)`` for instance.

An expression consists of decimal or hexadecimal numbers, names of parameters, ``+ - * // %``, parentheses and the
functions ``min``, ``max``, ``ceil_log2``, ``floor_log2`` and ``isqrt``. It is evaluated exactly.

Words: flow fact, loop bound (docs/explanation/glossary.md).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isqrt
from types import MappingProxyType

from wcet_probe.errors import UsageError, unknown_name

_LONGEST = 300
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {
        ast.Add: lambda left, right: left + right,
        ast.Sub: lambda left, right: left - right,
        ast.Mult: lambda left, right: left * right,
        ast.FloorDiv: lambda left, right: left // right,
        ast.Mod: lambda left, right: left % right,
    }
)
_FUNCTIONS: Mapping[str, tuple[Callable[..., int], int | None]] = MappingProxyType(
    {
        "min": (min, None),
        "max": (max, None),
        "ceil_log2": (lambda value: (value - 1).bit_length(), 1),
        "floor_log2": (lambda value: value.bit_length() - 1, 1),
        "isqrt": (isqrt, 0),
    }
)
"""Function and least argument by name; None for the functions of any number of arguments, which take all numbers."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A well-formed expression.

    Attributes:
        text: as it was written.
    """

    text: str

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Expression:
    """The expression ``text``.

    Raises:
        UsageError: it is no expression of the language; the message names the part that is not.

    Soundness: none is claimed; an expression that parses has one meaning, `evaluate`.
    """
    _check(_tree(text), text)
    return Expression(text)


def names(expression: Expression) -> frozenset[str]:
    """The parameters in ``expression``.

    Soundness: none is claimed; a function's name is no parameter.
    """
    found = {node.id for node in ast.walk(_tree(expression.text)) if isinstance(node, ast.Name)}
    return frozenset(found - _FUNCTIONS.keys())


def evaluate(expression: Expression, parameters: Mapping[str, int]) -> int:
    """The value of ``expression`` with ``parameters``. ``//`` rounds down and ``%`` has the divisor's sign.

    Raises:
        UsageError: a parameter is unknown, or a division or function is not defined there.

    Soundness: exact, in integers of any size.
    """
    for name in sorted(names(expression)):
        if name not in parameters:
            hint = str(unknown_name("parameter", name, parameters)) if parameters else f"unknown parameter {name!r}."
            known = f" Known are: {', '.join(sorted(parameters)) or 'none'}."
            raise UsageError(f"in {expression.text!r}: {hint}{'' if 'known are' in hint else known}")
    return _value(_tree(expression.text), expression.text, parameters)


@cache
def _tree(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise UsageError(f"the expression {text[:30]!r}… is longer than {_LONGEST} characters; shorten it.")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{text!r} is no expression; write one such as 'H // (2*M)'.") from error


def _check(node: ast.expr, text: str) -> None:
    match node:
        case ast.Constant(value=value) if type(value) is int:
            return
        case ast.Name(id=name) if name not in _FUNCTIONS:
            return
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            parts = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            parts = [operand]
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as parts, keywords=[]) if name in _FUNCTIONS:
            if _FUNCTIONS[name][1] is not None and len(parts) != 1:
                raise UsageError(f"in {text!r}: {name} takes one argument; give it one.")
        case _:
            raise UsageError(
                f"in {text!r}: {ast.unparse(node)!r} cannot be used; known are whole numbers, parameters, "
                f"+ - * // %, parentheses, {', '.join(_FUNCTIONS)}."
            )
    for part in parts:
        _check(part, text)


def _value(node: ast.expr, text: str, parameters: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return parameters[name]
        case ast.UnaryOp(op=operator, operand=operand):
            value = _value(operand, text, parameters)
            return -value if isinstance(operator, ast.USub) else value
        case ast.BinOp(left=left, op=operator, right=right):
            operands = _value(left, text, parameters), _value(right, text, parameters)
            if isinstance(operator, ast.FloorDiv | ast.Mod) and operands[1] == 0:
                raise UsageError(f"in {text!r}: {ast.unparse(right)!r} is 0 and divides; correct fact or parameter.")
            return _OPERATORS[type(operator)](*operands)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            function, least = _FUNCTIONS[name]
            values = [_value(argument, text, parameters) for argument in arguments]
            if least is not None and values[0] < least:
                raise UsageError(
                    f"in {text!r}: {name} of {values[0]} is not defined; it takes numbers from {least} on: "
                    "correct fact or parameter."
                )
            return function(values) if least is None else function(values[0])
    raise AssertionError(ast.dump(node))
