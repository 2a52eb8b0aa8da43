"""What shapes of JSON documents are written with: records that they extend, texts and numbers of a form, programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypedDict, TypeVar

Shape = TypeVar("Shape", bound=type)

_RECORDS: dict[object, tuple[type, frozenset[str]]] = {}


def extends(record: type, *without: str) -> Callable[[Shape], Shape]:
    """Mark a shape as having the fields of the dataclass ``record``, but those ``without``, besides its own keys."""

    def mark(shape: Shape) -> Shape:
        _RECORDS[shape] = record, frozenset(without)
        return shape

    return mark


def record_of(shape: object) -> tuple[type, frozenset[str]] | None:
    """The record that ``shape`` extends and what it leaves out, or None."""
    return _RECORDS.get(shape)


Address = Annotated[str, ("pattern", "^0x[0-9a-f]{8}$")]
Sha256 = Annotated[str, ("pattern", "^[0-9a-f]{64}$")]
Natural = Annotated[int, ("minimum", 0)]
Fraction = Annotated[str, ("pattern", "^-?[0-9]+(/[0-9]+)?$")]
LineNumber = Annotated[str, ("pattern", "^[1-9][0-9]*$")]


class ToolShape(TypedDict):
    """The program and the packages that its numbers depend on."""

    name: Literal["wcet-probe"]
    version: str
    packages: dict[str, str | None]


class BinaryShape(TypedDict):
    """The binary, and what it was built with."""

    sha256: Sha256
    compiler: str
    flags: list[str]
