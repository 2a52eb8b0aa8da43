"""What goes into an evidence pack: results, images, sources, certificates, witnesses, and a bill of materials."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from wcet_probe.build.compilation import GUEST_FILES, build_image
from wcet_probe.catalog.lookup import allocator_content, allocator_files, load_allocator, load_target
from wcet_probe.catalog.resources import folder
from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.evidence.container import compact_json_bytes, json_bytes
from wcet_probe.evidence.firmware import Given, fact_name, firmware_members, source_name
from wcet_probe.evidence.recorded import About, Recorded, RecordedBound, configured, file_stem, recorded_results
from wcet_probe.evidence.sbom import TOOL, bill_of_materials, installed_packages
from wcet_probe.evidence.witness import witness_document, witness_plan
from wcet_probe.json_text import parse_json
from wcet_probe.reports.formats.schema import validate

SBOM = "sbom.cdx.json"
RESULTS = "results"

_MOST_SHOWN = 200
_UNIT = re.compile(r"^unit ([a-z]+)$", re.MULTILINE)


def evidence_members(
    files: Sequence[tuple[str, bytes]],
    cache_dir: Path,
    progress: Callable[[str], None] = lambda _: None,
    given: Given | None = None,
) -> dict[str, bytes]:
    """The members of a pack of the result documents ``files``, given as path and content.

    Parameters:
        files: result documents, as ``--json`` printed them.
        cache_dir: where images are kept; one that is not there is built.
        progress: is told in words what is being done.
        given: files that bounds of own firmware rest on.

    Raises:
        UsageError: a file is no result document, or two have one name; or a bound rests on a file that is not given.
        BuildError: an image cannot be built.
        VerificationError: what is installed here is not what a result was made with.
    """
    members: dict[str, bytes] = {}
    results: list[Recorded | RecordedBound] = []
    for path, content in files:
        name = result_member(file_stem(path))
        if name in members:
            raise UsageError(f"two files would be {name} in the pack; rename {path}.")
        members[name] = content
        results += valid_results(file_stem(path), content)
    if len({result.name for result in results}) < len(results):
        raise UsageError(
            "two results would have one name in the pack, as a file is called like one out of another; rename it."
        )
    installed = installed_packages()
    for result in results:
        _require_installed(result, installed)
        if isinstance(result, RecordedBound):
            progress(f"{result.name}: image, facts and sources")
            members |= firmware_members(result, given or Given())
        else:
            progress(f"{result.name}: image and witness")
            members |= _image_and_witness(result, cache_dir)
    compilers = {str(result.document["image"]["compiler"]) for result in results} - {""}
    return members | text_members(results, folder, allocator_content) | {SBOM: json_bytes(bill_of_materials(compilers))}


def valid_results(stem: str, content: bytes) -> tuple[Recorded | RecordedBound, ...]:
    """The results in the document ``content`` of a file called ``stem``, which is what its format says.

    Raises:
        UsageError: it is not.
    """
    try:
        validate(parse_json(content.decode()))
    except ValueError as error:
        shown = "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)[:_MOST_SHOWN]
        raise UsageError(f"{stem}: no result document ({shown}); give it what --json printed.") from error
    return recorded_results(stem, content)


def result_member(stem: str) -> str:
    """Name of the member that holds the result document ``stem``."""
    return f"{RESULTS}/{stem}.json"


def image_member(result: About) -> str:
    """Name of the member that holds the image of ``result``."""
    return f"images/{result.image_sha256}.elf"


def witness_member(result: Recorded) -> str:
    """Name of the member that holds the witness of ``result``."""
    return f"witnesses/{result.name}.json"


def text_members(
    results: Iterable[Recorded | RecordedBound],
    folder_of: Callable[[str], Traversable],
    content_of: Callable[[str], Mapping[str, bytes]] | None = None,
) -> dict[str, bytes]:
    """What ``results`` are made from, and their certificates, as members of a pack.

    Parameters:
        results: of the pack.
        folder_of: gives the folders ``allocators``, ``targets`` and ``guest``.
        content_of: gives the files of an allocator by path, where not all allocators are in the one folder.

    Raises:
        UsageError: there is no such allocator or target.
        VerificationError: a certificate has no unit.
    """
    results = tuple(results)
    allocators = list(dict.fromkeys(result.allocator for result in results if isinstance(result, Recorded)))
    members: dict[str, bytes] = {}
    for name in allocators:
        home = folder_of("allocators")
        contents = content_of(name) if content_of else {f: _content(home, f) for f in allocator_files(name, home)}
        members |= {f"allocators/{file}": data for file, data in contents.items()}
    members |= {f"targets/{one.target}.toml": _content(folder_of("targets"), f"{one.target}.toml") for one in results}
    members |= {f"guest/{file}": _content(folder_of("guest"), file) for file in GUEST_FILES if allocators}
    return members | {name: text for result in results for name, text in _certificates(result)}


def whole_members(results: Iterable[Recorded | RecordedBound]) -> tuple[set[str], set[str]]:
    """Names of the members that ``results`` need besides their texts, and of those that may be there or not."""
    needed, optional = set[str](), set[str]()
    for result in results:
        needed.add(image_member(result))
        if isinstance(result, Recorded):
            needed.add(witness_member(result))
        else:
            needed |= set(map(fact_name, result.facts))
            optional |= set(map(source_name, result.sources))
    return needed, optional


def _content(home: Traversable, file: str) -> bytes:
    for part in file.split("/"):
        home = home / part
    if not home.is_file():
        raise UsageError(f"{file} is not there; use the wcet-probe that has it.")
    return home.read_bytes()


def _certificates(result: About) -> list[tuple[str, bytes]]:
    found = []
    for text in (result.document["bound"] or {"certificates": ()})["certificates"]:
        unit = _UNIT.search(text)
        if unit is None:
            raise VerificationError(f"{result.name}: a certificate has no unit; make the result again.")
        found.append((f"certificates/{result.name}-{unit[1]}.txt", text.encode()))
    return found


def _require_installed(result: About, installed: Mapping[str, str]) -> None:
    """The bill of materials is about this installation, so this must be what made the result."""
    tool = result.document["tool"]
    for name, version in {**tool["packages"], TOOL: tool["version"]}.items():
        here = installed.get(name)
        if here != version:
            raise VerificationError(
                f"{result.name} was made with {name} {version}, and here is {here or 'none'}; "
                "pack it where it was made, or make it again."
            )


def _image_and_witness(result: Recorded, cache_dir: Path) -> dict[str, bytes]:
    allocator = load_allocator(result.allocator, result.parameters)
    target = configured(result, load_target(result.target))
    image = build_image(allocator, target, result.compiler, cache_dir, result.heap_bytes)
    if image.sha256 != result.image_sha256:
        said = result.document["image"]["compiler"]
        what = "the sources" if said == image.compiler else f"the compiler ({image.compiler}, not {said})"
        message = (
            f"{result.name}: here another image is built, as {what} differ{'' if said == image.compiler else 's'}; "
        )
        raise VerificationError(f"{message}make the result again, and pack that.")
    witness = witness_document(witness_plan(result, allocator, target), result)
    return {image_member(result): image.elf, witness_member(result): compact_json_bytes(witness)}
