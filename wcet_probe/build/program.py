"""An allocator built for a target and made ready to run: image, instructions, their costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from wcet_probe.build.compilation import build_image
from wcet_probe.identity import Same
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.target import Target


@dataclass(frozen=True, slots=True)
class Program:
    """What a machine runs.

    Attributes:
        allocator: with its parameter values.
        target: the core.
        image: the binary.
        instructions: its code, decoded, in address order.
        costs: cycles of each instruction.
    """

    allocator: Allocator
    target: Target
    image: Image
    instructions: tuple[Instruction, ...]
    costs: tuple[InstructionCost, ...]


def load_program(allocator: Allocator, target: Target, compiler: str, cache_dir: Path, heap_bytes: int = 0) -> Program:
    """Build ``allocator`` for ``target`` with ``compiler``, or take the image from ``cache_dir``.

    Parameters:
        heap_bytes: as of ``build_image``.

    Raises:
        BuildError: there is no image.
        ImageError: the image cannot be read.
    """
    return program_of(allocator, target, build_image(allocator, target, compiler, cache_dir, heap_bytes))


def program_of(allocator: Allocator, target: Target, image: Image) -> Program:
    """``image``, wherever it is from, made ready to run as ``allocator`` built for ``target``.

    Raises:
        DecodeError: its code cannot be decoded.
    """
    return Program(allocator, target, image, *_charged(Same(image), Same(target)))


@lru_cache(maxsize=32)
def _charged(image: Same[Image], target: Same[Target]) -> tuple[tuple[Instruction, ...], tuple[InstructionCost, ...]]:
    """The instructions of ``image`` and their costs on ``target``; remembered while both are the same objects."""
    instructions = with_timing_problems(decode(image.value), target.value)
    return instructions, costs(instructions, target.value)
