"""An allocator of one's own: a folder anywhere with a ``manifest.toml``, read as those of the package are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from wcet_probe.catalog.adapter import ADAPTER, LIBRARY, SUPPORT, Calls, adapter_sources, entry_points
from wcet_probe.catalog.included import included
from wcet_probe.catalog.toml_table import Table
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.allocator import (
    CPP_SUFFIXES,
    Allocator,
    Complexity,
    OwnBuild,
    Parameter,
    SetSpecification,
    says,
)

MANIFEST, FACTS, FOUND = "manifest.toml", "facts.toml", "found"
ROLES = ("init", "malloc", "free", "check")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CONSTRUCTOR = re.compile(rb"\b__attribute__\b[^;{]*\b(?:__)?constructor\b|\.(?:init_array|ctors)\b")
"""In C, and in names of sections."""
_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_CPP_HEADERS = (".hpp", ".hh", ".hxx")
HEADER_SUFFIXES = (".h", *_CPP_HEADERS)


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """What a manifest says, as far as it needs no file but its own.

    Attributes:
        name: of the allocator.
        sources: paths of C files, from the folder of the manifest.
        headers: paths of the headers that are named.
        include_dirs: folders whose headers are all taken in.
        objects: paths of relocatable objects and archives.
        object_sources: paths of the C files that these were compiled from, as far as facts speak of them.
        elf: path of the linked program, or empty.
        table: the rest.
    """

    name: str
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    include_dirs: tuple[str, ...]
    objects: tuple[str, ...]
    object_sources: tuple[str, ...]
    elf: str
    table: Table

    @property
    def compiled(self) -> tuple[str, ...]:
        """Paths of all C files: those to compile, and those that the objects were compiled from."""
        return (*self.sources, *self.object_sources)


def read_own_name(folder: Traversable) -> str:
    """The name that the manifest in ``folder`` gives to its allocator.

    Raises:
        UsageError: there is no manifest, or it has no valid name.
    """
    return _files(folder).name


def own_files(folder: Traversable) -> tuple[str, ...]:
    """The files that the allocator in ``folder`` is read from, sorted, as paths from it.

    Raises:
        UsageError: there is no manifest, or a file that it names is missing.
    """
    files = _files(folder)
    read = (*files.compiled, *_headers(folder, files), *_included(folder, files))
    found = {MANIFEST, *read, *files.objects, *([files.elf] if files.elf else [])}
    kept = {f"{FOUND}/{file}" for file, _ in found_states(folder)}
    return tuple(sorted(found | kept | ({FACTS} if (folder / FACTS).is_file() else set())))


def found_states(folder: Traversable) -> tuple[tuple[str, str], ...]:
    """The states that searches found of the allocator in ``folder``: file name and text, by name."""
    place = folder / FOUND
    if not place.is_dir():
        return ()
    names = sorted(entry.name for entry in place.iterdir() if entry.name.endswith(".txt"))
    return tuple((name, _text(folder, f"{FOUND}/{name}")) for name in names)


def read_own(folder: Traversable) -> tuple[Allocator, Mapping[str, Mapping[str, int]]]:
    """The allocator that the manifest in ``folder`` describes, with the defaults of its parameters; and its presets.

    Raises:
        UsageError: there is no manifest, a key is missing, unknown or has a bad value, or a file is missing.
    """
    files = _files(folder)
    table, name = files.table, files.name
    parameters = tuple(_parameter(one) for one in table.tables("parameters"))
    presets = table.value("presets", dict, "give tables [presets.NAME]", {})
    heap = table.table("heap") if "heap" in table else Table(MANIFEST, "heap.", {})
    flags, stubs = table.optional_texts("flags"), table.optional_texts("stubs")
    objects = tuple((path, _object(folder, path)) for path in files.objects)
    calls = _calls(table, heap, in_cpp=any(path.endswith(CPP_SUFFIXES) for path in files.sources))
    code = (*(content for _, content in objects), *(_bytes(folder, path) for path in files.sources))
    calls = replace(calls, constructs=calls.in_cpp or any(_CONSTRUCTOR.search(one) for one in code))
    start, end = (_place(heap, key) for key in ("start", "end"))
    if files.elf:
        _check_linked(table, heap, calls)
    elif start or end:
        raise heap.error("start", 'tells where a linked program has its heap; name it by elf = "firmware.elf"')
    made = adapter_sources(name, calls, stubs)
    found = _included(folder, files)
    _named((), (*files.compiled, *(file for file, _ in made)))
    paths = _named((*_headers(folder, files), *found), files.compiled)
    own_texts = tuple((file, _text(folder, path)) for file, path in paths.items())
    alignment = table.power_of_two("alignment_bytes")
    allocator = Allocator(
        name=name,
        title=table.text("title"),
        summary=table.text("summary", default=""),
        sources=(*own_texts, *made),
        entry_points=MappingProxyType(entry_points(calls)),
        alignment_bytes=alignment,
        minimum_heap_bytes=table.number("minimum_heap_bytes", 1),
        parameters=parameters,
        values=MappingProxyType({one.name: one.default for one in parameters}),
        presets=MappingProxyType(presets),
        takes_cache_set=calls.takes_cache_set,
        complexity=_complexity(table),
        literature=table.optional_texts("literature"),
        facts=((f"{name}/{FACTS}", _text(folder, FACTS)),) if (folder / FACTS).is_file() else (),
        own=OwnBuild(
            paths=MappingProxyType(paths),
            included=found,
            include_dirs=files.include_dirs,
            flags=flags,
            objects=objects,
            object_sources=files.object_sources,
            libraries=(SUPPORT, LIBRARY),
            stubs=stubs,
            heap_macro=_symbol(heap, "size_macro"),
            heap_symbol=_symbol(heap, "symbol"),
            overhead_bytes=table.number("overhead_bytes", default=2 * alignment),
            largest_request_bytes=table.number("largest_request_bytes", default=0),
            most_blocks=table.number("most_blocks", default=0),
            minimum_block_bytes=table.number("minimum_block_bytes", default=4 * alignment),
            is_checked=bool(calls.check),
            calls=MappingProxyType({role: getattr(calls, role) for role in ROLES}),
            heap_start=start,
            heap_end=end,
            elf=(files.elf, _linked(folder, files.elf)) if files.elf else None,
            constructs=calls.constructs,
        ),
        promise=_specification(table, parameters, calls, heap),
        found=found_states(folder),
    )
    heap.finish("size_macro", "symbol", "growth", "start", "end")
    table.finish("heap", "complexity", "promise", "presets", "parameters", "facts")
    return allocator, presets


def _files(folder: Traversable) -> OwnFiles:
    manifest = folder / MANIFEST
    shown = str(manifest) if isinstance(manifest, Path) else MANIFEST  # in a pack it has no path of its own
    if not manifest.is_file():
        raise UsageError(f"there is no {shown}; write one with wcet-probe new-allocator FOLDER.")
    try:
        document: Mapping[str, Any] = tomllib.loads(manifest.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{shown} is no TOML in UTF-8 ({error}); correct it.") from error
    table = Table(shown, "", document)
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.error("name", f"cannot be {name!r}; give small letters, digits and single hyphens, as my-pool")
    files = OwnFiles(
        name=name,
        sources=_paths(table, "sources"),
        headers=_paths(table, "headers"),
        include_dirs=_paths(table, "include_dirs"),
        objects=_paths(table, "objects"),
        object_sources=_paths(table, "object_sources"),
        elf=_checked_path(table, "elf", table.text("elf", default="")),
        table=table,
    )
    if files.elf and (files.sources or files.objects):
        raise table.error("elf", "names a program that is linked already; leave sources and objects out")
    if other := next((path for path in files.sources if not path.endswith((".c", *CPP_SUFFIXES))), None):
        raise table.error(
            "sources",
            f"has {other}, which is no C or C++ file (*.c, *{', *'.join(CPP_SUFFIXES)}); compile it, name the result "
            "under objects and it under object_sources, and headers under headers",
        )
    if files.object_sources and not files.objects and not files.elf:
        raise table.error("object_sources", "speaks of objects; name these under objects, or the C files under sources")
    if not files.sources and not files.objects and not files.elf:
        message = "is missing; name C files, with objects compiled ones (*.o, *.a), or with elf a linked program"
        raise table.error("sources", message)
    return files


def _paths(table: Table, key: str) -> tuple[str, ...]:
    return tuple(_checked_path(table, key, path) for path in table.optional_texts(key))


def _checked_path(table: Table, key: str, path: str) -> str:
    """``path`` as it is written from the manifest's folder; nothing stays nothing."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path:
        raise table.error(key, f"cannot be {path!r}; put the manifest into a folder above, and write a path from it")
    return str(PurePosixPath(path)) if path else ""


