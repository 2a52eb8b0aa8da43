"""The allocators and targets that are there: manifests of ``allocators/`` and files of ``targets/`` as values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model import Allocator, Complexity, Parameter, Target
from wcet_probe.resources import folder
from wcet_probe.target_file import parse_target

_NO_VALUES: Mapping[str, int] = MappingProxyType({})


def allocator_names() -> tuple[str, ...]:
    """Names of all allocators, sorted."""
    return tuple(sorted(entry.name for entry in folder("allocators").iterdir() if (entry / "manifest.toml").is_file()))


def load_allocator(name: str, values: Mapping[str, int] = _NO_VALUES, preset: str | None = None) -> Allocator:
    """The allocator ``name``, its build parameters set to ``values``, else to those of ``preset``, else to defaults.

    Raises:
        UsageError: no such allocator, preset or parameter, or a value that is none of the parameter's choices.
    """
    if name not in allocator_names():
        raise unknown_name("allocator", name, allocator_names())
    home = folder("allocators") / name
    manifest = tomllib.loads((home / "manifest.toml").read_text("utf-8"))
    parameters = tuple(_parameter(entry) for entry in manifest.get("parameters", ()))
    presets = manifest.get("presets", {})
    common = folder("allocators") / "common"
    return Allocator(
        name=manifest["name"],
        title=manifest["title"],
        summary=manifest["summary"],
        sources=(
            *((file, (common / file).read_text("utf-8")) for file in manifest.get("common", ())),
            *((file, (home / file).read_text("utf-8")) for file in manifest["headers"] + manifest["sources"]),
        ),
        entry_points=MappingProxyType(manifest["entry_points"]),
        alignment_bytes=manifest["alignment_bytes"],
        minimum_heap_bytes=manifest["minimum_heap_bytes"],
        parameters=parameters,
        values=_chosen(name, parameters, {**_preset(name, preset, presets), **values}),
        presets=MappingProxyType(presets),
        takes_cache_set=manifest.get("takes_cache_set", False),
        complexity=MappingProxyType({operation: Complexity(**c) for operation, c in manifest["complexity"].items()}),
        literature=tuple(manifest["literature"]),
    )


def target_names() -> tuple[str, ...]:
    """Names of all targets, sorted."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _target_files()))


def load_target(name: str) -> Target:
    """The target ``name``.

    Raises:
        UsageError: no such target, or its file is not valid.
    """
    for entry in _target_files():
        if entry.name == f"{name}.toml":
            return parse_target(name, entry.read_text("utf-8"))
    raise unknown_name("target", name, target_names())


def _target_files() -> list[Any]:
    return [entry for entry in folder("targets").iterdir() if entry.name.endswith(".toml")]


def _parameter(entry: Mapping[str, Any]) -> Parameter:
    return Parameter(
        name=entry["name"],
        macro=entry["macro"],
        default=entry["default"],
        choices=tuple(entry["choices"]),
        description=entry["description"],
    )


def _preset(allocator: str, preset: str | None, presets: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    if preset is None:
        return _NO_VALUES
    if preset not in presets:
        if not presets:
            message = f"{allocator} has no presets; choose values with --param."
            raise UsageError(message)
        raise unknown_name(f"preset of {allocator}", preset, presets)
    return presets[preset]


def _chosen(allocator: str, parameters: tuple[Parameter, ...], values: Mapping[str, int]) -> Mapping[str, int]:
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in values.items():
        if name not in known:
            raise unknown_name(f"parameter of {allocator}", name, known)
        if value not in known[name].choices:
            choices = ", ".join(map(str, known[name].choices))
            message = f"parameter {name} of {allocator} cannot be {value}; choose one of {choices}."
            raise UsageError(message)
    return MappingProxyType({name: values.get(name, parameter.default) for name, parameter in known.items()})
