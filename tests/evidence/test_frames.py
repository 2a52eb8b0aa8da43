"""Results with returns that pop a caller's frame, or with code that is entered between two symbols, are checked."""

import copy
import json

import pytest

from tests.analyzer.recursive_programs import SORT
from tests.support import assembler, image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.audit import audit
from wcet_probe.evidence.checking import check_file_result

UNWINDING = {
    "f": "push {r4, lr}\n bl g\n adds r0, #1\n pop {r4, pc}",
    "g": "push {r4, r5, lr}\n movs r5, #9\n cmp r0, #5\n bhi 2f\n bl special\n2: adds r0, #3\n"
    "1: subs r5, #1\n bne 1b\n pop {r4, r5, pc}",
    "special": "cmp r0, #2\n bls 1f\n movs r5, #2\n b behind\n1: movs r0, #0\n pop {r4, r5, pc}",
    "behind": "bx lr",
}
BETWEEN = {
    "f": "push {r4, lr}\n bl g + 4\n pop {r4, pc}",
    "g": "movs r1, #9\n movs r1, #9\n movs r1, #5\n1: subs r1, #1\n bne 1b\n bx lr",
}


def made(folder, bodies):
    (folder / "a.elf").write_bytes(image_of(assembler(bodies, load_target("cortex-m4")), load_target("cortex-m4")).elf)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        printed = []
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        assert main(["bound", "a.elf", "--entry", "f", "--target", "cortex-m4", "--json", "-q"]) == 0
    (folder / "a.json").write_text(json.dumps(printed[0]))
    return json.loads(json.dumps(printed[0])), (folder / "a.elf").read_bytes()


def check(document, elf):
    document["bound"]["digest"] = bound_digest(document["bound"])
    return check_file_result(document, json.dumps(document).encode(), elf)


def test_a_return_for_a_caller_is_checked_packed_and_audited(tmp_path, monkeypatch):
    document, elf = made(tmp_path, UNWINDING)
    kinds = [edge["kind"] for edge in document["bound"]["graph"]["edges"]]
    assert kinds.count("unwind") == 1
    checked, _ = check(document, elf)
    assert checked.is_full
    monkeypatch.chdir(tmp_path)
    assert main(["pack", "a.json", "--image", "a.elf", "-o", "a.zip"]) == 0
    assert not [one for one in audit((tmp_path / "a.zip").read_bytes()) if one.error]
    for old, new in (("unwind", "return"), ("return", "unwind"), ("jump", "return")):
        other = copy.deepcopy(document)
        edges = other["bound"]["graph"]["edges"]
        next(edge for edge in edges if edge["kind"] == old)["kind"] = new
        with pytest.raises(VerificationError, match="go other ways"):
            check(other, elf)


def test_code_is_called_after_where_it_is_entered(tmp_path):
    document, elf = made(tmp_path, BETWEEN)
    (loop,) = document["bound"]["loops"]
    assert loop["function"] == "g+0x4"
    assert check(document, elf)[0].is_full
    for rows in ("loops", "worst_path"):
        for name in ("g", "f", "g+0x2"):
            other = copy.deepcopy(document)
            next(row for row in other["bound"][rows] if row["function"] == "g+0x4")["function"] = name
            with pytest.raises(VerificationError, match="is not in"):
                check(other, elf)


FOLLOWED = f"""typedef unsigned u; u words[6] = {{3, 1, 2}};
{SORT}
u f(void) {{ sort(words, 0, 5); return words[3]; }}
"""


def test_a_run_that_is_followed_through_calls_and_recursion_is_checked_in_full(tmp_path, monkeypatch, capsys):
    """Its nodes have no contexts: a callee was said to be no function that was entered."""
    target = load_target("cortex-m4")
    (tmp_path / "a.elf").write_bytes(image_of(FOLLOWED, target, ".c", "-O1").elf)
    monkeypatch.chdir(tmp_path)
    asked = ["bound", "a.elf", "--entry", "f", "--target", "cortex-m4", "--initial-data", "--json", "-q"]
    assert main(asked) == 0
    (tmp_path / "a.json").write_text(capsys.readouterr().out)
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["bound"]["loops"] == []
    assert main(["verify", "a.json", "--image", "a.elf"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"run in instructions ok takes {document['bound']['instructions']} at most" in said
