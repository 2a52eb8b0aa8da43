"""What cores do besides what instructions say: IT blocks, instruction sets, stack pointers. Each was accepted.

Tests: certificate.kernel.coverage, certificate.machines.machine, certificate.machines.arm.
"""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import graph_instead
from tests.certificate.kernel.test_code import document_of
from tests.certificate.kernel.test_return_addresses import ASSUMED, LONG, UNKNOWN, forged, kept_at
from tests.support import assembler, guest_of
from wcet_probe.analyzer.pcode import corrections
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.charge import edge_cost
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.kernel.return_addresses import SparingMachine, _moved
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, LINK, TOP, Value
from wcet_probe.certificate.values.state import State
from wcet_probe.errors import VerificationError

ENDS = {"f": "bx lr\n", "h": LONG + "bx lr\n", "k": "bx lr\n"}


def forged_graph(body, nodes, edges, exits, said, *, target="cortex-m4", assumed=ASSUMED):
    """What the checker says of a graph of ``g``, whose code is ``body``; the last function is ``h``, which is long."""

    def change(guest, problem, derivations, followed):
        changed = graph_instead(problem, guest, nodes, edges, exits, cycles_each=400)
        return changed, derivations, said if followed or problem.unit == "instructions" else []

    return forged({**ENDS, "g": body}, change, target, assumed)


def is_open(found):
    return "graph" in {one.check for one in found[0].findings if one.verdict != "ok"}


def test_control_does_not_come_into_an_it_block_by_a_branch():
    """The core would execute the instruction whatever the condition: the branch has not passed the IT."""
    body = "cmp r0, #0\n beq 1f\n bx lr\n .inst.n 0xbf18\n 1: .inst.n 0x4718\n bx lr\n"  # it ne, bx r3
    nodes = {"g": ("g", 0, 2), "g+8": ("g", 8, 1), "g+10": ("g", 10, 1), "g+4": ("g", 4, 1)}
    edges = {"a:jump": ("g", "g+8"), "a:fall": ("g", "g+4"), "b:fall": ("g+8", "g+10")}
    said = [*kept_at(*nodes), "flags g+8 nzcv either numbers 0 1 4294967295 0 0 0 ==u"]
    with pytest.raises(VerificationError, match="control comes into the IT block at g\\+8 by a branch"):
        forged_graph(body, nodes, edges, ["g+4", "g+10"], said)


def test_an_instruction_of_an_it_block_is_one_wherever_its_code_is_said_to_begin():
    target = load_target("cortex-m4")
    guest = guest_of(assembler({"f": "cmp r0, #3\n it ne\n addne r0, r0, #1\n mov r1, r0\n bx lr\n"}, target), target)
    start = next(one.address for one in guest.instructions if one.text.startswith("it "))
    assert code_of(guest.image, guest.instructions).at(start + 2).in_it_block
    for address, said in ((start + 2, False), (start + 4, True)):
        other = [replace(one, in_it_block=said) if one.address == address else one for one in guest.instructions]
        code = code_of(guest.image, other)
        with pytest.raises(VerificationError, match="there is no instruction"):
            code.at(address)
        assert code.at(start).text == "it ne"


@pytest.mark.parametrize("jump", ["ldr r3, =h+1\n bx r3\n", "ldr pc, =h+1\n", "ldr r3, =h+1\n push {r3}\n pop {pc}\n"])
def test_a_jump_that_changes_the_instruction_set_is_not_followed(jump):
    """What is ARM code to the checker would be executed as Thumb."""
    nodes = {"g": ("g", 0, jump.count("\n")), "h": ("h", 0, 7)}
    assert is_open(forged_graph(jump, nodes, {"a:return": ("g", "h")}, ["h"], kept_at(*nodes), target="arm926ej-s"))
    even = jump.replace("h+1", "h")
    assert not is_open(forged_graph(even, nodes, {"a:return": ("g", "h")}, ["h"], kept_at(*nodes), target="arm926ej-s"))


