"""The checker's transfer functions against the p-code interpreter: each concrete step lies in the abstract step.

Tests: certificate.machines.arm, certificate.machines.powerpc, certificate.machines.machine.
"""

import random
from contextlib import suppress

import pytest

from tests import random_programs
from tests.kernel_suite import KERNELS, guest, prepare
from tests.path_check import lifter_of
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.flow.walk import between_blocks
from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, number
from wcet_probe.certificate.values.state import STATIC, State, assume
from wcet_probe.emu.machine import RETURN_ADDRESS
from wcet_probe.errors import EmulationError
from wcet_probe.model.target import Isa

MOST_STEPS = 400
LONGEST_CHAIN = 12
LINK = RETURN_ADDRESS


def steps_of(on, name, memory, registers):
    """Address and registers before each step of a call, as far as it goes."""
    names = powerpc.REGISTERS if on.target.isa is Isa.POWERPC else arm.REGISTERS
    seen = []

    def visit(address, read):
        seen.append((address, {register: read(register) for register in names}))

    with suppress(EmulationError):
        interpret_call(
            lifter_of(on.target.pcode_language, on.target.isa, on.image.segments),
            memory,
            registers,
            entry_address=on.address(name),
            return_address=RETURN_ADDRESS,
            step_limit=MOST_STEPS,
            visit=visit,
        )
    return seen


