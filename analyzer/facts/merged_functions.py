"""Whether code of a binary function may be executed as that of another source function, which GCC has found equal.

Words: inlined call, line table (docs/explanation/glossary.md).

*Soundness:* GCC keeps one of several functions that are equal, with its lines, and calls it for the others, before it
puts the code of callees into callers. Of one that has code of its own none was made. Whoever calls the one that is kept
names it on the line of the call, and no other that is gone; of functions whose addresses are taken any may be meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_loops import PASTING
from wcet_probe.analyzer.facts.source_parts import SourceFunction
from wcet_probe.model.image import Image

Line = tuple[str, int] | None
"""A file and a line of it, None where there is none."""
_JUMP_BYTES = 8
"""As long is a function that only jumps to another one, at most."""


def may_be_another(  # noqa: PLR0917  where it stands, and what is asked
    name: str,
    entered: Iterable[Line],
    inlined: Iterable[tuple[str, Line]],
    index: SourceIndex,
    image: Image,
    is_like: Callable[[SourceFunction], bool],
) -> bool:
    """Whether code in ``name``, or what is inlined there, may be executed as that of another function.

    Parameters:
        name: a function that GCC has compiled; of a part or a copy the part behind the first dot does not count.
        entered: where it is called or jumped to; None of what has no line.
        inlined: the functions that were inlined around the code, and the lines of the calls.
        index, image: the sources and the binary.
        is_like: whether a function has what could be mistaken, as a loop.

    *Soundness:* as said of the module.
    """
    lines: dict[str, set[Line]] = {name: {*entered}}
    for callee, line in inlined:
        lines.setdefault(callee, set()).add(line)
    return any(_may_be_another(each, where, index, image, is_like) for each, where in lines.items())


def _may_be_another(
    name: str,
    lines: Iterable[Line],
    index: SourceIndex,
    image: Image,
    is_like: Callable[[SourceFunction], bool],
) -> bool:
    own = name.split(".", maxsplit=1)[0]
    functions = [one for source in index.files.values() for one in source.functions]
    is_void = {one.is_void for one in functions if one.name == own} or {False, True}
    others = [one for one in functions if one.name != own and one.is_void in is_void]
    gone = {one.name for one in others if not _is_apart(one.name, own, image) and is_like(one)}
    if not gone:
        return False
    if any(not gone.isdisjoint(source.mentioned) for source in index.files.values()):
        return True
    in_macros = any(not gone.isdisjoint(words) or PASTING in words for words in index.macros.values())
    for line in lines:
        called = _called_at(line, index)
        if line is None or not gone.isdisjoint(called) or (in_macros and own not in called):
            return True
    return False


def _is_apart(name: str, other: str, image: Image) -> bool:
    """Whether the function ``name`` has code of its own in the binary: all of it, a copy or a part."""
    own, one = image.symbols.get(name), image.symbols.get(other)
    if own is not None and own.size_bytes > _JUMP_BYTES:
        return one is None or one.address != own.address
    return any(each.startswith(f"{name}.") for each in image.symbols)


def _called_at(line: Line, index: SourceIndex) -> set[str]:
    if line is None or line[0] not in index.files:
        return set()
    return {name for name, at in index.files[line[0]].calls if at == line[1]}
