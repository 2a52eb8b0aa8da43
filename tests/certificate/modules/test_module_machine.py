"""Random instructions on words of which it is known how they were made: what the checker says of them covers them.

Each instruction is executed by the engine, three times where it is on registers alone: the arena's start and that of
static data are moved by themselves, so that it shows how often each is in a result. What is computed otherwise than by
sums is a number by the rules, whatever it looks like.

Tests: certificate.modules.module_machine, certificate.modules.instruction_kinds.
"""

import random
import re

import pytest

from tests.analyzer.pcode.test_encodings import (
    ALIASES,
    CODE,
    DATA,
    DATA_BYTES,
    EACH,
    Engine,
    plain_instructions,
    random_code,
)
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.modules.module import cell_of
from wcet_probe.certificate.modules.module_machine import Accessed, ModuleMachine
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.kinds import (
    ANYTHING,
    ARENA,
    MIXED,
    NULL,
    NUMBER,
    STATIC,
    TABLE,
    UNKNOWN,
    Part,
    text_of,
    word,
)
from wcet_probe.certificate.values.numbers import TOP, WORD, number
from wcet_probe.certificate.values.residues import ALL, MODULUS, of_class, residue
from wcet_probe.certificate.values.state import State
from wcet_probe.model.image import Image, LineTable, Segment
from wcet_probe.model.target import Isa

STATIC_BYTES = 0x1000
ARENA_START = DATA + 0x2000
BLOCK = ARENA_START + 0x800
MOVES = (0x00A5_3C40, 0), (0, 0x0123_4580)
"""By how much the arena and static data are moved: multiples of the modulus."""
NO_SUM = re.compile(
    "(and|orr|orn|or|eor|xor|eqv|bic|nand|nor|lsl|lsr|asr|ror|rrx|slw|srw|sraw|rlw|rotl|clr|slwi|srwi|mul|mvn|not|"
    "u?s?xt[bh]|ext[sbh]|[su]bfx|bf[ic]|clz|cntlz|rev|rbit|crnot|[su]div|div|[su]sat)"
)
"""What works otherwise than by sums: it leaves a number by the rules."""
SHIFTED = re.compile(r"(\w+), (?:lsl|lsr|asr|ror|rrx)\b")
"""An address that is shifted is a number by the rules, whatever it is added to."""
PLAIN = {(0, 0), (1, 0), (0, 1)}
TRIALS = 3
POINTERS = {Isa.POWERPC: {"r1"}, Isa.ARM: {"r13", "r15"}, Isa.THUMB: {"r13", "r15"}}
"""Of the stack and the program; instructions with them are left out."""


def made(choose, *, in_memory=False):
    """A word: its value, how often the arena's start and static data are in it, and what is told of it."""
    kind = choose.choice((ARENA, ARENA, ARENA, STATIC, NUMBER, NUMBER, NULL, *(() if in_memory else ("given",))))
    distance = choose.randrange(0x400) * choose.choice((1, 4, 4, 8))
    value, times = {
        ARENA: (ARENA_START + distance % 0x1000, (1, 0)),
        "given": (BLOCK + distance % 96 - 48, (1, 0)),
        STATIC: (DATA + distance % STATIC_BYTES, (0, 1)),
        NUMBER: (
            choose.choice((choose.getrandbits(5), choose.getrandbits(16), choose.getrandbits(32))) | 1 << 8,
            (0, 0),
        ),
        NULL: (0, (0, 0)),
    }[kind]
    if kind == NUMBER and DATA - (1 << 20) < value < DATA + (1 << 20):
        value ^= 1 << 30
    modulus = 1 << choose.randint(0, 6)
    told = of_class(Congruence(modulus, value % modulus)) if kind != NULL else residue(0)
    name = f"given{value - BLOCK:+d}" if kind == "given" else kind
    part = Part(name, kind not in {NULL, "given"} and choose.random() < 0.5, told)
    if kind == STATIC and not part.is_loaded and choose.random() < 0.5:
        part = part._replace(reach=(value - choose.randrange(64), value + choose.randrange(64)))
    more = (Part(NUMBER, True, residue(choose.getrandbits(6))),) if choose.random() < 0.2 else ()
    return value, times, word((part, *more))


