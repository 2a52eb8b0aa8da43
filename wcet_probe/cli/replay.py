"""``wcet-probe replay``: a scenario, a workload or a recorded trace, operation by operation."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import DEFAULT_HEAP_BYTES, configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER, parameter_value
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.sizes import parse_size

if TYPE_CHECKING:
    from wcet_probe.traces.operations import TraceRow

DEFAULT_ALLOCATIONS = 100_000
REPLAY_EPILOG = """\b
Examples:
  wcet-probe replay tlsf --seed 7
  wcet-probe replay trace.parquet --allocator tlsf --target mpc603e
  wcet-probe replay m06-test3 --allocator half-fit --operations 10000

\b
Exit codes: 0 replayed, 1 failure of a build or the engine, 2 bad usage or
  input, 5 an operation took more than is proved
"""


@click.command(epilog=REPLAY_EPILOG)
@click.argument("what", metavar="ALLOCATOR|TRACE|WORKLOAD", shell_complete=completion.allocators)
@click.option(
    "--allocator", metavar="NAME", help="Who serves a TRACE or WORKLOAD.", shell_complete=completion.allocators
)
@click.option(
    "--scenario",
    default="random",
    show_default=True,
    metavar="NAME",
    help="Of an ALLOCATOR: whose operations.",
    shell_complete=completion.scenarios,
)
@click.option("--operations", type=click.IntRange(min=1), metavar="N", help="Only the first N.  [default: all]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Seed of what is random.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Size of the heap.  [default: 4MiB]")
@click.option("--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Build parameter.")
@click.option("--preset", metavar="NAME", help="Parameter values of the literature, such as p02.")
@click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]")
@click.option("--no-bound", is_flag=True, help="Of a TRACE or WORKLOAD: prove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def replay(
    *,
    what: str,
    allocator: str | None,
    scenario: str,
    operations: int | None,
    seed: int,
    target: str | None,
    heap_bytes: int | None,
    values: tuple[tuple[str, int], ...],
    preset: str | None,
    compiler: str | None,
    no_bound: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Count operation by operation: the set-up of a scenario and its call, a recorded trace, or a workload.

    A TRACE is a file of 'wcet-probe record', a CSV file with its columns, or a log of mtrace; a WORKLOAD is one of
    the papers, see 'wcet-probe list workloads'. Both need --allocator, and are held against its bounds.
    """
    from wcet_probe.answer.witness.bench import ProbeRequest
    from wcet_probe.answer.workloads.bounded_run import run_bounded
    from wcet_probe.answer.workloads.replay import replay as run
    from wcet_probe.answer.workloads.workload_run import WorkloadRequest, run_workload
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.formats.workload import workload_document
    from wcet_probe.reports.screens.replay import render_replay, replay_document
    from wcet_probe.reports.screens.workload import workload_lines
    from wcet_probe.traces.operations import heap_operations

    config = load_config(Path.cwd())
    core, heap = configured_target(target, config), heap_bytes or config.heap_bytes or DEFAULT_HEAP_BYTES
    used, images = compiler or config.cc or DEFAULT_COMPILER, cache_dir(config)
    if allocator is None:
        _check_no_file(what)
        chosen = load_allocator(what, dict(values), preset)
        request = ProbeRequest(chosen, core, scenario, heap, seed, None, used, cross_check=False, cache_dir=images)
        with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
            found = run(request, operations, tell)
        if as_json:
            streams.print_json(replay_document(request, found))
        else:
            render_replay(request, found, streams.result_console())
        return ExitCode.OK
    source, rows = _rows(what, seed, operations)
    serving = load_allocator(allocator, dict(values), preset)
    served = WorkloadRequest(serving, core, heap, used, images, parts=True)
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        counted = (run_workload if no_bound else run_bounded)(served, islice(heap_operations(rows), operations), tell)
    if as_json:
        streams.print_json(workload_document(served, source, counted))
    else:
        console = streams.result_console()
        for line in workload_lines(served, source, counted, console.width):
            console.print(line, soft_wrap=True)
    return ExitCode.OK


def _check_no_file(what: str) -> None:
    from wcet_probe.scenarios.workloads.named import WORKLOADS

    if what in WORKLOADS or Path(what).is_file():
        raise UsageError(f"{what} needs an allocator that serves it; add --allocator tlsf, say.")


def _rows(what: str, seed: int, operations: int | None) -> tuple[str, Iterator[TraceRow]]:
    """What the operations are, in words, and they themselves: of a workload, or of a file of any known kind."""
    from wcet_probe.scenarios.workloads.named import WORKLOADS, workload
    from wcet_probe.traces.imports import rows_of

    path = Path(what)
    if what in WORKLOADS:
        chosen = workload(what)
        return f"{chosen.source}, seed {seed}", chosen.rows(seed, max(DEFAULT_ALLOCATIONS, operations or 0))
    if path.is_file():
        return path.name, rows_of(path)
    if not path.suffix:
        workload(what)
    raise UsageError(f"there is no trace {what}; record one: wcet-probe record -o {path.name} -- PROGRAM.")
