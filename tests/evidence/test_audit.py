"""A pack is made, audited elsewhere without a compiler, and every kind of tampering is found."""

import json
import re
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evidence.packs import edited, failure, run, tampered
from tests.examples import examples
from tests.support import images_dir
from wcet_probe.errors import BuildError, ContradictionError, UsageError, VerificationError
from wcet_probe.evidence.audit import audit
from wcet_probe.evidence.container import pack_bytes, read_pack
from wcet_probe.evidence.packing import SBOM, evidence_members

TARGETS = ("cortex-m4", "mpc603e")


@pytest.fixture(scope="module")
def documents():
    return {target: run(target) for target in TARGETS}


@pytest.fixture(scope="module")
def members(documents):
    return evidence_members([(f"{target}.json", text) for target, text in documents.items()], images_dir())


def test_a_pack_is_audited_without_a_compiler(call, documents, tmp_path, monkeypatch):
    for target, text in documents.items():
        (tmp_path / f"{target}.json").write_bytes(text)
    code, out, err = call("pack", "cortex-m4.json", "mpc603e.json", "-o", "evidence.zip")
    assert (code, err) == (0, "")
    printed = dict(line.split() for line in out.splitlines())
    pack = read_pack((tmp_path / "evidence.zip").read_bytes())
    assert (printed["pack"], printed["digest"], int(printed["files"])) == (
        "evidence.zip",
        pack.digest,
        len(pack.members) + 1,
    )
    assert str(tmp_path).encode() not in b"".join(pack.members.values())

    def no_compiler(*_):
        raise BuildError("there is no compiler here")

    monkeypatch.setattr("wcet_probe.build.compilation.find_toolchain", no_compiler)
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(tmp_path / "empty"))
    code, out, err = call("audit", "evidence.zip", "--digest", pack.digest)
    assert (code, err) == (0, "")
    titles, *rows = out.splitlines()
    assert titles.split() == ["check", "subject", "verdict"]
    found = {re.search("ok, |not checked: ", row).start() for row in rows}
    assert len(found) == 1, "the verdicts stand below each other"
    seen = json.loads(documents["mpc603e"])
    counted = f"ok, {seen['observed']['instructions']} instructions, {seen['observed']['cycles']} cycles again"
    assert [row for row in rows if "replay" in row and row.endswith(counted)]
    code, out, _ = call("audit", "evidence.zip", "--no-replay")
    assert (code, out.count("not checked: it was not run"), out.count("again")) == (6, 2, 0)


def test_the_same_results_give_the_same_bytes(documents, members):
    again = evidence_members([(f"{target}.json", text) for target, text in documents.items()], images_dir())
    assert pack_bytes(again) == pack_bytes(members)


def test_a_pack_holds_what_its_results_are_made_from(members):
    for name in (
        "results/cortex-m4.json",
        "certificates/cortex-m4-cycles.txt",
        "certificates/mpc603e-instructions.txt",
        "witnesses/mpc603e.json",
        "allocators/tlsf/tlsf.c",
        "allocators/tlsf/manifest.toml",
        "allocators/common/bit_search.h",
        "targets/mpc603e.toml",
        "guest/replay.c",
        "guest/runtime.c",
        SBOM,
    ):
        assert members[name]
    images = {name: content for name, content in members.items() if name.startswith("images/")}
    assert {f"images/{sha256(content).hexdigest()}.elf" for content in images.values()} == images.keys()
    assert len(images) == len(TARGETS)


@settings(max_examples=examples(30))
@given(data=st.data())
def test_every_byte_of_a_real_pack_matters(members, data):
    whole = pack_bytes(members)
    at, flip = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(1, 255))
    changed = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
    for broken in (changed, whole[:at], whole + bytes([flip])):
        with pytest.raises(VerificationError, match=r"^[^\n]+\.$"):
            next(audit(broken))


