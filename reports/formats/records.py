"""Values of the model in the types of JSON, and the document of a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING

from wcet_probe.model.target import CacheConfig, Target

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Document = dict[str, object]


def target_document(target: Target) -> Document:
    """The document ``wcet-probe-target``: every number with its source and basis."""
    rest = {key: value for key, value in record(target).items() if key not in ("icache", "dcache")}
    bases = {basis.value: number for basis, number in target.bases.items()}
    return {"format": "wcet-probe-target", "version": 1, **rest, "bases": bases, **hardware(target)}


def plain(value: object) -> object:
    """``value`` in the types of JSON: a dataclass becomes an object of its fields, an enumeration its value."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return record(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def record(value: DataclassInstance) -> Document:
    """The fields of a dataclass in the types of JSON."""
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def hardware(target: Target) -> Document:
    """The caches as configured, with their capacities, and the memory behind them."""
    caches = {"icache": _cache(target.icache), "dcache": _cache(target.dcache)}
    return {"caches": caches, "memory": plain(target.memory)}


def _cache(cache: CacheConfig | None) -> Document | None:
    return {**record(cache), "size_bytes": cache.size_bytes} if cache else None
