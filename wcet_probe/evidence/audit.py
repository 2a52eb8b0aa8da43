"""The audit of an evidence pack, on whatever machine: is it whole, and does it prove and repeat what its results say.

It needs no compiler: the witness is replayed on the image in the pack, with the target, the allocator's manifest and
the operations that are in the pack as well.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from zipfile import Path as ZipPath
from zipfile import ZipFile

from wcet_probe.answer.witness.probe import replay
from wcet_probe.answer.witness.victims import tried_of_each
from wcet_probe.build.image import read_image
from wcet_probe.build.linked_program import holds_program
from wcet_probe.build.program import Program, program_of
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.catalog.target_file import parse_target
from wcet_probe.certificate.check import Checked, check_bound
from wcet_probe.certificate.facts.findings import Finding
from wcet_probe.certificate.kernel.loops import demand
from wcet_probe.certificate.kernel.verify import verify_result
from wcet_probe.certificate.results.observed import verify_slack
from wcet_probe.errors import ContradictionError, NoSuchStateError, VerificationError, WcetProbeError
from wcet_probe.evidence.checking import allocator_binary, answer_findings, scenario_plans
from wcet_probe.evidence.container import Pack, read_pack
from wcet_probe.evidence.firmware import check_firmware, packed_firmware
from wcet_probe.evidence.firmware_replay import MOST_CALLS, path_findings, replay_calls
from wcet_probe.evidence.packing import (
    RESULTS,
    SBOM,
    image_member,
    text_members,
    valid_results,
    whole_members,
    witness_member,
)
from wcet_probe.evidence.paths import is_expanded
from wcet_probe.evidence.recorded import About, Recorded, RecordedBound, configured
from wcet_probe.evidence.sbom import TOOL, serial_number
from wcet_probe.evidence.witness import plan_of, replay_witness
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import with_timing_problems
from wcet_probe.json_text import parse_json
from wcet_probe.model.target import Target
from wcet_probe.progress import Progress, silent
from wcet_probe.reports.formats.document import manifest_document, target_document
from wcet_probe.reports.formats.listing import code_sections, hex_address, image_section
from wcet_probe.sizes import format_size

OK, FAILED, OPEN = "ok", "FAILED", "not checked"

MOST_INSTRUCTIONS = 1_000_000_000
"""Instructions that the replay of one witness may take."""

_MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""What readers of ELF, TOML and JSON raise at content that they do not foresee."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of an audit: what was checked, of what, and what was found; with the ``error`` where it failed."""

    check: str
    subject: str
    verdict: str
    error: WcetProbeError | None = None


def audit(
    data: bytes,
    *,
    digest: str | None = None,
    replayed: bool = True,
    most_instructions: int = MOST_INSTRUCTIONS,
    progress: Progress = silent,
) -> Iterator[Check]:
    """Audit the pack whose bytes are ``data``, one check after the other.

    Parameters:
        data: of the file.
        digest: the pack's digest as it was told by whoever made it, or None: a pack that was changed and written
            again as a whole is another pack, and only its digest tells them apart.
        replayed: whether the witnesses are replayed.
        most_instructions: that the replay of one witness, or of one candidate, may take.
        progress: is told in words what is being done.

    Raises:
        VerificationError: it is no pack, or was changed after it was written: nothing in it means anything then.
    """
    pack = read_pack(data)
    yield Check("container", f"{len(data)} bytes", f"{OK}, as {TOOL} {pack.tool_version} writes it")
    yield Check("hashes", f"{len(pack.members)} files", f"{OK}, as in the manifest")
    yield _checked("digest", "the pack", lambda: _digest(pack, digest))
    found: list[Recorded | RecordedBound] = []
    for name in pack.members:
        if name.startswith(f"{RESULTS}/"):
            yield _checked("schema", name, partial(_schema, pack, name, found))
    root = ZipPath(ZipFile(io.BytesIO(data)))
    yield _checked("files", "the pack", lambda: _files(pack, root, found))
    yield _checked("bill of materials", SBOM, lambda: _bill(pack, found))
    for result in found:
        if isinstance(result, RecordedBound):
            yield from _firmware(pack, result, most_instructions if replayed else 0, progress)
            continue
        yield from _result(pack, root, result, most_instructions if replayed else 0, progress)


def _result(pack: Pack, root: ZipPath, result: Recorded, most_instructions: int, progress: Progress) -> Iterator[Check]:
    name, programs = result.name, list[Program]()
    subject = f"{name}: {result.scenario}, heap {format_size(result.heap_bytes)}"
    yield _checked("image and target", name, lambda: _program(pack, root, result, programs))
    yield (proof := _checked("certificates", name, lambda: _certificates(result)))
    if programs:
        yield _checked("code", name, lambda: _code(programs[0], result))
    if programs and most_instructions and not proof.error:
        progress(f"replaying {subject}")
        yield (again := _checked("replay", subject, lambda: _replay(pack, programs[0], result, most_instructions)))
        if not again.error:
            progress(f"replaying the other candidates of {subject}")
            yield _checked("other candidates", name, lambda: _candidates(programs[0], result, most_instructions))
    else:
        yield Check("replay", subject, f"{OPEN}: it was not run")
    if programs and not proof.error:
        yield from _bound(programs[0], result)


