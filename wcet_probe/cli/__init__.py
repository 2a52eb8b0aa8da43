"""The command line. Only this package and the reports print; stdout carries the result, stderr all else."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

COLLECTED_EVERY = 500_000
"""Containers that are made between two looks for cycles: an answer makes many that live, and hardly a cycle."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``wcet-probe`` with ``arguments``, by default those of the process, and return its exit code."""
    gc.set_threshold(COLLECTED_EVERY)
    atexit.register(gc.disable)  # where the process ends, nobody needs one more look
    try:
        from wcet_probe.cli.app import main as run  # noqa: PLC0415  (an interrupt may come while it is imported)
    except KeyboardInterrupt:
        sys.stderr.write("wcet-probe: interrupted; nothing was written.\n")
        return 130
    return run(arguments)
