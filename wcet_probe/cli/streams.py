"""stdout for the result, stderr for progress."""

# ruff: noqa: PLC0415  (rich is imported when something is rendered: `wcet-probe --help` starts in a blink)

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 100


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
    from wcet_probe.reports.document import dumps

    click.echo(dumps(doc).encode(), nl=False)


@contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Callable[[str], None]]:
    """A function that is told in words what is being done.

    On a terminal it shows them in a line that vanishes at the end; if ``verbose``, it writes each to stderr on its own
    line; else, and if ``quiet``, it is silent.
    """
    if verbose:
        yield lambda text: click.echo(f"wcet-probe: {text}", err=True)
    elif quiet or not sys.stderr.isatty():
        yield lambda _: None
    else:
        from rich.console import Console
        from rich.text import Text

        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(Text(text, overflow="ellipsis", no_wrap=True))


def close_quietly() -> None:
    """Let nothing be written to stdout any more, so that Python's exit does not stumble over a pipe that broke."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