def test_a_changed_pack_is_one_sentence_and_exit_code_1(call, members, tmp_path):
    whole = bytearray(pack_bytes(members))
    whole[len(whole) // 2] ^= 1
    (tmp_path / "evidence.zip").write_bytes(whole)
    code, out, err = call("audit", "evidence.zip")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("wcet-probe: images/")
    assert err.endswith("the pack was changed; get it again.\n")


def test_a_pack_of_another_digest_is_refused(call, members, tmp_path):
    (tmp_path / "evidence.zip").write_bytes(pack_bytes(members))
    code, out, err = call("audit", "evidence.zip", "--no-replay", "--digest", "0" * 64)
    assert (code, out.count("FAILED"), err.count("\n")) == (1, 1, 1)
    assert "another one" in err


def observed(change):
    return edited(lambda document: change(document["observed"]))


def cheaper(unit):
    """The result with a count less than was observed, with the slack that belongs to it."""

    def change(document):
        document["observed"][unit] -= 1
        document["witnesses"][unit]["value"] -= 1
        for witness in document["witnesses"].values():
            witness[unit] -= 1
        document["slack"][unit] += 1

    return edited(change)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("instructions", cheaper("instructions")),
        ("cycles", cheaper("cycles")),
        ("loads", observed(lambda seen: seen.update(loads=seen["loads"] + 1))),
        ("stack_bytes", observed(lambda seen: seen.update(stack_bytes=seen["stack_bytes"] + 4))),
        ("dcache", observed(lambda seen: seen["dcache"].update(misses=0))),
        ("touched_sets", observed(lambda seen: seen["touched_sets"]["data"].pop())),
        ("touched_sets_by_region", observed(lambda seen: seen["touched_sets_by_region"].update(stack=[9]))),
        ("runs", observed(lambda seen: seen["runs"][0].update(executions=2))),
        ("path", observed(lambda seen: seen["path"].pop())),
        ("result", observed(lambda seen: seen.update(result=8))),
        ("checks", edited(lambda document: document["state"]["checks"].pop())),
    ],
)
def test_an_observation_that_does_not_repeat_contradicts(members, what, change):
    error = failure(tampered(members, "results/mpc603e.json", change))
    assert isinstance(error, ContradictionError)
    assert f" in {what}:" in str(error)


def test_a_contradiction_is_exit_code_5(call, members, tmp_path):
    (tmp_path / "evidence.zip").write_bytes(
        pack_bytes(tampered(members, "results/mpc603e.json", cheaper("instructions")))
    )
    code, out, err = call("audit", "evidence.zip")
    assert (code, out.count("FAILED"), err.count("\n")) == (5, 2, 1)


def set_key(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        assert document[path[-1]] != value
        document[path[-1]] = value

    return edited(change)


def lower_bound(document):
    document["bound"]["cycles"] -= 1
    document["slack"]["cycles"] -= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited(lower_bound), "not what is proved"),
        (set_key("bound", "entry", value="tlsf_free"), "another entry"),
        (set_key("slack", "cycles", value=0), "slack in cycles"),
        (set_key("verdict", value="OBSERVED"), "verdict"),
        (set_key("heap_bytes", value=16384), "different heap_bytes"),
        (set_key("target", value="cortex-m4"), "no result needs targets/mpc603e.toml"),
        (set_key("memory", "first_beat_cycles", "value", value=1), "target in the pack"),
        (set_key("caches", "dcache", "ways", value=8), "target in the pack"),
        (set_key("target_configuration", "title", value="A core"), "target in the pack"),
        (set_key("allocator_manifest", "title", value="An allocator"), "allocator in the pack"),
        (set_key("image", "functions", 0, "sha256", value="0" * 64), "section image"),
        (set_key("listing", 0, "text", value="nop"), "section listing"),
        (set_key("source_lines", value={}), "section source_lines"),
        (set_key("image", "sha256", value="0" * 64), "missing"),
        (set_key("tool", "packages", "unicorn", value="2.1.5"), "made with unicorn 2.1.5"),
        (set_key("image", "compiler", value="clang version 1"), "compiler"),
        (set_key("measured_operation", "kind", value="free"), "which was measured"),
        (set_key("observed", "cycles", value="7"), "cycles"),
        (set_key("version", value=2), "version"),
        (lambda content: content[:-3], "result"),
        (lambda content: content.replace(b'"verdict"', b'"version": 1, "verdict"'), "twice"),
        (lambda _: b"[" * 100_000, "deep"),
        (lambda _: b"null", "no format of wcet-probe"),
    ],
)
def test_a_result_that_its_evidence_does_not_bear_out_is_refused(members, change, message):
    error = failure(tampered(members, "results/mpc603e.json", change), replayed=False)
    assert isinstance(error, VerificationError)
    assert re.search(message, str(error)), str(error)


