"""A witness as a document: the operations that lead to the measured call; and its replay, held against the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from itertools import chain, pairwise
from typing import Any

from wcet_probe.answer.witness.probe import replay
from wcet_probe.build.program import Program
from wcet_probe.errors import (
    ContradictionError,
    DecodeError,
    EmulationError,
    StateError,
    VerificationError,
)
from wcet_probe.evidence.recorded import Recorded
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.image import Image
from wcet_probe.model.measurement import CacheCounts, Measurement, Run
from wcet_probe.model.report import StateCheck
from wcet_probe.model.scenario import FoundBy, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import Target, Victims
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of

Json = dict[str, Any]

FORMAT = "wcet-probe-witness"
_COLUMNS = ("kinds", "slots", "sizes_bytes", "cache_sets")
_OPERATION_KEYS = ("slot", "size_bytes", "cache_set")
_MOST_OPERATIONS = 1 << 24
_WORD = 1 << 32


def witness_plan(result: Recorded, allocator: Allocator, target: Target) -> ScenarioPlan:
    """The plan that ``result`` was measured with, built again.

    Raises:
        VerificationError: the scenario has no such candidate any more.
    """
    line = target.dcache.line_bytes if target.dcache else None
    request = HeapRequest(allocator, result.heap_bytes, line, result.seed)
    builders = family_of(allocator).builders
    for plan in builders[result.scenario](request) if result.scenario in builders else ():
        if (
            plan.variant == result.variant
            and operation_document(plan.measured) == result.document["measured_operation"]
        ):
            return plan
    raise VerificationError(
        f"{result.name}: this wcet-probe builds another {result.scenario} for {result.allocator}; "
        "make the result again, and pack that."
    )


def witness_document(plan: ScenarioPlan, result: Recorded) -> Json:
    """The document ``wcet-probe-witness`` of ``plan``, which ``result`` was measured with.

    Each column of the operations is cut into arithmetic progressions ``[first, step, count]``.
    """
    columns = (plan.trace.kinds, plan.trace.slots, plan.trace.sizes_bytes, plan.trace.cache_sets)
    return {
        "format": FORMAT,
        "version": 1,
        "scenario": plan.scenario,
        "variant": plan.variant,
        "heap_bytes": result.heap_bytes,
        "initial_cache": result.initial_cache.value,
        "measured_operation": operation_document(plan.measured),
        "refused": plan.refused,
        **({"set_up_may_refuse": True} if plan.set_up_may_refuse else {}),
        **({"found_by": asdict(plan.found_by)} if plan.found_by else {}),
        "prediction": [{"fact": fact, "value": value} for fact, value in plan.prediction.items()],
        "slot_count": plan.trace.slot_count,
        "operations": {name: progressions(column) for name, column in zip(_COLUMNS, columns, strict=True)},
    }


def plan_of(document: Json, result: Recorded) -> ScenarioPlan:
    """The plan that ``document`` holds.

    Raises:
        VerificationError: it is no such document, or not about ``result``.
    """
    try:
        measured = document["measured_operation"]
        plan = ScenarioPlan(
            scenario=document["scenario"],
            variant=document["variant"],
            trace=_trace(document),
            measured=Operation(OperationKind(measured["kind"]), *(measured[key] for key in _OPERATION_KEYS)),
            initial_cache=InitialCache(document["initial_cache"]),
            state="",
            why=(),
            prediction={entry["fact"]: entry["value"] for entry in document["prediction"]},
            refused=document["refused"],
            set_up_may_refuse=document.get("set_up_may_refuse", False),
            found_by=FoundBy(**document["found_by"]) if "found_by" in document else None,
        )
        right = document == witness_document(plan, result)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise VerificationError(f"the witness is malformed ({error}); get the pack again.") from error
    same = plan.initial_cache is result.initial_cache and plan.variant == result.variant
    if not (right and same and plan.scenario == result.scenario and measured == result.document["measured_operation"]):
        raise VerificationError("the witness is of another question; get the pack again.")
    return plan


def replay_witness(program: Program, plan: ScenarioPlan, result: Recorded, most_instructions: int = 0) -> Measurement:
    """Run ``plan`` on ``program`` and compare all that is counted with what ``result`` says.

    The guest may take ``most_instructions``, set-up included; 0: as many as it likes.

    Raises:
        ContradictionError: something differs, or the state is not reached; the message names what.
        UsageError: this version has no scenarios of the allocator, or the target no room for the heap.
    """
    try:
        victims = _victims(result)
        measurement, checks = replay(
            program,
            plan,
            result.heap_bytes,
            result.initial_cache,
            victims,
            most_instructions=most_instructions,
        )
    except (StateError, EmulationError, DecodeError) as error:
        raise ContradictionError(f"the replay of the witness fails: {error}") from error
    found = {**observed(measurement, program.image), "checks": [_check(check) for check in checks]}
    said = {**result.document["observed"], "checks": result.document["state"]["checks"]}
    for key, value in found.items():
        if said.get(key) != value or type(said.get(key)) is not type(value):
            numbers = f"{said.get(key)} are said, {value} counted" if isinstance(value, int) else "what is said differs"
            raise ContradictionError(
                f"the replay of the witness contradicts the result in {key}: {numbers}; "
                "the result is not of this image, or one of the two runs went wrong."
            )
    return measurement


def observed(measurement: Measurement, image: Image) -> Json:
    """What the section ``observed`` of a result says of ``measurement``, written once more for the comparison."""
    special = {
        "icache": _counts(measurement.icache),
        "dcache": _counts(measurement.dcache),
        "touched_sets": {
            "instruction": sorted(measurement.touched_instruction_sets),
            "data": sorted(measurement.touched_data_sets),
        },
        "touched_sets_by_region": {name: sorted(sets) for name, sets in measurement.touched_sets_by_region.items()},
        "touched_bytes_by_region": dict(measurement.touched_bytes_by_region),
        "runs": [_run(run, image) for run in measurement.runs],
        "path": list(measurement.path),
        "victims": {field.name: getattr(measurement.victims, field.name) for field in fields(Victims)},
    }
    plain_names = {field.name for field in fields(measurement)} - {"touched_instruction_sets", "touched_data_sets"}
    return {name: getattr(measurement, name) for name in sorted(plain_names - special.keys())} | special


def progressions(column: Sequence[int]) -> list[list[int]]:
    """``column`` as arithmetic progressions ``[first, step, count]``, one behind the other, each as long as can be."""
    found: list[list[int]] = []
    for before, value in pairwise(chain((0,), column)):
        step = value - before
        if not found or (found[-1][2] > 1 and found[-1][1] != step):
            found.append([value, 0, 1])
        else:
            found[-1][1:] = [step, found[-1][2] + 1]
    return found


def _trace(document: Json) -> Trace:
    operations, slots = document["operations"], document["slot_count"]
    kinds, used, sizes, cache_sets = (_values(name, operations[name]) for name in _COLUMNS)
    lengths = {len(column) for column in (kinds, used, sizes, cache_sets)}
    if len(lengths) != 1 or set(kinds) - {0, 1} or type(slots) is not int or not max(used, default=-1) < slots <= _WORD:
        raise ValueError("its columns do not fit each other")
    return Trace(kinds, used, sizes, cache_sets, slots)


def _values(name: str, parts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The column that ``parts`` stand for; nothing is written out before its length is known to be sensible."""
    runs = [(first, step, count) for first, step, count in parts]
    if any(type(number) is not int for run in runs for number in run) or any(count < 1 for *_, count in runs):
        raise ValueError(f"a progression of {name} is none")
    if sum(count for *_, count in runs) > _MOST_OPERATIONS:
        raise ValueError(f"there are more than {_MOST_OPERATIONS} operations")
    ends = [end for first, step, count in runs for end in (first, first + step * (count - 1))]
    if not all(0 <= end < _WORD for end in ends):
        raise ValueError(f"{name} does not fit into words")
    return tuple(first + step * number for first, step, count in runs for number in range(count))


def operation_document(operation: Operation) -> Json:
    """What documents say of ``operation``."""
    return {"kind": operation.kind.value, **{key: getattr(operation, key) for key in _OPERATION_KEYS}}


def _victims(result: Recorded) -> Victims:
    said = result.document["observed"].get("victims", {})
    values = [said.get(field.name) for field in fields(Victims)]
    if values[-1] is None or not all(one is None or (type(one) is int and 0 <= one < _WORD) for one in values):
        raise VerificationError(f"{result.name} does not say which victims the witness has; make the result again.")
    return Victims(*values)


def _check(check: StateCheck) -> Json:
    return {"fact": check.fact, "predicted": check.predicted, "found": check.found}


def _counts(counts: CacheCounts) -> Json:
    plain = {field.name: getattr(counts, field.name) for field in fields(counts)}
    return {**plain, "hits": counts.hits, "misses": counts.misses}


def _run(run: Run, image: Image) -> Json:
    function = image.function_at(run.address)
    return {
        "address": f"{run.address:#010x}",
        "instructions": run.instructions,
        "executions": run.executions,
        "function": function.name if function else None,
        "location": image.location(run.address),
    }
