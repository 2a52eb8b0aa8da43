"""What a proof says held against what a run did: one violation is a contradiction, and is named.

The bound itself, the iterations of each loop, the sums that flow facts speak of, and the address of each data access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.errors import ContradictionError
from wcet_probe.model.image import Image
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import AccessRange, Bound, LoopClaim, RegisterRange
from wcet_probe.model.target import MemoryRange, Target
from wcet_probe.model.watched_loop import LoopCount

Executions = Callable[[Sequence[int]], Sequence[int]]
"""Executions of the instructions at some addresses, in the run that is held against the proof."""


def check_counts(bound: Bound, measurement: Measurement, subject: str) -> None:
    """``measurement`` must not exceed ``bound``; ``subject`` says in words what was run.

    Raises:
        ContradictionError: it does.
    """
    for unit in ("instructions", "cycles"):
        check_most(bound, unit, getattr(measurement, unit), subject)


def check_most(bound: Bound, unit: str, observed: int, subject: str) -> None:
    """``observed``, in ``unit`` (``instructions`` or ``cycles``), must not exceed ``bound``.

    Raises:
        ContradictionError: it does.
    """
    proved = getattr(bound, unit)
    if observed > proved:
        raise _contradiction(f"{bound.entry} took {observed:,} {unit} in {subject}, and at most {proved:,} were proved")


def check_loops(claims: Iterable[LoopClaim], counts: Iterable[LoopCount], image: Image, subject: str) -> None:
    """No loop may have repeated more often for one entry than is claimed.

    Raises:
        ContradictionError: one has.
    """
    observed = {count.name: count.max_header_executions for count in counts}
    for claim in claims:
        if observed[claim.loop.name] > claim.max_header:
            source = f" ({claim.origin} {claim.where})" if claim.where else f" ({claim.origin})"
            raise _contradiction(
                f"the loop at {image.location(claim.loop.header_address)} ran its header {observed[claim.loop.name]:,} "
                f"times for one entry in {subject}, and at most {claim.max_header:,} are claimed{source}"
            )


def check_flows(bound: Bound, counts: Iterable[LoopCount], executions: Executions, subject: str) -> tuple[int, ...]:
    """What flow facts say of one call of the entry must hold for the one that was run.

    Returns:
        the sum that each claim of ``bound`` is about.

    Raises:
        ContradictionError: it does not.
    """
    entries = {count.name: count.entries for count in counts}
    sums: list[int] = []
    for claim in bound.flow_claims:
        executed = executions([address for address, _ in claim.blocks])
        total = sum(weight * number for (_, weight), number in zip(claim.blocks, executed, strict=True))
        total += sum(weight * entries.get(name, 0) for name, weight in claim.entries)
        if total > claim.constant:
            raise _contradiction(
                f"the flow fact {claim.where} is false in {subject}: {claim.statement}; the sum was {total:,}, "
                f"and at most {claim.constant:,} is claimed"
            )
        sums.append(total)
    return tuple(sums)


def check_accesses(
    bound: Bound,
    accesses: Iterable[DataAccess],
    image: Image,
    target: Target,
    *,
    frames: MemoryRange,
    subject: str,
) -> None:
    """Every data access of a call must be where the value analysis says, and meet the assumptions on accesses.

    Parameters:
        bound: what was proved.
        accesses: of the call, in order.
        image, target: what was run.
        frames: the stack that the call used; it ends at the stack pointer at entry.
        subject: what was run, in words.

    Raises:
        ContradictionError: an access is elsewhere.
    """
    visited: set[int] = set()
    changes: Counter[tuple[str, int]] = Counter()
    before: int | None = None
    line_bytes, sets = (target.dcache.line_bytes, target.dcache.sets) if target.dcache else (1, 1)
    allowed: dict[tuple[int, bool], list[AccessRange]] = {}
    for access in bound.accesses:
        allowed.setdefault((access.address, access.is_store), []).append(access)
    checks: Mapping[str, Callable[[DataAccess, Sequence[AccessRange]], bool]] = {
        "outside of what the value analysis allows there": lambda one, ranges: any(
            _contains(each, one.address, frames.end_address) for each in ranges
        ),
        "in a set of the cache that is excluded there": lambda one, ranges: any(
            each.sets is None or each.sets.issuperset(number % sets for number in _lines(one, line_bytes))
            for each in ranges
        ),
        "in the call's own stack, against the assumption stack-separation": lambda one, ranges: (
            not one.is_store or one.address not in frames or any(each.base != "number" for each in ranges)
        ),
        "across a cache line, against the proof or its assumption alignment": lambda one, ranges: (
            not _crosses(one, target) or any(not each.is_one_line for each in ranges)
        ),
        "in a line that was not loaded from on a first visit, or was stored to since, against a fact about visits": (
            lambda one, ranges: one.address // line_bytes in visited or any(each.visit != "again" for each in ranges)
        ),
    }
    for one in accesses:
        ranges = allowed.get((one.instruction_address, one.is_store), [])
        for reason, holds in checks.items():
            if not holds(one, ranges):
                what = "store" if one.is_store else "load"
                raise _contradiction(
                    f"the {what} at {image.location(one.instruction_address)} accessed {one.address:#010x} in "
                    f"{subject}, {reason}"
                )
        line = one.address // line_bytes
        counted = {each.line_changes for each in ranges if each.line_changes is not None and line != before}
        changes.update(counted)
        exceeded = next((told for told in counted if changes[told] > told[1]), None)
        if exceeded is not None:
            raise _contradiction(
                f"more than {exceeded[1]} accesses went to another line than the access before in {subject}, the last "
                f"one at {image.location(one.instruction_address)}, against the fact {exceeded[0]}"
            )
        before = (one.address + one.size_bytes - 1) // line_bytes
        if one.is_store:
            visited -= {one.address // line_bytes, (one.address + one.size_bytes - 1) // line_bytes}
        if any(each.visit == "first" for each in ranges):
            visited.add(one.address // line_bytes)


def register_check(
    bound: Bound, image: Image, stack_pointer: int, subject: str
) -> Callable[[int, Callable[[str], int]], None]:
    """A visitor of a call's instructions that holds the registers at each block's entry against what is proved.

    It raises ContradictionError where a register is outside of the ranges of all points of the block, which has one for
    each context, or several copies of it.
    """
    grouped: dict[int, dict[str, list[RegisterRange]]] = {}
    points = Counter(address for address, _ in bound.points)
    for one in bound.registers:
        grouped.setdefault(one.address, {}).setdefault(one.register, []).append(one)

    def visit(address: int, read: Callable[[str], int]) -> None:
        for register, ranges in grouped.get(address, {}).items():
            if len(ranges) < points[address]:
                continue  # at some point it may be anything
            value = read(register)
            if not any(_contains(each, value, stack_pointer) for each in ranges):
                raise _contradiction(
                    f"{register} was {value:#x} at {image.location(address)} in {subject}, outside of what the value "
                    "analysis allows there"
                )

    return visit


def _contains(allowed: AccessRange | RegisterRange, address: int, stack_pointer: int) -> bool:
    offset = address - allowed.low - (stack_pointer if allowed.base == "stack" else 0) & 0xFFFFFFFF
    if not allowed.stride:
        return offset == 0
    return offset % allowed.stride == 0 and offset // allowed.stride <= allowed.steps


def _crosses(access: DataAccess, target: Target) -> bool:
    cache = target.dcache
    if cache is None or access.size_bytes > cache.line_bytes:
        return False
    return len(_lines(access, cache.line_bytes)) > 1


def _lines(access: DataAccess, line_bytes: int) -> range:
    """The lines that ``access`` is to."""
    return range(access.address // line_bytes, (access.address + access.size_bytes - 1) // line_bytes + 1)


def _contradiction(what: str) -> ContradictionError:
    return ContradictionError(f"CONTRADICTED: {what}; correct the fact, or report this with the command line.")
