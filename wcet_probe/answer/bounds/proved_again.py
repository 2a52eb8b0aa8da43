"""Proofs on demand: the analyzer is loaded when something is to be proved, and not before."""

# ruff: noqa: PLC0415  (that is the purpose)

from __future__ import annotations

from collections.abc import Sequence

from wcet_probe.build.program import Program
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import Bound


def prove_anew(program: Program, role: str, heap_bytes: int) -> Bound:
    """As `prove_operation`.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: a flow fact is wrong.
    """
    from wcet_probe.answer.bounds.proving import prove_operation

    return prove_operation(program, role, heap_bytes)


def proved_again(kept: Sequence[Bound], program: Program, role: str, heap_bytes: int) -> Bound:
    """The bound that was ``kept``, with certificates, by a proof of now, which must find the very same bound.

    Raises:
        AnalysisError: it finds another.
    """
    bound = prove_anew(program, role, heap_bytes)
    if [bound] != list(kept):
        message = (
            f"the bound of {role} that the cache keeps is not the one that is proved now; remove its folder bounds."
        )
        raise AnalysisError(message)
    return bound
