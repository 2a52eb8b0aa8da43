"""What the native core follows is the run of `entry_run` in all that is counted; so is each block, from any state."""

from random import Random

import pytest

from tests.analyzer.loops.test_native_code import as_slot, of_slot
from tests.analyzer.recursive_programs import source
from tests.analyzer.test_entry_run_bound import asked, small
from tests.analyzer.values.execution.test_compiled_blocks import any_value, blocks_of
from tests.random_programs import arguments, packed_source
from tests.random_programs import source as plain_source
from tests.support import guest_of
from wcet_probe.analyzer import entry_run_bound as module
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.ipet.costs import cost_table
from wcet_probe.analyzer.loops import native_core
from wcet_probe.analyzer.loops.native_run import Charged, _Core, native_run
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.request import InitialData
from wcet_probe.analyzer.values.execution.compiled_blocks import CompiledExecution
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.execution.needed_operations import needed_of_block
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.image import Symbol

TARGETS = ["cortex-m4", "arm926ej-s", "mpc603e", "cortex-m7"]
NOTHING = Charged(None, None, 0, lambda _: None, None)


WIDE = """typedef unsigned long long w; typedef long long l;
unsigned char bytes[40]; short halves[20]; w wide[9]; u *places[4];
__attribute__((noinline)) w mixed(u n, w x) {
  l s = x; u own[6] = {n, 2, 3, 4, 5, 6}, *p = own;
  places[n & 3] = own + (n & 1);
  for (u i = 0; i < 9; i++) {
    wide[i] += (w)n * (u)(x >> (i & 31)) + (l)(int)n * halves[i];
    s = s * 3 - (s >> 5) ^ (s < (l)wide[i]);
    bytes[(i * 5 + n) % 37] ^= s >> 7;
    halves[i] -= (short)(s + bytes[i]);
    if (p != own + 5) p++;
    *p += places[n & 3] == own ? __builtin_clz(n | 1) : (own[i % 6] << 7 | own[i % 6] >> 25);
  }
  return s + own[2] + (u)(p - own);
}
u many(void) { w x = 5; for (u n = 0; n < 9; n++) x ^= mixed(n * 77, x); return x ^ x >> 32; }
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_words_of_all_sizes_are_followed_alike(target, monkeypatch):
    found = []
    for optimisation in ("-O0", "-Os", "-O2"):
        guest = guest_of("typedef unsigned u;" + WIDE, load_target(target), ".c", optimisation)
        found += [both(guest, "many", each, monkeypatch) for each in (None, pointer_of(guest))]
    assert any(found)


def told(request, follow):
    """All that following tells."""
    run, decided, seen = follow(request, cost_table(request.instructions, request.costs))
    if run is None:
        return None, decided
    return run, decided, seen.ranges, seen.events(), seen.is_far, seen.is_told()


def python(request, costs):
    return module._followed(request, costs, 60_000)


def both(guest, entry, pointer, monkeypatch):
    """What both tell of a run."""
    monkeypatch.setattr(module, "MOST_INSTRUCTIONS", 60_000)
    monkeypatch.setattr(module, "_LONG", 60_000)
    request = asked(guest, entry, stack_pointer=pointer)
    found, twin = told(request, module._natively_followed), told(request, python)
    if found[0] is not None or twin[0] is not None:
        assert found == twin
    return found[0]


def pointer_of(guest):
    with guest.machine() as machine:
        return machine.entry_registers(())[guest.target.isa.stack_pointer]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_random_recursion_is_followed_alike(target, seed, monkeypatch):
    runs = 0
    for number in range(3):
        random = Random(f"native run {target} {seed} {number}")
        core = small(load_target(target), random)
        guest = guest_of(source((seed, number)), core, ".c", ["-O1", "-O2", "-Os"][number])
        runs += sum(both(guest, "f", each, monkeypatch) is not None for each in (None, pointer_of(guest)))
    assert runs


@pytest.mark.covering(0)
@pytest.mark.parametrize("text", [plain_source, packed_source])
@pytest.mark.parametrize("target", TARGETS)
def test_random_functions_are_followed_alike(target, text, monkeypatch):
    runs = 0
    for seed in range(3):
        random = Random(f"native functions {target} {seed}")
        calls = "".join(
            f"u w{number}(void) {{ return f{number % 2}({', '.join(f'{one}u' for one in arguments(random))}); }}\n"
            for number in range(4)
        )
        guest = guest_of(text(seed, 2) + calls, small(load_target(target), random), ".c", ["-O1", "-O2", "-Os"][seed])
        pointer = pointer_of(guest)
        for number in range(4):
            runs += sum(both(guest, f"w{number}", each, monkeypatch) is not None for each in (None, pointer))
    assert runs


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS[:3])
def test_random_blocks_are_executed_alike(target):
    random = Random(f"native blocks {target}")
    guest = guest_of(packed_source(7, 3) + WIDE, load_target(target), ".c", "-O2")
    image = guest.image
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, image.segments)
    plain = ConstantExecution(Memory(image), lifter, image_data(image))
    held = {Location("register", one.offset, one.size_bytes) for one in lifter.registers.values()}
    places = sorted(one for one in held if one.size_bytes <= 8)
    data, compared = image_data(image)[0][0], 0
    for own in list(blocks_of(guest, lifter)):
        twin = CompiledExecution(plain, 0x2000_8000)
        block = twin.compiled(own, needed_of_block(own, lifter))
        symbol = Symbol("block", own[0].address, 4, is_function=True)
        for _ in range(3):
            state = plain.entered()
            with _Core(image, lifter, symbol, NOTHING, 0x2000_8000) as core:
                assert core.begins_with(image_data(image))
                core._block(symbol.address)
                for place in random.sample(places, len(places) // 2):
                    value = any_value(random, place.size_bytes, data)
                    slot = core._slot(place)
                    core._library.wp_run_put(core._run, slot, *as_slot(value))
                    for other in plain.overlapping(place):
                        state.registers.pop(other, None)
                    if value is not None:
                        state.registers[place] = value
                twin.is_forked, twin.accesses = False, []
                found = twin.execute(block, state)
                why = core._library.wp_run_follow(core._run, 1)
                if found is None or why == native_core.UNDECIDED:
                    continue
                compared += 1
                for place, slot in core._places.items():
                    if place.space == "register":
                        assert of_slot(core._library, core._run, slot) == found.state.registers.get(place), place
                for place, value in found.state.registers.items():
                    assert place in core._places or place.space != "register", (place, value)
    assert compared > 30


LONG = """typedef unsigned u; u words[64]; const u rounds = 3000000;
void f(void) { for (u i = 0; i < rounds; i++) words[i & 63] += i; }
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS[:3])
def test_a_run_of_many_millions_of_instructions_is_followed_in_no_time(target):
    guest = guest_of(LONG, load_target(target), ".c", "-O1")
    pointer = pointer_of(guest)
    found = module.entry_run_bound(asked(guest, stack_pointer=pointer))
    assert found.is_long
    assert found.bound.instructions > 15_000_000


