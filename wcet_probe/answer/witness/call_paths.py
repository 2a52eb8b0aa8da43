"""What a proof says of data accesses on each call path, held against the path that a call took.

The tables that every run is held against put the contexts of an instruction together, and the copies of its block
(`model.access_claims`): a fact that is false on one path is not found there if what is true on another allows the
address. Here a call is followed through the points of the proof, and each access is held against its own. The native
core does the same with each call that it observes (`emu.call_path_tables`).

Where a path may be at several points, each of them is followed; one must be left of which all is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.errors import ContradictionError
from wcet_probe.model.access_claims import AddressRange
from wcet_probe.model.image import Image
from wcet_probe.model.proof import AccessRange, Bound
from wcet_probe.model.target import CacheConfig, MemoryRange, Target

_RETURN = None


def check_call_path(
    bound: Bound,
    path: Sequence[int],
    accesses: Sequence[DataAccess],
    image: Image,
    target: Target,
    *,
    frames: MemoryRange,
    subject: str,
) -> None:
    """There must be a way through the points of ``bound`` on which each access is where the proof says it is there.

    Parameters:
        bound: what was proved; where it has summarised callees, or no points that lead to each other, nothing is held.
        path: addresses of the executed instructions, in order, from the entry to the return.
        accesses: of the call, in order.
        image, target: what was run.
        frames: the stack that the call used; it ends at the stack pointer at entry.
        subject: what was run, in words.

    Raises:
        ContradictionError: there is none.
    """
    if bound.summarised or not bound.point_edges:
        return
    paths = _Paths(bound, target.dcache, frames)
    points, own = frozenset({0}), 0
    for step, address in enumerate(path):
        if step:
            points = paths.behind(points, path[step - 1], address)
        if not points:
            raise _contradicted(
                f"control went from {image.location(path[step - 1])} to {image.location(address)} in {subject}, which "
                "the value analysis excludes on this call path"
            )
        while own < len(accesses) and accesses[own].step == step:
            left = frozenset(point for point in points if paths.allows(point, accesses[own]))
            if not left:
                raise _astray(accesses[own], paths.facts(points, accesses[own]), image, subject)
            points, own = left, own + 1
    if not any(paths.returns(point) for point in points):
        raise _contradicted(
            f"the call returned at {image.location(path[-1])} in {subject}, which the value analysis excludes on this "
            "call path"
        )


def _astray(one: DataAccess, facts: Sequence[str], image: Image, subject: str) -> ContradictionError:
    what = "store" if one.is_store else "load"
    rests = f"; the fact {', '.join(facts)} speaks of it" if facts else ""
    return _contradicted(
        f"the {what} at {image.location(one.instruction_address)} accessed {one.address:#010x} in {subject}, against "
        f"what the proof says of it on this call path{rests}"
    )


def _contradicted(what: str) -> ContradictionError:
    return ContradictionError(f"CONTRADICTED: {what}; correct the fact, or report this with the command line.")


@dataclass(frozen=True, slots=True)
class _Claim:
    """One of the accesses that an instruction makes at a point."""

    addresses: AddressRange
    told: AccessRange


class _Paths:
    """The points of a bound, and what it says of the accesses at each."""

    def __init__(self, bound: Bound, cache: CacheConfig | None, frames: MemoryRange) -> None:
        self._cache, self._frames = cache, frames
        self._blocks = [(address, end) for (address, _), end in zip(bound.points, bound.point_ends, strict=True)]
        self._next: dict[tuple[int, int], list[int]] = {}
        self._returning = {source for source, target in bound.point_edges if target is _RETURN}
        for source, target in bound.point_edges:
            if target is not None:
                self._next.setdefault((source, bound.points[target][0]), []).append(target)
        self._claims: dict[tuple[int | None, int, bool], list[_Claim]] = {}
        for one in bound.accesses:
            addresses = AddressRange(one.low, one.stride, one.steps, one.base == "stack")
            self._claims.setdefault((one.point, one.address, one.is_store), []).append(_Claim(addresses, one))

    def behind(self, points: frozenset[int], before: int, address: int) -> frozenset[int]:
        """Where control may be at ``address``, having been at one of ``points`` at ``before``."""
        found: list[int] = []
        for point in points:
            start, end = self._blocks[point]
            if start <= before < address < end:
                found.append(point)
            else:
                found += self._next.get((point, address), ())
        return frozenset(found)

    def returns(self, point: int) -> bool:
        """Whether the call may return from there."""
        return point in self._returning

    def allows(self, point: int, one: DataAccess) -> bool:
        """Whether ``one`` is where the proof says it is at ``point``."""
        return any(self._holds(claim, one) for claim in self._of(point, one))

    def facts(self, points: frozenset[int], one: DataAccess) -> Sequence[str]:
        """The facts that what is said of ``one`` at ``points`` rests on."""
        return sorted({claim.told.fact for point in points for claim in self._of(point, one)} - {""})

    def _of(self, point: int, one: DataAccess) -> Sequence[_Claim]:
        place = one.instruction_address, one.is_store
        return (*self._claims.get((point, *place), ()), *self._claims.get((None, *place), ()))

    def _holds(self, claim: _Claim, one: DataAccess) -> bool:
        told, cache = claim.told, self._cache
        if not claim.addresses.contains(one.address, self._frames.end_address):
            return False
        if one.is_store and told.base == "number" and one.address in self._frames:
            return False
        if cache is None:
            return True
        lines = range(one.address // cache.line_bytes, (one.address + one.size_bytes - 1) // cache.line_bytes + 1)
        if told.sets is not None and any(line % cache.sets not in told.sets for line in lines):
            return False
        return not told.is_one_line or len(lines) == 1 or one.size_bytes > cache.line_bytes
