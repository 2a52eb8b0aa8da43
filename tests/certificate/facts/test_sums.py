"""Sums of counts: what a constraint may count that follows from a fact."""

import json
import re
from contextlib import chdir
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.analyzer.facts.test_flow import FOREVER, FOREVER_CODE, LEFT_OUT, SKIPPED, SPLIT
from tests.analyzer.facts.test_merged_functions import NEEDS_GCC
from tests.analyzer.loops.debug_unit import debug_unit
from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.random_campaign import built
from tests.resealed import reseal
from tests.support import TARGETS, guest_of, image_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.build.compilers import unshared_functions
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.sums import Sums
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import code_of, cover, said_of
from wcet_probe.certificate.kernel.records import graph_of, invariants_of, loops_of, read_records
from wcet_probe.cli import main

FACT = """[[flow]]
function = "entry"
sum = {{ "point told" = 1, "{0}" = -1 }}
max = 0
because = "each loop has four iterations, or the second one none"
sha256 = "{1}"
"""


def with_more(problem, derivations, followed):
    """The sum may be one more."""
    constraints = tuple(
        replace(one, constant=one.constant + 1) if one.name.startswith("flow:") else one for one in problem.constraints
    )
    return replace(problem, constraints=constraints), derivations, followed


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("less", ["loop first", "point stored"])
def test_what_takes_off_is_not_checked(target, less, tmp_path, monkeypatch, capsys):
    """Of four stores the code has one: with that counted, one round of four was accepted in full of a true fact."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(LEFT_OUT)
    (tmp_path / "firmware.elf").write_bytes(image_of(LEFT_OUT, load_target(target), ".c").elf)
    (tmp_path / "facts.toml").write_text(
        FACT.format(less, index_sources({"guest.c": LEFT_OUT}).function("entry").sha256)
    )
    about = ["--facts", "facts.toml"]
    assert main(["bound", "firmware.elf", "--entry", "entry", "--target", target, *about, "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    for one in (document, solved_again(document, with_more)):
        assert open_constraints(one, about, tmp_path) == ["constraints in instructions", "constraints in cycles"]


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_block_that_is_executed_to_skip_a_place_does_not_follow_to_be_infeasible(
    target, tmp_path, monkeypatch, capsys
):
    """Of ARM's code, a block is a store on a condition that the block before has tested."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(SKIPPED)
    (tmp_path / "firmware.elf").write_bytes(image_of(SKIPPED, load_target(target), ".c").elf)
    (tmp_path / "facts.toml").write_text(
        '[[infeasible]]\nfunction = "f"\npoint = "equal"\nbecause = "they differ"\n'
        f'sha256 = "{index_sources({"guest.c": SKIPPED}).function("f").sha256}"\n'
    )
    about = ["--facts", "facts.toml"]
    with patch("wcet_probe.analyzer.facts.flow._predicated", return_value=set()):
        assert main(["bound", "firmware.elf", "--entry", "f", "--target", target, *about, "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    opened = ["constraints in instructions", "constraints in cycles"]
    assert open_constraints(document, about, tmp_path, "infeasible:0") == opened


def open_constraints(document, about, folder, name="flow:0.0"):
    """In which lines of the answer the constraint is not checked."""
    with (
        patch("wcet_probe.certificate.check.check_shown", return_value="nothing"),
        patch("wcet_probe.certificate.check.used_constraints", all_constraints),
        patch("wcet_probe.evidence.firmware.check_bound") as checked,
    ):
        found = []
        checked.side_effect = lambda *given: found.append(check_bound(*given)) or found[0]
        reseal(document, folder / "f.json")
        main(["verify", str(folder / "f.json"), "--image", "firmware.elf", *about])
    return [each.check for each in found[0].findings if name in each.found]


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
sum = {{ "branch three" = 1 }}
max = 44
because = "the last test is made four times, the others in each round"
sha256 = "{0}"
"""


@pytest.mark.covering(0)
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


ALL = """[[flow]]
function = "f"
sum = { "loop all" = 1 }
max = 4
because = "n is 3 at most, and the last iteration is left"
"""


def test_of_several_loops_that_one_has_become_only_rounds_count():
    """One of the two is entered in an iteration that began in the other."""
    code = FOREVER_CODE.replace("ldr r3, =sink", "and r0, r0, #3\nldr r3, =sink")
    on = guest_of(code + debug_unit("GNU C17 12.2.1"), load_target("cortex-m4"))
    records, code = read_records(document_of(on)[0]["bound"]["certificates"][0]), code_of(on.image, on.instructions)
    graph, known, loops = graph_of(records), invariants_of(records), loops_of(records)
    covered = Covered(code, graph, known, cover(code, graph, said_of(records), {}))
    sums = Sums(covered, loops, read_asserted([("facts.toml", ALL)], {"guest.c": FOREVER}), {})
    assert len(loops) == 2
    back = dict.fromkeys((name for loop in loops for name in loop.back), 1)
    assert sums.follows("flow", 0, back, 4) is not None
    entering = dict.fromkeys((name for loop in loops for name in loop.entering), 1)
    assert sums.follows("flow", 0, back | entering, 4) is None


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
    covered = Covered(code, graph, known, cover(code, graph, said_of(records), {}))
    sources = {"guest.c": SPLIT.replace("#line 6\n", "")}  # with it the text tells nothing by line
    told = read_asserted([("facts.toml", MARKED)], sources)
    sums = Sums(covered, loops_of(records), told, {}, unshared=unshared_functions(on.image))

    def counted(*nodes):
        factors = dict.fromkeys((name for node in nodes for name in covered.into(node)), 1)
        return sums.follows("flow", 0, factors, 20) is not None

    (rest,) = [node for node in graph.nodes if node.endswith("mark.part.0+0x0")]
    (tested,) = [node for node in graph.nodes if counted(node) and node != rest]
    assert not counted(tested, rest)


UNROLLED = """
volatile int port;
void f(int n) {
    /* loop: outer */
    for (int i = 0; i < 20; i++) {
        port = i;
        if (port > n) {
            int k = 0;
            /* loop: inner */
            do {
                port = 7 + k;
            } while (++k < 2);
        }
    }
}
"""
INNER = """[[flow]]
function = "f"
sum = { "loop inner" = 1 }
max = 4
because = "two times at most the port is large"
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_around_one_that_was_unrolled_in_it_is_no_copy_of_that(target):
    """Its rounds were counted as iterations of the inner one, so that 4 of the 20 at most followed from a true fact."""
    on = guest_of(UNROLLED, load_target(target), ".c")
    records, code = read_records(document_of(on)[0]["bound"]["certificates"][0]), code_of(on.image, on.instructions)
    graph, known, loops = graph_of(records), invariants_of(records), loops_of(records)
    covered = Covered(code, graph, known, cover(code, graph, said_of(records), {}))
    sums = Sums(covered, loops, read_asserted([("facts.toml", INNER)], {"guest.c": UNROLLED}), {})
    (outer,) = loops
    assert sums.lines[outer.header] >= {("guest.c", 5), ("guest.c", 11)}
    assert sums.follows("flow", 0, dict.fromkeys(outer.back, 1), 4) is None


JOINED = """\
volatile unsigned sink;
void entry(unsigned n)
{
    for (unsigned i = 0; i < 16; i++) {
        if (n & 1) {
            sink = i;
            sink = i + 9; sink = i + 7;
        } else if (n & 2) {
            sink = 3;
            /* point: joined */
            sink = i + 9; sink = i + 7;
        }
    }
}
"""
NEVER = '[[infeasible]]\nfunction = "entry"\npoint = "joined"\n'
SOME = '[[flow]]\nfunction = "entry"\nsum = { "point joined" = 1 }\nmax = 2\n'


@NEEDS_GCC
@pytest.mark.parametrize(
    ("fact", "level", "opened"),
    [(NEVER, "-Os", 2), (SOME, "-Os", 2), (SOME, "-O0", 0)],
    ids=["infeasible", "flow", "flow, not optimised"],
)
def test_of_code_that_may_be_of_several_places_nothing_follows(fact, level, opened, tmp_path, capsys):
    """Both ways end in one block, with the line of the second: 103 instructions followed, where a run takes 151."""
    guest, name = built("cortex-m4", "arm-none-eabi-gcc", level, JOINED), fact[2:].partition("]")[0]
    (tmp_path / "guest.c").write_text(JOINED)
    (tmp_path / "firmware.elf").write_bytes(guest.image.elf)
    own = index_sources({"guest.c": JOINED}).function("entry").sha256
    (tmp_path / "facts.toml").write_text(f'{fact}because = "n is odd"\nsha256 = "{own}"\n')
    about = ["--facts", "facts.toml"]
    asked = ["bound", "firmware.elf", "--entry", "entry", "--target", "cortex-m4", *about, "--json", "-q"]
    with chdir(tmp_path), patch("wcet_probe.analyzer.facts.flow._is_of_one_place", return_value=True):
        assert main(asked) == 0
        document = json.loads(capsys.readouterr().out)
        assert any(f"constraint {name}:0" in text for text in document["bound"]["certificates"])
        assert len(open_constraints(document, about, tmp_path, name)) == opened
