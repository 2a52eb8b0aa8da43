"""Which counts rest on the width of a type, by the ends of the distance and what it is computed from."""

import pytest

from tests.path_check import proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.loops.counting import count_loops
from wcet_probe.analyzer.loops.type_bounds import type_bound
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.catalog.lookup import load_target

LOOP = """
    {}
    cmp r0, #0
    beq 2f
1:  subs r0, r0, #1
    bne 1b
2:  bx lr
"""
WIDE = {
    "word": ("mov r0, r0", "argument 0 (r0)"),
    "half": ("uxth r0, r0", "argument 0 (r0)"),
    "third": ("mov r0, r2", "argument 2 (r2)"),
    "saved": ("mov r0, r6", "the value of r6 at entry"),
    "loaded": ("ldr r0, [r0]", "what is computed or loaded at loaded"),
    "part": ("bic r0, r0, #0xc0000000", "argument 0 (r0)"),
    "shifted": ("lsrs r0, r0, #12", "argument 0 (r0)"),
}
KNOWN = {
    "byte": "uxtb r0, r0",
    "masked": "and r0, r0, #0xff00",
    "bit": "lsrs r0, r0, #27",
    "constant": "movw r0, #60000",
}


@pytest.fixture(scope="module")
def guest():
    target = load_target("cortex-m4")
    codes = {name: code for name, (code, _) in WIDE.items()} | KNOWN
    return guest_of(assembler({name: LOOP.format(code) for name, code in codes.items()}, target), target)


def found_of(guest, name):
    values = proved(guest, name).values
    (shape,) = loop_shapes(values)
    count = dict(count_loops(values, (shape,)))[shape.loop.header]
    return count, type_bound(guest.image, values, shape, "it", count)


@pytest.mark.parametrize("name", WIDE)
def test_a_count_that_may_be_any_number_of_a_type_tells_what_it_rests_on(guest, name):
    count, found = found_of(guest, name)
    assert (found.loop, found.max) == ("it", count.max_header)
    assert found.rests_on.startswith(WIDE[name][1])
    kind, _, rest = WIDE[name][1].partition(" ")
    is_argument = kind == "argument"
    place = f"index = {rest[0]}, min = " if is_argument else "offset = 0x"
    assert found.remedy.startswith(f'[[{"argument" if is_argument else "loop"}]] function = "{name}", {place}')


@pytest.mark.parametrize("name", KNOWN)
def test_a_count_of_a_range_does_not(guest, name):
    assert found_of(guest, name)[1] is None


ALIGNED = {
    "cortex-m4": "lsls r1, r0, #30\n beq 2f\n1: adds r0, r0, #1\n lsls r1, r0, #30\n bne 1b\n2: bx lr",
    "arm926ej-s": "movs r1, r0, lsl #30\n beq 2f\n1: add r0, r0, #1\n movs r1, r0, lsl #30\n bne 1b\n2: bx lr",
    "mpc603e": "slwi. 4, 3, 30\n beq 2f\n1: addi 3, 3, 1\n slwi. 4, 3, 30\n bne 1b\n2: blr",
}
TAIL = """typedef unsigned u; u g[8];
void tail(u n) { if (n & 12) { u k = n & 15; do { g[k & 7] = n; k -= 4; } while (k >= 4); } }
"""


@pytest.mark.parametrize("name", ALIGNED)
def test_a_loop_to_the_next_aligned_address_has_a_bound_that_means_something(name):
    target = load_target(name)
    count, found = found_of(guest_of(assembler({"aligned": ALIGNED[name]}, target), target), "aligned")
    assert count.max_header <= 4
    assert found is None


@pytest.mark.parametrize("name", ALIGNED)
def test_bits_that_were_tested_bound_the_loop_behind(name):
    count, found = found_of(guest_of(TAIL, load_target(name), ".c"), "tail")
    assert count.max_header <= 4
    assert found is None
