# SPDX-License-Identifier: 0BSD
"""What a certificate is held against, and how the checker says what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.model.image import Image, VariableLocation
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.target import Target

OK, OPEN = "ok", "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer: what was looked at, ``ok`` or ``not checked``, and what was found."""

    check: str
    verdict: str
    found: str


@dataclass(frozen=True, slots=True)
class Binary:
    """What a bound is held against, and what is trusted of it.

    Attributes:
        image: the binary.
        instructions: its code, decoded again.
        costs: of each instruction, by the target's table.
        target: the core.
        asserted: the facts, as their files say.
        parameters: those of the run that facts speak of; None where nobody but the result tells them.
        variables: which registers hold variables, as the debug information says; asked only of facts about conditions.
        entry_points: of an allocator, by role.
        progress: is told how much of a long run is executed.
        named: what a module certificate of it has to call itself: allocator, parameters, target, size of the heap.
        unshared: where functions begin whose code is of one place of the source each; asked only of facts about places.
    """

    image: Image
    instructions: Sequence[Instruction]
    costs: Sequence[InstructionCost]
    target: Target
    asserted: Asserted
    parameters: Mapping[str, int] | None
    variables: Sequence[VariableLocation] = ()
    entry_points: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, object] = field(default_factory=dict)
    progress: Callable[[str, int, int], None] = lambda _text, _done, _total: None
    unshared: frozenset[int] = frozenset()
