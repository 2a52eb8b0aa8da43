"""The registers that translated code and the engine both know: names and order, the same for everybody."""

from __future__ import annotations

from wcet_probe.model.target import Isa

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
