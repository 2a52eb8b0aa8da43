"""``wcet-probe man``: the manual page, made from the same texts as ``--help``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

import click

from wcet_probe import __version__
from wcet_probe.config import CACHE_DIR_VARIABLE

EPILOG = """\b
Examples:
  wcet-probe man | man -l -
  wcet-probe man >~/.local/share/man/man1/wcet-probe.1

\b
Exit codes: 0 printed, 141 the reader went away
"""
_ENVIRONMENT = (
    (CACHE_DIR_VARIABLE, "Folder for built images; by default in the user's cache folder."),
    ("NO_COLOR", "Set to anything: no colour."),
)
_FILES = (
    (
        "wcet-probe.toml, pyproject.toml",
        "The configuration, in the current folder or the nearest above: cc, cache-dir, target, heap.",
    ),
)


@click.command(epilog=EPILOG)
@click.pass_context
def man(ctx: click.Context) -> None:
    """Print the manual page, as roff."""
    from wcet_probe.cli.run import run  # noqa: PLC0415  (the commands that the page tells of are all there by now)

    root = ctx.find_root()
    if isinstance(root.command, click.Group):
        click.echo(manual_page(root.command, {"ALLOCATOR": run}), nl=False)


def manual_page(group: click.Group, others: dict[str, click.Command]) -> str:
    """The page of ``group`` in the macros of man(7), the same bytes each time.

    Parameters:
        group: the program.
        others: commands that are none of its list, by what stands for their names; they come first.
    """
    root = click.Context(group, info_name="wcet-probe", **group.context_settings)
    listed = {name: found for name in group.list_commands(root) if (found := group.get_command(root, name))}
    commands = {**others, **listed}
    lines = [
        f'.TH WCET\\-PROBE 1 "" "{_plain(f"wcet-probe {__version__}")}" "User Commands"',
        ".SH NAME",
        f"wcet\\-probe \\- {_plain(group.get_short_help_str(limit=200).rstrip('.'))}",
        ".SH SYNOPSIS",
        *_bold(f"wcet-probe {' '.join(group.collect_usage_pieces(root))}"),
        ".SH DESCRIPTION",
        *_help(group),
        *_options(group, root),
        ".SH COMMANDS",
        *(line for name, command in commands.items() for line in _command(name, command, root)),
        *_sections(group.epilog or ""),
        ".SH ENVIRONMENT",
        *(line for term, text in _ENVIRONMENT for line in _item(term, text)),
        ".SH FILES",
        *(line for term, text in _FILES for line in _item(term, text)),
    ]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command, root: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=root)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f'.SS "{_plain(f"wcet-probe {name} {usage}").replace(chr(34), "")}"'
    yield from _help(command)
    yield from _options(command, context)
    for title, text in _blocks(command.epilog or ""):
        yield ".PP"
        yield from _verbatim(f"{title}\n{text}" if text else title)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) and record[1]:
            yield from _item(*record)


def _help(command: click.Command) -> Iterator[str]:
    """The paragraphs of the command's help; those behind a mark of click keep their lines."""
    for paragraph in inspect.cleandoc(command.help or "").partition("\f")[0].split("\n\n"):
        yield ".PP"
        if paragraph.startswith("\b\n"):
            yield from _verbatim(paragraph.removeprefix("\b\n"))
        else:
            yield _plain(" ".join(paragraph.split()))


def _sections(epilog: str) -> Iterator[str]:
    """A section for each block of the epilog, under its first line."""
    for title, text in _blocks(epilog):
        yield f".SH {_plain(title.rstrip(':').upper())}"
        yield from _verbatim(text)


def _blocks(epilog: str) -> Iterator[tuple[str, str]]:
    """First line and the rest of each block."""
    for block in epilog.replace("\b\n", "").strip("\n").split("\n\n"):
        title, _, text = block.partition("\n")
        if title:
            yield title, text


def _item(term: str, text: str) -> Iterable[str]:
    return (".TP", *_bold(term), _plain(" ".join(text.split())))


def _bold(text: str) -> Iterable[str]:
    return (f"\\fB{_plain(text)}\\fR",)


def _verbatim(text: str) -> Iterable[str]:
    return (".nf", *map(_plain, text.splitlines()), ".fi")


def _plain(text: str) -> str:
    """``text`` without a meaning for roff: no escape, no request at the start of a line, no letter beyond ASCII."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
