# SPDX-License-Identifier: 0BSD
"""The run of a bound that follows one: where it begins, as assumptions and facts say, and what it takes.

Without the assumption *initial-data* nothing is known there but code, constants and the stack pointer's place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.coverage import Code
from wcet_probe.certificate.kernel.records import Records, demand
from wcet_probe.certificate.runs.memory import Content, memory_at_entry
from wcet_probe.certificate.runs.run import MOST_INSTRUCTIONS, Ran, TooLongError, executed
from wcet_probe.certificate.runs.words import LostError
from wcet_probe.certificate.values.numbers import WORD, Value
from wcet_probe.certificate.values.state import Place
from wcet_probe.model.target import Target

INITIAL_DATA, STACK_BOUNDS = "initial-data", "stack-bounds"
ANY_DATA = "one run, whatever memory holds at entry"
"""Why no paths are followed of a bound of the run that nothing at entry changes."""
_WAITING = "followed:waiting"
_STATEMENT = re.compile(
    r"memory holds at entry what the file says, and zeros where it says nothing: "
    r"([0-9]{1,10}) bytes in ([0-9]{1,10}) ranges?"
    r"(?:, (?:which|of which [0-9]+ bytes in [0-9]+ ranges? are what) the call is proved not to write)?"
    r"; the call's stack is in none of them"
)
_POINTER = re.compile(r"the stack pointer is (0x[0-9a-f]{1,8}) at entry")
_BOUNDS = re.compile(
    r"the stack pointer is from (0x[0-9a-f]{1,8}) to (0x[0-9a-f]{1,8}) at entry: no address near it is 0"
)


def run_of_its_own(certificates: Sequence[Records]) -> str:
    """Why no paths are followed where constraints say how often a run goes where, or waits; empty if none does."""
    names = (one[0] for records in certificates for one in records["constraint"])
    return ANY_DATA if any(one.startswith(("followed:", f"most:{_WAITING}")) for one in names) else ""


def apart_from_waiting(target: Target, records: Records) -> Target:
    """``target`` whose accesses do not wait, where ``records`` charge all that a followed run waits as one event."""
    if all(name != _WAITING for name, _ in records["event"]):
        return target
    single = replace(target.memory.first_beat_cycles, value=0)
    return replace(target, memory=replace(target.memory, first_beat_cycles=single))


def decided_run(  # noqa: PLR0917  a bound, and what it is held against
    code: Code,
    binary: Binary,
    entry_function: str,
    listed: Mapping[str, str],
    told: Mapping[Place, Value],
    bound: int,
) -> Ran | str:
    """What the one run takes that memory at entry decides, or why that is not known.

    Args:
        code: of the image.
        binary: what the bound is held against.
        entry_function: what is executed.
        listed: the assumptions of the bound.
        told: what facts say of registers and words at entry.
        bound: in instructions.

    Raises:
        VerificationError: memory is said to hold more at entry than there is, or the run takes more than the bound.
    """
    statement, place = listed.get(INITIAL_DATA), listed.get("stack-pointer")
    own = _STATEMENT.fullmatch(statement) if statement is not None else None
    at = _POINTER.fullmatch(place) if place is not None else None
    if (own is None and statement is not None) or (place is not None and at is None):
        return "it is not the file that says what memory holds at entry, or no word that says where the stack is"
    if bound > MOST_INSTRUCTIONS:
        return f"it may take {bound} instructions, and {MOST_INSTRUCTIONS} are followed"
    pointer = int(at[1], 16) if at else None
    content: Content = ()
    if own is not None:
        content, most = memory_at_entry(code.image, pointer), memory_at_entry(code.image, None)
        size = sum(len(data) for _, data in content)
        demand(int(own[1]) <= sum(len(data) for _, data in most), f"the image has {size} bytes of data, not {own[1]}")
        if (int(own[1]), int(own[2])) != (size, len(content)):
            return "it is not said which part of the data memory holds at entry"
    known = {
        place: value.low
        for place, value in told.items()
        if isinstance(place, str) and value.is_number and value.is_constant
    }
    try:
        return executed(code, binary, entry_function, content, known, pointer, bound, _margin(listed))
    except TooLongError:
        demand(False, f"the run takes more than the {bound} instructions of the bound")
    except LostError as error:
        return str(error)
    return ""


def _margin(listed: Mapping[str, str]) -> int:
    """How far the stack pointer is said to be from both ends of the address space, at least."""
    ends = _BOUNDS.fullmatch(listed.get(STACK_BOUNDS, ""))
    return int(ends[1], 16) if ends and int(ends[1], 16) + int(ends[2], 16) == WORD else 0
