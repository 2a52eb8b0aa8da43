"""The allocators and targets that are there: manifests of ``allocators/`` and files of ``targets/`` as values."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, reduce
from importlib.resources.abc import Traversable
from operator import truediv
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wcet_probe.catalog.own_allocator import FOUND, MANIFEST, found_states, own_files, read_own, read_own_name
from wcet_probe.catalog.resources import folder
from wcet_probe.catalog.target_file import parse_target
from wcet_probe.config import load_config
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.allocator import Allocator, Complexity, Parameter, SetSpecification
from wcet_probe.model.target import Target

_NO_VALUES: Mapping[str, int] = MappingProxyType({})
_REPRESENTATIVE = "tlsf"
"""Which allocator is listed behind the colon of one that stands over another."""


def allocator_names() -> tuple[str, ...]:
    """Names of all allocators, sorted; one that stands over another has any other behind its colon, here TLSF."""
    home = folder("allocators")
    return tuple(sorted(f"{name}:{_REPRESENTATIVE}" if _says_over(name, home) else name for name in _folders(home)))


def load_allocator(
    name: str, values: Mapping[str, int] = _NO_VALUES, preset: str | None = None, home: Traversable | None = None
) -> Allocator:
    """The allocator ``name``, its build parameters set to ``values``, else to those of ``preset``, else to defaults.

    A name ``A:X`` is the allocator A over the allocator X, which serves what A does not. Allocators are those of the
    package, or those below ``home``; one's own is named by the path of its folder, or by its name where the
    configuration lists it.

    Raises:
        UsageError: no such allocator, preset or parameter, or a value that is none of the parameter's choices.
    """
    if own := _own_folder(name, home):
        allocator, presets = read_own(own)
        chosen = _chosen(allocator.name, allocator.parameters, {**_preset(name, preset, presets), **values})
        return replace(allocator, values=chosen)
    home = home or folder("allocators")
    outer, colon, inner = name.partition(":")
    if outer not in _folders(home) or (colon and not _is_over(outer, home)):
        raise _unknown_allocator(name)
    if _is_over(outer, home):
        return _load_over(outer, inner, values, preset, home)
    manifest = _manifest(name, home)
    parameters = _parameters(manifest)
    presets = manifest.get("presets", {})
    common, own = home / "common", home / name
    return Allocator(
        name=manifest["name"],
        title=manifest["title"],
        summary=manifest["summary"],
        sources=(
            *((file, (common / file).read_text("utf-8")) for file in manifest.get("common", ())),
            *((file, (own / file).read_text("utf-8")) for file in manifest["headers"] + manifest["sources"]),
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
        facts=_facts(name, home),
        promise=SetSpecification(**manifest["promise"]) if "promise" in manifest else None,
        found=found_states(home / name),
    )


def allocator_files(name: str, home: Traversable | None = None) -> tuple[str, ...]:
    """The files that the allocator ``name`` is read from, sorted, as paths from the folder of all allocators.

    Raises:
        UsageError: no such allocator.
    """
    if own := _own_folder(name, home):
        return tuple(f"{read_own_name(own)}/{file}" for file in own_files(own))
    home = home or folder("allocators")
    files = set()
    for part in name.split(":"):
        if part not in _folders(home):
            raise unknown_name("allocator", name, allocator_names())
        manifest = _manifest(part, home)
        files |= {f"common/{file}" for file in manifest.get("common", ())}
        files |= {f"{part}/{file}" for file in ("manifest.toml", *manifest["headers"], *manifest["sources"])}
        files |= {file for file, _ in _facts(part, home)}
        files |= {f"{part}/{FOUND}/{file}" for file, _ in found_states(home / part)}
    return tuple(sorted(files))


def _unknown_allocator(name: str) -> UsageError:
    """That there is no allocator ``name``, and how one of one's own is named."""
    if own := folder_that_is_meant("allocator", name):
        return own
    found = unknown_name("allocator", name, (*allocator_names(), *configured_names()))
    own_name = " One's own is known by its name where wcet-probe.toml lists its folder."
    return found if "did you mean" in str(found) else UsageError(f"{found}{own_name}")


