"""The container, every byte of it checked; and what goes into it: bill of materials, witness, question."""

import io
import json
import zipfile
from importlib.metadata import version

import pytest
from cyclonedx.model.bom import Bom
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.evidence import container as evidence
from wcet_probe.evidence.container import MANIFEST, pack_bytes, read_pack, read_pack_file
from wcet_probe.evidence.recorded import file_stem, recorded_results
from wcet_probe.evidence.sbom import bill_of_materials, installed_packages, serial_number
from wcet_probe.evidence.witness import progressions
from wcet_probe.model.scenario import InitialCache

MEMBERS = {"results/a.json": b"{}\n", "images/b.elf": bytes(range(40)), "empty.txt": b""}
PACK = pack_bytes(MEMBERS)

names = st.from_regex(r"\A[a-z0-9]{1,5}(/[a-z0-9][a-z._+-]{0,4}){0,2}\Z")


@given(st.dictionaries(names, st.binary(max_size=200), max_size=8))
def test_what_was_packed_is_read_whatever_the_order(members):
    data = pack_bytes(members)
    assert dict(read_pack(data).members) == members
    assert pack_bytes(dict(reversed(members.items()))) == data


def test_a_pack_is_a_zip_file_that_others_read():
    with zipfile.ZipFile(io.BytesIO(PACK)) as file:
        assert file.testzip() is None
        assert file.namelist() == sorted([*MEMBERS, MANIFEST])
        assert {name: file.read(name) for name in MEMBERS} == MEMBERS
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.external_attr >> 16 for info in file.infolist()} == {0o100644}
        assert file.comment.decode() == f"wcet-probe-evidence sha256:{read_pack(PACK).digest}"


def test_every_bit_of_a_pack_matters():
    for at in range(len(PACK)):
        for bit in range(8):
            changed = bytearray(PACK)
            changed[at] ^= 1 << bit
            with pytest.raises(VerificationError, match=r"^[^\n]+\.$"):
                read_pack(bytes(changed))


@given(st.integers(0, len(PACK) - 1), st.binary(min_size=1, max_size=40))
def test_a_pack_that_was_cut_or_grew_is_refused(at, more):
    for changed in (PACK[:at], PACK[at + 1 :], PACK + more, more + PACK, PACK[:at] + more + PACK[at:]):
        with pytest.raises(VerificationError):
            read_pack(changed)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_pack_are_refused(data):
    for changed in (data, b"PK\x03\x04" + data, b"PK\x05\x06" + data):
        with pytest.raises(VerificationError):
            read_pack(changed)


def test_another_zip_file_of_the_same_members_is_refused():
    other = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(PACK)) as packed, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as file:
        for name in packed.namelist():
            file.writestr(name, packed.read(name))
    with pytest.raises(VerificationError):
        read_pack(other.getvalue())


def with_manifest(change):
    """The pack, its manifest what ``change`` makes of it and the container put right around it."""
    members = {**MEMBERS, MANIFEST: change(evidence._manifest_bytes(MEMBERS, "1"))}
    comment = f"{evidence.FORMAT} sha256:{evidence.sha256(members[MANIFEST]).hexdigest()}".encode()
    return evidence._serialised(members, comment)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(b"empty.txt", b"other.txt"), "empty.txt is not in the manifest"),
        (lambda text: text.replace(b'"size_bytes": 40', b'"size_bytes": 41'), "images/b.elf is not what"),
        (lambda text: text.replace(b'"version": 1\n', b'"version": 2\n'), "version 1"),
        (lambda text: text.replace(b"\n", b" "), "byte "),
        (lambda text: text.replace(b'"members"', b'"format": "", "members"'), "damaged"),
        (lambda _: b"[" * 100_000, "damaged"),
        (lambda _: b"[]", "damaged"),
        (lambda _: b"\xff", "damaged"),
        (lambda _: b"1" * 10_000, "damaged"),
    ],
)
def test_a_manifest_that_is_not_the_one_is_refused(change, message):
    assert read_pack(with_manifest(lambda text: text)).members == MEMBERS
    with pytest.raises(VerificationError, match=message):
        read_pack(with_manifest(change))


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "a/../b", "C:a", "a\\b", ".a", "a b", "a\n"])
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(VerificationError):
        read_pack(pack_bytes({name: b""}))


