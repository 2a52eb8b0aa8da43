"""Whether an allocator keeps to its specified cache sets: of each requirement what is proved and what was seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from pathlib import Path

from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.build.program import Program, load_program
from wcet_probe.cache_sets.certificate_files import NO_FILES, CertificateFiles, deduced_by
from wcet_probe.cache_sets.deduction import ShownAccesses, deduce, shown_accesses, whole_operations
from wcet_probe.cache_sets.preparations import preparations
from wcet_probe.cache_sets.run import ROLES, SetRun, run_operations
from wcet_probe.cache_sets.specification import AllowedSets, Justification, SetProof, allowed_sets, prove_sets, words_of
from wcet_probe.compiled.supply import translations
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.target import Target
from wcet_probe.progress import Progress, silent
from wcet_probe.sizes import format_size


class Status(StrEnum):
    """What is to be said of a requirement.

    ``UNDER_LEMMAS``: proved, if flow facts hold that are assumed. ``OBSERVED``: no operation broke it, and nothing is
    proved of it.
    """

    PROVEN = "PROVEN"
    UNDER_LEMMAS = "UNDER LEMMAS"
    OBSERVED = "OBSERVED"
    NOT_PROVEN = "NOT PROVEN"
    REFUTED = "REFUTED"


@dataclass(frozen=True, slots=True)
class SetRequest:
    """What is asked.

    Attributes:
        allocator: with its parameter values chosen.
        target: with its caches as configured.
        heap_bytes: size of the heap that operations are run on; accesses are also counted for twice that size.
        operations: how many random operations are run; None: nothing is run.
        seed: of the random operations.
        compiler, cache_dir: as in ``ProbeRequest``.
        deduced: what is to be shown to keep the allocator's claims, of `wcet_probe.cache_sets.deduction.OPERATIONS`.
    """

    allocator: Allocator
    target: Target
    heap_bytes: int
    operations: int | None
    seed: int
    compiler: str
    cache_dir: Path
    deduced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement: what is said of it, what that rests on, and what runs showed."""

    text: str
    status: Status
    established_by: str
    seen: str


@dataclass(frozen=True, slots=True)
class SetReport:
    """All of an answer. Renderers only read it.

    Attributes:
        request: the question.
        image: the binary.
        allowed: the sets that are specified.
        proofs: by role.
        run: what was seen; None where nothing was run.
        requirements: the answer.
        deduced: what a solver showed of the operations that were asked for; the answer rests on it where it is whole.
    """

    request: SetRequest
    image: Image
    allowed: AllowedSets
    proofs: Mapping[str, SetProof]
    run: SetRun | None
    requirements: tuple[Requirement, ...]
    deduced: tuple[Deduced, ...] = ()

    @property
    def deduced_whole(self) -> Mapping[str, bool]:
        """Of each operation whether all of it was deduced, with nothing open."""
        return whole_operations(self.deduced)

    @property
    def status(self) -> Status:
        """What is to be said of all: the worst of them; one that can only be seen does not spoil the rest."""
        found = {requirement.status for requirement in self.requirements}
        worse = Status.REFUTED, Status.NOT_PROVEN, Status.UNDER_LEMMAS
        return next((status for status in worse if status in found), Status.PROVEN)

    @property
    def exit_code(self) -> ExitCode:
        """0 where all is proven, 7 if lemmas hold, 4 where something is not, 5 where an observation refutes it."""
        codes = {
            Status.UNDER_LEMMAS: ExitCode.UNDER_LEMMAS,
            Status.NOT_PROVEN: ExitCode.NO_BOUND,
            Status.REFUTED: ExitCode.CONTRADICTION,
        }
        return codes.get(self.status, ExitCode.OK)


def verify_sets(
    request: SetRequest, progress: Progress = silent, certificate: CertificateFiles = NO_FILES
) -> SetReport:
    """Answer ``request``; ``progress`` is told in words what is being done.

    Parameters:
        certificate: of what is deduced.

    Raises:
        UsageError: the target has no data cache or another one than the allocator is built for, or the heap cannot hold
            a worst state.
        WcetProbeError: there is no image, or the guest went astray.
    """
    allocator = request.allocator
    if request.heap_bytes < allocator.minimum_heap_bytes or request.heap_bytes % allocator.alignment_bytes:
        message = (
            f"a heap of {request.heap_bytes} bytes does not suit {allocator.name}; give a multiple of "
            f"{allocator.alignment_bytes} bytes, at least {allocator.minimum_heap_bytes}."
        )
        raise UsageError(message)
    progress(f"building {allocator.name} for {request.target.name}")
    program = load_program(allocator, request.target, request.compiler, request.cache_dir, request.heap_bytes)
    return verify_program(request, program, allowed_sets(program), progress, certificate)


