"""The ordinary kernels of ``tests/kernels``: all of them in one image for each target, proved and run one by one."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support import Guest, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.model.proof import Bound

FOLDER = Path(__file__).parent / "kernels"
SOURCES: Mapping[str, str] = {file.name: file.read_text("utf-8") for file in sorted(FOLDER.glob("*.[ch]"))}
_WORD = (1 << 32) - 1


def _word(draw: random.Random) -> int:
    """A word of any magnitude."""
    return draw.getrandbits(draw.randrange(33))


@dataclass(frozen=True)
class Kernel:
    """A function to prove.

    ``worst`` are the arguments of the longest run; the functions ``NAME_worst`` and ``NAME_random`` prepare the memory,
    where the source has them. ``is_worst`` says whether that run takes the longest path of the source, and not only the
    most iterations.
    """

    name: str
    worst: tuple[int, ...] = ()
    is_worst: bool = True

    @property
    def facts(self) -> Facts:
        file = FOLDER / f"{self.name}.toml"
        return parse_facts(file.name, file.read_text("utf-8")) if file.exists() else Facts()

    def arguments(self, draw: random.Random) -> tuple[int, ...]:
        """Random ones."""
        return tuple(_word(draw) for _ in self.worst)


KERNELS = (
    Kernel("adler_checksum", (_WORD,)),
    Kernel("binary_search", (1000,)),
    Kernel("bit_count", (_WORD, 1 << 31)),
    Kernel("bubble_sort"),
    Kernel("convolution"),
    Kernel("crc_bits", (_WORD,)),
    Kernel("crc_table", (_WORD,)),
    Kernel("dispatch_table"),
    Kernel("fibonacci", (1000,)),
    Kernel("fir_filter"),
    Kernel("flagged_sort"),
    Kernel("heap_sort", is_worst=False),
    Kernel("huffman_decode"),
    Kernel("iir_filter"),
    Kernel("insertion_sort"),
    Kernel("local_arrays", (3,)),
    Kernel("lu_decompose"),
    Kernel("matrix_multiply"),
    Kernel("memory_copy", (31,)),
    Kernel("merge_sort", is_worst=False),
    Kernel("nested_calls"),
    Kernel("prime_sieve"),
    Kernel("ring_buffer", (7, _WORD)),
    Kernel("run_length"),
    Kernel("selection_sort"),
    Kernel("square_root", (_WORD,)),
    Kernel("state_machine"),
    Kernel("string_search"),
)


@cache
def guest(target_name: str) -> Guest:
    """All kernels on a target."""
    parts = (f'#line 1 "{file}"\n{text}' for file, text in SOURCES.items() if file != "common.h")
    return guest_of(f'#line 1 "common.h"\n{SOURCES["common.h"]}{"".join(parts)}', load_target(target_name), ".c")


@cache
def bound(kernel: Kernel, target_name: str) -> Bound:
    """The proof of a kernel."""
    on = guest(target_name)
    return prove(BoundRequest(on.image, on.target, on.instructions, on.costs, kernel.name, kernel.facts, SOURCES, {}))


def machine(kernel: Kernel, target_name: str) -> Machine:
    """A machine that counts the iterations of the kernel's loops."""
    on = guest(target_name)
    watched = [claim.loop for claim in bound(kernel, target_name).loop_claims]
    return Machine(on.image, on.target, on.instructions, on.costs, 4096, watched=watched)


def prepare(running: Machine, kernel: Kernel, target_name: str, how: str, *arguments: int) -> None:
    """Let ``NAME_how`` prepare the memory, where there is one."""
    if f"{kernel.name}_{how}" in guest(target_name).image.symbols:
        running.call(f"{kernel.name}_{how}", *arguments)
    running.restart_loop_counts()


def worst_instructions(kernel: Kernel, target_name: str) -> int:
    """Instructions of the longest run."""
    with machine(kernel, target_name) as running:
        prepare(running, kernel, target_name, "worst")
        return running.count(kernel.name, kernel.worst)
