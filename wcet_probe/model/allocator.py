"""An allocator as data of ``allocators/``: sources, entry points, parameters, and what it claims or specifies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Parameter:
    """A build parameter of an allocator: the macro it sets, its default, the values it may take.

    These are ``choices``, or where there are none the whole numbers of ``span``, its first and its last.
    """

    name: str
    macro: str
    default: int
    choices: tuple[int, ...]
    description: str
    span: tuple[int, int] | None = None

    def takes(self, value: int) -> bool:
        """Whether it may be ``value``."""
        return self.span[0] <= value <= self.span[1] if self.span else value in self.choices

    @property
    def choices_in_words(self) -> str:
        """The values that it may take: each of them, or the ends of a range."""
        return f"{self.span[0]} to {self.span[1]}" if self.span else ", ".join(map(str, self.choices))


@dataclass(frozen=True, slots=True)
class Complexity:
    """A complexity that the literature claims for an operation, and who claims it."""

    claim: str
    source: str


@dataclass(frozen=True, slots=True)
class SetSpecification:
    """An allocator touches the data cache in reserved sets only, but for the block that a call is about.

    Attributes:
        first_set, sets: parameters that tell the reserved sets, where its data and descriptors lie.
        cache_sets, line_bytes: parameters that tell the cache that it is built for. Each of the four is the name of a
            parameter, or the number where the sources know no other.
        source: who specifies it.
        argument: the document that argues by hand for what lemmas take for granted; empty if there is none.
        argument_sha256: of the sources that it was written for (`Allocator.sources_sha256`).
        static_anywhere: whether static data may lie in any set, and the reserved ones are those of descriptors alone.
    """

    first_set: str | int
    sets: str | int
    cache_sets: str | int
    line_bytes: str | int
    source: str
    argument: str = ""
    argument_sha256: str = ""
    static_anywhere: bool = False

    def cache(self, values: Mapping[str, int]) -> tuple[int, int]:
        """Sets and bytes of a line of the cache that a build with these ``values`` of parameters is for."""
        return _number(self.cache_sets, values), _number(self.line_bytes, values)

    def reserved(self, values: Mapping[str, int]) -> range:
        """The reserved sets of a build with these ``values`` of parameters."""
        first = _number(self.first_set, values)
        return range(first, first + _number(self.sets, values))


def _number(parameter: str | int, values: Mapping[str, int]) -> int:
    return parameter if isinstance(parameter, int) else values[parameter]


CPP_SUFFIXES = (".cpp", ".cc", ".cxx")
"""How names of C++ files end."""


def says(call: str, word: str) -> bool:
    """Whether ``word`` stands in the C of ``call``."""
    return bool(re.search(rf"\b{word}\b", call))


@dataclass(frozen=True, slots=True)
class OwnBuild:
    """What an allocator that is not of the package needs besides its C, as its manifest says.

    Attributes:
        paths: where each source lies in the folder of the manifest, by file name, or ``./`` and the path where two
            headers have that name.
        include_dirs: folders of headers, from the folder of the manifest.
        included: paths of what is read only because other files include it: its folder is searched for nothing else.
        flags: of the compiler, behind the tool's own.
        objects: compiled files that are linked as well, as ``(path, content)``: relocatable objects and archives.
        object_sources: C files that the objects were compiled from, which facts and lines are read in, as their paths.
        libraries: sources that are linked only as far as something needs them, by file name.
        stubs: functions that do nothing and return 0 in place of what a system has, such as locks.
        heap_macro: the macro that says the size of the heap in bytes when it is compiled; empty if none does.
        heap_symbol: the array that is the heap; empty where ``init`` is given the heap.
        heap_start, heap_end: where the heap of a linked program begins, and ends: an address or a symbol; empty where
            it is ``heap_symbol``, or where ``init`` is given the heap.
        elf: the linked program whose functions are called where they are, as ``(path, content)``; None where the
            allocator is compiled or linked here.
        overhead_bytes: bytes of a block besides what is asked for, at most; scenarios fill heaps by it.
        minimum_block_bytes: bytes that the smallest block takes, with all that belongs to it; scenarios count with it.
        largest_request_bytes: the largest size that malloc serves, as of a pool of blocks of one size; 0: any.
        most_blocks: how many blocks are in use at most, where a table of the allocator's own says so; 0: any number.
        is_checked: whether there is a function that checks the heap's invariants.
        calls: the C of each call, by role, where there is an adapter.
        constructs: whether functions that run before ``main`` may be among its code, which init calls first.
    """

    paths: Mapping[str, str]
    include_dirs: tuple[str, ...]
    included: tuple[str, ...]
    flags: tuple[str, ...]
    objects: tuple[tuple[str, bytes], ...]
    object_sources: tuple[str, ...]
    libraries: tuple[str, ...]
    stubs: tuple[str, ...]
    heap_macro: str
    heap_symbol: str
    overhead_bytes: int
    minimum_block_bytes: int
    largest_request_bytes: int
    most_blocks: int
    is_checked: bool
    calls: Mapping[str, str]
    heap_start: str | int = ""
    heap_end: str | int = ""
    elf: tuple[str, bytes] | None = None
    constructs: bool = False


@dataclass(frozen=True, slots=True)
class Allocator:
    """An allocator: C sources, entry points, parameters, claims. Everything in it is data of ``allocators/``.

    Attributes:
        name: the name on the command line.
        title: full name.
        sources: C files, as ``(file name, text)`` in the order of compilation; headers included.
        entry_points: C symbol by role: ``init``, ``malloc``, ``free``, ``check``.
        alignment_bytes: alignment of the blocks that malloc returns.
        minimum_heap_bytes: smallest heap that ``init`` accepts.
        parameters: build parameters with their values' choices.
        values: the value of each parameter in this build.
        presets: named sets of parameter values, a paper's for instance.
        takes_cache_set: whether malloc takes the cache set of the block as a second argument.
        complexity: claimed complexity by operation (``malloc``, ``free``).
        literature: the papers and sections that the code is written from.
        facts: files of flow facts, as ``(file name, text)``.
        promise: which cache sets it keeps to, or None where it specifies none; called as in documents.
        own: how it is built, where it is not one of the package.
        found: states that searches found of it, as ``(file name, text)``.
    """

    name: str
    title: str
    summary: str
    sources: tuple[tuple[str, str], ...]
    entry_points: Mapping[str, str]
    alignment_bytes: int
    minimum_heap_bytes: int
    parameters: tuple[Parameter, ...]
    values: Mapping[str, int]
    presets: Mapping[str, Mapping[str, int]]
    takes_cache_set: bool
    complexity: Mapping[str, Complexity]
    literature: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    promise: SetSpecification | None = None
    own: OwnBuild | None = None
    found: tuple[tuple[str, str], ...] = ()

    @property
    def free_takes_size(self) -> bool:
        """Whether free takes, as a second argument, the bytes that malloc was asked for."""
        return self.own is not None and says(self.own.calls["free"], "size")

    @property
    def cache(self) -> tuple[int, int]:
        """Sets and bytes of a line of the cache that it is built for; one of each where it specifies none."""
        return self.promise.cache(self.values) if self.promise else (1, 1)

    @property
    def sources_sha256(self) -> str:
        """The SHA-256 of names and texts of its C files, none of which is made: of which version a text speaks."""
        kept = (source for source in self.sources if self.own is None or source[0] in self.own.paths)
        parts = (part for source in kept for part in source)
        return sha256("\0".join(parts).encode()).hexdigest()
