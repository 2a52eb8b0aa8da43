"""Results held against their binary: what the checker needs is gathered, and what a result says besides is compared.

The checker (`wcet_probe.certificate`) is asked about the bound. Here stands what it must not know: where allocators,
targets and scenarios are found, and how an answer words its question.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

from wcet_probe.answer.bounds.proving import assumptions_of_build, fact_parameters
from wcet_probe.build.image import read_image
from wcet_probe.build.linked_program import holds_program
from wcet_probe.build.program import Program
from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import Checked, check_bound
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.findings import OK, OPEN, Binary, Finding
from wcet_probe.certificate.kernel.loops import demand
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.firmware import check_firmware, given_firmware
from wcet_probe.evidence.paths import is_expanded, path_finding
from wcet_probe.evidence.recorded import Recorded, configured, recorded_results
from wcet_probe.evidence.said import authors_words, check_gap, check_said
from wcet_probe.evidence.variables import unshared_of, variables_of
from wcet_probe.evidence.witness import operation_document, witness_plan
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import ScenarioPlan
from wcet_probe.model.target import Target
from wcet_probe.progress import Progress, silent
from wcet_probe.reports.formats.bound_document import bound_section
from wcet_probe.reports.formats.document import manifest_document, target_document
from wcet_probe.reports.formats.listing import code_sections, hex_address, image_section
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of
from wcet_probe.sizes import format_size

Json = Mapping[str, Any]


def allocator_binary(program: Program, heap_bytes: int) -> Binary:
    """What the bound of an allocator's operation is held against."""
    allocator, target = program.allocator, program.target
    asserted = read_asserted(allocator.facts, dict(allocator.sources))
    parameters = fact_parameters(allocator, target, heap_bytes)
    variables = variables_of(program.image, asserted)
    named = {
        "allocator": allocator.name,
        "parameters": dict(allocator.values),
        "target": target.name,
        "heap_bytes": heap_bytes,
    }
    return Binary(
        program.image, program.instructions, program.costs, target, asserted, parameters, variables,
        allocator.entry_points, named, unshared=unshared_of(program.image, asserted),
    )  # fmt: skip


def proofs_follow(program: Program, heap_bytes: int, bound: Bound) -> bool:
    """Whether the checker finds the facts proved that ``bound``, of an allocator's operation, tells to be.

    It has to check the bound in full: of what it leaves open nobody knows which classes it charges.
    """
    document = {"image": {"sha256": program.image.sha256}, "bound": bound_section(bound)}
    try:
        checked = check_bound(document, allocator_binary(program, heap_bytes))
    except VerificationError:
        return False
    return checked.is_full and any(one.check == "proved facts" for one in checked.findings)


def check_file_result(
    document: Json,
    data: bytes,
    elf: bytes,
    *,
    facts: Sequence[Path] = (),
    source_dirs: Sequence[Path] = (),
    caches: Sequence[str] = (),
    progress: Progress = silent,
) -> tuple[Checked, tuple[Finding, ...]]:
    """Check a result or a bound, whose JSON text is ``data``, against the binary ``elf``.

    Parameters:
        document: the result.
        data: its text.
        elf: the bytes of the ELF file.
        facts: files with the flow facts of a firmware; allocators have their own.
        source_dirs: folders with the sources of a firmware.
        caches: changes of a firmware's target, as ``--cache`` takes them.
        progress: is told how much of a long run of a firmware is executed.

    Raises:
        VerificationError: something does not hold.
        UsageError: a file cannot be read, or there is no such allocator or target.
    """
    result = recorded_results("result", data)[0] if "request" in document else None
    if isinstance(result, Recorded):
        program = _program(result, elf)
        check_described(document, program)
        checked = check_bound(document, allocator_binary(program, result.heap_bytes))
        return checked, answer_findings(result, program, checked, is_measured_again=False)
    demand(not caches or result is None or result.caches == tuple(caches), "the bound is of other caches")
    options = caches if result is None else result.caches
    target = reduce(apply_cache_option, options, load_target(str(document["target"])))
    _check_target(document, target)
    return check_firmware(document, result, given_firmware(elf, facts, source_dirs), target, progress)


def _program(result: Recorded, elf: bytes) -> Program:
    allocator = load_allocator(result.allocator, result.parameters)
    target = configured(result, load_target(result.target))
    _check_target(result.document, target)
    stated = result.document["image"]
    demand(holds_program(elf, allocator), "the image has not the linked program that the allocator's manifest names")
    image = read_image(elf, target.isa, str(stated["compiler"]), tuple(stated["flags"]))
    instructions = with_timing_problems(decode(image), target)
    return Program(allocator, target, image, instructions, costs(instructions, target))


