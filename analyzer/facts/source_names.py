"""The names that a C source calls, and those that stand elsewhere, of which an address may be taken.

Words: flow fact (docs/explanation/glossary.md).

*Soundness:* none is claimed, see `source_loops`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wcet_probe.analyzer.facts.source_syntax import Node, first_line, text_of

_TYPE_KEYWORDS = frozenset({"char", "double", "float", "int", "long", "short", "signed", "unsigned", "void"})
_TAGGED = frozenset({"enum_specifier", "struct_specifier", "union_specifier"})
_VALUES = frozenset({"concatenated_string", "initializer_list", "initializer_pair"})
_WORD = re.compile(rb"[A-Za-z_]\w*")


def called_names(
    nodes: Iterable[Node], repeating: frozenset[str]
) -> tuple[tuple[tuple[str, int], ...], frozenset[str], frozenset[str]]:
    """Names and lines of calls by name; names that stand elsewhere, but where functions are declared; repeated ones.

    Those last are called in what one of the macros ``repeating`` is given, which may execute it more than once.

    Those in strings are among them, which may be assembler code or what the linker knows a function as, but where a
    string is a variable's value as it stands. Strings that stand behind each other are one.
    """
    calls, others, repeated = list[tuple[str, int]](), set[str](), set[str]()
    for node in nodes:
        parent = node.parent
        if node.type == "string_literal" and not _is_value(node):
            others.update(word.decode() for word in _WORD.findall(node.text or b""))
        if node.type == "concatenated_string" and not _is_value(node):
            whole = b"".join((part.text or b"").strip(b'"') for part in node.named_children)
            others.update(word.decode() for word in _WORD.findall(whole))
        if node.type == "type_identifier" and parent is not None and parent.type not in _TAGGED:
            others.add(text_of(node))  # between macros anything may be taken for a type
        if node.type != "identifier" or parent is None:
            continue
        if parent.type == "call_expression" and parent.child_by_field_name("function") == node:
            calls.append((text_of(node), first_line(node)))
            repeated |= {text_of(node)} if _is_repeated(node, repeating) else set()
        elif (parent.type != "function_declarator" or _is_in_body(parent)) and not _is_behind_keyword(node):
            others.add(text_of(node))
    return tuple(calls), frozenset(others - {""}), frozenset(repeated)


def _is_behind_keyword(name: Node) -> bool:
    """Whether ``name`` is declared right behind a keyword that is a type, as by ``void name PARAMETERS((int));``.

    Such a name takes no address, whatever macros stand around it; of what follows it nothing is said. Behind the name
    of a type this would not be so, as that may be a macro for an assignment.
    """
    declarator, before = name, name.prev_sibling
    while declarator.parent is not None and declarator.parent.type == "pointer_declarator":
        if before is None or before.type != "*":
            return False
        declarator = declarator.parent
        before = declarator.prev_sibling
    is_declared = declarator.parent is not None and declarator.parent.type == "declaration"
    return is_declared and before is not None and set(text_of(before).split()) <= _TYPE_KEYWORDS


def _is_value(node: Node) -> bool:
    """Whether a string is the value of a variable, or part of one; in a call it may be a macro's, which is anything."""
    parent = node.parent
    while parent is not None and parent.type in _VALUES:
        parent = parent.parent
    return parent is not None and parent.type == "init_declarator" and not parent.has_error


def _is_in_body(node: Node) -> bool:
    """Whether a declaration stands in a function: ``MACRO(x) f(1);`` is parsed as one."""
    parent = node.parent
    return parent is not None and (parent.type == "compound_statement" or _is_in_body(parent))


def _is_repeated(node: Node, repeating: frozenset[str]) -> bool:
    """Whether a call stands in the arguments of what speaks of a macro that may repeat them."""
    outermost, parent = node, node.parent
    while parent is not None and not parent.type.endswith(("statement", "declaration", "definition")):
        outermost = parent if parent.type == "call_expression" else outermost
        parent = parent.parent
    words = {word.decode() for word in _WORD.findall(outermost.text or b"")} if outermost != node.parent else set()
    return not words.isdisjoint(repeating)
