"""Addresses of the stack that are compared with 0, or with each other, by a run that nothing at entry changes.

Tests: analyzer.entry_run_bound.
"""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyzer.test_entry_run_bound import NOTHING_KNOWN, asked, bound_of
from tests.certificate.runs.test_decided import proof, verdicts
from tests.support import guest_of
from wcet_probe.analyzer.values.execution.constant_arithmetic import STACK_REACH, placed
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache

HASH = """typedef unsigned u; typedef unsigned char byte; struct hash { u length, state, used; byte block[16]; };
__attribute__((noinline)) int start(struct hash *own) {
  if (own == 0) return 1;
  own->length = own->used = 0, own->state = 7; return 0;
}
__attribute__((noinline)) int mixed(struct hash *own, const byte *block) {
  for (const byte *at = block; at < block + 16; at++) own->state = own->state * 33 ^ *at;
  return 0;
}
__attribute__((noinline)) int taken(struct hash *own, const byte *text, u size) {
  if (own == 0 || text == 0) return 1;
  while (size > 0) {
    u more = 16 - own->used < size ? 16 - own->used : size;
    for (u i = 0; i < more; i++) own->block[own->used + i] = text[i];
    own->used += more, text += more, size -= more;
    if (own->used == 16) { if (mixed(own, own->block)) return 1; own->used = 0; own->length += 16; }
  }
  return 0;
}
byte text[64];
u f(void) {
  struct hash own; byte copy[FRAME];
  for (u i = 0; i < FRAME; i++) copy[i] = text[i % 64];
  if (start(&own)) return 1;
  if (taken(&own, text, 40) || taken(&own, copy, 11)) return 2;
  return own.state;
}
"""
ORDERS = {"INT_EQUAL": operator.eq, "INT_NOTEQUAL": operator.ne, "INT_LESS": operator.lt, "INT_LESSEQUAL": operator.le}
PLACES = st.one_of(st.integers(-40, 40), st.integers(-STACK_REACH, STACK_REACH)).map(lambda n: (n,))


@pytest.mark.parametrize("name", ORDERS)
@given(first=st.one_of(PLACES, st.just(0)), other=st.one_of(PLACES, st.just(0)), data=st.data())
def test_what_is_told_holds_wherever_the_stack_pointer_may_be(name, first, other, data):
    told = placed(name, (first, other)) if (first, other) != (0, 0) else None
    if told is None:
        return
    found, reach = told
    pointer = data.draw(st.sampled_from([reach, (1 << 32) - reach]) | st.integers(reach, (1 << 32) - reach))
    numbers = [one if isinstance(one, int) else (pointer + one[0]) % (1 << 32) for one in (first, other)]
    assert ORDERS[name](*numbers) == bool(found)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("INT_SLESS", ((4,), (8,))),
        ("INT_LESS", ((4,), 8)),
        ("INT_EQUAL", (1, (4,))),
        ("INT_LESS", ((STACK_REACH,), (8,))),
        ("INT_LESS", ((4, 0, -1), (8, 0, -1))),
        ("INT_NOTEQUAL", ((0, 0, 0, 0), 0)),
        ("INT_EQUAL", (None, 0)),
        ("INT_EQUAL", ((4,),)),
    ],
)
def test_nothing_is_told_of_other_comparisons(name, values):
    assert placed(name, values) is None


@pytest.mark.parametrize(("frame", "least"), [(16, 0x100), (600, 0x400)])
@pytest.mark.parametrize("level", ["-O1", "-O2", "-Os"])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m0plus", "cortex-m33"])
def test_a_null_check_of_a_local_variable_ends_no_run(target, level, frame, least):
    """It asked for facts about each loop behind it: a context on the stack that a library checks for null."""
    guest = guest_of(HASH.replace("FRAME", str(frame)), load_target(target), ".c", level)
    bound = bound_of(asked(guest, initial=NOTHING_KNOWN))
    with guest.machine() as machine:
        run = machine.measure("f", (), InitialCache.COLD)
    assert bound.instructions == run.instructions
    assert run.cycles <= bound.cycles
    said = [one.statement for one in bound.assumptions if one.id == "stack-bounds"]
    assert said == [f"the stack pointer is from {least:#x} to {(1 << 32) - least:#x} at entry: no address near it is 0"]


def test_the_checker_takes_no_more_than_is_said_of_where_the_stack_is():
    guest = guest_of(HASH.replace("FRAME", "600"), load_target("cortex-m4"), ".c", "-O1")
    document, binary = proof(guest, content=())
    assert set(verdicts(document, binary).values()) == {"ok"}
    listed = document["bound"]["assumptions"]
    (own,) = (one for one in listed if one["id"] == "stack-bounds")
    for low, high in (("0x100", "0xffffff00"), ("0x400", "0xffffffff"), ("0x1000000400", "0xfffffc00")):
        own["statement"] = f"the stack pointer is from {low} to {high} at entry: no address near it is 0"
        assert verdicts(document, binary)["graph"] == "not checked"
    listed.remove(own)
    assert verdicts(document, binary)["graph"] == "not checked"


COPY = """typedef unsigned u; typedef unsigned char byte;
__attribute__((noinline)) void copied(byte *to, const byte *from, u bytes) {
  if ((((u)to | (u)from) & 3) == 0) for (; bytes >= 4; bytes -= 4, to += 4, from += 4) *(u *)to = *(const u *)from;
  if (((u)to ^ (u)from) & 1) bytes = bytes * 2;
  for (; bytes; bytes--) *to++ = *from++;
}
_Alignas(8) const byte text[64] = "as a memcpy asks whether both of its pointers are aligned";
volatile byte out;
u f(void) {
  _Alignas(8) byte own[48], other[48];
  copied(own, text, 21), copied(other + 1, own, 9), copied(other, own + 8, 11);
  for (u i = 0; i < 11; i++) out = other[i];
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2", "-Os"])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m0plus", "cortex-m33"])
def test_whether_two_addresses_are_aligned_is_asked_of_both_at_once(target, level):
    """A copy from or to a local variable asked for facts about its loops: by words or by bytes was not known."""
    guest = guest_of(COPY, load_target(target), ".c", level)
    bound = bound_of(asked(guest, initial=NOTHING_KNOWN))
    with guest.machine() as machine:
        run = machine.measure("f", (), InitialCache.COLD)
    assert bound.instructions == run.instructions
    assert run.cycles <= bound.cycles
    assert "stack-alignment" in {one.id for one in bound.assumptions}
    assert set(verdicts(*proof(guest, content=())).values()) == {"ok"}
