"""The checker believes nobody: forged results, whose digests and linear programs are right, are refused."""

import json
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.certificate.forgeries import problem_of, sealed, solved_again, without_edges
from tests.results import result as result_of
from tests.support import images_dir
from wcet_probe.analyzer.ipet.flow_system import Constraint
from wcet_probe.build.compilation import build_image
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.verify import verify_result
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary, check_file_result

CASES = {"best-fit": "cortex-m4", "tlsf": "cortex-m4", "first-fit": "mpc603e"}


@cache
def elf(name):
    return build_image(load_allocator(name, {}), load_target(CASES[name]), "zig", images_dir()).elf


def original(name):
    return result_of(name, CASES[name], heap_bytes=8192)


def checked(document, name):
    found, others = check_file_result(document, json.dumps(document).encode(), elf(name))
    return [*found.findings, *others]


def open_checks(name):
    return [one.check for one in checked(original(name), name) if one.verdict != "ok"]


def test_a_true_result_is_checked_in_full():
    assert open_checks("tlsf") == ["author's words"]


def test_cycles_with_caches_are_checked_in_full():
    assert open_checks("first-fit") == ["author's words"]


def test_sums_of_conditions_that_hold_are_checked_in_full():
    assert open_checks("best-fit") == ["author's words"]


# ----------------------------------------------------------------------------------------------- forged documents


def one_node(document):
    bound, observed = document["bound"], document["observed"]
    texts = []
    for text in bound["certificates"]:
        lines = text.split("\n")
        head = [line for line in lines if line.startswith(("image", "entry-function", "target", "unit"))]
        most = observed["instructions" if "unit instructions" in head else "cycles"]
        name, address = next(line.split()[1:3] for line in lines if line.startswith("node "))
        texts.append(
            "\n".join(
                (
                    "wcet-probe certificate 1",
                    *head,
                    f"bound {most}\noptimum {most}\nnode {name} {address} {most}\nentry {name}\nexit {name} 0",
                    f"dual enter {most}\ncount enter 1\ncount leave:{name} 1\n",
                )
            )
        )
    bound.update(certificates=texts, loops=[], instructions=observed["instructions"], cycles=observed["cycles"])
    document["slack"].update(instructions=0, cycles=0)


def listed(document, name):
    return next(one for one in document["bound"]["assumptions"] if one["id"].startswith(name))


DOCUMENTS = {
    "one node": ("tlsf", one_node, "the graph lacks the edge"),
    "no assumptions": (
        "tlsf",
        lambda d: d["bound"].update(assumptions=[]),
        "stack-separation may be used and not listed",
    ),
    "interference left out": (
        "tlsf",
        lambda d: d["bound"]["assumptions"].remove(listed(d, "no-interference")),
        "no-interference is used and not listed",
    ),
    "stack separation left out": (
        "tlsf",
        lambda d: d["bound"]["assumptions"].remove(listed(d, "stack-separation")),
        "stack-separation may be used and not listed",
    ),
    "fact left out": (
        "first-fit",
        lambda d: d["bound"]["assumptions"].remove(listed(d, "fact first-fit/facts.toml:12")),
        "fact first-fit/facts.toml:12 is used and not listed",
    ),
    "lemma left out": (
        "first-fit",
        lambda d: d["bound"]["assumptions"].remove(listed(d, "lemma list")),
        "lemma list is used and not listed",
    ),
    "lemma reworded": (
        "first-fit",
        lambda d: listed(d, "lemma list").update(statement="the list is short"),
        "the lemma list says something else",
    ),
    "fact reworded": (
        "first-fit",
        lambda d: listed(d, "fact first-fit/facts.toml:12").update(statement="it ends"),
        "has other words than its file",
    ),
    "a fact that is none": (
        "first-fit",
        lambda d: listed(d, "no-interference").update(id="fact first-fit/facts.toml:7"),
        "is used and not listed|there is no fact",
    ),
    "no candidates": ("tlsf", lambda d: d["state"].update(candidates=[]), "the candidates are not those"),
    "a candidate above": (
        "tlsf",
        lambda d: d["state"]["candidates"][-1].update(cycles=10**6),
        "is above the bound|the state's counts are no candidate's",
    ),
    "another command": ("tlsf", lambda d: d.update(command="wcet-probe something else"), "the command is not that"),
    "another reason": ("tlsf", lambda d: d["state"].update(why=["Nothing is slower."]), "described otherwise"),
    "another description": ("tlsf", lambda d: d["state"].update(description="x"), "described otherwise"),
    "empty path": (
        "tlsf",
        lambda d: d["bound"].update(
            worst_path=[], worst_path_cycles=[], graph={"blocks": [], "calls": [], "edges": []}
        ),
        "the worst_path that is shown",
    ),
    "another block": (
        "tlsf",
        lambda d: d["bound"]["graph"]["blocks"][0].update(worst_executions=7),
        "the blocks that are shown",
    ),
    "other parameters": (
        "first-fit",
        lambda d: d["bound"]["parameters"].update(free_blocks=1),
        "the parameters are not those",
    ),
    "another address": (
        "first-fit",
        lambda d: d["bound"]["parameters"].update(head_alignment=16),
        "the parameters are not those",
    ),
    "a path outside the graph": (
        "tlsf",
        lambda d: d["observed"]["runs"][0].update(address=d["observed"]["runs"][1]["address"]),
        "the observed path leaves the graph",
    ),
    "another count of instructions": (
        "tlsf",
        lambda d: d["observed"]["runs"][0].update(instructions=1),
        "the runs have",
    ),
    "the fact of another place": (
        "first-fit",
        lambda d: d["bound"]["loops"][0].update(where="first-fit/facts.toml:19"),
        "no fact stands at",
    ),
}