def _check_target(document: Json, target: Target) -> None:
    described = target_document(target)
    said = document["target_configuration"]
    demand(said == {key: described[key] for key in said}, "the target is described otherwise than its table says")


def check_described(document: Json, program: Program) -> None:
    """A result describes allocator, target, image and code as they are.

    Raises:
        VerificationError: it does not.
    """
    allocator = program.allocator
    right = document["allocator_manifest"] == manifest_document(allocator)
    demand(right, "the allocator is another one")
    described = target_document(program.target)
    for said in (document["target_configuration"], {key: document[key] for key in ("caches", "memory")}):
        demand(said == {key: described[key] for key in said}, "the target is described otherwise than its table says")
    listed = {entry["address"] for entry in document["listing"]}
    code = [one for one in program.instructions if hex_address(one.address) in listed]
    again = code_sections(program.image, code, dict(allocator.sources))
    for key, value in {**again, "image": image_section(program.image, code)}.items():
        demand(document[key] == value, f"the section {key} is not that of the image")


def answer_findings(
    result: Recorded, program: Program, checked: Checked | None, *, is_measured_again: bool
) -> tuple[Finding, ...]:
    """What a result says besides its bound, computed again; who measures nothing says that he takes counts as given.

    Raises:
        VerificationError: something is said otherwise.
    """
    document, allocator, target = result.document, program.allocator, program.target
    plans = scenario_plans(result, allocator, target)
    plan = witness_plan(result, allocator, target)
    demand(
        document["no_bound"] is None or document["bound"] is None, "there is a bound, and a reason why there is none"
    )
    demand(document["command"] in _commands(result, allocator), "the command is not that of the question")
    asserted = (plan.state, tuple(plan.why), plan.driver or None, plan.driver_value)
    state = document["state"]
    said = (state["description"], tuple(state["why"]), state["driver"], state["driver_value"])
    right = said == asserted and state.get("found_by") == _search(plan)
    demand(right, "the state or its reason is described otherwise than the scenario does")
    _check_candidates(document, plans)
    _check_witnesses(document, plans)
    if checked is not None:
        facts = read_asserted(allocator.facts, dict(allocator.sources))
        of_build = {one.id: one for one in assumptions_of_build(program)}
        check_said(document, program.image, checked, facts, target, of_build=of_build, is_run=True)
        check_gap(document, program.image, program.instructions)
    return (
        Finding("question", OK, "the command, the state and its reason are those of the scenario"),
        _candidates_finding(len(document["state"]["candidates"]), len(plans), is_measured_again=is_measured_again),
        path_finding(document["observed"], checked if is_expanded(document) else None),
        authors_words(document, is_measured_again=is_measured_again),
    )


def scenario_plans(result: Recorded, allocator: Allocator, target: Target) -> Sequence[ScenarioPlan]:
    """The candidate states of the scenario of ``result``, built again.

    Raises:
        VerificationError: there is no such scenario.
    """
    line = target.dcache.line_bytes if target.dcache else None
    builders = family_of(allocator).builders
    demand(result.scenario in builders, f"{result.allocator} has no scenario {result.scenario}")
    return builders[result.scenario](HeapRequest(allocator, result.heap_bytes, line, result.seed))


def _candidates_finding(found: int, states: int, *, is_measured_again: bool) -> Finding:
    if found == states:
        return Finding("candidates", OK, f"{found}, none above the bound, and none is missing")
    said = f"{found}, none above the bound; of {states - found} more states are said to be none of this allocator"
    return Finding("candidates", OK if is_measured_again else OPEN, said)


def _check_candidates(document: Json, plans: Sequence[ScenarioPlan]) -> None:
    """The candidates are those of the scenario; the extreme one is the result's; none is above the bound."""
    found = document["state"]["candidates"]
    variants = [one["variant"] for one in found]
    # What is no state of this allocator is left out: the audit measures those as well.
    may = [one.set_up_may_refuse for one in plans]
    of_scenario = [one.variant for one, left in zip(plans, may, strict=True) if not left or one.variant in variants]
    demand(variants == of_scenario, "the candidates are not those of the scenario")
    left_out = [one.variant for one in plans if one.variant not in variants]
    demand(document["state"].get("left_out", []) == left_out, "the states that are left out are others")
    observed = document["observed"]
    own = [one for one in found if one["variant"] == document["state"]["variant"]]
    counts = {"instructions": observed["instructions"], "cycles": observed["cycles"]}
    demand(any({key: one[key] for key in counts} == counts for one in own), "the state's counts are no candidate's")
    bound = document["bound"]
    for one in found if bound else ():
        right = all(one[unit] <= bound[unit] for unit in counts)
        demand(right, f"the candidate {one['variant']!r} is above the bound")


