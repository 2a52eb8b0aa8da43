"""Which files of an allocator's folder its sources include, one through the other, as a compiler would find them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


def included(read: Callable[[str], str | None], files: Iterable[str], folders: Sequence[str]) -> tuple[str, ...]:
    """The paths of what ``files`` include, and what that includes, without ``files`` themselves, in the order found.

    What conditions leave out is there as well; what a macro names is not.

    Parameters:
        read: the text of a path from the manifest's folder, None where there is no such file.
        files: paths that are read anyhow.
        folders: where the compiler looks, in its order.
    """
    seen = dict.fromkeys(files)
    todo = [*seen]
    found: dict[str, None] = {}
    while todo:
        path = todo.pop()
        for quoted, bracketed in _INCLUDE.findall(read(path) or ""):
            places = [*([PurePosixPath(path).parent] if quoted else []), *map(PurePosixPath, folders)]
            inside = (one for place in places if (one := _inside(place / (quoted or bracketed))))
            first = next((one for one in inside if read(one) is not None), None)
            if first is not None and first not in seen:
                seen[first] = found[first] = None
                todo.append(first)
    return tuple(found)


def _inside(path: PurePosixPath) -> str | None:
    """``path`` without its ``..``; None where it leaves the folder."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return None if path.is_absolute() else "/".join(parts)
