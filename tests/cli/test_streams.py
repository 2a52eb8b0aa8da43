"""Progress on stderr: what a terminal shows, what a pipe does not get."""

import io
import re

import pytest

from wcet_probe.cli import streams
from wcet_probe.progress import counted, silent

COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?[349][0-9][0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """Lets stderr be a terminal, or not, and returns it."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")

    def become(stream):
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return become


def shown(*, quiet=False, verbose=False, parts=(3, 4), text="tlsf on [bold]"):
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        tell(text, *parts)


def test_a_terminal_shows_words_bar_share_and_remaining_time(stderr):
    terminal = stderr(Terminal())
    shown()
    assert re.search(r"tlsf on \[bold\] .*━.*75%.*-:--:--", terminal.getvalue())
    assert COLOUR.search(terminal.getvalue())


def test_where_the_parts_are_not_known_there_is_no_bar(stderr):
    terminal = stderr(Terminal())
    shown(parts=())
    assert "tlsf on [bold]" in terminal.getvalue()
    assert "━" not in terminal.getvalue()
    assert "%" not in terminal.getvalue()


def test_long_words_leave_room_for_the_bar(stderr):
    terminal = stderr(Terminal())
    shown(text="a heap of which much is to be told, " * 9)
    last = max(COLOUR.sub("", terminal.getvalue()).split("\n"), key=lambda line: "75%" in line)
    assert re.search(r"a heap .*… ━+.* 75% .*-:--:--", re.sub(r"\x1b\[[0-9;]*m", "", last))


def test_no_color_is_honoured(stderr, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = stderr(Terminal())
    shown()
    assert "75%" in terminal.getvalue()
    assert not COLOUR.search(terminal.getvalue())


@pytest.mark.parametrize(("stream", "quiet"), [(io.StringIO, False), (io.StringIO, True), (Terminal, True)])
def test_a_pipe_and_quiet_get_nothing(stderr, stream, quiet):
    written = stderr(stream())
    shown(quiet=quiet)
    assert not written.getvalue()


def test_verbose_writes_a_line_for_each_step(capsys):
    with streams.progress(quiet=False, verbose=True) as tell:
        for done, text in enumerate(("one", "two", "two", "two", "one")):
            tell(text, done, 5)
        tell("without parts")
    told = capsys.readouterr()
    assert told.err == "".join(f"wcet-probe: {text}\n" for text in ("one", "two", "one", "without parts"))
    assert not told.out


def test_work_that_tells_words_alone_is_counted():
    told = []
    tell = counted(lambda *heard: told.append(heard), 2)
    tell("one")
    tell("two")
    assert told == [("one", 0, 2), ("two", 1, 2)]
    silent("three", 1, 2)
