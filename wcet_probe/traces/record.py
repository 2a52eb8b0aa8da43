"""Running a program with its heap operations recorded, by a library that is loaded before the C library."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.traces.file import write_trace
from wcet_probe.traces.imports import read_recording


def record(command: Sequence[str], trace: Path, tell: Callable[[str], None] = lambda _: None) -> tuple[int, int]:
    """Run ``command``, and write what it asks of its heap to ``trace``.

    The program keeps its standard streams. Only a program that is linked dynamically takes the library; what a child
    process does is not recorded.

    Returns:
        the number of operations, and the program's exit status, negative for a signal.

    Raises:
        UsageError: there is no such program, or nothing was recorded of it.
        WcetProbeError: the library was not built, or the trace cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="wcet-probe-") as folder:
        log = Path(folder, "recording")
        environment = os.environ | {"LD_PRELOAD": _library(), "WCET_PROBE_RECORD": str(log)}
        try:
            status = subprocess.run(list(command), check=False, env=environment).returncode
        except OSError as error:
            raise UsageError(f"cannot run {command[0]}: {error.strerror}; name a program.") from error
        if not log.exists() or not log.stat().st_size:
            raise UsageError(
                f"nothing was recorded of {command[0]}: it is linked statically, or asks for nothing; choose another."
            )
        if status < 0:
            tell(f"the program was ended by {signal.Signals(-status).name}")
        rows = read_recording(log, tell)
        first = next(rows, None)
        if first is None:
            raise UsageError(f"{command[0]} asks for nothing of its heap, so that there is no trace; choose another.")
        return write_trace(trace, chain([first], rows)), status


def _library() -> str:
    spec = find_spec("wcet_probe.traces")
    homes = [Path(home) for home in (spec.submodule_search_locations or ())] if spec else []
    found = [home / "_record.so" for home in homes if (home / "_record.so").is_file()]
    if not found:
        raise WcetProbeError("the recorder is missing; install the package again so that it is built.")
    return str(found[0])
