"""Execution on constants against the interpreter: what is known is what a run has, and control goes one of its ways."""

import random
from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import ARM, POWERPC, THUMB, analysed, lifter_of, small_guest
from tests.analyzer.values.symbolic.test_terms import CORNERS
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.values.execution.call_effects import (
    CallKey,
    Effect,
    Result,
    Summarised,
    Written,
    WrittenThrough,
)
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution, Constants
from wcet_probe.analyzer.values.execution.known_bytes import load, pages_of, store
from wcet_probe.analyzer.values.execution.needed_operations import flag_bytes
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

STACK, POINTER, DATA = 0x30000000, 0x30000080, 0x20000000
STORE = ".pushsection .data\n.globl place\n.type place, %object\nplace: .word 1, 2, 3, 4\n.popsection\n"
BODIES = {
    "thumb": "push {r4, r5}\nadds r3, r0, r1\nmul r4, r3, r2\nstr r4, [sp, #4]\ncmp r0, r1\nite lo\nmovlo r5, r0\n"
    "movhs r5, #7\nldr r1, [sp, #4]\nand r2, r5, #3\nstrb r2, [sp]\nubfx r3, r1, #4, #8\nsxtb r0, r5\npop {r4, r5}\n"
    "tst r2, #1\nbne 1f\nmovs r0, #3\n1: bx lr",
    "arm": "ldr r3, 2f\nstr r0, [r3]\nstr r1, [sp, #-8]!\nldr r2, [r3]\nadds r2, r2, r1, lsl #3\nmovcs r4, #1\n"
    "movcc r4, r2\nstrb r4, [sp, #1]\nldr r5, [sp]\nldr r1, [sp, #4]\nadd sp, sp, #8\ncmp r4, r0\nbgt 1f\nmov r0, #3\n"
    f"1: bx lr\n2: .word place\n{STORE}",
    "powerpc": "stwu 1, -16(1)\nadd 6, 3, 4\nrlwinm 7, 6, 3, 8, 20\nstw 7, 8(1)\nli 8, 5\nsubf 9, 3, 8\n"
    "stb 9, 9(1)\nlwz 10, 8(1)\nsrawi 5, 10, 2\naddi 1, 1, 16\ncmplw 5, 3\nbgt 1f\nli 3, 3\n1: blr",
}
TARGETS = {"thumb": THUMB, "arm": ARM, "powerpc": POWERPC}


def block_of(name):
    """The instructions up to the branch, where that goes, and where control goes on behind it."""
    guest = small_guest(BODIES[name], TARGETS[name])
    lifter, instructions = lifter_of(guest), []
    behind = guest.address("f")
    while True:
        instructions.append(lifter.lift(behind))
        behind += instructions[-1].size_bytes
        for op in instructions[-1].ops:
            if op.opcode == "CBRANCH" and (op.inputs[0].space, op.inputs[0].offset) != ("ram", behind):
                return guest, lifter, instructions, {op.inputs[0].offset, behind}


def location(varnode):
    return Location("register", varnode.offset, varnode.size_bytes)


def number(draw):
    return draw.choice((draw.choice(CORNERS), draw.randrange(9), draw.getrandbits(32)))


@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("name", BODIES)
def test_what_is_known_behind_a_block_is_what_a_run_has(name, part):
    guest, lifter, instructions, ends = block_of(name)
    general = range(3, 11) if name == "powerpc" else range(6)
    pointer = "r1" if name == "powerpc" else "r13"
    execution = ConstantExecution(Memory(guest.image), lifter)
    draw, known, both = random.Random(f"constants {name} {part}"), 0, 0
    for _ in range(25):
        regions = {one.address: bytearray(one.data) for one in guest.image.segments}
        machine = _Machine(lifter, regions | {STACK: bytearray(256)})
        state = Constants({location(lifter.registers[pointer]): (0,)}, {})
        machine.write_register(pointer, POINTER)
        for register in general:
            value = number(draw)
            machine.write_register(f"r{register}", value)
            if draw.random() < 0.7:
                state.registers[location(lifter.registers[f"r{register}"])] = value
        for one in instructions:
            machine.pc = one.address
            machine.compile(one)()
        ways = execution.block(instructions, state, ())
        taken = [way for way in ways if way.address == machine.next_pc]
        assert len(taken) == 1
        assert {way.address for way in ways} <= ends
        both += len(ways) == 2
        left = taken[0].state
        for at, value in left.registers.items():
            if at.space != "register":
                continue
            held = machine._reader(at)()
            check_value(value, held, at)
            known += 1
        for (space, offset), (size, value) in left.memory.items():
            address = offset + (POINTER if space == "stack" else 0)
            region, place = machine._locate(address, size, is_store=False)
            check_value(value, int.from_bytes(region[place : place + size], machine._order), offset)
            known += 1
    assert known > 60
    assert both  # a condition that is not known lets control go both ways


