"""What was run of own firmware beside its bound, run again: the same counts, on paths of the certificate's graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from wcet_probe.answer.firmware.firmware import FirmwareBound, FirmwareRequest
from wcet_probe.answer.firmware.firmware_run import Repetition, run_firmware
from wcet_probe.answer.firmware.run_script import CallStatement, parse_script
from wcet_probe.certificate.check import Checked
from wcet_probe.certificate.facts.findings import OPEN, Finding
from wcet_probe.certificate.kernel.loops import demand
from wcet_probe.errors import ContradictionError, EmulationError, UsageError
from wcet_probe.evidence.paths import path_finding
from wcet_probe.evidence.recorded import RecordedBound
from wcet_probe.evidence.witness import Json, observed
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.observed_run import Observed
from wcet_probe.model.proof import Bound
from wcet_probe.model.target import Target

MOST_CALLS = 10_000
"""So many calls are measured again, some seconds."""

UNITS = ("instructions", "cycles")


def check_observed(document: Mapping[str, Json]) -> None:
    """Check that what a bound's document says of its runs fits together, and is not above the bound.

    Raises:
        VerificationError: it does not.
    """
    seen, bound = document["observed"], document["bound"]
    every = [*seen["calls"], *([seen["found"]] if seen["found"] else [])]
    for unit in UNITS:
        most = max(one[unit] for one in every)
        demand(seen[unit] == most, f"{seen[unit]} {unit} are said to be observed, and the dearest call has {most}")
        demand(most <= bound[unit], f"{most} {unit} were observed, which is above the bound")


def replay_calls(
    asked: RecordedBound, image: Image, target: Target, instructions: Sequence[Instruction], most_instructions: int
) -> list[Measurement]:
    """The calls that were measured, measured again, and what a search found; none where there are too many to repeat.

    Args:
        asked: the bound, and what was run beside it.
        image: the binary.
        target: the core.
        instructions: of the image.
        most_instructions: that the script, and what a search found, may take each.

    Raises:
        ContradictionError: something is counted otherwise than ``asked`` says.
    """
    said = asked.document["observed"]
    if said["held"] > MOST_CALLS:
        return []
    whole = _whole(asked, image, target, instructions)
    repetition = Repetition(most_instructions, MOST_CALLS)
    again = _run(whole, said["statements"], repetition)
    keys = ("call", "result", *UNITS)
    for one, call in zip(said["calls"], again.calls, strict=False):
        _same(f"{one['call']}", {key: one[key] for key in keys}, {key: getattr(call, key) for key in keys})
    _same("calls", {"told": len(said["calls"]), "held": said["held"]}, {"told": len(again.calls), "held": again.held})
    found = said["found"]
    if found is not None:
        before = _set_up(said["statements"], asked.entry)
        call = _run(whole, [*before, *found["script"]], repetition).calls[-1]
        _same("what a search found", {unit: found[unit] for unit in UNITS}, {u: getattr(call, u) for u in UNITS})
    return repetition.runs


def path_findings(runs: Sequence[Measurement], image: Image, checked: Checked | None) -> Iterator[Finding]:
    """Whether each of ``runs`` is a path of the graph, if there is one of all code; a line for all.

    Raises:
        VerificationError: one is none.
    """
    found = [path_finding(observed(run, image), checked) for run in runs]
    yield next((one for one in found if one.verdict == OPEN), found[-1])


def _set_up(statements: Sequence[str], entry: str) -> Sequence[str]:
    """What stands before the last call of the entry, whose inputs a search changes."""
    script = [one for text in statements for one in parse_script(text)]
    calls = [at for at, one in enumerate(script) if isinstance(one, CallStatement) and one.function == entry]
    if not calls:
        raise ContradictionError(f"a search is told of, and no statement calls {entry}, whose inputs it would change")
    return [one.text for one in script[: calls[-1]]]


def _run(whole: FirmwareBound, statements: Sequence[str], repetition: Repetition) -> Observed:
    try:
        return run_firmware(whole, parse_script("\n".join(statements)), again=repetition)
    except (EmulationError, UsageError) as error:
        raise ContradictionError(f"what was run fails when it is run again: {error}") from error


def _whole(asked: RecordedBound, image: Image, target: Target, instructions: Sequence[Instruction]) -> FirmwareBound:
    """What is bounded, with the numbers of the bound and nothing else that was proved."""
    bound = asked.document["bound"]
    proved = Bound(
        entry=asked.entry,
        parameters={},
        instructions=bound["instructions"],
        cycles=bound["cycles"],
        blocks=bound["blocks"],
        loops=(),
        assumptions=(),
        worst_path=(),
        points=(),
        accesses=(),
        registers=(),
        loop_claims=(),
        flow_claims=(),
        certify=tuple,
        stack_pointer=_stack_pointer(bound),
    )
    request = FirmwareRequest(Path(asked.elf), asked.entry, target, (), (), {})
    return FirmwareBound(request, (), target, image, tuple(instructions), {}, proved)


def _stack_pointer(bound: Json) -> int | None:
    """What the stack pointer is assumed to be when a call begins; every call that is run again is held against it."""
    told = (one["statement"] for one in bound["assumptions"] if one["id"] == "stack-pointer")
    words = [re.fullmatch(r"the stack pointer is (0x[0-9a-f]+) at entry", text) for text in told]
    return next((int(one[1], 16) for one in words if one), None)


def _same(what: str, said: Mapping[str, object], counted: Mapping[str, object]) -> None:
    for key, value in counted.items():
        if said[key] != value:
            raise ContradictionError(
                f"running {what} again contradicts the document in {key}: {said[key]} are said, {value} counted; it is "
                "not of this image, or one of the two runs went wrong."
            )
