"""A bound of one function of anybody's firmware: the ELF file, its sources, and the facts that are told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts, merged_facts
from wcet_probe.analyzer.graph.supergraph import TooManyPointsError
from wcet_probe.analyzer.initial_data import bound_of_own_run
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.remembered import remember
from wcet_probe.answer.bounds.given_bounds import read_given
from wcet_probe.answer.facts.fact_effects import fact_effects
from wcet_probe.answer.facts.fact_skeleton import with_all_missing
from wcet_probe.answer.firmware.run_script import Statement
from wcet_probe.build.build_attributes import build_attributes
from wcet_probe.build.core_fit import check_fit
from wcet_probe.build.image import read_image
from wcet_probe.build.sources import find_sources
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.observed_run import Observed
from wcet_probe.model.proof import Assumption, Bound, FactEffects, Units
from wcet_probe.model.target import Target

ASSUMABLE = ("saved-registers",)
"""Ids of assumptions that are made only for who asks."""


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
        caches: the changes of the target's caches that ``target`` has, as ``--cache`` takes them, for the record.
        described: the document of the target with its caches, as certificates of callees' bounds have it; empty where
            none can be given.
        initial_data: whether memory is taken to hold at entry what the file says, or what the calls ``after`` leave.
        is_run: whether runs are held against the bound afterwards; else its assumptions are told to be unchecked.
        assume: ids of assumptions that may be made where there is no bound without them, see `ASSUMABLE`.
        stack_pointer: its value at entry, where that is assumed.
    """

    elf: Path
    entry: str
    target: Target
    facts: Sequence[Path]
    source_dirs: Sequence[Path]
    parameters: Mapping[str, int]
    caches: Sequence[str] = ()
    described: Mapping[str, object] = field(default_factory=dict)
    initial_data: bool = False
    after: Sequence[Statement] = ()
    is_run: bool = False
    assume: Sequence[str] = ()
    stack_pointer: int | None = None


@dataclass(frozen=True, slots=True)
class FirmwareBound:
    """A bound, its question and what it is about.

    Attributes:
        request: the question.
        fact_texts: the files of facts that were read, with their names.
        target, image, instructions: what was analysed.
        sources: the texts that were found, by file name.
        bound: what was proved.
        facts: what was asserted.
        observed: what was run, where something was.
        effects: what the facts do to the bound, where that was asked for and there are facts.
    """

    request: FirmwareRequest
    fact_texts: tuple[tuple[str, str], ...]
    target: Target
    image: Image
    instructions: tuple[Instruction, ...]
    sources: Mapping[str, str]
    bound: Bound
    facts: Facts = field(default_factory=Facts)
    observed: Observed | None = None
    effects: FactEffects | None = None


@dataclass(frozen=True, slots=True)
class ReadFirmware:
    """A question of which all files are read.

    Attributes:
        asked: the question after a bound.
        fact_texts: the files of facts that were read, with their names.
        other_core: what is assumed where the file is built for another core; else None.
    """

    asked: BoundRequest
    fact_texts: tuple[tuple[str, str], ...]
    other_core: Assumption | None


def _of_other_byte_order(name: str, image: Image, target: Target) -> str:
    """Why the file ``name`` is refused, and what to do, which is to build it anew where no target fits."""
    order, other = ("big", "little") if image.big_endian else ("little", "big")
    fits = any(one.isa is target.isa and one.big_endian is image.big_endian for one in map(load_target, target_names()))
    anew = f"no target that executes {target.isa} is, so build it {other}-endian"
    remedy = "choose a target of its byte order" if fits else anew
    return f"{name} is {order}-endian, {target.name} is not; {remedy}."


