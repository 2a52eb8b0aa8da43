"""A run that is followed on the code alone is that of the emulator, through recursion; what is not decided is none."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.analyzer.recursive_programs import SORT, source
from tests.support import guest_of
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.loops.entry_run import entry_run
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import EmulationError
from wcet_probe.model.scenario import InitialCache

TARGETS = ["cortex-m4", "arm926ej-s", "mpc603e"]
SOURCE = (
    """typedef unsigned u; u words[12] = {9, 3, 7, 1, 8, 2, 6, 4, 5, 0, 11, 10}; volatile u out;
u calls = 2; u *where = words; u (*chosen)(u);
"""
    + SORT
    + """__attribute__((noinline)) u ackermann(u m, u n) {
  out = n;
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
void sorted(void) { sort(words, 0, 11); }
u nested(void) { return ackermann(calls, 3); }
u given(u n) { return ackermann(n & 1, 1); }
u stray(u *p) { *p = 5; return ackermann(calls, 1); }
u pointed(void) { return chosen ? chosen(3) : 0; }
void endless(void) { for (;;) out = 1; }
"""
)


def followed(guest, entry, most=200_000, take=lambda *_: True):
    return beginning(guest, entry, most, take).run


def beginning(guest, entry, most=200_000, take=lambda *_: True, untold=0):
    image, target = guest.image, guest.target
    lifter = image_lifter(target.pcode_language, target.isa, image.segments)
    execution = ConstantExecution(Memory(image), lifter, image_data(image))
    return entry_run(lifter, execution, image.symbols[entry], take, most, untold=untold)


class Taker:
    """Notes what it is told: addresses of instructions, and accesses."""

    def __init__(self):
        self.path, self.accesses = [], []

    def __call__(self, part, accesses):
        self.path += [one.address for one in part.instructions]
        self.accesses += accesses
        return True


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["sorted", "nested"])
def test_recursion_is_followed_to_its_end_instruction_by_instruction(target, entry):
    guest = guest_of(SOURCE, load_target(target), ".c", "-O1")
    seen = Taker()
    run = followed(guest, entry, take=seen)
    with guest.machine() as machine:
        emulated = machine.measure(entry, (), InitialCache.COLD)
    assert run.instructions == len(seen.path) == emulated.instructions
    assert sum(not is_store for _, is_store, *_ in seen.accesses) == emulated.loads
    assert sum(is_store for _, is_store, *_ in seen.accesses) == emulated.stores
    assert {address for address, *_ in seen.accesses} <= set(seen.path)


@pytest.mark.parametrize("target", TARGETS)
def test_what_blocks_cost_and_how_control_passes_is_what_was_executed(target):
    guest = guest_of(SOURCE, load_target(target), ".c", "-O2")
    seen = Taker()
    run = followed(guest, "sorted", take=seen)
    path, starts, counts = seen.path, set(run.blocks), run.executions()
    assert Counter(one for one in path if one in starts) == counts
    assert sum(len(run.blocks[at].instructions) * count for at, count in counts.items()) == len(path)
    # Blocks share no code, and as often as one is executed control leaves it.
    held = [one.address for block in run.blocks.values() for one in block.instructions]
    assert len(held) == len(set(held))
    for at in run.blocks:
        assert sum(count for one, count in run.passages.items() if one.source == at) == counts[at]
    ends = {block.last_address: at for at, block in run.blocks.items()}
    passed = Counter((ends[before], after) for before, after in pairwise(path) if before in ends)
    told = Counter()
    for one, count in run.passages.items():
        told[one.source, one.target] += count
    assert told == passed + Counter({(ends[path[-1]], EXIT): 1})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("given", "an argument decides"),
        ("stray", "a store of unknown address may hit what decides"),
        ("endless", "it has no end"),
    ],
)
def test_what_is_not_decided_is_no_run(target, entry, why):
    guest = guest_of(SOURCE, load_target(target), ".c", "-O1")
    assert followed(guest, entry, most=5_000) is None, why


def test_a_run_is_left_where_the_limit_or_the_taker_says():
    guest = guest_of(SOURCE, load_target("cortex-m4"), ".c", "-O1")
    length = followed(guest, "sorted").instructions
    assert followed(guest, "sorted", most=length).instructions == length
    assert followed(guest, "sorted", most=length - 1) is None
    assert followed(guest, "sorted", take=lambda *_: False) is None


def test_how_much_was_decided_is_told_of_a_run_that_is_not():
    guest = guest_of(SOURCE, load_target("cortex-m4"), ".c", "-O1")
    length = followed(guest, "sorted").instructions
    assert beginning(guest, "sorted").decided == length
    assert beginning(guest, "given").decided < 20
    assert 500 <= beginning(guest, "endless", most=500).decided < 520
    # A run that may not be told is followed no further than that is worth while, and not past its end.
    refused = []
    for untold, least, most in ((0, 1, 20), (30, 30, 50), (length + 100, length, length)):
        run, decided = beginning(guest, "sorted", take=lambda *_: refused.append(1), untold=untold)
        assert run is None
        assert least <= decided <= most
    assert len(refused) == 3


def test_a_return_that_is_not_to_behind_the_call_is_no_run():
    text = """.syntax unified
.thumb
.globl f
.thumb_func
.type f, %function
f: push {r4, lr}
  bl g
  movs r0, #1
later: movs r0, #2
  pop {r4, pc}
.size f, .-f
.thumb_func
.type g, %function
g: adds r4, r4, #0
  ADJUST
  bx lr
.size g, .-g
"""
    target = load_target("cortex-m4")
    assert followed(guest_of(text.replace("ADJUST", "nop"), target, ".s"), "f").instructions == 8
    assert followed(guest_of(text.replace("ADJUST", "add lr, lr, #2"), target, ".s"), "f") is None
    # It is one of the caller's, which is where g was called with.
    own = text.replace("bl g", "nop").replace("movs r0, #1", "b g")
    assert followed(guest_of(own.replace("ADJUST", "nop"), target, ".s"), "f").instructions == 6
    assert followed(guest_of(own.replace("ADJUST", "mov lr, r0"), target, ".s"), "f") is None


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_random_recursion_is_followed_as_it_runs(target, seed):
    decided = 0
    for number in range(3):
        guest = guest_of(source((seed, number)), load_target(target), ".c", ["-O1", "-O2", "-Os"][number])
        run = followed(guest, "f")
        if run is None:
            continue
        decided += 1
        with guest.machine() as machine:
            assert run.instructions == machine.measure("f", (), InitialCache.COLD).instructions
    assert decided


TRAPPING = """.globl f
.type f, @function
f: li 3, 7
  twGREATER 3, 6
  blr
.size f, .-f
"""


def test_an_instruction_that_may_trap_is_no_run():
    target = load_target("mpc603e")
    guest = guest_of(TRAPPING.replace("GREATER", "gti"), target, ".s")
    with pytest.raises(EmulationError, match="exception"), guest.machine() as machine:
        machine.measure("f", (), InitialCache.COLD)
    assert followed(guest, "f") is None
    assert followed(guest_of(TRAPPING.replace("twGREATER 3, 6", "addi 3, 3, 6"), target, ".s"), "f").instructions == 3


CALLING = """.syntax unified
SET
.globl f
.type f, %function
KIND
f: push {r4, lr}
  ldr r0, =g
  CHANGE
  blx r0
  pop {r4, pc}
.pool
.size f, .-f
.balign 4
.type g, %function
KIND
g: mov r0, #1
  mov r1, #1
  bx lr
.size g, .-g
"""


@pytest.mark.parametrize(
    ("target", "change", "same", "code"),
    [
        ("cortex-m4", "bic r0, r0, #1", "orr r0, r0, #1", (".thumb", ".thumb_func")),
        ("arm926ej-s", "orr r0, r0, #1", "bic r0, r0, #1", (".arm", "")),
    ],
)
def test_code_of_the_other_instruction_set_is_no_run(target, change, same, code):
    text = CALLING.replace("SET", code[0]).replace("KIND", code[1])
    guest = guest_of(text.replace("CHANGE", change), load_target(target), ".s")
    with pytest.raises(EmulationError), guest.machine() as machine:
        machine.measure("f", (), InitialCache.COLD)
    assert followed(guest, "f") is None
    assert followed(guest_of(text.replace("CHANGE", same), load_target(target), ".s"), "f").instructions == 8
