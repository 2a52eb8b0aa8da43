"""What a proof costs as programs grow: blocks or loops in a row, nests, depth of calls; ``python -m bench.cost``.

Prints a table in Markdown: processor time and the most memory of a proof of its own process, blocks, and the bound. The
programs are made here, and compiled by the packaged Clang with -O1, for cortex-m4 if no target is given.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware
from wcet_probe.build.toolchain import find_toolchain
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.errors import AnalysisError

_HEAD = "volatile unsigned in, out; unsigned a, b, c;\n"
_NOINLINE = "__attribute__((noinline)) unsigned "


def choices(count: int) -> str:
    """``count`` choices in a row, of three blocks each."""
    text = ""
    for i in range(count):
        text += f"if (in & {1 << i % 31}u) {{ out = {i}; x += a; }} else {{ out = {i + 1}; x ^= b; }}\n"
    return f"{_HEAD}void entry(void) {{ unsigned x = 0;\n{text}c = x; }}\n"


def loops(count: int) -> str:
    """``count`` loops in a row, with a choice in each."""
    text = ""
    for i in range(count):
        text += f"for (unsigned i = 0; i < {5 + i % 7}; i++) {{ if (in & 1) x += array[i]; else out = i; }}\n"
    return f"{_HEAD}unsigned array[256];\nvoid entry(void) {{ unsigned x = 0;\n{text}c = x; }}\n"


def nest(depth: int) -> str:
    """Loops in each other, of five rounds each."""
    heads = "".join(f"for (unsigned i{k} = 0; i{k} < 5; i{k}++) {{ " for k in range(depth))
    return f"{_HEAD}void entry(void) {{ {heads}out = in; {'}' * depth} }}\n"


def calls(depth: int) -> str:
    """Functions that call the next one in a loop of three rounds."""
    text = f"{_HEAD}{_NOINLINE}f0(unsigned x) {{ return in ? x + a : x ^ b; }}\n"
    for k in range(1, depth + 1):
        text += f"{_NOINLINE}f{k}(unsigned x) {{ for (unsigned i = 0; i < 3; i++) x += f{k - 1}(x + i); return x; }}\n"
    return f"{text}void entry(void) {{ c = f{depth}(a); }}\n"


SHAPES: dict[str, tuple[Callable[[int], str], tuple[int, ...], str]] = {
    "choices": (choices, (333, 1_000, 2_000), "{size:,} choices in a row"),
    "loops": (loops, (50, 200), "{size} loops in a row"),
    "nest": (nest, (1, 2, 3, 4, 5, 6), "nest of {size} loops"),
    "calls": (calls, (2, 4, 6, 8, 10), "calls in loops, {size} deep"),
}
"""By name: the program of a size, sizes, and what a row is called."""


def rows(names: list[str], target: str) -> Iterator[str]:
    """The table, row by row."""
    yield "| program | basic blocks, calls expanded | CPU seconds | most memory, MiB | bound, instructions |"
    yield "|---|---|---|---|---|"
    for name in names:
        for size in SHAPES[name][1]:
            command = [sys.executable, "-m", "bench.cost", "--target", target, "--one", name, str(size)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            yield done.stdout.strip()


def one(name: str, size: int, target: str) -> str:
    """The row of one program, proved in this process."""
    make, _, words = SHAPES[name]
    core = load_target(target)
    tools = find_toolchain("zig", core)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "guest.c").write_text(make(size), "utf-8")
        flags = [*core.compiler_flags["clang"], "-O1", "-ffreestanding", "-fno-unroll-loops"]
        subprocess.run([*tools.compile, *flags, "-c", "guest.c", "-o", "guest.o"], cwd=here, check=True)
        subprocess.run([*tools.link, "-e", "entry", "guest.o", "-o", "guest.elf"], cwd=here, check=True)
        before = time.process_time()
        try:
            bound = bound_firmware(FirmwareRequest(here / "guest.elf", "entry", core, (), (), {})).bound
            blocks, found = bound.blocks, f"{bound.instructions:,}"
        except AnalysisError as error:
            blocks, found = 0, str(error)
        seconds = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return f"| {words.format(blocks=blocks, size=size)} | {blocks:,} | {seconds:.1f} | {memory:,} | {found} |"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", choices=SHAPES, action="append", help="a shape of program; repeatable")
    parser.add_argument("--target", default="cortex-m4", choices=target_names(), help="core")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SIZE"), help="one row, in this process")
    asked = parser.parse_args()
    if asked.one:
        print(one(asked.one[0], int(asked.one[1]), asked.target))
        return
    for row in rows(asked.only or list(SHAPES), asked.target):
        print(row, flush=True)


if __name__ == "__main__":
    main()
