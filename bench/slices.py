"""Modules cut down to what was executed of them: what was not executed raises an error in its place.

Cut are whole functions, and in those that were executed the branches, cases, handlers and ends of blocks of which no
line was. So a program that runs on such modules to its end has used nothing that was cut. Who reads them reads the
functions that are left, and the classes, constants and imports that these speak of, directly or by others.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

STUB = "raise AssertionError  # not executed"
_YIELDS = "yield  # that it stays a generator"


class Cut(NamedTuple):
    """Lines ``first`` to ``last`` of a text, in whose place ``lines`` stand."""

    first: int
    last: int
    lines: tuple[str, ...]


def sliced(text: str, executed: Collection[int]) -> str:
    """A module cut down to the lines ``executed``, as `coverage` counts them."""
    rows, cuts = text.split("\n"), list[Cut]()
    for function in _functions(ast.parse(text)):
        is_executed = _is_executed(function.body, executed)
        cuts += _within(function.body, executed, rows) if is_executed else [_whole(function, rows)]
    left, at = list[str](), 0
    for cut in sorted(cuts):
        left += [*rows[at : cut.first - 1], *cut.lines]
        at = cut.last
    return "\n".join([*left, *rows[at:]])


def to_read(modules: Mapping[str, str]) -> dict[str, int]:
    """How many lines of each module are to be read; of one that is not in the answer none is.

    Args:
        modules: what is left of each, by its dotted name.
    """
    pieces = {
        name: {key: one for one in ast.parse(text).body for key in _defined(one)} for name, text in modules.items()
    }
    waiting = [(name, one) for name, own in pieces.items() for one in own.values() if _has_code(one)]
    read: dict[str, set[ast.stmt]] = {}
    while waiting:
        name, piece = waiting.pop()
        if piece in read.setdefault(name, set()) or _is_stub(piece):
            continue
        read[name].add(piece)
        for word, part in _mentioned(piece):
            found = pieces[name].get(word)
            waiting += [(name, found)] if found is not None else []
            if isinstance(found, ast.ImportFrom):
                for source, wanted in ((str(found.module), word), (f"{found.module}.{_imported(found, word)}", part)):
                    other = pieces.get(source, {}).get(_imported(found, wanted))
                    waiting += [(source, other)] if other is not None else []
    return {name: sum(map(_length, own)) for name, own in read.items() if own}


def _defined(piece: ast.stmt) -> list[str]:
    """The names that a statement of a module gives a meaning."""
    match piece:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [one.asname or one.name for one in names]
    return []


def _imported(piece: ast.ImportFrom, name: str) -> str:
    """The name that ``name`` has where it is imported from."""
    return next((one.name for one in piece.names if one.asname == name), name)


def _has_code(piece: ast.stmt) -> bool:
    """Whether it is a function that was executed, or has one."""
    return any(isinstance(one, ast.FunctionDef) and not _is_stub(one) for one in ast.walk(piece))


def _is_stub(piece: ast.AST) -> bool:
    """Whether it is a function that was cut."""
    first = piece.body[0] if isinstance(piece, ast.FunctionDef) else None
    return isinstance(first, ast.Raise) and isinstance(first.exc, ast.Name) and first.exc.id == "AssertionError"


def _mentioned(piece: ast.AST) -> Iterator[tuple[str, str]]:
    """The names in a piece, but for stubs, and what follows behind a dot."""
    for child in ast.iter_child_nodes(piece):
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name):
            yield child.value.id, child.attr
        elif isinstance(child, ast.Name):
            yield child.id, ""
        if not _is_stub(child):
            yield from _mentioned(child)


def _length(piece: ast.AST) -> int:
    """Lines of a piece without stubs."""
    if _is_stub(piece):
        return 0
    first = min([one.lineno for one in getattr(piece, "decorator_list", ())] + [getattr(piece, "lineno", 1)])
    stubs = [one for one in ast.walk(piece) if _is_stub(one)]
    cut = sum((one.end_lineno or 0) - min([one.lineno, *(d.lineno for d in one.decorator_list)]) + 1
              for one in stubs if isinstance(one, ast.FunctionDef))  # fmt: skip
    return (getattr(piece, "end_lineno", first) or first) - first + 1 - cut


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