def check_value(value, held, at):
    if isinstance(value, tuple) and len(value) == 2:
        assert held & value[0] == value[1], at
    elif isinstance(value, tuple):
        assert (held - POINTER - value[0]) % (1 << 32) == 0, at
    else:
        assert held == value, at


REGISTERS = tuple(Location("register", 32 + 4 * place, 4) for place in range(3))


def execution():
    guest = small_guest("bx lr")
    return ConstantExecution(Memory(guest.image), lifter_of(guest))


def test_what_all_states_know_is_known():
    terms, states = Terms(), []
    for value in (4, 4):
        state = State(terms, big_endian=False)
        state.set_location(REGISTERS[0], terms.constant(7, 32))
        state.set_location(REGISTERS[1], terms.constant(value + len(states), 32))
        state.set_location(REGISTERS[2], state.define((1, 0, 0), 32, base=Base.ANY))
        state.set_location(Location("stack", -8, 4), terms.constant(9, 32))
        states.append(state)
    pointer = terms.symbol(("stack pointer",), 32)
    for state in states:
        state.set_base(pointer, Base.STACK)
        state.set_known(pointer, strided.constant(32, 0))
        state.set_location(REGISTERS[2], terms.apply("INT_ADD", (pointer, terms.constant(-8, 32)), 32))
    found = execution().at(states)
    assert found == Constants({REGISTERS[0]: 7, REGISTERS[2]: (-8,)}, {("stack", -8): (4, 9)})
    assert execution().at([]) == Constants({}, {})


NO_CALL = Summarised(CallKey(0x8000, frozenset(), escapes=False, is_aligned=True, below=frozenset()), (), ())


def memory_of(*cells):
    return {(space, offset): (4, offset) for space, offset in cells}


@pytest.mark.parametrize(
    ("written", "lost"),
    [
        (Written(Base.STACK, -24, -21), {("stack", -24)}),
        (Written(Base.STACK, -25, -24), {("stack", -28), ("stack", -24)}),
        (Written(Base.STACK, -(1 << 31), (1 << 31) - 1), {("stack", -28), ("stack", -24), ("stack", -4)}),
        (Written(Base.NUMBER, 0x1002, 0x1002), {("static", 0x1000)}),
        (Written(Base.ANY, -(1 << 31), (1 << 31) - 1), None),
        (WrittenThrough(REGISTERS[0], 0, 3), None),
    ],
)
def test_behind_a_call_is_lost_what_it_may_write(written, lost):
    cells = memory_of(("stack", -28), ("stack", -24), ("stack", -4), ("static", 0x1000), ("static", 0x1004))
    state = Constants({REGISTERS[0]: 1, REGISTERS[1]: 2, REGISTERS[2]: 3}, dict(cells))
    results = (
        Result(REGISTERS[0], Base.NUMBER, strided.constant(32, 9)),
        Result(REGISTERS[1], Base.ANY, strided.top(32)),
    )
    is_through = isinstance(written, WrittenThrough)
    call = NO_CALL._replace(**{"through" if is_through else "written": (written,)})
    execution().after_call(state, Effect(results, (), escapes=False), call)
    assert state.registers == {REGISTERS[0]: 9, REGISTERS[2]: 3}
    assert cells.keys() - state.memory.keys() == (cells.keys() if lost is None else lost)


def test_a_result_in_a_part_of_a_register_leaves_nothing_known_of_the_rest():
    state = Constants({REGISTERS[0]: 1, REGISTERS[1]: 2}, {})
    part = Location("register", REGISTERS[0].offset + 2, 2)
    known = execution()
    terms = Terms()
    whole = State(terms, big_endian=False)
    whole.set_location(REGISTERS[0], terms.constant(1, 32))
    known.at([whole])
    known.after_call(state, Effect((Result(part, Base.NUMBER, strided.constant(16, 9)),), (), escapes=False), NO_CALL)
    assert state.registers == {part: 9, REGISTERS[1]: 2}


def stored(accesses):
    """What is left of memory behind a store of a known word through a pointer that is not known."""
    guest = small_guest("str r1, [r0]\nbx lr")
    lifter = lifter_of(guest)
    one = lifter.lift(guest.address("f"))
    told = [SimpleNamespace(is_store=True, instruction_address=one.address, **access) for access in accesses]
    cells = memory_of(("stack", -8), ("static", 0x1000), ("static", 0x1008))
    (left,) = ConstantExecution(Memory(guest.image), lifter).block((one,), Constants({}, dict(cells)), told)
    return left.state.memory.keys()


