"""Names of what may be a stack address: what facts are believed of, what a store through one leaves, its class."""

import random
import re
from dataclasses import replace

import pytest

from tests import random_programs
from tests.certificate.caches.test_caches import edited, rewritten
from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.certificate.machines.test_transfer import around, steps_of
from tests.certificate.specimens import specimen
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.coverage import Code, Coverage, Said, cover
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.names.names import Claim, Names, PointerFact, Pointers
from wcet_probe.certificate.names.symbols import Tracer, speaking
from wcet_probe.certificate.values.congruences import BELIEVED, Congruence, either
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, constant
from wcet_probe.certificate.values.numbers import number as range_of
from wcet_probe.certificate.values.state import State
from wcet_probe.errors import VerificationError
from wcet_probe.model.instruction import Control
from wcet_probe.model.target import Isa

NODE, ARRAY = "f", ("avl-best-fit", "cortex-m4", "malloc")
"""Of the allocator, what is loaded from an array on the stack may be a stack address for all that the checker knows."""
EIGHT = Congruence(8, 0)


def traced(body, core="cortex-m7", *, of_r0=ANY):
    """One execution of ``body``, where r0 may be a stack address, and facts say that pointers are multiples of 8."""
    target = load_target(core)
    on = guest_of(assembler({"f": body}, target), target)
    code = Code(on.image, {one.address: one for one in on.instructions})
    graph = Graph("f", {NODE: (on.address("f") & ~1, 0)}, NODE, (), {NODE: 0}, {NODE: []}, {})
    pointer = "r1" if core == "mpc603e" else "r13"
    entry = dict(code.isa.entry_state().values)
    coverage = cover(code, graph, Said({NODE: entry}), {})
    assert isinstance(coverage, Coverage)
    registers = {0: "r3", 1: "r4"} if core == "mpc603e" else {0: "r0", 1: "r1"}
    known = {**entry, registers[0]: of_r0, registers[1]: TOP, pointer: entry[pointer]}
    homes = {f"s{number}": ("at", NODE, Congruence(1, 0)) for number in registers}
    claims = {register: Claim(f"s{number}", 0) for number, register in registers.items()}
    pointers = speaking(Pointers((PointerFact((), (8,)),)), code, graph, {NODE: known}, coverage)
    tracer = Tracer(code, graph, {NODE: known}, coverage, Names({NODE: claims}, homes, pointers))
    return tracer, tracer.trace(NODE)


def last_address(found):
    return next(words[-1] for _, accesses in reversed(found.executed) for words in accesses)


CLASSES = {
    "a word that is loaded": ("ldr r2, [r0]\n ldr r3, [r2]\n bx lr", EIGHT),
    "a word that may not be loaded": (
        "add r2, sp, #4\n cmp r1, #0\n it ne\n ldrne r2, [r0]\n ldr r3, [r2]\n bx lr",
        Congruence(1, 0),
    ),
    "what is computed of one": ("eor r2, r0, r1\n ldr r3, [r2]\n bx lr", Congruence(1, 0)),
    "one of two that are loaded": (
        "ldr r2, [r0]\n ldr r4, [r0, #4]\n cmp r1, #0\n it ne\n movne r2, r4\n ldr r3, [r2]\n bx lr",
        EIGHT,
    ),
    "one that is loaded, or a stack address": (
        "ldr r2, [r0]\n add r4, sp, #4\n cmp r1, #0\n it ne\n movne r2, r4\n ldr r3, [r2]\n bx lr",
        Congruence(4, 0),
    ),
    "one that is loaded, or what nobody knows": (
        "ldr r2, [r0]\n cmp r1, #0\n it ne\n movne r2, r0\n ldr r3, [r2]\n bx lr",
        Congruence(1, 0),
    ),
    "one that may be stepped on by 4": (
        "str sp, [sp, #-8]\n ldr r2, [r0]\n cmp r1, #0\n it ne\n strne r1, [r2], #4\n ldr r3, [r2]\n bx lr",
        Congruence(4, 0),
    ),
    "a word of an array on the stack": ("add r4, sp, #4\n ldr r3, [r4, r1, lsl #2]\n bx lr", Congruence(4, 0)),
    "a halfword of one": ("add r4, sp, #4\n ldr r3, [r4, r1, lsl #1]\n bx lr", Congruence(2, 0)),
}


@pytest.mark.parametrize("case", CLASSES)
def test_what_facts_are_believed_of(case):
    body, wanted = CLASSES[case]
    assert last_address(traced(body)[1]).alignment == wanted


