"""``wcet-probe reproduce``: the tables and figures of a paper, measured anew, and its claims checked."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

from pathlib import Path

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode, UsageError, unknown_name
from wcet_probe.model.target import without_caches

REPRODUCE_EPILOG = """\b
Examples:
  wcet-probe reproduce P02 --table T2 --quick
  wcet-probe reproduce C06 --quick --json

\b
Exit codes: 0 reproduced, whatever the claims came out as, 1 failure of a build
  or the engine, 2 bad usage: no such paper, table or figure
"""


@click.command(epilog=REPRODUCE_EPILOG)
@click.argument("paper", metavar="PAPER")
@click.option("--table", "tables", multiple=True, metavar="T3", help="Only this table; repeatable.  [default: all]")
@click.option("--figure", "figures", multiple=True, metavar="F4", help="Only this figure; repeatable.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--caches", is_flag=True, help="With the core's caches, where the paper switched its own off.")
@click.option("--quick", is_flag=True, help="Short workloads and few seeds, minutes instead of hours.")
@click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def reproduce(
    *,
    paper: str,
    tables: tuple[str, ...],
    figures: tuple[str, ...],
    target: str | None,
    caches: bool,
    quick: bool,
    compiler: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Measure the tables and figures of PAPER (P02, C06, M06) again, and check what it claims.

    The paper's numbers stand beside ours; its claims that do not depend on its machine are named checks, which hold or
    do not, with the numbers that say so. Rows name the preset that they are of.
    """
    from wcet_probe.answer.papers import PAPERS
    from wcet_probe.answer.papers.exhibit import Laboratory
    from wcet_probe.reports.formats.reproduction import reproduction_document
    from wcet_probe.reports.screens.reproduction import exhibit_lines

    if paper.upper() not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    chosen = PAPERS[paper.upper()]
    wanted = [name.upper() for name in (*tables, *figures)] or list(chosen.exhibits)
    for name in wanted:
        if name not in chosen.exhibits:
            raise UsageError(f"{chosen.name} has no {name} here; choose from: {', '.join(chosen.exhibits)}.")
    config = load_config(Path.cwd())
    core = configured_target(target, config)
    if not caches:
        core = without_caches(core)
    console = None if as_json else streams.result_console()
    exhibits = []
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        laboratory = Laboratory(
            chosen.name.lower(), core, quick, compiler or config.cc or DEFAULT_COMPILER, cache_dir(config), tell
        )
        for name in wanted:
            exhibits.append(chosen.exhibits[name](laboratory))
            if console:
                for line in exhibit_lines(chosen, exhibits[-1], console.width):
                    console.print(line, soft_wrap=True)
    if as_json:
        streams.print_json(reproduction_document(chosen, core.name, exhibits, quick=quick))
    return ExitCode.OK