def test_the_lowest_bits_of_the_stack_pointer_are_0():
    """The core clears them with each write, and loads another word than the checker thought."""
    body = (
        "sub sp, sp, #8\n ldr r3, =h\n ldr r2, =k\n str r3, [sp]\n str r2, [sp, #4]\n add.w sp, sp, #6\n"
        " sub.w sp, sp, #2\n ldr r3, [sp]\n bx r3\n"
    )
    nodes = {"g": ("g", 0, 9), "k": ("k", 0, 1)}
    said = kept_at("g") + kept_at("k", places="r13 stack 4294967292 0 0|r14 link 0 0 0")
    assert is_open(forged_graph(body, nodes, {"a:return": ("g", "k")}, ["k"], said))
    even = body.replace("#6", "#8").replace("#2\n", "#4\n")
    assert not is_open(forged_graph(even, nodes, {"a:return": ("g", "k")}, ["k"], said))


@pytest.mark.parametrize(("through", "is_shown"), [("sp", False), ("r6", True)])
def test_a_counter_that_goes_through_the_stack_pointer_ends_no_loop(through, is_shown):
    """It is 0 behind each round: the core clears what was added. Prover and checker both told 204 instructions."""
    core = load_target("cortex-m4")
    body = (
        f"mov r7, sp\n movs r4, #0\n 1: mov {through}, r4\n mov r4, {through}\n adds r4, #1\n cmp r4, #40\n blt 1b\n"
        " mov sp, r7\n bx lr\n"
    )
    with patch.object(corrections, "_aligned_stack", lambda _, ops: ops):  # else nothing is proved of it
        document, binary = document_of(guest_of(assembler({"f": body}, core), core))
    found = check_bound(document, binary)
    assert document["bound"]["instructions"] == 204
    assert [one.check for one in found.findings if one.verdict != "ok"] == ([] if is_shown else ["loop bounds"])


STATUS = {
    "a stack pointer that is written": ("cortex-m4", "msr msp, r1\n"),
    "another stack pointer": ("cortex-m4", "msr control, r1\n"),
    "another mode": ("arm926ej-s", "msr cpsr_c, r1\n"),
    "another mode by its name": ("cortex-r5", "cps #19\n"),
}
HARMLESS = {
    "a stack pointer that is read": ("cortex-m4", "mrs r1, msp\n"),
    "interrupts off": ("cortex-m4", "mrs r0, primask\n cpsid i\n msr primask, r0\n"),
    "flags": ("arm926ej-s", "mrs r0, cpsr\n msr cpsr_f, r0\n"),
}


@pytest.mark.parametrize("name", [*STATUS, *HARMLESS])
def test_instructions_that_exchange_stack_pointers_leave_nothing_known_of_them(name):
    target, lines = {**STATUS, **HARMLESS}[name]
    body = f"push {{r4, lr}}\n {lines} pop {{r4, pc}}\n"
    nodes = {"g": ("g", 0, 2 + lines.count("\n"))}
    assert is_open(forged_graph(body, nodes, {}, ["g"], kept_at("g"), target=target)) == (name in STATUS)


def test_a_stack_address_that_went_through_a_special_register_is_one_still():
    """It was taken for a number, by which the stack is not stored to."""
    body = (
        "stwu 1, -16(1)\n li 3, 5\n stw 3, 8(1)\n mtspr 272, 1\n mfspr 4, 272\n stw 5, 8(4)\n lwz 3, 8(1)\n"
        " addi 1, 1, 16\n cmpwi 3, 5\n beq 1f\n nop\n nop\n nop\n 1: blr\n"
    )
    functions = {"f": "blr\n", "g": body}
    places, unknown = "r1 stack 0 0 0|lr link 0 0 0", f"r3 {UNKNOWN}|r4 {UNKNOWN}|r5 {UNKNOWN}"

    def change(guest, problem, derivations, followed):
        nodes = {"g": ("g", 0, 10), "g+52": ("g", 52, 1)}
        changed = graph_instead(problem, guest, nodes, {"a:jump": ("g", "g+52")}, ["g+52"], cycles_each=400)
        said = [*kept_at("g", places=places), *kept_at("g+52", places=f"{places}|{unknown}")]
        return changed, derivations, said if followed or problem.unit == "instructions" else []

    with pytest.raises(VerificationError, match="the graph lacks the edge"):
        forged(functions, change, "mpc603e")


