"""Finding the sources of an ELF file through its debug information, for loops and facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

from wcet_probe.build.image import source_paths

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*([^\n]*)", re.MULTILINE)
_FILE = re.compile(r'["<]([^">\n]+)[">]')
_LONGEST_NAME = 200
_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t\f\v]*\r?\n")
"""What joins a line with the next one; in a text without them, a NUL stands for each."""
_GAP = r"(?:[ \t\f\v\0\ufeff]|/\*(?:[^*]|\*(?!/))*\*/)*"
_LINE = re.compile(
    rf"(?:^|\*/){_GAP}(?:#|%\0*:|\?\?=){_GAP}(?:l\0*i\0*n\0*e(?!\w){_GAP}|(?=\d))"
    rf'([\d\0]*){_GAP}(?:"([^"\n]*)")?{_GAP}([^\n]*)',
    re.MULTILINE,
)


def find_sources(elf: bytes, roots: Sequence[Path]) -> Mapping[str, str]:
    """The texts of the sources of ``elf`` that lie below ``roots``, by file name, as its line table names them.

    A path of the debug information is looked up by its longest tail that exists below a root, the first root first;
    nothing outside of the roots is read. A name that belongs to two files of different or unknown text is left out, as
    the line table could mean either. What these files include and the line table does not name, as headers of macros,
    is there as well, with ``./`` before its name, or ``./HASH/`` where another one has the name.

    Parameters:
        elf: the bytes of the file.
        roots: folders to look in.

    Raises:
        ImageError: no ELF, or damaged debug information.
    """
    texts: dict[str, set[str | None]] = {}
    files: list[Path] = []
    for path in source_paths(elf):
        found = next((file for file in _candidates(path, roots) if file.is_file()), None)
        texts.setdefault(path.name, set()).add(found.read_text("utf-8", "replace") if found is not None else None)
        files += [found] if found is not None else []
    single = {name: next(iter(variants)) for name, variants in sorted(texts.items()) if len(variants) == 1}
    return {**{name: text for name, text in single.items() if text is not None}, **_included(files, roots)}


def included_files(text: str) -> Iterator[str]:
    """What a source includes, as it is written; of a macro that tells it, the macro.

    What stands in comments or is left out by conditions is told, too.
    """
    for said in _INCLUDE.findall(text):
        file = _FILE.match(said)
        yield file[1] if file else said.strip()


def renumbered_files(texts: Mapping[str, str]) -> frozenset[str]:
    """The names of files with lines that a ``#line`` gives to other code than what stands there.

    Of one whose number a macro tells, all files. What is left out by conditions is told, too.

    Parameters:
        texts: of files by name, or path.
    """
    found = set[str]()
    for file, spliced in texts.items():
        own, text = PurePosixPath(file).name, _SPLICE.sub("\0", spliced)
        for said in _LINE.finditer(text):
            number, name, rest = (None if one is None else one.replace("\0", "") for one in said.groups())
            named = PurePosixPath(name).name if name is not None else own
            before = text[: said.start(1)]
            is_own = named == own and number and int(number) == 2 + before.count("\n") + before.count("\0")
            is_plain = number and "\\" not in named and (not rest or name is not None or rest.startswith("//"))
            found |= {PurePosixPath(one).name for one in texts} if not is_plain else set() if is_own else {named}
    return frozenset(found)


def _included(files: Collection[Path], roots: Sequence[Path]) -> dict[str, str]:
    """The texts of what ``files`` include and are not."""
    found: dict[str, str] = {}
    seen, todo = {file.resolve() for file in files}, list(files)
    while todo:
        including = todo.pop()
        for name in included_files(including.read_text("utf-8", "replace")):
            if len(name) > _LONGEST_NAME or "\0" in name:
                continue
            for file in (including.parent / name, *_candidates(PurePosixPath(name), roots)):
                if not file.is_file() or not any(file.resolve().is_relative_to(root.resolve()) for root in roots):
                    continue
                if file.resolve() not in seen:
                    seen.add(file.resolve())
                    todo.append(file)
                    text = file.read_text("utf-8", "replace")
                    if found.setdefault(f"./{file.name}", text) != text:
                        found[f"./{sha256(text.encode()).hexdigest()[:8]}/{file.name}"] = text
                break
    return dict(sorted(found.items()))


def _candidates(path: PurePosixPath, roots: Sequence[Path]) -> Iterator[Path]:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            del parts[-1:]
        elif part not in ("/", "."):
            parts.append(part)
    for start in range(len(parts)):
        yield from (root.joinpath(*parts[start:]) for root in roots)
