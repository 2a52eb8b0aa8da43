"""What a compiler or a linker refused, in one sentence: all of a kind that is missing, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNDEFINED = re.compile(r"(?:undefined symbol: |undefined reference to [`'])([^\s`';]+)")
_KINDS = (
    _UNDEFINED,
    re.compile(r"unknown type name [`']([^`']+)'"),
    re.compile(r"undeclared (?:function|identifier) [`']([^`']+)'"),
    re.compile(r"implicit declaration of function [`']([^`']+)'"),
)
"""What is missing by a name, one kind a line; compilers go on behind the first."""

_HEADER = re.compile(r"file not found|No such file")

_BEFORE = 'include what declares it, as flags = ["-include", "stdint.h"] does before each file'
_HEAP_BESIDE = (
    "make its static data smaller by a -D under flags, or tell by symbol under [heap] which array is its heap"
)
_REMEDIES = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        (
            r"undefined \w+( to)?:? [`']?_Z[dn][al]",
            "that is new or delete of C++: add a source that has it, or list it under stubs where it is never called",
        ),
        (
            "undefined (symbol|reference)",
            "add the source that has it, or list it under stubs where it may do nothing and return 0",
        ),
        # By a folder and a name: its own folder would not help.
        (
            r"'[^']*/[^']*' file not found|error: \S+/\S+: No such file",
            "add the folder where that path begins to include_dirs, or leave the header out by a -D under flags",
        ),
        (_HEADER.pattern, "add its folder to include_dirs, or leave the header out by a -D under flags"),
        ("undeclared function|implicit declaration", f"{_BEFORE}; some headers do with -std=gnu11 under flags only"),
        (r"wp_adapter\.c(pp)?:", "correct [call] of the manifest: a call, include, or declarations"),
        ("unknown type name|undeclared|parameter list without types", _BEFORE),
        (r"region \S* ?overflowed|will not fit in region", _HEAP_BESIDE),
    )
)
"""What to do about what a compiler or linker says: the first that fits."""


def is_header(problem: str) -> bool:
    """Whether ``problem`` is a header that was not found."""
    return bool(_HEADER.search(problem))


def headers_of(rule: str) -> tuple[str, ...]:
    """The files that a rule for ``make`` tells, as compilers write it."""
    return tuple(rule.replace("\\\n", " ").partition(":")[2].split())


def with_others(problems: Sequence[str], headers: Sequence[str] = ()) -> str:
    """The first of the problems, with the names of all others of its kind, each once.

    Parameters:
        problems: lines of the compiler or linker, the first of which stopped it.
        headers: that are missing, where the first problem is one of them.
    """
    first = problems[0].strip()
    kind = next((kind for kind in _KINDS if kind.search(first)), None)
    others = dict.fromkeys(headers if is_header(first) else ())
    others |= dict.fromkeys(found[1] for problem in problems[1:] if kind and (found := kind.search(problem)))
    named = ", ".join(name for name in others if not re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", first))
    return f"{first} (and {named})" if named else first


def remedy_of(problem: str) -> str:
    """What to do about what a compiler or linker says."""
    found = (remedy for pattern, remedy in _REMEDIES if pattern.search(problem))
    return next(found, "mend the source or choose another --cc")
