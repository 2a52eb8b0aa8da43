"""Whether an ELF file is built for a target's core: what it says of itself, held against what the core executes.

The rule: a file that asks for what the core does not have (a newer architecture or another profile, an FPU, VLE code)
is refused, and the targets that fit are named, for its instructions may not be those that are charged. A file that is
built for another core, or an older architecture whose code the core executes, is bounded under an assumption that says
so: it may well be meant to run there, but nothing in it says that it is. A file that says nothing is taken as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.errors import UsageError
from wcet_probe.model.image import BuildAttributes
from wcet_probe.model.target import Architecture, Fpu, Isa, Target

_A32 = ("v4", "v4T", "v5T", "v5TE")
_EXECUTES: dict[Architecture, tuple[str, ...]] = {
    Architecture.V5TEJ: (*_A32, "v5TEJ"),
    Architecture.V7_R: (*_A32, "v5TEJ", "v6", "v6K", "v6T2", "v7", "v7-R"),
    Architecture.V6_M: ("v6-M",),
    Architecture.V6S_M: ("v6-M", "v6S-M"),
    Architecture.V7_M: ("v6-M", "v6S-M", "v7", "v7-M"),
    Architecture.V7E_M: ("v6-M", "v6S-M", "v7", "v7-M", "v7E-M"),
    Architecture.V8_M_MAIN: ("v6-M", "v6S-M", "v7", "v7-M", "v7E-M", "v8-M.base", "v8-M.main"),
}
"""Architectures whose code a core of the architecture executes; of v7 without a profile only what all profiles have."""
_UNITS = {
    Fpu.NONE: (0, False),
    Fpu.VFPV3_D16: (3, True),
    Fpu.VFPV4_SP_D16: (4, False),
    Fpu.FPV5_D16: (5, True),
    Fpu.POWERPC: (1, True),
}
"""Generation, and whether it has double precision."""


def core_name(target: Target) -> str:
    """The core, as compilers name it."""
    flags = (flag for family in target.compiler_flags.values() for flag in family)
    return next((flag.removeprefix("-mcpu=") for flag in flags if flag.startswith("-mcpu=")), "")


def check_fit(name: str, built: BuildAttributes, target: Target, targets: Iterable[Target]) -> str | None:
    """What is to be assumed of a file that is built for another core that ``target``; None if it is built for it.

    Parameters:
        name: of the file.
        built: what the file says.
        target: the core that is asked about.
        targets: all that there are, to name those that fit; they are asked for only then.

    Raises:
        UsageError: the core cannot execute what the file is built for; the message names targets that can.
    """
    lack = _lack(built, target)
    if lack:
        every = tuple(targets)
        fitting = [one.name for one in every if _is_exact(built, one)]
        fitting = fitting or [one.name for one in every if one.isa is target.isa and not _lack(built, one)]
        remedy = (
            f"choose --target {' or '.join(fitting)}" if fitting else "no target fits; build it for one that is there"
        )
        raise UsageError(f"{name} is built for {_words(built)}, but {target.name} {lack}: {remedy}.")
    if not built.architecture or _is_exact(built, target):
        return None
    return f"{name}, built for {_words(built)}, is executed by the core of {target.name}, whose cycles are charged"


def _is_exact(built: BuildAttributes, target: Target) -> bool:
    """Whether the file is built for just this core, as far as it says."""
    if _lack(built, target):
        return False
    named = bool(built.core) and not built.core[0].isdigit()
    return built.core == core_name(target) if named else built.architecture == target.architecture


def _lack(built: BuildAttributes, target: Target) -> str:
    """What the core does not have of what the file asks for; empty if it has all."""
    known = _EXECUTES.get(target.architecture) if target.architecture else None
    if built.architecture and known is not None and built.architecture not in known:
        return f"executes {target.architecture}"
    if built.variable_length:
        return "executes no VLE code"
    level, double = _UNITS[target.fpu]
    if (
        built.fpu_level > level
        or (built.fpu_double and not double)
        or (built.fpu_wide and target.isa is not Isa.POWERPC)
    ):
        return f"has the FPU {target.fpu}" if level else "has no FPU"
    return ""


def _words(built: BuildAttributes) -> str:
    core = built.core if built.core and not built.core[0].isdigit() else ""
    parts = (core, f"architecture {built.architecture}" if built.architecture else "", built.fpu)
    return ", ".join(part for part in (*parts, "VLE" if built.variable_length else "") if part)