def test_places_are_where_the_invariants_tell_whatever_their_symbols_are_said_to_be_multiples_of():
    """Facts say of a symbol what the code that accesses it believes; here no code does."""
    tracer, _ = traced("bx lr", of_r0=range_of(0x20000044, 0x2000007C, 8))
    tracer.names = replace(
        tracer.names,
        claims={NODE: {"r0": Claim("s0", 12), "r1": Claim("s1", 0)}},
        homes={symbol: (*home[:2], BELIEVED) for symbol, home in tracer.names.homes.items()},
    )
    (address,) = tracer.placed(NODE)
    assert (address.number, address.name) == (range_of(0x20000044, 0x2000007C, 8), Value("@s0", 12, 12, 0))
    assert (address.alignment, address.of_base) == (Congruence(8, 4), Congruence(8, 0))


@pytest.mark.parametrize("value", [ANY, TOP, Value("any", 0, 8, 8), range_of(0, 1 << 31)])
def test_nothing_is_placed_that_is_no_number_or_may_be_anywhere(value):
    assert traced("bx lr", of_r0=value)[0].placed(NODE) == ()


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("ldr r2, [r0]\n lsl r1, r1, #2\n str r3, [r2], r1\n ldr r3, [r2]\n bx lr", 4),
        ("ldr r2, [r0]\n lsl r1, r1, #2\n str r3, [r2, -r1]!\n ldr r3, [r2]\n bx lr", 4),
        ("ldr r2, [r0]\n str r3, [r2], r1, lsl #1\n ldr r3, [r2]\n bx lr", 2),
        ("ldr r2, [r0]\n str r3, [r2], r1\n ldr r3, [r2]\n bx lr", 1),
        ("ldr r2, [r0]\n str r3, [r2, r1]\n ldr r3, [r2]\n bx lr", 8),
    ],
)
def test_an_address_that_a_register_moves_has_the_class_of_both(body, wanted):
    assert last_address(traced(body, "arm926ej-s")[1]).alignment == Congruence(wanted, 0)


def test_an_address_that_a_register_of_powerpc_moves_has_the_class_of_both():
    body = "slwi 5, 4, 2\n addi 6, 1, 12\n lwzux 7, 5, 6\n lwz 8, 0(5)\n blr"
    tracer, found = traced(body, "mpc603e")
    assert last_address(found).alignment == Congruence(4, 0)
    assert tracer.rests_on_stack


def test_an_access_to_one_of_some_places_of_the_stack_rests_on_its_alignment():
    """It has no name, and was taken to be in one line by the alignment that nobody assumed."""
    target = load_target("arm926ej-s")
    body = "sub sp, sp, #64\n mov r3, sp\n cmp r1, #0\n addne r3, sp, #4\n ldr r0, [r3]\n add sp, sp, #64\n bx lr"
    document, binary = document_of(guest_of(assembler({"f": body}, target), target))
    assert {one.verdict for one in check_bound(sealed(document), binary).findings} == {"ok"}
    bound = document["bound"]
    bound["assumptions"] = [one for one in bound["assumptions"] if one["id"] != "stack-alignment"]
    with pytest.raises(VerificationError, match="stack-alignment is used and not listed"):
        check_bound(sealed(document), binary)


@pytest.mark.parametrize(("of_r0", "is_kept"), [(TOP, True), (ANY, False)])
def test_a_store_through_a_name_that_may_be_a_stack_address_hits_the_stack(of_r0, is_kept):
    body = "sub sp, #8\n str r1, [sp]\n str r2, [r0]\n ldr r3, [sp]\n ldr r4, [r3]\n add sp, #8\n bx lr"
    found = traced(body, of_r0=of_r0)[1]
    assert (last_address(found).name.base == "@s1") is is_kept


def test_what_is_said_of_both_ways_is_of_each():
    assert either(EIGHT, Congruence(8, 4)) == Congruence(4, 0)
    assert either(Congruence(32, 20), Congruence(16, 4)) == Congruence(16, 4)
    assert either(Congruence(16, 5), EIGHT) == Congruence(1, 0)
    assert either(BELIEVED, EIGHT) == EIGHT
    assert either(BELIEVED, BELIEVED) == BELIEVED


# -------------------------------------------------------------------------------------------------------- forgeries


def test_the_bound_is_checked_in_full():
    document, binary = specimen(*ARRAY)
    assert [one for one in check_bound(document, binary).findings if one.verdict != "ok"] == []


def test_that_the_stack_is_aligned_must_be_listed():
    document, binary = specimen(*ARRAY)
    listed = [one for one in document["bound"]["assumptions"] if one["id"] != "stack-alignment"]
    forged = sealed({**document, "bound": {**document["bound"], "assumptions": listed}})
    with pytest.raises(VerificationError, match="stack-alignment is used and not listed"):
        check_bound(forged, binary)


@pytest.mark.parametrize("residue", ["8 0", "8 4", "4 2"])
def test_a_class_that_a_stack_address_is_not_of_is_refused(residue):
    """The place in the array on the stack is a multiple of 4: the array's first word is one of 8."""
    document, binary = specimen(*ARRAY)
    begun = edited(r"^(symbol \S+ at \S+/take\+0x2c) 4 0$", rf"\1 {residue}")
    with pytest.raises(VerificationError, match=f"not known to be {residue[2]} modulo {residue[0]}"):
        check_bound(rewritten(document, begun), binary)


