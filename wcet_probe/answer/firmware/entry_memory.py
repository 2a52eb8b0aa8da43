"""What memory holds when a call begins: the initialised data of the file, or what calls before leave of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.request import InitialData
from wcet_probe.answer.firmware.free_memory import SCRATCH_BYTES, free_map
from wcet_probe.answer.firmware.run_script import CallStatement, Statement, named_words, resolved
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import ContradictionError, UsageError, unknown_name
from wcet_probe.isa.timing import costs
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Target

_MOST_INSTRUCTIONS = 1 << 30


def entry_memory(
    image: Image, target: Target, instructions: Sequence[Instruction], after: Sequence[Statement]
) -> InitialData:
    """The initialised data of ``image``, or what the calls ``after`` make of it.

    Raises:
        UsageError: ``after`` is not calls of functions of the image.
        EmulationError: a call went astray.
    """
    content = image_data(image)
    if not after:
        return InitialData(content, "the file says, and zeros where it says nothing")
    target = replace(target, memory_map=free_map(image, target))
    with Machine(
        image,
        target,
        instructions,
        costs(instructions, target),
        SCRATCH_BYTES,
        most_instructions=_MOST_INSTRUCTIONS,
    ) as machine:
        symbols = named_words(image, machine.heap.base_address)
        functions = {function.name for function in image.functions}
        result = 0
        for statement in after:
            if not isinstance(statement, CallStatement):
                raise UsageError(f"--after: {statement.text}: only calls can be before; write a call.")
            if statement.function not in functions:
                raise unknown_name("function", statement.function, functions)
            values = [resolved(one, symbols, result, _refusal(symbols)) for one in statement.arguments]
            result = machine.measure(statement.function, tuple(values), InitialCache.COLD).result
        left = tuple((address, machine.memory.read(address, len(data))) for address, data in content)
    return InitialData(left, f"the file says and {'; '.join(one.text for one in after)} leaves")


def _refusal(symbols: dict[str, int]) -> Callable[[str], UsageError]:
    return lambda name: unknown_name("symbol", name, symbols)


def check_entry_memory(
    content: Sequence[tuple[int, bytes]], read: Callable[[int, int], bytes], image: Image, subject: str
) -> None:
    """Hold what a bound takes memory to hold at entry against what it holds, which ``read`` tells.

    Raises:
        ContradictionError: it holds something else; the message names the place.
    """
    for address, data in content:
        found = read(address, len(data))
        if found != data:
            at = next(index for index, (one, other) in enumerate(zip(data, found, strict=True)) if one != other)
            raise ContradictionError(
                f"CONTRADICTED: the byte at {_place(image, address + at)} is {found[at]:#04x} when {subject} begins, "
                f"against the assumption initial-data, which says {data[at]:#04x}; run what --after names before, or "
                "leave out --initial-data."
            )


def check_stack_apart(content: Sequence[tuple[int, bytes]], stack_pointer: int, image: Image, subject: str) -> None:
    """Hold where the stack is against ``content``, what a bound takes memory to hold at entry.

    Raises:
        ContradictionError: it is in it; the message names the place.
    """
    below = stack_pointer - 1
    if any(address <= below < address + len(data) for address, data in content):
        raise ContradictionError(
            f"CONTRADICTED: the stack of {subject} is at {_place(image, below)}, against the assumption initial-data, "
            "by which it is in none of the memory that is known at entry; give --stack-pointer "
            f"{stack_pointer:#x}, or leave out --initial-data."
        )


def _place(image: Image, address: int) -> str:
    held = [one for one in image.symbols.values() if one.address <= address < one.address + one.size_bytes]
    return f"{held[0].name}+{address - held[0].address}" if held else f"{address:#010x}"
