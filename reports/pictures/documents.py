"""What pictures read from documents, and copes with what is missing there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wcet_probe.sizes import format_size

Document = Mapping[str, Any]
Samples = Sequence[tuple[str, int]]
"""Kind and instructions of each operation of a replay, in order."""

RESULT, BOUND, GROWTH, REPLAY = "wcet-probe-result", "wcet-probe-bound", "wcet-probe-growth", "wcet-probe-replay"


def flattened(documents: Iterable[Document]) -> list[Document]:
    """``documents``, those within a ``wcet-probe-results`` one by one."""
    return [one for found in documents for one in (found.get("results") or [found])]


def operation(result: Document) -> str:
    """What was called: ``malloc``, ``free``, or the entry function of a bound."""
    measured = result.get("measured_operation") or {}
    return measured.get("kind") or (result.get("bound") or {}).get("entry") or ""


def identity(result: Document) -> dict[str, str]:
    """What tells a result from others, in words."""
    heap, parameters = result.get("heap_bytes"), result.get("parameters") or {}
    return {
        "allocator": result.get("allocator") or "",
        "operation": operation(result),
        "target": result.get("target") or "",
        "scenario": result.get("scenario") or "",
        "heap": f"heap {format_size(heap)}" if heap else "",
        "caches": f"caches {result['initial_cache']}" if result.get("initial_cache") else "",
        "parameters": " ".join(f"{name}={value}" for name, value in sorted(parameters.items())),
    }


def told_apart(results: Sequence[Document], always: Sequence[str]) -> tuple[list[str], str]:
    """A label for each of ``results``, of what differs and of the keys ``always``; and what they have in common.

    Build parameters belong to an allocator: they are named only where one allocator has several sets of them.
    """
    found = [identity(result) for result in results]
    names = list(found[0]) if found else []
    differing = [name for name in names if len({one[name] for one in found} - {""}) > 1]
    sets_of_parameters = {(one["allocator"], one["parameters"]) for one in found}
    if len(sets_of_parameters) == len({one["allocator"] for one in found}):
        differing = [name for name in differing if name != "parameters"]
        names = [name for name in names if name != "parameters"]
    shown = [name for name in names if name in differing or name in always]
    values = {name: {one[name] for one in found} for name in names}
    common = [found[0][name] for name in names if name not in shown and len(values[name]) == 1 and found[0][name]]
    return [" ".join(one[name] for name in shown if one[name]) for one in found], ", ".join(common)


def name_of(result: Document) -> str:
    """Allocator, operation and target in words."""
    parts = identity(result)
    called = " ".join(part for part in (parts["allocator"], parts["operation"] or parts["scenario"]) if part)
    return f"{called} on {parts['target']}" if parts["target"] else called


def count(section: Mapping[str, Any] | None, key: str) -> int | None:
    """The integer under ``key`` of ``section``, if both are there."""
    value = (section or {}).get(key)
    return value if type(value) is int else None
