"""The result document of real runs: what stands in it twice must agree."""

import re
import shlex

import pytest

from tests.results import result
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.kernel.verify import verify_result
from wcet_probe.cli import main
from wcet_probe.cli.run import run
from wcet_probe.reports.formats.document import allocator_document, target_document

CASES = [
    ("tlsf", "mpc603e"),
    ("cama", "cortex-m4"),
    ("best-fit", "arm926ej-s"),
    ("kingsley", "mpc603e"),
    pytest.param(("djgpp-tags", "mpc603e"), marks=pytest.mark.slow),  # its certificate alone takes seconds
]


def instructions_in(document, block):
    return sum(block["address"] <= one["address"] < block["end_address"] for one in document["listing"])


@pytest.mark.covering(0)
@pytest.mark.parametrize("case", CASES)
def test_graph_and_worst_paths_add_up(case):
    document = result(*case)
    bound, graph = document["bound"], document["bound"]["graph"]
    total = {
        side: sum(instructions_in(document, block) * block[f"{side}_executions"] for block in graph["blocks"])
        for side in ("worst", "observed")
    }
    assert total["worst"] == sum(block["cost_instructions"] for block in bound["worst_path"]) == bound["instructions"]
    assert total["observed"] == document["observed"]["instructions"]
    cycles = sum(block["cost_cycles"] for block in bound["worst_path_cycles"])
    assert cycles + bound["unattributed_cycles"] == bound["cycles"]
    into = {block["address"]: 0 for block in graph["blocks"]}
    for edge in graph["edges"]:
        into[edge["target"]] += edge["worst_executions"]
    entry = next(one["address"] for one in document["image"]["functions"] if one["name"] == bound["entry"])
    into[entry] += 1
    assert into == {block["address"]: block["worst_executions"] for block in graph["blocks"]}


@pytest.mark.parametrize("case", CASES)
def test_what_is_executed_is_listed(case):
    document = result(*case)
    listed = {one["address"]: one for one in document["listing"]}
    for run_ in document["observed"]["runs"]:
        assert listed[run_["address"]]["function"] == run_["function"]
    assert {one["function"] for one in document["listing"]} == {one["name"] for one in document["image"]["functions"]}
    texts = dict(load_allocator(case[0]).sources)
    for one in document["listing"]:
        if one["file"] in texts:
            line = texts[one["file"]].splitlines()[one["line"] - 1]
            assert document["source_lines"][one["file"]][str(one["line"])] == line.rstrip()


@pytest.mark.parametrize("case", CASES)
def test_no_loop_and_no_flow_claim_was_seen_above_its_bound(case):
    bound = result(*case)["bound"]
    assert all(loop["observed_max"] is None or loop["observed_max"] <= loop["max"] for loop in bound["loops"])
    assert all(claim["observed"] <= claim["constant"] for claim in bound["flow_claims"])
    assert case[0] == "tlsf" or any(loop["observed_max"] for loop in bound["loops"])


def test_a_loop_has_the_count_of_the_dearest_run():
    (loop,) = result("best-fit", "arm926ej-s")["bound"]["loops"]
    assert loop["observed_max"] == 2048 <= loop["max"]


@pytest.mark.parametrize(("allocator", "kind"), [("avl-best-fit", "call"), ("budgeted:tlsf", "jump")])
def test_calls_are_those_of_the_edges(allocator, kind):
    """The malloc of budgeted ends with a tail call, which is a jump to another function."""
    graph = result(allocator, "cortex-m4")["bound"]["graph"]
    functions = {block["address"]: block["function"] for block in graph["blocks"]}
    calls = {}
    for edge in graph["edges"]:
        pair = functions[edge["source"]], functions[edge["target"]]
        if edge["kind"] == "call" or (edge["kind"] == "jump" and pair[0] != pair[1]):
            assert edge["kind"] == kind
            calls[pair] = calls.get(pair, 0) + edge["worst_executions"]
    assert calls
    assert any(calls.values())
    assert calls == {(one["caller"], one["callee"]): one["worst_executions"] for one in graph["calls"]}


def test_the_parts_that_other_commands_print():
    document = result()
    assert document["target_configuration"] == target_document(load_target("mpc603e"))
    manifest = allocator_document(load_allocator("tlsf"))
    hashed = document["allocator_manifest"]
    assert hashed | {key: manifest[key] for key in ("sources", "found")} == manifest
    for key in ("sources", "found"):
        assert [one["name"] for one in hashed[key]] == manifest[key]


def test_the_command_repeats_the_document(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = "--target cortex-m4 --heap 16K --param sl-bits=4 --cache d:size=1K,ways=1,line=16 --initial-cache cold"
    assert main(["tlsf", *options.split(), "--no-bound", "--json"]) == 0
    first = capsys.readouterr().out
    (command,) = re.findall(r'^  "command": "(.*)",$', first, re.MULTILINE)
    (tmp_path / "wcet-probe.toml").write_text('target = "mpc603e"\nheap = "64K"\n')
    program, *words = shlex.split(command)
    assert (program, main(words)) == ("wcet-probe", 0)
    assert capsys.readouterr().out == first


def test_every_option_that_changes_the_answer_is_in_the_command():
    """A new option must go into the document's command, or be known here to change nothing."""
    known = {
        "scenario",
        "targets",
        "heaps",
        "caches",
        "values",
        "preset",
        "initial_cache",
        "seed",
        "compiler",
        "prove_facts",
        "deduce",
    }
    known |= {"no_bound", "prove_anew", "why", "fact_effects", "cross_check", "as_json", "quiet", "verbose"}
    assert {parameter.name for parameter in run.params} <= known


def test_the_document_verifies_and_its_digest_covers_what_was_added():
    document = result("best-fit", "arm926ej-s")
    verify_result(document)
    document["bound"]["loops"][0]["observed_max"] += 1
    with pytest.raises(Exception, match="digest"):
        verify_result(document)


def test_without_a_bound_the_observed_code_is_listed():
    document = result(prove=False)
    assert document["bound"] is None
    assert len(document["listing"]) <= document["observed"]["instructions"]
    assert [one["name"] for one in document["image"]["functions"]] == ["tlsf_malloc"]
