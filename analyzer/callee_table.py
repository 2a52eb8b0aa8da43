"""Certificates of callees that are not expanded: what the checker makes of one, and where that is not enough.

Words: certificate, summary (docs/explanation/glossary.md).

*Soundness:* none is claimed; the checker tests what they say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.certificate.kernel.called import Callee


@dataclass(frozen=True, slots=True)
class CertifiedCallee:
    """What the checker finds of a callee by its certificates, and these: of the instructions and of the cycles.

    Whether that rests on *stack-separation*, ``is_separate`` tells.
    """

    callee: Callee
    texts: tuple[str, str]
    is_separate: bool = False


class CalledFor(NamedTuple):
    """For which calls a callee is certified: where registers that are ``unknown`` may hold anything.

    Whether it rests on *stack-separation*, ``is_separate`` tells.
    """

    unknown: frozenset[str]
    is_separate: bool


class UnmetError(Exception):
    """Callees are called where registers may hold more than they were certified for, by the callee's address."""

    def __init__(self, registers: Mapping[int, frozenset[str]]) -> None:
        super().__init__("a callee is called for more than it was certified for.")
        self.registers = registers


def demand_met(unmet: Mapping[int, Collection[str]]) -> None:
    """Check that no callee is called for more than it was certified for.

    Raises:
        UnmetError: one is.
    """
    if unmet:
        raise UnmetError({address: frozenset(registers) for address, registers in unmet.items()})
