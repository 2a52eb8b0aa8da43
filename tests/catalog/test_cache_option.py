from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.errors import UsageError
from wcet_probe.model.target import (
    Basis,
    CacheConfig,
    Isa,
    MemoryMap,
    MemoryRange,
    MemoryTiming,
    Replacement,
    Sourced,
    Target,
    Timing,
)

CACHE = CacheConfig(128, 4, 32, Replacement.LRU, True, True, 0, Basis.MANUAL, "manual, p. 1")
NUMBER = Sourced(1, Basis.ASSUMED, "nowhere")
RANGE = MemoryRange(0, 4096)
TARGET = Target(
    name="toy",
    title="Toy",
    isa=Isa.ARM,
    big_endian=False,
    emulator_model="",
    pcode_language="",
    compiler_flags={},
    gcc_prefix="",
    linker_emulation="",
    timing={},
    condition_failed=Timing(1, 0, 0, 0, Basis.ASSUMED, "nowhere"),
    icache=CACHE,
    dcache=CACHE,
    memory=MemoryTiming(NUMBER, NUMBER, NUMBER),
    memory_map=MemoryMap(RANGE, RANGE, RANGE, 0),
    modelling_choices=(),
)
BARE = replace(TARGET, icache=None, dcache=None)


def geometry(cache):
    return cache.size_bytes, cache.sets, cache.ways, cache.line_bytes


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("size=8K", (8192, 64, 4, 32)),
        ("sets=64", (8192, 64, 4, 32)),
        ("ways=8", (16384, 64, 8, 32)),
        ("line=64", (16384, 64, 4, 64)),
        ("size=8K,sets=128", (8192, 128, 2, 32)),
        ("size=8K,ways=1", (8192, 256, 1, 32)),
        ("size=8K,line=16", (8192, 128, 4, 16)),
        ("sets=1,ways=3", (96, 1, 3, 32)),
        ("sets=16,line=8", (512, 16, 4, 8)),
        ("ways=2,line=16", (16384, 512, 2, 16)),
        ("size=4K,sets=32,ways=2", (4096, 32, 2, 64)),
        ("size=4K,sets=32,ways=2,line=64", (4096, 32, 2, 64)),
    ],
)
def test_geometry_follows_from_what_is_given(spec, expected):
    changed = apply_cache_option(TARGET, spec)
    assert geometry(changed.icache) == geometry(changed.dcache) == expected


def test_a_prefix_means_one_cache():
    changed = apply_cache_option(TARGET, "d:size=8K")
    assert (changed.icache, changed.dcache.size_bytes) == (CACHE, 8192)
    changed = apply_cache_option(TARGET, "i:size=8K")
    assert (changed.icache.size_bytes, changed.dcache) == (8192, CACHE)
    assert apply_cache_option(TARGET, "both:size=8K") == replace(
        apply_cache_option(TARGET, "size=8K"),
        icache=replace(changed.icache, source="manual, p. 1; changed by --cache both:size=8K"),
        dcache=replace(changed.icache, source="manual, p. 1; changed by --cache both:size=8K"),
    )


def test_none_removes():
    assert apply_cache_option(TARGET, "i:none") == replace(TARGET, icache=None)
    assert apply_cache_option(TARGET, "none") == BARE


def test_policies():
    changed = apply_cache_option(TARGET, "policy=random,seed=7,write=through,allocate=no")
    assert (changed.dcache.replacement, changed.dcache.seed) == (Replacement.RANDOM, 7)
    assert (changed.dcache.write_back, changed.dcache.write_allocate) == (False, False)
    assert (changed.icache.write_back, changed.icache.write_allocate) == (True, True)
    assert changed.icache.replacement is Replacement.RANDOM


def test_settings_of_writes_leave_the_instruction_cache_alone():
    assert apply_cache_option(TARGET, "write=through").icache is CACHE


def test_what_is_changed_is_assumed():
    changed = apply_cache_option(TARGET, "d:ways=2").dcache
    assert changed.basis is Basis.ASSUMED
    assert changed.source == "manual, p. 1; changed by --cache d:ways=2"


