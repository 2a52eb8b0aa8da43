"""Sums of counts: what a round, or a node, may do several times counts so often where it counts less."""

import json
import re
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.analyzer.facts.test_flow import SPLIT, UNROLLED
from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.resealed import reseal
from tests.support import TARGETS, guest_of, image_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.sums import Sums
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import Said, code_of, cover
from wcet_probe.certificate.kernel.records import Graph, graph_of, invariants_of, loops_of, read_records
from wcet_probe.certificate.values.numbers import LINK, Value
from wcet_probe.cli import main

FACT = """[[flow]]
function = "both"
sum = {{ "point other" = 1, "{0}" = -1 }}
max = 0
because = "both have as many iterations"
sha256 = "{1}"
"""


def as_if_once(problem, derivations, followed):
    """Each node that counts less counts as one execution."""
    constraints = tuple(
        replace(one, coefficients={name: max(factor, -1) for name, factor in one.coefficients.items()})
        if one.name.startswith("flow:")
        else one
        for one in problem.constraints
    )
    return replace(problem, constraints=constraints), derivations, followed


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("less", "is_followed"), [("loop first", False), ("point body", True)])
def test_rounds_of_several_iterations_count_less_by_none_of_them_alone(
    target, less, *, is_followed, tmp_path, monkeypatch, capsys
):
    """With one for each round the second loop had 31 rounds of 124: so much was accepted in full of a true fact."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(UNROLLED)
    (tmp_path / "firmware.elf").write_bytes(image_of(UNROLLED, load_target(target), ".c").elf)
    (tmp_path / "facts.toml").write_text(
        FACT.format(less, index_sources({"guest.c": UNROLLED}).function("both").sha256)
    )
    about = ["--facts", "facts.toml"]
    assert main(["bound", "firmware.elf", "--entry", "both", "--target", target, *about, "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    forged = solved_again(document, as_if_once)
    assert forged["bound"]["instructions"] < document["bound"]["instructions"]

    assert open_constraints(forged, about, tmp_path) == ["constraints in instructions", "constraints in cycles"]
    assert (open_constraints(document, about, tmp_path) == []) == is_followed


def open_constraints(document, about, folder):
    """In which lines of the answer the sum is not checked."""
    with (
        patch("wcet_probe.certificate.check.check_shown", return_value="nothing"),
        patch("wcet_probe.certificate.check.used_constraints", all_constraints),
        patch("wcet_probe.evidence.firmware.check_bound") as checked,
    ):
        found = []
        checked.side_effect = lambda *given: found.append(check_bound(*given)) or found[0]
        reseal(document, folder / "f.json")
        main(["verify", str(folder / "f.json"), "--image", "firmware.elf", *about])
    return [each.check for each in found[0].findings if "flow:0.0" in each.found]


def all_constraints(records):
    return {name for name, *_ in records["constraint"]}


BRANCHES = """
volatile int port;
__attribute__((noinline)) int asked(int n) { return port > n; }
void f(volatile int *p, int n) {
    /* loop: all */
    for (int i = 0; i < 20; i++) {
        /* point: next */
        int now = p[n];
        /* point: three */
        if (now > 3 && asked(now) && port < 7)
            port = now;
    }
}
"""
TESTS = """[[flow]]
function = "f"
sum = {{ "branch three" = 1, "point next" = -2 }}
max = 4
because = "the last test is made four times"
sha256 = "{0}"
"""


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_all_branches_of_a_line_count_though_one_follows_the_other(target, tmp_path, monkeypatch, capsys):
    """The constraint has a factor of each of them; what counts an edge once more follows from nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(BRANCHES)
    (tmp_path / "firmware.elf").write_bytes(image_of(BRANCHES, load_target(target), ".c").elf)
    (tmp_path / "facts.toml").write_text(TESTS.format(index_sources({"guest.c": BRANCHES}).function("f").sha256))
    about = ["--facts", "facts.toml"]
    assert main(["bound", "firmware.elf", "--entry", "f", "--target", target, *about, "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)

    def more(name):
        """One execution more counts of an edge."""

        def change(problem, derivations, followed):
            (one,) = (each for each in problem.constraints if each.name == "flow:0.0")
            counted = replace(one, coefficients={**one.coefficients, name: one.coefficients.get(name, 0) + 1})
            others = (counted if each is one else each for each in problem.constraints)
            return replace(problem, constraints=tuple(others)), derivations, followed

        return change

    assert open_constraints(document, about, tmp_path) == []
    edges = re.findall(r"^edge (\S+) ", document["bound"]["certificates"][0], re.MULTILINE)
    for name in edges:
        found = open_constraints(solved_again(document, more(name)), about, tmp_path)
        assert found == ["constraints in instructions", "constraints in cycles"]


BACK_TO_BACK = """
volatile int port;
void f(int n) {
    /* point: next */
    port = n;
    /* point: asked */
    __asm__ volatile("cmp %0, #3\\n beq 1f\\n1: bne 2f\\n2:" : : "r"(n) : "cc");
    port = 7;
}
"""
TWICE = """[[flow]]
function = "f"
sum = { "point next" = 2, "branch asked" = -1 }
max = 0
because = "two branches are executed behind each store"
"""


def test_each_branch_of_a_node_counts_less():
    """Branches to the next instruction end no node; with one of two counted, this function was never executed."""
    core = load_target("cortex-m4")
    on = guest_of(BACK_TO_BACK, core, ".c")
    code, entry = code_of(on.image, on.instructions), on.image.symbols["f"].address
    graph = Graph("f", {"f": (entry, 0)}, "f", (), {"f": 0}, {"f": []}, {})
    known = {"f": {"r13": Value("stack", 0, 0, 0), "r14": LINK}}
    covered = Covered(code, graph, known, cover(code, graph, Said(known), {}))
    assert sum(one.text.startswith("b") for one in covered.coverage.instructions["f"]) == 3
    sums = Sums(covered, [], read_asserted([("facts.toml", TWICE)], {"guest.c": BACK_TO_BACK}), {})
    assert sums.follows("flow", 0, {"enter": 1}, 0) is None
    assert sums.follows("flow", 0, {}, 0) is not None


MARKED = """[[flow]]
function = "mark"
sum = { "point marked" = 1 }
max = 20
because = "each round marks once"
"""


@pytest.mark.parametrize("target", ["mpc603e", "cortex-m0plus"])
def test_what_is_split_off_a_function_is_no_copy_of_a_point(target):
    """With both of its blocks counted, 10 rounds that come to both were left of the 20 that a call has."""
    on = guest_of(SPLIT, load_target(target), ".c")
    records, code = read_records(document_of(on)[0]["bound"]["certificates"][0]), code_of(on.image, on.instructions)
    graph, known = graph_of(records), invariants_of(records)
    covered = Covered(code, graph, known, cover(code, graph, Said(known), {}))
    sums = Sums(covered, loops_of(records), read_asserted([("facts.toml", MARKED)], {"guest.c": SPLIT}), {})

    def counted(*nodes):
        factors = dict.fromkeys((name for node in nodes for name in covered.into(node)), 1)
        return sums.follows("flow", 0, factors, 20) is not None

    (rest,) = [node for node in graph.nodes if node.endswith("mark.part.0+0x0")]
    (tested,) = [node for node in graph.nodes if counted(node) and node != rest]
    assert not counted(tested, rest)
