"""One answer: build the image, bring the heap into the scenario's state, prove that state, measure the one operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wcet_probe.model import Allocator, InitialCache, Report, Target


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What is asked.

    Attributes:
        allocator: with its parameter values chosen.
        target: with its caches as configured.
        scenario: name of the scenario.
        heap_bytes: size of the heap.
        seed: seed of a random scenario.
        initial_cache: content of the caches, or None for the scenario's own.
        compiler: ``zig`` (the packaged Clang) or a command such as ``clang-19`` or ``arm-none-eabi-gcc``.
        cross_check: whether the p-code interpreter repeats the measured call.
    """

    allocator: Allocator
    target: Target
    scenario: str
    heap_bytes: int
    seed: int
    initial_cache: InitialCache | None
    compiler: str
    cross_check: bool


def observe(request: ProbeRequest, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Answer ``request``; ``progress`` is told in words what is being done.

    Raises:
        UsageError: an unknown scenario, or a heap that cannot hold the state.
        BuildError: no image.
        EmulationError: the guest went astray.
        StateError: the predicted state was not reached.
        ContradictionError: the second engine disagrees.
    """
    raise NotImplementedError
