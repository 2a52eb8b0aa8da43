"""Reading a core's description, ``targets/NAME.toml``, into a :class:`~wcet_probe.model.target.Target`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import combinations
from typing import Any

from wcet_probe.catalog.toml_table import Table
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.target import (
    Architecture,
    Basis,
    CacheConfig,
    Fpu,
    Isa,
    MemoryMap,
    MemoryRange,
    MemoryTiming,
    Need,
    Replacement,
    Result,
    Sourced,
    Stall,
    Target,
    Timing,
    UnalignedAccess,
    UncachedRegion,
)

GRANULE_BYTES = 64 * 1024
"""The memory map's ranges start and end at multiples of this."""
_MOST_ACCESS_BYTES = 8
_MOST_CYCLES = 255
"""Of a row for unaligned accesses: the native core keeps them in a byte."""


@lru_cache(maxsize=32)
def parse_target(name: str, text: str) -> Target:
    """The target that the file ``targets/NAME.toml`` with the content ``text`` describes; one for each text.

    Parameters:
        name: the target's name, the file's name without ``.toml``.
        text: the file's content; ``targets/README.md`` describes its keys.

    Raises:
        UsageError: no TOML, a key is missing, unknown or has a bad value; the message names file, key and remedy.
    """
    file = f"targets/{name}.toml"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is no TOML ({error}); correct it.") from error
    table = Table(file, "", document)
    icache, dcache = _caches(table, document)
    memory_map = _memory_map(table.table("memory_map"))
    timing = table.table("timing").each(lambda timing, timing_class: _timing(timing.table(timing_class)))
    target = Target(
        name=name,
        title=table.text("title"),
        isa=table.choice("isa", Isa),
        big_endian=table.truth("big_endian"),
        emulator_model=table.text("emulator_model"),
        pcode_language=table.text("pcode_language"),
        compiler_flags=table.table("compiler_flags").each(lambda flags, family: flags.texts(family)),
        gcc_prefix=table.text("gcc_prefix"),
        linker_emulation=table.text("linker_emulation"),
        timing=timing,
        condition_failed=_timing(table.table("condition_failed")),
        icache=icache,
        dcache=dcache,
        memory=_memory(table.table("memory"), memory_map.code),
        memory_map=memory_map,
        modelling_choices=table.texts("modelling_choices"),
        unified_cache="cache" in document,
        stalls=tuple(_stall(stall, timing) for stall in table.tables("stalls")),
        architecture=table.choice("architecture", Architecture),
        fpu=table.choice("fpu", Fpu, Fpu.NONE),
        translation=table.text("translation", default=""),
        aligned_accesses=table.text("aligned_accesses", default=""),
        unaligned=_unaligned(table.tables("unaligned_accesses"), timing),
    )
    table.finish("icache", "dcache", "cache")
    return target


def _sourced(table: Table, minimum: int = 0) -> Sourced:
    sourced = Sourced(table.number("value", minimum), table.choice("basis", Basis), table.text("source"))
    table.finish()
    return sourced


def _timing(table: Table) -> Timing:
    timing = Timing(
        cycles=table.number("cycles"),
        per_register_cycles=table.number("per_register_cycles", default=0),
        load_use_cycles=table.number("load_use_cycles", default=0),
        taken_cycles=table.number("taken_cycles", default=0),
        basis=table.choice("basis", Basis),
        source=table.text("source"),
        note=table.text("note", default=""),
        literal_cycles=table.number("literal_cycles", default=0),
    )
    table.finish()
    return timing


def _stall(table: Table, timing: Mapping[str, Timing]) -> Stall:
    """A rule for two neighbours; a pattern of timing classes must fit one that can be charged."""
    stall = Stall(
        name=table.text("name"),
        producers=_classes(table, "producers", timing),
        consumers=_classes(table, "consumers", timing),
        result=table.choice("result", Result),
        need=table.choice("need", Need),
        cycles=table.number("cycles", 1),
        basis=table.choice("basis", Basis),
        source=table.text("source"),
        note=table.text("note", default=""),
    )
    table.finish()
    return stall


def _unaligned(tables: Iterable[Table], timing: Mapping[str, Timing]) -> tuple[UnalignedAccess, ...]:
    """What unaligned accesses take longer; no two rows speak of one access."""
    found: list[UnalignedAccess] = []
    for table in tables:
        one = UnalignedAccess(
            timing_classes=_classes(table, "timing_classes", timing),
            size_bytes=table.power_of_two("size_bytes", 2),
            alignment_bytes=table.power_of_two("alignment_bytes"),
            cycles=table.number("cycles", 1),
            basis=table.choice("basis", Basis),
            source=table.text("source"),
            note=table.text("note", default=""),
        )
        if one.size_bytes > _MOST_ACCESS_BYTES:
            raise table.error("size_bytes", f"cannot be {one.size_bytes}; an access has {_MOST_ACCESS_BYTES} at most")
        if one.alignment_bytes >= one.size_bytes:
            raise table.error("alignment_bytes", f"cannot be {one.alignment_bytes}; give less than size_bytes")
        if one.cycles > _MOST_CYCLES:
            raise table.error("cycles", f"cannot be {one.cycles}; give {_MOST_CYCLES} at most")
        for other in found:
            is_same = (other.size_bytes, other.alignment_bytes) == (one.size_bytes, one.alignment_bytes)
            if is_same and not set(other.timing_classes).isdisjoint(one.timing_classes):
                raise table.error("timing_classes", "has a class of another row for the same accesses; name it once")
        found.append(one)
        table.finish()
    return tuple(found)


