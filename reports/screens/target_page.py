"""The page of a target: every number with its basis, and a reference to its source."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from wcet_probe.model.target import (
    CacheConfig,
    MemoryRange,
    Sourced,
    Stall,
    Target,
    Timing,
    UnalignedAccess,
    UncachedRegion,
)
from wcet_probe.reports.screens.layout import paragraph, table
from wcet_probe.reports.screens.terminal import Line, heading, items, page_width, print_lines
from wcet_probe.sizes import format_size

_IDENTITY_WIDTH = 18


def render_target(target: Target, console: Console) -> None:
    """Print every number of ``target`` with its source and basis, and the choices of its model."""
    print_lines(console, _target_page(target, page_width(console)))


class _Sources(dict[str, int]):
    """Numbers for texts, in order of first use."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self) + 1
        return self[text]


def _target_page(target: Target, width: int) -> Iterator[Line]:
    sources = _Sources()
    timings = {**target.timing, "(condition fails)": target.condition_failed}
    yield heading(f"{target.name}: {target.title}")
    for name, value in _identity(target):
        yield from paragraph(f"  {name}", value, width, _IDENTITY_WIDTH)
    yield heading("\nCycles of an instruction")
    yield from table(
        [_timing(name, timing, sources) for name, timing in timings.items()],
        ("class", "each", "per\nregister", "literal", "load-\nuse", "branch\ntaken", "basis", "source"),
    )
    if target.stalls:
        yield heading("\nCycles that a dependent instruction waits")
        yield from table(
            [_stall(stall, sources) for stall in target.stalls],
            ("what", "result", "needed", "cycles", "basis", "source"),
        )
    if target.unaligned:
        yield heading("\nCycles that an unaligned access takes longer")
        yield from table(
            [_unaligned(one, sources) for one in target.unaligned],
            ("bytes", "at multiples of", "cycles", "basis", "source"),
        )
    yield heading("\nCaches")
    caches = [("instruction", target.icache), ("data", target.dcache)]
    yield from table(
        [_cache(*cache, sources) for cache in ([("unified", target.dcache)] if target.unified_cache else caches)],
        ("cache", "size", "sets", "ways", "line", "policy", "writes", "basis", "source"),
    )
    yield heading("\nMemory behind the caches")
    yield from table(
        [
            _number("bytes of a beat", target.memory.beat_bytes, sources),
            _number("cycles of the first beat", target.memory.first_beat_cycles, sources),
            _number("cycles of each further beat", target.memory.next_beat_cycles, sources),
        ],
        ("what", "value", "basis", "source"),
    )
    if target.memory.regions:
        yield heading("\nUncached regions, cycles of an access")
        yield from table(
            [row for region in target.memory.regions for row in _region_rows(region, sources)],
            ("region", "addresses", "access", "cycles", "basis", "source"),
        )
    yield from items("Modelling choices", (("-", choice) for choice in target.modelling_choices), width)
    longer = [(_access(one), ", ".join(one.timing_classes)) for one in target.unaligned]
    yield from items("Which unaligned accesses take longer", longer, width)
    yield from items("Who waits for whom", ((stall.name, _who(stall, target)) for stall in target.stalls), width)
    notes = [(name, timing.note) for name, timing in timings.items()]
    notes += [(stall.name, stall.note) for stall in target.stalls]
    notes += [(_access(one), one.note) for one in target.unaligned]
    yield from items("Notes", ((name, note) for name, note in notes if note), width)
    yield from items("Sources", ((f"[{number}]", text) for text, number in sources.items()), width)


def _identity(target: Target) -> Iterator[tuple[str, str]]:
    places = target.memory_map
    yield "instruction set", f"{target.isa.value}, {'big' if target.big_endian else 'little'}-endian"
    yield "engine model", target.emulator_model
    yield "p-code language", target.pcode_language
    for family, flags in target.compiler_flags.items():
        yield f"{family} flags", " ".join(flags)
    yield "gcc prefix", target.gcc_prefix
    yield "linker emulation", target.linker_emulation
    for name, place in (("code", places.code), ("static data", places.data), ("stack", places.stack)):
        yield name, _range(place)
    yield "heap", f"from {places.heap_address:#010x}"
    if target.translation:
        yield "translation", target.translation
    if target.aligned_accesses:
        yield "aligned accesses", target.aligned_accesses


def _range(place: MemoryRange) -> str:
    return f"{place.base_address:#010x} to {place.end_address - 1:#010x}, {format_size(place.size_bytes)}"


def _timing(name: str, timing: Timing, sources: _Sources) -> tuple[object, ...]:
    added = (timing.per_register_cycles, timing.literal_cycles, timing.load_use_cycles, timing.taken_cycles)
    return name, timing.cycles, *added, timing.basis.value, f"[{sources[timing.source]}]"


def _stall(stall: Stall, sources: _Sources) -> tuple[object, ...]:
    needed = {"any": "at all", "address": "for an address", "shift": "shifted"}[stall.need]
    return stall.name, stall.result.value, needed, stall.cycles, stall.basis.value, f"[{sources[stall.source]}]"


def _unaligned(one: UnalignedAccess, sources: _Sources) -> tuple[object, ...]:
    return one.size_bytes, one.alignment_bytes, one.cycles, one.basis.value, f"[{sources[one.source]}]"


def _access(one: UnalignedAccess) -> str:
    return f"{one.size_bytes} bytes at multiples of {one.alignment_bytes}"


def _who(stall: Stall, target: Target) -> str:
    """The classes that ``stall`` speaks of."""
    producers, consumers = (
        "any" if len(classes) == len(target.timing) else ", ".join(classes)
        for classes in (stall.producers, stall.consumers)
    )
    return f"{consumers}; for the result of {producers}"


def _cache(name: str, cache: CacheConfig | None, sources: _Sources) -> tuple[object, ...]:
    if cache is None:
        return name, "none", *("-",) * 7
    policy = cache.replacement.value
    writes = f"{'back' if cache.write_back else 'through'}{', allocate' if cache.write_allocate else ''}"
    if name == "instruction":
        writes = "-"
    geometry = (format_size(cache.size_bytes), cache.sets, cache.ways, cache.line_bytes)
    return name, *geometry, policy, writes, cache.basis.value, f"[{sources[cache.source]}]"


def _region_rows(region: UncachedRegion, sources: _Sources) -> Iterator[tuple[object, ...]]:
    yield region.name, _range(region.extent), *_number("read", region.read_cycles, sources)
    yield "", "", *_number("write", region.write_cycles, sources)


def _number(what: str, number: Sourced, sources: _Sources) -> tuple[object, ...]:
    return what, number.value, number.basis.value, f"[{sources[number.source]}]"
