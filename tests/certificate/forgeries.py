"""Certificates taken apart, changed and solved again, so that only their content is false."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

from wcet_probe.analyzer.ipet.certificate import LoopDerivation, certificate
from wcet_probe.analyzer.ipet.flow_system import (
    AuxiliaryVariable,
    Constraint,
    FlowEdge,
    FlowLoop,
    FlowNode,
    FlowProblem,
    flow_system,
    solve,
)
from wcet_probe.certificate.kernel.verify import bound_digest

FOLLOWED = (
    "invariant",
    "excluded",
    "flags",
    "equal",
    "case",
    "case-equal",
    "symbol",
    "name",
    "shown",
    "miss",
    "paid",
    "must",
)
FOLLOWED += ("modified", "held", "unchecked")
"""Records that are no part of the flow problem."""


def sealed(document):
    """``document`` with the digest of its bound made right."""
    document["bound"]["digest"] = bound_digest(document["bound"])
    return document


def name_dead_ends(document, image):
    """Let *call-returns* name each place that is said to be excluded, whether or not code returns from there."""
    section = document["bound"]
    rows = [line.split(" ") for text in section["certificates"] for line in text.split("\n")]
    places = sorted({image.location(int(row[2], 16)) for row in rows if row[0] == "excluded"})
    if places:
        others = [one for one in section["assumptions"] if one["id"] != "call-returns"]
        statement = f"the call returns: control does not come to what never does, or is trapped, at {', '.join(places)}"
        section["assumptions"] = [*others, {**others[0], "id": "call-returns", "statement": statement}]


def problem_of(text):
    """Flow problem, derivations and records of invariants of a certificate."""
    rows = defaultdict(list)
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")
        rows[kind].append(rest)
    fields = {kind: [row.split(" ") for row in found] for kind, found in rows.items()}
    loops = []
    for row in rows["loop"]:
        before, after = row.split(" | ")
        name, most, *entering = before.split(" ")
        loops.append(FlowLoop(name, tuple(entering), tuple(after.split(" ")), int(most)))
    constraints = [
        Constraint(w[0], {w[i + 1]: int(w[i]) for i in range(3, len(w), 2)}, w[1], int(w[2]))
        for w in fields.get("constraint", [])
    ]
    problem = FlowProblem(
        image_sha256=rows["image"][0],
        entry_function=rows["entry-function"][0],
        target=rows["target"][0],
        unit=rows["unit"][0],
        nodes=tuple(FlowNode(w[0], int(w[1], 16), int(w[2])) for w in fields["node"]),
        edges=tuple(FlowEdge(w[0], w[1], w[2], int(w[3])) for w in fields.get("edge", [])),
        entry=rows["entry"][0],
        exits=tuple(w[0] for w in fields["exit"]),
        loops=tuple(loops),
        auxiliaries=tuple(AuxiliaryVariable(w[0], int(w[1])) for w in fields.get("event", [])),
        exit_costs={w[0]: int(w[1]) for w in fields["exit"]},
        constraints=tuple(constraints),
    )
    derivations = [LoopDerivation(**json.loads(row)) for row in rows["derivation"]]
    followed = [line for line in text.split("\n") if line.split(" ", 1)[0] in FOLLOWED]
    return problem, derivations, followed


def solved_again(document, change):
    """``document`` with ``change`` of each flow problem, its derivations and its invariants, solved and sealed."""
    document = {**document, "bound": dict(document["bound"])}
    document |= {"slack": dict(document["slack"])} if "slack" in document else {}
    bound, texts = document["bound"], []
    for text in bound["certificates"]:
        problem, derivations, followed = change(*problem_of(text))
        solution = solve(flow_system(problem))
        texts.append(certificate(problem, solution, derivations, followed))
        bound[problem.unit] = solution.certified
        if "slack" in document:
            document["slack"][problem.unit] = solution.certified - document["observed"][problem.unit]
    bound["certificates"] = texts
    return sealed(document)


def graph_instead(problem, guest, nodes, edges, exits, *, cycles_each=20):
    """``problem`` of a graph that is written by hand, of the function of its first node.

    ``nodes`` tell by name the function and the distance in it where they begin, and how many instructions they have;
    ``edges`` by name source and target; ``exits`` are names of nodes.
    """
    is_cycles = problem.unit == "cycles"
    each, beyond = (cycles_each, 10) if is_cycles else (1, 0)
    return replace(
        problem,
        entry_function=next(iter(nodes.values()))[0],
        entry=next(iter(nodes)),
        nodes=tuple(
            FlowNode(name, guest.image.symbols[function].address + offset, each * count)
            for name, (function, offset, count) in nodes.items()
        ),
        edges=tuple(FlowEdge(name, *ends, beyond) for name, ends in edges.items()),
        exits=tuple(exits),
        exit_costs=dict.fromkeys(exits, beyond),
    )


def without_edges(problem, names):
    """``problem`` without some edges, and without what speaks of them."""
    names = set(names)
    loops = tuple(
        replace(
            loop,
            entry_edges=tuple(one for one in loop.entry_edges if one not in names),
            back_edges=tuple(one for one in loop.back_edges if one not in names),
        )
        for loop in problem.loops
    )
    constraints = tuple(
        replace(one, coefficients={k: v for k, v in one.coefficients.items() if k not in names})
        for one in problem.constraints
    )
    return replace(
        problem,
        edges=tuple(edge for edge in problem.edges if edge.name not in names),
        loops=tuple(loop for loop in loops if loop.back_edges),
        constraints=constraints,
    )
