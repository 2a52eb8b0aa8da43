"""A limit of processor time for calls that can be interrupted and keep no such limit of their own.

Who interrupts the program, as by Ctrl-C, ends such a call, too; without that the signal waits until the call has ended.

Words: SMT (docs/explanation/glossary.md).

*Soundness:* none is claimed; a call that was interrupted has no answer.
"""

from __future__ import annotations

import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_LOOKS_S = 0.5
"""Time between two looks at how much a call has used, in s."""


@dataclass(slots=True)
class _Watch:
    """The call that runs, until when, in s of the process, and whether it is to end; one thread looks at it.

    Numbers of signals come by ``signals``, its other end first, as the main thread handles none until the call ends.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    call: tuple[Callable[[], None], float] | None = None
    is_ended: bool = False
    thread: threading.Thread | None = None
    signals: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair)

    def look(self) -> None:
        while True:
            ready, _, _ = select.select([self.signals[1]], [], [], _LOOKS_S)
            told = self.signals[1].recv(64) if ready else b""
            with self.lock:
                if self.call is not None:
                    self.is_ended |= signal.SIGINT in told or time.process_time() > self.call[1]
                    if self.is_ended:
                        self.call[0]()


_WATCH = _Watch()
_WATCH.signals[0].setblocking(False)


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
    is_main = threading.current_thread() is threading.main_thread()
    former = signal.set_wakeup_fd(_WATCH.signals[0].fileno(), warn_on_full_buffer=False) if is_main else -1
    with _WATCH.lock:
        _WATCH.call, _WATCH.is_ended = (interrupt, time.process_time() + seconds), False
    try:
        yield
    finally:
        with _WATCH.lock:
            _WATCH.call = None
        if is_main:
            signal.set_wakeup_fd(former)