def _place(heap: Table, key: str) -> str | int:
    """An address, or the name of a symbol; empty where there is none."""
    if key not in heap:
        return ""
    found: object = heap.value(key, object, "give an address, or the name of a symbol")
    if isinstance(found, str) and _SYMBOL.fullmatch(found):
        return found
    if type(found) is int and 0 <= found < 1 << 32:
        return found
    raise heap.error(key, f"cannot be {found!r}; give an address, or the name of a symbol")


def _headers(folder: Traversable, files: OwnFiles) -> tuple[str, ...]:
    """The headers that are named, and all that lie in the folders for headers."""
    found = dict.fromkeys(files.headers)
    for path in files.include_dirs:
        place = _at(folder, path)
        if not place.is_dir():
            raise files.table.error("include_dirs", f"{path} is no folder; write a path from the manifest's folder")
        names = sorted(entry.name for entry in place.iterdir() if entry.name.endswith(HEADER_SUFFIXES))
        found |= dict.fromkeys(str(PurePosixPath(path) / name) for name in names)
    return tuple(found)


def _included(folder: Traversable, files: OwnFiles) -> tuple[str, ...]:
    """What sources, headers and calls include besides, one through the other."""
    call = files.table.table("call") if "call" in files.table else Table(MANIFEST, "call.", {})
    flags = files.table.optional_texts("flags")
    first = [after for flag, after in pairwise(flags) if flag == "-include"]
    lines = [f'#include "{name}"' for name in (*first, *call.optional_texts("include"))]
    texts = {ADAPTER: "\n".join((*lines, call.text("declarations", default="")))}

    def read(path: str) -> str | None:
        if path not in texts and _at(folder, path).is_file():
            texts[path] = _text(folder, path)
        return texts.get(path)

    known = (*_headers(folder, files), *files.compiled)
    places = (".", *files.include_dirs, *(str(PurePosixPath(path).parent) for path in known))
    return included(read, (*known, ADAPTER), tuple(dict.fromkeys(places)))


