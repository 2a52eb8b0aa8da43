"""What a command line does not say: from the configuration file, which is named where its value is refused."""

# ruff: noqa: PLC0415  (the catalog is imported by the command that needs it)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wcet_probe.config import Config
from wcet_probe.errors import BuildError, UsageError

if TYPE_CHECKING:
    from wcet_probe.model.allocator import Allocator
    from wcet_probe.model.target import Target

DEFAULT_TARGET = "cortex-m4"
DEFAULT_HEAP_BYTES = 4 << 20


def configured_target(name: str | None, config: Config) -> Target:
    """The target ``name``, or without one that of the configuration, or the default.

    Raises:
        UsageError: there is no such target; if it is the configuration's, the message names the file.
    """
    from wcet_probe.catalog.lookup import load_target

    try:
        return load_target(name or config.target or DEFAULT_TARGET)
    except UsageError as error:
        if name or not config.target:
            raise
        raise UsageError(f"{config.file}: {error}") from error


def default_heap_bytes(allocator: Allocator, config: Config, otherwise: int = DEFAULT_HEAP_BYTES) -> int:
    """The heap of ``allocator`` where none is asked for: the one that it is linked with, else the configuration's.

    Raises:
        UsageError: the heap of a linked program is not where its manifest says.
    """
    from wcet_probe.build.linked_program import linked_heap_bytes

    return linked_heap_bytes(allocator) or config.heap_bytes or otherwise


@contextmanager
def naming_compiler(name: str | None, config: Config) -> Iterator[None]:
    """Where a build fails and its compiler is the configuration's, as there is no ``name``, the message names the file.

    Raises:
        BuildError: the same, with the file.
    """
    try:
        yield
    except BuildError as error:
        if name or not config.cc:
            raise
        raise BuildError(f"{config.file}: cc: {error}") from error