def is_of(part, value, times):
    if part.kind == UNKNOWN:
        return True
    if not part.value >> value % MODULUS & 1 or (part.kind == NULL and value):
        return False
    if part.reach is not None and not part.reach[0] <= value <= part.reach[1]:
        return False
    if part.kind == MIXED:  # a list's head less something is none, too: a lemma
        return times not in PLAIN or (part.is_loaded and times == (0, 1))
    if part.kind.startswith("given") and value != BLOCK + int(part.kind.removeprefix("given")):
        return False
    is_number = part.is_number or part.may_be_number
    return {(0, 0): is_number, (1, 0): part.is_arena, (0, 1): part.kind in {STATIC, TABLE}}.get(times, False)


def covers(parts, value, times, *, is_sum=True):
    """Whether the word is among ``parts``: with how it was made, or, if that is by no sum, as a number."""
    if times is not None and None in times:  # a number that was made of an address is in it
        return any(part.value >> value % MODULUS & 1 for part in parts)
    is_number = not is_sum and any(part.is_number and part.value >> value % MODULUS & 1 for part in parts)
    return is_number or any(is_of(part, value, times) for part in parts)


def times_in(results):
    """How often the arena and static data are in a word, by what it became when each was moved; None: otherwise."""
    base, *moved = results
    found = []
    for value, by in zip(moved, MOVES, strict=True):
        times = [one for one in (0, 1, -1, 2, -2) if (value - base - one * sum(by)) % WORD == 0]
        found.append(times[0] if times else None)
    return tuple(found)


class World:
    """Memory of static data and of the arena, what its cells tell, and an image with static data."""

    def __init__(self, target, codes, choose):
        self.target, self.choose = target, choose
        code = b"".join(one.ljust(EACH, b"\0") for one in codes)
        segments = (
            Segment(CODE, code, len(code), writable=False, executable=True),
            Segment(DATA, b"", STATIC_BYTES, writable=True, executable=False),
        )
        is_big = target.isa is Isa.POWERPC
        lines = LineTable((), (), ())
        self.image = Image(b"", "0" * 64, target.isa, is_big, segments, {}, (), (), lines, "", ())
        self.order = "big" if is_big else "little"
        names = [f"arena:{place}" for place in range(0, MODULUS, 4)]
        names += ["static", *(f"static:{DATA + 4 * place:#x}" for place in choose.sample(range(1024), 100))]
        content = {name: [made(choose, in_memory=True) for _ in range(3)] for name in names}
        self.cells = {name: word(part for *_, parts in own for part in parts) for name, own in content.items()}
        self.times, words = {}, []
        for address in range(DATA, DATA + DATA_BYTES, 4):
            value, times, _ = choose.choice(content[self.cell(address)])
            self.times[value] = times
            words.append(value.to_bytes(4, self.order))
        self.data = b"".join(words)
        self.made = [made(choose) for _ in range(500)]

    def cell(self, address):
        return f"arena:{address % MODULUS // 4 * 4}" if address >= DATA + STATIC_BYTES else cell_of(self.cells, address)

    def changed(self, data):
        """Words that are not those of the beginning, by address."""
        for first in range(0, DATA_BYTES, 256):
            if data[first : first + 256] != self.data[first : first + 256]:
                for at in range(first, first + 256, 4):
                    if data[at : at + 4] != self.data[at : at + 4]:
                        yield DATA + at, int.from_bytes(data[at : at + 4], self.order)


