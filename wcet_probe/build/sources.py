"""Finding the sources of an ELF file through its debug information, for loops and facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from wcet_probe.build.image import source_paths


def find_sources(elf: bytes, roots: Sequence[Path]) -> Mapping[str, str]:
    """The texts of the sources of ``elf`` that lie below ``roots``, by file name, as its line table names them.

    A path of the debug information is looked up by its longest tail that exists below a root, the first root first;
    nothing outside of the roots is read. A name that belongs to two files of different or unknown text is left out, as
    the line table could mean either.

    Parameters:
        elf: the bytes of the file.
        roots: folders to look in.

    Raises:
        ImageError: no ELF, or damaged debug information.
    """
    texts: dict[str, set[str | None]] = {}
    for path in source_paths(elf):
        found = next((file for file in _candidates(path, roots) if file.is_file()), None)
        texts.setdefault(path.name, set()).add(found.read_text("utf-8", "replace") if found is not None else None)
    single = {name: next(iter(variants)) for name, variants in sorted(texts.items()) if len(variants) == 1}
    return {name: text for name, text in single.items() if text is not None}


def _candidates(path: PurePosixPath, roots: Sequence[Path]) -> Iterator[Path]:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            del parts[-1:]
        elif part not in ("/", "."):
            parts.append(part)
    for start in range(len(parts)):
        yield from (root.joinpath(*parts[start:]) for root in roots)
