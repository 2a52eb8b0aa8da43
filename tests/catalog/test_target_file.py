"""The files of targets/: that they load, say where each number is from, and that a bad one is refused by name."""

from itertools import pairwise
from pathlib import Path

import pytest

from wcet_probe.catalog.target_file import GRANULE_BYTES, parse_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import TIMING_CLASSES
from wcet_probe.model.target import Basis, Isa, Replacement

FOLDER = Path(__file__).parents[2] / "targets"
FILES = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.toml"))}
TARGETS = {name: parse_target(name, text) for name, text in FILES.items()}

A32_ONLY = {"alu_shift_by_register", "load_word_scaled", "load_narrow_scaled", "load_pc_scaled", "store_scaled",
            "multiply_long_flags", "swap", "swap_narrow"}  # fmt: skip
AFTER_ARMV5 = {"barrier", "bit_field", "clear_exclusive", "compare_branch", "divide", "interrupt_mask", "it",
               "load_exclusive", "saturate", "simd", "store_exclusive", "table_branch"}  # fmt: skip
REFUSED = {"supervisor_call", "secure_gateway", "test_target", "breakpoint", "undefined", "wait", "coprocessor"}
FLOAT = {name for name in TIMING_CLASSES[Isa.ARM] if name.startswith("float_")}
DOUBLE_ARITHMETIC = {name for name in FLOAT if name.endswith("_double")} - {"float_load_double", "float_store_double"}
DSP = {"multiply_halfword", "multiply_long_halfword", "saturating", "simd"}
NOT_ARMV6_M = {"divide", "saturate", "count_leading_zeros", "bit_field", "multiply_long", "load_pc", "load_double",
               "store_double", "load_exclusive", "store_exclusive", "clear_exclusive", "compare_branch", "table_branch",
               "it"}  # fmt: skip
DELIBERATELY_ABSENT = {
    "cortex-m0plus": A32_ONLY | REFUSED | FLOAT | DSP | NOT_ARMV6_M,
    "cortex-m3": A32_ONLY | REFUSED | FLOAT | DSP,
    "cortex-m33": A32_ONLY | REFUSED | FLOAT,
    "cortex-m4": A32_ONLY | REFUSED | FLOAT,
    "cortex-m4f": A32_ONLY | REFUSED | DOUBLE_ARITHMETIC,
    "arm926ej-s": AFTER_ARMV5 | REFUSED | FLOAT,
    "mpc603e": {"system", "cache_management", "write_external_enable"},
    "mpc755": {"system", "cache_management", "write_external_enable"},
    "e200z6": {"system", "cache_management", "load_string", "store_string"}
    | {name for name in TIMING_CLASSES[Isa.POWERPC] if name.startswith("float_")},
    "cortex-m7": A32_ONLY | REFUSED,
    "cortex-r5": REFUSED | {"swap", "swap_narrow", "it", "compare_branch", "table_branch"},
}


@pytest.mark.parametrize("name", FILES)
def test_every_number_has_a_source(name):
    target = TARGETS[name]
    for row in (*target.timing.values(), target.condition_failed):
        assert row.source
        assert row.basis in Basis
    regions = [number for region in target.memory.regions for number in (region.read_cycles, region.write_cycles)]
    for number in (target.memory.beat_bytes, target.memory.first_beat_cycles, target.memory.next_beat_cycles, *regions):
        assert number.source
    for cache in filter(None, (target.icache, target.dcache)):
        assert cache.source


@pytest.mark.parametrize("name", FILES)
def test_what_is_from_a_manual_was_read_there(name):
    """Numbers from memory, of sister cores or of what was not at hand are assumed."""
    target = TARGETS[name]
    told = [*target.timing.values(), *target.stalls, *target.unaligned]
    if target.isa is not Isa.POWERPC:
        told.append(target.condition_failed)
    for row in told:
        if row.basis is Basis.MANUAL:
            assert "(read" in row.source or "read)" in row.source, row
            assert "from memory" not in row.source, row


@pytest.mark.parametrize("name", FILES)
def test_every_timing_class_is_there_or_deliberately_absent(name):
    target = TARGETS[name]
    assert set(target.timing) == TIMING_CLASSES[target.isa] - DELIBERATELY_ABSENT[name]
    assert DELIBERATELY_ABSENT[name] < TIMING_CLASSES[target.isa]