def _check_witnesses(document: Json, plans: Sequence[ScenarioPlan]) -> None:
    """The witness of each unit is a candidate of the scenario, described as that does, and not above the bound."""
    found = {one["variant"]: one for one in document["state"]["candidates"]}
    described = {plan.variant: (plan.state, list(plan.why), plan.driver or None, plan.driver_value) for plan in plans}
    for unit, witness in document["witnesses"].items():
        own = found.get(witness["variant"])
        counts = own is not None and all(own[key] == witness[key] for key in ("instructions", "cycles"))
        demand(counts and witness["value"] == witness[unit], f"the witness in {unit} is none of the candidates")
        said = (witness["description"], witness["why"], witness["driver"], witness["driver_value"])
        demand(said == described.get(witness["variant"]), f"the witness in {unit} is described otherwise")
        bound = document["bound"]
        demand(bound is None or witness["value"] <= bound[unit], f"the witness in {unit} is above the bound")
        plan = next(plan for plan in plans if plan.variant == witness["variant"])
        demand(witness.get("found_by") == _search(plan), f"the witness in {unit} is not of the search that is told")
        own_call = operation_document(plan.measured)
        demand(witness["measured_operation"] == own_call, f"the witness in {unit} is another call")
        refused = witness.get("refused", plan.refused)
        demand(plan.refused in (None, refused), f"the witness in {unit} is refused, or is said to be")
        reached = [{"fact": fact, "predicted": value, "found": value} for fact, value in plan.prediction.items()]
        demand(witness["checks"] == reached, f"the state of the witness in {unit} is another one")
        again = witness["cross_check"]
        same = again is None or again["instructions"] == witness["instructions"]
        demand(same, f"the second engine counted something else of the witness in {unit}")
    _check_second_engine(document)


def _search(plan: ScenarioPlan) -> Json | None:
    """What a result says of the search that found the state of ``plan``; nothing where it is constructed."""
    return asdict(plan.found_by) if plan.found_by else None


def _check_second_engine(document: Json) -> None:
    """The second engine is said to have counted what the first one did."""
    again, observed = document["cross_check"], document["observed"]
    cycles = document["witnesses"]["cycles"]
    demand(document["state"]["checks"] == cycles["checks"], "the state is not that of the witness in cycles")
    demand(again == cycles["cross_check"], "the second engine is told of twice, and differently")
    demand(again is None or document["no_cross_check"] is None, "the second engine ran, and did not")
    for one in (again, document["witnesses"]["instructions"]["cross_check"]):
        demand(one is None or one["engine"] == "p-code interpreter", "nobody knows the second engine")
    for key in ("instructions", "loads", "stores", "returns") if again else ():
        demand(again[key] == observed.get(key, again[key]), f"the second engine counted other {key}")


def _commands(result: Recorded, allocator: Allocator) -> set[str]:
    """The command lines that ask the question of ``result``; how much was told beside the answer is free."""
    request = result.document["request"]
    words = ["wcet-probe", result.allocator, "--target", result.target, "--scenario", result.scenario]
    words += ["--heap", format_size(result.heap_bytes).replace(" ", "")]
    defaults = {parameter.name: parameter.default for parameter in allocator.parameters}
    for name, value in sorted(result.parameters.items()):
        words += [] if value == defaults.get(name) else ["--param", f"{name}={value}"]
    for option in result.caches:
        words += ["--cache", option]
    words += ["--initial-cache", str(request["initial_cache"])] if request["initial_cache"] else []
    words += ["--seed", str(result.seed)] if result.seed else []
    words += ["--cc", result.compiler]
    found = set()
    claims = (result.document.get("bound") or {}).get("pointer_facts")
    for told in ((), ("--why",), ("--fact-effects",)):
        switches = ["--no-bound"] if result.document["verdict"] == "OBSERVED" else []
        switches += [
            *told,
            *(["--prove-facts"] if claims else []),
            *(["--deduce"] if any(one.get("by") == "deduction" for one in claims or ()) else []),
            *(["--cross-check"] if request["cross_check"] else []),
            *(["--no-cross-check"] if request["cross_check"] is False else []),
        ]
        found.add(shlex.join([*words, *switches, "--json"]))
    return found
