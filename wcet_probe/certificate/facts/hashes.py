# SPDX-License-Identifier: 0BSD
"""Is each function still the one that a fact was written for: the hash of its tokens, or of its code, found again.

The tokens are those of the definition, which begins behind the last semicolon, brace or directive before it, without
comments, white space, spliced lines and pragmas, with null bytes between them. Quotes are tokens of their own, as are
escapes in what they quote; the end of an ``#if`` is an empty token. A fact that names code by an offset has the hash of
the bytes of the function in the image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256

from wcet_probe.certificate.facts.asserted import Asserted, Fact
from wcet_probe.certificate.facts.plain_source import definitions
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.model.image import Image

_LEXEMES = re.compile(
    r"""/\*.*?\*/|//(?:\\\r?\n|[^\n])*|\\\r?\n|"""
    r"""\#[ \t]*pragma\b(?:\\\r?\n|[^\n])*|_Pragma\s*\(\s*L?"(?:\\.|[^"\\])*"\s*\)|"""
    r"""\#[ \t]*(?:el)?if\b(?:\\\r?\n|[^\n])*\n|\#[ \t]*[a-z]+|"""
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|"""
    r"""\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|\S""",
    re.DOTALL,
)
_QUOTED = re.compile(r"\\(?:[0-7]{1,3}|x[0-9A-Fa-f]+|.)|[^\\]+", re.DOTALL)


def check_hashes(asserted: Asserted, image: Image) -> tuple[int, list[str]]:
    """How many hashes of functions in facts were found again, and the places of facts of which no source is there.

    Raises:
        VerificationError: a function has changed since its fact was written, or a fact has no hash.
    """
    held, missing = 0, list[str]()
    for fact in asserted.facts:
        for function, digest in _hashes(fact):
            found = _found(asserted, fact, function, image)
            if not found:
                missing.append(fact.where)
                continue
            demand(digest, f"the fact at {fact.where} has no hash of {function}")
            demand(digest in found, f"{function} is another one than the fact at {fact.where} was written for")
            held += 1
    return held, missing


def _hashes(fact: Fact) -> Iterator[tuple[str, str]]:
    """Each function that a fact speaks of, with the hash in it."""
    hashes = fact.content.get("sha256")
    if isinstance(hashes, Mapping):
        yield from ((str(name), str(digest)) for name, digest in hashes.items())
    elif hashes is not None and fact.content.get("function") is not None:
        yield str(fact.content["function"]), str(hashes)


def _found(asserted: Asserted, fact: Fact, function: str, image: Image) -> set[str]:
    if fact.content.get("offset") is not None:
        symbol = image.symbols.get(function)
        for segment in image.segments if symbol is not None and symbol.size_bytes else ():
            start = symbol.address - segment.address if symbol is not None else -1
            code = segment.data[start : start + symbol.size_bytes] if symbol is not None and start >= 0 else b""
            if symbol is not None and len(code) == symbol.size_bytes:
                return {sha256(code).hexdigest()}
        return set()
    wanted = fact.content.get("file")
    return {
        digest
        for file, source in sorted((asserted.sources or {}).items())
        if wanted in {None, file}
        for digest in _digests(source, function)
    }


@lru_cache(maxsize=256)
def _digests(source: str, function: str) -> tuple[str, ...]:
    """The hashes of the definitions of a function in a source."""
    texts = definitions(source, function)
    return tuple(sha256(b"\0".join(token.encode() for token in tokens(text))).hexdigest() for text in texts)


def tokens(text: str) -> Iterator[str]:
    """The tokens of C source, but for comments and pragmas."""
    for found in _LEXEMES.finditer(text):
        token = found[0]
        if re.match(r"/[*/]|\\\r?\n|#[ \t]*pragma\b|_Pragma\s*\(", token):
            continue
        if token[0] == "#" and token[-1] == "\n":
            # The end of the line is an empty token.
            name = re.match(r"#[ \t]*[a-z]+", token)
            assert name is not None  # noqa: S101  (as the lexeme is)
            yield from (name[0], *tokens(token[name.end() :]), "")
        elif token[0] in "\"'" and len(token) > 1:
            yield token[0]
            yield from _QUOTED.findall(token[1:-1])
            yield token[0]
        else:
            yield token