@pytest.mark.parametrize("name", FILES)
def test_the_memory_map_has_gaps_and_room_for_a_large_heap(name):
    memory_map = TARGETS[name].memory_map
    ranges = sorted((memory_map.code, memory_map.data, memory_map.stack), key=lambda one: one.base_address)
    for below, above in pairwise(ranges):
        assert below.end_address + GRANULE_BYTES <= above.base_address
    heap_end = memory_map.heap_address + 64 * 1024 * 1024
    assert heap_end <= 0xE0000000
    assert all(one.end_address < memory_map.heap_address or heap_end < one.base_address for one in ranges)


@pytest.mark.parametrize("name", FILES)
def test_the_emulator_knows_the_model(name):
    from unicorn import arm_const, ppc_const

    constants = ppc_const if TARGETS[name].isa is Isa.POWERPC else arm_const
    assert isinstance(getattr(constants, TARGETS[name].emulator_model), int)


def test_cache_geometry():
    for name, replacement, allocates in (
        ("arm926ej-s", Replacement.ROUND_ROBIN, False),
        ("mpc603e", Replacement.LRU, True),
    ):
        target = TARGETS[name]
        for cache in (target.icache, target.dcache):
            assert cache is not None
            assert (cache.sets, cache.ways, cache.line_bytes, cache.size_bytes) == (128, 4, 32, 16 * 1024)
            assert cache.replacement is replacement
        assert target.dcache.write_back
        assert target.dcache.write_allocate is allocates
    assert TARGETS["cortex-m4"].icache is TARGETS["cortex-m4"].dcache is None


@pytest.mark.parametrize(
    ("name", "sets", "ways", "replacement"),
    [
        ("mpc755", (128, 128), (8, 8), Replacement.PLRU),
        ("e200z6", (128, 128), (8, 8), Replacement.ROUND_ROBIN),
        ("cortex-m7", (256, 128), (2, 4), Replacement.RANDOM),
        ("cortex-r5", (256, 256), (4, 4), Replacement.RANDOM),
    ],
)
def test_cache_geometry_of_later_cores(name, sets, ways, replacement):
    caches = (TARGETS[name].icache, TARGETS[name].dcache)
    assert tuple(cache.sets for cache in caches) == sets
    assert tuple(cache.ways for cache in caches) == ways
    assert {(cache.line_bytes, cache.replacement) for cache in caches} == {(32, replacement)}
    assert (caches[1].write_back, caches[1].write_allocate) == (True, True)


def test_one_cache_serves_both_where_it_is_unified():
    for name, target in TARGETS.items():
        assert target.unified_cache is (name == "e200z6")
    assert TARGETS["e200z6"].icache is TARGETS["e200z6"].dcache


def test_the_stack_lies_in_tightly_coupled_memory_where_there_is_some():
    for name, region in (("cortex-m7", "data TCM"), ("cortex-r5", "B TCM")):
        target = TARGETS[name]
        stack = target.memory_map.stack
        assert target.memory.region_at(stack.base_address).name == region
        assert target.memory.region_at(stack.end_address - 1).name == region
        assert target.memory.region_at(target.memory_map.heap_address) is None
    assert TARGETS["mpc755"].memory.regions == ()


