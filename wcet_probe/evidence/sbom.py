"""What a result was made with, as a software bill of materials: CycloneDX 1.6 in JSON (ECMA-424).

The same installation gives the same bytes: no time stands in it, and its serial number is derived from its content
(RFC 9562, §5.5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

TOOL = "wcet-probe"
FILES_PROPERTY = "wcet-probe:installed-files-sha256"
"""SHA-256 of the sorted lines "HASH PATH" of a package's files, as its RECORD has them, but for ``.dist-info``."""

_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def installed_packages() -> dict[str, str]:
    """Versions by name of wcet-probe and of all that it needs, as installed."""
    return {name: one.version for name, one in _closure()[0].items()}


def bill_of_materials(compilers: Iterable[str]) -> dict[str, Any]:
    """The bill of materials of this installation, as a CycloneDX 1.6 document.

    Parameters:
        compilers: what the compilers of the images say they are.
    """
    found, needs = _closure()
    components = {name: _library(name, one) for name, one in found.items()}
    built = [_compiler(identity) for identity in sorted(set(compilers))]
    bom = Bom(serial_number=UUID(int=0), components=[*(components[name] for name in found if name != TOOL), *built])
    bom.metadata.component = components[TOOL]
    bom.metadata.timestamp = None  # type: ignore[assignment]  # written by default, and the only thing that would differ
    for name, wanted in needs.items():
        bom.register_dependency(components[name], [components[other] for other in wanted])
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    return {**document, "serialNumber": serial_number(document)}


def serial_number(document: Mapping[str, Any]) -> str:
    """The serial number that belongs to the bill of materials ``document``: derived from all the rest of it."""
    rest = {key: value for key, value in document.items() if key != "serialNumber"}
    digest = sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return uuid5(NAMESPACE_URL, f"{TOOL}:sbom:{digest}").urn


def _closure() -> tuple[dict[str, Distribution], dict[str, list[str]]]:
    """The installed packages that wcet-probe needs, by name and sorted, and of each those that it needs itself.

    A requirement of an extra is none of ours; one that is not installed is for another platform or Python.
    """
    found: dict[str, Distribution] = {}
    needs: dict[str, list[str]] = {}
    waiting = [TOOL]
    while waiting:
        name = waiting.pop()
        if name in needs:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        plain = [text for text in found[name].requires or () if not re.search(r"\bextra\b\s*==", text)]
        needs[name] = sorted({_name(match[0]) for text in plain if (match := _REQUIREMENT.match(text))} - {name})
        waiting += needs[name]
    order = sorted(found)
    return {name: found[name] for name in order}, {n: [o for o in needs[n] if o in found] for n in order}


def _name(text: str) -> str:
    """The normal form of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", text).lower()


def _library(name: str, one: Distribution) -> Component:
    """The package as a component; ``hashes`` is for the archive that it came in, which an installer may tell (PEP 610).

    What is installed is hashed in any case, but where the package is edited in place.
    """
    url = PackageURL(type="pypi", name=name, version=one.version)
    direct = json.loads(one.read_text("direct_url.json") or "{}")
    archive = direct.get("archive_info", {}).get("hashes", {}).get("sha256")
    files = None if direct.get("dir_info", {}).get("editable") else _files_sha256(name, one.read_text("RECORD"))
    return Component(
        type=ComponentType.APPLICATION if name == TOOL else ComponentType.LIBRARY,
        name=name,
        version=one.version,
        purl=url,
        bom_ref=url.to_string(),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=archive)] if archive else [],
        properties=[Property(name=FILES_PROPERTY, value=files)] if files else [],
    )


def _compiler(identity: str) -> Component:
    version = _VERSION.search(identity)
    return Component(
        type=ComponentType.APPLICATION,
        name=identity.split(maxsplit=1)[0],
        version=version[0] if version else None,
        description=identity,
        bom_ref=f"compiler:{sha256(identity.encode()).hexdigest()[:16]}",
    )


@cache
def _files_sha256(name: str, _record: str | None) -> str | None:
    """Of the files of a package, of which there are many; ``_record`` is what it was computed for."""
    lines = [
        f"{file.hash.value} {file.as_posix()}\n"
        for file in distribution(name).files or ()
        if file.hash and file.hash.mode == "sha256" and ".dist-info" not in file.parts[0] and ".." not in file.parts
    ]
    return sha256("".join(sorted(lines)).encode()).hexdigest() if lines else None
