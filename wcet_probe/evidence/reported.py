"""Results that a report is made of, held against their binaries: those that are given, or built here again.

The binary of an allocator of ours is built again by the packaged compiler, never by one that a document names: that
would be a command of whoever wrote it. Where no binary has the hash that a document states, nothing is checked here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wcet_probe.answer.firmware.firmware import file_bytes
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.errors import BuildError, ImageError, UsageError, VerificationError
from wcet_probe.evidence.checking import check_file_result
from wcet_probe.evidence.recorded import Recorded, configured, recorded
from wcet_probe.evidence.said import AUTHORS_WORDS
from wcet_probe.reports.formats.schema import validate

Json = Mapping[str, Any]


def checked_against_code(
    documents: Sequence[Json],
    cache_dir: Path,
    *,
    at_hand: Mapping[str, bytes] = MappingProxyType({}),
    images: Sequence[Path] = (),
    facts: Sequence[Path] = (),
    source_dirs: Sequence[Path] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[str, ...] | None, ...]:
    """What is left not checked of each of ``documents``: names of lines; None where there is no binary, or no bound.

    Parameters:
        documents: results or bounds.
        cache_dir: where images are kept; one of ours that is not there is built.
        at_hand: ELF files by their hash, of a run.
        images: those that are given, taken by their hash.
        facts, source_dirs: of own firmware, as ``verify`` takes them.
        progress: is told in words what is being done.

    Raises:
        VerificationError: something does not hold.
        UsageError: a file cannot be read, or an image that no document is about is given.
    """
    elves = {sha256(data).hexdigest(): (file, data) for file in images for data in (file_bytes(file),)}
    stated = {document["image"]["sha256"] for document in documents}
    for digest, (file, _) in elves.items():
        if digest not in stated:
            raise UsageError(f"no result is about {file}; leave it out, or name the file that a result was made from.")
    found: list[tuple[str, ...] | None] = []
    for document in documents:
        if document.get("bound") is None:
            found.append(None)
            continue
        digest = document["image"]["sha256"]
        file, elf = elves.get(digest, (Path(), at_hand.get(digest)))
        elf = elf or _built_again(document, cache_dir)
        if elf is None:
            found.append(None)
            continue
        progress(f"checking the bound of {document['bound']['entry']} against the code")
        found.append(_not_checked(document, elf, facts=facts, source_dirs=source_dirs or (file.parent, Path.cwd())))
    return tuple(found)


def _not_checked(document: Json, elf: bytes, **options: Any) -> tuple[str, ...]:  # noqa: ANN401  (as the checker takes them)
    validate(document)
    what = f"{document['bound']['entry']} on {document['target']}"
    try:
        checked, others = check_file_result(document, json.dumps(document).encode(), elf, **options)
    except VerificationError as error:
        raise VerificationError(f"{what}: {error}") from error
    lines = (one.check for one in (*checked.findings, *others) if one.verdict != OK and one.check != AUTHORS_WORDS)
    return tuple(dict.fromkeys(lines))


def _built_again(document: Json, cache_dir: Path) -> bytes | None:
    """The ELF file of an allocator's result; None if another one is built here, or none."""
    try:
        asked = recorded("result", document)
        if not isinstance(asked, Recorded) or asked.compiler != PACKAGED or not _is_packaged(asked.allocator):
            return None
        target = configured(asked, load_target(asked.target))
        allocator = load_allocator(asked.allocator, asked.parameters)
        image = build_image(allocator, target, PACKAGED, cache_dir, asked.heap_bytes)
    except (AttributeError, KeyError, TypeError, ValueError, UsageError, BuildError, ImageError):
        return None
    return image.elf if image.sha256 == asked.image_sha256 else None


def _is_packaged(allocator: str) -> bool:
    """Whether it is of the package, and what it stands over, too; the name of another one may lead to any folder."""
    return {*allocator.split(":")} <= {name.partition(":")[0] for name in allocator_names()}