def places_of(instruction, registers):
    """Of each word that is accessed its address and how that is made; None where it is made of two addresses."""
    found = {}
    for number_of, access in enumerate(instruction.accesses):
        for each in range(access.count):
            address, times = access.displacement + each * access.bytes_each, (0, 0)
            for part, is_index in ((access.base, False), (access.index, True)):
                if part is None:
                    continue
                value, own, _ = registers[part]
                if is_index and own != (0, 0) and (access.shift.value != "lsl" or access.shift_bits):
                    return None
                if is_index and access.shift.value != "lsl":
                    return None
                sign = -1 if is_index and access.subtract_index else 1
                address += sign * (value << access.shift_bits * is_index)
                times = tuple(a + sign * b for a, b in zip(times, own, strict=True))
            found[Accessed(instruction.address, number_of, each)] = address % WORD, times
    return found


def is_followed(places, instruction, registers):
    """Each address is in what it was made of, by *objects-apart*, and behind a list's head if it is made of one."""
    for access in instruction.accesses:
        own = [registers[one] for one in (access.base, access.index) if one]
        is_head = any(part.is_loaded and part.kind == STATIC for _, _, parts in own for part in parts)
        if is_head and (access.index or access.displacement < 0):
            return False
    size = max(access.bytes_each for access in instruction.accesses)
    return all(
        (times == (1, 0) and ARENA_START <= address <= DATA + DATA_BYTES - size)
        or (times == (0, 1) and DATA <= address <= DATA + STATIC_BYTES - size)
        for address, times in places.values()
    )


def state_of(registers, choose):
    """What is known of ``registers``: of some numbers the value, or a range."""
    state = State({}, {}, {}, {name: parts for name, (_, _, parts) in registers.items()})
    for name, (value, times, parts) in registers.items():
        is_number = times == (0, 0) and all(part.is_number for part in parts)
        low = max(0, value - choose.choice((0, 0, 8, 100)))
        state.values[name] = number(low, value) if is_number and choose.random() < 0.5 else TOP
    return state


def executed(engine, instruction, registers, data, choose):
    """Registers behind an instruction, and with the arena and static data moved, and memory; None: an exception."""
    flags = choose.getrandbits(35) & (~0 if engine.isa is Isa.POWERPC else 0xF0000000)
    results, memory = [], data
    for by in ((0, 0), *(MOVES if not instruction.accesses else ())):
        own = {
            name: (value + sum(t * b for t, b in zip(times, by, strict=True))) % WORD
            for name, (value, times, _) in registers.items()
        }
        found = engine.run(instruction, own, flags, data)
        if found is None:
            return None
        results.append(found[0])
        memory = found[2]
    return results, memory


def check(world, engine, instruction, choose):
    """Execute ``instruction`` once, from a random state; whether there was anything to compare."""
    isa = powerpc if world.target.isa is Isa.POWERPC else arm
    registers = {name: choose.choice(world.made) for name in engine.registers}
    places = places_of(instruction, registers)
    if places is None or (places and not is_followed(places, instruction, registers)):
        return False
    found = executed(engine, instruction, registers, world.data, choose)
    if found is None:
        return False
    stored, (results, data) = {}, found
    machine = ModuleMachine(world.image, world.cells, lambda cell, parts, _: stored.setdefault(cell, []).append(parts))
    states = [one.state for one in isa.outcomes_of(machine, instruction, state_of(registers, choose))]
    read = {name: (hex(v), text_of(p)) for name, (v, _, p) in registers.items() if name in instruction.reads}
    told = instruction.text, read
    made_of = {
        name: (results[0][name], times_behind(world, instruction, name, registers, [one[name] for one in results]))
        for name in engine.registers.keys() - POINTERS[world.target.isa]
    }
    is_sum = not NO_SUM.match(instruction.text)

    def left(state):
        """Registers of which ``state`` does not tell the word."""
        return [
            (name, hex(value), times, text_of(machine.word_in(state, name)))
            for name, (value, times) in made_of.items()
            if not covers(machine.word_in(state, name), value, times, is_sum=is_sum or name not in instruction.writes)
        ]

    assert not all(map(left, states)), (told, *map(left, states))
    for key, (address, _) in places.items():
        assert machine.aligned[key] >> address % MODULUS & 1, (told, hex(address))
    if not machine.unknown:
        check_stores(world, data, stored, registers, told)
    return True


