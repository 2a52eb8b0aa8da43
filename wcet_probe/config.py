"""Configuration: ``wcet-probe.toml``, or ``[tool.wcet-probe]`` of ``pyproject.toml``, of the nearest folder upwards.

Keys: ``cc`` (compiler command), ``cache-dir`` (relative to the file), ``target``, ``heap`` (``4194304`` or ``"4MiB"``),
and the array of tables ``budgets``, which `wcet_probe.ci.budgets` reads.
An option of the command line goes before the environment, and the environment before the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from platformdirs import user_cache_path

from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.sizes import parse_size

CACHE_DIR_VARIABLE = "WCET_PROBE_CACHE_DIR"

_KEYS = ("cc", "cache-dir", "target", "heap", "budgets", "allocators")
_PLACES: tuple[tuple[str, tuple[str, ...]], ...] = (("wcet-probe.toml", ()), ("pyproject.toml", ("tool", "wcet-probe")))


@dataclass(frozen=True, slots=True)
class Config:
    """What the configuration ``file`` says; None where it says nothing. ``budgets`` are the tables as they stand.

    ``allocators`` are the folders of allocators of one's own.
    """

    cc: str | None = None
    cache_dir: Path | None = None
    target: str | None = None
    heap_bytes: int | None = None
    file: Path | None = field(default=None, compare=False)
    budgets: tuple[Mapping[str, object], ...] = ()
    allocators: tuple[Path, ...] = ()


def load_config(start: Path) -> Config:
    """The configuration of the nearest file that has one, from folder ``start`` upwards; empty where none has.

    Raises:
        UsageError: the file is no TOML, or has an unknown key or a bad value.
    """
    for folder in (start, *start.parents):
        for name, keys in _PLACES:
            table = _table(folder / name, keys)
            if table is not None:
                return _config(table, folder / name)
    return Config()


def read_config(file: Path) -> Config:
    """The configuration in ``file``: of a ``pyproject.toml`` its table ``tool.wcet-probe``, else the whole file.

    Raises:
        UsageError: there is no such file or table, it is no TOML, or has an unknown key or a bad value.
    """
    keys = dict(_PLACES).get(file.name, ())
    table = _table(file, keys)
    if table is None:
        missing = f"has no table {'.'.join(keys)}" if file.is_file() else "is no file"
        raise UsageError(f"{file} {missing}; name a wcet-probe.toml, or a pyproject.toml with tool.wcet-probe.")
    return _config(table, file)


def cache_dir(config: Config) -> Path:
    """Folder for built images: ``WCET_PROBE_CACHE_DIR``, else the configured one, else the user's cache folder."""
    if variable := os.environ.get(CACHE_DIR_VARIABLE):
        return Path(variable).expanduser().absolute()
    return config.cache_dir or user_cache_path("wcet-probe", appauthor=False)


def _table(file: Path, keys: tuple[str, ...]) -> object:
    """The table under ``keys`` in ``file``, or None where the file or the table does not exist."""
    if not file.is_file():
        return None
    try:
        table: object = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{file} is no valid TOML: {error}.") from error
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _config(table: object, file: Path) -> Config:
    if not isinstance(table, dict):
        raise UsageError(f"{file}: tool.wcet-probe must be a table.")
    for key, value in table.items():
        if key not in _KEYS:
            raise unknown_name(f"key in {file}", key, _KEYS)
        if key not in ("budgets", "allocators") and not (
            (isinstance(value, str) and value) or (key == "heap" and type(value) is int)
        ):
            raise UsageError(f"{file}: {key} must be a text in quotation marks, not {value!r}.")
    folder = table.get("cache-dir")
    return Config(
        cc=table.get("cc"),
        cache_dir=None if folder is None else file.parent / Path(folder).expanduser(),
        target=table.get("target"),
        heap_bytes=_heap_bytes(table, file),
        file=file,
        budgets=_budgets(table, file),
        allocators=_allocators(table, file),
    )


def _allocators(table: Mapping[str, object], file: Path) -> tuple[Path, ...]:
    names = table.get("allocators", [])
    if isinstance(names, list) and all(isinstance(name, str) and name for name in names):
        return tuple(file.parent / Path(name).expanduser() for name in names)
    raise UsageError(f"{file}: allocators must be an array of folders, each with a manifest.toml, not {names!r}.")


def _budgets(table: Mapping[str, object], file: Path) -> tuple[Mapping[str, object], ...]:
    rows = table.get("budgets", [])
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return tuple(rows)
    raise UsageError(f"{file}: budgets must be tables, each under its own [[budgets]].")


def _heap_bytes(table: Mapping[str, object], file: Path) -> int | None:
    if "heap" not in table:
        return None
    try:
        return parse_size(str(table["heap"]))
    except UsageError as error:
        raise UsageError(f"{file}: heap: {error}") from error
