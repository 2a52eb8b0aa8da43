"""What a stored result was made with: the code that may run for it, what that rests on, and what it is made of.

The code is a module and all that it imports, directly and by detours, within functions too; what is imported for types
only never runs. So a change of code that a measurement does not reach leaves what was measured, and any other does not.
"""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from wcet_probe.answer.papers.measuring import MEASURES
from wcet_probe.answer.papers.points import Kind, Point, Settings, allocator_of
from wcet_probe.build.toolchain import find_toolchain
from wcet_probe.catalog.resources import folder
from wcet_probe.errors import BuildError
from wcet_probe.identity import Same
from wcet_probe.model.target import Target

_OURS = "wcet_probe"
_BY_NAME = {"import_module", "__import__"}
_PROGRAMS = ("ziglang",)
"""Packages that are called as programs, and not imported."""
_NO_FACTS: frozenset[Kind] = frozenset({"run", "code"})
"""Kinds that read no facts: `measured_runs` has what a proof needs not even imported."""


def identity_of(point: Point, settings: Settings) -> str:
    """A digest of all that a result of ``point`` depends on, but for the point's own words.

    Parameters:
        point: what is measured.
        settings: of whose folder of images a result does not depend.
    """
    names = {point.allocator, point.what} if point.kind == "in-state-of" else {point.allocator}
    return _digest(
        code_identity(MEASURES[point.kind].__module__),
        repr(settings.target),
        _compiler(settings.compiler, Same(settings.target)),
        *(
            _allocator(name, point.preset, point.values, with_facts=point.kind not in _NO_FACTS)
            for name in sorted(names)
        ),
        *(_data("guest"), *([_data("examples")] if point.kind == "scheduler" else [])),
    )


@cache
def code_identity(module: str) -> str:
    """A digest of ``module`` and all that it may import: text of this package, versions of others, and Python's."""
    ours, others = reached(module)
    packages = sorted({name.rpartition(".")[0] for name in ours} - {_OURS, ""})
    return _digest(
        *(f"{name}\n{_source(name)}" for name in sorted(ours)),
        *(
            f"{path}\n{hashlib.sha256(file.read_bytes()).hexdigest()}"
            for name in packages
            for path, file in _beside(name)
        ),
        *_versions(others),
        f"{platform.python_implementation()} {platform.python_version()}",
    )


@cache
def reached(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """The modules of this package that ``module`` may import, itself among them, and the other packages' names.

    A module that imports others by a name that it computes may import all modules of its package.
    """
    ours: set[str] = set()
    others: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in ours:
            continue
        if name.partition(".")[0] != _OURS:
            others.add(name.partition(".")[0])
            continue
        if _file(name) is None:
            continue  # a name within a module
        ours.add(name)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        waiting += _imported(name)
    return frozenset(ours), frozenset(others - sys.stdlib_module_names)


@cache
def _imported(module: str) -> tuple[str, ...]:
    return tuple(_names_imported(module))


def _names_imported(module: str) -> Iterator[str]:
    waiting: list[ast.AST] = [ast.parse(_source(module))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module)
        elif isinstance(node, ast.Name | ast.Attribute):
            called = node.id if isinstance(node, ast.Name) else node.attr
            if called in _BY_NAME:
                yield from _modules_of(module.rpartition(".")[0])
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _modules_of(package: str) -> Iterator[str]:
    for home in _homes(package):
        for file in home.rglob("*.py"):
            parts = file.relative_to(home).with_suffix("").parts
            yield ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


@cache
def _homes(package: str) -> tuple[Path, ...]:
    """The folders of ``package``: that of its modules, and that of the native core where it is installed apart."""
    found = find_spec(package)
    homes = [Path(home) for home in (found.submodule_search_locations or ())] if found else []
    inner = tuple(package.split("."))
    return tuple(home for home in homes if (home / "__init__.py").exists() or home.parts[-len(inner) :] == inner)


@cache
def _file(module: str) -> Path | None:
    """The source of ``module``; None where there is no such module."""
    package, _, name = module.rpartition(".")
    if not package:
        candidates = [home / "__init__.py" for home in _homes(module)]
    else:
        candidates = [file for home in _homes(package) for file in (home / f"{name}.py", home / name / "__init__.py")]
    return next((file for file in candidates if file.is_file()), None)


@cache
def _source(module: str) -> str:
    file = _file(module)
    return file.read_text("utf-8") if file else ""


def _beside(package: str) -> Iterator[tuple[str, Path]]:
    """What is no module and lies in ``package``: the native core and its sources, tables, recorded traces."""
    found: dict[str, Path] = {}
    for home in _homes(package):
        for file in _data_files(home):
            found.setdefault(f"{package}/{file.relative_to(home).as_posix()}", file)
    yield from sorted(found.items())


def _data_files(home: Path) -> Iterator[Path]:
    for entry in home.iterdir() if home.is_dir() else ():
        if entry.is_file() and entry.suffix not in {".py", ".pyc"}:
            yield entry
        elif entry.is_dir() and entry.name != "__pycache__" and not (entry / "__init__.py").exists():
            yield from _data_files(entry)


def _versions(names: frozenset[str]) -> Iterator[str]:
    packages = _packages()
    distributions = {one for name in names for one in packages.get(name, ())} | set(_PROGRAMS)
    yield from (f"{name} {version(name)}" for name in sorted(distributions))


@cache
def _packages() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _compiler(command: str, target: Same[Target]) -> str:
    """What the compiler says it is; where it is missing, that, so that nothing it made is taken for this one's."""
    try:
        return find_toolchain(command, target.value).identity
    except BuildError as error:
        return str(error)


@cache
def _allocator(name: str, preset: str, values: tuple[tuple[str, int], ...], *, with_facts: bool) -> str:
    """A digest of an allocator as it is built, with its facts where a measurement may read them."""
    allocator = allocator_of(Point("code", name, preset, values, 0, ""))
    return _digest(repr(allocator if with_facts else replace(allocator, facts=())))


@cache
def _data(name: str) -> str:
    """A digest of the package's data folder ``name``."""

    def texts(home: Traversable, path: str) -> Iterator[str]:
        for entry in sorted(home.iterdir(), key=lambda one: one.name):
            if entry.is_dir():
                yield from texts(entry, f"{path}/{entry.name}")
            else:
                yield f"{path}/{entry.name}\n{hashlib.sha256(entry.read_bytes()).hexdigest()}"

    return _digest(*texts(folder(name), name))


def _digest(*parts: str) -> str:
    """Of the parts one by one, so that none runs into the next."""
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part.encode()).digest())
    return found.hexdigest()
