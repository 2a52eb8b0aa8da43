"""What a solver shows of half-fit's own claims, operation by operation.

*Soundness:* what is shown of one operation is shown under the claims, which are assumed at its entry; they are facts
only when every operation keeps them. So nothing is said of accesses where anything of any operation is open or was not
asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wcet_probe.analyzer.deduction import half_fit_operations as half_fit
from wcet_probe.analyzer.deduction.asked import Asking, Course, asking_z3
from wcet_probe.analyzer.deduction.half_fit_claims import UNIT, HalfFitGeometry
from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.proved_alignment import Shown
from wcet_probe.build.program import Program
from wcet_probe.cache_sets.deduction import ENTRY_POINTS, REGISTERS, told_of, whole_operations
from wcet_probe.errors import UsageError
from wcet_probe.progress import Progress, silent

OPERATIONS = ("init", "caller", "malloc", "free")
"""What is deduced: ``caller`` is what the caller writes."""
WHOLE: Mapping[str, tuple[str, ...]] = {
    "init": ("init",),
    "what the caller writes": ("caller",),
    "free": ("free",),
    "malloc": ("malloc",),
}
"""Of each operation what is to be deduced for all of it."""
ARENA_NOT_WRAPPED = "arena-not-wrapped"
"""The premise that the arena that init is given ends where the address space does at the latest."""
_NO_CACHE = 0, 0
_CONTROL = "half_fit_control"


def deduce(program: Program, progress: Progress = silent, asked: Asking = asking_z3) -> tuple[Deduced, ...]:
    """What comes of all `OPERATIONS`.

    Parameters:
        asked: who is asked of each operation.

    Raises:
        UsageError: claims are not written for this build, or z3 is not installed.
    """
    return tuple(deduced(program, one, progress, asked) for one in OPERATIONS)


def deduced(program: Program, operation: str, progress: Progress = silent, asked: Asking = asking_z3) -> Deduced:
    """What comes of one of `OPERATIONS`; as `deduce`.

    Raises:
        UsageError: as `deduce`.
    """
    geometry, image = geometry_of(program), program.image
    told = told_of(operation, progress)
    told()
    course = Course(told, asked(operation))
    if operation == "caller":
        return half_fit.deduce_caller(geometry, Course(asked=course.asked))  # it has no ways
    lifter = image_lifter(program.target.pcode_language, image.isa, image.segments)
    registers = REGISTERS[lifter.isa]
    entry = image.symbols[program.allocator.entry_points[operation]].address
    if operation == "init":
        return half_fit.deduce_init(geometry, lifter, entry, registers, course)
    step = half_fit.deduce_malloc if operation == "malloc" else half_fit.deduce_free
    return step(geometry, lifter, entry, (registers[0], registers[2]), course)


def shown_accesses(program: Program, parts: Iterable[Deduced], roles: Iterable[str]) -> Mapping[str, Shown]:
    """Of the ``roles``, the classes of the addresses of their accesses; of none, where not all is shown as a whole."""
    by_name = {one.operation: one for one in parts}
    if not all(whole_operations(by_name.values(), WHOLE).values()):
        return {}
    if not program.allocator.entry_points.keys() <= ENTRY_POINTS:
        return {}
    return {role: Shown(by_name[role].aligned, {}, _NO_CACHE) for role in roles}


def geometry_of(program: Program) -> HalfFitGeometry:
    """What the claims depend on of this build.

    Raises:
        UsageError: as `deduce`.
    """
    allocator, image = program.allocator, program.image
    if allocator.name != "half-fit" or _CONTROL not in image.symbols:
        raise UsageError(f"these claims are written for half-fit, not for {allocator.name}: leave --deduce out.")
    control = image.symbols[_CONTROL].address
    if allocator.values["alignment"] != UNIT or control % UNIT:
        raise UsageError(f"half-fit's claims want payloads and {_CONTROL} at multiples of {UNIT}: leave --deduce out.")
    data = [one for one in image.segments if one.writable]
    ends = min(one.address for one in data), max(one.address + one.size_bytes for one in data)
    return HalfFitGeometry(control, ends)
