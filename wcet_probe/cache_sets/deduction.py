"""What a solver shows of an allocator's own claims, operation by operation: CAMA's, on PowerPC.

*Soundness:* nothing of it enters a verdict. What is shown of one operation is shown under the claims, which are assumed
at its entry; they are facts only when every operation keeps them, and of malloc only a part is looked at yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from wcet_probe.analyzer.deduction import cama_operations as cama
from wcet_probe.analyzer.deduction.cama_free import deduce_free_large, deduce_free_small
from wcet_probe.analyzer.deduction.cama_geometry import Geometry
from wcet_probe.analyzer.deduction.cama_grow import deduce_malloc_grow
from wcet_probe.analyzer.deduction.cama_obligations import Deduced
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.build.program import Program
from wcet_probe.errors import UsageError
from wcet_probe.model.target import Isa
from wcet_probe.progress import Progress, silent

OPERATIONS = ("init", "caller", "free-small", "free-large", "malloc-small", "malloc-grow")
"""What can be deduced: ``caller`` is what the caller writes, ``free-small`` free of null or a small block,
``malloc-small`` malloc where it reads neither the break nor the head of a list of large blocks, ``malloc-grow`` malloc
where no list has a block, up to where one is found."""
ALL = "all"
"""All of `OPERATIONS`."""
WHOLE: Mapping[str, tuple[str, ...]] = {
    "init": ("init",),
    "what the caller writes": ("caller",),
    "free": ("free-small", "free-large"),
    "malloc": (),
}
"""Of each operation what is to be deduced for all of it; nothing where some of its ways cannot be deduced."""
_STATIC = "cama_control", "cama_tables"
_ARGUMENTS, _STACK_POINTER = ("r3", "r4"), "r1"


def deduce(program: Program, operations: Iterable[str], progress: Progress = silent) -> tuple[Deduced, ...]:
    """What comes of ``operations``, of `OPERATIONS` or `ALL`, in the order given, each once.

    Raises:
        UsageError: claims are not written for this allocator, build or instruction set, or z3 is not installed.
    """
    geometry = geometry_of(program)
    image, target = program.image, program.target
    lifter = image_lifter(target.pcode_language, image.isa, image.segments)
    found = []
    asked = (one for each in operations for one in (OPERATIONS if each == ALL else (each,)))
    for operation in dict.fromkeys(asked):
        progress(f"deducing that {'what the caller writes' if operation == 'caller' else operation} keeps the claims")
        found.append(_STEPS[operation](program, geometry, lifter))
    return tuple(found)


def whole_operations(deduced: Iterable[Deduced]) -> Mapping[str, bool]:
    """Of each operation, of `WHOLE`, whether all of it was deduced and nothing of it is open."""
    shown = {one.operation for one in deduced if not one.open}
    return {name: bool(parts) and shown.issuperset(parts) for name, parts in WHOLE.items()}


def geometry_of(program: Program) -> Geometry:
    """What the claims depend on of this build.

    Raises:
        UsageError: as `deduce`.
    """
    allocator, image = program.allocator, program.image
    values = allocator.values
    if allocator.name != "cama" or not image.symbols.keys() >= set(_STATIC):
        raise UsageError(f"claims to be deduced are written for cama, not for {allocator.name}.")
    if image.isa is not Isa.POWERPC or values["descriptor-first-set"]:
        raise UsageError(
            "CAMA's claims are deduced on PowerPC and with reserved sets from set 0 on: choose such a target and leave "
            "descriptor-first-set at 0."
        )
    if any(image.symbols[name].address % (values["cache-sets"] * values["line-bytes"]) for name in _STATIC):
        raise UsageError("CAMA's claims want static data that begin with cache pages: leave their alignment as it is.")
    data = [one for one in image.segments if one.writable]
    size_of_sentinel = image.symbols["cama_control"].address + 52
    at_start = (
        one.data[max(0, size_of_sentinel - one.address) :][:4] for one in data if one.address <= size_of_sentinel
    )
    if any(map(any, at_start)):
        raise UsageError("CAMA's claims want a sentinel of size 0 in the image: leave cama_control uninitialised.")
    return Geometry(
        sets=values["cache-sets"],
        line_bytes=values["line-bytes"],
        reserved_sets=values["descriptor-sets"],
        classes=values["sl"] * values["tl"],
        classes_per_row=values["tl"],
        control=image.symbols["cama_control"].address,
        tables=image.symbols["cama_tables"].address,
        data=(min(one.address for one in data), max(one.address + one.size_bytes for one in data)),
    )


def _entry(program: Program, role: str) -> int:
    return program.image.symbols[program.allocator.entry_points[role]].address


def _init(program: Program, geometry: Geometry, lifter: Lifter) -> Deduced:
    return cama.deduce_init(geometry, lifter, _entry(program, "init"), (*_ARGUMENTS, _STACK_POINTER))


def _caller(_: Program, geometry: Geometry, __: Lifter) -> Deduced:
    return cama.deduce_caller(geometry)


def _free(program: Program, geometry: Geometry, lifter: Lifter, *, small: bool) -> Deduced:
    step = deduce_free_small if small else deduce_free_large
    return step(geometry, lifter, _entry(program, "free"), (_ARGUMENTS[0], _STACK_POINTER))


def _malloc_small(program: Program, geometry: Geometry, lifter: Lifter) -> Deduced:
    return cama.deduce_malloc_small(geometry, lifter, _entry(program, "malloc"), (*_ARGUMENTS, _STACK_POINTER))


def _malloc_grow(program: Program, geometry: Geometry, lifter: Lifter) -> Deduced:
    return deduce_malloc_grow(geometry, lifter, _entry(program, "malloc"), (*_ARGUMENTS, _STACK_POINTER))


_STEPS: Mapping[str, Callable[[Program, Geometry, Lifter], Deduced]] = {
    "init": _init,
    "caller": _caller,
    "free-small": partial(_free, small=True),
    "free-large": partial(_free, small=False),
    "malloc-small": _malloc_small,
    "malloc-grow": _malloc_grow,
}
