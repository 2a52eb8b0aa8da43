"""Loops and functions of C sources.

The parser recovers from what it does not understand (macros, attributes), so a loop can be missed, and what is missed
gets no bound from here. Loops are the statements ``for``, ``while`` and ``do``, backward ``goto``s, assembler code
with a label or a branch back, and the uses of macros whose text holds one of these or any ``goto``.
``do … while (0)`` is no loop.

Comments and pragmas are found by a lexical pass and blanked out before the text is parsed: what stands between a mark
and its statement is then white space. The marks are

* ``/* loop: NAME */`` before a loop, or at the end of the line on which its head ends: the loop's label;
* ``/* point: NAME */`` before a statement: the statement's name;
* ``_Pragma("marker NAME")`` before a statement: the statement's name too; ``_Pragma("flowrestriction A <= B")``
  anywhere in a function: what sums of executions are to each other;
* ``_Pragma("loopbound min N max M")`` or ``#pragma loopbound min N max M`` directly before a loop: the least and most
  executions of its body for each entry (the convention of TACLeBench: Falk et al., WCET 2016, section 2). Before the
  one loop in the text of a macro it speaks of that loop in each use.

Words: loop bound, marker, flow restriction (docs/explanation/glossary.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from wcet_probe.analyzer.facts.assembler_text import may_go_back
from wcet_probe.analyzer.facts.source_counters import loop_counters
from wcet_probe.analyzer.facts.source_hash import definition_sha256
from wcet_probe.analyzer.facts.source_headers import with_one_header
from wcet_probe.analyzer.facts.source_macros import (
    Pragma,
    definitions,
    in_macro,
    keywords,
    leaving,
    loops_of_macros,
    macro_uses,
    repeating_arguments,
    value_macros,
)
from wcet_probe.analyzer.facts.source_names import called_names
from wcet_probe.analyzer.facts.source_parts import (
    SourceFile,
    SourceFunction,
    SourceLoop,
    SourcePoint,
    SourceRestriction,
)
from wcet_probe.analyzer.facts.source_syntax import (
    DECLARATIONS,
    LOOPS,
    Node,
    declared_names,
    first_line,
    is_in,
    last_line,
    parsed,
    runs_once,
    text_of,
    walk,
)
from wcet_probe.analyzer.facts.source_tests import test_of
from wcet_probe.certificate.facts.two_readings import directives, reads_as_compiled

_NO_MACROS: Mapping[str, int] = MappingProxyType({})
_LEXEMES = re.compile(
    rb"""(?P<comment> /\*.*?\*/ | //(?:\\\r?\n|[^\n])*)
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | (?P<open> ["'](?:\\.|[^\\\n])*)
    | (?P<pragma> \b_Pragma\s*\(\s*L?"(?:\\.|[^"\\])*"\s*\) | (?<![^\n])[ \t]*\#[ \t]*pragma\b(?:\\\r?\n|[^\n])*)""",
    re.VERBOSE | re.DOTALL,
)
_MARK = re.compile(rb"(?:/\*|//)\s*(loop|point):\s*([\w.-]+)\s*(?:\*/)?$")
_LOOPBOUND = re.compile(rb"\bloopbound\s+min\s+(\d+)\s+max\s+(\d+)\b")
_MARKER = re.compile(rb"\bmarker\s+([\w.-]+)")
_NAMING = re.compile(rb"\b(?:redefine_extname|weak)\b((?:\\\r?\n|[^\"\n])*)")
_RESTRICTION = re.compile(rb"\bflowrestriction\s+([^\"\n]+)")
_WORD = re.compile(rb"[A-Za-z_]\w*")
PASTING = "##"
"""Of a macro's text that makes a name of two: which one, nobody sees."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A comment or pragma that means something: a label, a name, a loop bound, or a restriction."""

    kind: str
    start: int
    end: int
    line: int
    text: str = ""
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """A loop and where, in bytes, it starts and its head ends."""

    loop: SourceLoop
    start: int
    head_end: int


def parse_source(
    file: str,
    text: str,
    macros: Mapping[str, int] = _NO_MACROS,
    macro_words: frozenset[str] = frozenset(),
    value_macros: frozenset[str] = frozenset(),
    *,
    leaving_by: frozenset[str] = frozenset(),
    repeating: frozenset[str] = frozenset(),
) -> SourceFile:
    """Functions, loops and named points of the C source ``text``.

    Parameters:
        file: the name to put into the results.
        text: the source, as it was compiled.
        macros: macros that hold loops, from `loop_macros` of this and all other sources.
        macro_words: what the texts of macros speak of, from `macro_words` of this and all other sources.
        value_macros: those that change none of their arguments, from `unchanging_macros` of the same.
        leaving_by: those that may end a loop that they stand in, from `leaving_macros` of the same.
        repeating: those that may repeat an argument, from `repeating_macros` of the same.

    Soundness: none is claimed here: which loop a mark or a line means is a convention, and what is said of it an
    assumption that the observer tries to falsify.
    """
    blanked, marks = _blanked(text.encode())
    code = with_one_header(bytearray(blanked))
    root = parsed(code)
    nodes = list(walk(root))
    defined = [node for node in nodes if node.type == "function_definition" and not _is_nested(node)]
    functions = tuple(_function(file, node, blanked) for node in defined)
    found = [_loop(file, node, functions, leaving_by) for node in nodes if _is_loop(node)]
    counters = loop_counters(root, defined, macro_words, value_macros, macros.keys())
    found = [replace(each, loop=replace(each.loop, counters=counters.get(each.start, ()))) for each in found]
    for definition in defined:
        found += _backward_gotos(file, definition, functions, [each.loop for each in found])
    found += _macro_uses(file, code, functions, macros, marks)
    found += _not_parsed(file, code, functions, nodes)
    found.sort(key=lambda each: each.start)
    said = [mark for mark in marks if not in_macro(code, mark.start)]
    loops = tuple(replace(_marked(each, code, said, found), number=number) for number, each in enumerate(found))
    points, markers = (tuple(_points(file, code, marks, functions, kind)) for kind in ("point", "marker"))
    restrictions = tuple(
        SourceRestriction(file, _function_of(functions, mark.line), mark.line, mark.text)
        for mark in marks
        if mark.kind == "flowrestriction"
    )
    not_parsed = (one.name for one, node in zip(functions, defined, strict=True) if not _is_parsed(node))
    calls, others, repeated = called_names(nodes, repeating)
    others |= {word for mark in marks if mark.kind == "naming" for word in mark.text.replace("=", " ").split()}
    return SourceFile(functions, loops, points, markers, restrictions, calls, others, frozenset(not_parsed), repeated)


def _is_parsed(definition: Node) -> bool:
    """Whether all of a function is understood: ``MACRO(x) { … }`` is parsed as a function in it."""
    inside = sum(node.type == "function_definition" for node in walk(definition))
    return not definition.has_error and inside == 1


def macro_words(texts: Iterable[str]) -> frozenset[str]:
    """The words in the texts of the sources' macros, and the names of macros with parameters.

    Soundness: a macro of a header that is not among the sources is overlooked.
    """
    found = set[str]()
    for name, body in _macros(texts):
        parameters, rest = b"", body
        if body.startswith(b"("):
            parameters, _, rest = body.partition(b")")
            found.add(name)
        found |= {word.decode() for word in {*_WORD.findall(rest)} - {*_WORD.findall(parameters)}}
    return frozenset(found)


def unchanging_macros(texts: Iterable[str]) -> frozenset[str]:
    """The macros with parameters that are expressions which change nothing.

    Soundness: as of `macro_words`.
    """
    return value_macros(list(_macros(texts)))


def _macros(texts: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Names and texts of all macros, with the parameters in front; as compilers read them, too, if otherwise."""
    for text in texts:
        yield from definitions(_blanked(text.encode())[0])
        if not reads_as_compiled(text):
            yield from definitions("\n".join(directives(text)).encode())


def macro_calls(texts: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """The words in the text of each macro of the sources: what uses it may call these; and ``##`` where it joins words.

    Soundness: as of `macro_words`.
    """
    found: dict[str, set[str]] = {}
    for name, body in _macros(texts):
        found.setdefault(name, set()).update(word.decode() for word in _WORD.findall(body))
        if PASTING.encode() in body:
            found[name].add(PASTING)
    return {name: frozenset(words) for name, words in found.items()}


def repeating_macros(texts: Iterable[str]) -> frozenset[str]:
    """The macros that may repeat one of their arguments.

    Soundness: as of `macro_words`.
    """
    return repeating_arguments(list(_macros(texts)))


def leaving_macros(texts: Iterable[str]) -> frozenset[str]:
    """The macros that may end a loop that they stand in.

    Soundness: as of `macro_words`.
    """
    return leaving(list(_macros(texts)))


def loop_macros(texts: Iterable[str]) -> Mapping[str, int]:
    """How many loops the text of each macro of the sources holds, those of macros it uses included; 0 is left out.

    Soundness: a macro's loop that is overlooked is taken for part of the loop around it; `match_loops` then finds two
    binary loops for one, and refuses.
    """
    return loops_of_macros(list(_macros(texts)))


def _blanked(source: bytes) -> tuple[bytes, list[_Mark]]:
    """The source with comments and pragmas replaced by blanks, every byte and line at its place; and the marks."""
    code, marks = bytearray(source), []
    line, counted = 1, 0
    for match in _LEXEMES.finditer(source):
        if match.lastgroup is None:
            continue
        start, end, text = match.start(), match.end(), match.group()
        if match.lastgroup == "open":  # to the end of its line, so that no comment begins in it
            code[start:end] = re.sub(rb"/(?=[/*])", b" ", text)
            continue
        code[start:end] = re.sub(rb"[^\n]", b" ", text)
        if b"\n" in text and text.startswith(b"/*") and _is_in_directive(code, start):
            code[start:end] = re.sub(rb" (?=\n)", b"\\\\", code[start:end])
        line, counted = line + source.count(b"\n", counted, start), start
        if match.lastgroup == "comment" and (mark := _MARK.match(text)):
            marks.append(_Mark(mark[1].decode(), start, end, line, mark[2].decode("utf-8", "replace")))
        elif match.lastgroup == "pragma" and (bounds := _LOOPBOUND.search(text)):
            marks.append(_Mark("pragma", start, end, line, bounds=(int(bounds[1]), int(bounds[2]))))
        elif match.lastgroup == "pragma":
            for kind, pattern in (("marker", _MARKER), ("flowrestriction", _RESTRICTION), ("naming", _NAMING)):
                if said := pattern.search(text):
                    marks.append(_Mark(kind, start, end, line, said[1].decode("utf-8", "replace").strip()))
    return bytes(code), marks


def _is_in_directive(code: bytearray, start: int) -> bool:
    """Whether the first of the lines that are one with that of ``start`` begins with a ``#``."""
    begin = code.rfind(b"\n", 0, start) + 1
    while begin > 1 and code[begin - 2] == ord("\\"):
        begin = code.rfind(b"\n", 0, begin - 1) + 1
    return code[begin:start].lstrip(b" \t").startswith(b"#")


def _is_nested(node: Node) -> bool:
    """Whether a definition stands in another: a macro with a block behind it is parsed as one."""
    while (parent := node.parent) is not None:
        node = parent
        if node.type == "function_definition":
            return True
    return False


def _function(file: str, node: Node, code: bytes) -> SourceFunction:
    declarator: Node | None = node.child_by_field_name("declarator")
    name = declarator
    while declarator is not None:
        name = declarator
        declarator = declarator.child_by_field_name("declarator") or (
            declarator.named_children[0] if declarator.type == "parenthesized_declarator" else None
        )
    text = (name.text or b"").decode("utf-8", "replace") if name is not None else ""
    digest = definition_sha256(code, text, range(node.start_byte, node.end_byte))
    calls = [each.child_by_field_name("function") for each in walk(node) if each.type == "call_expression"]
    said = (each for each in walk(node) if each.type in {"identifier", "type_identifier"})
    names = frozenset(text_of(each) for each in said if name is None or each.start_byte != name.start_byte)
    variables = tuple(
        text_of(each) for part in walk(node) if part.type in DECLARATIONS for each in declared_names(part)
    )
    kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
    is_void = text_of(kind) == "void" and declarator is not None and declarator.type == "function_declarator"
    called, extent = frozenset(map(text_of, calls)), (first_line(node), last_line(node))
    switches = node.has_error or any(each.type == "switch_statement" for each in walk(node))
    computed = frozenset(first_line(each) for each in calls if each is not None and each.type != "identifier")
    return SourceFunction(
        file, text, *extent, digest, called, names, variables, is_void=is_void, switches=switches, computed=computed
    )


def _function_of(functions: tuple[SourceFunction, ...], line: int) -> str:
    return next((each.name for each in functions if each.first_line <= line <= each.last_line), "")


def _is_loop(node: Node) -> bool:
    if node.type == "gnu_asm_expression":
        return may_go_back(node.text or b"")
    return node.type in LOOPS and not runs_once(node)


def _has_test_in_front(node: Node) -> bool:
    """Not so of ``do`` with a body, and of ``for`` and ``while`` that go on in any case."""
    body, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
    if node.type == "do_statement":
        return body is None or not (body.text or b"").strip(b"{}; \t\r\n")
    return condition is not None and (condition.text or b"").strip(b"() \t\r\n") not in (b"", b"1", b"true")


_LEAVING = frozenset({"return_statement", "goto_statement"})


def _may_be_left(node: Node, macros: frozenset[str]) -> bool:
    """Whether the body may end the loop: where nothing else does, or by a statement or one of ``macros``."""
    if node.type not in LOOPS or (node.type != "do_statement" and not _has_test_in_front(node)):
        return node.type in LOOPS
    nodes = list(walk(node))
    nearer = [one for one in nodes if one != node and (one.type in LOOPS or one.type == "switch_statement")]
    breaks = (one for one in nodes if one.type == "break_statement" and not any(is_in(one, each) for each in nearer))
    by_macro = any(one.type == "identifier" and text_of(one) in macros for one in nodes)
    return node.has_error or by_macro or any(one.type in _LEAVING for one in nodes) or any(breaks)


_WITH_PARTS = LOOPS | {"if_statement", "switch_statement", "conditional_expression", "goto_statement"}


def _has_parts(condition: Node) -> bool:
    """Whether a condition has others in it, or calls what may have some: no function of the file without a branch."""
    nodes = list(walk(condition))
    if condition.has_error or any(_is_branch(node) for node in nodes):
        return True
    called = {text_of(one.child_by_field_name("function")) for one in nodes if one.type == "call_expression"}
    return bool(called) and not called <= _straight_functions(_root(condition))


def _is_branch(node: Node) -> bool:
    operator = text_of(node.child_by_field_name("operator")) if node.type == "binary_expression" else ""
    return node.type in _WITH_PARTS or operator in {"&&", "||"}


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _straight_functions(root: Node) -> set[str]:
    """The functions of a file that have no branch, and call nothing, which may be a macro with one."""
    found = set[str]()
    for node in root.named_children:
        declarator = node.child_by_field_name("declarator") if node.type == "function_definition" else None
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        inside = list(walk(node)) if declarator is not None else []
        if inside and not any(_is_branch(one) or one.type == "call_expression" for one in inside):
            found.add(text_of(declarator.child_by_field_name("declarator")) if declarator else "")
    return found


def _loop(file: str, node: Node, functions: tuple[SourceFunction, ...], leaving_by: frozenset[str]) -> _Found:
    condition = node.child_by_field_name("condition")
    if node.type == "for_statement":
        head_end = next((child for child in node.children if child.type == ")"), node)
    elif node.type == "while_statement" and condition is not None:
        head_end = condition
    else:  # all of assembler code
        head_end = node.children[0] if node.type in LOOPS else node
    lines = set(range(first_line(node), last_line(head_end) + 1))
    if node.type == "do_statement" and condition is not None:
        keyword = next((child for child in node.children if child.type == "while"), condition)
        lines |= set(range(first_line(keyword), last_line(condition) + 1))
    loop = SourceLoop(
        file,
        _function_of(functions, first_line(node)),
        first_line(node),
        last_line(node),
        tuple(sorted(lines)),
        test_first=_has_test_in_front(node),
        left_inside=_may_be_left(node, leaving_by),
        has_parts=condition is not None and _has_parts(condition),
    )
    return _Found(loop, node.start_byte, head_end.end_byte)


def _backward_gotos(
    file: str, definition: Node, functions: tuple[SourceFunction, ...], loops: list[SourceLoop]
) -> Iterator[_Found]:
    """A loop for each label that is jumped to from below; it holds the loops that it is jumped to from."""
    # To walk over a large C++ header's nodes takes a third of its reading.
    nodes = list(walk(definition)) if b"goto" in (definition.text or b"") else []
    for labelled in (node for node in nodes if node.type == "labeled_statement"):
        name, first = labelled.children[0], first_line(labelled)
        jumps = [node for node in nodes if node.type == "goto_statement" and node.start_byte > name.start_byte]
        lines = [first_line(jump) for jump in jumps if name.text in [child.text for child in jump.named_children]]
        if lines:
            around = [loop.last_line for loop in loops if loop.first_line >= first and any(at in loop for at in lines)]
            function = _function_of(functions, first)
            heads = tuple(sorted({first, *lines}))
            loop = SourceLoop(file, function, first, max(lines + around), heads, test_first=False)
            yield _Found(loop, labelled.start_byte, name.end_byte)


def _macro_uses(
    file: str, code: bytes, functions: tuple[SourceFunction, ...], macros: Mapping[str, int], marks: Iterable[_Mark]
) -> Iterator[_Found]:
    """As many loops for each use of a macro in a function as its text holds; which is which, nobody can tell."""
    pragmas = [Pragma(mark.start, mark.line, mark.bounds) for mark in marks if mark.bounds is not None]
    for use in macro_uses(code, macros, pragmas):
        line = 1 + code.count(b"\n", 0, use.start)
        if function := _function_of(functions, line):
            loop = SourceLoop(file, function, line, line, (line,))
            if use.pragma is not None:
                loop = replace(loop, pragma=use.pragma.bounds, pragma_line=use.pragma.line)
            yield from [_Found(loop, use.start, use.end)] * use.loops


def _not_parsed(
    file: str, code: bytes, functions: tuple[SourceFunction, ...], nodes: Iterable[Node]
) -> Iterator[_Found]:
    """The loops whose keywords the parser did not understand, as behind a macro or in the arguments of one."""
    parsed = {node.start_byte for node in nodes if node.parent is not None and node.parent.type in LOOPS}
    for keyword in keywords(code):
        line = 1 + code.count(b"\n", 0, keyword)
        if keyword not in parsed and (function := _function_of(functions, line)):
            yield _Found(SourceLoop(file, function, line, line, (line,)), keyword, keyword)


def _marked(found: _Found, code: bytes, marks: list[_Mark], all_found: list[_Found]) -> SourceLoop:
    """The loop with the label and the pragma that belong to it."""
    loop = found.loop
    for mark in marks:
        before = mark.end <= found.start and not code[mark.end : found.start].strip()
        if mark.kind == "pragma" and before:
            loop = replace(loop, pragma=mark.bounds, pragma_line=mark.line)
        elif mark.kind == "loop" and (
            _is_behind_head(mark, found, code)
            or (before and not any(_is_behind_head(mark, other, code) for other in all_found))
        ):
            loop = replace(loop, label=mark.text)
    return loop


def _is_behind_head(mark: _Mark, found: _Found, code: bytes) -> bool:
    """Whether the mark ends the line on which the loop's head ends, perhaps behind the brace of the body."""
    between = code[found.head_end : mark.start] if found.head_end <= mark.start else b"no"
    rest = code[mark.end :].partition(b"\n")[0]
    return not between.strip(b"{; \t") and not rest.strip()


def _points(
    file: str, code: bytes, marks: list[_Mark], functions: tuple[SourceFunction, ...], kind: str
) -> Iterator[SourcePoint]:
    for mark in marks:
        rest = code[mark.end :].lstrip()
        line = 1 + code.count(b"\n", 0, len(code) - len(rest))
        if mark.kind == kind and rest and not rest.startswith(b"}"):
            before = code[: len(code) - len(rest)].rpartition(b"\n")[2].strip()
            is_first = before in (b"", b"else", b"} else", b"}else")
            test = test_of(rest.decode("utf-8", "replace")) if is_first else None
            yield SourcePoint(file, _function_of(functions, line), mark.text, line, test)
