"""How long work says what it is doing, and how much of it is done; `wcet_probe.cli.streams` shows it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Protocol


class Progress(Protocol):
    """Is told in words what is being done and, where that is known, that ``done`` of ``total`` parts are finished.

    Where only words are told, ``Callable[[str], None]`` is enough.
    """

    def __call__(self, text: str, done: int = 0, total: int = 0, /) -> None:
        """Hear ``text``; a ``total`` of 0 says that nothing is known of the parts."""


def silent(_text: str, _done: int = 0, _total: int = 0, /) -> None:
    """Hear, and tell nobody."""


def counted(progress: Progress, total: int) -> Callable[[str], None]:
    """What work of ``total`` parts tells its words to, if it does so once when each part begins."""
    number = count()
    return lambda text: progress(text, next(number), total)
