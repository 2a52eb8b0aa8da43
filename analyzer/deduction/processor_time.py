"""A limit of processor time for calls that can be interrupted and keep no such limit of their own.

Words: SMT (docs/explanation/glossary.md).

*Soundness:* none is claimed; a call that was interrupted has no answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_LOOKS_S = 0.5
"""Time between two looks at how much a call has used, in s."""


@dataclass(slots=True)
class _Watch:
    """The call that runs, and since when, in s of the process; one thread looks at it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    call: tuple[Callable[[], None], float] | None = None
    thread: threading.Thread | None = None

    def look(self) -> None:
        while True:
            time.sleep(_LOOKS_S)
            with self.lock:
                if self.call is not None and time.process_time() > self.call[1]:
                    self.call[0]()


_WATCH = _Watch()


@contextmanager
def limited(interrupt: Callable[[], None], seconds: float) -> Iterator[None]:
    """Interrupt what runs inside once the process has used ``seconds`` of processor time for it.

    A machine that does other work at the same time makes no difference to it, as it does to a limit of elapsed time.

    Parameters:
        interrupt: ends the call that runs, and may be called more than once.
        seconds: processor time, in s.

    Soundness: none is claimed.
    """
    if _WATCH.thread is None:
        _WATCH.thread = threading.Thread(target=_WATCH.look, daemon=True)
        _WATCH.thread.start()
    with _WATCH.lock:
        _WATCH.call = interrupt, time.process_time() + seconds
    try:
        yield
    finally:
        with _WATCH.lock:
            _WATCH.call = None
