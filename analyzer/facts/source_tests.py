"""Conditions of ``if`` statements that are one comparison, read off the text.

Words: predicate (docs/explanation/glossary.md).

*Soundness:* none is claimed, as of all that reads sources; what is not understood has no condition. Macros are not
expanded: one that hides an operator makes of a line more branches than one comparison has, see `unknown_names`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from wcet_probe.analyzer.facts.source_parts import SourceTest

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)[uUlL]*(?![\w.])"
    r"|(?P<sign>->|\+\+|--|<<=?|>>=?|[<>=!]=|&&|\|\||[-+*/%&|^~!<>=?:,.()\[\]{};]))"
)
_COMPARES = frozenset({"<", ">", "<=", ">=", "==", "!="})
_LOOSER = frozenset({"&", "|", "^", "&&", "||", "?", ":", ",", "=", "<<=", ">>=", ";", "{", "}"})
"""What binds less than a comparison, or makes it a part of something else."""
_DECIDES = frozenset({"?", "&&", "||"})
_OPEN, _CLOSED = frozenset("(["), frozenset(")]")

_TYPE = re.compile(r"NULL|const|volatile|unsigned|signed|int|char|short|long|struct|sizeof|\w+_t")

Operand = str | int | None


def test_of(statement: str) -> SourceTest | None:
    """The condition of the ``if`` at the start of ``statement``; None where there is none, or it is no comparison.

    So where more than a brace stands behind it on its line: what branches there might be taken for it.

    *Soundness:* as said of the module.
    """
    tokens, text = _condition(statement)
    inner = [token for token, depth in tokens if not depth]
    at = [number for number, (token, depth) in enumerate(tokens) if token in _COMPARES and not depth]
    words = [token for token, _ in tokens]
    # Any other condition in it is a branch as well, perhaps of the same values.
    others = [token for token in words if token in _COMPARES or token in _DECIDES]
    if not words or _LOOSER.intersection(inner) or len(others) > len(at) or len(at) > 1:
        return None
    if not at:
        negated = words[:1] == ["!"]
        name = _operand(words[negated:], ())
        return SourceTest(name, "==" if negated else "!=", 0, text) if isinstance(name, str) else None
    left, right = words[: at[0]], words[at[0] + 1 :]
    return SourceTest(_operand(left, right), words[at[0]], _operand(right, left), text)


def unknown_names(test: SourceTest, known: Collection[str], macros: Collection[str]) -> list[str]:
    """Names in a condition that are ``macros``, or neither members, types nor ``known``: each may have branches."""
    names = re.findall(r"(->\s*|\.\s*)?\b([A-Za-z_]\w*)", test.text)
    plain = {name for member, name in names if member or name in known or _TYPE.fullmatch(name)}
    return sorted({name for _, name in names if name in macros or name not in plain})


def _condition(statement: str) -> tuple[list[tuple[str, int]], str]:
    """The tokens of the condition, each with the number of brackets that are open around it, and its text."""
    head = re.match(r"if\s*\(", statement)
    start = position = head.end() if head else len(statement)
    depth = 0
    found: list[tuple[str, int]] = []
    while depth >= 0 and (match := _TOKEN.match(statement, position)):
        position, word = match.end(), match[match.lastgroup or 0]
        depth -= word in _CLOSED
        found.append((word, depth))
        depth += word in _OPEN
    is_alone = depth < 0 and statement[position:].partition("\n")[0].strip() in ("", "{")
    return (found[:-1], statement[start : position - 1].strip()) if is_alone else ([], "")


def _operand(words: Sequence[str], other: Sequence[str]) -> Operand:
    """A variable, unless the ``other`` side speaks of it too, or a number."""
    if list(words) == ["NULL"]:
        return 0
    if len(words) != 1 or words[0] in other:
        return None
    digits = re.fullmatch(r"(0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)", words[0])
    if digits:
        return int(words[0], 0)
    return words[0] if re.fullmatch(r"[A-Za-z_]\w*", words[0]) else None
