"""Memory that is known at entry: what stores may hit is taken back, byte by byte, until none hits what is left."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace

import pytest

from tests.path_check import attack, proved
from tests.support import guest_of
from wcet_probe.analyzer import initial_data as module
from wcet_probe.analyzer.assumptions import assumed_data
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.entry_run_bound import FollowedBound
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.initial_data import (
    _cut,
    _unwritten,
    apart_from_stack,
    image_data,
    proved_with_initial_data,
    with_initial_data,
    within_visits,
)
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.analyzer.values.analysis import TooMuchWorkError
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Segment, Symbol
from wcet_probe.model.scenario import InitialCache

DATA = 0x1000


@dataclass(frozen=True)
class Image:
    segments: tuple[Segment, ...]
    symbols: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    image: Image
    initial: InitialData | None
    summaries: bool = True
    given: dict = field(default_factory=dict)
    keeps_dead_ends: bool = False
    stack_pointer: int | None = None


def store(low, high, size=4, base=Base.NUMBER, *, is_store=True):
    return SimpleNamespace(is_store=is_store, base=base, offset=strided.between(32, low, high), size_bytes=size)


def values(*accesses, dead_ends=()):
    return SimpleNamespace(accesses={0: accesses}, graph=SimpleNamespace(dead_ends=dead_ends))


def data_segment(data=bytes(range(32)), size=32):
    return Segment(DATA, data, size, writable=True, executable=False)


def test_what_the_file_holds_is_known_with_its_zeros_and_code_is_not():
    code = Segment(0x8000, b"abc", 3, writable=True, executable=True)
    constant = Segment(0x9000, b"abc", 3, writable=False, executable=False)
    empty = Segment(0x500, b"", 0, writable=True, executable=False)
    image = Image((data_segment(b"\1\2", 5), code, constant, Segment(0x800, b"\7", 1, True, False), empty))
    assert image_data(image) == ((0x800, b"\7"), (DATA, b"\1\2\0\0\0"))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_left_are_the_bytes_that_no_store_may_hit(seed):
    random = Random(f"unwritten {seed}")
    known = ((DATA, bytes(random.randrange(1, 256) for _ in range(24))), (DATA + 40, bytes(range(1, 9))))
    stores, hit = [], set()
    for _ in range(random.randrange(4)):
        low = DATA + random.randrange(-4, 48)
        high = low + random.randrange(6)
        size = random.choice((1, 2, 4))
        stores.append(store(low, high, size))
        hit |= set(range(low, high + size))
    left = tuple(_unwritten(known, values(*stores, store(DATA, DATA + 8, is_store=False))))
    before = {at + place: byte for at, data in known for place, byte in enumerate(data)}
    after = {at + place: byte for at, data in left for place, byte in enumerate(data)}
    assert after == {address: byte for address, byte in before.items() if address not in hit}
    assert all(data for _, data in left)


def test_a_store_to_anywhere_takes_all_and_one_to_the_stack_nothing():
    known = ((DATA, b"abcd"),)
    assert not tuple(_unwritten(known, values(store(0, 0, base=Base.ANY))))
    assert tuple(_unwritten(known, values(store(DATA, DATA, base=Base.STACK)))) == known


@pytest.mark.parametrize("seed", range(10))
def test_a_segment_is_cut_into_what_is_known_and_the_rest(seed):
    random = Random(f"cut {seed}")
    segment = data_segment(bytes(range(20)), 32)
    known, at = [], DATA
    while at < DATA + 24:
        start = at + random.randrange(6)
        known.append((start, bytes(random.randrange(256) for _ in range(random.randint(1, 5)))))
        at = start + len(known[-1][1])
    known = [one for one in known if one[0] + len(one[1]) <= DATA + 32]
    parts = list(_cut(segment, tuple(known)))
    assert parts[0].address == DATA
    assert sum(part.size_bytes for part in parts) == 32
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        assert after is None or part.address + part.size_bytes == after.address
        if part.writable:
            place = part.address - DATA
            assert part.data == segment.data[place : place + part.size_bytes][: len(part.data)]
        else:
            assert (part.address, part.data) in known
    assert sum(not part.writable for part in parts) == len(known)
    constant = replace(segment, writable=False)
    assert list(_cut(constant, tuple(known))) == [constant]


def preparing(stores_by_known, fails=lambda _: False):
    """A preparation whose stores are those of what it is told to be constant."""
    asked = []

    def prepare(request):
        told = {part.address for part in request.image.segments if not part.writable}
        asked.append(told)
        assert not request.summaries
        if fails(told):
            raise AnalysisError("too much is known.")
        return SimpleNamespace(values=values(*stores_by_known(told)), request=request)

    return prepare, asked


def request_of(content):
    return Request(Image((data_segment(),)), InitialData(content, "the file"))


def test_taking_back_goes_on_until_no_store_hits_what_is_left():
    """What was a constant index becomes a range, whose store hits more."""
    content = ((DATA, b"abcd"), (DATA + 8, b"efgh"), (DATA + 16, b"ijkl"))

    def stores(told):
        found = [store(DATA, DATA)]
        if DATA not in told:
            found.append(store(DATA + 8, DATA + 8))
        return found

    prepare, asked = preparing(stores)
    found = with_initial_data(request_of(content), prepare)
    assert asked == [set(), {DATA, DATA + 8, DATA + 16}, {DATA + 8, DATA + 16}, {DATA + 16}]
    assert found.request.initial.content == ((DATA + 16, b"ijkl"),)


def test_where_too_much_is_assumed_for_an_analysis_it_begins_with_what_is_least():
    content = ((DATA, b"abcd"), (DATA + 8, b"efgh"))
    prepare, asked = preparing(lambda _: [store(DATA, DATA)], fails=lambda told: DATA in told)
    found = with_initial_data(request_of(content), prepare)
    assert asked == [set(), {DATA, DATA + 8}, {DATA + 8}]
    assert found.request.initial.content == ((DATA + 8, b"efgh"),)
    assert found.request.initial.at_entry == content
    prepare, _ = preparing(lambda _: [], fails=lambda _: True)
    with pytest.raises(AnalysisError):
        with_initial_data(request_of(content), prepare)


@pytest.mark.parametrize("fails", [False, True])
def test_what_does_not_return_as_long_as_nothing_is_written_is_asked_for_what_it_writes(fails):
    content = ((DATA, b"abcd"), (DATA + 8, b"efgh"))
    asked = []

    def prepare(request):
        told = {part.address for part in request.image.segments if not part.writable}
        asked.append((told, request.keeps_dead_ends))
        if fails and request.keeps_dead_ends:
            raise AnalysisError("too much is known.")
        stores = [store(DATA, DATA)] if DATA not in told or request.keeps_dead_ends else []
        found = values(*stores, dead_ends=(0x8000,) if DATA in told else ())
        return SimpleNamespace(values=found, request=request)

    found = with_initial_data(request_of(content), prepare)
    assert found.request.initial.content == content[1:]
    assert not found.request.keeps_dead_ends
    both, left = {DATA, DATA + 8}, {DATA + 8}
    assert asked == [(set(), False), (both, False), (both, True), (left, False)]


@pytest.mark.parametrize("decided", [True, False, None])
def test_where_what_memory_holds_at_entry_decides_every_step_nothing_need_be_constant(decided):
    content = ((DATA, b"abcd"), (DATA + 8, b"efgh"))
    prepare, asked = preparing(lambda _: [store(DATA, DATA)])
    found = with_initial_data(request_of(content), prepare, lambda prepared: decided if prepared else False)
    told = found.request.initial
    assert len(asked) == (1 if decided else 3)
    assert told.content == (() if decided else content[1:])
    # What takes too long to follow is not followed from its entry.
    assert told.entry == (None if decided is None else content)
    assert told.at_entry == (told.content if decided is None else content)


def test_a_run_that_is_too_long_is_not_followed_on_the_values():
    content = ((DATA, b"abcd"), (DATA + 8, b"efgh"))
    prepare, asked = preparing(lambda _: [store(DATA, DATA)])
    request = request_of(content)
    request = replace(request, initial=replace(request.initial, is_long=True))
    found = with_initial_data(request, prepare, lambda _: pytest.fail("it is known that it is too long"))
    assert asked == [{DATA, DATA + 8}, {DATA + 8}]
    assert (found.request.initial.content, found.request.initial.entry) == (content[1:], None)


@pytest.mark.parametrize("is_long", [False, True])
def test_what_following_the_code_says_of_its_length_is_told_to_the_proof(monkeypatch, is_long):
    monkeypatch.setattr(module, "entry_run_bound", lambda _: FollowedBound(None, is_long))
    asked = []

    def prove(request):
        asked.append(request.initial.is_long)
        return SimpleNamespace(by_type=())

    proved_with_initial_data(request_of(((DATA, b"abcd"),)), prove, lambda _: None)
    assert asked == [is_long]


@pytest.mark.parametrize(
    ("instructions", "cycles", "by_type", "is_told"),
    [(9, 20, (), False), (10, 20, (), False), (11, 20, (), True), (10, 21, (), True), (9, 9, ("a loop",), True)],
)
def test_the_run_that_nothing_at_entry_changes_is_told_where_it_is_less(
    monkeypatch, instructions, cycles, by_type, is_told
):
    run = SimpleNamespace(instructions=10, cycles=20)
    asked = []

    def followed(request, most):
        asked.append((request.initial.at_entry, most))
        return FollowedBound(run)

    monkeypatch.setattr(module, "entry_run_bound", followed)
    request = replace(request_of(()), initial=None)
    found = SimpleNamespace(instructions=instructions, cycles=cycles, by_type=by_type)
    assert module.bound_of_own_run(request, found) is (run if is_told else None)
    assert module.bound_of_own_run(request, None) is run
    assert asked == [((), module.MOST_UNASKED)] * 2
    assert module.bound_of_own_run(request_of(((DATA, b"abcd"),)), None) is None


def test_less_is_prepared_where_less_is_gained():
    left = []
    asked = SimpleNamespace(image=SimpleNamespace(segments=()), target=load_target("cortex-m4"))
    for told in ({}, {"is_long": True}, {"is_followed": True}):
        asked.initial = InitialData((), "the file", **told)
        within_visits(lambda _, own: left.append(own.left))(asked)
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == 3


def test_all_that_is_prepared_with_initial_data_has_so_many_blocks_together():
    left = []

    def prepare(request, own):
        left.append(None if own is None else own.left)
        if own is not None:
            own.left -= 60
            if own.left < 0:
                raise TooMuchWorkError
        return request

    asked = SimpleNamespace(
        initial=InitialData((), "the file"), image=SimpleNamespace(segments=()), target=load_target("cortex-m4")
    )
    within = within_visits(prepare, 100)
    assert within(asked) is asked
    for _ in range(2):
        with pytest.raises(AnalysisError, match="more than is worth while"):
            within(asked)
    within(SimpleNamespace(initial=None))
    assert left == [100, 40, 0, None]


def test_without_initial_data_the_question_is_asked_as_it_is():
    plain = Request(Image((data_segment(),)), None)
    assert with_initial_data(plain, lambda request: request) is plain
    assert not assumed_data(plain)
    assert not assumed_data(request_of(()))


def test_what_is_assumed_is_told_in_bytes_and_ranges():
    (assumed,) = assumed_data(request_of(((DATA, b"abcd"), (DATA + 8, b"ef"))))
    assert assumed.id == "initial-data"
    assert "6 bytes in 2 ranges, which the call is proved not to write" in assumed.statement
    parts = (DATA, b"abcd"), (DATA + 8, b"ef")
    written = replace(request_of(parts), initial=InitialData(parts[:1], "the file", parts))
    assert "6 bytes in 2 ranges, of which 4 bytes in 1 range are what the call is proved not to write" in (
        assumed_data(written)[0].statement
    )
    nothing = replace(written, initial=InitialData((), "the file", parts))
    assert "the file: 6 bytes in 2 ranges; the call's stack is in none of them" in assumed_data(nothing)[0].statement
    assert "4 bytes in 1 range," in assumed_data(request_of(((DATA, b"abcd"),)))[0].statement


WRITTEN_BEFORE_DEAD_ENDS = """typedef unsigned u; volatile u o, n = 3;
#define ROUNDS(count) for (u i = 0; i < (count); i++) o
__attribute__((noinline)) void hang(void) { for (;;) o; }
__attribute__((noinline)) void end(void) { ROUNDS(50); }
void (*volatile call)(void) = hang;
u by_waiting(u x) { if (x) { n = 4; while (n == 3); ROUNDS(50); } return x; }
u by_counting(u x) { if (x) { n = 4; for (u i = 0; n != 4; i++) o; ROUNDS(50); } return x; }
u by_a_trap(u x) { if (x) { n = 4; if (n == 3) __builtin_trap(); ROUNDS(50); } return x; }
u by_a_pointer(u x) { if (x) { call = end; call(); } return x; }
u by_another(u x) { if (x) { n = 9; if (n == 3) call(); ROUNDS(n); } return x; }
__attribute__((noinline)) void put(u x) { n = x; while (n == 3); }
u by_one_call(u x) { put(7); if (x) put(50); ROUNDS(n); return x; }
"""


@pytest.mark.covering
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize(
    "entry", ["by_waiting", "by_counting", "by_a_trap", "by_a_pointer", "by_another", "by_one_call"]
)
def test_a_store_counts_without_which_its_call_would_not_return(target, entry):
    guest = guest_of(WRITTEN_BEFORE_DEAD_ENDS, load_target(target), ".c")
    proof = proved(guest, entry, initial=InitialData(image_data(guest.image), "the file says"))
    assert attack(proof, 0) < attack(proof, 1) <= proof.bound.instructions


COUNTED_TO_A_DEAD_END = """typedef unsigned u; volatile u o;
struct { volatile u read[16], written[9], n; } all = {{0}, {0}, 3};
u f(u x) {
  volatile u *at = all.read;
  u i = 0;
  for (;;) {
    *at++ = o;
    if (x == i) { all.written[i] = 40; while (all.n == 3); i = 0; x = 100; at = all.read; continue; }
    if (i == 9) break;
    i++;
  }
  for (u j = 0; j < all.n; j++) o;
  return x;
}"""


def test_a_loop_that_would_not_go_on_behind_a_store_tells_nothing_of_the_round_it_is_in():
    """A last round may be in front of a dead end: 9 is the place of the word that keeps the call from returning."""
    guest = guest_of(COUNTED_TO_A_DEAD_END, load_target("cortex-m4"), ".c", "-O0")
    with suppress(AnalysisError):
        proof = proved(guest, "f", initial=InitialData(image_data(guest.image), "the file says"))
        assert attack(proof, 10) < attack(proof, 9) <= proof.bound.instructions


ON_A_STACK_OF_ITS_OWN = """typedef unsigned u; unsigned char before[40], stack[256] __attribute__((aligned(8)));
u words[3] = {4, 2, 3}; volatile u out;
__attribute__((noinline)) u f(void) {
  volatile u own[16]; u used = 0;
  for (u i = 0; i < 16; i++) own[i] = i + 1;
  for (u i = 0; i < 256; i++) used += stack[i] != 0;
  for (u i = 0; i < used && i < 99; i++) out += own[i & 15];
  for (u i = 0; i < words[0]; i++) out++;
  return used + before[0];
}
__attribute__((naked)) u task(void) {
  __asm("push {r4, lr}; mov r4, sp; ldr r3, =stack+256; mov sp, r3; bl f; mov sp, r4; pop {r4, pc}; .ltorg");
}
"""
"""The function reads of its stack, which is static data, how much of it was used."""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_of_the_object_that_the_stack_is_in_nothing_is_taken_to_be_known(target):
    """Proved 1 round, and 16 were run, where the stack was taken to be apart from it."""
    guest = guest_of(ON_A_STACK_OF_ITS_OWN, load_target(target), ".c", "-O1")
    question = (guest.image, guest.target, guest.instructions, guest.costs, "f")
    content, top = image_data(guest.image), guest.address("stack") + 256
    bound = prove(
        BoundRequest(*question, Facts(), {}, {}, initial=InitialData(content, "the file says"), stack_pointer=top)
    )
    with guest.machine() as machine:
        reached = machine.reach("task", (), "f")
        run = machine.measure("f", (), InitialCache.DIRTY, reached=reached)
    assert run.instructions <= bound.instructions
    assert run.cycles <= bound.cycles
    left = {address for start, data in bound.initial_data for address in range(start, start + len(data))}
    stack = set(range(top - 256, top))
    assert left == {address for start, data in content for address in range(start, start + len(data))} - stack
    assert min(loop.max for loop in bound.loops) < 6  # of what is known still


def test_without_an_object_around_the_stack_all_that_is_known_there_is_left_out():
    image = Image((data_segment(),), {"f": Symbol("f", DATA, 32, True), "label": Symbol("label", DATA, 0, False)})
    told = InitialData(((DATA, b"abcd"), (DATA + 8, b"efgh")), "the file")
    for pointer, left in ((DATA + 9, told.content[:1]), (DATA + 12, told.content[:1]), (DATA + 8, told.content)):
        assert apart_from_stack(image, told, pointer).at_entry == left
    assert apart_from_stack(image, told, None) is told


BY_A_BIT = """typedef unsigned u; u rounds = 3, others = 4; volatile u out;
static inline void set(u address, u bit) { *(volatile u *)(0x22000000 + (address - 0x20000000) * 32 + 4 * bit) = 1; }
u f(void) {
  set((u)&rounds, 4);
  for (u i = 0; i < (rounds & 31); i++) out++;
  return others;
}
u g(u x) { if (x) set((u)&rounds, x & 3); for (u i = 0; i < (rounds & 31); i++) out++; return others; }
u h(void) { *(volatile u *)0x42000000 = 1; for (u i = 0; i < (rounds & 31); i++) out++; return others; }
"""
"""Bit 4 of the word is set by a store to the alias of that bit: 19 rounds. No emulator here has such memory."""


@pytest.mark.parametrize(("entry", "most"), [("f", range(19, 40)), ("g", range(15, 40)), ("h", range(3, 5))])
@pytest.mark.parametrize("knows", [True, False])
def test_a_store_to_a_bit_of_a_word_changes_it(entry, most, knows):
    """Proved 3 rounds."""
    guest = guest_of(BY_A_BIT, load_target("cortex-m4"), ".c", "-O1")
    question = (guest.image, guest.target, guest.instructions, guest.costs, entry)
    initial = InitialData(image_data(guest.image), "the file says") if knows else None
    bound = prove(BoundRequest(*question, Facts(), {}, {}, initial=initial))
    (loop,) = bound.loops
    assert loop.max in (most if knows else range(31, 40))
