"""Bounds of own firmware as evidence: the files that they rest on, found by hash, and what is checked of them.

A bound of ``wcet-probe bound`` says which ELF file, facts and sources it was made from, by name and hash. Whoever packs
it gives the files; whoever audits it has them in the pack. Sources may be left out of a pack: then what needs them is
not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from wcet_probe.answer.firmware.firmware import built_for_another_core, facts_text, file_bytes, shown_name
from wcet_probe.build.image import read_image
from wcet_probe.build.sources import find_sources
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.certificate.check import Checked, check_bound
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.findings import OK, OPEN, Binary, Finding
from wcet_probe.certificate.kernel.loops import demand
from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.evidence.firmware_replay import check_observed
from wcet_probe.evidence.recorded import HashedText, RecordedBound
from wcet_probe.evidence.said import authors_words, check_said
from wcet_probe.evidence.variables import unshared_of, variables_of
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.target import Target
from wcet_probe.progress import Progress, silent
from wcet_probe.reports.formats.bound_document import text_sha256
from wcet_probe.reports.formats.listing import code_sections, hex_address, image_section

FACTS, SOURCES = "facts", "sources"


@dataclass(frozen=True, slots=True)
class Given:
    """Files that somebody gives for bounds of own firmware: ELF files, facts, and folders with sources.

    Where ``without_sources``, the texts of sources are not to be packed.
    """

    images: Sequence[Path] = ()
    facts: Sequence[Path] = ()
    source_dirs: Sequence[Path] = ()
    without_sources: bool = False


@dataclass(frozen=True, slots=True)
class Firmware:
    """What a bound was made from: the ELF file, the facts as they were given, and the sources that are there."""

    elf: bytes
    facts: tuple[tuple[str, str], ...]
    sources: Mapping[str, str]


def image_name(asked: RecordedBound) -> str:
    """Name of the member that holds the ELF file."""
    return f"images/{asked.image_sha256}.elf"


def fact_name(one: HashedText) -> str:
    """Name of the member that holds a file of facts."""
    return f"{FACTS}/{one.sha256}.toml"


def source_name(one: HashedText) -> str:
    """Name of the member that holds a source."""
    return f"{SOURCES}/{one.sha256}.txt"


def firmware_members(asked: RecordedBound, given: Given) -> dict[str, bytes]:
    """The members of a pack that ``asked`` rests on, from the files that are ``given``.

    Raises:
        UsageError: a file is not there, or is another one.
    """
    images = {sha256(data).hexdigest(): (file, data) for file in given.images for data in (file_bytes(file),)}
    if asked.image_sha256 not in images:
        raise UsageError(
            f"{asked.name} is about {asked.elf}, sha256 {asked.image_sha256[:16]}, which is not among the given files; "
            "name it with --image."
        )
    file, elf = images[asked.image_sha256]
    members = {image_name(asked): elf}
    facts = {text_sha256(text): text for each in given.facts for text in (facts_text(each),)}
    for one in asked.facts:
        if one.sha256 not in facts:
            raise UsageError(
                f"{asked.name} rests on the facts in {one.name}, as they were; name that file with --facts."
            )
        members[fact_name(one)] = facts[one.sha256].encode()
    if given.without_sources or not asked.sources:
        return members
    found = find_sources(elf, given.source_dirs or (file.parent, Path.cwd()))
    for one in asked.sources:
        if one.name not in found or text_sha256(found[one.name]) != one.sha256:
            what = "was changed since" if one.name in found else "was not found"
            raise UsageError(
                f"{asked.name} was made with {one.name}, which {what}; name its folder with --source, make the bound "
                "again, or pack --without-sources."
            )
        members[source_name(one)] = found[one.name].encode()
    return members


def packed_firmware(asked: RecordedBound, members: Mapping[str, bytes]) -> Firmware:
    """What ``asked`` rests on, from the members of a pack."""
    facts = tuple((one.name, members[fact_name(one)].decode()) for one in asked.facts)
    sources = {one.name: members[source_name(one)].decode() for one in asked.sources if source_name(one) in members}
    return Firmware(members[image_name(asked)], facts, sources)


def given_firmware(elf: bytes, facts: Sequence[Path], source_dirs: Sequence[Path]) -> Firmware:
    """What somebody gives to check a bound against.

    Raises:
        UsageError: a file cannot be read.
    """
    return Firmware(
        elf, tuple((shown_name(str(file)), facts_text(file)) for file in facts), find_sources(elf, source_dirs)
    )


def check_firmware(
    document: Mapping[str, object],
    asked: RecordedBound | None,
    firmware: Firmware,
    target: Target,
    progress: Progress = silent,
) -> tuple[Checked, tuple[Finding, ...]]:
    """Check a bound against ``firmware``, with all that its document says.

    Args:
        document: of format ``wcet-probe-bound``.
        asked: its question; None where an earlier version did not write it down.
        firmware: what it was made from.
        target: the core.
        progress: is told how much of a long run is executed.

    Raises:
        VerificationError: something does not hold.
    """
    if asked is not None:
        _check_files(asked, firmware)
    image = read_image(firmware.elf, target.isa, compiler="")
    demand(image.big_endian is target.big_endian, f"the image has another byte order than {target.name}")
    instructions = with_timing_problems(decode(image), target)
    asserted = read_asserted(firmware.facts, firmware.sources)
    parameters = None if asked is None else asked.parameters
    charged, variables = costs(instructions, target), variables_of(image, asserted)
    unshared = unshared_of(image, asserted)
    binary = Binary(
        image, instructions, charged, target, asserted, parameters, variables, progress=progress, unshared=unshared
    )
    checked = check_bound(document, binary)
    if asked is None:
        return checked, (Finding("question", OPEN, "the document does not say what was asked"),)
    check_said(document, image, checked, asserted, target, is_run=bool(document.get("observed")))
    return checked, (*_findings(asked, firmware, target, image, instructions), authors_words(document))


def _check_files(asked: RecordedBound, firmware: Firmware) -> None:
    found = [HashedText(name, text_sha256(text)) for name, text in firmware.facts]
    names = ", ".join(one.name for one in asked.facts) or "none"
    demand(
        sorted(map(str, found)) == sorted(map(str, asked.facts)),
        f"the facts are not those of the question, which had {names}; give these by --facts",
    )
    wanted = {one.name: one.sha256 for one in asked.sources}
    for name, text in firmware.sources.items():
        demand(wanted.get(name, text_sha256(text)) == text_sha256(text), f"{name} is another source than the bound's")


def _findings(
    asked: RecordedBound, firmware: Firmware, target: Target, image: Image, instructions: Sequence[Instruction]
) -> Iterable[Finding]:
    document = asked.document
    bound = document["bound"]
    demand(bound["entry"] == asked.entry, f"the bound is not about {asked.entry}, which was asked for")
    by_type = "BOUNDED_BY_TYPE" if bound.get("by_type") else "BOUNDED"
    demand(document.get("verdict", by_type) == by_type, f"the verdict is not {by_type}")
    demand(document["sources"] == [one.name for one in asked.sources], "the sources are not those of the question")
    _check_core(asked, firmware, target)
    if document.get("observed"):
        check_observed(document)
    else:
        _check_nothing_is_observed(document)
    yield Finding("question", OK, f"{asked.entry} in {asked.elf}, with the facts and parameters that were given")
    missing = [one.name for one in asked.sources if one.name not in firmware.sources]
    listed = {entry["address"] for entry in document["listing"]}
    code = [one for one in instructions if hex_address(one.address) in listed]
    again = code_sections(image, code, firmware.sources)
    demand(document["image"] == image_section(image, code), "the section image is not that of the image")
    demand(document["listing"] == again["listing"], "the section listing is not that of the image")
    lines = {name: rows for name, rows in document["source_lines"].items() if name not in missing}
    demand(lines == again["source_lines"], "the section source_lines is not that of the sources")
    yield Finding("code", OK, f"{len(code)} instructions as listed")
    if missing:
        yield Finding("sources", OPEN, f"{len(missing)} of {len(asked.sources)} are not there, {missing[0]} first")
    else:
        yield Finding("sources", OK, f"{len(asked.sources)}, those that the bound was made with")


def _check_core(asked: RecordedBound, firmware: Firmware, target: Target) -> None:
    """What is assumed of a file that is built for another core is on the list, in just these words."""
    others = [load_target(name) for name in target_names()]
    try:
        assumed = built_for_another_core(asked.elf, firmware.elf, target, others)
    except UsageError as error:
        raise VerificationError(f"not verified: {error}") from error
    listed = [one for one in asked.document["bound"]["assumptions"] if one["id"] == "built-for-another-core"]
    wanted = [assumed.statement] if assumed else []
    demand([one["statement"] for one in listed] == wanted, "what is assumed of the core is not what the file asks for")


def _check_nothing_is_observed(document: Mapping[str, object]) -> None:
    """Nothing was run, so nothing is said of runs."""
    bound = document["bound"]
    assert isinstance(bound, Mapping)  # noqa: S101  (validated)
    seen = [loop["observed_max"] for loop in bound["loops"]]
    seen += [claim["observed"] for claim in bound["flow_claims"]]
    seen += [one["executions"] for one in bound["assumptions"]]
    seen += [block["observed_executions"] for block in bound["graph"]["blocks"]]
    demand(all(one is None for one in seen), "something is said to be observed, and nothing was run")