def test_a_stack_pointer_that_is_read_by_another_name_is_no_number():
    """By a copy of it the stack pointer was known again behind, and a store through what was read missed the stack."""
    body = (
        "sub sp, sp, #16\n mov r7, sp\n mov r4, lr\n mrs r1, msp\n mov sp, r7\n mov lr, r4\n ldr r3, =h\n ldr r0, =k\n"
        " str r0, [sp, #8]\n str r3, [r1, #8]\n ldr r0, [sp, #8]\n add sp, sp, #16\n bx r0\n"
    )
    nodes = {"g": ("g", 0, 13), "k": ("k", 0, 1)}
    places = "|".join(("r13 stack 0 0 0|r14 link 0 0 0", *(f"r{each} {UNKNOWN}" for each in (1, 7, 8, 9, 10, 11, 12))))
    said = [*kept_at("g"), *kept_at("k", places=f"{places}|r4 link 0 0 0")]
    assert is_open(forged_graph(body, nodes, {"a:return": ("g", "k")}, ["k"], said))


STORED = {
    "at its own address": (
        "cortex-m4",
        (
            "sub sp, sp, #16\n mov r1, sp\n strt r1, [r1, #4]\n ldr r2, [sp, #4]\n ldr r3, =h\n ldr r0, =k\n"
            " str r0, [sp, #8]\n str r3, [r2, #8]\n ldr r0, [sp, #8]\n add sp, sp, #16\n bx r0\n"
        ),
        "r13 stack 0 0 0|r14 link 0 0 0",
        f"r1 {UNKNOWN}|r2 {UNKNOWN}",
    ),
    "turned over, at a distance from itself": (
        "mpc603e",
        (
            "lis 4, 0x40\n subf 3, 1, 4\n stwbrx 1, 1, 3\n lwbrx 5, 0, 4\n lis 6, k@ha\n addi 6, 6, k@l\n lis 7, h@ha\n"
            " addi 7, 7, h@l\n stw 6, -8(1)\n stw 7, -8(5)\n lwz 6, -8(1)\n mtctr 6\n bctr\n"
        ),
        "r1 stack 0 0 0|lr link 0 0 0",
        f"r3 {UNKNOWN}|r5 {UNKNOWN}|r6 {UNKNOWN}|ctr {UNKNOWN}",
    ),
}


MOVED = {
    "loads": (
        "arm926ej-s",
        (
            "sub sp, sp, #16\n mov r1, #0\n mov r2, sp\n ldr r4, [r1], r2\n ldr r3, =h\n ldr r0, =k\n"
            " str r0, [sp, #8]\n str r3, [r1, #8]\n ldr r0, [sp, #8]\n add sp, sp, #16\n bx r0\n"
        ),
        "r13 stack 0 0 0|r14 link 0 0 0",
        f"r1 {UNKNOWN}|r2 {UNKNOWN}",
    ),
    "stores of floating point": (
        "mpc603e",
        (
            "mr 4, 1\n li 3, 0\n stfsux 0, 3, 4\n lis 6, k@ha\n addi 6, 6, k@l\n lis 7, h@ha\n"
            " addi 7, 7, h@l\n stw 6, -8(1)\n stw 7, -8(3)\n lwz 6, -8(1)\n mtctr 6\n bctr\n"
        ),
        "r1 stack 0 0 0|lr link 0 0 0",
        f"r3 {UNKNOWN}|r4 {UNKNOWN}|r6 {UNKNOWN}|ctr {UNKNOWN}",
    ),
}


def check_forged_jump(target, body, places, more):
    """A jump to `k` by an address in the stack, over which another was stored: it goes to `h`, which is longer."""
    ends = ENDS if target != "mpc603e" else {"f": "blr\n", "h": "add 3, 3, 3\n" * 6 + "blr\n", "k": "blr\n"}

    def change(guest, problem, derivations, followed):
        nodes = {"g": ("g", 0, body.count("\n")), "k": ("k", 0, 1)}
        changed = graph_instead(problem, guest, nodes, {"a:jump": ("g", "k")}, ["k"], cycles_each=400)
        said = [*kept_at("g", places=places), *kept_at("k", places=f"{places}|{more}")]
        return changed, derivations, said if followed or problem.unit == "instructions" else []

    found = forged({**ends, "g": body}, change, target)
    assert is_open(found)
    assert found[1]["instructions"] < 15


