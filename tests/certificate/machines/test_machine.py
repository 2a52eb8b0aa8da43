"""What the checker makes of memory and of single instructions, and what of it rests on an assumption."""

from dataclasses import replace

import pytest

from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, constant, number, within
from wcet_probe.certificate.values.state import STATIC, Comparison, State, assume

POINTER = Value("stack", 0, 0, 0)


def guest(body, core="cortex-m4"):
    target = load_target(core)
    return guest_of(assembler({"f": body}, target), target)


def machine(**options):
    return Machine(guest(16 * "nop\n" + " bx lr\n").image, **options)


@pytest.mark.parametrize("address", [Value("stack", -16, -8, 4), Value("stack", -8, -8, 0), ANY])
@pytest.mark.parametrize("size_bytes", [1, 4])
def test_what_is_loaded_is_a_stack_address_where_one_may_be_stored(address, size_bytes):
    """Before it was stored, in the order of the code, it was taken for a number; that is refuted then."""
    running, place = machine(), Value("stack", -8, -8, 0)
    assert running.load(place, size_bytes, State({}))[0].is_number
    running.store(address, 4, POINTER, None, State({}))
    assert running.load(place, size_bytes, State({}))[0].may_be_stack
    assert running.is_refuted
    again = running.again()
    assert again.load(place, size_bytes, State({}))[0].may_be_stack
    assert again.load(Value("stack", -24, -20, 1), size_bytes, State({}))[0].is_number is (address is not ANY)
    assert not again.is_refuted


ONE_OF_TWO = Value("stack", -12, -8, 4)
HELD_WORDS = {
    "both hold numbers": (ONE_OF_TWO, {-12: number(5), -8: number(7)}, False),
    "nothing is known of one": (ONE_OF_TWO, {-12: number(5)}, True),
    "one holds an address": (ONE_OF_TWO, {-12: number(5), -8: POINTER}, True),
    "one may hold an address": (ONE_OF_TWO, {-12: ANY, -8: number(7)}, True),
    "parts of both": (Value("stack", -12, -8, 2), {-12: number(5), -8: number(7)}, True),
    "parts of both, further apart": (Value("stack", -14, -6, 4), dict.fromkeys((-16, -12, -8, -4), number(5)), True),
    "nothing is known where no address was": (Value("stack", -24, -8, 4), {-12: number(5), -8: number(7)}, False),
}


@pytest.mark.parametrize("case", HELD_WORDS)
def test_one_of_a_few_words_of_the_stack_is_a_number_where_each_of_them_is(case):
    address, words, may_be_stack = HELD_WORDS[case]
    running = machine()
    running.store(Value("stack", -12, -8, 4), 4, POINTER, None, State({}))
    assert running.load(address, 4, State(words))[0].may_be_stack is may_be_stack
    assert not running.is_refuted


def test_one_of_a_few_words_of_the_stack_is_among_what_is_known_of_each():
    words = {-12: number(5), -8: number(7)}
    assert machine().load(ONE_OF_TWO, 4, State(words))[0] == number(5, 7, 2)
    assert machine().load(ONE_OF_TWO, 4, State({-12: number(5)}))[0] == TOP
    assert machine().load(ONE_OF_TWO._replace(low=-16), 4, State(words))[0] == TOP
    assert machine().load(Value("stack", -80, -8, 4), 4, State(dict.fromkeys(range(-80, -4, 4), number(5))))[0] == TOP


def test_where_addresses_may_be_anywhere_each_word_may_be_one():
    assert machine(escapes=True).load(ONE_OF_TWO, 4, State({-12: number(5), -8: number(7)}))[0].may_be_stack


def test_an_address_that_is_stored_outside_of_the_stack_may_be_anywhere():
    running = machine()
    running.store(TOP, 4, POINTER, None, State({}))
    assert running.is_refuted
    assert running.again().load(Value("stack", -8, -8, 0), 4, State({}))[0].may_be_stack


def test_a_store_by_a_number_rests_on_an_assumption():
    running = machine()
    running.store(TOP, 4, number(1), None, State({}))
    assert running.used == {"stack-separation"}


def test_where_nothing_is_assumed_of_a_store_by_a_number_what_is_loaded_may_be_of_the_stack():
    """The prover may have taken it so, and assume nothing: a true bound was refused. The second time it is ANY."""
    running = machine(is_separate=False)
    running.store(TOP, 4, number(1), None, State({}))
    assert running.found_escape
    again = machine(escapes=True)
    loaded, _ = again.load(TOP, 4, State({}))
    again.store(loaded, 4, number(1), None, State({}))
    assert (loaded, again.used) == (ANY, set())


