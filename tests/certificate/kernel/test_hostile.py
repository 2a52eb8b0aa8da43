"""Certificates and packs from anybody: what is too much is one sentence, and time is linear in the text.

Tests: certificate.kernel.records, certificate.kernel.verify.
"""

import json
import struct
import time
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.results import result as result_of
from tests.support import guest_of, images_dir
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.records import MOST_DIGITS, MOST_NODES, MOST_OF_A_KIND
from wcet_probe.certificate.kernel.verify import bound_digest, check_certificate
from wcet_probe.cli import main, streams
from wcet_probe.cli.streams import warn_of_large
from wcet_probe.emu.layout import HARNESS_ADDRESS, RETURN_ADDRESS
from wcet_probe.errors import EmulationError, ImageError, VerificationError
from wcet_probe.evidence.audit import audit
from wcet_probe.evidence.container import pack_bytes
from wcet_probe.evidence.packing import evidence_members
from wcet_probe.model.image import Segment
from wcet_probe.reports.screens.terminal import render_table

HEAD = "wcet-probe certificate 1\nimage {}\nentry-function f\ntarget t\nunit instructions\n".format("0" * 64)
PT_LOAD, PF_W = 1, 2
MOST_SECONDS = 20
"""Many times what it takes, on a machine that does other things as well; it took minutes."""


def chain(length, *, loops=0, dual="1"):
    """Nodes one behind the other, the first ``loops`` of which are loops of their own that end at once."""
    lines = [f"bound {length}", "optimum none", *(f"node n{i} {16 + 2 * i:#x} 1" for i in range(length))]
    lines += ["entry n0", f"exit n{length - 1} 0"]
    lines += [f"edge e{i} n{i} n{i + 1} 0" for i in range(length - 1)]
    lines += [f"edge b{i} n{i} n{i} 0" for i in range(loops)]
    lines += [f"loop n{i} 0 {'enter' if i == 0 else f'e{i - 1}'} | b{i}" for i in range(loops)]
    lines += [f"dual enter {length if dual == '1' else dual}"]
    lines += [f"dual flow:n{i} {1 + i - length}" for i in range(length - 1)]
    lines += [f"dual loop:n{i} 1" for i in range(loops)]
    origin = {"origin": "pragma", "max_header": 1, "offset": 0, "expression": "1", "parameters": {}}
    lines += [
        "derivation " + json.dumps({"loop": f"n{i}", "constraint": f"loop:n{i}", **origin}, sort_keys=True)
        for i in range(loops)
    ]
    return HEAD + "\n".join(lines) + "\n"


def test_three_thousand_loops_are_checked_at_once():
    began = time.monotonic()
    assert check_certificate(chain(3001, loops=3000)).bound == 3001
    assert time.monotonic() - began < MOST_SECONDS


def test_a_million_nodes_are_refused_before_they_are_read():
    began = time.monotonic()
    with pytest.raises(VerificationError, match=f"more than {MOST_NODES:,} nodes"):
        check_certificate(chain(200_000))
    assert time.monotonic() - began < MOST_SECONDS


@pytest.mark.parametrize(("nodes", "is_told"), [(10, False), (MOST_NODES + 1, True)])
def test_who_writes_what_is_not_read_is_told_so_with_a_remedy(nodes, is_told, capsys):
    warn_of_large([chain(10), chain(nodes)])
    told = capsys.readouterr().err
    assert ("will refuse it: not verified: the certificate has more than 50,000 nodes" in told) is is_told
    assert ("tell --stack-pointer as well" in told) is is_told


@pytest.mark.parametrize("record", ["constraint k{} <= 1 1 enter", "event k{} 0", "edge k{} n0 n0 0"])
def test_more_rows_than_a_proof_needs_are_refused_before_they_are_read(record):
    """1.9 million constraints took 1.4 GB."""
    more = "\n".join(record.format(number) for number in range(MOST_OF_A_KIND + 1))
    with pytest.raises(VerificationError, match=f"more than {MOST_OF_A_KIND:,} records of kind {record[:4]}"):
        check_certificate(f"{chain(10)}{more}\n")


def test_huge_rationals_are_refused():
    with pytest.raises(VerificationError, match=f"{MOST_DIGITS} digits or more"):
        check_certificate(chain(10, dual=f"{10**3000}/{10**3000 + 1}"))


@pytest.fixture(scope="module")
def members():
    document = result_of("tlsf", "cortex-m4", heap_bytes=8192)
    return evidence_members([("a.json", json.dumps(document).encode())], images_dir())


def with_image(members, change):
    """The pack with another image, whose hash stands wherever the old one stood."""
    (name,) = (name for name in members if name.startswith("images/"))
    elf = bytearray(members[name])
    change(elf)
    old, new = name[7:-4].encode(), sha256(elf).hexdigest().encode()
    changed = {key: value.replace(old, new) for key, value in members.items() if key != name}
    (result,) = (name for name in members if name.startswith("results/"))
    document = json.loads(changed[result])
    document["bound"]["digest"] = bound_digest(document["bound"])
    return {**changed, result: json.dumps(document).encode(), f"images/{new.decode()}.elf": bytes(elf)}


