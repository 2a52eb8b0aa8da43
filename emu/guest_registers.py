"""The guest's registers: names and order, the same for both engines, and what a call uses them for."""

from __future__ import annotations

from collections.abc import Sequence

from wcet_probe.errors import UsageError
from wcet_probe.model.target import Isa

_MOST_ARGUMENTS = 4

_ARM = (*(f"r{number}" for number in range(13)), "sp", "lr", "ng", "zr", "cy", "ov")
_POWERPC = (
    *(f"r{number}" for number in range(32)),
    "lr",
    "ctr",
    *(f"cr{number}" for number in range(8)),
    "xer_so",
    "xer_ov",
    "xer_ca",
)
ARM_FLAGS = {"ng": 31, "zr": 30, "cy": 29, "ov": 28}
"""Bit of the status register for each flag."""


def register_names(isa: Isa) -> tuple[str, ...]:
    """Names as SLEIGH has them, in lower case, in the order of a frame's registers."""
    return _POWERPC if isa is Isa.POWERPC else _ARM


def argument_registers(isa: Isa, arguments: Sequence[int]) -> dict[str, int]:
    """The registers by name that hold the words ``arguments`` of a call (AAPCS32, §6.4; PowerPC EABI).

    Raises:
        UsageError: there are more words than registers on every core.
    """
    if len(arguments) > _MOST_ARGUMENTS:
        message = f"a call takes at most {_MOST_ARGUMENTS} words, not {len(arguments)}; pass a pointer to more."
        raise UsageError(message)
    first = 3 if isa is Isa.POWERPC else 0
    return {f"r{first + i}": argument & 0xFFFFFFFF for i, argument in enumerate(arguments)}


def result_register(isa: Isa) -> str:
    """The register that a call leaves its result in."""
    return "r3" if isa is Isa.POWERPC else "r0"