def test_a_store_of_unknown_address_goes_where_the_values_say():
    within = strided.between(32, 0x1002, 0x1006)
    on_stack = strided.between(32, -12, -6)
    assert stored([{"base": Base.NUMBER, "offset": within, "size_bytes": 4}]) == {("stack", -8)}
    assert stored([{"base": Base.STACK, "offset": on_stack, "size_bytes": 4}]) == {
        ("static", 0x1000),
        ("static", 0x1008),
    }
    assert not stored([{"base": Base.ANY, "offset": within, "size_bytes": 4}])
    assert not stored([])  # of which they say nothing


CHOICES = {
    "thumb": (
        "adds r{a}, r{b}, r{c}",
        "subs r{a}, r{b}, #{n}",
        "adcs r{a}, r{b}",
        "sbcs r{a}, r{b}",
        "lsrs r{a}, r{b}, #{n}",
        "lsls r{a}, r{b}",
        "ands r{a}, r{b}",
        "mul r{a}, r{b}, r{c}",
        "umull r{a}, r7, r{b}, r{c}",
        "cmp r{a}, r{b}",
        "tst r{a}, #{n}",
        "ite {k}\nmov{k} r{a}, r{b}\nadd{o} r{a}, #1",
        "it {k}\ncmp{k} r{a}, #{n}",
        "itt {k}\nadds{k} r{a}, r{b}\nadc{k} r{c}, r{a}, r{b}",
        "it {k}\nadc{k} r{a}, r{b}, r{c}",
        "str r{a}, [sp, #{n}*4]",
        "strb r{a}, [sp, #{n}]",
        "ldr r{a}, [sp, #{n}*4]",
        "str r{a}, [r6]",
        "b{k} {ahead}f",
    ),
    "arm": (
        "adds r{a}, r{b}, r{c}, lsl #{n}",
        "subs r{a}, r{b}, #{n}",
        "adcs r{a}, r{b}, r{c}",
        "rsc r{a}, r{b}, #{n}",
        "movs r{a}, r{b}, lsr r{c}",
        "movs r{a}, r{b}, rrx",
        "ands r{a}, r{b}, #{n}",
        "muls r{a}, r{b}, r{c}",
        "cmp r{a}, r{b}",
        "cmp{k} r{a}, #{n}",
        "tst{k} r{a}, r{b}, lsl #{n}",
        "adds{k} r{a}, r{b}, #1",
        "mov{k} r{a}, r{b}",
        "str{k} r{a}, [sp, #{n}*4]",
        "strb r{a}, [sp, #{n}]",
        "ldr r{a}, [sp, #{n}*4]",
        "str r{a}, [r6]",
        "b{k} {ahead}f",
    ),
    "powerpc": (
        "addc {p}, {q}, {r}",
        "adde {p}, {q}, {r}",
        "subfc. {p}, {q}, {r}",
        "addze {p}, {q}",
        "and. {p}, {q}, {r}",
        "srawi. {p}, {q}, {n}",
        "slw {p}, {q}, {r}",
        "cmplw {f}, {p}, {q}",
        "cmpwi {f}, {p}, {n}",
        "cror {n}, 2, {m}",
        "crxor {n}, {n}, {m}",
        "mfcr {p}",
        "mtcrf 0x40, {p}",
        "mcrf {f}, 1",
        "stw {p}, 8+{n}*4(1)",
        "stb {p}, 8+{n}(1)",
        "lwz {p}, 8+{n}*4(1)",
        "stw {p}, 0(9)",
        "b{k} {f}, {ahead}f",
        "bdnz {ahead}f",
    ),
}
CONDITIONS = {
    "thumb": (("eq", "ne"), ("hs", "lo"), ("mi", "pl"), ("vs", "vc"), ("hi", "ls"), ("ge", "lt"), ("gt", "le")),
    "powerpc": (("lt", "ge"), ("gt", "le"), ("eq", "ne"), ("so", "ns")),
}