def test_nothing_larger_than_a_pack_is_read_or_written(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "LARGEST_BYTES", 100)
    (tmp_path / "large").write_bytes(bytes(101))
    with pytest.raises(UsageError, match="larger than a pack"):
        read_pack_file(tmp_path / "large")
    with pytest.raises(UsageError, match="fewer results"):
        pack_bytes(MEMBERS)


@given(st.lists(st.integers(0, 9) | st.integers(0, 2**32 - 1)))
def test_progressions_are_their_column(column):
    parts = progressions(column)
    assert [first + step * number for first, step, count in parts for number in range(count)] == column


def test_progressions_are_short_where_a_column_is_regular():
    assert progressions([*range(0, 1000, 2), *range(1, 1000, 2)]) == [[0, 2, 500], [1, 2, 500]]


def test_the_bill_of_materials_is_what_is_installed():
    document = bill_of_materials(["clang version 22.1.8 [ziglang 0.17.0]"])
    assert document == bill_of_materials(["clang version 22.1.8 [ziglang 0.17.0]"] * 2)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert "timestamp" not in json.dumps(document)
    assert document["serialNumber"] == serial_number(document)
    assert document["serialNumber"] != bill_of_materials(["clang version 19"])["serialNumber"]
    versions = {one["name"]: one["version"] for one in document["components"]}
    assert versions["clang"] == "22.1.8"
    for name in ("unicorn", "capstone", "pypcode", "highspy", "ziglang", "numpy"):  # numpy: what highspy needs
        assert versions[name] == version(name) == installed_packages()[name]
    assert not versions.keys() & {"pytest", "hypothesis", "ruff"}
    assert len(Bom.from_json(document).components) == len(document["components"])


@pytest.mark.parametrize(
    ("path", "stem"),
    [("a/b/tlsf.json", "tlsf"), ("/dev/fd/63", "63"), ("a b.json", "a-b"), ("..json", "result"), ("-", "result")],
)
def test_the_name_of_a_file_fits_into_a_pack(path, stem):
    assert file_stem(path) == stem


RESULT = {
    "format": "wcet-probe-result",
    "version": 1,
    "allocator": "tlsf",
    "target": "cortex-m4",
    "scenario": "worst-alloc",
    "heap_bytes": 4096,
    "parameters": {"sl-bits": 5},
    "state": {"variant": "one"},
    "initial_cache": "dirty",
    "image": {"sha256": "00"},
    "request": {
        "scenario": "worst-alloc",
        "heap_bytes": 4096,
        "parameters": {"sl-bits": 5},
        "caches": ["size=8K"],
        "seed": 7,
        "compiler": "clang-19",
        "initial_cache": None,
    },
}


def recorded(document):
    return recorded_results("r", json.dumps(document).encode())


def test_a_result_says_what_was_asked():
    (one,) = recorded(RESULT)
    assert (one.name, one.seed, one.caches, one.compiler) == ("r", 7, ("size=8K",), "clang-19")
    assert (one.initial_cache, one.heap_bytes, one.variant) == (InitialCache.DIRTY, 4096, "one")
    several = recorded({"format": "wcet-probe-results", "version": 1, "results": [RESULT, RESULT]})
    assert [result.name for result in several] == ["r-1", "r-2"]


@pytest.mark.parametrize(
    "change",
    [
        {"request": {**RESULT["request"], "heap_bytes": 8192}},
        {"request": None},
        {"heap_bytes": "4096"},
        {"heap_bytes": -1},
        {"initial_cache": "hot"},
        {"state": None},
        {"format": "wcet-probe-bound"},
        {"format": "wcet-probe-results", "results": []},
    ],
)
def test_a_result_that_contradicts_itself_or_is_none_is_refused(change):
    with pytest.raises(UsageError, match=r"--json printed\.$"):
        recorded({**RESULT, **change})
