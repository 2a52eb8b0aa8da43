"""Bounds of own firmware are packed and audited like those of allocators: ELF, facts and sources by their hashes."""

import copy
import json
import re
from hashlib import sha256

import pytest

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main
from wcet_probe.evidence.audit import audit
from wcet_probe.evidence.container import pack_bytes, read_pack

SOURCE = """\
struct node { struct node *next; };

int length(const struct node *node)
{
    int total = 0;
    /* loop: chain */
    while (node) {
        total++;
        node = node->next;
    }
    return total;
}

__attribute__((noinline)) unsigned weight(unsigned word)
{
    unsigned total = 0;
    for (int i = 0; i < 9; i++)
        total += word >> i & 1;
    return total;
}

unsigned twice(unsigned word)
{
    return weight(word) + weight(word + 1);
}
"""
FACT = """\
[[loop]]
function = "length"
label = "chain"
max = "N"
because = "the caller links no more"
sha256 = "{}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The firmware with its source and facts, and two bounds of it."""
    home = tmp_path_factory.mktemp("firmware")
    (home / "guest.c").write_text(SOURCE)
    (home / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        printed = []
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        question = ["bound", "firmware.elf", "--entry", "length", "--facts", "facts.toml", "--param", "N=5", "--json"]
        (home / "facts.toml").write_text(FACT.format("0" * 64))
        errors = []
        patch.setattr("click.echo", lambda text="", **_: errors.append(str(text)))
        assert main(question) == 2
        (right,) = set(re.findall(r"[0-9a-f]{64}", "".join(errors))) - {"0" * 64}
        (home / "facts.toml").write_text(FACT.format(right))
        assert main(question) == main(["bound", "firmware.elf", "--entry", "weight", "--json"]) == 0
    for name, document in zip(("length", "weight"), printed, strict=True):
        (home / f"{name}.json").write_text(json.dumps(document))
    return home


@pytest.fixture
def run(capsys, monkeypatch, folder):
    monkeypatch.chdir(folder)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("index", [3, 4])
def test_a_fact_about_an_argument_that_the_prover_does_not_look_at_changes_nothing(index, run, tmp_path, monkeypatch):
    """Index 4 is a word of the stack, and must not be taken for a register."""
    facts = f'[[argument]]\nfunction = "weight"\nindex = {index}\nmin = 0\nmax = 9\nbecause = "so it is"\n'
    (tmp_path / "own.toml").write_text(facts)
    for module in ("certified", "resolved_values"):  # a prover that does not look
        monkeypatch.setattr(f"wcet_probe.analyzer.{module}.argument_ranges", lambda *_: {})
    files = ("--facts", tmp_path / "own.toml")
    found, text, _ = run("bound", "firmware.elf", "--entry", "weight", *files, "--json", "-q")
    assert found == 0
    (tmp_path / "own.json").write_text(text)
    found, text, error = run("verify", tmp_path / "own.json", "--image", "firmware.elf", *files)
    assert found == 0, (found, text, error)


def test_a_pragma_that_is_left_out_needs_no_source(run, tmp_path, monkeypatch):
    """TACLeBench's bitcount was refused: its restriction of an inlined function stands in no file of facts."""
    monkeypatch.chdir(tmp_path)
    text = 'unsigned f(unsigned x)\n{\n    _Pragma("flowrestriction 1*nobody <= 8*call_f")\n    return x + 1;\n}\n'
    (tmp_path / "guest.c").write_text(text)
    (tmp_path / "own.elf").write_bytes(image_of(text, load_target("cortex-m4"), ".c").elf)
    found, told, _ = run("bound", "own.elf", "--entry", "f", "--json", "-q")
    assert (found, [one["where"] for one in json.loads(told)["bound"]["idle_facts"]]) == (0, ["guest.c:3"])
    (tmp_path / "own.json").write_text(told)
    assert run("verify", "own.json", "--image", "own.elf", "--source", ".")[0] == 0
    (tmp_path / "guest.c").unlink()
    found, told, error = run("verify", "own.json", "--image", "own.elf")
    assert (found, error) == (6, "")
    assert "1 of 1 are not there, guest.c first" in told


LEFT_INSIDE = """\
volatile unsigned v;
unsigned f(void)
{
    _Pragma("loopbound min 0 max 9")
    do {
        if (v == 3)
            break;
    } while (v);
    return v;
}
"""
PARTS = """\
volatile unsigned v;
int more(void) { return v & 1; }
unsigned f(unsigned flag)
{
    _Pragma("loopbound min 0 max 9")
    while (flag && more())
        ;
    return v;
}
"""


@pytest.mark.parametrize(("text", "most"), [(LEFT_INSIDE, 10), (PARTS, 11)])
def test_what_a_pragma_may_leave_out_is_checked_in_full(text, most, run, tmp_path, monkeypatch):
    """Of the first loop a round is left in its midst, of the second one the test may be entered so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(text)
    (tmp_path / "own.elf").write_bytes(image_of(text, load_target("cortex-m4"), ".c").elf)
    found, told, _ = run("bound", "own.elf", "--entry", "f", "--json", "-q")
    assert (found, [loop["max"] for loop in json.loads(told)["bound"]["loops"]]) == (0, [most])
    (tmp_path / "own.json").write_text(told)
    assert run("verify", "own.json", "--image", "own.elf", "--source", ".")[0] == 0


PACK = ("length.json", "weight.json", "--image", "firmware.elf", "--facts", "facts.toml")


@pytest.fixture(scope="module")
def members(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["pack", *PACK, "-o", "whole.zip"]) == 0
    return dict(read_pack((folder / "whole.zip").read_bytes()).members)


def test_a_pack_of_bounds_is_checked_in_full(run, members):
    assert sorted(re.sub("[0-9a-f]{64}", "HASH", name) for name in members) == [
        "certificates/length-cycles.txt",
        "certificates/length-instructions.txt",
        "certificates/weight-cycles.txt",
        "certificates/weight-instructions.txt",
        "facts/HASH.toml",
        "images/HASH.elf",
        "results/length.json",
        "results/weight.json",
        "sbom.cdx.json",
        "sources/HASH.txt",
        "targets/cortex-m4.toml",
    ]
    code, out, err = run("audit", "whole.zip", "--digest", read_pack(pack_bytes(members)).digest)
    assert (code, err) == (0, "")
    _, *rows = out.splitlines()
    assert all(" ok, " in row or "author's words" in row for row in rows)
    assert [" ".join(row.split()) for row in rows if "asserted loop bounds" in row] == [
        "asserted loop bounds length ok, 1 as their facts say, which are assumptions"
    ]


FALSE_RUNS = (
    (("calls", 0, "result"), 5),
    (("calls", 1, "instructions"), 5),
    (("held",), 5),
    (("found", "cycles"), 5),
    (("cycles",), 1),
)


def test_what_was_run_is_run_again_on_a_path_of_the_graph(run, tmp_path):
    facts = '[[argument]]\nfunction = "weight"\nindex = 0\nmin = 0\nmax = 9\nbecause = "so it is"\n'
    (tmp_path / "own.toml").write_text(facts)
    files = ("--facts", tmp_path / "own.toml")
    question = ("bound", "firmware.elf", "--entry", "weight", *files, "--run", "twice(5); weight(3)", "--search", "5")
    code, text, error = run(*question, "--json", "-q")
    assert code == 0, error

    def audited(document):
        """Exit code and lines of the audit, or of what is not packed."""
        (tmp_path / "run.json").write_text(json.dumps(document))
        packing = ("pack", tmp_path / "run.json", "--image", "firmware.elf", *files, "-o", tmp_path / "run.zip")
        code, _, refusal = run(*packing)
        return (code, refusal) if code else run("audit", tmp_path / "run.zip")[:2]

    code, out = audited(json.loads(text))
    assert code in {0, 6}, out
    rows = [" ".join(row.split()) for row in out.splitlines()]
    assert [row for row in rows if "not checked: it is" not in row and " ok, " not in row][1:] == [
        next(row for row in rows if row.startswith("author's words"))
    ]
    assert any(row.startswith("replay run ok, 4 calls, at most ") for row in rows), rows
    assert any(row.startswith("observed path run ok, ") for row in rows), rows
    for path, right in FALSE_RUNS:
        document = json.loads(text)
        *parents, last = path
        place = document["observed"]
        for one in parents:
            place = place[one]
        place[last] -= 1
        assert audited(document)[0] == right, path


def test_without_its_sources_a_pack_says_what_is_not_checked(run):
    assert run("pack", *PACK, "--without-sources", "-o", "bare.zip")[0] == 0
    code, out, _ = run("audit", "bare.zip")
    assert code == 6
    found = [" ".join(row.split()) for row in out.splitlines() if "not checked: " in row]
    assert "sources length not checked: 1 of 1 are not there, guest.c first" in found
    assert any("speaks of the loop length+" in row for row in found)


def test_what_a_bound_rests_on_must_be_given(run, tmp_path):
    for options, asserted in (
        (("weight.json",), "name it with --image"),
        (("weight.json", "--image", "length.json"), "name it with --image"),
        (("length.json", "--image", "firmware.elf"), "name that file with --facts"),
        (("weight.json", "--image", "firmware.elf", "--source", tmp_path), "guest.c, which was not found"),
    ):
        code, out, err = run("pack", *options, "-o", tmp_path / "none.zip")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert asserted in err
    assert not (tmp_path / "none.zip").exists()
    (tmp_path / "guest.c").write_text(SOURCE + "\n")
    assert (
        "was changed since"
        in run(*("pack", "weight.json", "--image", "firmware.elf"), "--source", tmp_path, "-o", "n")[2]
    )


def failure(members):
    return next((str(check.error) for check in audit(pack_bytes(members)) if check.error), None)


def edited(members, name, change):
    """The pack with another document, whose digest is made right."""
    document = json.loads(members[name])
    before = copy.deepcopy(document)
    change(document)
    assert document != before
    document["bound"]["digest"] = bound_digest(document["bound"])
    return {**members, name: json.dumps(document).encode()}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["request"].update(entry="weight"), "which was asked for"),
        (lambda d: d["request"]["parameters"].update(N=4), "the parameters are not those"),
        (lambda d: d["request"].update(facts=[]), "is not that of the result|no result needs facts/"),
        (lambda d: d["request"]["sources"][0].update(name="other.c"), "speaks of another loop"),
        (lambda d: d["request"].update(caches=["i:size=8K"]), "cache"),
        (lambda d: d.update(sources=[]), "the sources are not those of the question"),
        (lambda d: d.update(verdict="OBSERVED"), "the verdict is not BOUNDED"),
        (lambda d: d["listing"][0].update(text="nop"), "section listing"),
        (lambda d: d["source_lines"]["guest.c"].popitem(), "section source_lines"),
        (lambda d: d["image"]["functions"][0].update(sha256="0" * 64), "section image"),
        (lambda d: d["target_configuration"].update(title="A core"), "target in the pack"),
        (lambda d: d["bound"]["loops"][0].update(observed_max=3), "something is said to be observed"),
        (lambda d: d["bound"]["assumptions"][0].update(executions=7), "no run can have checked"),
        (lambda d: d.pop("request"), "does not say what was asked"),
    ],
)
def test_a_bound_that_its_evidence_does_not_bear_out_is_refused(members, change, reason):
    asserted = failure(edited(members, "results/length.json", change))
    assert asserted is not None
    assert re.search(reason, asserted), asserted


def test_other_files_are_refused(members):
    (image,) = (name for name in members if name.startswith("images/"))
    (facts,) = (name for name in members if name.startswith("facts/"))
    (source,) = (name for name in members if name.startswith("sources/"))
    assert "the image in the pack is another one" in failure({**members, image: members[image] + b"\0"})
    easier = members[facts].replace(b"no more", b"a few")
    assert "the facts are not those of the question" in failure({**members, facts: easier})
    other = members[source].replace(b"total++", b"total--")
    assert "guest.c is another source than the bound's" in failure({**members, source: other})
    fresh = f"facts/{sha256(easier).hexdigest()}.toml"
    assert f"no result needs {fresh}" in failure({**members, fresh: easier})
    for name in members:
        rest = {other: content for other, content in members.items() if other != name}
        if name != source:
            assert failure(rest), name


def test_code_in_a_segment_that_can_be_written_is_followed():
    """On PowerPC the checker reads encodings: they were looked for in read-only memory alone."""
    from dataclasses import replace

    from wcet_probe.certificate.machines.machine import Machine

    image = image_of("int f(int n) { return n + 1; }", load_target("mpc603e"), ".c")
    address = image.symbols["f"].address
    writable = replace(image, segments=tuple(replace(one, writable=True) for one in image.segments))
    assert Machine(writable).encoding(address) == Machine(image).encoding(address) is not None
    assert Machine(writable).word(address) is None


def test_the_dossier_s_results_can_be_packed(run, tmp_path):
    assert run("report", "weight.json", "-o", tmp_path / "dossier")[0] == 0
    code, _, err = run(
        "pack", tmp_path / "dossier" / "results.json", "--image", "firmware.elf", "-o", tmp_path / "a.zip"
    )
    assert (code, err) == (0, "")
