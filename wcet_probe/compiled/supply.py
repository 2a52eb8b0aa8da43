"""When translated code pays: where it is already there, and where a run is long enough to wait for the compiler."""

from __future__ import annotations

from pathlib import Path
from time import process_time

from wcet_probe.build.program import Program
from wcet_probe.emu.compiled import Detail, Translations

LEAST_OPERATIONS = 1 << 14
"""Fewer, all runs together, are left to the engine, which takes milliseconds and shares no semantics with the proof."""

_COMPILED_FOR = {detail: 1 << 20 if detail is Detail.DATA else 1 << 22 for detail in Detail}
"""Operations, all runs together, from which on it pays to wait seconds for a library that is not there."""

_COMPILED_AFTER_SECONDS = 4.0
"""CPU time of runs from which on it pays, however few their operations are: what the compiler takes of a large image.

Who buys when the rent has come to the price never pays twice the least (ski rental: Karlin et al., Algorithmica 1988).
"""


def translations(program: Program, cache_dir: Path) -> Translations:
    """Libraries for the runs of machines with ``program``, from ``cache_dir`` or compiled and put there.

    Which engine runs changes no result: both count the same.
    """
    asked = dict.fromkeys(Detail, 0)
    began: dict[Detail, float] = {}

    def supply(detail: Detail, operations: int) -> Path | None:
        asked[detail] += operations
        if asked[detail] < LEAST_OPERATIONS:
            return None
        spent = process_time() - began.setdefault(detail, process_time())
        pays = asked[detail] >= _COMPILED_FOR[detail] or spent >= _COMPILED_AFTER_SECONDS
        from wcet_probe.compiled.library import compiled_library  # noqa: PLC0415  (most answers need no translation)

        return compiled_library(program, detail, cache_dir, build=pays)

    return supply