def _bound(program: Program, result: Recorded) -> Iterator[Check]:
    """What the checker finds of the bound, and what the result says besides."""
    found: list[Check] = []

    def look() -> str:
        document, checked = result.document, None
        if document["bound"] is not None:
            checked = check_bound(document, allocator_binary(program, result.heap_bytes))
            found.extend(_rows(result.name, checked.findings))
        found.extend(_rows(result.name, answer_findings(result, program, checked, is_measured_again=True)))
        return OK

    proof = _checked("bound", result.name, look)
    yield from found
    if proof.error:
        yield proof


def _rows(name: str, findings: Iterable[Finding]) -> Iterator[Check]:
    for one in findings:
        yield Check(one.check, name, f"{OK}, {one.found}" if one.verdict == OK else f"{OPEN}: {one.found}")


def _checked(check: str, subject: str, look: Callable[[], str]) -> Check:
    """``look`` tells what it found, or raises; whatever is wrong with what a pack holds, the pack does not verify."""
    try:
        return Check(check, subject, look())
    except ContradictionError as error:
        return Check(check, subject, FAILED, ContradictionError(f"{subject}: {error}"))
    except WcetProbeError as error:
        return Check(check, subject, FAILED, VerificationError(f"{subject}: {error}"))
    except _MALFORMED as error:
        asserted = f"{subject}: {check} cannot be checked ({error!r}); get the pack again."
        return Check(check, subject, FAILED, VerificationError(asserted))


def _digest(pack: Pack, digest: str | None) -> str:
    if digest is None:
        return f"{OPEN}: it is {pack.digest}, compare it or give --digest"
    demand(digest.lower() == pack.digest, f"it is another one, its digest is {pack.digest}")
    return f"{OK}, {pack.digest}"


def _schema(pack: Pack, name: str, found: list[Recorded | RecordedBound]) -> str:
    """The results of the document ``name``, which are added to those ``found``, are as their format says."""
    results = valid_results(name.removeprefix(f"{RESULTS}/").removesuffix(".json"), pack.members[name])
    names = {result.name for result in found}
    demand(not names & {result.name for result in results}, f"two results have the name of one in {name}")
    found += results
    return f"{OK}, {_count(len(results), 'result')}"


def _files(pack: Pack, root: ZipPath, results: list[Recorded | RecordedBound]) -> str:
    """Each file is there for a reason, and what is in two places is the same in both."""
    demand(results, "it has no result that can be read")
    texts = text_members(results, root.joinpath)
    whole, optional = whole_members(results)
    whole |= {SBOM, *(name for name in pack.members if name.startswith(f"{RESULTS}/"))}
    for name in sorted(texts.keys() | whole | pack.members.keys()):
        demand(name in pack.members, f"{name} is missing")
        demand(name in texts or name in whole or name in optional, f"no result needs {name}")
        demand(texts.get(name, pack.members[name]) == pack.members[name], f"{name} is not that of the result")
    return f"{OK}, each belongs to a result"


