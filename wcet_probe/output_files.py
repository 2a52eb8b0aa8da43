"""Files that a command writes: whole, or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wcet_probe.errors import WcetProbeError


def write_whole(file: Path, content: str | bytes) -> None:
    """Write ``content``, text as UTF-8, to a temporary file beside ``file``, which then takes its place.

    Folders that are missing are made. A link stays, and what it leads to is written; what is no regular file, as a
    device or a pipe, is written as it is, for it must not be replaced.

    Raises:
        WcetProbeError: it cannot be written; ``file`` is as it was.
    """
    data = content.encode() if isinstance(content, str) else content
    with _beside(file) as (real, beside):
        if beside is None:
            real.write_bytes(data)
        else:
            beside.write_bytes(data)
            beside.replace(real)


def see_to_write(file: Path) -> None:
    """See to it that `write_whole` can write ``file``, before minutes go into what is to be written; it stays as it is.

    Raises:
        WcetProbeError: it cannot be written.
    """
    with _beside(file) as (_, beside):
        if beside is not None:
            beside.write_bytes(b"")


@contextmanager
def _beside(file: Path) -> Iterator[tuple[Path, Path | None]]:
    """What ``file`` leads to, and a temporary file beside it, which is gone in the end; None beside no regular file."""
    real = Path(os.path.realpath(file))
    beside = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        if real.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        is_regular = real.is_file() or not real.exists()
        if is_regular:
            real.parent.mkdir(parents=True, exist_ok=True)
        yield real, beside if is_regular else None
    except OSError as error:
        raise WcetProbeError(f"cannot write {file}: {error.strerror}; name a place that you can write to.") from error
    finally:
        with suppress(OSError):
            beside.unlink()
