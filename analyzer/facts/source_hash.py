"""The hash that binds a fact to a function's source: over the preprocessing tokens of its definition (C11, 6.4).

A definition begins behind the last semicolon, brace or directive before it and ends with the brace that closes its
body. Comments, pragmas, white space and spliced lines are no tokens. A quote is a token of its own, as is each escape
in what it quotes; the end of an ``#if`` is an empty token. What a parser makes of the source plays no part, so that
whoever checks a fact finds its hash again with these rules alone.

Words: flow fact (docs/explanation/glossary.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache

_SPLICE = r"\\\r?\n"
_TOKEN = re.compile(
    rf"""(?P<space> \s+ | {_SPLICE})
    | (?P<condition> \#[ \t]*(?:el)?if\b) (?P<rest> (?:{_SPLICE}|[^\n])*) \n
    | (?P<directive> \#[ \t]*[a-z]+)
    | (?P<quote> ["'])
    | (?P<number> \.?[0-9](?:[eEpP][+-]|[\w.])*)
    | (?P<word> [A-Za-z_]\w*)
    | (?P<sign> \.\.\. | <<= | >>= | \#\# | -> | \+\+ | -- | << | >> | && | \|\| | [-+*/%&|^<>=!]= | \S)""",
    re.VERBOSE,
)
_QUOTED = {quote: re.compile(rf"((?:\\.|[^{quote}\\\n])*){quote}", re.DOTALL) for quote in "\"'"}
_ESCAPE = re.compile(r"(\\(?:[0-7]{1,3}|x[0-9A-Fa-f]+|.))", re.DOTALL)
_STRING = re.compile(rb"""(["'])(?:\\.|(?!\1)[^\\\n])*\1""", re.DOTALL)
_TO_BODY = re.compile(rb"[^;{}()=,]*\{")
_DIRECTIVE = re.compile(rb"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)


def definition_sha256(code: bytes, name: str, parsed: range) -> str:
    """Hex digest of the tokens of the definition of the function ``name``.

    Parameters:
        code: the source, comments and pragmas blanked.
        parsed: bytes that a parser took for the definition. They count where no header with a body is found from there
            on, as in the old style with declarations between both.

    Soundness: nothing rests on it but that a fact is refused once its function has changed.
    """
    plain, ends = _marked(code)
    start, end = parsed.start, parsed.stop
    for head in re.compile(rb"\b%s\s*(?=\()" % re.escape(name.encode())).finditer(plain, start):
        body = _TO_BODY.match(plain, _closed(plain, head.end()))
        if body is not None:
            start, end = head.start(), _closed(plain, body.end() - 1)
            break
    first = max(ends.rfind(mark, 0, start) for mark in (b";", b"{", b"}")) + 1
    found = tokens(code[first:end].decode("utf-8", "replace"))
    return hashlib.sha256("\0".join(found).encode()).hexdigest()


def _closed(plain: bytes, start: int) -> int:
    """Behind the parenthesis or brace that closes the one at ``start``."""
    kind = rb"[()]" if plain[start : start + 1] == b"(" else rb"[{}]"
    depth = 0
    for found in re.compile(kind).finditer(plain, start):
        depth += 1 if found[0] in b"({" else -1
        if not depth:
            return found.end()
    return len(plain)


@lru_cache(maxsize=8)
def _marked(code: bytes) -> tuple[bytes, bytes]:
    """``code`` without strings, and the same with semicolons for directives."""
    plain = _STRING.sub(lambda found: b" " * len(found[0]), code)
    return plain, _DIRECTIVE.sub(lambda found: b";" * len(found[0]), plain)


def tokens(text: str) -> Iterator[str]:
    """The preprocessing tokens of ``text``, which has no comments and no pragmas.

    Soundness: none is claimed.
    """
    offset = 0
    while found := _TOKEN.match(text, offset):
        offset = found.end()
        if found["condition"]:
            yield found["condition"]
            yield from tokens(found["rest"])
            yield ""
        elif found["quote"]:
            quoted = _QUOTED[found["quote"]].match(text, offset)
            yield found["quote"]
            if quoted is not None:
                offset = quoted.end()
                yield from filter(None, _ESCAPE.split(quoted[1]))
                yield found["quote"]
        elif not found["space"]:
            yield found[0]