@pytest.mark.parametrize(("name", "forge", "reason"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_forged_document_is_refused(name, forge, reason):
    document = original(name)
    forge(document)
    verify_result(sealed(document))  # the arithmetic is right
    with pytest.raises(VerificationError, match=reason):
        checked(document, name)


# --------------------------------------------------------------------------------------------- forged certificates


def dropped_edge(problem, derivations, followed):
    """Of a block with two ways on, the one that is not the worst."""
    sources = [edge.source for edge in problem.edges]
    branch = next(edge for edge in problem.edges if sources.count(edge.source) == 2 and ":fall" in edge.name)
    return without_edges(problem, [branch.name]), derivations, followed


def excluded_edge(problem, derivations, followed):
    changed, derivations, followed = dropped_edge(problem, derivations, followed)
    gone = next(edge for edge in problem.edges if edge not in changed.edges)
    address = next(node.address for node in problem.nodes if node.name == gone.target)
    return changed, derivations, [*followed, f"excluded {gone.source} {address:#x}"]


def cheaper(problem, derivations, followed):
    first, *others = problem.nodes
    return replace(problem, nodes=(replace(first, cost=first.cost - 1), *others)), derivations, followed


def free_branches(problem, derivations, followed):
    edges = tuple(replace(edge, extra_cost=0) for edge in problem.edges)
    return replace(problem, edges=edges), derivations, followed


def no_way_out(problem, derivations, followed):
    return replace(problem, exits=problem.exits[:1]), derivations, followed


def shifted_entry(problem, derivations, followed):
    second = next(edge.target for edge in problem.edges if edge.source == problem.entry)
    loops = tuple(replace(loop, entry_edges=loop.entry_edges) for loop in problem.loops)
    return replace(problem, entry=second, loops=loops), derivations, followed


def constraint(name, *edges):
    def change(problem, derivations, followed):
        names = edges or ("enter", problem.edges[0].name)
        one = Constraint(name, dict.fromkeys(names, 1), "<=", 1)
        return replace(problem, constraints=(*problem.constraints, one)), derivations, followed

    return change


def infeasible_back_edge(problem, derivations, followed):
    return constraint("infeasible:0", "enter", problem.loops[0].back_edges[0])(problem, derivations, followed)


def lower_loop(problem, derivations, followed):
    loops = tuple(replace(loop, max_back_edges=0) for loop in problem.loops)
    lower = [replace(one, expression="1", max_header=1, offset=0) for one in derivations]
    return replace(problem, loops=loops), lower, followed


def without_offset(problem, derivations, followed):
    loops = tuple(replace(loop, max_back_edges=loop.max_back_edges - 1) for loop in problem.loops)
    lower = [replace(one, max_header=one.max_header - 1, offset=0) for one in derivations]
    return replace(problem, loops=loops), lower, followed


def poorer(problem, derivations, followed):
    loops = tuple(replace(loop, max_back_edges=1) for loop in problem.loops)
    lower = [replace(one, max_header=2, parameters={**one.parameters, "free_blocks": 1}) for one in derivations]
    return replace(problem, loops=loops), lower, followed


def narrowed(place, text):
    def change(problem, derivations, followed):
        last = problem.nodes[-1].name
        kept = [line for line in followed if not line.startswith(f"invariant {last} {place} ")]
        own = (
            [] if not any(line.startswith("invariant ") for line in followed) else [f"invariant {last} {place} {text}"]
        )
        return problem, derivations, [*kept, *own]

    return change


def at_entry(place, text):
    def change(problem, derivations, followed):
        own = [f"invariant {problem.entry} {place} {text}"] if problem.unit == "instructions" else []
        kept = [line for line in followed if not line.startswith(f"invariant {problem.entry} {place} ")]
        return problem, derivations, [*kept, *own]

    return change


def midway(problem, derivations, followed):
    """A node that begins within an instruction."""
    *others, last = problem.nodes
    return replace(problem, nodes=(*others, replace(last, address=last.address + 1))), derivations, followed


def other_graph(problem, derivations, followed):
    if problem.unit == "instructions":
        return problem, derivations, followed
    return dropped_edge(problem, derivations, followed)


CERTIFICATES = {
    "an edge dropped": ("tlsf", dropped_edge, "the graph lacks the edge from"),
    "the cycles on another graph": ("tlsf", other_graph, "the certificates have different graphs"),
    "a node that costs less": ("tlsf", cheaper, "costs at least"),
    "branches that cost nothing": ("tlsf", free_branches, "costs at least"),
    "a way out dropped": ("tlsf", no_way_out, "the graph lacks the way out"),
    "another entry": ("tlsf", shifted_entry, "the entry is not at tlsf_malloc"),
    "a constraint of no kind": ("tlsf", constraint("mine"), "nothing allows the constraint mine"),
    "a fact that is not there": ("tlsf", constraint("flow:0.0"), "no fact makes the constraint"),
    "an infeasible back edge": ("first-fit", infeasible_back_edge, "no fact makes the constraint"),
    "a loop bound and its derivation": ("first-fit", lower_loop, "does not say 1 of the loop"),
    "a loop's test not counted": ("first-fit", without_offset, "tests once more"),
    "other parameters of a derivation": ("first-fit", poorer, "bounded with other parameters|parameter has two values"),
    "an invariant that does not follow": ("tlsf", narrowed("r3", "number 7 0 0"), "does not follow from"),
    "a return address that is none": ("tlsf", narrowed("stack:-4", "number 4 0 0"), "does not follow from"),
    "a stack pointer elsewhere": ("tlsf", narrowed("r13", "stack 4 0 0"), "does not follow from"),
    "a caller that promises": ("tlsf", at_entry("r0", "number 0 0 0"), "r0 at the entry is not known of the caller"),
    "code within an instruction": ("tlsf", midway, "no instruction of the image|the graph lacks the edge"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "forge", "reason"), CERTIFICATES.values(), ids=CERTIFICATES)
def test_a_forged_certificate_is_refused(name, forge, reason):
    document = original(name)
    forged = solved_again(document, forge)
    for one in document["bound"]["loops"]:
        text = forged["bound"]["certificates"][0]
        one["max"] = int(re.search(rf"^loop {re.escape(one['name'])} (\d+)", text, re.MULTILINE)[1]) + 1
    forged["bound"]["loops"] = document["bound"]["loops"]
    verify_result(sealed(forged))  # the arithmetic is right
    with pytest.raises(VerificationError, match=reason):
        checked(forged, name)


def sums_changed(change):
    """``change`` of the factors and the constant of each constraint of a fact about sums."""

    def changed(problem, one):
        factors, constant = change(problem, one)
        return replace(one, coefficients=factors, constant=constant)

    def forge(problem, derivations, followed):
        found = tuple(changed(problem, o) if o.name.startswith("flow:") else o for o in problem.constraints)
        return replace(problem, constraints=found), derivations, followed

    return forge


def where_better(one):
    """The edge on which the condition holds: it has the least factor of all."""
    return min(one.coefficients, key=one.coefficients.__getitem__)


def other_side(problem, one):
    """The condition counts where it does not hold."""
    better, source = where_better(one), next(e.source for e in problem.edges if e.name == where_better(one))
    other = next(e.name for e in problem.edges if e.source == source and e.name != better)
    factors = {name: factor for name, factor in one.coefficients.items() if name != better}
    return {**factors, other: factors.get(other, 0) + one.coefficients[better]}, one.constant


def twice(_, one):
    return {**one.coefficients, where_better(one): 2 * one.coefficients[where_better(one)]}, one.constant


def behind(problem, one):
    """What is behind the condition counts as it does."""
    better = next(e for e in problem.edges if e.name == where_better(one))
    return {**one.coefficients, **{e.name: 8 for e in problem.edges if e.source == better.target}}, one.constant


SUMS = {
    "the other side of the branch": other_side,
    "twice": twice,
    "edges behind": behind,
    "less in all": lambda _, one: (one.coefficients, one.constant - 1),
}


@pytest.mark.parametrize("change", SUMS.values(), ids=SUMS)
def test_a_forged_sum_of_conditions_is_not_taken_for_checked(monkeypatch, change):
    monkeypatch.setattr("wcet_probe.certificate.check.check_shown", lambda *_: "")
    program = load_program(load_allocator("best-fit", {}), load_target("cortex-m4"), "zig", images_dir())
    # Proved or not, the sum must not be shown where it is used; some of these are not, for they lower no bound.
    monkeypatch.setattr(
        "wcet_probe.certificate.check.used_constraints", lambda records: {name for name, *_ in records["constraint"]}
    )
    forged = solved_again(original("best-fit"), sums_changed(change))
    found = {one.check: one for one in check_bound(forged, allocator_binary(program, 8192)).findings}
    assert found["constraints in instructions"].verdict == "not checked"


def without(what):
    def change(binary):
        if what == "variables":
            return replace(binary, variables=())
        if what == "one register":
            return replace(binary, variables=tuple(one for one in binary.variables if one.name != "spare"))
        if what == "the right registers":
            swapped = {"spare": "least_spare", "least_spare": "spare"}
            return replace(
                binary, variables=tuple(replace(o, name=swapped.get(o.name, o.name)) for o in binary.variables)
            )
        sources = {
            name: text.replace("if (spare < least_spare) {", what) for name, text in binary.asserted.sources.items()
        }
        return replace(binary, asserted=replace(binary.asserted, sources=sources))

    return change


PREMISES = (
    "variables",
    "one register",
    "the right registers",
    "if (least_spare < spare) {",
    "if (spare <= least_spare) {",
    "if (spare < least_spare && node) {",
    "if (spare < least_spare) { if (node)",
)


@pytest.mark.parametrize("what", PREMISES)
def test_a_condition_of_which_a_premise_is_missing_counts_as_nothing(monkeypatch, what):
    monkeypatch.setattr("wcet_probe.certificate.check.check_hashes", lambda *_: (1, []))
    program = load_program(load_allocator("best-fit", {}), load_target("cortex-m4"), "zig", images_dir())
    binary = without(what)(allocator_binary(program, 8192))
    found = {one.check: one for one in check_bound(original("best-fit"), binary).findings}
    assert found["constraints in instructions"].verdict == "not checked"


def test_an_edge_that_is_only_said_to_be_infeasible_is_not_checked(monkeypatch):
    forged = solved_again(original("tlsf"), excluded_edge)
    with pytest.raises(VerificationError, match=r"that (is|are) shown"):
        checked(forged, "tlsf")
    monkeypatch.setattr("wcet_probe.certificate.check.check_shown", lambda *_: "")
    program = load_program(load_allocator("tlsf", {}), load_target("cortex-m4"), "zig", images_dir())
    found = {one.check: one for one in check_bound(forged, allocator_binary(program, 8192)).findings}
    assert found["graph"].verdict == "not checked"
    assert found["graph"].found.startswith("that control does not go from tlsf_malloc+")


def test_another_image_is_refused():
    document = original("tlsf")
    with pytest.raises(VerificationError, match="not that of the image"):
        check_file_result(document, json.dumps(document).encode(), elf("tlsf") + b"\0")


def test_another_target_is_refused():
    document = original("tlsf")
    document["target_configuration"]["title"] = "A core"
    with pytest.raises(VerificationError, match="described otherwise"):
        checked(document, "tlsf")


def test_a_constraint_that_nothing_rests_on_needs_no_proof_and_one_that_lowers_the_bound_does(monkeypatch):
    monkeypatch.setattr("wcet_probe.certificate.check.check_shown", lambda *_: "")
    program = load_program(load_allocator("tlsf", {}), load_target("cortex-m4"), "zig", images_dir())
    binary, true = allocator_binary(program, 8192), original("tlsf")
    seen = set()
    for edge in problem_of(true["bound"]["certificates"][0])[0].edges[:24]:
        try:
            forged = solved_again(true, constraint("conflict:0", "enter", edge.name))
        except AnalysisError:  # the edge is taken on each path
            continue
        findings = {one.check: one for one in check_bound(forged, binary).findings}
        for text, unit in zip(forged["bound"]["certificates"], ("instructions", "cycles"), strict=True):
            is_lower = forged["bound"][unit] < true["bound"][unit]
            is_used = "\ndual conflict:0 " in text
            own = findings.get(f"constraints in {unit}")
            assert is_used or not is_lower
            assert (own is not None and own.verdict == "not checked") == is_used
            seen.add((is_used, is_lower))
    assert {(True, True), (False, False)} <= seen
