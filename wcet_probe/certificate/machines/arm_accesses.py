# SPDX-License-Identifier: 0BSD
"""What ARM and Thumb-2 instructions load and store, and what they write back to the register of an address."""

from __future__ import annotations

import re

from wcet_probe.certificate.machines.arm_text import PC, SP, SPLIT, immediate_of, operands_in, register_of
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.machines.operands import register_named
from wcet_probe.certificate.values import numbers
from wcet_probe.certificate.values.numbers import ANY, Value, constant
from wcet_probe.certificate.values.state import State
from wcet_probe.model.instruction import AccessKind, Instruction


def name_held(state: State, register: str) -> object:
    """The name of what ``register`` holds; the program counter holds another value at each instruction."""
    return object() if register == PC else state.name(register)


def access_memory(machine: Machine, instruction: Instruction, name: str, state: State) -> None:
    """Loads and stores of registers, and what they make of the register that the address is in."""
    if instruction.accesses[0].kind is AccessKind.LOAD:
        found = loaded_registers(machine, instruction, name, state)
        _write_back(machine, instruction, name, state)
        for register, (value, asserted) in found.items():
            if register != PC:
                state.write(register, value, asserted)
        # A base that is written back and loaded is unpredictable.
        unknown = instruction.writes - (found.keys() ^ _moved(instruction, name))
    else:
        transfers = [
            (address, size_bytes, *_transferred(machine, instruction, name, register, state))
            for address, size_bytes, register in _transfers(machine, instruction, state)
        ]
        _write_back(machine, instruction, name, state)
        for address, size_bytes, value, asserted in transfers:
            machine.store(address, size_bytes, value, asserted, state)
        unknown = instruction.writes - _moved(instruction, name)
    for register in unknown - {PC}:
        state.write(register, ANY, machine.fresh())


def _transferred(
    machine: Machine, instruction: Instruction, name: str, register: str, state: State
) -> tuple[Value, object]:
    """What is stored of a register, and its name; of a base that is written back nobody knows, but if it is the first.

    The first of several, that is (ARM DDI 0406C, A8.8.199: the value is unknown otherwise).
    """
    is_list = "{" in instruction.text
    if register in _moved(instruction, name) and not (is_list and register == _listed(instruction)[0]):
        return ANY, machine.fresh()
    return state.read(register), name_held(state, register)


def stored_registers(instruction: Instruction) -> frozenset[str]:
    """The registers that an instruction names in front of an address: it may store them."""
    before, bracket, _ = instruction.text.partition("[")
    words = re.findall(r"\w+", before)[1:] if bracket else []
    return instruction.reads & set(map(register_named, words))


def _listed(instruction: Instruction) -> list[str]:
    """The registers between braces, in the order in which they are transferred."""
    (braced,) = (one for one in operands_in(instruction) if one.startswith("{"))
    return sorted((register_of(one) for one in SPLIT.split(braced.strip("{}"))), key=lambda one: int(one[1:]))


def loaded_registers(
    machine: Machine, instruction: Instruction, name: str, state: State
) -> dict[str, tuple[Value, object]]:
    """What is loaded into each register, and its name."""
    found = {}
    for address, size_bytes, register in _transfers(machine, instruction, state):
        found[register] = machine.load(address, size_bytes, state, is_signed=name.startswith("ldrs"))
    return found


def _transfers(machine: Machine, instruction: Instruction, state: State) -> list[tuple[Value, int, str]]:
    """Address, size and register of each access."""
    (access,) = instruction.accesses
    operands = operands_in(instruction)
    if any(one.startswith("{") for one in operands):
        registers = _listed(instruction)
    else:
        registers = [register_of(one) for one in operands[: access.count]]
    addresses = [machine.address_of(access, state, each) for each in range(access.count)]
    return [(*pair, register) for pair, register in zip(
        ((address, access.bytes_each) for address in addresses), registers, strict=True
    )]  # fmt: skip


def _moved(instruction: Instruction, name: str) -> frozenset[str]:
    """The registers that an address is written back to."""
    if name in {"push", "pop"}:
        return frozenset({SP})
    base = instruction.accesses[0].base
    operands = operands_in(instruction)
    is_post = operands[-1][0] != "[" and any(one.startswith("[") for one in operands)
    return frozenset({base} if base and ("!" in instruction.text or is_post) else set())


def _write_back(machine: Machine, instruction: Instruction, name: str, state: State) -> None:
    (access,) = instruction.accesses
    for register in _moved(instruction, name):
        operands = operands_in(instruction)
        old = state.read(register)
        size = access.count * access.bytes_each
        if name in {"push", "stmdb", "stmda", "ldmdb", "ldmda"}:
            new = numbers.subtract(old, constant(size))
        elif name in {"pop", "stm", "stmib", "ldm", "ldmib"}:
            new = numbers.add(old, constant(size))
        elif "!" in instruction.text:
            new = machine.address_of(access, state)
        elif operands[-1].startswith("#"):
            new = numbers.add(old, constant(immediate_of(operands[-1])))
        else:  # by another register
            new = numbers.unknown(*map(state.read, instruction.reads))
        state.write(register, new, machine.fresh())