@settings(max_examples=15)
@given(data=st.data())
def test_an_audit_survives_whatever_a_pack_holds(members, data):
    name = data.draw(st.sampled_from(sorted(members)))
    content = members[name]
    at, width = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 3))
    changed = content[:at] + data.draw(st.binary(max_size=3)) + content[at + width :]
    for check in audit(pack_bytes({**members, name: changed}), replayed=False):
        assert check.error is None or isinstance(check.error, VerificationError)


def renamed_image(members, content):
    """The pack with another image for the PowerPC, all hashes in the result put right but those in the certificates."""
    old = json.loads(members["results/mpc603e.json"])["image"]["sha256"]
    new = sha256(content).hexdigest()
    rest = {name: text for name, text in members.items() if name != f"images/{old}.elf"}
    return tampered(rest, "results/mpc603e.json", set_key("image", "sha256", value=new)) | {
        f"images/{new}.elf": content
    }


def test_another_image_is_refused(members):
    sha = json.loads(members["results/mpc603e.json"])["image"]["sha256"]
    elf = members[f"images/{sha}.elf"]
    broken = elf[:0x100] + bytes([elf[0x100] ^ 1]) + elf[0x101:]
    error = failure(tampered(members, f"images/{sha}.elf", lambda _: broken), replayed=False)
    assert "image in the pack is another one" in str(error)
    errors = [check.error for check in audit(pack_bytes(renamed_image(members, broken)), replayed=False) if check.error]
    assert "another image" in str(errors[0])
    for other in (b"", b"\x7fELF", elf[: len(elf) // 2]):
        errors = [check.error for check in audit(pack_bytes(renamed_image(members, other))) if check.error]
        assert all(isinstance(error, VerificationError) for error in errors)
        assert errors


def test_a_changed_certificate_is_refused(members):
    name = "certificates/mpc603e-cycles.txt"
    lines = members[name].decode().split("\n")
    number = next(at for at, line in enumerate(lines) if line.startswith("bound "))
    lines[number] = f"bound {int(lines[number].split()[1]) - 1}"
    text = "\n".join(lines)
    assert f"{name} is not that of the result" in str(failure(tampered(members, name, lambda _: text.encode())))

    def change(document):
        lower_bound(document)
        at = document["bound"]["certificates"].index(members[name].decode())
        document["bound"]["certificates"][at] = text

    both = tampered(tampered(members, name, lambda _: text.encode()), "results/mpc603e.json", edited(change))
    error = failure(both, replayed=False)
    assert isinstance(error, VerificationError)
    assert "the bound is" in str(error)


def test_each_member_is_needed_and_no_other_is_allowed(members):
    for name in members:
        rest = {other: content for other, content in members.items() if other != name}
        assert isinstance(failure(rest, replayed=False), VerificationError), name
    assert "no result needs notes.txt" in str(failure({**members, "notes.txt": b""}, replayed=False))
    assert isinstance(failure({"notes.txt": b""}), VerificationError)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("allocators/tlsf/tlsf.c", b"return", b"return "),
        ("allocators/tlsf/manifest.toml", b'"TLSF', b'"A TLSF'),
        ("targets/mpc603e.toml", b"cycles = 1", b"cycles = 2"),
        ("targets/mpc603e.toml", b'isa = "powerpc"', b'isa = "sparc"'),
        ("allocators/tlsf/manifest.toml", b"name", b"nomen"),
        ("allocators/tlsf/manifest.toml", b"=", b"=="),
        ("allocators/tlsf/tlsf.h", b"/*", b"\xff"),
        (SBOM, b'"1.6"', b'"1.5"'),
        (SBOM, b'"unicorn"', b'"narwhal"'),
    ],
)
def test_changed_sources_targets_and_bills_are_refused(members, name, old, new):
    assert old in members[name]
    error = failure(tampered(members, name, lambda text: text.replace(old, new)), replayed=False)
    assert isinstance(error, VerificationError)


WITNESS = "witnesses/mpc603e.json"


@pytest.mark.parametrize(
    "change",
    [
        lambda witness: witness.update(heap_bytes=4096),
        lambda witness: witness.update(variant="another"),
        lambda witness: witness.update(format="other"),
        lambda witness: witness.update(slot_count=0),
        lambda witness: witness.update(more=1),
        lambda witness: witness.pop("refused"),
        lambda witness: witness["measured_operation"].update(size_bytes=1),
        lambda witness: witness["operations"].update(kinds=[[0, 0, 1 << 60]]),
        lambda witness: witness["operations"].update(slots=[[0, 1.5, 2]]),
        lambda witness: witness["operations"].update(slots=[[1 << 40, 0, 1]]),
        lambda witness: witness["operations"].update(slots=[]),
    ],
)
def test_a_witness_of_another_question_is_refused(members, change):
    error = failure(tampered(members, WITNESS, edited(change)))
    assert isinstance(error, VerificationError)