def folder_that_is_meant(kind: str, name: str) -> UsageError | None:
    """What to write for an allocator in a folder that is called ``name`` here; None where there is no such folder.

    Parameters:
        kind: what the unknown name was asked for, in the words of the error.
        name: as it was given.
    """
    if is_path(name) or not Path(name, MANIFEST).is_file():
        return None
    return UsageError(
        f"unknown {kind} {name!r}: the folder of that name is told by a slash, {name}/; where only the name will do, "
        f'as of a result that is read again, put allocators = ["{name}"] into wcet-probe.toml here.'
    )


def allocator_content(name: str) -> dict[str, bytes]:
    """The files that the allocator ``name`` is read from, as ``allocator_files`` names them.

    Raises:
        UsageError: no such allocator.
    """
    own = _own_folder(name, None)
    home: Any = own or folder("allocators")
    # What is in a folder anywhere is called by the allocator's name, whatever the folder is called.
    inside = {file: file.partition("/")[2] if own else file for file in allocator_files(name)}
    # Of folders in an archive `joinpath` takes one name at a time.
    return {file: reduce(truediv, path.split("/"), home).read_bytes() for file, path in inside.items()}


def own_folder(name: str) -> Path | None:
    """The folder of the allocator of one's own called ``name``; None where it is one of the package.

    Raises:
        UsageError: there is no manifest, or its name is taken.
    """
    folder_of: Path | None = _own_folder(name, None)
    return folder_of


def is_path(name: str) -> bool:
    """Whether ``name`` is the path of an allocator's folder, and not a name."""
    return "/" in name or os.sep in name or name in (".", "..")


def configured_names() -> tuple[str, ...]:
    """Names of the allocators of one's own that the configuration lists, sorted.

    Raises:
        UsageError: the configuration or a manifest is not valid.
    """
    return tuple(sorted(_configured()))


def _configured() -> dict[str, Path]:
    """Folders of the allocators that the configuration lists, by name."""
    config = load_config(Path.cwd())
    found: dict[str, Path] = {}
    for place in config.allocators:
        name = read_own_name(place)
        if name in _folders(folder("allocators")) or name in found:
            raise UsageError(f"{config.file}: allocators: {name!r} is taken; change name in {place / MANIFEST}.")
        found[name] = place
    return found


def _own_folder(name: str, home: Traversable | None) -> Any:  # noqa: ANN401  (a path, or a folder of a pack)
    """The folder of the allocator of one's own called ``name``, or None where it is none."""
    if home is not None:
        own = home / name
        is_own = (own / MANIFEST).is_file() and "call" in tomllib.loads((own / MANIFEST).read_text("utf-8"))
        return own if is_own else None
    if is_path(name):
        place = Path(name).resolve()
        place = place.parent if place.name == MANIFEST else place
        own_name = read_own_name(place)
        if own_name in _folders(folder("allocators")):
            raise UsageError(f"{own_name!r} is the name of an allocator of the package; change name in {MANIFEST}.")
        return place
    return None if name.partition(":")[0] in _folders(folder("allocators")) else _configured().get(name)


