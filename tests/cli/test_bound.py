"""``wcet-probe bound`` and ``wcet-probe verify``, with the real analyzer on small firmware."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import image_of
from wcet_probe.analyzer.graph import supergraph
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main

SOURCE = """\
int table[16];
struct node { struct node *next; };

int fixed(void)
{
    int total = 0;
    for (int i = 0; i < 16; i++)
        total += table[i] * i;
    return total;
}

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

int marked(const struct node *node)
{
    int total = 0;
    _Pragma("loopbound min 0 max 9")
    while (node) {
        total += 2;
        node = node->next;
    }
    return total;
}
"""
FACT = """\
[[loop]]
function = "length"
label = "chain"
max = "N"
because = "the caller links no more"
"""


@dataclass(frozen=True)
class Firmware:
    elf: Path
    facts: Path

    def bound(self, entry, *options):
        return ("bound", str(self.elf), "--entry", entry, "--target", "cortex-m4", *options)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    folder = tmp_path_factory.mktemp("firmware")
    (folder / "guest.c").write_text(SOURCE)
    (folder / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    (folder / "facts.toml").write_text(FACT)
    return Firmware(folder / "firmware.elf", folder / "facts.toml")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def with_hash(run, firmware, tmp_path):
    """The facts with the hash that the error of the facts without one tells."""
    code, _, err = run(*firmware.bound("length", "--facts", firmware.facts, "--param", "N=5"))
    assert code == 2
    (line,) = re.findall(r'sha256 = "[0-9a-f]{64}"', err)
    file = tmp_path / "hashed.toml"
    file.write_text(f"{FACT}{line}\n")
    return file


@pytest.fixture
def document(run, firmware):
    code, out, _ = run(*firmware.bound("fixed", "--json"))
    assert code == 0
    return json.loads(out)


def test_a_counting_loop_is_proved(run, firmware):
    code, out, err = run(*firmware.bound("fixed"))
    assert (code, err) == (0, "")
    first, verdict, *_ = out.splitlines()
    assert re.fullmatch(r"fixed on cortex-m4: takes at most \d+ instructions, \d+ cycles", first)
    assert verdict == "BOUNDED: a proven upper bound, under 2 assumptions."
    assert re.search(r"fixed\+0x[0-9a-f]+ \(guest\.c:[78]\) +16  proved", out)


def test_json(document):
    assert (document["format"], document["version"], document["target"]) == ("wcet-probe-bound", 1, "cortex-m4")
    assert document["sources"] == ["guest.c"]
    bound = document["bound"]
    assert bound["entry"] == "fixed"
    path = bound["worst_path"]
    assert sum(block["cost_instructions"] for block in path) == bound["instructions"]
    assert all(block["cost_instructions"] == block["instructions"] * block["executions"] for block in path)
    (loop,) = bound["loops"]
    assert (loop["function"], loop["max"], loop["origin"], loop["file"]) == ("fixed", 16, "proved", "guest.c")
    assert re.fullmatch("0x[0-9a-f]{8}", loop["address"])


COUNTED = "typedef unsigned u; volatile u in = 1;\n__attribute__((noinline)) u g(u x) { u r = 0; %s return r; }\n"
CALLED_TWICE = COUNTED + "u f(u x) { return g(x) + g(x + 1); }\n"
BY_PRAGMA = CALLED_TWICE.replace("%s", '\n_Pragma("loopbound min 0 max 5")\nwhile (in < x) { r += in; in = 1; x--; }\n')


@pytest.fixture
def called_twice(monkeypatch, tmp_path):
    """A question after ``f`` of an ELF file, whose calls of ``g`` are not expanded where they need not be."""

    def asked(source):
        image = image_of(source, load_target("cortex-m4"), ".c")
        (tmp_path / "guest.c").write_text(source)
        (tmp_path / "two.elf").write_bytes(image.elf)
        callee = frozenset({require_symbol(image, "g").address})
        monkeypatch.setattr(supergraph, "to_summarise", lambda *asked: callee - {asked[1], *asked[2]})
        return "bound", tmp_path / "two.elf", "--entry", "f", "--target", "cortex-m4", "--json"

    return asked


@pytest.mark.parametrize("is_run", [False, True])
def test_calls_are_expanded_where_a_run_is_held_against_the_bound(run, called_twice, tmp_path, is_run):
    """A run would contradict what is not said of a callee that is charged with its own bound."""
    question = called_twice(CALLED_TWICE.replace("%s", "for (u i = 0; i < 5; i++) r += in * x;"))
    code, out, err = run(*question, *(("--run", "f(9)") if is_run else ()))
    assert code == 0, err
    assert json.loads(out)["bound"].get("summarised", []) == ([] if is_run else ["g"])
    code, out, err = run("verify", write(tmp_path, json.loads(out)), "--image", question[1])
    assert (code, "callee g" in out) == (0, not is_run), err


def test_where_the_graph_is_too_large_a_run_is_held_against_costs_and_loops(run, called_twice, monkeypatch, tmp_path):
    """With each call expanded there was no bound at all for who asked for a run."""
    monkeypatch.setattr(supergraph, "MOST_POINTS", 6)
    question = called_twice(BY_PRAGMA)
    code, out, err = run(*question, "--run", "f(4); f(5)")
    assert code == 0, err
    document = json.loads(out)
    assert (document["bound"]["summarised"], document["observed"]["held"]) == (["g"], 2)
    (loop,) = document["bound"]["loops"]
    assert (loop["function"], loop["origin"], loop["observed_max"]) == ("g", "pragma", 5)
    code, out, err = run("verify", write(tmp_path, document), "--image", question[1], "--source", tmp_path)
    assert (code, "callee g" in out) == (0, True), (out, err)
    code, _, err = run(*question, "--run", "f(7)")
    assert (code, "guest.c:3" in err) == (5, True), err


def test_a_report_has_the_runs_that_were_held_against_the_bound(run, firmware, tmp_path):
    """It was refused for a slack, which only results of allocators have."""
    code, out, err = run(*firmware.bound("fixed", "--run", "fixed(); u32[&table] = 7; fixed()", "--json"))
    assert code == 0, err
    code, _, err = run("report", write(tmp_path, json.loads(out)), "-o", "dossier")
    assert code == 0, err
    page = re.sub(r"<[^>]+>|\s+", " ", (tmp_path / "dossier" / "report.html").read_text())
    (witness,) = re.findall("Runs: fixed (?!.*Runs: fixed)(.*?) Validation of this version", page)
    shown = " ".join(witness.split())
    assert all(words in shown for words in ("u32[&amp;table] = 7", "2 calls", "(1.000 times)")), shown


@pytest.mark.parametrize("unit", ["instructions", "cycles"])
def test_a_report_refuses_a_run_above_the_bound(run, firmware, tmp_path, unit):
    _, out, _ = run(*firmware.bound("fixed", "--run", "fixed()", "--json"))
    document = json.loads(out)
    document["observed"][unit] = document["observed"]["calls"][0][unit] = document["bound"][unit] + 1
    code, _, err = run("report", write(tmp_path, document), "-o", "dossier")
    assert (code, f"a run took more {unit} than the bound" in err) == (1, True), err
    assert not (tmp_path / "dossier").exists()


def test_no_assumption_claims_a_check_where_nothing_is_run(run, firmware, with_hash):
    _, out, _ = run(*firmware.bound("length", "--facts", with_hash, "--param", "N=5", "--json"))
    assumptions = json.loads(out)["bound"]["assumptions"]
    assert [one["id"] for one in assumptions][-1].startswith("fact ")
    assert all(one["check"].startswith(("not checked", "no run can check it")) for one in assumptions)
    assert all(one["executions"] is None for one in assumptions)


def test_json_is_the_same_each_time_and_names_no_folder(run, firmware):
    first, second = (run(*firmware.bound("fixed", "--json"))[1] for _ in range(2))
    assert first == second
    assert str(firmware.elf.parent) not in first


def test_why_tells_each_block_with_source_and_code(run, firmware):
    code, out, _ = run(*firmware.bound("fixed", "--why"))
    assert code == 0
    most = int(re.search(r"at most (\d+) instructions", out)[1])
    assert sum(map(int, re.findall(r": \d+ times?, (\d+) instructions", out))) == most
    assert "guest.c:8  total += table[i] * i;" in out
    assert re.search(r"^ +0x[0-9a-f]{8}  \w", out, re.MULTILINE)
    assert "1 loop: 1 proved" in out


def test_a_loop_without_bound_is_named(run, firmware):
    code, out, err = run(*firmware.bound("length"))
    assert (code, out) == (4, "")
    assert re.match(r"wcet-probe: no bound for the loop at length\+0x[0-9a-f]+ \(guest\.c:1[6-8]\): say how often", err)
    command = err.split("written at once by: ")[1].strip().replace("\n", " ")
    code, out, _ = run(*command.split()[1:])
    assert code == 0
    assert 'function = "length"' in out


def test_a_fact_with_a_parameter(run, firmware, with_hash):
    def instructions(n):
        _, out, _ = run(*firmware.bound("length", "--facts", with_hash, "--param", f"N={n}", "--json"))
        return json.loads(out)["bound"]["instructions"]

    least, next_one, last = (instructions(n) for n in (5, 6, 15))
    assert next_one > least
    assert last - least == 10 * (next_one - least)


def test_the_pragma_of_a_source_counts(run, firmware, tmp_path):
    code, out, _ = run(*firmware.bound("marked"))
    assert code == 0
    assert "Loops (1 pragma)" in out
    (tmp_path / "empty").mkdir()
    assert run(*firmware.bound("marked", "--source", tmp_path / "empty"))[0] == 4


def test_a_cache_can_be_changed(run, tmp_path):
    (tmp_path / "other.elf").write_bytes(image_of(SOURCE, load_target("mpc603e"), ".c").elf)
    command = ("bound", "other.elf", "--entry", "fixed", "--target", "mpc603e", "--json")
    with_caches, without = (json.loads(run(*command, *more)[1])["bound"] for more in ((), ("--cache", "none")))
    assert with_caches["instructions"] == without["instructions"]
    assert with_caches["cycles"] < without["cycles"]  # the array is swept: a fill for each line, and not for each word
    assert "timing model of mpc603e with --cache none: " in run(*command[:-1], "--cache", "none")[1]


def test_bad_input_is_one_sentence(run, firmware, with_hash, tmp_path):
    (tmp_path / "bad.bin").write_bytes(b"\xff\xfe")
    cases = {
        firmware.bound("fixd"): "unknown symbol of the image 'fixd': did you mean 'fixed'?",
        firmware.bound("table"): "table is no function of the image; name one of its functions.",
        ("bound", "no.elf", "--entry", "f"): "cannot read no.elf: No such file or directory; name a file that you can",
        ("bound", "bad.bin", "--entry", "f"): "the file is no usable ELF",
        ("bound", firmware.elf): "missing option '--entry'",
        firmware.bound("fixed", "--facts", "no.toml"): "cannot read no.toml: No such file or directory",
        firmware.bound("fixed", "--facts", "bad.bin"): "bad.bin is no UTF-8 text",
        firmware.bound("fixed", "--target", "mpc603e"): "the ELF is for EM_ARM, the target executes powerpc",
        firmware.bound("fixed", "--target", "mpc603"): "unknown target 'mpc603': did you mean 'mpc603e'?",
        firmware.bound("fixed", "--source", "nowhere"): "invalid value for '--source'",
        firmware.bound(
            "length", "--facts", with_hash
        ): "hashed.toml:1: [[loop]] key max: in 'N': unknown parameter 'N'",
    }
    for arguments, sentence in cases.items():
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith(f"wcet-probe: {sentence}")


# --------------------------------------------------------------------------------------------------------------- verify


def write(folder, document):
    file = folder / "result.json"
    file.write_text(json.dumps(document))
    return file


def test_verify_prints_a_line_for_each_certificate(run, document, tmp_path):
    code, out, err = run("verify", write(tmp_path, document))
    assert (code, err) == (6, "")
    bound, image = document["bound"], document["image"]["sha256"][:16]
    *lines, last = out.splitlines()[1:]
    assert last == "arithmetic only: the graph is the prover's word; give the binary with --image"
    assert [line.split() for line in lines] == [
        ["fixed", "cortex-m4", str(bound["instructions"]), "instructions", image, "1", "0"],
        ["fixed", "cortex-m4", str(bound["cycles"]), "cycles", image, "1", "0"],
    ]


def test_verify_takes_several_files(run, document, tmp_path):
    file = write(tmp_path, document)
    code, out, _ = run("verify", file, file)
    assert (code, len(out.splitlines())) == (6, 6)


def test_verify_with_the_image_checks_everything(run, firmware, document, tmp_path):
    code, out, err = run("verify", write(tmp_path, document), "--image", firmware.elf)
    assert (code, err) == (0, "")
    assert [line.split("  ")[1] for line in out.splitlines() if "not checked" in line] == ["author's words"]
    assert re.search(r"^  graph +ok +covers the code of the image", out, re.MULTILINE)
    assert re.search(r"^  loop bounds +ok +1 by counters", out, re.MULTILINE)
    assert "taken on trust" in out


def test_facts_that_a_bound_rests_on_must_be_given_and_the_same(run, firmware, tmp_path):
    facts = firmware.elf.parent / "hashed.toml"
    code, _, err = run(*firmware.bound("length", "--facts", firmware.facts, "--param", "N=5"))
    digest = re.search(r'sha256 = "([0-9a-f]{64})"', err)[1]
    facts.write_text(f'{FACT}sha256 = "{digest}"\n')
    code, out, _ = run(*firmware.bound("length", "--facts", facts, "--param", "N=5", "--json"))
    assert code == 0
    document = json.loads(out)
    file = write(tmp_path, document)
    verify = ("verify", file, "--image", firmware.elf)
    code, out, _ = run(*verify, "--facts", facts)
    assert (code, out.count("not checked"), out.count("author's words")) == (0, 1, 1)
    assert re.search(r"asserted loop bounds +ok +1 as their facts say", out)
    code, _, err = run(*verify)
    assert (code, err.count("\n")) == (1, 1)
    assert "the facts are not those of the question" in err
    for old, new in (('max = "N"', 'max = "N + 1"'), ("no more", "less"), ('"length"', '"marked"')):
        changed = tmp_path / "hashed.toml"
        changed.write_text(facts.read_text().replace(old, new))
        code, _, err = run(*verify, "--facts", changed)
        assert (code, err.count("\n")) == (1, 1), (old, err)


def test_a_pragma_is_looked_up_in_its_source(run, firmware, tmp_path):
    code, out, _ = run(*firmware.bound("marked", "--json"))
    assert code == 0
    verify = ("verify", write(tmp_path, json.loads(out)), "--image", firmware.elf)
    assert run(*verify)[0] == 0
    code, out, err = run(*verify, "--source", tmp_path)
    assert (code, "that the pragma at guest.c:" in out) == (6, True), err


def _numbers(value, path=()):
    """The paths to all integers in ``value``."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from [(*path, key)] if type(item) is int else _numbers(item, (*path, key))


