"""Where the package's data lives: allocators, targets, guest code."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable


def folder(name: str) -> Traversable:
    """The package's data folder ``name`` (``allocators``, ``targets``, ``guest``, ``examples``)."""
    return files("wcet_probe") / name if name in {"guest", "examples"} else files(f"wcet_probe.{name}")
