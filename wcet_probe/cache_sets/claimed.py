"""The allocators that claims to be deduced are written for, and what the deduction of each tells of its accesses.

*Soundness:* nothing is told of accesses where anything of any operation of the allocator is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.deduction import cama_claims, cama_views, half_fit_claims
from wcet_probe.analyzer.deduction.asked import Asking, asking_z3
from wcet_probe.analyzer.deduction.claims import Claim
from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.analyzer.proved_alignment import Shown
from wcet_probe.build.program import Program
from wcet_probe.cache_sets import deduction, half_fit_deduction
from wcet_probe.cache_sets.specification import ARENA_APART
from wcet_probe.errors import UsageError
from wcet_probe.progress import Progress

_Parts = tuple[Deduced, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """An allocator that claims are written for.

    Attributes:
        deduce: all parts of all of its operations.
        whole: of each operation what is to be deduced for all of it.
        shown: where accesses of operations go, by these parts; empty where anything is open.
        premises: what is assumed of the arena that init is given, by identifier.
        claims: of a program, each with a view of the memory of which nothing is known.
    """

    deduce: Callable[[Program, Progress, Asking], _Parts]
    whole: Mapping[str, tuple[str, ...]]
    shown: Callable[[Program, _Parts, Iterable[str]], Mapping[str, Shown]]
    premises: tuple[str, ...]
    claims: Callable[[Program], Iterable[tuple[Claim, object]]]


def claimed(name: str) -> Claimed:
    """What claims are written for the allocator ``name``.

    Raises:
        UsageError: none are.
    """
    if name not in CLAIMED:
        raise UsageError(
            f"claims to be deduced are written for {' and '.join(CLAIMED)}, not for {name}: leave --deduce out."
        )
    return CLAIMED[name]


def _of_cama(program: Program, progress: Progress, asked: Asking = asking_z3) -> _Parts:
    return deduction.deduce(program, (deduction.ALL,), progress, asked)


def _shown_of_cama(program: Program, parts: _Parts, roles: Iterable[str]) -> Mapping[str, Shown]:
    shown = deduction.shown_accesses(program, parts, roles)
    geometry = deduction.geometry_of(program)
    cache = geometry.sets, geometry.line_bytes
    return {role: Shown(one.aligned, one.sets, cache) for role, one in shown.items()}


def _claims_of_cama(program: Program) -> Iterator[tuple[Claim, object]]:
    view = cama_views.view_of("")
    return ((one, view) for one in cama_claims.claims(deduction.geometry_of(program)))


def _claims_of_half_fit(program: Program) -> Iterator[tuple[Claim, object]]:
    view = half_fit_claims.view_of("")
    return ((one, view) for one in half_fit_claims.half_fit_claims(half_fit_deduction.geometry_of(program)))


CLAIMED: Mapping[str, Claimed] = {
    "cama": Claimed(_of_cama, deduction.WHOLE, _shown_of_cama, (ARENA_APART,), _claims_of_cama),
    "half-fit": Claimed(
        half_fit_deduction.deduce,
        half_fit_deduction.WHOLE,
        half_fit_deduction.shown_accesses,
        (ARENA_APART, half_fit_deduction.ARENA_NOT_WRAPPED),
        _claims_of_half_fit,
    ),
}
"""By the allocator's name."""