@pytest.mark.parametrize(
    ("name", "timing_class", "numbers"),
    [
        ("cortex-m4", "alu", (1, 0, 0, 0)),
        ("cortex-m4", "divide", (12, 0, 0, 0)),
        ("cortex-m4", "load_word", (2, 0, 0, 0)),
        ("cortex-m4", "load_multiple", (1, 1, 0, 0)),
        ("cortex-m4", "load_multiple_pc", (4, 1, 0, 0)),
        ("cortex-m4", "branch", (4, 0, 0, 0)),
        ("cortex-m4", "branch_conditional", (1, 0, 0, 3)),
        ("cortex-m4", "table_branch", (6, 0, 0, 0)),
        ("cortex-m4", "multiply_long", (1, 0, 0, 0)),
        ("arm926ej-s", "alu_shift_by_register", (2, 0, 0, 0)),
        ("arm926ej-s", "load_word", (1, 0, 1, 0)),
        ("arm926ej-s", "load_word_scaled", (2, 0, 1, 0)),
        ("arm926ej-s", "load_narrow", (1, 0, 2, 0)),
        ("arm926ej-s", "load_pc", (5, 0, 0, 0)),
        ("arm926ej-s", "load_pc_scaled", (6, 0, 0, 0)),
        ("arm926ej-s", "load_double", (2, 0, 1, 0)),
        ("arm926ej-s", "load_multiple", (0, 1, 1, 0)),
        ("arm926ej-s", "load_one_multiple", (2, 0, 0, 0)),
        ("arm926ej-s", "load_multiple_pc", (4, 1, 0, 0)),
        ("arm926ej-s", "branch_conditional", (1, 0, 0, 2)),
        ("mpc603e", "integer", (1, 0, 0, 0)),
        ("mpc603e", "load", (1, 0, 1, 0)),
        ("mpc603e", "multiply_high_unsigned", (6, 0, 0, 0)),
        ("mpc603e", "divide", (37, 0, 0, 0)),
        ("mpc603e", "cache_zero", (10, 0, 0, 0)),
        ("mpc755", "divide", (19, 0, 0, 0)),
        ("mpc755", "load", (1, 0, 1, 0)),
        ("mpc755", "load_multiple", (2, 1, 0, 0)),
        ("e200z6", "divide", (16, 0, 0, 0)),
        ("e200z6", "load", (1, 0, 2, 0)),
        ("cortex-m7", "branch_conditional", (7, 0, 0, 0)),
        ("cortex-r5", "branch_conditional", (8, 0, 0, 0)),
        ("cortex-r5", "branch_indirect", (9, 0, 0, 0)),
        ("cortex-r5", "divide", (21, 0, 0, 0)),
    ],
)
def test_timing_numbers(name, timing_class, numbers):
    row = TARGETS[name].timing[timing_class]
    assert (row.cycles, row.per_register_cycles, row.load_use_cycles, row.taken_cycles) == numbers


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sets = 128", "sets = 100", "key icache.sets: cannot be 100; give a power of two, such as 128"),
        ("ways = 4", "ways = 0", "key icache.ways: cannot be 0; give a whole number of at least 1"),
        ("ways = 4", "ways = true", "key icache.ways: cannot be True; give a whole number of at least 1"),
        ("line_bytes = 32", "line_bytes = 48", "key icache.line_bytes: cannot be 48; give a power of two"),
        ('"round-robin"', '"round-robbin"', "key icache.replacement: unknown value 'round-robbin': did you mean"),
        ('isa = "arm"', "", "key isa: is missing; give a text that is not empty"),
        ('isa = "arm"', 'isa = "arms"', "key isa: unknown value 'arms': did you mean 'arm'?"),
        ('isa = "arm"', 'isa = "arm"\nisaa = 1', "key isaa: unknown key 'isaa': did you mean 'isa'?"),
        ("cycles = 3\n", "cycels = 3\n", "key timing.multiply_long.cycles: is missing"),
        ('title = "ARM926EJ-S"', 'title = ""', "key title: is empty"),
        ("big_endian = false", "big_endian = 0", "key big_endian: cannot be 0; give true or false"),
        ("write_back = true", "", "key dcache.write_back: is missing; give true or false"),
        ("heap_address = 0x3000_0000", "heap_address = 0x3000_0004", "key memory_map.heap_address: cannot be"),
        ("heap_address = 0x3000_0000", "heap_address = 0x1000_0000", "key memory_map.heap_address: overlaps code"),
        ("base_address = 0x2020_0000", "base_address = 0x2000_0000", "key memory_map.stack: overlaps data"),
        ("base_address = 0x1000_0000", "base_address = 0x1000_0010", "key memory_map.code.base_address: cannot be"),
        ("base_address = 0x1000_0000", "base_address = 0xFFFF_0000", "within 32 bits"),
        ("first_beat_cycles = { value = 20", "first_beat_cycles = { value = -1", "key memory.first_beat_cycles.value"),
        ("beat_bytes = { value = 4", "beat_bytes = { value = 3", "key memory.beat_bytes.value: cannot be 3"),
        ("[icache]", "[icache", "is no TOML"),
        ("[dcache]", "[ecache]", "unknown key 'ecache'"),
        (
            'result = "written"',
            'result = "writen"',
            "key stalls.0.result: unknown value 'writen': did you mean 'written'",
        ),
        ('need = "any"', 'need = "some"', "key stalls.0.need: unknown value 'some'"),
        (
            'producers = ["multiply",',
            'producers = ["multply",',
            "key stalls.0.producers: unknown timing class 'multply'",
        ),
        ('consumers = ["*"]', "consumers = []", "key stalls.0.consumers: cannot be []; give an array of texts"),
        ('consumers = ["*"]', 'consumers = ["vfp*"]', "key stalls.0.consumers: unknown timing class 'vfp*'"),
        ('need = "any"\ncycles = 1', 'need = "any"\ncycles = 0', "key stalls.0.cycles: cannot be 0; give a whole numb"),
        ('need = "any"\ncycles = 1', 'need = "any"', "key stalls.0.cycles: is missing"),
    ],
)
def test_a_bad_file_is_refused_with_file_key_and_remedy(old, new, expected):
    text = FILES["arm926ej-s"]
    assert old in text
    with pytest.raises(UsageError) as error:
        parse_target("arm926ej-s", text.replace(old, new, 1))
    assert str(error.value).startswith("targets/arm926ej-s.toml")
    assert expected in str(error.value)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("size_bytes = 0x2_0000\nread", "size_bytes = 0\nread", "key memory.regions.0.size_bytes: cannot be 0"),
        ("size_bytes = 0x2_0000\nread", "size_bytes = 0x1_0000_0000\nread", "end the region within 32 bits"),
        ('name = "data TCM"', "", "key memory.regions.0.name: is missing"),
        ('name = "data TCM"', 'name = "data TCM"\ncached = true', "unknown key 'cached'"),
        ("base_address = 0x2000_0000\nsize_bytes = 0x2_0000", "base_address = 0x0800_0000\nsize_bytes = 0x2_0000",
         "key memory.regions.0: overlaps the code"),
        ("[[memory.regions]]", "[memory.regions]", "key memory.regions: cannot be"),
        ("read_cycles = { value = 0", "read_cycles = { value = -1", "key memory.regions.0.read_cycles.value"),
        ("[icache]", "[cache]", "cannot stand beside [cache]"),
    ],
)  # fmt: skip
def test_a_bad_region_or_cache_is_refused_with_file_key_and_remedy(old, new, expected):
    text = FILES["cortex-m7"]
    assert old in text
    with pytest.raises(UsageError) as error:
        parse_target("cortex-m7", text.replace(old, new, 1))
    assert str(error.value).startswith("targets/cortex-m7.toml")
    assert expected in str(error.value)
    assert str(error.value).count("\n") == 0