@pytest.mark.parametrize("name", STORED)
def test_a_stack_address_that_is_stored_by_way_of_itself_is_one_still(name):
    """It was taken for a number: no more was looked at than registers that are no part of an address."""
    check_forged_jump(*STORED[name])


@pytest.mark.parametrize("name", MOVED)
def test_a_base_that_moves_by_a_stack_address_may_be_one(name):
    """It was taken for a number, as it was one before."""
    check_forged_jump(*MOVED[name])


@pytest.mark.parametrize(
    ("before", "store", "is_kept"),
    [
        ("", "str r3, [sp, #0x40]", False),
        ("", "str r3, [sp, #-64]", False),
        ("sub sp, sp, #64", "str r3, [sp, #0x20]", True),
        ("", "str r3, [sp, #-64]!", True),
    ],
)
def test_a_distance_from_the_stack_pointer_may_lead_to_static_memory_but_in_the_frame(before, store, is_kept):
    """No assumption tells where memory lies that is none of the call's own stack: a static word was kept there."""
    body = (
        f"ldr r1, =word\n ldr r0, =k\n str r0, [r1]\n ldr r3, =h\n {before or 'nop'}\n {store}\n ldr r0, [r1]\n bx r0\n"
    )
    body += " .ltorg\n .data\n .balign 4\n word: .word 0\n .text\n"
    nodes = {"g": ("g", 0, 8), "k": ("k", 0, 1)}
    low = 4294967232 if before or "!" in store else 0
    said = kept_at("g") + kept_at("k", places=f"r13 stack {low} 0 0|r14 link 0 0 0")
    assert is_open(forged_graph(body, nodes, {"a:return": ("g", "k")}, ["k"], said)) != is_kept


FAR = """
 sub sp, sp, #16
 str sp, [sp]
 ldr r1, =word
 {first}
 ldr r2, [r1]
 ldr r3, =h
 ldr r0, =k
 str r0, [sp, #8]
 {second}
 ldr r0, [sp, #8]
 add sp, sp, #16
 bx r0
 .ltorg
 .data
 .balign 4
 word: .word 0
 .text
"""


@pytest.mark.parametrize("first", ["ldr r1, [r1]", "nop"])
def test_a_load_that_may_find_a_stack_address_in_the_stack_rests_on_an_assumption(first):
    """By a number that is where the stack is a stack address was loaded, and taken for a number itself."""
    nodes = {"g": ("g", 0, 12), "k": ("k", 0, 1)}
    body = FAR.format(first=first, second="nop")
    ends = {"a:return": ("g", "k")}
    for assumed in (ASSUMED, ASSUMED - {"stack-separation"}):
        is_stack = first != "nop" and assumed != ASSUMED
        more = f"|r1 {UNKNOWN}|r2 {UNKNOWN}" if is_stack else ""
        said = kept_at("g") + kept_at("k", places=f"r13 stack 0 0 0|r14 link 0 0 0{more}")
        assert not is_open(forged_graph(body, nodes, ends, ["k"], said, assumed=assumed))
    if first != "nop":
        said = kept_at("g") + kept_at("k")
        with pytest.raises(VerificationError, match=r"what is said of r\d at k"):
            forged_graph(body, nodes, ends, ["k"], said, assumed=ASSUMED - {"stack-separation"})
        said = kept_at("g") + kept_at("k", places=f"r13 stack 0 0 0|r14 link 0 0 0|r1 {UNKNOWN}|r2 {UNKNOWN}")
        stored = FAR.format(first=first, second="str r3, [r2, #8]")
        assert is_open(forged_graph(stored, nodes, ends, ["k"], said, assumed=ASSUMED - {"stack-separation"}))


BASES = {
    "stored behind another register": ("cortex-m4", "stm r1!, {r0, r1}\n ldr r3, [sp, #4]\n", "r3", False),
    "stored first": ("cortex-m4", "stm r1!, {r1, r2}\n ldr r3, [sp]\n", "r3", True),
    "loaded and written back": ("arm926ej-s", "ldm r1!, {r1, r2}\n", "r1", False),
    "loaded alone": ("cortex-m4", "ldm r1, {r1, r2}\n", "r1", True),
}