def _classes(table: Table, key: str, timing: Mapping[str, Timing]) -> tuple[str, ...]:
    """The timing classes that an array of names and of patterns with ``*`` stands for."""
    found: set[str] = set()
    for pattern in table.texts(key):
        fitting = {timing_class for timing_class in timing if fnmatchcase(timing_class, pattern)}
        if not fitting:
            raise table.error(key, str(unknown_name("timing class", pattern, timing)))
        found |= fitting
    return tuple(sorted(found))


def _caches(table: Table, document: Mapping[str, Any]) -> tuple[CacheConfig | None, CacheConfig | None]:
    """Instruction and data cache: each its own, or both the one of ``[cache]``."""
    if "cache" in document:
        for key in ("icache", "dcache"):
            if key in document:
                raise table.error(key, "cannot stand beside [cache], which serves both; leave one of them out")
        unified = _cache(table.table("cache"), data=True)
        return unified, unified
    icache = _cache(table.table("icache"), data=False) if "icache" in document else None
    dcache = _cache(table.table("dcache"), data=True) if "dcache" in document else None
    return icache, dcache


def _cache(table: Table, *, data: bool) -> CacheConfig:
    """A cache; only the data cache has write policies, only ``random`` and ``round-robin`` have a seed."""
    replacement = table.choice("replacement", Replacement)
    plru = replacement is Replacement.PLRU
    cache = CacheConfig(
        sets=table.power_of_two("sets"),
        ways=table.power_of_two("ways") if plru else table.number("ways", 1),
        line_bytes=table.power_of_two("line_bytes", 4),
        replacement=replacement,
        write_back=data and table.truth("write_back"),
        write_allocate=data and table.truth("write_allocate"),
        seed=table.number("seed") if replacement.has_seed else 0,
        basis=table.choice("basis", Basis),
        source=table.text("source"),
    )
    table.finish()
    return cache


def _memory(table: Table, code: MemoryRange) -> MemoryTiming:
    """Latencies; uncached regions overlap neither each other nor the code, whose fetches they would not serve."""
    beats = table.table("beat_bytes")
    beats.power_of_two("value")
    memory = MemoryTiming(
        beat_bytes=_sourced(beats, 1),
        first_beat_cycles=_sourced(table.table("first_beat_cycles")),
        next_beat_cycles=_sourced(table.table("next_beat_cycles")),
        regions=tuple(_region(region) for region in table.tables("regions")),
    )
    for (i, one), (j, other) in combinations(enumerate(memory.regions), 2):
        if one.name == other.name or _overlap(one.extent, other.extent):
            raise table.error(f"regions.{j}", f"has the name or addresses of region {i}; change one of them")
    for i, region in enumerate(memory.regions):
        if _overlap(region.extent, code):
            raise table.error(f"regions.{i}", "overlaps the code, and only data can be uncached; move one of them")
    table.finish("regions")
    return memory


def _region(table: Table) -> UncachedRegion:
    found = UncachedRegion(
        name=table.text("name"),
        extent=MemoryRange(table.number("base_address"), table.number("size_bytes", 1)),
        read_cycles=_sourced(table.table("read_cycles")),
        write_cycles=_sourced(table.table("write_cycles")),
    )
    if found.extent.end_address > 1 << 32:
        raise table.error("size_bytes", f"cannot be {found.extent.size_bytes:#x}; end the region within 32 bits")
    table.finish()
    return found


def _overlap(one: MemoryRange, other: MemoryRange) -> bool:
    return one.base_address < other.end_address and other.base_address < one.end_address


def _memory_map(table: Table) -> MemoryMap:
    """The map; its ranges are aligned, lie below 4 GiB, leave the heap's start free and do not overlap."""
    ranges = {key: _range(table.table(key)) for key in ("code", "data", "stack")}
    heap_address = table.number("heap_address")
    if heap_address % GRANULE_BYTES:
        raise table.error("heap_address", f"cannot be {heap_address:#x}; give a multiple of {GRANULE_BYTES:#x}")
    placed = {**ranges, "heap_address": MemoryRange(heap_address, GRANULE_BYTES)}
    for (first, one), (second, other) in combinations(placed.items(), 2):
        if _overlap(one, other):
            raise table.error(second, f"overlaps {first}; move one of them")
    table.finish()
    return MemoryMap(**ranges, heap_address=heap_address)


def _range(table: Table) -> MemoryRange:
    found = MemoryRange(table.number("base_address"), table.number("size_bytes", 1))
    for key, value in (("base_address", found.base_address), ("size_bytes", found.size_bytes)):
        if value % GRANULE_BYTES or found.end_address > 1 << 32:
            raise table.error(key, f"cannot be {value:#x}; give a multiple of {GRANULE_BYTES:#x} within 32 bits")
    table.finish()
    return found
