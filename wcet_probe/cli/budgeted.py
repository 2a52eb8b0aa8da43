"""The result of a budget's entry: proved and observed now, or found among results that somebody has."""

# ruff: noqa: PLC0415  (engines are imported when they are needed)

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from hashlib import sha256
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.ci.budgets import AllocatorCall, Budget, FirmwareCall
from wcet_probe.config import Config, cache_dir
from wcet_probe.errors import UsageError

if TYPE_CHECKING:
    from wcet_probe.model.target import Target

Document = Mapping[str, Any]
_COMPILER = "zig"
_SCENARIOS = {"malloc": "worst-alloc", "free": "worst-free"}
_CACHES = ("icache", "dcache")


def prove(budget: Budget, config: Config, tell: Callable[[str], None]) -> Document:
    """The result document of ``budget``; ``tell`` is told in words what is being done.

    Raises:
        AnalysisError: a firmware's function has no bound; an allocator's result says so itself.
        ContradictionError: an observation contradicts the proof.
        WcetProbeError: the entry names what there is not, or something fails.
    """
    call = budget.call
    if isinstance(call, FirmwareCall):
        return _prove_firmware(budget, call, tell)
    return _prove_allocator(budget, call, config, tell)


def match(budget: Budget, results: Sequence[Document]) -> Document:
    """The one of ``results`` that is of ``budget``: same target and caches, same call, same parameters.

    Raises:
        UsageError: there is none, or more than one.
    """
    is_of = _is_of_firmware if isinstance(budget.call, FirmwareCall) else _is_of_allocator
    caches = _caches(_target(budget))
    found = [one for one in results if one["target"] == budget.target and _same(one, caches) and is_of(budget, one)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} of the --results are of this entry; give one.")
    raise UsageError("none of the --results is of this entry; add it, or leave --results out to run everything.")


def call_paths(call: AllocatorCall | FirmwareCall, folder: Path) -> Mapping[str, str]:
    """Paths of the sources of ``call`` by file name: of an allocator from the package, of a firmware from ``folder``.

    A file that is not below ``folder``, or whose name belongs to several, is left out.
    """
    if isinstance(call, AllocatorCall):
        from wcet_probe.catalog.lookup import allocator_files

        return {PurePosixPath(file).name: f"allocators/{file}" for file in allocator_files(call.allocator)}
    if not call.image.is_file():
        return {}
    from wcet_probe.build.image import source_paths

    found: dict[str, set[str]] = {}
    for path in source_paths(call.image.read_bytes()):
        below = next((file for file in _tails(path, (*call.sources, folder)) if file.is_file()), None)
        if below is not None and below.resolve().is_relative_to(folder.resolve()):
            found.setdefault(path.name, set()).add(below.resolve().relative_to(folder.resolve()).as_posix())
    return {name: next(iter(paths)) for name, paths in found.items() if len(paths) == 1}


def _tails(path: PurePosixPath, roots: Sequence[Path]) -> Iterator[Path]:
    """``path`` below each of ``roots``, with fewer and fewer of its first folders."""
    parts = [part for part in PurePosixPath(normpath(path)).parts if part not in {"/", ".."}]
    for start in range(len(parts)):
        yield from (root.joinpath(*parts[start:]) for root in roots)


def _target(budget: Budget) -> Target:
    from wcet_probe.catalog.lookup import load_target

    return reduce(apply_cache_option, budget.caches, load_target(budget.target))


def _prove_firmware(budget: Budget, call: FirmwareCall, tell: Callable[[str], None]) -> Document:
    from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware
    from wcet_probe.reports.formats.bound_document import firmware_document

    request = FirmwareRequest(
        call.image, call.entry, _target(budget), call.facts, call.sources, budget.parameters, budget.caches
    )
    return firmware_document(bound_firmware(request, tell))


def _prove_allocator(budget: Budget, call: AllocatorCall, config: Config, tell: Callable[[str], None]) -> Document:
    from wcet_probe.answer.witness import bench, probe
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.formats.document import document

    request = bench.ProbeRequest(
        allocator=load_allocator(call.allocator, budget.parameters, call.preset),
        target=_target(budget),
        scenario=_SCENARIOS[call.operation],
        heap_bytes=call.heap_bytes,
        seed=0,
        initial_cache=None,
        compiler=config.cc or _COMPILER,
        cross_check=None,
        cache_dir=cache_dir(config),
        prove=True,
        cache_options=budget.caches,
    )
    return document(probe.observe(request, tell))


# ------------------------------------------------------------------------------------------------------------- matching


def _is_of_allocator(budget: Budget, document: Document) -> bool:
    from wcet_probe.catalog.lookup import load_allocator

    call = budget.call
    if not isinstance(call, AllocatorCall) or document.get("allocator") != call.allocator:
        return False
    values = load_allocator(call.allocator, budget.parameters, call.preset).values
    return (document["scenario"], document["heap_bytes"], document["parameters"]) == (
        _SCENARIOS[call.operation],
        call.heap_bytes,
        dict(values),
    )


def _is_of_firmware(budget: Budget, document: Document) -> bool:
    """Also of the same image, where that is there to be compared."""
    call, bound = budget.call, document.get("bound")
    if not isinstance(call, FirmwareCall) or "allocator" in document or not bound:
        return False
    if (bound["entry"], bound["parameters"]) != (call.entry, dict(budget.parameters)):
        return False
    image = call.image.read_bytes() if call.image.is_file() else None
    return image is None or sha256(image).hexdigest() == document["image"]["sha256"]


def _caches(target: Target) -> Document:
    return {name: asdict(cache) if (cache := getattr(target, name)) else None for name in _CACHES}


def _same(document: Document, caches: Document) -> bool:
    """Whether the caches of ``document`` are ``caches``, as far as it tells them."""
    told = document.get("caches") or (document.get("target_configuration") or {}).get("caches")
    if told is None:
        return True
    for name in _CACHES:
        one, other = told.get(name), caches[name]
        if (one is None) != (other is None):
            return False
        if one and any(one.get(key) != value for key, value in other.items() if key not in {"basis", "source"}):
            return False
    return True
