"""stdout for the result, stderr for progress."""

# ruff: noqa: PLC0415  (rich is imported when something is rendered: `wcet-probe --help` starts in a blink)

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from wcet_probe.errors import VerificationError
from wcet_probe.progress import Progress, silent

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 100
_ESTIMATE_SECONDS = 24 * 3600.0
"""How far back the remaining time is estimated from: parts take long, and all count."""


def result_console() -> Console:
    """A console on stdout: as wide as the terminal, or 100 characters where it is none; no markup."""
    from rich.console import Console

    class ResultConsole(Console):
        def on_broken_pipe(self) -> None:
            """Let the caller decide; Rich would end the process with 1."""
            raise  # noqa: PLE0704  (called while the error is handled)

    if (sys.stdout.encoding or "utf-8").lower() != "utf-8":
        with suppress(AttributeError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return ResultConsole(width=width, highlight=False, markup=False, emoji=False)


def print_json(doc: object) -> None:
    """Print ``doc`` on stdout, in UTF-8 whatever the locale."""
    from wcet_probe.reports.formats.document import dumps

    click.echo(dumps(doc).encode(), nl=False)


def warn_of_large(certificates: Iterable[str]) -> None:
    """Say on stderr if one of ``certificates`` is larger than what ``wcet-probe verify`` reads."""
    from wcet_probe.certificate.kernel.records import demand_small

    try:
        for text in certificates:
            demand_small(text)
    except VerificationError as error:
        click.echo(f"wcet-probe: the bound is proved, but wcet-probe verify will refuse it: {error}", err=True)


@contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Progress]:
    """A function that is told in words what is being done, and how much of it is done.

    On a terminal it shows the words in a line that vanishes at the end, and behind them, once the number of parts is
    known, a bar, the share that is done and the time that remains; if ``verbose``, it writes the words to stderr, a
    line for each step; else, and if ``quiet``, it is silent.
    """
    if verbose:
        yield _lines()
    elif quiet or not sys.stderr.isatty():
        yield silent
    else:
        with _bar() as tell:
            yield tell


def _lines() -> Progress:
    last = ""

    def tell(text: str, _done: int = 0, _total: int = 0, /) -> None:
        nonlocal last
        if text != last:
            click.echo(f"wcet-probe: {text}", err=True)
        last = text

    return tell


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskProgressColumn, TimeRemainingColumn
    from rich.progress import Progress as Shown
    from rich.text import Text

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            """One line, cut where it is too long; rich would push the bar out."""
            return Text(task.description, overflow="ellipsis", no_wrap=True)

    told, parts = (SpinnerColumn(), Words()), (BarColumn(bar_width=20), TaskProgressColumn(), TimeRemainingColumn())
    shown = Shown(*told, console=Console(stderr=True), transient=True, speed_estimate_period=_ESTIMATE_SECONDS)
    with shown:
        task = shown.add_task("", total=None)

        def tell(text: str, done: int = 0, total: int = 0, /) -> None:
            if total:
                shown.columns = (*told, *parts)
                shown.update(task, description=text, completed=done, total=total)
            else:
                shown.update(task, description=text)

        yield tell


def close_quietly() -> None:
    """Let nothing be written to stdout any more, so that Python's exit does not stumble over a pipe that broke."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
