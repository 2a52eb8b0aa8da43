"""The syntax tree of a C source: the only file that imports tree-sitter.

Everything here is read off the text of a file: macros and headers are not expanded.

Words: loop bound (docs/explanation/glossary.md).

*Soundness:* none is claimed, as of all that reads sources.
"""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_c
from tree_sitter import Language, Node, Parser

__all__ = [
    "DECLARATIONS",
    "LOOPS",
    "Node",
    "declared_names",
    "first_line",
    "is_in",
    "last_line",
    "parsed",
    "runs_once",
    "text_of",
    "walk",
]

LOOPS = frozenset({"for_statement", "while_statement", "do_statement"})
DECLARATIONS = frozenset({"declaration", "parameter_declaration"})


def parsed(code: bytes) -> Node:
    """The tree of ``code``, of which comments and pragmas are blanked out; what is not understood is an error in it."""
    return Parser(Language(tree_sitter_c.language())).parse(code).root_node


def walk(root: Node) -> Iterator[Node]:
    """``root`` and all below it, as the text has them."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def first_line(node: Node) -> int:
    """The line, from 1 on, on which the node begins."""
    return node.start_point.row + 1


def last_line(node: Node) -> int:
    """The line, from 1 on, on which the node ends."""
    return node.end_point.row + 1


def text_of(node: Node | None) -> str:
    """The node's text; nothing where there is no node."""
    return ((node.text if node is not None else None) or b"").decode("utf-8", "replace")


def is_in(node: Node, outer: Node) -> bool:
    """Whether the text of ``node`` is within that of ``outer``."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def runs_once(node: Node) -> bool:
    """Whether the loop is ``do … while (0)``."""
    condition = node.child_by_field_name("condition")
    text = condition.text if node.type == "do_statement" and condition is not None else None
    return text is not None and text.strip(b"() \t\r\n") == b"0"


def declared_names(node: Node) -> Iterator[Node]:
    """The names of the variables of a declaration; arrays and functions are none."""
    for one in node.children_by_field_name("declarator"):
        declarator: Node | None = one
        while declarator is not None and declarator.type in {"init_declarator", "pointer_declarator"}:
            declarator = declarator.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "identifier":
            yield declarator
