"""Errors of wcet-probe. Each is one sentence with its remedy, and ends the command with a documented exit code."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum

_MOST_NAMES = 40
"""Known names that are told of an unknown one."""


class ExitCode(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    OVER_BUDGET = 3
    NO_BOUND = 4
    CONTRADICTION = 5
    CHECKED_IN_PART = 6
    UNDER_LEMMAS = 7
    INTERRUPTED = 130


class WcetProbeError(Exception):
    """Base of all errors that a user can meet; the message is one sentence with the remedy."""

    exit_code = ExitCode.FAILURE


class UsageError(WcetProbeError):
    """Bad input: an unknown name, a bad value, a heap too small."""

    exit_code = ExitCode.USAGE


class HeapTooSmallError(UsageError):
    """A heap cannot hold a scenario's state."""


class BuildError(WcetProbeError):
    """The image could not be compiled, linked or cached."""


class ImageError(UsageError):
    """A file is no usable ELF, or lacks a symbol that is needed."""


class DecodeError(WcetProbeError):
    """An instruction is unknown to the decoder or has no timing class."""


class EmulationError(WcetProbeError):
    """The engine failed, or the guest made an access that its memory map does not allow."""


class UnknownOperationError(EmulationError):
    """The second engine does not know an operation of the code: floating point, a system instruction."""


class StrayAccessError(EmulationError):
    """The guest accessed memory that is none of its own.

    Attributes:
        pc: address of the instruction.
        address: that it accessed.
    """

    def __init__(self, message: str, pc: int, address: int) -> None:
        super().__init__(message)
        self.pc, self.address = pc, address


class NoReturnError(EmulationError):
    """The guest is where it stays for ever, as behind a failed assertion."""


class StateError(WcetProbeError):
    """A scenario did not reach the state that it predicted, or a heap invariant is broken."""


class NoSuchStateError(StateError):
    """A generic state is none of this allocator: its heap refuses the block to be freed, or it goes astray."""


class AnalysisError(WcetProbeError):
    """No bound can be proved: the message names what stands in the way and what to add.

    ``headers`` are the addresses of the headers of loops without a bound, in order, where these are the reason, and
    ``sites`` those of the indirect branches and calls of which no target is known.
    """

    exit_code = ExitCode.NO_BOUND

    def __init__(self, message: str, headers: tuple[int, ...] = (), sites: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.headers, self.sites = headers, sites


class VerificationError(WcetProbeError):
    """A certificate does not prove what the result says.

    What is verified comes from anybody: the message is one line, and no longer than people read.
    """

    def __init__(self, message: str) -> None:
        super().__init__(readable(message))


_MOST_SHOWN = 600


def readable(message: str) -> str:
    """``message`` without control characters, and cut where it is longer than people read."""
    line = "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in message[: _MOST_SHOWN + 1])
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"


class ContradictionError(WcetProbeError):
    """Two witnesses disagree: a bug in the model or in the tool."""

    exit_code = ExitCode.CONTRADICTION


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for an unknown name, with the nearest known one."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(names[:_MOST_NAMES])}{more}."
    return UsageError(f"unknown {kind} {name!r}: {hint}")
