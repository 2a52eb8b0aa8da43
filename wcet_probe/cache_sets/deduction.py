"""What a solver shows of an allocator's own claims, operation by operation: CAMA's.

*Soundness:* what is shown of one operation is shown under the claims, which are assumed at its entry; they are facts
only when every operation keeps them. So nothing is said of accesses where anything of any operation is open or was not
asked for. Each way from an entry is in a part that follows it to its end: one that a part leaves is left where another
one follows it on, by what was found in the lists (`analyzer.deduction.cama_tables`) or by the load of the break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from wcet_probe.analyzer.deduction import cama_operations as cama
from wcet_probe.analyzer.deduction.asked import Asking, Course, asking_z3
from wcet_probe.analyzer.deduction.cama_free import deduce_free_large, deduce_free_small
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_grow import deduce_malloc_grow
from wcet_probe.analyzer.deduction.cama_take import deduce_malloc_large
from wcet_probe.analyzer.deduction.obligations import Deduced, Reached, aligned_by, reached_by
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.build.program import Program
from wcet_probe.errors import UsageError
from wcet_probe.model.target import Isa
from wcet_probe.progress import Progress, silent

OPERATIONS = ("init", "caller", "free-small", "free-large", "malloc-small", "malloc-large", "malloc-grow")
"""What can be deduced: ``caller`` is what the caller writes, ``free-small`` free of null or a small block,
``malloc-small`` malloc where it reads neither the break nor the head of a list of large blocks, ``malloc-large`` malloc
where a list of large blocks has a block, ``malloc-grow`` malloc where no list has one."""
ENTRY_POINTS = {"init", "malloc", "free", "check"}
"""Of an allocator with others not all operations can be deduced; the check of the heap is there for tests."""
ALL = "all"
"""All of `OPERATIONS`."""
WHOLE: Mapping[str, tuple[str, ...]] = {
    "init": ("init",),
    "what the caller writes": ("caller",),
    "free": ("free-small", "free-large"),
    "malloc": ("malloc-small", "malloc-large", "malloc-grow"),
}
"""Of each operation what is to be deduced for all of it."""
_STATIC = "cama_control", "cama_tables"
REGISTERS = {Isa.POWERPC: ("r3", "r4", "r1"), Isa.ARM: ("r0", "r1", "sp"), Isa.THUMB: ("r0", "r1", "sp")}
"""Of each instruction set those of two arguments, the first of them also of the result, and of the stack pointer."""


def deduce(
    program: Program, operations: Iterable[str], progress: Progress = silent, asked: Asking = asking_z3
) -> tuple[Deduced, ...]:
    """What comes of ``operations``, of `OPERATIONS` or `ALL`, in the order given, each once.

    Parameters:
        asked: who is asked of each operation.

    Raises:
        UsageError: claims are not written for this allocator or build, or z3 is not installed.
    """
    geometry = geometry_of(program)
    image, target = program.image, program.target
    lifter = image_lifter(target.pcode_language, image.isa, image.segments)
    found = []
    for operation in named(operations):
        told = told_of(operation, progress)
        told()
        found.append(_STEPS[operation](program, geometry, lifter, Course(told, asked(operation))))
    return tuple(found)


def named(operations: Iterable[str]) -> tuple[str, ...]:
    """``operations``, of `OPERATIONS` or `ALL`, in the order given, each once.

    Raises:
        UsageError: one is none of them.
    """
    found = tuple(dict.fromkeys(one for each in operations for one in (OPERATIONS if each == ALL else (each,))))
    for one in found:
        if one not in OPERATIONS:
            raise UsageError(f"{one} is nothing that is deduced of cama; what is: {', '.join(OPERATIONS)}.")
    return found


def told_of(operation: str, progress: Progress) -> Callable[[], None]:
    """What is called where ``operation`` begins and at the end of each of its ways, of which nobody knows how many."""
    what = "what the caller writes" if operation == "caller" else operation
    ways = count()

    def told() -> None:
        way = next(ways)
        progress(f"deducing that {what} keeps the claims{f', ways followed: {way}' if way else ''}")

    return told


def whole_operations(deduced: Iterable[Deduced], whole: Mapping[str, tuple[str, ...]] = WHOLE) -> Mapping[str, bool]:
    """Of each operation of ``whole``, whether all parts of it were deduced and nothing of them is open."""
    shown = {one.operation for one in deduced if not one.open}
    return {name: shown.issuperset(parts) for name, parts in whole.items()}


@dataclass(frozen=True, slots=True)
class ShownAccesses:
    """Where an operation's accesses go, which is shown as a whole: each is on the stack or as told here.

    Attributes:
        sets: of instructions that access static data and descriptors only, the sets.
        own: instructions that access the call's own block only, its first word or the word before it.
        mixed: instructions that access both, or the stack. What is not here either is on no way.
        aligned: of all of them, the classes of the addresses.
    """

    sets: Mapping[int, frozenset[int]]
    own: frozenset[int]
    mixed: frozenset[int]
    aligned: Mapping[int, frozenset[Congruence]] = field(default_factory=dict)


def shown_accesses(
    program: Program, deduced: Iterable[Deduced], roles: Iterable[str] = ("malloc", "free")
) -> Mapping[str, ShownAccesses]:
    """Of the ``roles``, where their accesses go; of none, where not all operations are shown as a whole.

    *Soundness:* as said of the module. What no way reaches is not executed, whatever the state of the heap.

    Raises:
        UsageError: as `deduce`.
    """
    parts = tuple(deduced)
    if not all(whole_operations(parts).values()) or not program.allocator.entry_points.keys() <= ENTRY_POINTS:
        return {}
    geometry = geometry_of(program)
    found = {}
    for role in roles:
        own_parts = [one for one in parts if one.operation in WHOLE[role]]
        reached, aligned = reached_by(own_parts), aligned_by(own_parts)
        own = frozenset(address for address, what in reached.items() if what == {Reached.BLOCK})
        sets = {
            address: frozenset().union(*(_sets_of(one, geometry) for one in what))
            for address, what in reached.items()
            if what.isdisjoint({Reached.BLOCK, Reached.STACK})
        }
        found[role] = ShownAccesses(sets, own, frozenset(reached.keys() - sets.keys() - own), aligned)
    return found


def _sets_of(what: Reached, geometry: Geometry) -> frozenset[int]:
    first = PLACE_BYTES // geometry.line_bytes if what is Reached.DESCRIPTOR else 0
    last = (2 * PLACE_BYTES - 1) // geometry.line_bytes if what is Reached.CONTROL else geometry.reserved_sets - 1
    return frozenset(range(first, last + 1))


def geometry_of(program: Program) -> Geometry:
    """What the claims depend on of this build.

    Raises:
        UsageError: as `deduce`.
    """
    allocator, image = program.allocator, program.image
    values = allocator.values
    if allocator.name != "cama" or not image.symbols.keys() >= set(_STATIC):
        raise UsageError(f"claims to be deduced are written for cama, not for {allocator.name}: leave --deduce out.")
    if values["descriptor-first-set"]:
        raise UsageError("CAMA's claims are deduced with reserved sets from set 0 on: leave descriptor-first-set at 0.")
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


def _init(program: Program, geometry: Geometry, lifter: Lifter, course: Course) -> Deduced:
    return cama.deduce_init(geometry, lifter, _entry(program, "init"), REGISTERS[lifter.isa], course)


def _caller(_: Program, geometry: Geometry, __: Lifter, course: Course) -> Deduced:
    return cama.deduce_caller(geometry, Course(asked=course.asked))  # it has no ways


def _free(program: Program, geometry: Geometry, lifter: Lifter, course: Course, *, small: bool) -> Deduced:
    step = deduce_free_small if small else deduce_free_large
    return step(geometry, lifter, _entry(program, "free"), REGISTERS[lifter.isa][::2], course)


def _malloc_small(program: Program, geometry: Geometry, lifter: Lifter, course: Course) -> Deduced:
    return cama.deduce_malloc_small(geometry, lifter, _entry(program, "malloc"), REGISTERS[lifter.isa], course)


def _malloc(program: Program, geometry: Geometry, lifter: Lifter, course: Course, *, large: bool) -> Deduced:
    step = deduce_malloc_large if large else deduce_malloc_grow
    return step(geometry, lifter, _entry(program, "malloc"), REGISTERS[lifter.isa], course)


_STEPS: Mapping[str, Callable[[Program, Geometry, Lifter, Course], Deduced]] = {
    "init": _init,
    "caller": _caller,
    "free-small": partial(_free, small=True),
    "free-large": partial(_free, small=False),
    "malloc-small": _malloc_small,
    "malloc-large": partial(_malloc, large=True),
    "malloc-grow": partial(_malloc, large=False),
}
