"""``wcet-probe check``: are all bounds of a project within their budgets, and no worse than those it has accepted."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcet_probe.ci.baseline import BaselineEntry, baseline_document, baseline_entry, baseline_file, load_baseline
from wcet_probe.ci.budgets import Budget, read_budgets
from wcet_probe.ci.result_files import read_documents, refusing_damage
from wcet_probe.cli import streams
from wcet_probe.cli.budgeted import call_paths, match, prove
from wcet_probe.config import Config, load_config, read_config
from wcet_probe.errors import AnalysisError, ContradictionError, ExitCode, WcetProbeError
from wcet_probe.output_files import write_whole
from wcet_probe.progress import Progress

if TYPE_CHECKING:
    from wcet_probe.ci.judge import Outcome

Document = Mapping[str, Any]
_FILE = click.Path(path_type=Path, dir_okay=False)
EPILOG = """\b
Examples:
  wcet-probe check --save-baseline main
  wcet-probe check --baseline main --junit wcet.xml --sarif wcet.sarif
  wcet-probe check --results tlsf.json --results fw.json --markdown comment.md

\b
Exit codes, of several the largest: 0 all within budget, 1 failure, 2 bad
  usage or input, 3 over budget or worse than the baseline, 4 no bound
  established, 5 contradiction, 130 interrupted, 141 the reader of the output
  went away
"""


@click.command(epilog=EPILOG)
@click.option("--config", "file", type=_FILE, metavar="FILE", help="Configuration.  [default: the nearest upwards]")
@click.option(
    "--results", "files", multiple=True, type=_FILE, metavar="RESULT.json", help="Run nothing, take these; repeatable."
)
@click.option("--baseline", metavar="NAME", help="Compare with the bounds saved under NAME.")
@click.option("--save-baseline", "save", metavar="NAME", help="Save the bounds under NAME, after any comparison.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Write SARIF 2.1.0.")
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write Markdown for a pull request.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write a table, a row for each entry.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def check(
    *,
    file: Path | None,
    files: tuple[Path, ...],
    baseline: str | None,
    save: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **outputs: Path | None,
) -> int:
    """Hold a project's bounds against its budgets.

    Proves and observes each entry [[budgets]] of wcet-probe.toml or pyproject.toml, or takes its result from --results.
    A baseline is a file beside the configuration, to be committed.
    """
    config = read_config(file) if file else load_config(Path.cwd())
    budgets = read_budgets(config)
    folder = config.file.parent if config.file else Path()
    accepted = {(one.target, one.name): one for one in load_baseline(baseline, folder)} if baseline else {}
    kept = baseline_file(save, folder) if save else None
    with streams.progress(quiet=quiet, verbose=verbose) as tell, refusing_damage() if files else nullcontext():
        found = list(_found(budgets, config, _documents(files), tell))
        outcomes = [_outcome(budget, result, accepted, folder) for budget, result in zip(budgets, found, strict=True)]
        entries = list(_entries(outcomes, found))
    texts = {path: _render(name, outcomes, baseline, config) for name, path in outputs.items() if path}
    if kept:
        texts[kept] = json.dumps(baseline_document(entries), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    for path, text in texts.items():
        write_whole(path, text)
    _print(outcomes, baseline, accepted, as_json=as_json)
    return max(int(outcome.exit_code) for outcome in outcomes)


def _documents(files: Sequence[Path]) -> list[Document]:
    from wcet_probe.reports.formats.schema import validate_types

    return [one for name in files for one in read_documents(name, check=validate_types)]


def _found(
    budgets: Sequence[Budget], config: Config, results: Sequence[Document], tell: Progress
) -> Iterator[Document | AnalysisError | ContradictionError]:
    """The result of each entry, or the error that stands for it; any other error names the entry and ends the check."""
    for number, budget in enumerate(budgets):

        def told(text: str, budget: Budget = budget, number: int = number) -> None:
            tell(f"{budget.name} on {budget.target}: {text}", number, len(budgets))

        try:
            yield match(budget, results) if results else prove(budget, config, told)
        except (AnalysisError, ContradictionError) as error:
            yield error
        except WcetProbeError as error:
            raise type(error)(f"{budget.name} on {budget.target}: {error}") from error


def _outcome(
    budget: Budget,
    found: Document | AnalysisError | ContradictionError,
    accepted: Mapping[tuple[str, str], BaselineEntry],
    folder: Path,
) -> Outcome:
    from wcet_probe.ci import judge

    if isinstance(found, AnalysisError):
        outcome = judge.unbounded(budget, str(found))
    elif isinstance(found, ContradictionError):
        outcome = judge.contradicted(budget, str(found))
    else:
        outcome = judge.judge(budget, found, accepted.get((budget.target, budget.name)))
    return judge.located(outcome, call_paths(budget.call, folder)) if outcome.findings else outcome


def _entries(outcomes: Sequence[Outcome], found: Sequence[object]) -> Iterator[BaselineEntry]:
    """What a baseline keeps: every bound that nothing contradicts."""
    for outcome, result in zip(outcomes, found, strict=True):
        if isinstance(result, Mapping) and outcome.bound and outcome.exit_code is not ExitCode.CONTRADICTION:
            yield baseline_entry(outcome.budget.name, result)


def _render(name: str, outcomes: Sequence[Outcome], baseline: str | None, config: Config) -> str:
    if name == "junit":
        from wcet_probe.reports.formats.junit import junit

        return junit(outcomes)
    if name == "sarif":
        from wcet_probe.reports.formats.document import dumps
        from wcet_probe.reports.formats.sarif import sarif

        return dumps(sarif(outcomes, config.file.name if config.file else ""))
    if name == "markdown":
        from wcet_probe.reports.formats.markdown import markdown

        return markdown(outcomes, baseline)
    from wcet_probe.reports.formats.csv_table import csv_table

    return csv_table(outcomes)


def _print(
    outcomes: Sequence[Outcome],
    baseline: str | None,
    accepted: Mapping[tuple[str, str], BaselineEntry],
    *,
    as_json: bool,
) -> None:
    from wcet_probe.reports.formats.check_document import check_document
    from wcet_probe.reports.screens.check import check_lines

    for outcome in outcomes if baseline else ():
        budget = outcome.budget
        if (budget.target, budget.name) not in accepted:
            click.echo(f"wcet-probe: {budget.name} on {budget.target} is not in the baseline {baseline}.", err=True)
    if as_json:
        streams.print_json(check_document(outcomes, baseline))
        return
    from wcet_probe.reports.screens.terminal import page_width, print_lines

    console = streams.result_console()
    print_lines(console, check_lines(outcomes, page_width(console)))
