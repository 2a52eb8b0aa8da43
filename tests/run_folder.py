"""A folder that all processes of a test run share: its first process makes it, and it is gone when that one ends.

What is in it is found by its content and was made by the sources of this run, so it is never older than they are.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

RUN = "WCET_PROBE_TEST_RUN"
"""Tells workers, and what tests start, where the folder is. Who changes the sources must not pass it on."""

_OWN = None if RUN in os.environ else TemporaryDirectory(prefix="wcet-probe-tests-", ignore_cleanup_errors=True)
if _OWN is not None:
    os.environ[RUN] = _OWN.name


def run_folder(name: str) -> Path:
    """The part ``name`` of the folder."""
    folder = Path(os.environ[RUN]) / name
    folder.mkdir(exist_ok=True)
    return folder


def once(name: str, make: Callable[[], str], *key: object) -> str:
    """The text that ``make`` gives for ``key``, as `once_bytes`."""
    return once_bytes(name, lambda: make().encode(), *key).decode()


def once_bytes(name: str, make: Callable[[], bytes], *key: object) -> bytes:
    """What ``make`` gives for ``key``, made once in a run; the part ``name`` of the folder keeps it.

    A worker that asks for what another one is making waits for it.
    """
    kept = run_folder(name) / hashlib.sha256(repr(key).encode()).hexdigest()
    if not kept.exists():
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                with NamedTemporaryFile(dir=kept.parent, delete=False) as new:
                    new.write(make())
                Path(new.name).replace(kept)
    return kept.read_bytes()