def test_regions_do_not_overlap():
    text = FILES["cortex-m7"]
    start = text.index("[[memory.regions]]")
    region = text[start : text.index("[condition_failed]")]
    for other in (region, region.replace("data TCM", "again")):
        with pytest.raises(UsageError, match=r"key memory\.regions\.1: has the name or addresses of region 0"):
            parse_target("cortex-m7", text.replace(region, region + other))
    apart = region.replace("data TCM", "again").replace("0x2000_0000", "0x2010_0000")
    assert len(parse_target("cortex-m7", text.replace(region, region + apart)).memory.regions) == 2


@pytest.mark.parametrize("policy", Replacement)
def test_only_replacement_that_is_no_function_of_the_accesses_has_a_seed(policy):
    text = FILES["arm926ej-s"].replace('"round-robin"', f'"{policy}"', 1)
    seeded = text.replace("seed = 0", "seed = 7", 1)
    if policy in {Replacement.RANDOM, Replacement.ROUND_ROBIN}:
        assert parse_target("arm926ej-s", seeded).icache.seed == 7
        with pytest.raises(UsageError, match="seed: is missing"):
            parse_target("arm926ej-s", seeded.replace("seed = 7", "", 1))
    else:
        with pytest.raises(UsageError, match="unknown key 'seed'"):
            parse_target("arm926ej-s", seeded)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("size_bytes = 2\n", "size_bytes = 3\n", "size_bytes: cannot be 3; give a power of two"),
        ("size_bytes = 2\n", "size_bytes = 1\n", "size_bytes: cannot be 1; give a whole number of at least 2"),
        ("size_bytes = 2\n", "size_bytes = 16\n", "size_bytes: cannot be 16; an access has 8 at most"),
        ("alignment_bytes = 1\n", "alignment_bytes = 2\n", "alignment_bytes: cannot be 2; give less than size_bytes"),
        ("size_bytes = 2\n", "size_bytes = 4\n", "timing_classes: has a class of another row for the same accesses"),
        ("cycles = 1\nbasis", "cycles = 0\nbasis", "cycles: cannot be 0; give a whole number of at least 1"),
        ("cycles = 1\nbasis", "cycles = 256\nbasis", "cycles: cannot be 256; give 255 at most"),
        ('"table_branch"]\nsize', '"table"]\nsize', "timing_classes: unknown timing class 'table'"),
        ("alignment_bytes = 1\n", "alignments = 1\n", "alignment_bytes: is missing"),
    ],
)
def test_a_bad_row_of_unaligned_accesses_is_refused(old, new, expected):
    head, rows = FILES["cortex-m4"].split("[[unaligned_accesses]]", 1)
    assert old in rows
    with pytest.raises(UsageError) as error:
        parse_target("cortex-m4", f"{head}[[unaligned_accesses]]{rows.replace(old, new, 1)}")
    assert str(error.value).startswith("targets/cortex-m4.toml: key unaligned_accesses.")
    assert expected in str(error.value)
