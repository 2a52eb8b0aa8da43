"""The container of an evidence pack: a zip file with one possible serialisation, and a manifest of all its members.

Members are stored, not deflated: two versions of zlib may pack one text in two ways, and a pack is to have the same
bytes everywhere. Its bytes are a function of the members alone, so a reader writes the pack again and compares: no byte
can change unnoticed. The record formats are those of the .ZIP File Format Specification (PKWARE APPNOTE 6.3), §4.3.
"""

from __future__ import annotations

import json
import re
import struct
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from zlib import crc32

from wcet_probe import __version__
from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.json_text import parse_json

FORMAT = "wcet-probe-evidence"
MANIFEST = "MANIFEST.json"
LARGEST_BYTES = 1 << 28
"""Of a pack. Nothing in it is compressed, so it holds no more than that."""

_MOST_MEMBERS = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*", re.ASCII)
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")
_CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
_END_HEADER = struct.Struct("<4s4H2LH")
_STORED_VERSION, _UNIX = 10, 3 << 8
_NO_FLAGS, _STORED = 0, 0
_TIME, _DATE = 0, 1 << 5 | 1
"""Midnight of 1980-01-01, the earliest that a zip file can say."""
_PERMISSIONS = 0o100644 << 16


@dataclass(frozen=True, slots=True)
class Pack:
    """An evidence pack.

    Attributes:
        members: content by name, without the manifest.
        digest: SHA-256 of the manifest, which holds those of all members: it stands for the whole pack.
        tool_version: of the wcet-probe that wrote it.
    """

    members: Mapping[str, bytes]
    digest: str
    tool_version: str


def pack_bytes(members: Mapping[str, bytes]) -> bytes:
    """The pack of ``members``, content by name: the same bytes for the same members.

    Raises:
        UsageError: it would be too large.
    """
    data = _with_manifest(members, __version__)
    if len(data) > LARGEST_BYTES or len(members) >= _MOST_MEMBERS:
        raise UsageError(f"the pack would have {len(data)} bytes in {len(members)} files; pack fewer results at once.")
    return data


def read_pack(data: bytes) -> Pack:
    """The pack whose bytes are ``data``, after a check of every one of them.

    Raises:
        VerificationError: it is no pack, or not as it was written; the message names what differs first.
    """
    members = dict(_members(data))
    manifest = members.pop(MANIFEST, None)
    if manifest is None:
        raise VerificationError(f"the file has no {MANIFEST}, so it is no evidence pack or was cut off; get it again.")
    listed, version = _manifest(manifest)
    for name in sorted(listed.keys() | members.keys()):
        if name not in members or name not in listed:
            what = "is missing" if name in listed else "is not in the manifest"
            raise VerificationError(f"{name} {what}: the pack was changed; get it again.")
        if listed[name] != _entry(name, members[name]):
            raise VerificationError(f"{name} is not what the manifest says: the pack was changed; get it again.")
    expected = _with_manifest(members, version)
    if expected != data:
        at = bisect_left(
            range(min(len(expected), len(data))), x=True, key=lambda at: expected[: at + 1] != data[: at + 1]
        )
        raise VerificationError(f"byte {at} is not as a pack is written: the pack was changed; get it again.")
    return Pack(MappingProxyType(members), sha256(manifest).hexdigest(), version)


def read_pack_file(file: Path) -> bytes:
    """The bytes of ``file``.

    Raises:
        UsageError: it cannot be read, or is larger than a pack can be.
    """
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
    if len(data) > LARGEST_BYTES:
        raise UsageError(f"{file} is larger than a pack can be, {LARGEST_BYTES} bytes; name an evidence pack.")
    return data


def json_bytes(value: object) -> bytes:
    """``value`` as JSON text: keys sorted, indented by one."""
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


def compact_json_bytes(value: Mapping[str, object]) -> bytes:
    """``value`` as JSON text: keys sorted, each on a line of its own with all that belongs to it."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value[key], sort_keys=True, ensure_ascii=False)}" for key in sorted(value)
    )
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _entry(name: str, content: bytes) -> dict[str, object]:
    return {"name": name, "size_bytes": len(content), "sha256": sha256(content).hexdigest()}


def _manifest_bytes(members: Mapping[str, bytes], version: str) -> bytes:
    entries = [_entry(name, members[name]) for name in sorted(members)]
    tool = {"name": "wcet-probe", "version": version}
    return json_bytes({"format": FORMAT, "version": 1, "tool": tool, "members": entries})


def _manifest(data: bytes) -> tuple[dict[str, dict[str, object]], str]:
    """Entries of the manifest by name, and the version of the tool that wrote it."""
    try:
        document = parse_json(data.decode())
        listed = {str(entry["name"]): entry for entry in document["members"]}
        version = document["tool"]["version"]
        known = document["format"] == FORMAT and document["version"] == 1 and isinstance(version, str)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise VerificationError(f"{MANIFEST} is damaged: the pack was changed; get it again.") from error
    if not known:
        raise VerificationError(
            f"{MANIFEST} is not of {FORMAT}, version 1; audit it with the wcet-probe that wrote it."
        )
    return listed, version


def _with_manifest(members: Mapping[str, bytes], version: str) -> bytes:
    manifest = _manifest_bytes(members, version)
    return _serialised({**members, MANIFEST: manifest}, f"{FORMAT} sha256:{sha256(manifest).hexdigest()}".encode())


def _serialised(members: Mapping[str, bytes], comment: bytes) -> bytes:
    """A zip file of ``members``, sorted by name (APPNOTE §4.3.7, §4.3.12, §4.3.16)."""
    local, central = bytearray(), bytearray()
    for name in sorted(members):
        content, encoded = members[name], name.encode("ascii")
        sizes = (crc32(content), len(content), len(content), len(encoded), 0)
        common = (_STORED_VERSION, _NO_FLAGS, _STORED, _TIME, _DATE, *sizes)
        central += _CENTRAL_HEADER.pack(_CENTRAL, _UNIX | _STORED_VERSION, *common, 0, 0, 0, _PERMISSIONS, len(local))
        central += encoded
        local += _LOCAL_HEADER.pack(_LOCAL, *common) + encoded + content
    count = len(members)
    end = _END_HEADER.pack(_END, 0, 0, count, count, len(central), len(local), len(comment))
    return bytes(local + central + end + comment)


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of a zip file from its local headers, one behind the other, in strictly ascending order of names."""
    at, last = 0, ""
    for _ in range(_MOST_MEMBERS):
        if data[at : at + 4] != _LOCAL:
            return
        start = at + _LOCAL_HEADER.size
        if start > len(data):
            break
        *_, size_bytes, name_bytes, extra_bytes = _LOCAL_HEADER.unpack_from(data, at)
        name = data[start : start + name_bytes].decode("latin-1")
        end = start + name_bytes + size_bytes
        if extra_bytes or end > len(data) or not _NAME.fullmatch(name) or name <= last:
            break
        yield name, data[start + name_bytes : end]
        at, last = end, name
    raise VerificationError(f"what stands at byte {at} is no file of an evidence pack: it was changed; get it again.")