def test_more_than_is_followed_is_not_told_but_counted(monkeypatch):
    guest = guest_of(LONG, load_target("cortex-m4"), ".c", "-O1")
    monkeypatch.setattr(module, "MOST_INSTRUCTIONS", 2_500_000)
    assert module.entry_run_bound(asked(guest)) == (None, True)


def test_code_that_the_core_cannot_execute_is_followed_without_it(monkeypatch):
    monkeypatch.setattr(module, "native_run", lambda *_, **__: None)
    monkeypatch.setattr(module, "MOST_HERE", 300_000)
    guest = guest_of(LONG.replace("3000000", "40000"), load_target("cortex-m4"), ".c", "-O1")
    assert module.entry_run_bound(asked(guest)).bound.instructions > 200_000


class _NoRoom:
    """A core that has no memory left."""

    def wp_run_open(self, _):
        return None


def test_where_the_core_has_no_room_the_run_is_followed_without_it(monkeypatch):
    monkeypatch.setattr(native_core, "load", _NoRoom)
    guest = guest_of(LONG.replace("3000000", "40000"), load_target("cortex-m4"), ".c", "-O1")
    assert module.entry_run_bound(asked(guest)).bound.instructions > 200_000


class _NoSlots:
    """A core that has room for itself, and for no slot; ``closed`` counts."""

    def __init__(self):
        self.own, self.closed = native_core.load(), 0

    def __getattr__(self, name):
        return getattr(self.own, name)

    def wp_run_slot(self, *_):
        return -1

    def wp_run_close(self, run):
        self.closed += 1
        self.own.wp_run_close(run)