def times_behind(world, instruction, name, registers, results):
    """How what a register holds behind an instruction was made, which is ``results``."""
    value, *moved = results
    if moved:
        shifted = SHIFTED.search(instruction.text)
        is_shifted = shifted and registers[ALIASES.get(shifted[1], shifted[1])][1] != (0, 0)
        return (None, None) if is_shifted else times_in(results)
    if registers[name][0] == value:
        return registers[name][1]
    if name in instruction.loaded:
        return world.times.get(value, (0, 0))
    if name in instruction.writes and name in {access.base for access in instruction.accesses}:
        if re.search(r"\], -?[a-z]", instruction.text):  # moved by another register
            return None, None
        own = [registers[one] for access in instruction.accesses for one in (access.base, access.index) if one]
        return tuple(map(sum, zip(*(times for _, times, _ in own), strict=True)))
    return (0, 0)


def check_stores(world, data, stored, registers, told):
    """Each word that was changed is told of its cell."""
    made_of = {value: times for value, times, _ in registers.values()}
    for address, value in world.changed(data):
        parts = stored.get(world.cell(address), ())
        is_told = any(one == ANYTHING or covers(one, value, made_of.get(value)) for one in parts)
        assert is_told, (told, hex(address), hex(value), [text_of(one) for one in parts])


@pytest.mark.covering(0)
@pytest.mark.parametrize("codes", [300, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("core", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_what_is_told_of_an_instruction_covers_what_the_engine_does(core, codes):
    target, choose = load_target(core), random.Random(f"kinds {core} {codes}")
    encodings = [random_code(target.isa, choose) for _ in range(codes)]
    engine, world = Engine(target, encodings), World(target, encodings, choose)
    compared = accesses = 0
    for _, instruction in plain_instructions(target, encodings):
        if (instruction.reads | instruction.writes | instruction.loaded) & POINTERS[target.isa]:
            continue
        for _ in range(TRIALS * (8 if instruction.accesses else 1)):
            done = check(world, engine, instruction, choose)
            compared += done
            accesses += done and bool(instruction.accesses)
    assert compared > codes / 2
    assert accesses > codes / 20


@pytest.mark.parametrize("first", ["tst r1, #1", "ands r3, r1, #1", "tst r1, r2", "cmp r1, #0", "movs r3, r1"])
@pytest.mark.parametrize("core", ["cortex-m4", "arm926ej-s"])
def test_a_test_that_is_skipped_tells_nothing_of_the_word(core, first):
    """Where the first test finds 0, the second is skipped, and the branch is taken whatever the pointer is."""
    target, words = load_target(core), {"r0": (Part(ARENA, True, ALL),), "r1": (Part(NUMBER, True, ALL),)}
    guest = guest_of(assembler({"f": f"{first}\n it ne\n tstne r0, #7\n beq 1f\n nop\n 1: bx lr\n"}, target), target)
    machine, states = ModuleMachine(guest.image, {}, lambda *_: None), [State({"r0": TOP, "r1": TOP}, kinds=words)]
    for instruction in guest.instructions:
        ways = [way for state in states for way in arm.outcomes_of(machine, instruction, state)]
        states = [way.state for way in ways]
        for state in states:
            machine.learn(state)
        if instruction.text.startswith("beq"):
            break
    taken = [way.state.kinds["r0"] for way in ways if way.way == "jump"]
    assert [text_of(one) for one in taken if one == words["r0"]], "it was skipped"
    assert [part.value for one in taken for part in one if one != words["r0"]] == [of_class(Congruence(8, 0))]
