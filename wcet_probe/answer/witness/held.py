"""In how many executions an assumption of a bound was checked: what runs were held against, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from wcet_probe.model.held_calls import HeldCalls
from wcet_probe.model.proof import Bound
from wcet_probe.model.report import Witness


@dataclass(frozen=True, slots=True)
class Held:
    """What was counted in runs that were held against a bound.

    Attributes:
        calls: calls of the bounded function.
        loop_entries: entries of the watched loops, by name.
        heap_checks: how often the allocator's own check found its heap sound.
    """

    calls: HeldCalls
    loop_entries: Mapping[str, int]
    heap_checks: int


def merged(parts: Iterable[Held]) -> Held:
    """The counts of several runs as of one: sums of what was executed, and the greatest of what a call had."""
    all_parts = list(parts)
    calls = [part.calls for part in all_parts]
    sums, maxima = ("accesses", "facts", "word_loads"), ("line_changes", "lines", "lines_of_set")
    tables: dict[str, Any] = {
        one.name: _joined([getattr(each, one.name) for each in calls], is_sum=one.name in sums)
        for one in fields(HeldCalls)
        if one.name in sums + maxima
    }
    counted = [each.flow_maxima for each in calls if each.calls]
    entries = Counter[str]()
    for part in all_parts:
        entries.update(part.loop_entries)
    return Held(
        HeldCalls(
            calls=sum(each.calls for each in calls),
            flow_maxima=tuple(max(numbers) for numbers in zip(*counted, strict=True)),
            instructions=max((each.instructions for each in calls), default=0),
            cycles=max((each.cycles for each in calls), default=0),
            **tables,
        ),
        entries,
        sum(part.heap_checks for part in all_parts),
    )


def checked_executions(bound: Bound, held: Held, witnesses: Sequence[Witness]) -> Mapping[str, int]:
    """In how many executions each assumption of ``bound`` was checked that runs are held against, by its id.

    Parameters:
        bound: what rests on the assumptions.
        held: what was counted in all runs.
        witnesses: the calls that a second engine may have repeated.

    Returns:
        Of a fact about accesses their executions, of one about a loop its entries, of one about paths the calls, of a
        lemma the states; no number of an assumption that no run can check.
    """
    calls = held.calls
    found: dict[str, int] = {f"fact {claim.where}": calls.calls for claim in bound.flow_claims}
    loops = {(loop.where, f"{loop.address:#010x}", loop.origin) for loop in bound.loops if loop.where}
    for where, name, origin in loops:
        place = f"{origin} {where}"
        for each in (place, f"rounds {where}"):
            found[each] = found.get(each, 0) + held.loop_entries.get(name, 0)
    found |= {f"fact {where}": count for where, count in (*calls.facts.items(), *calls.word_loads.items())}
    found |= {f"proved {where}": count for where, count in calls.facts.items()}
    ids = {one.id for one in bound.assumptions}
    found |= dict.fromkeys((one for one in ids if one.startswith("lemma ")), held.heap_checks)
    by_number = {(one.address, one.is_store) for one in bound.accesses if one.is_store and one.base == "number"}
    found["stack-separation"] = sum(calls.accesses.get(place, 0) for place in by_number)
    found["saved-registers"] = sum(count for (_, is_store), count in calls.accesses.items() if is_store)
    found["alignment"] = sum(calls.accesses.values())
    found["return-address"] = sum(one.cross_check.returns for one in witnesses if one.cross_check)
    return {one.id: found[one.id] for one in bound.assumptions if one.id in found}


def _joined(tables: Sequence[Mapping[object, int]], *, is_sum: bool) -> Mapping[object, int]:
    joined: dict[object, int] = {}
    for key, count in (item for table in tables for item in table.items()):
        joined[key] = joined.get(key, 0) + count if is_sum else max(joined.get(key, 0), count)
    return joined