def _named(headers: Iterable[str], compiled: Iterable[str]) -> dict[str, str]:
    """Paths by the file names that line tables tell; with ``./`` before the path where a name could mean two headers.

    Raises:
        UsageError: it could mean two files, of which one is compiled.
    """
    found = {path: PurePosixPath(path).name for path in headers}
    found |= {path: f"./{path}" for path, name in found.items() if [*found.values()].count(name) > 1}
    names = {name: path for path, name in found.items()}
    for path in compiled:
        name = PurePosixPath(path).name
        if (other := names.setdefault(name, path)) != path:
            message = (
                f"{other} and {path} have one file name, and the line table tells files by it; rename one of them."
            )
            raise UsageError(message)
    return names


def _at(folder: Traversable, path: str) -> Traversable:
    for part in PurePosixPath(path).parts:
        folder = folder / part
    return folder


def _bytes(folder: Traversable, path: str) -> bytes:
    file = _at(folder, path)
    if not file.is_file():
        raise UsageError(f"{MANIFEST} names {path}, which is not there; write its path from the manifest's folder.")
    return file.read_bytes()


def _object(folder: Traversable, path: str) -> bytes:
    content = _bytes(folder, path)
    if content[:4] == b"\x7fELF" and 2 in content[16:18]:  # ET_EXEC, in either byte order
        raise UsageError(
            f"{path} is a linked program, and cannot be linked again; name it by elf in place of objects, or give the "
            "objects or the archive that it was made of."
        )
    if content[:4] != b"\x7fELF" and content[:8] != b"!<arch>\n":
        raise UsageError(f"{path} is neither a relocatable object nor a static archive; give a *.o or *.a file.")
    return content


def _linked(folder: Traversable, path: str) -> bytes:
    content = _bytes(folder, path)
    if content[:4] != b"\x7fELF" or 2 not in content[16:18]:  # ET_EXEC, in either byte order
        raise UsageError(f"{path} is no linked program (an ELF file with addresses); name *.o and *.a under objects.")
    return content


def _check_linked(table: Table, heap: Table, calls: Calls) -> None:
    """What is compiled or linked anew cannot be said of a program that is linked.

    Raises:
        UsageError: it is.
    """
    for key in ("stubs", "parameters"):
        if key in table:
            raise table.error(key, "changes how a program is built, and that of elf is linked; leave it out")
    if heap.text("size_macro", default="") or calls.grows:
        key = "growth" if calls.grows else "size_macro"
        raise heap.error(key, "cannot be said of a linked program; tell where its heap is: symbol, or start and end")
    if ("start" in heap) != ("end" in heap) or ("start" in heap and "symbol" in heap):
        raise heap.error("start", "tells where the heap is together with end, and in place of symbol")


