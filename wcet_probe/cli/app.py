"""``wcet-probe``: the group of its commands, and how every error becomes one sentence and an exit code."""

# ruff: noqa: PLC0415  (heavy modules are imported by the command that needs them)

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from wcet_probe import __version__
from wcet_probe.cli import streams
from wcet_probe.cli.completion import allocators
from wcet_probe.config import CACHE_DIR_VARIABLE
from wcet_probe.errors import ExitCode, UsageError, WcetProbeError, unknown_name

EPILOG = """\b
Examples:
  wcet-probe tlsf --scenario worst-alloc
  wcet-probe tlsf --target mpc603e --heap 64K --heap 4M --json
  wcet-probe bound firmware.elf --entry control_step --target cortex-m4

\b
Exit codes:
  0  bounded and within budget, or observed where no bound was asked for
  1  failure of a build, an engine, a file; a certificate that does not check
  2  bad usage or input                           4    no bound established
  3  over budget or worse than the baseline       130  interrupted
  5  observation and proof contradict each other  141  the reader went away
  6  what was checked holds, and something was not checked
  7  proved, if lemmas hold that are assumed
"""
_READER_LEFT = 141
"""What a shell reports of a program that SIGPIPE ends, 128 + 13: no failure, but not all of the answer was read."""


_COMMANDS = {
    "bound": "bound",
    "facts": "facts",
    "verify": "verify",
    "verify-sets": "verify_sets",
    "export": "export",
    "check": "check",
    "diff": "diff",
    "pack": "pack",
    "audit": "audit",
    "report": "report",
    "list": "names.list_names",
    "show": "names.show",
    "growth": "studies.growth",
    "matrix": "studies.matrix",
    "search": "studies.search",
    "new-allocator": "new_allocator",
    "replay": "replay",
    "record": "traces.record",
    "import-trace": "traces.import_trace",
    "budget": "budget",
    "reproduce": "reproduce",
    "plot": "plot",
    "doctor": "doctor",
    "completion": "completion",
    "man": "man",
}
"""Each command's module of ``wcet_probe.cli``, and its function where that has another name. A module is imported when
its command is asked for: all of them take a tenth of the time of a first answer."""


class _ReaderLeftError(Exception):
    """Nobody reads stdout any more."""


class Commands(click.Group):
    """The commands, each imported when it is asked for, and every allocator's name as one more."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command ``cmd_name``, or the run of the allocator of that name."""
        if place := _COMMANDS.get(cmd_name):
            module, _, function = place.partition(".")
            found: click.Command = getattr(import_module(f"wcet_probe.cli.{module}"), function or module)
            return found
        from wcet_probe.catalog.lookup import allocator_names, configured_names, folder_that_is_meant, is_path
        from wcet_probe.cli.run import run

        if is_path(cmd_name):
            return run
        if cmd_name.partition(":")[0] in (names := {*allocator_names()}) or ":" in cmd_name:
            return run
        own = {*configured_names()}
        if cmd_name in own:
            return run
        if ctx.resilient_parsing:
            return None
        if meant := folder_that_is_meant("allocator or command", cmd_name):
            raise meant
        raise unknown_name("allocator or command", cmd_name, names | own | {*_COMMANDS})

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a broken pipe gets past click, which would end the process with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderLeftError from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The words behind the options; the help page is printed here, and its broken pipe gets past click as well."""
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError as error:
            raise _ReaderLeftError from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """The commands in the order of the help page."""
        return list(_COMMANDS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Commands, options and allocators that begin with ``incomplete``."""
        return [*super().shell_complete(ctx, incomplete), *allocators(ctx, None, incomplete)]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """What stands behind ``wcet-probe`` on the help page."""
        return ["ALLOCATOR [OPTIONS] | COMMAND [ARGS]..."]


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"terminal_width": 80, "help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """How long can a call of a memory allocator take, at worst?

    Builds ALLOCATOR for an embedded core and proves an upper bound of the call from the binary. Then brings the heap
    into the state in which the call is slowest, proves that state in the guest's memory, counts the one call
    (instructions, cycles, touched cache sets) and holds it against the bound.

    'wcet-probe ALLOCATOR --help' tells the options of a run; 'wcet-probe list allocators' the names.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``wcet-probe`` with ``arguments``, by default those of the process, and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (for the rest of the process)
    if sys.stdout is None:
        click.echo("wcet-probe: stdout is closed; give the result a place to go.", err=True)
        return ExitCode.FAILURE
    try:
        code = commands.main(words, prog_name="wcet-probe", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except (_ReaderLeftError, BrokenPipeError):
        streams.close_quietly()
        return _READER_LEFT
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (nobody is shown a traceback unasked)
        if isinstance(error, OSError):
            streams.close_quietly()
        message, code = explain(error)
        if "-v" in words or "--verbose" in words:
            click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        click.echo(f"wcet-probe: {message}", err=True)
    return code or ExitCode.OK


def explain(error: BaseException) -> tuple[str, ExitCode]:
    """The sentence for ``error``, with its remedy, and the exit code."""
    match error:
        case WcetProbeError():
            return str(error), error.exit_code
        case click.NoSuchOption():
            return str(_unknown_option(error)), ExitCode.USAGE
        case click.ClickException():
            return _usage(error), ExitCode.USAGE
        case KeyboardInterrupt() | click.Abort():
            return "interrupted; nothing was written.", ExitCode.INTERRUPTED
        case OSError():
            return _system(error), ExitCode.FAILURE
        case _:
            bug = f"{type(error).__name__}: {error}"
            return f"a bug of wcet-probe ({bug}); run again with -v for the traceback, and report it.", ExitCode.FAILURE


def _unknown_option(error: click.NoSuchOption) -> UsageError:
    context = error.ctx
    if context is None:
        return UsageError(error.format_message())
    from wcet_probe.cli.run import run

    if context.command is commands and error.option_name in _options(run, context):
        return UsageError(f"option {error.option_name} goes behind an allocator: wcet-probe tlsf {error.option_name} …")
    return unknown_name("option", error.option_name, _options(context.command, context))


def _options(command: click.Command, context: click.Context) -> set[str]:
    return {name for option in command.get_params(context) if isinstance(option, click.Option) for name in option.opts}


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    text = " ".join(error.format_message().split()).rstrip(".")
    return f"{text[:1].lower()}{text[1:]}; see {context.command_path if context else 'wcet-probe'} --help."


def _system(error: OSError) -> str:
    if not error.filename:
        return f"{error.strerror or error}; check the place that the output goes to, and its free space."
    if error.errno == errno.ENOENT:
        return _missing(Path(os.fsdecode(error.filename)))
    remedy = "free some space" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "check its permissions"
    return f"{error.strerror} ({error.filename}); {remedy}, or choose another cache folder with {CACHE_DIR_VARIABLE}."


def _missing(file: Path) -> str:
    """The sentence for a file that is not there: of the installation, or somebody's own."""
    package = Path(__file__).absolute().parents[1]
    own = {package, *(room.resolve() for room in package.iterdir() if room.is_symlink()), Path(sys.prefix)}
    if any(file.is_relative_to(folder) for folder in own):
        return f"{file} is missing, which is a part of wcet-probe: the installation is broken; install it again."
    return (
        f"no such file or folder ({file}): it was removed meanwhile, or its folder is not there; make that, or choose "
        f"another cache folder with {CACHE_DIR_VARIABLE}."
    )