def entry_loops(elf):
    """malloc goes to and fro for ever, by two instructions: a jump to itself is seen at once."""
    from wcet_probe.build.image import read_image
    from wcet_probe.model.target import Isa

    image = read_image(bytes(elf), Isa.THUMB, "")
    address = image.symbols["tlsf_malloc"].address
    code = next(one for one in image.segments if one.executable)
    start = address - code.address
    offset = bytes(elf).index(code.data[start : start + 32])
    elf[offset : offset + 4] = b"\x00\xbf\xfd\xe7"


def memory_is_large(elf):
    """The writable segment has 4 GB, almost."""
    first, size, count = struct.unpack_from("<28xI10x2H", elf)
    for at in range(first, first + count * size, size):
        kind, flags = struct.unpack_from("<I20xI", elf, at)
        if kind == PT_LOAD and flags & PF_W:
            struct.pack_into("<I", elf, at + 20, 0xFFF00000)


@pytest.mark.parametrize(
    ("change", "words"),
    [(entry_loops, "takes more than 10000000 instructions"), (memory_is_large, "has 4293918720 bytes")],
)
def test_a_replay_that_would_take_too_much_is_stopped(change, words, members):
    """All but the code is as it should be, and the digest, too: what comes before the replay does not stop it."""
    began = time.process_time()
    checks = list(audit(pack_bytes(with_image(members, change)), most_instructions=10_000_000))
    assert time.process_time() - began < MOST_SECONDS
    (replay,) = (check for check in checks if check.check == "replay")
    assert replay.verdict == "FAILED"
    assert words in str(replay.error)
    assert all(check.verdict.startswith(("ok", "FAILED", "not checked")) for check in checks)
    assert all(str(check.error).count("\n") == 0 for check in checks if check.error)


def test_a_guest_may_take_so_many_instructions_and_no_more():
    source = "int f(int n) { volatile int k = 0; for (int i = 0; i < n; i++) k += i; return k; }"
    on = guest_of(source, load_target("cortex-m4"), ".c")
    with on.machine() as free:
        needed = free.count("f", (1000,))
    with on.machine(most_instructions=needed) as limited:
        assert limited.call("f", 1000) == sum(range(1000)) & 0xFFFFFFFF
    with on.machine(most_instructions=needed - 1) as limited, pytest.raises(EmulationError, match="takes more than"):
        limited.call("f", 1000)
    with on.machine(most_instructions=needed) as limited:
        limited.call("f", 900)
        with pytest.raises(EmulationError, match="larger budget"):
            limited.count("f", (900,))


def test_a_segment_larger_than_any_memory_is_refused():
    on = guest_of("int f(void) { return 1; }", load_target("cortex-m4"), ".c")
    segments = tuple(replace(one, size_bytes=0xFFF00000) for one in on.image.segments)
    with pytest.raises(ImageError, match="has 4293918720 bytes"):
        replace(on, image=replace(on.image, segments=segments)).machine()


@pytest.mark.parametrize("address", [HARNESS_ADDRESS + 8, RETURN_ADDRESS - 4])
def test_a_segment_where_the_emulator_has_its_own_is_refused(address):
    on = guest_of("int f(void) { return 1; }", load_target("cortex-m4"), ".c")
    segments = (*on.image.segments, Segment(address, b"12345678", 8, writable=True, executable=False))
    with pytest.raises(ImageError, match="have memory in common; link the image to other addresses"):
        replace(on, image=replace(on.image, segments=segments)).machine()


@pytest.mark.parametrize("name", ["x" * 10_000, "enter\x1b[2J", "enter\x85ok"])
def test_a_name_that_nobody_could_read_is_none(name):
    with pytest.raises(VerificationError, match="is no record") as refused:
        check_certificate(chain(10).replace("dual enter", f"dual {name}"))
    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


def test_what_a_reader_quotes_is_cut(members):
    """The error of a decoder holds all of what it could not decode."""
    changed = {**members, "targets/cortex-m4.toml": b"\xff\x1b[2J" + members["targets/cortex-m4.toml"]}
    errors = [str(check.error) for check in audit(pack_bytes(changed), replayed=False) if check.error]
    assert errors
    assert all(len(error) < 700 and error.isprintable() for error in errors)


def test_a_document_commands_no_terminal(tmp_path, capsys):
    document = result_of("tlsf", "cortex-m4", heap_bytes=8192)
    changed = json.loads(json.dumps(document))
    changed["tool"]["packages"]["ziglang"] = "0\x1b[2J\x9b2J"
    for name, one in (("a.json", document), ("b.json", changed)):
        (tmp_path / name).write_text(json.dumps(one))
    assert main(["diff", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    shown = capsys.readouterr().out
    assert "0?[2J?2J" in shown
    assert all(line.isprintable() for line in shown.split("\n"))


def test_no_cell_begins_a_line_of_a_table(capsys):
    render_table(("check", "verdict"), [("a\nbound", "FAILED"), ("b", "ok\x1b[1A")], streams.result_console())
    assert capsys.readouterr().out.split("\n")[1:] == ["  a?bound  FAILED", "  b        ok?[1A", ""]