def _bill(pack: Pack, results: list[Recorded | RecordedBound]) -> str:
    bill = parse_json(pack.members[SBOM].decode())
    demand((bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6"), f"{SBOM} is not of CycloneDX 1.6")
    demand(bill["serialNumber"] == serial_number(bill), f"the serial number of {SBOM} does not belong to its content")
    listed = [bill["metadata"]["component"], *bill["components"]]
    versions = {one["name"]: one["version"] for one in listed if "purl" in one}
    compilers = {one["description"] for one in listed if "purl" not in one}
    for result in results:
        tool = result.document["tool"]
        for name, version in {**tool["packages"], TOOL: tool["version"]}.items():
            demand(versions.get(name) == version, f"{result.name} was made with {name} {version}, not what {SBOM} has")
        compiler = result.document["image"]["compiler"]
        demand(compiler in compilers or not compiler, f"{SBOM} lacks the compiler of {result.name}")
    return f"{OK}, {_count(len(listed), 'component')}"


def _program(pack: Pack, root: ZipPath, result: Recorded, programs: list[Program]) -> str:
    """Image, target and allocator of ``result`` from the pack, if they are those that it was made with."""
    document = result.document
    allocator = load_allocator(result.allocator, result.parameters, home=root / "allocators")
    right = document["allocator_manifest"] == manifest_document(allocator)
    demand(right, "the allocator in the pack is another one")
    target = _target(pack, result)
    elf, stated = _image(pack, result), document["image"]
    demand(holds_program(elf, allocator), "the image has not the linked program that the allocator's manifest names")
    programs.append(
        program_of(allocator, target, read_image(elf, target.isa, stated["compiler"], tuple(stated["flags"])))
    )
    return f"{OK}, sha256 {result.image_sha256[:16]}"


def _target(pack: Pack, asked: About) -> Target:
    """The target in the pack, with the caches of the question; the document describes it as it is."""
    document = asked.document
    target = configured(asked, parse_target(asked.target, pack.members[f"targets/{asked.target}.toml"].decode()))
    described = target_document(target)
    said = (document["target_configuration"], {key: document[key] for key in ("caches", "memory") if key in document})
    for one in said:
        demand(one == {key: described[key] for key in one}, "the target in the pack is another one")
    return target


def _image(pack: Pack, asked: About) -> bytes:
    elf = pack.members[image_member(asked)]
    demand(_sha256(elf) == asked.image_sha256, "the image in the pack is another one")
    return elf


def _firmware(pack: Pack, asked: RecordedBound, most_instructions: int, progress: Progress) -> Iterator[Check]:
    """A bound of own firmware; what was run beside it is run again."""
    found: list[Check] = []
    targets: list[Target] = []
    bounds: list[Checked] = []

    def look() -> str:
        targets.append(_target(pack, asked))
        _image(pack, asked)
        return f"{OK}, sha256 {asked.image_sha256[:16]}"

    def prove() -> str:
        own = packed_firmware(asked, pack.members)
        checked, others = check_firmware(asked.document, asked, own, targets[0], progress)
        bounds.append(checked)
        found.extend(_rows(asked.name, (*checked.findings, *others)))
        return OK

    def replay() -> str:
        target = targets[0]
        image = read_image(_image(pack, asked), target.isa, compiler="")
        instructions = with_timing_problems(decode(image), target)
        runs = replay_calls(asked, image, target, instructions, most_instructions)
        if not runs:
            return f"{OPEN}: it has more than {MOST_CALLS:,} calls"
        checked = bounds[0] if is_expanded(asked.document) else None
        found.extend(_rows(asked.name, path_findings(runs, image, checked)))
        return f"{OK}, {_count(len(runs), 'call')}, at most {max(run.instructions for run in runs)} instructions again"

    yield _checked("image and target", asked.name, look)
    if targets:
        proof = _checked("bound", asked.name, prove)
        yield from found
        if proof.error:
            yield proof
    if asked.document.get("observed"):
        found.clear()
        if not (bounds and most_instructions):
            yield Check("replay", asked.name, f"{OPEN}: it was not run")
            return
        progress(f"running the calls of {asked.name} again")
        yield _checked("replay", asked.name, replay)
        yield from found


def _code(program: Program, result: Recorded) -> str:
    """The hashes of functions, the disassembly and the source lines of ``result`` are those of image and sources."""
    document = result.document
    listed = {entry["address"] for entry in document["listing"]}
    code = [one for one in program.instructions if hex_address(one.address) in listed]
    again = code_sections(program.image, code, dict(program.allocator.sources))
    for key, value in {**again, "image": image_section(program.image, code)}.items():
        demand(document[key] == value, f"the section {key} is not that of the image")
    return f"{OK}, {_count(len(code), 'instruction')} as listed"


def _certificates(result: Recorded) -> str:
    """The certificates prove the numbers of ``result``, and are about the call that was measured."""
    document = result.document
    bound = document["bound"]
    demand((bound is None) == (document["verdict"] != "BOUNDED"), "a bound and the verdict do not fit each other")
    if bound is None:
        demand(document["slack"] is None, "there is a slack without a bound")
        return f"{OK}, none: {document['no_bound'] or 'no bound was asked for'}"
    proved = verify_result(document)
    entry = document["allocator_manifest"]["entry_points"][document["measured_operation"]["kind"]]
    demand(all(one.entry_function == entry for one in proved), f"the bound is not about {entry}, which was measured")
    demand(bound["parameters"].get("H", result.heap_bytes) == result.heap_bytes, "the bound is of another heap")
    verify_slack(document)
    return f"{OK}, at most {', '.join(f'{one.bound} {one.unit}' for one in proved)}"


def _candidates(program: Program, result: Recorded, most_instructions: int) -> str:
    """The other candidate states of the scenario are measured again, and cost what the result says."""
    asserted = {one["variant"]: one for one in result.document["state"]["candidates"]}
    every = scenario_plans(result, program.allocator, program.target)
    most_tried = tried_of_each(len(every))
    plans = [one for one in every if one.variant != result.variant]
    measured = 0
    for plan in plans:
        try:
            seen, _ = replay(
                program,
                plan,
                result.heap_bytes,
                result.initial_cache,
                None,
                most_tried=most_tried,
                most_instructions=most_instructions * most_tried,
            )
        except NoSuchStateError as error:
            demand(plan.variant not in asserted, str(error))
            continue
        demand(plan.variant in asserted, f"the candidate {plan.variant!r} is left out, and can be measured")
        counts = {"variant": plan.variant, "instructions": seen.instructions, "cycles": seen.cycles}
        demand(asserted[plan.variant] == counts, f"the candidate {plan.variant!r} costs something else")
        measured += 1
    return f"{OK}, {_count(measured, 'other candidate')} measured again"


def _replay(pack: Pack, program: Program, result: Recorded, most_instructions: int) -> str:
    plan = plan_of(parse_json(pack.members[witness_member(result)].decode()), result)
    seen = replay_witness(program, plan, result, most_instructions)
    return f"{OK}, {seen.instructions} instructions, {seen.cycles} cycles again"


def _sha256(data: bytes) -> str:
    return sha256(data).hexdigest()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
