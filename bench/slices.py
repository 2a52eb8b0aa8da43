"""A module cut down to what was executed of it: what was not executed raises an error in its place.

Cut are whole functions, and in those that were executed the branches, cases, handlers and ends of blocks of which no
line was. So a program that runs on such modules to its end has used nothing that was cut.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

STUB = "raise AssertionError  # not executed"
_YIELDS = "yield  # that it stays a generator"


class Cut(NamedTuple):
    """Lines ``first`` to ``last`` of a text, in whose place ``lines`` stand."""

    first: int
    last: int
    lines: tuple[str, ...]


class Slice(NamedTuple):
    """What is left of a module: its text, how many lines of it are to be read, and whether a function was executed."""

    text: str
    to_read: int
    is_executed: bool


def sliced(text: str, executed: Collection[int]) -> Slice:
    """A module cut down to the lines ``executed``, as `coverage` counts them."""
    rows = text.split("\n")
    functions, cuts = list[bool](), list[Cut]()
    for function in _functions(ast.parse(text)):
        is_executed = _is_executed(function.body, executed)
        functions.append(is_executed)
        cuts += _within(function.body, executed, rows) if is_executed else [_whole(function, rows)]
    left, read, at = list[str](), 0, 0
    for cut in sorted(cuts):
        left += [*rows[at : cut.first - 1], *cut.lines]
        read += cut.first - 1 - at
        at = cut.last
    left += rows[at:]
    return Slice("\n".join(left), read + len(rows) - at - 1, any(functions))


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a module that are in no other one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield child
        else:
            yield from _functions(child)


def _is_executed(block: Sequence[ast.stmt], executed: Collection[int]) -> bool:
    """Whether a line of a block was executed; a docstring is none."""
    return any(line in executed for one in block for line in range(one.lineno, (one.end_lineno or 0) + 1))


def _whole(function: ast.FunctionDef, rows: Sequence[str]) -> Cut:
    """All of a function but that there is one, which is no line to be read."""
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    head = rows[first - 1 : function.body[0].lineno - 1]
    indent = rows[function.body[0].lineno - 1][: function.body[0].col_offset]
    is_generator = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(function))
    stub = (f"{indent}{STUB}", *([f"{indent}{_YIELDS}"] if is_generator else []))
    return Cut(first, function.end_lineno or first, (*head, *stub))


def _within(block: Sequence[ast.stmt], executed: Collection[int], rows: Sequence[str]) -> Iterator[Cut]:
    """The cuts in a block that was executed: its end, if that was not, and parts of its statements."""
    own = list(block)
    while not _is_executed(own[-1:], executed):
        own.pop()
    if len(own) < len(block):
        yield _of(block[len(own) :], rows)
    for one in own:
        if isinstance(one, ast.FunctionDef):
            inner = _is_executed(one.body, executed)
            yield from _within(one.body, executed, rows) if inner else [_whole(one, rows)]
            continue
        blocks = [getattr(one, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [part.body for part in (*getattr(one, "handlers", ()), *getattr(one, "cases", ()))]
        for part in blocks if isinstance(one, ast.stmt) else ():
            if part and _is_executed(part, executed):
                yield from _within(part, executed, rows)
            elif part:
                yield _of(part, rows)


def _of(block: Sequence[ast.stmt], rows: Sequence[str]) -> Cut:
    """A block, or the end of one; of an ``elif`` its condition, too."""
    first, last = block[0], block[-1].end_lineno or block[-1].lineno
    indent = rows[first.lineno - 1][: first.col_offset]
    if rows[first.lineno - 1].startswith(f"{indent}elif "):
        return Cut(first.lineno, last, (f"{indent}else:", f"{indent}    {STUB}"))
    return Cut(first.lineno, last, (f"{indent}{STUB}",))
