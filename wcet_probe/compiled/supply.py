"""When translated code pays: where it is already there, and where a run is long enough to wait for the compiler."""

from __future__ import annotations

from pathlib import Path

from wcet_probe.build.program import Program
from wcet_probe.emu.compiled import Detail, Translations

LEAST_OPERATIONS = 1 << 14
"""Fewer, all runs together, are left to the engine, which takes milliseconds and shares no semantics with the proof."""

_COMPILED_FOR = {Detail.DATA: 1 << 20, Detail.FETCHES: 1 << 22, Detail.NOTHING: 1 << 22}
"""Operations, all runs together, from which on it pays to wait seconds for a library that is not there."""


def translations(program: Program, cache_dir: Path) -> Translations:
    """Libraries for the runs of machines with ``program``, from ``cache_dir`` or compiled and put there.

    Which engine runs changes no result: both count the same.
    """
    asked = dict.fromkeys(Detail, 0)

    def supply(detail: Detail, operations: int) -> Path | None:
        asked[detail] += operations
        if asked[detail] < LEAST_OPERATIONS:
            return None
        from wcet_probe.compiled.library import compiled_library  # noqa: PLC0415  (most answers need no translation)

        return compiled_library(program, detail, cache_dir, build=asked[detail] >= _COMPILED_FOR[detail])

    return supply
