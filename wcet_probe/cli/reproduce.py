"""``wcet-probe reproduce``: the tables and figures of a paper, measured anew, and its claims checked."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ContradictionError, ExitCode, UsageError, WcetProbeError, unknown_name
from wcet_probe.model.target import without_caches

if TYPE_CHECKING:
    from wcet_probe.answer.papers.exhibit import Exhibit, Paper
    from wcet_probe.answer.papers.laboratory import Laboratory

REPRODUCE_EPILOG = """\b
Examples:
  wcet-probe reproduce P02 --table T2 --quick
  wcet-probe reproduce C06 --quick --json
  wcet-probe reproduce L11 --quick --figure F6 --svg pictures

\b
Exit codes: 0 reproduced, whatever the claims came out as, 1 failure of a build
  or the engine, 2 bad usage: no such paper, table or figure, 5 an observation
  above a proved bound
"""


@click.command(epilog=REPRODUCE_EPILOG)
@click.argument("paper", metavar="PAPER")
@click.option("--table", "tables", multiple=True, metavar="T3", help="Only this table; repeatable.  [default: all]")
@click.option("--figure", "figures", multiple=True, metavar="F4", help="Only this figure; repeatable.")
@click.option(
    "--target", metavar="NAME", help="Core.  [default: cortex-m4; of H11 mpc603e]", shell_complete=completion.targets
)
@click.option("--caches", is_flag=True, help="With the core's caches, where the paper switched its own off.")
@click.option("--quick", is_flag=True, help="Short workloads and few seeds, minutes instead of hours.")
@click.option(
    "--svg", "pictures", type=click.Path(path_type=Path), metavar="FOLDER", help="Draw each into a file here."
)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where results are kept.  [default: in the cache]",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), metavar="N", help="At most N seeds of a workload.  [default: the paper's]"
)
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes of this machine.  [default: one for each core]"
)
@click.option("--cluster", metavar="ADDRESS", help="Measure on the workers of a Dask scheduler.  [default: all cores]")
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
    pictures: Path | None,
    store: Path | None,
    seeds: int | None,
    jobs: int | None,
    cluster: str | None,
    compiler: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Measure the tables and figures of PAPER (P02, C06, M06, L11, H11) again, and check what it claims.

    The paper's numbers stand beside ours; its claims that do not depend on its machine are named checks, which hold or
    do not, with the numbers that say so. Rows name the preset that they are of. Each result is kept when it comes:
    what was interrupted goes on where it was, and a second time nothing is measured.
    """
    from wcet_probe.answer.papers.campaign import cluster_executors, local_executors, measure_all
    from wcet_probe.answer.papers.known import PAPERS
    from wcet_probe.answer.papers.laboratory import Laboratory, planned_points
    from wcet_probe.answer.papers.points import Settings
    from wcet_probe.answer.papers.store import ResultStore
    from wcet_probe.reports.formats.reproduction import reproduction_document
    from wcet_probe.reports.screens.reproduction import exhibit_lines

    if paper.upper() not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    chosen = PAPERS[paper.upper()]
    wanted = _wanted(chosen, (*tables, *figures))
    config = load_config(Path.cwd())
    core = configured_target(target or (chosen.target if config.target is None else None), config)
    if not (caches or chosen.with_caches):
        core = without_caches(core)
    executors = cluster_executors(cluster) if cluster else local_executors(jobs)
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        settings = Settings(core, compiler or config.cc or DEFAULT_COMPILER, cache_dir(config))
        results = ResultStore(store or cache_dir(config) / "papers", settings)
        laboratory = Laboratory(chosen.name.lower(), quick, results, seeds, tell)
        points = planned_points((chosen.exhibits[name] for name in wanted), laboratory)
        laboratory.failed = measure_all(points, results, executors, tell).failed
        exhibits, failed = _built(chosen, wanted, laboratory)
    document = reproduction_document(chosen, core.name, exhibits, quick=quick, most_seeds=seeds)
    if pictures:
        _draw(pictures, document)
    if as_json:
        streams.print_json(document)
    else:
        console = streams.result_console()
        for exhibit in exhibits:
            for line in exhibit_lines(chosen, exhibit, console.width):
                console.print(line, soft_wrap=True)
    for line in failed:
        click.echo(f"wcet-probe: not measured: {line}", err=True)
    return ExitCode.FAILURE if failed else ExitCode.OK


def _wanted(chosen: Paper, asked: Sequence[str]) -> list[str]:
    """The names of the tables and figures that are ``asked`` for, or of all."""
    wanted = [name.upper() for name in asked] or list(chosen.exhibits)
    for name in wanted:
        if name not in chosen.exhibits:
            raise UsageError(f"{chosen.name} has no {name} here; choose from: {', '.join(chosen.exhibits)}.")
    return wanted


def _built(chosen: Paper, wanted: Sequence[str], laboratory: Laboratory) -> tuple[list[Exhibit], list[str]]:
    """The tables and figures, and why some are not there."""
    exhibits, failed = [], []
    for name in wanted:
        try:
            exhibits.append(chosen.exhibits[name](laboratory))
        except ContradictionError:
            raise
        except WcetProbeError as error:
            failed.append(f"{name}: {error}")
    return exhibits, failed


def _draw(home: Path, document: Mapping[str, Any]) -> None:
    """A file for each table and figure, ``P02-T2.svg`` say."""
    from wcet_probe.output_files import write_whole
    from wcet_probe.reports.pictures.exhibits import exhibit_picture

    home.mkdir(parents=True, exist_ok=True)
    for exhibit in document["exhibits"]:
        svg = exhibit_picture(exhibit, document["paper"])
        if svg is not None:
            write_whole(home / f"{document['paper']}-{exhibit['name']}.svg", svg)