def _load_over(
    outer: str, inner: str, values: Mapping[str, int], preset: str | None, everything: Traversable
) -> Allocator:
    """The allocator ``outer`` composed with ``inner``, its X: sources, parameters, literature, least heap."""
    if not inner:
        message = f"{outer} needs another allocator to stand over; name it behind a colon: {outer}:{_REPRESENTATIVE}."
        raise UsageError(message)
    if _is_over(inner.partition(":")[0], everything):
        message = f"{outer} cannot stand over {inner}, which stands over another itself; try {outer}:{_REPRESENTATIVE}."
        raise UsageError(message)
    shared = load_allocator(inner, home=everything)
    if shared.takes_cache_set:
        message = (
            f"{outer} cannot stand over {inner}: {inner}'s malloc takes a cache set, and {outer}'s, which takes a size "
            f"alone, has none to pass on; try {outer}:{_REPRESENTATIVE}."
        )
        raise UsageError(message)
    name, home, manifest = f"{outer}:{inner}", everything / outer, _manifest(outer, everything)
    parameters = (*_parameters(manifest), *shared.parameters)
    presets = manifest.get("presets", {})
    return Allocator(
        name=name,
        title=f"{manifest['title']} over {shared.title}",
        summary=manifest["summary"],
        sources=(
            *shared.sources,
            (f"{outer}_shared.h", _shared_header(outer, shared)),
            *((file, (home / file).read_text("utf-8")) for file in manifest["headers"] + manifest["sources"]),
        ),
        entry_points=MappingProxyType(manifest["entry_points"]),
        alignment_bytes=shared.alignment_bytes,
        minimum_heap_bytes=manifest["minimum_heap_bytes"] + shared.minimum_heap_bytes,
        parameters=parameters,
        values=_chosen(name, parameters, {**_preset(name, preset, presets), **values}),
        presets=MappingProxyType(presets),
        takes_cache_set=False,
        complexity=MappingProxyType(
            {
                operation: Complexity(f"{c['claim']} = {shared.complexity[operation].claim}", c["source"])
                for operation, c in manifest["complexity"].items()
            }
        ),
        literature=(*manifest["literature"], *shared.literature),
        facts=(*_facts(outer, everything), *shared.facts),
        found=found_states(home),
    )


def _shared_header(outer: str, shared: Allocator) -> str:
    """C that names the entry points of X to the allocator over it."""
    prefix, names = f"{outer.upper()}_X_", shared.entry_points
    macros = "".join(f"#define {prefix}{role.upper()} {symbol}\n" for role, symbol in names.items())
    return (
        f"/* SPDX-License-Identifier: 0BSD */\n/* Made for {shared.name} as X. */\n#include <stddef.h>\n\n{macros}\n"
        f"int {names['init']}(void *arena, size_t bytes);\nvoid *{names['malloc']}(size_t bytes);\n"
        f"void {names['free']}(void *payload);\nint {names['check']}(void);\n"
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


def _folders(home: Traversable) -> tuple[str, ...]:
    return tuple(entry.name for entry in home.iterdir() if (entry / "manifest.toml").is_file())


def _manifest(name: str, home: Traversable) -> Mapping[str, Any]:
    return _parsed((home / name / "manifest.toml").read_text("utf-8"))


@lru_cache(maxsize=64)
def _parsed(manifest: str) -> Mapping[str, Any]:
    """The content of a manifest, which is asked for several times while an allocator is read."""
    return MappingProxyType(tomllib.loads(manifest))


def _facts(name: str, home: Traversable) -> tuple[tuple[str, str], ...]:
    """The flow facts beside the allocator: file name and text, or nothing."""
    file = home / name / "facts.toml"
    return ((f"{name}/facts.toml", file.read_text("utf-8")),) if file.is_file() else ()


def _is_over(name: str, home: Traversable) -> bool:
    """Whether there is such an allocator, and it stands over another one."""
    return name in _folders(home) and _says_over(name, home)


def _says_over(name: str, home: Traversable) -> bool:
    """Whether the manifest says that its allocator stands over another one."""
    text = (home / name / "manifest.toml").read_text("utf-8")
    return "over" in text and bool(_parsed(text).get("over", False))  # a list of names need not parse all manifests


def _parameters(manifest: Mapping[str, Any]) -> tuple[Parameter, ...]:
    return tuple(_parameter(entry) for entry in manifest.get("parameters", ()))


def _parameter(entry: Mapping[str, Any]) -> Parameter:
    return Parameter(
        name=entry["name"],
        macro=entry["macro"],
        default=entry["default"],
        choices=tuple(entry.get("choices", ())),
        description=entry["description"],
        span=(entry["range"][0], entry["range"][1]) if "range" in entry else None,
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
        if not known[name].takes(value):
            possible = known[name].choices_in_words
            message = f"parameter {name} of {allocator} cannot be {value}; choose one of {possible}."
            raise UsageError(message)
    return MappingProxyType({name: values.get(name, parameter.default) for name, parameter in known.items()})
