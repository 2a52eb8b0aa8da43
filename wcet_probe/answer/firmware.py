"""A bound of one function of anybody's firmware: the ELF file, its sources, and the facts that are told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wcet_probe.analyzer.bound import BoundRequest, prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import merged_facts
from wcet_probe.build.core_fit import check_fit
from wcet_probe.build.image import build_attributes, read_image
from wcet_probe.build.sources import find_sources
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.proof import Assumption, Bound
from wcet_probe.model.target import Target


@dataclass(frozen=True, slots=True)
class FirmwareRequest:
    """What is asked.

    Attributes:
        elf: the linked file, 32-bit.
        entry: name of the function.
        target: the core that executes it.
        facts: files with flow facts.
        source_dirs: folders with the sources that the debug information names.
        parameters: values of what the facts' expressions speak of.
    """

    elf: Path
    entry: str
    target: Target
    facts: Sequence[Path]
    source_dirs: Sequence[Path]
    parameters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FirmwareBound:
    """A bound and what it is about; ``sources`` are the texts that were found, by file name."""

    target: Target
    image: Image
    instructions: tuple[Instruction, ...]
    sources: Mapping[str, str]
    bound: Bound


def bound_firmware(request: FirmwareRequest, progress: Callable[[str], None] = lambda _: None) -> FirmwareBound:
    """Prove a bound of the function; ``progress`` is told in words what is being done.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: a file cannot be read, the function is not there, or a flow fact is wrong.
    """
    target = request.target
    facts = merged_facts([parse_facts(str(file), _text(file)) for file in request.facts])
    progress(f"reading {request.elf.name}")
    elf = _bytes(request.elf)
    # Who built it is not known, and nothing depends on it.
    image = read_image(elf, target.isa, compiler="")
    if image.big_endian is not target.big_endian:
        order = "big" if image.big_endian else "little"
        raise UsageError(
            f"{request.elf.name} is {order}-endian, {target.name} is not; choose a target of its byte order."
        )
    targets = [load_target(name) for name in target_names()]
    assumed = check_fit(request.elf.name, build_attributes(elf), target, targets)
    instructions = with_timing_problems(decode(image), target)
    sources = find_sources(elf, request.source_dirs)
    bound = prove(
        BoundRequest(
            image=image,
            target=target,
            instructions=instructions,
            costs=costs(instructions, target),
            entry=request.entry,
            facts=facts,
            sources=sources,
            parameters=request.parameters,
            summaries=True,
        ),
        progress,
    )
    if assumed:
        other_core = Assumption("built-for-another-core", assumed, "not checked: the integrator's")
        bound = replace(bound, assumptions=(*bound.assumptions, other_core))
    return FirmwareBound(target, image, instructions, sources, _without_runs(bound))


_NO_RUN = "no run can check it"


def _without_runs(bound: Bound) -> Bound:
    """``bound``, whose assumptions are held against no run, as there is none."""
    assumptions = tuple(
        one if one.check.startswith(_NO_RUN) else replace(one, check="not checked: nothing is run")
        for one in bound.assumptions
    )
    return replace(bound, assumptions=assumptions)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error


def _text(file: Path) -> str:
    try:
        return _bytes(file).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no UTF-8 text; name a TOML file with flow facts.") from error