def test_no_number_of_the_bound_can_be_changed(run, document, tmp_path):
    paths = list(_numbers(document["bound"], ("bound",)))
    assert len(paths) > 8
    for path in paths:
        changed = json.loads(json.dumps(document))
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] += -1 if place[path[-1]] else 1
        code, out, err = run("verify", write(tmp_path, changed))
        assert (code, out) == (1, ""), path
        assert "result.json: not verified: " in err


def test_only_loops_of_calls_that_are_not_expanded_may_be_missing_in_the_certificate(run, document, tmp_path):
    bound = document["bound"]
    bound["loops"].append({**bound["loops"][0], "name": "callee+0x0"})
    for summarised, expected in (([], 1), (["callee"], 6)):
        bound |= {"summarised": summarised}
        bound["digest"] = bound_digest(bound)
        assert run("verify", write(tmp_path, document))[0] == expected
    del bound["loops"][0]
    bound["digest"] = bound_digest(bound)
    assert run("verify", write(tmp_path, document))[0] == 1


def test_a_changed_certificate_or_image_is_refused(run, document, tmp_path):
    text = document["bound"]["certificates"][0]
    document["bound"]["certificates"][0] = re.sub(r"^bound \d+", "bound 1", text, flags=re.MULTILINE)
    code, _, err = run("verify", write(tmp_path, document))
    assert (code, err.count("\n")) == (1, 1)
    document["bound"]["certificates"][0] = text
    assert run("verify", write(tmp_path, document))[0] == 6
    document["image"]["sha256"] = "0" * 64
    assert run("verify", write(tmp_path, document))[0] == 1