def _text(folder: Traversable, path: str) -> str:
    return _bytes(folder, path).decode("utf-8", "replace")


def _symbol(table: Table, key: str) -> str:
    text = table.text(key, default="")
    if text and not _SYMBOL.fullmatch(text):
        raise table.error(key, f"cannot be {text!r}; give one C name")
    return text


def _calls(table: Table, heap: Table, *, in_cpp: bool) -> Calls:
    grows = heap.text("growth", default="")
    if grows not in ("", "sbrk"):
        raise heap.error(
            "growth", f'cannot be {grows!r}; give "sbrk", which offers sbrk, _sbrk and brk, or leave it out'
        )
    call = table.table("call")
    result = call.text("result", default="value")
    if result not in ("value", "out"):
        raise call.error("result", f'cannot be {result!r}; give "value", or "out" where the block is put into result')
    include = call.optional_texts("include")
    calls = Calls(
        include=include,
        declarations=call.text("declarations", default=""),
        handle=call.text("handle", default=""),
        init=call.text("init", default=""),
        ready=call.text("ready", default=""),
        malloc=call.text("malloc"),
        is_out=result == "out",
        free=call.text("free", default=""),
        check=call.text("check", default=""),
        grows=bool(grows),
        # A header of C++'s library has no suffix.
        in_cpp=in_cpp or any(PurePosixPath(file).suffix in {"", *_CPP_HEADERS} for file in include),
    )
    said = (("malloc", "size"), *((("free", "pointer"),) if calls.free else ()))
    for role, word in (*said, *((("malloc", "result"),) if calls.is_out else ())):
        if not says(getattr(calls, role), word):
            pool = "; of a pool of blocks of one size: size <= 32 ? take(&pool) : 0" if word == "size" else ""
            raise call.error(role, f"does not say {word}; write the call in C, with {word} where it belongs{pool}")
    call.finish()
    return calls


def _complexity(table: Table) -> Mapping[str, Complexity]:
    if "complexity" not in table:
        return MappingProxyType({})
    found: dict[str, Complexity] = {}
    every = table.table("complexity")
    for role in ("malloc", "free"):
        if role in every:
            one = every.table(role)
            found[role] = Complexity(one.text("claim"), one.text("source"))
            one.finish()
    every.finish()
    return MappingProxyType(found)


def _specification(
    table: Table, parameters: Collection[Parameter], calls: Calls, heap: Table
) -> SetSpecification | None:
    """The cache sets that the allocator keeps to, by names of its ``parameters`` or by numbers."""
    if "promise" not in table:
        if calls.takes_cache_set:
            raise table.error(
                "promise", "is missing; malloc is told a cache set, and [promise] tells how many there are"
            )
        return None
    promise = table.table("promise")
    static_anywhere = "static_anywhere" in promise and promise.truth("static_anywhere")
    if static_anywhere and ("symbol" in heap or "start" in heap):
        raise promise.error("static_anywhere", "speaks of the heap, too, which is static data here; leave it out")
    found = SetSpecification(
        first_set=_told(promise, "first_set", parameters),
        sets=_told(promise, "sets", parameters),
        cache_sets=_told(promise, "cache_sets", parameters),
        line_bytes=_told(promise, "line_bytes", parameters),
        source=promise.text("source"),
        static_anywhere=static_anywhere,
    )
    promise.finish()
    return found


def _told(promise: Table, key: str, parameters: Collection[Parameter]) -> str | int:
    """The name of a parameter, or the number itself."""
    found: object = promise.value(key, object, "give the name of a parameter, or a number")
    if isinstance(found, int):
        return promise.number(key, minimum=0 if key == "first_set" else 1)
    names = [one.name for one in parameters]
    if promise.text(key) not in names:
        raise promise.error(key, str(unknown_name("parameter", promise.text(key), names)))
    return promise.text(key)


def _parameter(table: Table) -> Parameter:
    choices = table.value("choices", list, "give an array of whole numbers")
    if not choices or not all(type(choice) is int for choice in choices):
        raise table.error("choices", f"cannot be {choices!r}; give an array of whole numbers")
    found = Parameter(
        name=table.text("name"),
        macro=table.text("macro"),
        default=table.value("default", int, "give a whole number"),
        choices=tuple(choices),
        description=table.text("description", default=""),
    )
    table.finish()
    return found