def read_firmware(request: FirmwareRequest, progress: Callable[[str], None] = lambda _: None) -> ReadFirmware:
    """Read what ``request`` names; ``progress`` is told in words what is being done.

    Raises:
        UsageError: a file cannot be read, or does not fit the target.
    """
    target = request.target
    told = [(str(file), facts_text(file)) for file in request.facts]
    facts = merged_facts([parse_facts(file, text) for file, text in told])
    progress(f"reading {request.elf.name}")
    elf = file_bytes(request.elf)
    # Who built it is not known, and nothing depends on it.
    image = read_image(elf, target.isa, compiler="")
    if image.big_endian is not target.big_endian:
        raise UsageError(_of_other_byte_order(request.elf.name, image, target))
    other_core = built_for_another_core(request.elf.name, elf, target, map(load_target, target_names()))
    instructions = with_timing_problems(decode(image), target)
    initial = None
    if request.initial_data:
        from wcet_probe.answer.firmware.entry_memory import entry_memory  # noqa: PLC0415  (the emulator, which proofs do without)

        initial = entry_memory(image, target, instructions, request.after)
    asked = BoundRequest(
        image=image,
        target=target,
        instructions=instructions,
        costs=costs(instructions, target),
        entry=request.entry,
        facts=facts,
        sources=find_sources(elf, request.source_dirs),
        parameters=request.parameters,
        # Of what is not expanded only loops and costs are said, which a run could be held against.
        summaries=not request.is_run,
        given=read_given(facts, image, request.described) if request.described else {},
        initial=initial,
        keeps_saved="saved-registers" in request.assume,
        stack_pointer=request.stack_pointer,
    )
    return ReadFirmware(asked, tuple((shown_name(file), text) for file, text in told), other_core)


def bound_firmware(request: FirmwareRequest, progress: Callable[[str], None] = lambda _: None) -> FirmwareBound:
    """Prove a bound of the function; ``progress`` is told in words what is being done.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: a file cannot be read, the function is not there, or a flow fact is wrong.
    """
    read = read_firmware(request, progress)
    asked = read.asked
    remembered = remember(asked.image, asked.target)
    try:
        try:
            bound = prove(asked, progress, remembered)
        except TooManyPointsError:
            if asked.summaries:
                raise
            asked = replace(asked, summaries=True)
            bound = prove(asked, progress, remembered)
        bound = bound_of_own_run(asked, bound) or bound
    except AnalysisError as error:
        found = bound_of_own_run(asked, None)
        if found is None:
            # The last question was asked without what memory holds at entry, and so is the next one.
            raise with_all_missing(replace(asked, initial=None), error, progress, remembered) from error
        bound = found
    if read.other_core:
        bound = replace(bound, assumptions=(*bound.assumptions, read.other_core))
    bound = bound if request.is_run else _without_runs(bound)
    return FirmwareBound(
        request,
        read.fact_texts,
        request.target,
        asked.image,
        tuple(asked.instructions),
        asked.sources,
        bound,
        asked.facts,
    )


def with_effects(
    found: FirmwareBound, *, each: bool, progress: Callable[[str], None] = lambda _: None
) -> FirmwareBound:
    """``found`` with what its facts do to the bound, if there are any; with ``each`` what each of them does, too."""
    if not found.request.facts:
        return found
    proved = Units(found.bound.instructions, found.bound.cycles)
    asked = read_firmware(found.request, progress).asked
    return replace(found, effects=fact_effects(asked, proved, each=each, progress=progress))


def built_for_another_core(name: str, elf: bytes, target: Target, targets: Iterable[Target]) -> Assumption | None:
    """What is assumed where the file ``elf`` called ``name`` is built for another core than ``target``, or None.

    Raises:
        UsageError: the core cannot execute what the file is built for; those of ``targets`` that can are named.
    """
    assumed = check_fit(name, build_attributes(elf), target, targets)
    return Assumption("built-for-another-core", assumed, "not checked: the integrator's") if assumed else None


def shown_name(file: str) -> str:
    """How results name the file of facts ``file``: of an absolute path by its last part."""
    return PurePath(file).name if PurePath(file).is_absolute() else file


_NO_RUN = "no run can check it"


def _without_runs(bound: Bound) -> Bound:
    """``bound``, whose assumptions are held against no run, as there is none."""
    assumptions = tuple(
        one if one.check.startswith(_NO_RUN) else replace(one, check="not checked: nothing is run")
        for one in bound.assumptions
    )
    return replace(bound, assumptions=assumptions)


def file_bytes(file: Path) -> bytes:
    """What ``file`` holds.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error


def facts_text(file: Path) -> str:
    """The text of the file of flow facts ``file``.

    Raises:
        UsageError: it cannot be read, or is no UTF-8.
    """
    try:
        return file_bytes(file).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no UTF-8 text; name a TOML file with flow facts.") from error
