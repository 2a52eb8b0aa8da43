"""A change of one place of a module's source, made when the module is imported; the files stay as they are."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class SourceChange:
    """A change of a module: ``old`` stands there once, and becomes ``new``.

    Attributes:
        module: with all packages, `wcet_probe.analyzer.bound`.
    """

    module: str
    old: str
    new: str

    @property
    def file(self) -> Path:
        """Where the module's source is in the checkout."""
        return ROOT / f"{self.module.replace('.', '/')}.py"


class _Loader(SourceFileLoader):
    """The source of one module, with a change."""

    change: SourceChange

    def get_data(self, path: str) -> bytes:
        data = super().get_data(path)
        if not path.endswith(".py"):
            raise OSError("no compiled file is used")
        text, change = data.decode(), self.change
        if text.count(change.old) != 1:
            raise SystemExit(f"{change.module} holds {change.old!r} {text.count(change.old)} times, not once")
        return text.replace(change.old, change.new).encode()

    def set_data(self, path: str, data: bytes, *, _mode: int = 0o666) -> None:
        """Write no compiled file, which others would take for that of the source: it is as old."""


class _Finder:
    """Finds the module that is changed."""

    def __init__(self, change: SourceChange) -> None:
        self._change = change

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != self._change.module:
            return None
        spec = PathFinder.find_spec(name, path, target)  # type: ignore[arg-type]
        assert spec is not None
        loader = _Loader(name, str(spec.origin))
        loader.change = self._change
        spec.loader = loader
        return spec


def change_source(change: SourceChange) -> None:
    """From now on in this process, import the module of ``change`` with it; it must not have been imported yet."""
    if change.module in sys.modules:
        raise SystemExit(f"{change.module} was imported before it could be changed")
    sys.meta_path.insert(0, _Finder(change))  # type: ignore[arg-type]