@pytest.mark.parametrize("name", BASES)
def test_of_a_base_that_is_written_back_and_transferred_nothing_is_known(name):
    target, lines, register, is_known = BASES[name]
    body = f"sub sp, sp, #16\n mov r1, sp\n mov r0, #1\n mov r2, #2\n str r2, [sp]\n {lines}"
    core = load_target(target)
    guest = guest_of(assembler({"f": f"{body} add sp, sp, #16\n bx lr\n"}, core), core)
    code, state = code_of(guest.image, guest.instructions), State({"r13": Value("stack", 0, 0, 0)})
    address = guest.image.symbols["f"].address
    for _ in range(body.count("\n")):
        found = code.at(address)
        code.isa.execute(Machine(guest.image), found, state)
        address += found.size_bytes
    assert (state.read(register) != ANY) == is_known


def test_arm_changes_the_instruction_set_by_mov_from_armv7_on():
    jump = "ldr r3, =h+1\n mov pc, r3\n"
    nodes = {"g": ("g", 0, 2), "h": ("h", 0, 7)}
    assert is_open(forged_graph(jump, nodes, {"a:return": ("g", "h")}, ["h"], kept_at(*nodes), target="cortex-r5"))


def test_behind_another_machine_state_nothing_is_known():
    """Code may be read the other way round, or be somewhere else."""
    for line, is_harmless in (("mtmsr 3", False), ("mtctr 3", True)):
        core = load_target("mpc603e")
        guest = guest_of(assembler({"f": f"{line}\n blr\n"}, core), core)
        state = State({"r1": Value("stack", 0, 0, 0), "lr": LINK})
        code = code_of(guest.image, guest.instructions)
        code.isa.execute(Machine(guest.image), code.at(guest.image.symbols["f"].address), state)
        assert (state.read("lr") == LINK) == is_harmless


def test_a_conditional_return_to_the_next_instruction_is_charged_as_taken():
    core = load_target("mpc603e")
    guest = guest_of(assembler({"f": "beqlr\n blr\n"}, core), core)
    costs = {one.address: cost for one, cost in zip(guest.instructions, guest.costs, strict=True)}
    first = code_of(guest.image, guest.instructions).at(guest.image.symbols["f"].address)
    following = first.address + 4
    assert edge_cost(first, following, costs, "cycles") == 0
    assert edge_cost(first, following, costs, "cycles", is_gone=True) == costs[first.address].taken_cycles > 0


@pytest.mark.parametrize(("address", "is_kept"), [(0x22000000, False), (0x43FFFFFC, False), (0x24000000, True)])
def test_a_store_to_a_bit_of_another_address_may_change_a_static_word(address, is_kept):
    body = (
        f"ldr r1, =word\n ldr r0, =k\n str r0, [r1]\n mov r3, #1\n ldr r2, ={address}\n str r3, [r2]\n ldr r0, [r1]\n"
    )
    body += " bx r0\n .ltorg\n .data\n .balign 4\n word: .word 0\n .text\n"
    nodes = {"g": ("g", 0, 8), "k": ("k", 0, 1)}
    said = kept_at("g", "k")
    assert is_open(forged_graph(body, nodes, {"a:return": ("g", "k")}, ["k"], said)) != is_kept


@pytest.mark.parametrize(("address", "is_refused"), [(0xE000EF5C, True), (0xE000ED14, True), (0xE000E010, False)])
def test_a_store_that_manages_the_caches_is_refused(address, is_refused):
    nodes = {"g": ("g", 0, 3)}
    body = f"ldr r2, ={address}\n str r0, [r2]\n bx lr\n"
    with pytest.raises(VerificationError, match="may change the caches") if is_refused else nullcontext():
        forged_graph(body, nodes, {}, ["g"], kept_at("g"), target="cortex-m7")


def test_a_line_that_is_written_as_a_whole_may_hold_the_return_address():
    """dcbz at the stack pointer clears the word of the link register, if that is in its line."""
    state, machine = (
        State({"r1": Value("stack", -32, -32, 0)}),
        SparingMachine(SimpleNamespace(segments=()), escapes=True),
    )
    machine.store(Value("stack", -63, -32, 1), 32, TOP, None, state)
    assert -4 not in _moved({-4, "r31"}, state)
    assert 4 in _moved({4, "r31"}, state)