def drawn_function(draw, name):
    """Instructions that set and read flags, with jumps ahead, in a loop that ends after three rounds."""
    lines = []
    for number in range(1, 25):
        k, o = draw.choice(CONDITIONS.get(name, CONDITIONS["thumb"]))
        a, b, c = (draw.randrange(5) for _ in range(3))
        p, q, r = (draw.randrange(3, 8) for _ in range(3))
        ahead = min(number + draw.randrange(1, 5), 25)
        n, m, f = draw.randrange(1, 8), draw.randrange(8), draw.randrange(2)
        text = draw.choice(CHOICES[name])
        lines.append(f"{number}: " + text.format(**locals()))
    body = "\n".join(lines)
    if name == "powerpc":
        again = "addi 11, 11, -1\ncmpwi 7, 11, 0\nbne 7, 99b"
        return f"stwu 1, -64(1)\nli 11, 3\n99:\n{body}\n25: {again}\naddi 1, 1, 64\nblr"
    again = "subs r5, #1\nbne 99b" if name == "arm" else "subs r5, #1\nbne.w 99b"
    return f"sub sp, #64\nmov r5, #3\n99:\n{body}\n25: {again}\nadd sp, #64\nbx lr"


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", CHOICES)
def test_operations_that_are_not_needed_make_no_difference_on_any_way(name, part):
    """Ways through random functions, side by side: what is left out stays out, so that stale flags would be seen."""
    draw = random.Random(f"needed {name} {part}")
    guest = small_guest(drawn_function(draw, name), TARGETS[name])
    lifter, values = analysed(guest.image, guest.target)
    execution = ConstantExecution(Memory(guest.image), lifter)
    needed, leaving = execution.needed(values.graph), values.graph.successors()
    pointer, general = ("r1", range(3, 10)) if name == "powerpc" else ("r13", range(7))
    steps = 0
    for _ in range(12):
        known = {location(lifter.registers[pointer]): (0,)}
        for register in general:
            if draw.random() < 0.6:
                known[location(lifter.registers[f"r{register}"])] = number(draw)
        for flag in sorted(flag_bytes(lifter)):
            if draw.random() < 0.3:
                known[Location("register", flag, 1)] = draw.randrange(2)
        for one in known:
            execution._overlaps.add(one)
        whole, part_of, point = Constants(known, {}), Constants(dict(known), {}), 0
        while point >= 0 and steps < 2_000:
            block, accesses = values.graph.points[point].block, values.accesses.get(point, ())
            ways = execution.block(block.instructions, whole, accesses)
            fewer = execution.block(block.instructions, part_of, accesses, needed[point])
            assert [one[:4] for one in ways] == [one[:4] for one in fewer]
            dead = {at for place in needed[point].dead for at in range(place.offset, place.offset + place.size_bytes)}
            for one, other in zip(ways, fewer, strict=True):
                assert one.state.memory == other.state.memory
                living = [
                    {
                        at: value
                        for at, value in state.registers.items()
                        if at.space == "register" and at.offset not in dead
                    }
                    for state in (one.state, other.state)
                ]
                assert living[0] == living[1]
            steps += 1
            taken = draw.randrange(len(ways))
            whole, part_of = ways[taken].state, fewer[taken].state
            told = [
                edge for edge in leaving[point] if (edge.way, edge.address) == (ways[taken].way, ways[taken].address)
            ]
            point = told[0].target if told else EXIT
    assert steps > 50


PARTS = {
    "thumb": "ldr r3, =place\nldr r0, [r3, #4]\nstr r1, [r3, #4]\nldrb r2, [r3, #5]\nldrh r5, [r3, #2]\nbx lr\n",
    "powerpc": "lis 8, place@ha\nlwz 3, place@l+4(8)\nstw 4, place@l+4(8)\nlbz 5, place@l+5(8)\n"
    "lhz 9, place@l+2(8)\nblr\n",
}


@pytest.mark.parametrize("name", PARTS)
def test_what_memory_held_at_entry_is_known_until_it_is_written_and_by_each_of_its_bytes(name):
    target = TARGETS[name]
    guest = small_guest(PARTS[name] + STORE, target)
    lifter, order = lifter_of(guest), "big" if guest.image.big_endian else "little"
    at = guest.address("place")
    content = b"".join(word.to_bytes(4, order) for word in (0x01020304, 0x05060708, 9, 10))
    known = ConstantExecution(Memory(guest.image), lifter, [(at, content)])
    assert known.knows_memory
    assert not known.without_memory().knows_memory
    registers = {name: location(one) for name, one in lifter.registers.items()}
    read, stored_word, byte, half = ("r3", "r4", "r5", "r9") if name == "powerpc" else ("r0", "r1", "r2", "r5")
    instructions, address = [], guest.address("f")
    for _ in range(5):
        instructions.append(lifter.lift(address))
        address += instructions[-1].size_bytes
    for stored_value in (0x11223344, None):
        state = known.at_entry([])
        if stored_value is not None:
            state.registers[registers[stored_word]] = stored_value
        (left,) = known.block(instructions, state, ())
        assert left.state.registers[registers[read]] == 0x05060708
        second = None if stored_value is None else stored_value.to_bytes(4, order)[1]
        assert left.state.registers.get(registers[byte]) == second
        assert left.state.registers[registers[half]] == int.from_bytes(content[2:4], order)
    # Another execution begins with what was there at entry.
    assert known.at_entry([]).pages["static"] == pages_of([(at, content)])
    both = left.state.joined(known.at_entry([]))
    assert load(both.pages["static"], at, 4) == content[:4]
    assert load(both.pages["static"], at + 4, 4) is None
    copied = known.at_entry([])
    changed = copied.copy()
    store(changed.pages["static"], at, b"\xff")
    assert copied.pages["static"] != changed.pages["static"]