def test_a_distance_from_the_stack_pointer_has_no_name():
    document, binary = specimen(*ARRAY)
    values, names = document["bound"]["certificates"]
    node = re.search(r"^invariant (\S+/take\S*) r13 stack", values, re.MULTILINE)[1]
    symbol = re.search("^symbol (\\S+)", names, re.MULTILINE)[1]
    forged = rewritten(document, lambda lines: [*lines[:-1], f"name {node} r13 {symbol} 0", lines[-1]])
    with pytest.raises(VerificationError, match=f"r13 at {re.escape(node)} cannot have a name"):
        check_bound(forged, binary)


def test_without_facts_about_pointers_nothing_is_believed():
    document, binary = specimen(*ARRAY)
    facts = tuple(one for one in binary.asserted.facts if one.kind != "pointer")
    with pytest.raises(VerificationError, match="is not known to be 0 modulo"):
        check_bound(document, replace(binary, asserted=replace(binary.asserted, facts=facts)))


# ----------------------------------------------------------------------------------------------------------- words


def words_of(tracer, value, known):
    """The word that a name means: of its symbols, or as it was when it was first met."""
    base = value.base.removeprefix("@")
    for part, times in (form := tracer.terms.linear.get(base, {base: 1})).items():
        if part not in known and len(form) == 1 and times == 1:
            return None, part
    if not form.keys() <= known.keys():
        return None, None
    return sum(times * known[part] for part, times in form.items()) % WORD, None


def block_at(code, steps, index):
    """The instructions of a run from a step on, up to one behind which it goes elsewhere."""
    block = []
    while index + 1 < len(steps) and steps[index][0] in code and len(block) < 24:
        block.append(code[steps[index][0]])
        index += 1
        if block[-1].control is not Control.NEXT or steps[index][0] != block[-1].address + block[-1].size_bytes:
            break
    return tuple(block)


def started(on, steps, index, draw):
    """A node that begins at a step of a run, whose registers are known around what they held; and words of symbols."""
    isa = powerpc if on.target.isa is Isa.POWERPC else arm
    code = {one.address: one for one in on.instructions}
    address, registers = steps[index]
    invariants = {register: around(draw, word) for register, word in registers.items()}
    offset = (registers[isa.SP] - steps[0][1][isa.SP] + WORD // 2) % WORD - WORD // 2
    invariants[isa.SP] = Value("stack", offset, offset, 0)
    claims = {
        register: Claim(f"s{number}", draw.choice((0, 0, 4)))
        for number, register in enumerate(registers)
        if invariants[register].is_plain and draw.random() < 0.7
    }
    homes = {claim.symbol: ("at", NODE, Congruence(1, 0)) for claim in claims.values()}
    words = {claim.symbol: (registers[register] - claim.offset) % WORD for register, claim in claims.items()}
    graph = Graph("f", {NODE: (address, 0)}, NODE, (), {NODE: 0}, {NODE: []}, {})
    coverage = Coverage({NODE: block_at(code, steps, index)}, escapes=True)
    names = Names({NODE: claims}, homes, Pointers())
    return Tracer(Code(on.image, code), graph, {NODE: invariants}, coverage, names), words


def check_block(on, steps, index, draw):
    """Names and classes of the addresses of a block are those of the run; how many names were told before."""
    tracer, known = started(on, steps, index, draw)
    machine, checked = Machine(on.image, escapes=True), 0
    for number, (instruction, accesses) in enumerate(tracer.trace(NODE).executed):
        concrete = State({register: constant(word) for register, word in steps[index + number][1].items()})
        for access, addresses in zip(instruction.accesses, accesses, strict=True):
            for each, (_, name, (modulus, residue), *_) in enumerate(addresses):
                word = machine.address_of(access, concrete, each).low
                assert word % modulus == residue % modulus, instruction.text
                if name.base.startswith("@") and name.is_constant:
                    expected, fresh = words_of(tracer, name, known)
                    if fresh is not None:
                        known[fresh] = (word - name.low) % WORD
                    checked += expected is not None
                    assert expected is None or (expected + name.low) % WORD == word, instruction.text
    return checked


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_names_and_classes_of_addresses_are_those_of_runs(seed, target):
    on, draw = guest_of(random_programs.source(seed, 12), load_target(target), ".c"), random.Random(seed)
    checked = 0
    for function in range(12):
        with on.machine() as running:
            memory = running.memory.snapshot()
            registers = running.entry_registers(random_programs.arguments(draw))
        steps = steps_of(on, f"f{function}", memory, registers)
        checked += sum(check_block(on, steps, draw.randrange(len(steps) - 1), draw) for _ in range(60))
    assert checked > 100