def test_a_new_cache_has_documented_defaults():
    assert apply_cache_option(BARE, "d:size=1K,ways=2,line=16").dcache == CacheConfig(
        32, 2, 16, Replacement.LRU, True, True, 0, Basis.ASSUMED, "--cache d:size=1K,ways=2,line=16"
    )


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("", "unknown cache setting ''"),
        ("x:size=4K", "unknown cache 'x'"),
        ("wys=4", "unknown cache setting 'wys': did you mean 'ways'?"),
        ("non", "unknown cache setting 'non': did you mean 'none'?"),
        ("policy=fif", "unknown cache policy 'fif': did you mean 'fifo'?"),
        ("d:write=trough", "unknown cache write 'trough': did you mean 'through'?"),
        ("allocate=maybe", "unknown cache allocate 'maybe'"),
        ("i:write=back", "an instruction cache has no 'write'"),
        ("ways=4,ways=4", "cache setting 'ways' needs one value"),
        ("ways", "cache setting 'ways' needs one value"),
        ("ways=", "cache setting 'ways' needs one value"),
        ("ways=-1", "must be a whole number"),
        ("ways=0", "can be 0"),
        ("size=four", "is no size in bytes"),
        ("ways=3", "is not 170 sets x 3 ways x 32 bytes"),
        ("sets=96", "sets of the instruction cache must be a power of two, not 96"),
        ("size=12K", "sets must be a power of two"),
        ("line=24,sets=128", "line of the instruction cache must be a power of two, not 24"),
        ("line=2", "a line has at least 4 bytes"),
        ("size=128M", "a cache at most 64 MiB"),
        ("size=4K,sets=1,ways=1,line=32", "give values that agree"),
        ("size=32,sets=64,ways=64", "give values that agree"),
        ("sets=128,ways=3,policy=plru", "plru cache needs ways that are a power of two, not 3"),
    ],
)
def test_a_bad_spec_is_one_usage_error(spec, sentence):
    with pytest.raises(UsageError) as error:
        apply_cache_option(TARGET, spec)
    assert sentence in str(error.value)


def test_a_new_cache_needs_its_geometry():
    with pytest.raises(UsageError, match="toy has no data cache: give its size, ways and line"):
        apply_cache_option(BARE, "d:size=4K,ways=2")


POWERS = st.integers(0, 8).map(lambda bits: 1 << bits)


@given(POWERS, st.integers(1, 9), POWERS.map(lambda n: 4 * n), st.permutations(["size", "sets", "ways", "line"]))
def test_any_three_fix_the_fourth(sets, ways, line_bytes, order):
    values = {"size": sets * ways * line_bytes, "sets": sets, "ways": ways, "line": line_bytes}
    spec = ",".join(f"{key}={values[key]}" for key in order[:3])
    for target in (TARGET, BARE):
        assert geometry(apply_cache_option(target, f"d:{spec}").dcache) == tuple(values.values())


@given(st.text("idboth:sezwaylnpcruf=,0123456789K", max_size=24))
def test_any_text_is_a_spec_or_one_usage_error(spec):
    try:
        changed = apply_cache_option(TARGET, spec)
    except UsageError:
        return
    for cache in (changed.icache, changed.dcache):
        assert cache is None or (cache.sets & (cache.sets - 1)) == 0


UNIFIED = replace(TARGET, unified_cache=True)


@pytest.mark.parametrize("prefix", ["", "both:", "u:"])
def test_a_unified_cache_is_refined_as_one(prefix):
    changed = apply_cache_option(UNIFIED, f"{prefix}size=8K,policy=plru,write=through")
    assert changed.icache is changed.dcache
    assert (changed.unified_cache, changed.dcache.replacement, changed.dcache.write_back) == (
        True,
        Replacement.PLRU,
        False,
    )
    assert geometry(changed.dcache) == (8192, 64, 4, 32)


def test_separate_caches_are_put_together():
    changed = apply_cache_option(replace(TARGET, icache=replace(CACHE, ways=2)), "u:line=64")
    assert (changed.unified_cache, changed.icache is changed.dcache) == (True, True)
    assert geometry(changed.dcache) == (16384, 64, 4, 64)
    assert apply_cache_option(BARE, "u:size=4K,ways=2,line=16").unified_cache


def test_a_unified_cache_is_removed_whole():
    for spec in ("none", "u:none", "both:none"):
        changed = apply_cache_option(UNIFIED, spec)
        assert (changed.icache, changed.dcache, changed.unified_cache) == (None, None, False)


@pytest.mark.parametrize("which", ["i", "d"])
def test_half_of_a_unified_cache_is_refused(which):
    with pytest.raises(UsageError, match=f"toy has one cache for both: say u: instead of {which}:"):
        apply_cache_option(UNIFIED, f"{which}:size=8K")