@pytest.mark.parametrize(("last", "assumed"), [(0, set()), (28, {"stack-separation"})])
def test_a_store_by_an_index_rests_on_an_assumption_though_all_of_its_addresses_are_of_the_image(last, assumed):
    """It was not asked for: but the stack may be in the same segment, behind the array."""
    running = machine()
    start = running.image.segments[0].address
    running.store(number(start, start + last, 4), 4, number(1), None, State({}))
    assert running.used == assumed


def test_a_load_by_a_number_rests_on_an_assumption_where_the_stack_holds_its_address():
    running, state = machine(), State({})
    running.load(TOP, 4, state)
    assert not running.used
    running.store(Value("stack", -8, -8, 0), 4, POINTER, None, state)
    running.load(TOP, 4, state)
    assert running.used == {"stack-separation"}


def test_a_store_across_the_end_of_memory_goes_on_at_its_beginning():
    state = State({STATIC: number(5), STATIC + 8: number(6)})
    machine().store(number(WORD - 2), 4, number(1), None, state)
    assert STATIC not in state.values


def test_a_stack_address_in_a_register_of_floating_point_escapes():
    on = guest("vmov s0, r0\n bx lr\n", "cortex-m4f")
    for value, escapes in ((POINTER, True), (number(7), False)):
        running = Machine(on.image)
        arm.execute(running, on.instructions[0], State({"r0": value}))
        assert running.found_escape == escapes


@pytest.mark.parametrize(("entry", "is_assumed"), [(17, False), (16, True)])
def test_a_table_that_leads_into_the_other_instruction_set_is_not_followed(entry, is_assumed):
    on = guest(f"ldr pc, [r1, r0, lsl #2]\n .balign 4\n table: .word {entry}\n")
    instruction = on.instructions[0]
    known = State({"r0": number(0), "r1": number(instruction.address + instruction.size_bytes)})
    (outcome,) = arm.execute(Machine(on.image), instruction, known)
    assert (outcome.is_assumed, outcome.address) == (is_assumed, None if is_assumed else 16)


def test_a_relation_of_signed_numbers_tells_nothing_of_unsigned_ones():
    state = State({}, {}, {"nzcv": Comparison("r0", TOP, "r1", TOP, holding=frozenset({("<", True)}))})
    assert assume(state, "nzcv", ">=", is_signed=True) is None
    assert assume(state, "nzcv", ">=", is_signed=False) is not None


def test_an_instruction_of_an_it_block_whose_condition_is_not_read_may_be_skipped():
    on = guest("adds r0, r0, #1\n bx lr\n")
    instruction = replace(on.instructions[0], in_it_block=True)
    skipped = [
        way.state.read("r0") for way in arm.outcomes_of(Machine(on.image), instruction, State({"r0": number(4)}))
    ]
    assert skipped == [TOP, number(4)]


def test_the_flags_of_a_sum_with_the_least_number_are_no_comparison_with_its_opposite():
    """0 + -2**31 is negative, and 0 is not less than 2**31 taken for -2**31."""
    on = guest("adds r0, r0, #0x80000000\n bx lr\n", "arm926ej-s")
    (outcome,) = arm.execute(Machine(on.image), on.instructions[0], State({"r0": number(0)}))
    assert assume(outcome.state, "nzcv", "<", is_signed=True) is not None


def stepped(body, known):
    """The ways out of the first instruction of ``body``, on PowerPC."""
    on = guest(body, "mpc603e")
    return powerpc.execute(Machine(on.image), on.instructions[0], known)


def test_a_base_that_is_loaded_in_a_list_is_unknown():
    (outcome,) = stepped(".long 0xbbdf0000\n blr\n", State({"r31": POINTER, 4: number(3)}))  # lmw 30, 0(31)
    assert outcome.state.read("r31") == ANY


def test_an_overflow_is_no_relation_of_what_was_compared():
    compared = Comparison("r3", number(1), "r4", number(2), is_signed=True)
    known = State({"r3": number(1), "r4": number(2)}, {}, {"cr0": compared})
    assert {way.way for way in stepped("bso 1f\n nop\n 1: blr\n", known)} == {"jump", "fall"}


