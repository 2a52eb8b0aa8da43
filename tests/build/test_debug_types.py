"""Members of structures as the debug information has them: where they are, which point to code, what is in them."""

from __future__ import annotations

import pytest

from tests.support import image_of
from wcet_probe.build.debug_types import (
    code_pointers,
    debug_types,
    field_offset,
    held_functions,
    pointer_parameters,
)
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError

SOURCE = """\
typedef struct { int (*get)(int); char tag[4]; int (*put[2])(int); } ops_t;
struct part { short low; unsigned bits : 3; union { int word; void *at; }; };
struct device { char name; const ops_t *ops; ops_t own; struct part way[3]; struct device *next; };
int one(int n) { return n + 1; }
int two(int n) { return n + 2; }
const ops_t table = { one, "abc", { two, one } };
static struct device first, second = { 'x', &table, { two, "def", { one, two } }, { { 1, 2, { 3 } } }, &first };
struct device *chosen(struct device *d, int (*f)(int), int n) { return f(n) ? d : &second; }
struct device *wide(struct device *d, long long n) { return n ? d : &first; }
"""
CORES = ("cortex-m4", "arm926ej-s", "mpc603e")


@pytest.fixture(scope="module", params=CORES)
def image(request):
    return image_of(SOURCE, load_target(request.param), ".c")


@pytest.mark.parametrize(
    ("path", "offset"),
    [("ops", 4), ("own.get", 8), ("own.put[1]", 20), ("way[2].at", 24 + 2 * 8 + 4), ("next", 24 + 24)],
)
def test_a_member_is_where_the_compiler_puts_it(image, path, offset):
    assert field_offset(image, "second", path) == offset


@pytest.mark.parametrize(
    ("symbol", "path", "message"),
    [
        ("second", "ops.get", "'get'"),
        ("second", "nxt", "'next'"),
        ("second", "own", "second.own has 16 bytes; name a member of 4"),
        ("second", "name", "second.name has 1 bytes"),
        ("second", "next[1]", r"no array in front of \[1\]"),
        ("one", "ops", "no object one"),
    ],
)
def test_what_is_no_word_of_the_object_is_refused(image, symbol, path, message):
    with pytest.raises(UsageError, match=message):
        field_offset(image, symbol, path)


def test_members_that_point_to_code_are_named_by_the_innermost_structure(image):
    found = {(one.path, one.member, one.offset) for one in code_pointers(image)}
    assert found == {
        ("ops_t.get", "ops_t.get", 0),
        ("ops_t.put", "ops_t.put", 8),
        ("ops_t.put", "ops_t.put", 12),
        ("device.own.get", "ops_t.get", 8),
        ("device.own.put", "ops_t.put", 16),
        ("device.own.put", "ops_t.put", 20),
    }


def test_what_objects_hold_in_a_member_is_read_from_the_file(image):
    assert set(held_functions(image, "ops_t.get")) == {("table", "one"), ("second", "two")}
    assert held_functions(image, "device.own.get") == (("second", "two"),)
    assert held_functions(image, "ops_t.none") == ()


def test_parameters_are_told_by_what_they_point_to(image):
    assert pointer_parameters(image, "chosen") == (("device", False), ("", True), ("", False))
    assert pointer_parameters(image, "wide") == ()
    assert pointer_parameters(image, "nobody") == ()


def test_objects_are_known_by_their_structure(image):
    types = debug_types(image)
    named = {name: types.objects.get(image.symbols[name].address) for name in ("table", "first", "second")}
    assert [one.structure for one in named.values()] == ["ops_t", "device", "device"]
    assert {one.size_bytes for one in named.values()} == {16, 52}
    assert {one.pointee for one in types.members("device") if not one.is_code} == {"ops_t", "device", ""}
