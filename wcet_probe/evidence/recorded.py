"""What a result document says of itself: which question it answers, so that it can be asked again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import PurePath
from typing import Any, Protocol

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.errors import UsageError
from wcet_probe.json_text import parse_json
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Target

Json = Mapping[str, Any]

_RESULT, _SEVERAL, _BOUND = "wcet-probe-result", "wcet-probe-results", "wcet-probe-bound"
_LONGEST_NAME = 100
_MOST_SHOWN = 200


class About(Protocol):
    """What every recorded document says: its name among others, which target, and the image that it is about."""

    @property
    def name(self) -> str:
        """Of the document among others."""

    @property
    def document(self) -> Json:
        """The document."""

    @property
    def target(self) -> str:
        """The target's name."""

    @property
    def caches(self) -> tuple[str, ...]:
        """The changes of its caches."""

    @property
    def image_sha256(self) -> str:
        """Of the image."""


@dataclass(frozen=True, slots=True)
class HashedText:
    """A file of facts or a source: the name that the document gives it, and the SHA-256 of its text in UTF-8."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class RecordedBound:
    """The bound of a function of some firmware, and the question behind it.

    Attributes:
        name: of the document among others.
        document: the bound.
        elf: name of the ELF file.
        entry: the function.
        target, caches: the target's name, and the changes of its caches.
        parameters: of facts, as given.
        facts, sources: what was read besides, in order.
        image_sha256: of the ELF file.
    """

    name: str
    document: Json
    elf: str
    entry: str
    target: str
    caches: tuple[str, ...]
    parameters: Mapping[str, int]
    facts: tuple[HashedText, ...]
    sources: tuple[HashedText, ...]
    image_sha256: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """One result and the question behind it.

    Attributes:
        name: of the result among others: the file's name without its end; with a number where the file holds several.
        document: the result.
        allocator, parameters: the allocator's name and its build parameters.
        target, caches: the target's name, and the changes of its caches, as ``--cache`` takes them.
        scenario, variant: the scenario's name, and which of its candidate states was the extreme one.
        heap_bytes: size of the heap.
        seed: of a random scenario.
        initial_cache: what the caches held.
        compiler: the command that built the image.
        image_sha256: of the image.
    """

    name: str
    document: Json
    allocator: str
    parameters: Mapping[str, int]
    target: str
    caches: tuple[str, ...]
    scenario: str
    variant: str
    heap_bytes: int
    seed: int
    initial_cache: InitialCache
    compiler: str
    image_sha256: str


def configured(asked: About, target: Target) -> Target:
    """``target`` with its caches as they were.

    Raises:
        UsageError: a change does not fit the target.
    """
    return reduce(apply_cache_option, asked.caches, target)


def file_stem(path: str) -> str:
    """The name of the file ``path`` without its folder and end, of letters, digits, dots and lines only."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", PurePath(path).name.removesuffix(".json")).lstrip(".-_")
    return stem[:_LONGEST_NAME] or "result"


def recorded_results(stem: str, data: bytes) -> tuple[Recorded | RecordedBound, ...]:
    """The results in the JSON text ``data`` of a file called ``stem``: one, or several of one run.

    Raises:
        UsageError: it holds no results, or says two things of one question.
    """
    try:
        document = parse_json(data.decode())
        several = document["format"] == _SEVERAL
        documents = document["results"] if several else [document]
        names = [f"{stem}-{number}" if several else stem for number in range(1, len(documents) + 1)]
        found = tuple(map(recorded, names, documents))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{stem}: no result document ({_short(error)}); give it what --json printed.") from error
    if not found:
        raise UsageError(f"{stem}: a document without a result; give it what --json printed.")
    return found


def recorded(name: str, document: Json) -> Recorded | RecordedBound:
    """What ``document``, called ``name``, says of its question.

    Raises:
        KeyError, TypeError, ValueError: it is no result, or says two things of one question.
    """
    if document["format"] not in {_RESULT, _BOUND} or document["version"] != 1:
        raise ValueError(f"its format is {document['format']}, version {document['version']}")
    if "request" not in document:
        raise ValueError("it does not say what was asked; make it again with this version of wcet-probe")
    return _recorded_bound(name, document) if document["format"] == _BOUND else _recorded(name, document)


def _recorded_bound(name: str, document: Json) -> RecordedBound:
    asked = document["request"]
    return RecordedBound(
        name=name,
        document=document,
        elf=_text(asked["elf"]),
        entry=_text(asked["entry"]),
        target=_text(document["target"]),
        caches=tuple(map(_text, asked["caches"])),
        parameters={_text(key): _integer(value) for key, value in asked["parameters"].items()},
        facts=tuple(HashedText(_text(one["name"]), _text(one["sha256"])) for one in asked["facts"]),
        sources=tuple(HashedText(_text(one["name"]), _text(one["sha256"])) for one in asked["sources"]),
        image_sha256=_text(document["image"]["sha256"]),
    )


def _recorded(name: str, document: Json) -> Recorded:
    asked = document["request"]
    for key in ("scenario", "heap_bytes", "parameters"):
        if asked[key] != document[key]:
            raise ValueError(f"its request and its answer have different {key}")
    return Recorded(
        name=name,
        document=document,
        allocator=_text(document["allocator"]),
        parameters={_text(key): _integer(value) for key, value in document["parameters"].items()},
        target=_text(document["target"]),
        caches=tuple(map(_text, asked["caches"])),
        scenario=_text(document["scenario"]),
        variant=_text(document["state"]["variant"]),
        heap_bytes=_number(document["heap_bytes"]),
        seed=_number(asked["seed"]),
        initial_cache=InitialCache(document["initial_cache"]),
        compiler=_text(asked["compiler"]),
        image_sha256=_text(document["image"]["sha256"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is no text")
    return value


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _short(error: Exception) -> str:
    """What is wrong, without the document's content: a file that is no text would be printed whole."""
    return "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else repr(error)[:_MOST_SHOWN]
