"""``wcet-probe budget``: how many buckets of each size a program should have, from a trace."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import DEFAULT_HEAP_BYTES, configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode
from wcet_probe.sizes import parse_size

if TYPE_CHECKING:
    from wcet_probe.traces.operations import TraceRow

BUDGET_EPILOG = """\b
Examples:
  wcet-probe budget trace.parquet
  wcet-probe budget l11-s-ocs --allocator tlsf
  wcet-probe budget l11-r-ocs --size 2952 --size 1978 --exhaustive

\b
Exit codes: 0 computed, 1 failure of a build or the engine, 2 bad usage or input
"""
_ALLOCATIONS = 100_000


@click.command(epilog=BUDGET_EPILOG)
@click.argument("what", metavar="TRACE|WORKLOAD")
@click.option("--size", "sizes", multiple=True, type=parse_size, metavar="SIZE", help="Of an object; repeatable.")
@click.option("--exhaustive", is_flag=True, help="Look at all choices, not at the greedy one.")
@click.option("--allocator", metavar="NAME", help="Measure with it as X, too.", shell_complete=completion.allocators)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of a WORKLOAD.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Size of the heap.  [default: 4MiB]")
@click.option("--preset", metavar="NAME", help="Parameter values of NAME, such as l11.")
@click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def budget(
    *,
    what: str,
    sizes: tuple[int, ...],
    exhaustive: bool,
    allocator: str | None,
    seed: int,
    target: str | None,
    heap_bytes: int | None,
    preset: str | None,
    compiler: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Choose buckets for 'budgeted:X' from a profile of a trace, as L11 does.

    Prints how many buckets of which sizes fit without more memory in use than at the trace's peak, and the build
    parameters that ask for them. With --allocator the trace is run on it with and without the buckets: memory,
    instructions, bytes of code.
    """
    from wcet_probe.answer.workloads import budgeting
    from wcet_probe.reports.formats.budget import budget_document
    from wcet_probe.reports.screens.budget import budget_lines

    config = load_config(Path.cwd())
    core, heap = configured_target(target, config), heap_bytes or config.heap_bytes or DEFAULT_HEAP_BYTES
    used, images = compiler or config.cc or DEFAULT_COMPILER, cache_dir(config)
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        tell("profiling the trace")
        found = budgeting.profile(lambda: _rows(what, seed), sizes)
        chosen = budgeting.exhaustive(found) if exhaustive else budgeting.greedy(found)
        effect = None
        if allocator:
            asked = budgeting.EffectRequest(allocator, preset, core, heap, used, images)
            effect = budgeting.measure_effect(asked, chosen, lambda: _rows(what, seed), tell)
    if as_json:
        streams.print_json(budget_document(what, found, chosen, effect))
    else:
        console = streams.result_console()
        for line in budget_lines(what, found, chosen, effect, console.width):
            console.print(line, soft_wrap=True)
    return ExitCode.OK


def _rows(what: str, seed: int) -> Iterator[TraceRow]:
    from wcet_probe.scenarios.workloads.named import WORKLOADS, workload
    from wcet_probe.traces.imports import rows_of

    if what not in WORKLOADS and Path(what).is_file():
        return rows_of(Path(what))
    return workload(what).rows(seed, _ALLOCATIONS)
