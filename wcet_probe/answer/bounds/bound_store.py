"""Bounds that were proved before, kept beside the images by all that they depend on.

A proof takes a third of the time of a short answer, and its modules a quarter. Who asks the same question of the same
program twice gets the bound of the first time, and is told so. What is measured is measured again each time, and held
against the bound that was kept as against one that is proved.

*Soundness:* the key is a hash of the image, the allocator with its sources and facts, the target, the heap, and of all
that proves: every source of this package, the versions of the packages that it asks, and Python. A file whose content
is not what was written is not read. What rests on anything else is not kept: bounds of allocators of one's own are
proved in each run, and a proof without a bound is tried again.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from wcet_probe.answer.bounds.proved_again import prove_anew, proved_again
from wcet_probe.build.program import Program
from wcet_probe.errors import WcetProbeError
from wcet_probe.model.proof import Bound
from wcet_probe.output_files import write_whole

_PACKAGES = ("capstone", "highspy", "numpy", "pyelftools", "pypcode", "tree-sitter", "tree-sitter-c")
_DIGEST_BYTES = 32
_CERTIFY = ("certify", "certify_callees")
"""What makes certificates: functions of a proof, which are not written."""


def _read_only(content: dict[object, object]) -> Mapping[object, object]:
    """What a read-only mapping is written as, which pickle does not know."""
    return MappingProxyType(content)


_KNOWN = {("fractions", "Fraction"): Fraction, (__name__, _read_only.__name__): _read_only}


class _NotKeptError(Exception):
    """The value is of a kind that no key is made of."""


@dataclass(slots=True)
class BoundStore:
    """A `Proving` that takes a bound from ``cache_dir`` where it is there, and puts there what it proves.

    Attributes:
        cache_dir: the folder that images are kept in.
        recalled: operations whose bound was taken from there, in order.
    """

    cache_dir: Path
    recalled: list[str] = field(default_factory=list)

    def __call__(self, program: Program, role: str, heap_bytes: int) -> Bound:
        """The bound of an operation, as `prove_operation` proves it.

        Raises:
            AnalysisError: no bound can be proved.
            UsageError: a flow fact is wrong.
        """
        if program.allocator.own is not None:
            return prove_anew(program, role, heap_bytes)
        try:
            file = self.cache_dir / "bounds" / bound_key(program, role, heap_bytes)
        except _NotKeptError:
            return prove_anew(program, role, heap_bytes)
        found = _read(file, program, role, heap_bytes)
        if found is not None:
            self.recalled.append(str(role))
            return found
        bound = prove_anew(program, role, heap_bytes)
        _write(file, bound)
        return bound


def bound_key(program: Program, role: str, heap_bytes: int) -> str:
    """The name of what is kept of a bound: a hash of all that it is a function of.

    The instructions and their costs are functions of image and target.
    """
    image = (program.image.sha256, program.image.compiler, program.image.flags)
    asked = (_version(), image, program.allocator, program.target, str(role), heap_bytes)
    return hashlib.sha256(repr(_canonical(asked)).encode()).hexdigest()


def _canonical(value: object) -> object:
    """``value`` as tuples and plain values whose ``repr`` tells all that is in it.

    Raises:
        _NotKeptError: it holds something else.
    """
    if isinstance(value, (Enum, Fraction)):
        return (type(value).__name__, str(value))
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return (type(value).__name__, value)
    if isinstance(value, Mapping):
        return ("mapping", tuple((_canonical(key), _canonical(each)) for key, each in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(map(_canonical, value))
    if is_dataclass(value):
        return (type(value).__name__, *((one.name, _canonical(getattr(value, one.name))) for one in fields(value)))
    raise _NotKeptError(type(value).__name__)


@cache
def _version() -> str:
    """All that proves: this package's sources, the packages that it asks, and Python."""
    digest = hashlib.sha256(f"{platform.python_version()} {platform.machine()}".encode())
    for name in _PACKAGES:
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            digest.update(f"{name} is missing\n".encode())
    for file in _sources():
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _sources() -> list[Path]:
    """Every module of the package, wherever links lead."""
    home = Path(__file__).parents[2]
    found: list[Path] = []
    for folder, inner, files in os.walk(home, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith("__"))
        found.extend(Path(folder, name) for name in sorted(files) if name.endswith(".py"))
    return found


# ---------------------------------------------------------------------------------------------------------- the files


class _Writer(pickle.Pickler):
    """Writes a bound without what makes its certificates."""

    def __init__(self, file: IO[bytes], bound: Bound) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = {id(getattr(bound, name)): name for name in _CERTIFY}

    def reducer_override(self, value: object) -> Any:  # noqa: ANN401  (as the class above says it)
        if isinstance(value, Enum):  # by its value: some versions of Python look it up by name, through getattr
            return (type(value), (value.value,))
        return (_read_only, (dict(value),)) if isinstance(value, MappingProxyType) else NotImplemented

    def persistent_id(self, value: object) -> str | None:
        return self._names.get(id(value))


class _Reader(pickle.Unpickler):
    """Reads the nouns of the model and nothing else, whoever wrote the file."""

    def __init__(self, file: IO[bytes], certify: Mapping[str, object]) -> None:
        super().__init__(file)
        self._certify = certify

    def persistent_load(self, name: str) -> object:
        if name not in self._certify:
            raise pickle.UnpicklingError(name)
        return self._certify[name]

    def find_class(self, module: str, name: str) -> object:
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        if module.startswith("wcet_probe.model.") and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:  # and not what the module imports
                return found
        raise pickle.UnpicklingError(f"{module}.{name}")


def _read(file: Path, program: Program, role: str, heap_bytes: int) -> Bound | None:
    """The bound that ``file`` keeps; None where there is none, or where the file is damaged."""
    try:
        content = file.read_bytes()
        digest, text = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if _digest(file, text) != digest:
            return None
        kept: list[Bound] = []
        again = cache(partial(proved_again, kept, program, role, heap_bytes))
        makers = (lambda: again().certificates, lambda: again().callee_certificates)
        found = _Reader(io.BytesIO(text), dict(zip(_CERTIFY, makers, strict=True))).load()
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, TypeError, ValueError):
        return None
    if not isinstance(found, Bound):
        return None
    kept.append(found)
    return found


def _digest(file: Path, text: bytes) -> bytes:
    """Of ``text`` and of the key that ``file`` is named by: a copy under the key of another question is not read."""
    return hashlib.sha256(file.name.encode() + text).digest()


def _write(file: Path, bound: Bound) -> None:
    text = io.BytesIO()
    try:
        _Writer(text, bound).dump(bound)
        write_whole(file, _digest(file, text.getvalue()) + text.getvalue())
    except (pickle.PicklingError, TypeError, AttributeError, WcetProbeError):
        return  # what cannot be kept is proved again