def test_other_operations_do_not_repeat_the_result(members):
    def free_nothing(witness):
        columns = ("kinds", "slots", "sizes_bytes", "cache_sets")
        witness["operations"] = dict(zip(columns, ([[0, 0, 2]], [[0, 1, 2]], [[64, 0, 2]], [[0, 0, 2]]), strict=True))
        witness["slot_count"] = 2

    error = failure(tampered(members, WITNESS, edited(free_nothing)))
    assert isinstance(error, ContradictionError)


def test_a_predicted_state_that_is_not_reached_contradicts(members):
    error = failure(tampered(members, WITNESS, edited(lambda witness: witness["prediction"][0].update(value=77))))
    assert isinstance(error, ContradictionError)


def test_only_what_was_made_here_is_packed(documents):
    text = documents["cortex-m4"]

    def packed(change, path="a.json"):
        return evidence_members([(path, edited(change)(text))], images_dir())

    with pytest.raises(VerificationError, match="here another image is built, as the sources differ"):
        packed(lambda document: document["image"].update(sha256="0" * 64))
    with pytest.raises(VerificationError, match=r"the compiler \(clang .*, not gcc 1\) differs"):
        packed(lambda document: document["image"].update(sha256="0" * 64, compiler="gcc 1"))
    with pytest.raises(VerificationError, match=r"made with unicorn 1\.0"):
        packed(lambda document: document["tool"]["packages"].update(unicorn="1.0"))
    with pytest.raises(VerificationError, match="builds another worst-alloc"):
        packed(lambda document: document["state"].update(variant="no such state"))
    with pytest.raises(UsageError, match=r"results/a\.json"):
        evidence_members([("a.json", text), ("b/a.json", text)], images_dir())
    with pytest.raises(UsageError, match="no format of wcet-probe"):
        evidence_members([("a.json", b"{}")], images_dir())
    several = json.dumps({"format": "wcet-probe-results", "version": 1, "results": [json.loads(text)]}).encode()
    with pytest.raises(UsageError, match="one name"):
        evidence_members([("a-1.json", text), ("a.json", several)], images_dir())


def test_a_result_that_would_not_pass_is_not_packed(call, documents, tmp_path):
    (tmp_path / "a.json").write_bytes(edited(lower_bound)(documents["cortex-m4"]))
    code, out, err = call("pack", "a.json", "-o", "evidence.zip")
    assert (code, out) == (1, "")
    assert err.startswith("wcet-probe: nothing was written, as the pack would not pass its audit: ")
    assert not (tmp_path / "evidence.zip").exists()


def test_files_that_are_not_there_are_bad_input(call):
    for command in (("audit", "none.zip"), ("pack", "none.json", "-o", "evidence.zip")):
        code, out, err = call(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)


def test_an_allocator_over_another_is_replayed_with_caches_seed_and_parameters():
    options = ("--scenario", "random", "--seed", "7", "--initial-cache", "warm", "--cache", "d:size=8K")
    text = run("arm926ej-s", *options, "--param", "sl-bits=4", allocator="budgeted:tlsf")
    packed = evidence_members([("a.json", text)], images_dir())
    assert {"allocators/budgeted/budgeted.c", "allocators/tlsf/tlsf.c"} <= packed.keys()
    checks = list(audit(pack_bytes(packed)))
    assert not [check for check in checks if check.error]
    (replayed,) = [check for check in checks if check.check == "replay"]
    assert replayed.verdict.endswith(" again")


def test_a_bound_that_was_not_asked_for_is_no_failure():
    text = run("cortex-m4", "--no-bound")
    packed = evidence_members([("a.json", text)], images_dir())
    checks = list(audit(pack_bytes(packed)))
    assert not [check for check in checks if check.error]
    assert [check.verdict for check in checks if check.check == "certificates"] == ["ok, none: no bound was asked for"]


def test_what_each_fact_does_is_told_by_a_command_that_an_audit_knows():
    text = run("cortex-m4", "--fact-effects")
    assert "--fact-effects" in json.loads(text)["command"]
    assert failure(evidence_members([("a.json", text)], images_dir())) is None
