"""Headers of the language's library, and functions whose header stands in a source several times, once in each style.

Words: flow fact (docs/explanation/glossary.md).

*Soundness:* as of all that reads sources none is claimed.
"""

from __future__ import annotations

import re

LIBRARY_HEADERS = frozenset(
    re.findall(
        r"\S+",
        "assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h setjmp.h "
        "signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h "
        "string.h tgmath.h threads.h time.h uchar.h wchar.h wctype.h",
    )
)
"""Of C11 (ISO/IEC 9899:2011, 7.1.2): their macros call nothing of a program."""
_ALTERNATIVES = re.compile(
    rb"^[ \t]*#[ \t]*if[^\n]*\n"
    rb"((?:(?![ \t]*#)[^\n]*\n)*?)"
    rb"(?:[ \t]*#[ \t]*el[^\n]*\n(?:(?![ \t]*#)[^\n]*\n)*)+"
    rb"[ \t]*#[ \t]*endif[^\n]*\n(?=\s*\{)",
    re.MULTILINE,
)
"""Conditional text that ends just before a body: a function's header, once in each style."""


def with_one_header(code: bytearray) -> bytes:
    """``code`` with one of the headers that a function has under ``#if``, as the preprocessor leaves one.

    Which one it is makes no difference to the function's name and loops; the directives go with the others.

    *Soundness:* as said of the module.
    """
    for found in _ALTERNATIVES.finditer(bytes(code)):
        kept = found.span(1) if found[1].strip() else (found.end(1), found.end(1))
        for start, end in ((found.start(), kept[0]), (kept[1], found.end())):
            code[start:end] = re.sub(rb"[^\n]", b" ", bytes(code[start:end]))
    return bytes(code)
