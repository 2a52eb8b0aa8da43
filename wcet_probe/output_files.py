"""Files that a command writes: whole, or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from wcet_probe.errors import WcetProbeError


def write_whole(file: Path, content: str | bytes) -> None:
    """Write ``content``, text as UTF-8, to a temporary file beside ``file``, which then takes its place.

    Folders that are missing are made.

    Raises:
        WcetProbeError: it cannot be written; ``file`` is as it was.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        beside.replace(file)
    except OSError as error:
        raise WcetProbeError(f"cannot write {file}: {error.strerror}; name a place that you can write to.") from error
    finally:
        with suppress(OSError):
            beside.unlink()
