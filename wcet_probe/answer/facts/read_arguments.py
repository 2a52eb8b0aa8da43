"""Which arguments a function reads: a range of one that it does not read bounds nothing."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.facts.control import argument_place
from wcet_probe.analyzer.facts.expressions import parse
from wcet_probe.analyzer.facts.language import ArgumentFact
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.properties.entry_registers import deciding_registers, register_bytes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.locations import register_locations
from wcet_probe.build.debug_types import pointer_parameters
from wcet_probe.model.image import Image

_ARGUMENTS = 4
"""So many are looked at: those that are in registers on each core."""


def read_arguments(values: Values, image: Image, lifter: Lifter, entry: str) -> Iterator[ArgumentFact]:
    """For each argument of ``entry`` that its code reads, the fact that it is a number from 0 to 0.

    A register that is only pushed is read; where the debug information has parameters, there are no others.

    Parameters:
        values: of the function, whose calls are all expanded.
        image: the binary.
        lifter: of it.
        entry: its name.
    """
    read, registers = deciding_registers(values, lambda _: ()), register_locations(lifter)
    for index in range(min(_ARGUMENTS, len(pointer_parameters(image, entry)) or _ARGUMENTS)):
        fact = ArgumentFact("", entry, index, None, parse("0"), parse("0"), "")
        if register_bytes([registers[str(argument_place(fact, lifter.isa))]]) & read:
            yield fact
