"""The manual page tells all that ``--help`` tells, and nothing that roff takes amiss."""

import re
import shutil
import subprocess

import click
import pytest

from wcet_probe.cli.app import commands, main
from wcet_probe.cli.man import manual_page
from wcet_probe.cli.run import run
from wcet_probe.errors import ExitCode


@pytest.fixture
def page(capsys):
    assert main(["man"]) == 0
    return capsys.readouterr().out


def test_the_page_has_every_command_and_every_option(page):
    text = page.replace("\\-", "-").replace("\\[u2026]", "…")
    context = click.Context(commands)
    listed = {name: commands.get_command(context, name) for name in commands.list_commands(context)}
    assert listed
    for name, command in {**listed, "ALLOCATOR": run}.items():
        section = text.partition(f'.SS "wcet-probe {name} ')[2].partition("\n.S")[0]
        assert section, name
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert re.search(rf"\\fB(-\w, )?{option.opts[-1]}\b", section)
                assert " ".join((option.help or "").split()) in section


def test_the_page_has_every_exit_code(page):
    section = page.partition(".SH EXIT CODES")[2].partition(".SH")[0]
    for code in (*ExitCode, 141):
        assert f" {int(code)}  " in section


def test_what_means_something_to_roff_is_escaped():
    group = click.Group(
        "toy", help="Toy.\n\n.SH begins\n'that' \\and … it.\n\n\b\n.as it\n  stands", epilog="\b\nWords:\n  'x'"
    )
    page = manual_page(group, {})
    assert ".PP\n\\&.SH begins 'that' \\eand \\[u2026] it.\n" in page
    assert ".nf\n\\&.as it\n  stands\n.fi\n" in page
    assert ".SH WORDS\n.nf\n  'x'\n.fi\n" in page
    assert page.isascii()


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_groff_has_nothing_to_say(page):
    done = subprocess.run(
        [str(shutil.which("groff")), "-man", "-ww", "-Tutf8", "-z"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
