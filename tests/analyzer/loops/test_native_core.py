"""The layouts of the native core are those of its header."""

import ctypes
import re
from pathlib import Path

import pytest

from wcet_probe.analyzer.loops import native_code, native_core

HEADER = Path(__file__).parents[3].joinpath("analyzer/native/run.h").read_text("utf-8")


def enumerated(first):
    """The names of the enumeration that begins with ``first``."""
    text = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    (own,) = re.findall(rf"enum \{{\s*({first}\b[^}}]*)\}}", text)
    return [name.split("=")[0].strip() for name in own.split(",")]


def test_enumerations_have_the_headers_order():
    kinds = enumerated("WP_NUMBER")
    assert [getattr(native_core, name.removeprefix("WP_")) for name in kinds] == list(range(len(kinds)))
    for first in ("WP_FALLS", "WP_ENDED"):
        names = enumerated(first)
        assert [getattr(native_core, name.removeprefix("WP_")) for name in names] == list(range(len(names)))
    operations = enumerated("WP_COPY")
    count = operations.index("WP_FUNCTIONS")
    assert len(native_code.FUNCTIONS) == count
    rest = operations[count + 1 :]
    assert [getattr(native_code, name.removeprefix("WP_")) for name in rest] == list(range(count, count + len(rest)))


STRUCTURES = {
    "wp_op": native_core.OperationLayout,
    "wp_code": native_core.CodeLayout,
    "wp_access_setup": native_core.AccessLayout,
    "wp_range": native_core.RangeLayout,
    "wp_run_cache_setup": native_core.CacheLayout,
    "wp_region": native_core.RegionLayout,
    "wp_run_setup": native_core.SetupLayout,
    "wp_run_counts": native_core.CountsLayout,
    "wp_run_way": native_core.WayLayout,
}
TYPES = {
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_have_the_headers_fields(name):
    text = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
    (body,) = re.findall(rf"struct {name} \{{(.*?)\n\}};", text, flags=re.DOTALL)
    fields = [
        (field.strip().lstrip("*"), kind)
        for kind, names in re.findall(r"(?:const )?((?:struct )?\w+) ([^;]+);", body)
        for field in names.split(",")
    ]
    own = STRUCTURES[name]._fields_
    assert [field for field, _ in fields] == [field for field, _ in own]
    for (_, kind), (_, held) in zip(fields, own, strict=True):
        assert held is TYPES.get(kind, held)


def test_the_core_is_the_one_of_this_package():
    assert native_core.load().wp_run_abi_version() == native_core._ABI_VERSION
