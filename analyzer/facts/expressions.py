"""Whole-number expressions in declared parameters: the bounds of flow facts, ``H // (2*M)`` for instance.

An expression consists of decimal or hexadecimal numbers, names of parameters, ``+ - * // %``, parentheses and the
functions ``min``, ``max``, ``gcd``, ``ceil_log2``, ``floor_log2`` and ``isqrt``, and ``address(NAME)``, the address of
a symbol. It is evaluated exactly.

Words: flow fact, loop bound (docs/explanation/glossary.md).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import gcd, isqrt
from types import MappingProxyType

from wcet_probe.errors import UsageError, unknown_name

_LONGEST = 300
_LARGEST = 1 << 128
"""As of the checker of certificates."""
_ADDRESS = "address"

HEAP_BYTES = "H"
"""The parameter that is the bytes of the heap, of every allocator."""

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
        "gcd": (lambda values: gcd(*values), None),
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
    """The parameters in ``expression``; addresses of symbols are none.

    Soundness: none is claimed; a function's name is no parameter.
    """
    nodes = list(ast.walk(_tree(expression.text)))
    symbol_names = {id(part) for node in nodes if _is_address(node) for part in ast.iter_child_nodes(node)}
    found = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in symbol_names}
    return frozenset(found - _FUNCTIONS.keys() - {_ADDRESS})


def symbols(expression: Expression) -> frozenset[str]:
    """The symbols whose addresses are in ``expression``.

    Soundness: none is claimed.
    """
    return frozenset(_symbol(node) for node in ast.walk(_tree(expression.text)) if _is_address(node))


def evaluate(
    expression: Expression, parameters: Mapping[str, int], addresses: Mapping[str, int] = MappingProxyType({})
) -> int:
    """The value of ``expression`` with ``parameters``. ``//`` rounds down and ``%`` has the divisor's sign.

    ``addresses`` are those of symbols, by name.

    Raises:
        UsageError: a parameter or an address is unknown, a division or function is not defined there, or a number in it
            is beyond 2**128.

    Soundness: exact.
    """
    for name in sorted(names(expression)):
        if name not in parameters:
            hint = str(unknown_name("parameter", name, parameters)) if parameters else f"unknown parameter {name!r}."
            known = f" Known are: {', '.join(sorted(parameters)) or 'none'}."
            heap = f" {HEAP_BYTES} is the heap in bytes." if HEAP_BYTES in parameters else ""
            raise UsageError(f"in {expression.text!r}: {hint}{'' if 'known are' in hint else known}{heap}")
    if unknown := sorted(symbols(expression) - addresses.keys()):
        raise UsageError(
            f"in {expression.text!r}: {_ADDRESS}({unknown[0]}) can be used in [parameters] only; declare one there."
        )
    told = {f"{_ADDRESS}({name})": address for name, address in addresses.items()}
    return _value(_tree(expression.text), expression.text, {**parameters, **told})


def _is_address(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _ADDRESS


def _symbol(node: ast.AST) -> str:
    match node:
        case ast.Call(args=[ast.Name(id=name)], keywords=[]):
            return name
    raise UsageError(f"{ast.unparse(node)!r}: {_ADDRESS} takes the name of a symbol; write {_ADDRESS}(NAME).")


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
        case ast.Name(id=name) if name not in _FUNCTIONS and name != _ADDRESS:
            return
        case ast.Call() if _is_address(node):
            _symbol(node)
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
                f"+ - * // %, parentheses, {', '.join(_FUNCTIONS)}, {_ADDRESS}(NAME)."
            )
    for part in parts:
        _check(part, text)


def _value(node: ast.expr, text: str, parameters: Mapping[str, int]) -> int:
    value = _any_value(node, text, parameters)
    if abs(value) > _LARGEST:
        raise UsageError(f"in {text[:30]!r}: a number is beyond 2**128; correct fact or parameter.")
    return value


def _any_value(node: ast.expr, text: str, parameters: Mapping[str, int]) -> int:
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
        case ast.Call() if _is_address(node):
            return parameters[f"{_ADDRESS}({_symbol(node)})"]
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
