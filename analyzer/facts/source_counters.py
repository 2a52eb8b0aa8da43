"""Counters of the loops of C sources: variables that each round of a loop changes once, by a constant.

Words: loop bound (docs/explanation/glossary.md).

*Soundness:* see `loop_counters`; macros of headers that are not among the sources are overlooked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.facts.source_parts import SourceCounter
from wcet_probe.analyzer.facts.source_syntax import (
    DECLARATIONS,
    LOOPS,
    Node,
    declared_names,
    first_line,
    is_in,
    runs_once,
    text_of,
    walk,
)

_CHANGES = frozenset({"update_expression", "assignment_expression"})


def loop_counters(
    root: Node,
    definitions: list[Node],
    macro_words: frozenset[str],
    value_macros: frozenset[str],
    loop_macros: Collection[str],
) -> Mapping[int, tuple[SourceCounter, ...]]:
    """The counters of the loops of ``definitions``, by the byte where the loop starts.

    Soundness: a variable is no counter where its address is taken, a macro may speak of it, assembly or a call of what
    is neither declared as a function nor one of ``value_macros`` does (nor where an argument of these changes
    something: it may be evaluated twice, or not at all), or the loop may be entered in its midst or repeated by a jump.
    A loop with a macro's loop in it has none, nor one that is not understood: a macro of a header that is not among the
    sources may be a loop, too.
    """
    functions = {
        text_of(found.child_by_field_name("declarator")) for found in walk(root) if found.type == "function_declarator"
    } - macro_words
    result: dict[int, tuple[SourceCounter, ...]] = {}
    for definition in definitions:
        nodes = list(walk(definition))
        declared = [name for node in nodes if node.type in DECLARATIONS for name in declared_names(node)]
        exposed = {text_of(name) for node in nodes for name in _exposed(node, functions, value_macros)} | macro_words
        for loop in (node for node in nodes if node.type in LOOPS and not runs_once(node)):
            if loop.has_error or any(_is_macro(node, loop_macros) for node in walk(loop)):
                continue
            inside = _inside(loop)
            names = [name for name in dict.fromkeys(map(text_of, declared)) if name not in exposed]
            found = [] if inside is None else [_counter(loop, inside, name, declared) for name in names]
            result[loop.start_byte] = tuple(each for each in found if each is not None)
    return result


def _is_macro(node: Node, loop_macros: Collection[str]) -> bool:
    """Whether ``node`` is the name of a macro with a loop, or a statement that is a name alone, as no other one is."""
    named = node.named_children if node.type == "expression_statement" else []
    return (not node.children and text_of(node) in loop_macros) or [each.type for each in named] == ["identifier"]


def _exposed(node: Node, functions: set[str], values: frozenset[str]) -> Iterator[Node]:
    """Names that something else than the loops' statements may change the values of."""
    is_address = node.type == "pointer_expression" and text_of(node.children[0]) == "&"
    called = text_of(node.child_by_field_name("function")) if node.type == "call_expression" else None
    is_value = called in values and not any(one.type in _CHANGES for one in walk(node))
    is_unknown = called is not None and called not in functions and not is_value
    if is_address or is_unknown or node.type.startswith("gnu_asm"):
        yield from (name for name in walk(node) if name.type == "identifier")


@dataclass(frozen=True, slots=True)
class _Inside:
    """What is looked at in a loop for each variable; all but what is done once before it."""

    changes: Mapping[str, list[Node]]
    loops: list[Node]
    arrays: list[Node]


def _inside(loop: Node) -> _Inside | None:
    """The parts of ``loop``; None where it may be entered in its midst."""
    start = loop.child_by_field_name("initializer")
    changes: dict[str, list[Node]] = {}
    loops, arrays = list[Node](), list[Node]()
    for node in walk(loop):
        kind = node.type
        if start is not None and is_in(node, start):
            continue
        if kind == "labeled_statement" or (kind == "case_statement" and _is_case_of_other(node, loop)):
            return None
        if kind in _CHANGES:
            changes.setdefault(text_of(_changed(node)), []).append(node)
        elif kind == "array_declarator":
            arrays.append(node)
        elif kind in LOOPS and node != loop:
            loops.append(node)
    return _Inside(changes, loops, arrays)


def _counter(loop: Node, inside: _Inside, name: str, declared: list[Node]) -> SourceCounter | None:
    start, condition = loop.child_by_field_name("initializer"), loop.child_by_field_name("condition")
    of_name = [each for each in declared if text_of(each) == name]
    own = [each for each in of_name if is_in(each, loop)]
    if len(own or of_name) != 1 or (own and (start is None or not is_in(own[0], start))):
        return None  # which variable is meant is not clear
    changes = inside.changes.get(name, [])
    if any(is_in(each, node) for node in inside.arrays for each in changes):
        return None  # `MACRO a[i++] = 0;` is parsed as a declaration of an array
    if len(changes) != 1 or any(is_in(changes[0], node) for node in inside.loops):
        return None
    step = _step(changes[0], name)
    in_test = condition is not None and loop.type != "do_statement" and is_in(changes[0], condition)
    line, is_tested = first_line((own or of_name)[0]), _is_tested(loop, changes[0], name)
    return SourceCounter(name, line, step, in_test, is_tested) if step else None


def _is_tested(loop: Node, change: Node, name: str) -> bool:
    """Whether a ``for`` changes the variable after each round, whatever is done in it, and tests it before the next."""
    update, condition = loop.child_by_field_name("update"), loop.child_by_field_name("condition")
    if loop.type != "for_statement" or condition is None or change != update:
        return False
    return any(node.type == "identifier" and text_of(node) == name for node in walk(condition))


def _is_case_of_other(node: Node, loop: Node) -> bool:
    """Whether a ``case`` is of a ``switch`` around the loop."""
    around = node.parent
    while around is not None and around.type != "switch_statement":
        around = around.parent
    return around is None or not is_in(around, loop)


def _changed(node: Node) -> Node | None:
    """What an assignment or an increment changes."""
    found = node.child_by_field_name("argument" if node.type == "update_expression" else "left")
    while found is not None and found.type == "parenthesized_expression" and found.named_children:
        found = found.named_children[0]
    return found


def _step(node: Node, name: str) -> int:
    """What a change adds to the variable; 0 if that is no constant."""
    operator, value = text_of(node.child_by_field_name("operator")), node.child_by_field_name("right")
    if node.type == "update_expression":
        return {"++": 1, "--": -1}.get(operator, 0)
    if operator == "=" and value is not None and value.type == "binary_expression":
        if text_of(value.child_by_field_name("left")) != name:
            return 0
        operator, value = text_of(value.child_by_field_name("operator")) + "=", value.child_by_field_name("right")
    digits = re.fullmatch(r"([1-9][0-9]*)[uUlL]*", text_of(value))
    amount = int(digits[1]) if digits else 0
    return {"+=": amount, "-=": -amount}.get(operator, 0)
