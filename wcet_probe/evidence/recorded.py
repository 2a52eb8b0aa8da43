"""What a result document says of itself: which question it answers, so that it can be asked again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import PurePath
from typing import Any

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.errors import UsageError
from wcet_probe.evidence.container import parse_json
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Target

Json = Mapping[str, Any]

_RESULT, _SEVERAL = "wcet-probe-result", "wcet-probe-results"
_LONGEST_NAME = 100


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

    def configured(self, target: Target) -> Target:
        """``target`` with its caches as they were.

        Raises:
            UsageError: a change does not fit the target.
        """
        return reduce(apply_cache_option, self.caches, target)


def file_stem(path: str) -> str:
    """The name of the file ``path`` without its folder and end, of letters, digits, dots and lines only."""
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", PurePath(path).name.removesuffix(".json")).lstrip(".-_")
    return stem[:_LONGEST_NAME] or "result"


def recorded_results(stem: str, data: bytes) -> tuple[Recorded, ...]:
    """The results in the JSON text ``data`` of a file called ``stem``: one, or several of one run.

    Raises:
        UsageError: it holds no results, or says two things of one question.
    """
    try:
        document = parse_json(data)
        several = document["format"] == _SEVERAL
        documents = document["results"] if several else [document]
        names = [f"{stem}-{number}" if several else stem for number in range(1, len(documents) + 1)]
        found = tuple(map(_recorded, names, documents))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{stem}: no result document ({_short(error)}); give it what wcet-probe ALLOCATOR --json printed."
        ) from error
    if not found:
        raise UsageError(f"{stem}: a document without a result; give it what wcet-probe ALLOCATOR --json printed.")
    return found


def _recorded(name: str, document: Json) -> Recorded:
    if document["format"] != _RESULT or document["version"] != 1:
        raise ValueError(f"its format is {document['format']}, version {document['version']}")
    asked = document["request"]
    for key in ("scenario", "heap_bytes", "parameters"):
        if asked[key] != document[key]:
            raise ValueError(f"its request and its answer have different {key}")
    return Recorded(
        name=name,
        document=document,
        allocator=_text(document["allocator"]),
        parameters={_text(key): _number(value) for key, value in document["parameters"].items()},
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


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _short(error: Exception) -> str:
    """What is wrong, without the document's content: a file that is no text would be printed whole."""
    return "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else repr(error)
