"""What was executed, held against the graph of a certificate: is it a path of the graph, and does it cost as much."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from wcet_probe.certificate.check import Checked
from wcet_probe.certificate.facts.findings import OK, OPEN, Finding
from wcet_probe.certificate.kernel.loops import demand
from wcet_probe.certificate.results.observed import least_cost


def is_expanded(document: Mapping[str, Any]) -> bool:
    """Whether the graph of a document's bound, if it has one, has the code of all that is called."""
    return not (document["bound"] or {}).get("summarised")


def path_finding(observed: Mapping[str, Any], checked: Checked | None) -> Finding:
    """Whether what is ``observed`` of a call is a path of the graph whose costs come to what was counted.

    Args:
        observed: the counts of the call; its runs, which are stretches of code, and the path through them.
        checked: the bound; None where there is none.

    Raises:
        VerificationError: it is none, or costs more than the graph charges for it.
    """
    runs, path, total = observed["runs"], observed["path"], observed["instructions"]
    executed = sum(run["instructions"] * run["executions"] for run in runs)
    demand(executed == total, f"the runs have {executed} instructions, {total} are told")
    if not observed["path_complete"]:
        return Finding("observed path", OPEN, "the result holds a part of it only")
    times = [0] * len(runs)
    demand(all(0 <= index < len(runs) for index in path), "the path has a run that is none")
    for index in path:
        times[index] += 1
    demand(times == [run["executions"] for run in runs], "the path executes its runs otherwise than is told")
    if checked is None:
        return Finding("observed path", OPEN, "there is no graph of all that is called")
    behind = {one.address: one.address + one.size_bytes for code in checked.code.values() for one in code}
    addresses = [_addresses(int(run["address"], 16), run["instructions"], behind) for run in runs]
    code, graphs = checked.code, checked.graphs
    costs = {
        unit: least_cost(graph, code, chain(*(addresses[index] for index in path))) for unit, graph in graphs.items()
    }
    demand(costs["instructions"] >= total, f"the graph charges the observed path less than its {total} instructions")
    if costs["instructions"] > total:
        words = f"the graph charges {costs['instructions']} instructions for the {total} of the path"
        return Finding("observed path", OPEN, words)
    return Finding("observed path", OK, f"{total} instructions, a path of the graph, which charges as many")


def _addresses(first: int, count: int, behind: Mapping[int, int]) -> list[int]:
    found = [first]
    while len(found) < count:
        found.append(behind.get(found[-1], found[-1] + 1))
    return found