def around(draw, word):
    """A number, or a strided interval around it, which may begin below 0 and be derived from the stack pointer."""
    if draw.random() < 0.4:
        return number(word)
    stride = draw.choice((1, 1, 2, 4, 8, 3))
    least, most = 0, WORD - 1
    if draw.random() < 0.3 and min(word, WORD - word) < 100:
        word, least, most = (word + WORD // 2) % WORD - WORD // 2, -WORD // 2, WORD // 2 - 1
    low = word - stride * min(draw.choice((0, 1, 5, 100, 1 << 20)), (word - least) // stride)
    high = word + stride * min(draw.choice((0, 1, 5, 100, 1 << 20)), (most - word) // stride)
    found = number(low, high, stride)
    if high < 0:
        found = found._replace(low=low + WORD, high=found.high + WORD)
    return found._replace(base=draw.choice(("number", "number", "any")))


def holds(value, word, pointer, link):
    """Whether ``word`` is one of ``value``."""
    base = {"number": 0, "any": 0, "stack": pointer, "link": link}[value.base]
    offset = (word - base) % WORD
    return any(one in value.words() for one in (offset, offset - WORD))


def check_chains(on, steps, draw):
    """Follow chains of steps from states around what the registers held; returns how many steps were followed."""
    isa = powerpc if on.target.isa is Isa.POWERPC else arm
    code = {one.address: one for one in on.instructions}
    pointer_name = isa.SP
    pointer = steps[0][1][pointer_name]
    followed, index = 0, 0
    while index + 1 < len(steps):
        address, registers = steps[index]
        machine_ = Machine(on.image, escapes=True)
        state = State({register: around(draw, word) for register, word in registers.items()})
        state.values[pointer_name] = Value(
            "stack", *[(registers[pointer_name] - pointer + WORD // 2) % WORD - WORD // 2] * 2, 0
        )
        for _ in range(draw.randrange(1, LONGEST_CHAIN)):
            if index + 1 == len(steps):
                break
            address, _ = steps[index]
            after, real = steps[index + 1]
            instruction = code[address]
            outcomes = isa.execute(machine_, instruction, state)
            here = [one for one in outcomes if one.address == after or one.is_assumed]
            assert here, f"{instruction.text} at {address:#x} goes to {after:#x}"
            fitting = [
                one for one in here if all(holds(one.state.read(r), word, pointer, LINK) for r, word in real.items())
            ]
            asserted = {r: (hex(word), here[0].state.read(r)) for r, word in real.items() if r in instruction.writes}
            assert fitting, (f"{instruction.text} at {address:#x}", asserted)
            state = fitting[0].state
            index += 1
            followed += 1
    return followed


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_steps_of_kernels_lie_in_the_abstract_steps(kernel, target):
    on, draw = guest(target), random.Random(f"{kernel.name} {target}")
    with on.machine() as running:
        prepare(running, kernel, target, "worst")
        memory, registers = running.memory.snapshot(), running.entry_registers(kernel.worst)
    assert check_chains(on, steps_of(on, kernel.name, memory, registers), draw) > 10


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_steps_of_random_programs_lie_in_the_abstract_steps(seed, target):
    on, draw = guest_of(random_programs.source(seed, 12), load_target(target), ".c"), random.Random(seed)
    followed = 0
    for function in range(12):
        for _ in range(2):
            arguments = random_programs.arguments(draw)
            with on.machine() as running:
                memory, registers = running.memory.snapshot(), running.entry_registers(arguments)
            steps = steps_of(on, f"f{function}", memory, registers)
            followed += check_chains(on, steps, draw)
    assert followed > 500


RELOADED = """
 .syntax unified
 .arm
 .globl f
 .type f, %function
f: ldr r3, [sp, #4]
   str r0, [sp, r1, lsl #2]
   ldr r4, [sp, #4]
   cmp r3, #5
   bx lr
 .size f, . - f
"""
COMPARED = """
 .syntax unified
 .arm
 .globl f
 .type f, %function
f: ldr r3, [sp, #4]
   cmp r3, #5
   mov r3, #0
   str r0, [sp, r1, lsl #2]
   bx lr
 .size f, . - f
"""


def after(source, steps, known, *, escapes=False, target="arm926ej-s"):
    """The state behind some instructions of ``source``, where ``known`` is known of the stack."""
    on = guest_of(source, load_target(target), ".s")
    code = {one.address: one for one in on.instructions}
    running, state = Machine(on.image, escapes), State({**arm.entry_state().values, **known})
    for number_ in range(steps):
        (outcome,) = arm.execute(running, code[on.address("f") + 4 * number_], state)
        state = outcome.state
    return state


@pytest.mark.parametrize("known", [{}, {4: number(0, 100)}], ids=["any", "known"])
def test_a_word_that_was_written_meanwhile_is_not_what_was_loaded_before(known):
    """The store may be to the word: what the first load gave tells nothing of the second."""
    state = after(RELOADED, 4, known)
    assert state.name("r3") == 4 != state.name("r4")
    assert assume(state, "nzcv", "==", is_signed=False).read("r4") == TOP


@pytest.mark.parametrize("known", [{}, {4: number(0, 100)}], ids=["any", "known"])
def test_flags_do_not_speak_of_a_word_that_was_written_since(known):
    """Behind the block something else tells of the word: what the flags tell is of its old value."""
    state = between_blocks(after(COMPARED, 4, known))
    state.values[4] = number(0, 100)
    found = assume(state, "nzcv", "==", is_signed=False)
    assert found is None or found.read(4) == number(0, 100)


STATIC_WORD = """
 .syntax unified
 .arm
 .globl f
 .type f, %function
f: ldr r2, =word
   mov r3, #7
   str r3, [r2]
   {store}
   ldr r4, [r2]
   bx lr
   .ltorg
 .size f, . - f
 .data
 .balign 4
word: .word 1, 2
"""


@pytest.mark.parametrize(
    ("store", "is_known"),
    [
        ("nop", True),
        ("str r0, [sp, #-8]!", True),
        ("push {r0, lr}", True),
        ("strb r0, [sp, #-1]!", True),
        ("strh r0, [sp, #-1]!", False),
        ("str r0, [sp, #-8]", False),
        ("str r0, [sp, #8]", False),
        ("str r0, [r2, #4]", True),
        ("str r0, [r1]", False),
        ("strb r0, [r2, #3]", False),
        ("str r0, [sp, r1, lsl #2]", False),
    ],
)
def test_a_static_word_is_what_was_stored_unless_a_store_may_be_to_it(store, *, is_known):
    found = after(STATIC_WORD.replace("{store}", store), 5, {})
    assert (found.read("r4") == number(7)) is is_known


COMPARED_STATIC = STATIC_WORD.replace("mov r3, #7", "ldr r3, [r2]").replace("str r3, [r2]", "cmp r3, #0")


@pytest.mark.parametrize(
    ("store", "is_known"),
    [
        ("nop", True),
        ("push {r0, lr}", True),
        ("str r0, [r2, #4]", True),
        ("str r0, [r1]", False),
        ("strb r0, [r2, #3]", False),
    ],
)
def test_a_static_word_is_what_its_load_was_compared_with_unless_a_store_may_be_to_it(store, *, is_known):
    """Also where nothing was told of it before."""
    state = after(COMPARED_STATIC.replace("{store}", store), 4, {})
    place = state.name("r3")
    assert place >= STATIC
    assert place not in state.values
    found = assume(between_blocks(state), "nzcv", "==", is_signed=False)
    assert (found.read(place) == number(0)) is is_known


def test_a_store_beyond_the_last_distance_from_the_stack_pointer_is_at_the_first_one():
    """A word at 2**31 - 2 behind it ends with two bytes that are 2**31 before it."""
    on = guest_of(STATIC_WORD.replace("{store}", "nop"), load_target("arm926ej-s"), ".s")
    half = WORD // 2
    for low, high, is_known in ((half - 2, half - 2, False), (half - 4, half - 4, True), (0, half - 1, False)):
        state = State({-half: number(7), -half + 4: number(8)})
        Machine(on.image).store(Value("stack", low, high, int(low < high)), 4, number(3), object(), state)
        assert (state.read(-half) == number(7)) is is_known
        assert state.read(-half + 4) == number(8)


PARTS = """
 .syntax unified
 .arm
 .globl f
 .type f, %function
f: str r2, [sp]
   str sp, [sp, #8]
   ldrb r0, [sp, #8]
   ldrb r1, [sp, #9]
   orr r0, r0, r1, lsl #8
   ldrh r1, [sp, #10]
   orr r0, r0, r1, lsl #16
   ldrb r5, [sp, #3]
   str r6, [r0]
   ldr r3, [sp]
   bx lr
 .size f, . - f
"""


def test_what_is_made_of_parts_of_a_stack_address_may_be_one():
    """The parts make the stack pointer again, and the word that was 3 is another one."""
    state = after(PARTS, 10, {"r2": number(3), "r13": Value("stack", -16, -16, 0)}, escapes=True)
    assert state.read("r0").may_be_stack
    assert not state.read("r5").may_be_stack
    assert state.read("r3") == ANY


def test_names_of_sums_do_not_grow():
    """Sums of sums have so many parts as there are numbers."""
    body = "add r0, r0, r0\n add r1, r1, #1\n" * 60
    source = f".syntax unified\n.arm\n.globl f\n.type f, %function\nf: {body} cmp r0, r1\n bx lr\n.size f, . - f\n"
    state = after(source, 121, {"r1": number(0, 9)})
    assert assume(state, "nzcv", "<", is_signed=False).read("r1") == number(60, 69)


def test_what_is_known_of_a_sum_is_known_of_its_parts():
    body = "add r2, r0, r1\n sub r3, r0, #1\n cmp r2, #64\n bx lr"
    source = f".syntax unified\n.arm\n.globl f\n.type f, %function\nf: {body}\n.size f, . - f\n"
    state = after(source, 3, {"r0": number(0, 1000), "r1": number(16, 32)})
    below = assume(state, "nzcv", "<", is_signed=False)
    assert below.read("r0") == number(0, 47)
    assert below.read("r2") == number(16, 63)


def test_what_is_known_of_low_bits_is_known_of_what_was_added_to():
    """A count from 1 to 125 as compilers test it, of 16 bits, and one that was shifted before is told nothing of."""
    head = ".syntax unified\n.arm\n.globl f\n.type f, %function\nf:"
    body = "sub r2, r0, #1\n uxth r2, r2\n uxtb r3, r1, ror #8\n cmp r2, #124\n bx lr"
    known = {"r0": number(0, 0xFFFF), "r1": number(0, 0xFFFF)}
    state = after(f"{head} {body}\n.size f, . - f\n", 4, known, target="cortex-r5")
    found = assume(state, "nzcv", "<=", is_signed=False)
    assert found.read("r0") == number(1, 125)
    assert (found.read("r1"), found.read("r2")) == (number(0, 0xFFFF), number(0, 124))
    assert found.name("r3") != found.name("r2")
    shifted = body.replace("uxth r2, r2", "uxtb r2, r2, ror #8")
    state = after(f"{head} {shifted}\n.size f, . - f\n", 4, known, target="cortex-r5")
    assert assume(state, "nzcv", "<=", is_signed=False).read("r0") == number(0, 0xFFFF)


@pytest.mark.parametrize("text", ["mov {}, pc", "add {}, pc, #4"])
def test_the_program_counter_is_not_one_value(text):
    """What is read of it at two instructions has two values, whatever a comparison tells of the first."""
    body = f"{text.format('r0')}\n {text.format('r1')}\n cmp r0, #0\n bx lr"
    source = f".syntax unified\n.arm\n.globl f\n.type f, %function\nf: {body}\n.size f, . - f\n"
    found = assume(after(source, 3, {}), "nzcv", "!=", is_signed=False)
    assert found.read("r1").low == found.read("r0").low + 4


PREDICATED = """
 .syntax unified
 .arm
 .globl f
 .type f, %function
f: ldr r0, [sp, #4]
   strb r1, [sp, #4]
   addvs r5, r5, #1
   ldr r3, [sp, #4]
   cmp r0, #5
   bx lr
 .size f, . - f
"""


def test_a_word_that_was_written_before_ways_meet_is_not_what_was_loaded_before():
    state = after(PREDICATED, 5, {4: number(0, 100)})
    assert state.name("r0") == 4 != state.name("r3")
    assert assume(state, "nzcv", "<", is_signed=False).read("r3") == TOP


@pytest.mark.parametrize(("shift", "bits", "expected"), [("lsr", 256, 7), ("asr", 257, 3), ("lsl", 258, 28)])
def test_the_lowest_byte_of_a_register_says_how_far_it_shifts(shift, bits, expected):
    """Arm ARM, A8.4.2: ``UInt(R[s]<7:0>)``."""
    source = f".globl f\n.type f, %function\nf: {shift} r0, r1, r2\n bx lr\n.size f, . - f\n"
    assert after(f".syntax unified\n.arm\n{source}", 1, {"r1": number(7), "r2": number(bits)}).read("r0") == number(
        expected
    )
    assert (
        expected
        in after(f".syntax unified\n.arm\n{source}", 1, {"r1": number(7), "r2": number(bits - 1, bits)})
        .read("r0")
        .words()
    )


def behind(text):
    """The state behind the instructions of ``text`` on PowerPC."""
    on = guest_of(f".globl f\n.type f, @function\nf: {text}\n blr\n.size f, . - f\n", load_target("mpc603e"), ".s")
    state, running = powerpc.entry_state(), Machine(on.image)
    for instruction in on.instructions[:-1]:
        if instruction.address >= on.address("f") and instruction.text != "blr":
            powerpc.execute(running, instruction, state)
    return state


def test_a_floating_point_register_is_no_general_one():
    """What is stored of f1 is not the stack pointer, what is loaded into f3 does not change r3."""
    state = behind("cmpwi 4, 5\n mr 3, 1\n lfd 3, 0(4)\n stfs 1, 8(1)\n lwz 5, 8(1)")
    assert state.read("r3") == Value("stack", 0, 0, 0)
    assert not state.read("r5").is_constant
    assert state.flags


def test_a_line_of_the_stack_that_is_cleared_may_begin_before_its_address():
    """With a stack pointer that is a multiple of 32, dcbz clears the word that was stored."""
    assert not behind("li 5, 7\n stw 5, 8(1)\n addi 3, 1, 16\n dcbz 0, 3\n lwz 6, 8(1)").read("r6").is_constant
    assert behind("li 5, 7\n stw 5, 48(1)\n addi 3, 1, 16\n dcbz 0, 3\n lwz 6, 48(1)").read("r6") == number(7)


@pytest.mark.parametrize("part", ["lbz 5, 0(4)", "lfs 1, 0(4)"])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_part_of_a_stack_address_may_be_copied_by_code_that_stands_before_it_is_stored(part, *, is_first):
    """In the next round of a loop, or where a certificate lists the nodes the other way round."""
    texts = [part, "stw 1, 8(1)"] if is_first else ["stw 1, 8(1)", part]
    source = ".globl f\n.type f, @function\nf: {}\n {}\n blr\n.size f, . - f\n".format(*texts)
    on = guest_of(source, load_target("mpc603e"), ".s")
    running = Machine(on.image)
    states = []
    for one in (each for each in on.instructions if 0 <= each.address - on.address("f") < 8):
        assert not running.is_refuted
        states.append(State({**powerpc.entry_state().values, "r4": Value("stack", 8, 8, 0)}))
        powerpc.execute(running, one, states[-1])
    assert running.is_refuted or any(state.read("r5").base == "any" for state in states)


def test_what_nobody_knows_of_leaves_no_condition_field():
    """Mcrxr 0 is no instruction that the decoder knows."""
    source = ".globl f\n.type f, @function\nf: cmpwi 3, 5\n .long 0x7c000400\n blr\n.size f, . - f\n"
    on = guest_of(source, load_target("mpc603e"), ".s")
    state = powerpc.entry_state()
    for instruction in (one for one in on.instructions if 0 <= one.address - on.address("f") < 8):
        powerpc.execute(Machine(on.image), instruction, state)
    assert not state.flags


CARRIED = """
   lsls r0, r1, #7
   adc r2, r2, r3
   lsls r1, r1, #1
   adcs r4, r4, r4
   teq r4, r5
   addeq r0, r0, #1
   lsls r3, r3, #4
   lsl r5, r3, #2
   adc r5, r5, #3
   teq r0, #0
   subne r2, r2, #1
   lsls r2, r2, #31
   cmp r4, r1
   adc r0, r0, r1
   teq r3, r3
   adcs r1, r0, #0
   bx lr
"""
"""Carries that a shift leaves, that another instruction takes away, or that something comes between."""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_carries_and_equality_lie_in_the_abstract_steps(target):
    thumb = target == "cortex-m4"
    text = CARRIED
    for condition in ("addeq", "subne") if thumb else ():
        text = text.replace(f"   {condition}", f"   it {condition[3:]}\n   {condition}")
    on, draw = guest_of(assembler({"f": text}, load_target(target)), load_target(target)), random.Random(target)
    followed = 0
    for _ in range(150):
        arguments = [draw.getrandbits(32) >> draw.randrange(32) for _ in range(4)]
        with on.machine() as running:
            memory, registers = running.memory.snapshot(), running.entry_registers(arguments)
        followed += check_chains(on, steps_of(on, "f", memory, registers), draw)
    assert followed > 2000


@pytest.mark.parametrize("text", ["lsl r0, r0, #2", "cmp r0, r0", "tst r0, r1", "movs r5, r0"])
def test_the_bit_that_a_shift_leaves_is_carried_to_the_next_instruction_alone(text):
    """Whatever comes between, the sum is with 1 or with what is not known."""
    source = f".globl f\n.type f, %function\nf: lsls r2, r1, #1\n {text}\n adc r3, r4, r4\n bx lr\n.size f, . - f\n"
    known = {"r1": number(1 << 31), "r4": number(8)}
    assert after(f".syntax unified\n.arm\n{source}", 3, known).read("r3") == number(16, 17)
    plain = source.replace(f" {text}\n", "")
    assert after(f".syntax unified\n.arm\n{plain}", 2, known).read("r3") == number(17)
