"""``wcet-probe record`` and ``import-trace``: what real programs ask of their heap, as traces."""

# ruff: noqa: PLC0415  (libraries are imported when they are needed)

from __future__ import annotations

from pathlib import Path

import click

from wcet_probe.cli import streams
from wcet_probe.errors import ExitCode

_OUTPUT = click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE", help="To write."
)
RECORD_EPILOG = """\b
Examples:
  wcet-probe record -o trace.parquet -- python3 -c 'print(1)'
  wcet-probe replay trace.parquet --allocator tlsf

\b
Exit codes: 0 recorded, whatever the program's own code was, 1 the trace cannot
  be written, 2 no such program, or nothing was recorded of it
"""
IMPORT_EPILOG = """\b
Examples:
  wcet-probe import-trace mtrace.log -o trace.parquet
  wcet-probe import-trace operations.csv -o trace.parquet

\b
Exit codes: 0 written, 1 the trace cannot be written, 2 no such file, or it
  frees what is not held, or is cut off: the message names the line
"""


@click.command(epilog=RECORD_EPILOG, context_settings={"ignore_unknown_options": True})
@_OUTPUT
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Tell the traceback of an error.")
@click.argument("command", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENT...]", type=click.UNPROCESSED)
def record(*, output: Path, quiet: bool, verbose: bool, command: tuple[str, ...]) -> int:  # noqa: ARG001
    """Run PROGRAM and record its malloc, calloc, realloc, memalign and free, of all threads, in order.

    It must be linked dynamically. Its output stays as it is; child processes are not recorded.
    """
    from wcet_probe.traces.record import record as run

    count, status = run(command, output, lambda text: None if quiet else click.echo(f"wcet-probe: {text}", err=True))
    if not quiet:
        ended = f", which ended with {status}" if status else ""
        click.echo(f"wcet-probe: {count:,} operations of {command[0]}{ended}: {output}", err=True)
    return ExitCode.OK


@click.command("import-trace", epilog=IMPORT_EPILOG)
@click.argument("log", metavar="LOG", type=click.Path(path_type=Path))
@_OUTPUT
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Tell the traceback of an error.")
def import_trace(*, log: Path, output: Path, quiet: bool, verbose: bool) -> int:
    """Turn LOG, a CSV file with the columns of a trace or a log of glibc's mtrace, into a trace."""
    from wcet_probe.traces.file import write_trace
    from wcet_probe.traces.imports import rows_of
    from wcet_probe.traces.operations import checked

    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        tell(f"reading {log.name}")
        count = write_trace(output, checked(rows_of(log)))
    if not quiet:
        click.echo(f"wcet-probe: {count:,} operations: {output}", err=True)
    return ExitCode.OK
