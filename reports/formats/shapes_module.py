"""What a module certificate holds: the document that tells what an allocator's words are, see `shapes`."""

from __future__ import annotations

from typing import Literal, TypedDict

from wcet_probe.reports.formats.shapes_base import BinaryShape, Natural, ToolShape


class ModuleOperationShape(TypedDict):
    """An operation of an allocator: its graph and what holds in it, in the records of certificates."""

    role: Literal["init", "malloc", "free"]
    certificate: str


class ModuleFactShape(TypedDict):
    """A fact whose alignment follows, and at how many accesses of the nodes of the graphs it is used."""

    where: str
    accesses: Natural


class StatementShape(TypedDict):
    """Something that is taken for granted."""

    id: str
    statement: str


class ModuleShape(TypedDict):
    """What an allocator's words are whenever one of its operations begins, to be tested by induction."""

    format: Literal["wcet-probe-module"]
    version: Literal[1]
    allocator: str
    parameters: dict[str, int]
    target: str
    heap_bytes: Natural
    image: BinaryShape
    operations: list[ModuleOperationShape]
    cells: dict[str, str]
    block: str
    stored_by_init: list[str]
    facts: list[ModuleFactShape]
    assumptions: list[StatementShape]


class ModuleDocument(ModuleShape):
    """A module certificate by itself, and what wrote it."""

    tool: ToolShape