def test_a_core_that_has_no_room_for_its_first_slot_is_closed(monkeypatch):
    library = _NoSlots()
    monkeypatch.setattr(native_core, "load", lambda: library)
    guest = guest_of(LONG, load_target("cortex-m4"), ".c", "-O1")
    image, lifter = guest.image, image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    assert native_run(image, lifter, (), image.symbols["f"], NOTHING, 1000) is None
    assert library.closed == 1


def test_an_access_that_the_decoder_does_not_know_is_not_told():
    guest = guest_of(LONG.replace("3000000", "9"), load_target("cortex-m4"), ".c", "-O1")
    image, lifter = guest.image, image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    asked_of = image, lifter, image_data(image), image.symbols["f"]
    assert native_run(*asked_of, NOTHING, 1000).run is None
    known = NOTHING._replace(accesses=lambda _: (1, True))
    assert native_run(*asked_of, known, 1000, untold=1000).run is not None


def test_a_store_to_code_ends_it(monkeypatch):
    text = "typedef unsigned u; u g; u f(void) { *(volatile u *)((u)&f & ~3u) = 1; return g; }"
    guest = guest_of(text, load_target("cortex-m4"), ".c", "-O1")
    assert both(guest, "f", None, monkeypatch) is None


def test_a_stack_that_is_known_to_be_on_code_ends_it(monkeypatch):
    text = "typedef unsigned u; u f(u n) { volatile u own[8]; for (u i = 0; i < 8; i++) own[i] = i; return own[3]; }"
    guest = guest_of(text, load_target("cortex-m4"), ".c", "-O1")
    assert both(guest, "f", guest.address("f") + 32, monkeypatch) is None
    assert both(guest, "f", pointer_of(guest), monkeypatch) is not None


@pytest.mark.parametrize("place", ["0x22000000", "0x21fffffe", "0x43ffffff"])
def test_no_bit_band_alias_is_stored_to_even_in_part(place, monkeypatch):
    text = f"void f(void) {{ *(volatile int *){place} = 1; }}"
    guest = guest_of(text, load_target("cortex-m4"), ".c", "-O1")
    monkeypatch.setattr(module, "MOST_INSTRUCTIONS", 1000)
    assert told(asked(guest), module._natively_followed)[0] is None


@pytest.mark.parametrize("text", ["w->x = 1", "return w->x ? 1 : 2"], ids=["store", "load"])
def test_what_is_accessed_around_the_end_of_the_address_space_decides_nothing(text, monkeypatch):
    """At its beginning there may be code, or what is known of memory."""
    head = "struct __attribute__((packed)) w { int x; }; int f(void) { struct w *w = (void *)-2; "
    guest = guest_of(f"{head}{text}; return 0; }}", load_target("cortex-m4"), ".c", "-O0")
    monkeypatch.setattr(module, "MOST_INSTRUCTIONS", 1000)
    beginning = (0xFFFF_FFFE, bytes(2)), (0, bytes(8))
    request = asked(guest, initial=InitialData(beginning, "a test", entry=beginning))
    for follow in (module._natively_followed, python):
        assert told(request, follow)[0] is None


def test_a_function_that_is_called_from_many_places_returns_to_each_as_often(monkeypatch):
    calls = 600
    text = f"""typedef unsigned u; u rounds = 3, s; __attribute__((noinline)) void g(void) {{ s++; }}
    void f(void) {{ for (u i = 0; i < rounds; i++) {{ {"g(); " * calls} }} }}"""
    run = both(guest_of(text, load_target("cortex-m4"), ".c", "-O1"), "f", None, monkeypatch)
    assert [count for passage, count in run.passages.items() if passage.kind == "return"][:-1] == [3] * calls