def test_verify_against_another_image(run, firmware, document, tmp_path):
    other = tmp_path / "other.elf"
    other.write_bytes(firmware.elf.read_bytes() + b"\0")
    code, _, err = run("verify", write(tmp_path, document), "--image", other)
    assert (code, err.count("\n")) == (1, 1)
    assert "it is about another image than the given one" in err
    code, _, err = run("verify", write(tmp_path, document), "--image", __file__)
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff", "is no JSON ('utf-8' codec can't decode byte 0xff in position 0: invalid start byte); give it "),
        (b"{", "is no JSON (Expecting property name enclosed in double quotes: "),
        (b"[" * 100_000, "is no JSON (it is nested too deeply); give it what --json printed."),
        (b'{"version": 1, "version": 2}', "is no JSON (an object has a key twice); give it what --json printed."),
        (b"1" * 10_000, "is no JSON (Exceeds the limit (4300 digits) for integer string conversion: "),
        (b"[]", "holds no results or bounds of version 1; "),
        (b'{"format": "wcet-probe-target", "version": 1}', "holds no results or bounds of version 1; "),
        (b'{"format": "wcet-probe-bound", "version": 2}', "holds no results or bounds of version 1; "),
        (b'{"format": "wcet-probe-results", "version": 1, "results": []}', "holds no results or bounds of version 1; "),
        (
            b'{"format": "wcet-probe-results", "version": 1, "results": [1]}',
            "holds no results or bounds of version 1; ",
        ),
    ],
)
def test_what_is_no_result_is_refused(run, tmp_path, content, sentence):
    (tmp_path / "x.json").write_bytes(content)
    code, out, err = run("verify", "x.json")
    assert (code, out) == (2, "")
    assert err.startswith(f"wcet-probe: x.json {sentence}")


def test_a_result_that_lacks_its_parts_is_not_verified(run, tmp_path):
    for bound, expected in (({}, 1), ({"certificates": []}, 1), ([], 2), ("x", 2), (0, 2)):
        code, _, err = run("verify", write(tmp_path, {"format": "wcet-probe-bound", "version": 1, "bound": bound}))
        assert (code, err.count("\n")) == (expected, 1)
        assert "Traceback" not in err


def test_verify_needs_a_file(run):
    assert run("verify")[0] == 2
    code, _, err = run("verify", "nowhere.json")
    assert (code, err) == (
        2,
        "wcet-probe: cannot read nowhere.json: No such file or directory; name a file that you can read.\n",
    )