def test_a_counter_need_not_be_0_where_another_condition_falls_through():
    ways = {way.way for way in stepped("bdnzt 2, 1f\n nop\n 1: blr\n", State({"ctr": number(5)}))}
    assert ways == {"jump", "fall"}


@pytest.mark.parametrize("name", ["slw", "srw"])
def test_a_shift_by_64_is_one_by_0(name):
    (outcome,) = stepped(f"{name} 3, 4, 5\n blr\n", State({"r4": number(5), "r5": number(64)}))
    assert within(number(5), outcome.state.read("r3"))


@pytest.mark.parametrize("bits", [0, 1, 2, 7, 31])
@pytest.mark.parametrize("last", [24, 31, 29, 30])
def test_a_shift_keeps_numbers_below_0_and_a_mask_takes_what_it_takes(bits, last):
    """An index that leading zeros make small is multiplied by a shift: -8 to 24 become -32 to 96."""
    index = number(-8, 24)
    (outcome,) = stepped(f"rlwinm 3, 4, {bits}, 0, {last}\n blr\n", State({"r4": index}))
    found = outcome.state.read("r3")
    mask = (WORD - 1 << 31 - last) % WORD
    for word in index.words():
        turned = (word % WORD << bits | word % WORD >> 32 - bits) & mask
        assert within(constant(turned), found), (word, found)
    if last == 31 - bits:
        assert bits > 20 or found == number(-8 << bits, 24 << bits, 1 << bits)


BITS = {
    "crand": lambda a, b: a and b, "cror": lambda a, b: a or b, "crxor": lambda a, b: a != b,
    "crnand": lambda a, b: not (a and b), "crnor": lambda a, b: not (a or b), "creqv": lambda a, b: a == b,
    "crandc": lambda a, b: a and not b, "crorc": lambda a, b: a or not b,
}  # fmt: skip


@pytest.mark.parametrize("name", BITS)
def test_a_bit_of_two_conditions_is_what_they_leave_of_it(name):
    """Each of the two holds, does not hold, or may; the branch goes wherever one of the possible results leads."""
    values = {(True,): number(0), (False,): number(1), (True, False): number(0, 1)}
    for one, left in values.items():
        for other, right in values.items():
            known = State({}, {}, {
                "cr1": Comparison("r3", left, None, number(0), is_signed=True),
                "cr7": Comparison("r4", right, None, number(0), is_signed=False),
            })  # fmt: skip
            for place in (20, 21, 22, 6):  # bits of cr5, and the first operand itself
                on = guest(f"{name} {place}, 6, 30\n bt {place}, 1f\n nop\n 1: blr\n", "mpc603e")
                state = known.copy()
                (outcome,) = powerpc.execute(Machine(on.image), on.instructions[0], state)
                found = powerpc.execute(Machine(on.image), on.instructions[1], outcome.state)
                possible = {BITS[name](a, b) for a in one for b in other}
                assert {way.way for way in found} == {"jump" if holds else "fall" for holds in possible}
                assert state.flags["cr7"] == known.flags["cr7"]


def test_a_bit_of_conditions_tells_nothing_of_the_others_of_its_field():
    known = State({"r3": number(1)}, {}, {"cr1": Comparison("r3", number(1), None, number(0), is_signed=True)})
    for name, place in (("bt", 4), ("bf", 4), ("bt", 6), ("bf", 6), ("bt", 7), ("bf", 7)):
        on = guest(f"cror 5, 5, 5\n {name} {place}, 1f\n nop\n 1: blr\n", "mpc603e")
        (outcome,) = powerpc.execute(Machine(on.image), on.instructions[0], known.copy())
        ways = powerpc.execute(Machine(on.image), on.instructions[1], outcome.state)
        assert {way.way for way in ways} == {"jump", "fall"}
        again = powerpc.execute(Machine(on.image), on.instructions[1], ways[0].state.copy())
        assert ways[0].way in {way.way for way in again}


@pytest.mark.parametrize(("form", "keeps"), [("rlwimi", True), ("rlwimi.", False), ("addze", True), ("addze.", False)])
def test_flags_stay_where_only_a_register_is_written(form, keeps):
    known = State({}, {}, {"cr0": Comparison("r29", number(16), None, number(256), is_signed=False)})
    (outcome,) = stepped(f"{form} 9, 8{', 16, 29, 29' if 'rlwimi' in form else ''}\n blr\n", known)
    assert ("cr0" in outcome.state.flags) == keeps
    assert outcome.state.read("r9") == TOP