def verify_program(
    request: SetRequest,
    program: Program,
    allowed: AllowedSets,
    progress: Progress = silent,
    certificate: CertificateFiles = NO_FILES,
) -> SetReport:
    """Hold ``program`` to ``allowed``.

    Parameters:
        certificate: of what is deduced.

    Raises:
        WcetProbeError: as ``verify_sets``.
    """
    deduced: tuple[Deduced, ...] = ()
    if request.deduced:
        deducing = partial(deduce, program, request.deduced, progress)
        deduced = deduced_by(certificate, program, deducing, progress)
    shown = shown_accesses(program, deduced) if deduced else {}
    heaps = request.heap_bytes, 2 * request.heap_bytes
    prepared = preparations(program)
    words = cache(lambda: words_of(program, request.heap_bytes, allowed, progress, prepared))
    proofs = {
        role: _deduced_proof(program, role, heaps, allowed, shown=shown.get(role), progress=progress)
        or prove_sets(program, role, heaps, allowed, progress, words, prepared)
        for role in ROLES
    }
    run = None
    if request.operations is not None:
        run = run_operations(
            program,
            allowed,
            request.heap_bytes,
            operations=request.operations,
            seed=request.seed,
            own_block_code=_own_block_code(allowed, proofs.values()),
            progress=progress,
            translations=translations(program, request.cache_dir),
        )
    requirements = tuple(_requirements(program.allocator, allowed, proofs, run, is_deduced=bool(shown)))
    return SetReport(request, program.image, allowed, proofs, run, requirements, deduced)


def _deduced_proof(
    program: Program,
    role: str,
    heaps: tuple[int, int],
    allowed: AllowedSets,
    *,
    shown: ShownAccesses | None,
    progress: Progress,
) -> SetProof | None:
    """What is proved without lemmas and flow facts, of what a solver showed; None where that is not all."""
    if shown is None:
        return None
    bare = replace(program, allocator=replace(program.allocator, facts=()))
    proof = prove_sets(bare, role, heaps, allowed, progress, prepared=preparations(bare), shown=shown)
    return proof if proof.holds and proof.is_constant else None


def _own_block_code(allowed: AllowedSets, proofs: Collection[SetProof]) -> frozenset[int] | None:
    """Instructions that may access the own block, or of which nothing is known; None: any."""
    may = {Justification.OWN, Justification.OUTSIDE}
    if not allowed.is_specified or any(proof.no_bound for proof in proofs):
        return None
    return frozenset(
        address for proof in proofs for address, justification in proof.justifications.items() if justification in may
    )


def _requirements(
    allocator: Allocator,
    allowed: AllowedSets,
    proofs: Mapping[str, SetProof],
    run: SetRun | None,
    *,
    is_deduced: bool = False,
) -> Iterator[Requirement]:
    for role in ROLES:
        yield _sets_requirement(role, allowed, proofs[role], run)
    if allocator.takes_cache_set and (run is not None or is_deduced):
        status = Status.PROVEN if is_deduced else Status.OBSERVED
        status = Status.REFUTED if run is not None and "start" in run.violations else status
        seen = f"{run.misplaced:,} of {run.operations[ROLES[0]] - run.refused:,} elsewhere" if run is not None else "-"
        established_by = "proof, by a solver" if is_deduced else "operations only"
        yield Requirement("malloc's block starts in its set", status, established_by, seen)
    for role in ROLES:
        yield _count_requirement(role, proofs[role], run)


def _sets_requirement(role: str, allowed: AllowedSets, proof: SetProof, run: SetRun | None) -> Requirement:
    outside = run.outside[role] if run else 0
    seen = f"{outside:,} of {run.operations[role]:,} outside" if run else "-"
    status = _under(proof.lemmas) if proof.holds else Status.NOT_PROVEN
    is_broken = run is not None and not run.violations.keys().isdisjoint({"alignment", "invariant", "stray"})
    if (outside or is_broken) and allowed.is_specified:
        status = Status.REFUTED
    return Requirement(f"{role} keeps to the allowed sets", status, _justification(proof), seen)


def _under(lemmas: object) -> Status:
    """What is to be said of what is proved where ``lemmas`` are not empty, or true."""
    return Status.UNDER_LEMMAS if lemmas else Status.PROVEN


def _justification(proof: SetProof) -> str:
    if proof.no_bound:
        return "no bound"
    if proof.possible_violations:
        return f"{proof.instructions[Justification.OUTSIDE]} instructions may not"
    if Justification.DEDUCED in proof.justifications.values():
        return "proof, by a solver"
    return f"proof, {len(proof.lemmas)} lemma{'s' * (len(proof.lemmas) != 1)}" if proof.lemmas else "proof"


def _count_requirement(role: str, proof: SetProof, run: SetRun | None) -> Requirement:
    seen = f"{run.most_accesses[role]:,}, {run.most_in_set[role]:,} a set" if run else "-"
    if not proof.counts:
        return Requirement(f"{role}: a constant number of accesses", Status.NOT_PROVEN, "no bound", seen)
    counts = [(bound.accesses, max(bound.by_set)) for bound in proof.counts.values()]
    sizes = [format_size(size) for size in proof.counts]
    accesses, in_set = counts[0]
    if not proof.is_constant:
        text = f"{role}: a constant number of accesses"
        grown = ", ".join(f"{most:,} in {size}" for (most, _), size in zip(counts, sizes, strict=True))
        return Requirement(text, Status.NOT_PROVEN, grown, seen)
    is_exceeded = run is not None and (run.most_accesses[role] > accesses or run.most_in_set[role] > in_set)
    return Requirement(
        f"{role}: at most {accesses:,} accesses, {in_set:,} a set",
        Status.REFUTED if is_exceeded else _under(proof.rests_on_facts),
        f"proof, {' and '.join(sizes)}",
        seen,
    )
