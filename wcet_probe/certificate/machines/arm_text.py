# SPDX-License-Identifier: 0BSD
"""Operands of ARM and Thumb-2 instructions, read from the disassembler's text."""

from __future__ import annotations

import re
from functools import lru_cache

from wcet_probe.certificate.machines.operands import register_named
from wcet_probe.model.instruction import Instruction

SP, LR, PC = "r13", "r14", "r15"
SPLIT = re.compile(r",\s*(?![^\[{]*[\]}])")
MOST_TEXTS = 1 << 12
"""So many texts of instructions are read once only: each is executed again and again."""


def operands_in(instruction: Instruction) -> list[str]:
    """The operands of an instruction, as the disassembler tells them."""
    return list(_operand_texts(instruction.text))


@lru_cache(MOST_TEXTS)
def _operand_texts(instruction: str) -> tuple[str, ...]:
    _, _, text = instruction.partition(" ")
    return tuple(SPLIT.split(text.strip())) if text else ()


@lru_cache(MOST_TEXTS)
def register_of(text: str) -> str:
    """The register that an operand names.

    Raises:
        ValueError: it names none.
    """
    name = register_named(text.rstrip("!"))
    if not re.fullmatch("r(1[0-5]|[0-9])", name):
        raise ValueError(text)
    return name


def immediate_of(text: str) -> int:
    """The number that an operand is.

    Raises:
        ValueError: it is none.
    """
    return int(text.removeprefix("#"), 0)
