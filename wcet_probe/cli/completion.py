"""``wcet-probe completion``: the script by which a shell completes commands, options and names."""

# ruff: noqa: PLC0415  (a shell asks at each press of a key: only what the answer needs is imported)

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

from wcet_probe.errors import unknown_name

EPILOG = """\b
Examples:
  wcet-probe completion bash >~/.local/share/bash-completion/completions/wcet-probe
  wcet-probe completion fish >~/.config/fish/completions/wcet-probe.fish

\b
Exit codes: 0 printed, 2 unknown shell, 141 the reader went away
"""
_SHELLS = ("bash", "zsh", "fish")
_PROGRAM = "wcet-probe"
_VARIABLE = "_WCET_PROBE_COMPLETE"


@click.command(epilog=EPILOG)
@click.argument("shell", metavar="bash|zsh|fish", shell_complete=lambda _, __, word: _items(_SHELLS, word))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, allocators, scenarios, targets, options and files.
    """
    found = get_completion_class(shell) if shell in _SHELLS else None
    if found is None:
        raise unknown_name("shell", shell, _SHELLS)
    click.echo(found(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def allocators(_ctx: click.Context, _param: click.Parameter | None, word: str) -> list[CompletionItem[str]]:
    """Names of allocators that begin with ``word``."""
    from wcet_probe.catalog.lookup import allocator_names, configured_names

    return _items((*allocator_names(), *configured_names()), word)


def targets(_ctx: click.Context, _param: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Names of targets that begin with ``word``."""
    from wcet_probe.catalog.lookup import target_names

    return _items(target_names(), word)


def scenarios(ctx: click.Context, _param: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Names of scenarios that begin with ``word``: of the allocator on the line, else of any."""
    from wcet_probe.catalog.lookup import allocator_names
    from wcet_probe.scenarios.lookup import scenario_names

    names = allocator_names()

    # The option that is completed ends click's parsing early: an argument before it is still among the rest.
    for asked in (ctx.info_name, *ctx.params.values(), *ctx.args):
        if asked in names:
            return _items(scenario_names(asked), word)
    return _items(sorted({name for one in names for name in scenario_names(one)}), word)


def _items(names: Iterable[str], word: str) -> list[CompletionItem[str]]:
    return [CompletionItem(name) for name in names if name.startswith(word)]


class _Bash(BashComplete):
    """Bash takes ``budgeted:tlsf`` for three words."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and that one."""
        words, word = super().get_completion_args()
        return "\n".join(words).replace("\n:\n", ":").splitlines(), word


add_completion_class(_Bash)
