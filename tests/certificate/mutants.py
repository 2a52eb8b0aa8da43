"""Mutants of true certificates, solved again: what is false in them is the content, never the arithmetic."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from unittest import mock

from tests.certificate.forgeries import sealed, solved_again, without_edges
from wcet_probe.analyzer.ipet.flow_system import Constraint
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import AnalysisError, VerificationError

OPERATORS = {}


def operator(function):
    OPERATORS[function.__name__] = function
    return function


@operator
def drop_edge(draw, problem, derivations, followed):
    return without_edges(problem, [draw.choice(problem.edges).name]), derivations, followed


@operator
def redirect_edge(draw, problem, derivations, followed):
    victim, node = draw.choice(problem.edges), draw.choice(problem.nodes)
    changed = without_edges(problem, [victim.name])
    return replace(changed, edges=(*changed.edges, replace(victim, target=node.name))), derivations, followed


@operator
def drop_exit(draw, problem, derivations, followed):
    gone = draw.choice(problem.exits)
    return replace(problem, exits=tuple(one for one in problem.exits if one != gone)), derivations, followed


@operator
def cheaper_node(draw, problem, derivations, followed):
    victim = draw.choice(problem.nodes)
    cheaper = replace(victim, cost=max(0, victim.cost - draw.choice((1, 1, 2, victim.cost))))
    return (
        replace(problem, nodes=tuple(cheaper if one is victim else one for one in problem.nodes)),
        derivations,
        followed,
    )


@operator
def cheaper_edge(draw, problem, derivations, followed):
    victim = draw.choice(problem.edges)
    edges = tuple(replace(one, extra_cost=0) if one is victim else one for one in problem.edges)
    return replace(problem, edges=edges), derivations, followed


@operator
def moved_node(draw, problem, derivations, followed):
    victim, other = draw.choice(problem.nodes), draw.choice(problem.nodes)
    address = other.address if draw.random() < 0.5 else victim.address + draw.choice((-4, -2, 2, 4))
    moved = replace(victim, address=address)
    return (
        replace(problem, nodes=tuple(moved if one is victim else one for one in problem.nodes)),
        derivations,
        followed,
    )


@operator
def lower_loop(draw, problem, derivations, followed):
    if not problem.loops:
        return drop_edge(draw, problem, derivations, followed)
    victim = draw.choice(problem.loops)
    most = draw.randrange(victim.max_back_edges) if victim.max_back_edges else 0
    loops = tuple(replace(one, max_back_edges=most) if one is victim else one for one in problem.loops)
    lower = []
    for one in derivations:
        if one.loop != victim.name or one.constraint != f"loop:{victim.name}":
            lower.append(one)
        elif one.origin == "proved":
            counter = {"initial_low": 0, "initial_high": most, "step": -1, "comparison": ">"}
            lower.append(replace(one, **counter, max_header=most + 1))
        else:
            lower.append(replace(one, expression=str(most + 1), max_header=most + 1, offset=0))
    return replace(problem, loops=loops), lower, followed


@operator
def more_constraints(draw, problem, derivations, followed):
    names = [edge.name for edge in problem.edges] + ["enter"]
    chosen = draw.sample(names, min(len(names), draw.randrange(1, 4)))
    name = draw.choice(("conflict:0", "conflict:99", "flow:0.7", "fact:7", "infeasible:0", "total:x", "never:x", "x"))
    own = Constraint(name, dict.fromkeys(chosen, 1), "<=", draw.randrange(2))
    others = tuple(one for one in problem.constraints if one.name != name)
    return replace(problem, constraints=(*others, own)), derivations, followed


@operator
def stronger_constraint(draw, problem, derivations, followed):
    if not problem.constraints:
        return more_constraints(draw, problem, derivations, followed)
    victim = draw.choice(problem.constraints)
    changed = replace(victim, constant=victim.constant - draw.choice((1, 2, max(1, victim.constant))))
    if draw.random() < 0.5 and victim.coefficients:
        name = draw.choice(sorted(victim.coefficients))
        changed = replace(victim, coefficients={**victim.coefficients, name: victim.coefficients[name] + 1})
    constraints = tuple(changed if one is victim else one for one in problem.constraints)
    return replace(problem, constraints=constraints), derivations, followed


@operator
def counted_elsewhere(draw, problem, derivations, followed):
    """A constraint's factor on another edge."""
    if not problem.constraints:
        return more_constraints(draw, problem, derivations, followed)
    victim = draw.choice(problem.constraints)
    factors = dict(victim.coefficients)
    if factors:
        weight = factors.pop(draw.choice(sorted(factors)))
        factors[draw.choice(problem.edges).name] = abs(weight)
    constraints = tuple(replace(one, coefficients=factors) if one is victim else one for one in problem.constraints)
    return replace(problem, constraints=constraints), derivations, followed


@operator
def false_invariant(draw, problem, derivations, followed):
    """An invariant made narrower, and an edge dropped that it might exclude."""
    changed, derivations, followed = drop_edge(draw, problem, derivations, followed)
    lines = [line for line in followed if line.startswith("invariant ")]
    if not lines:
        return changed, derivations, followed
    victim = draw.choice(lines).split(" ")
    fresh = " ".join([*victim[:3], "number", str(draw.randrange(4)), "0", "0"])
    return changed, derivations, [fresh if line.split(" ")[:3] == victim[:3] else line for line in followed]


@operator
def merged_nodes(draw, problem, derivations, followed):
    """Edges lead to another node of the same code in place of their own, and theirs is left out."""
    victim, other = draw.choice(problem.nodes), draw.choice(problem.nodes)
    if victim is other or victim.name == problem.entry:
        return drop_edge(draw, problem, derivations, followed)
    gone = [edge.name for edge in problem.edges if victim.name in (edge.source, edge.target)]
    changed = without_edges(problem, gone)
    nodes = tuple(node for node in problem.nodes if node is not victim)
    exits = tuple(name for name in problem.exits if name != victim.name)
    kept = [line for line in followed if line.split(" ")[1] != victim.name]
    moved = tuple(
        replace(e, target=other.name) for e in problem.edges if e.target == victim.name and e.source != victim.name
    )
    return replace(changed, nodes=nodes, exits=exits, edges=(*changed.edges, *moved)), derivations, kept


def verdict_of(document, binary, seed):
    """What becomes of a mutant: the operator, and ``refused``, ``not checked``, ``no less`` or ``less``."""
    name = random.Random(seed).choice(sorted(OPERATORS))

    def change(problem, derivations, followed):
        return OPERATORS[name](random.Random(seed + 1), problem, derivations, followed)

    try:
        mutant = solved_again(document, change)
    except (AnalysisError, ValueError, KeyError, ArithmeticError):
        return name, "no linear program"
    text = mutant["bound"]["certificates"][0]
    for loop in mutant["bound"]["loops"]:
        found = re.search(rf"^loop {re.escape(loop['name'])} (\d+)", text, re.MULTILINE)
        loop["max"] = int(found[1]) + 1 if found else loop["max"]
    sealed(mutant)
    with mock.patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        try:
            checked = check_bound(mutant, binary)
        except VerificationError:
            return name, "refused"
    if not checked.is_full:
        return name, "not checked"
    less = any(mutant["bound"][unit] < document["bound"][unit] for unit in ("instructions", "cycles"))
    return name, "less" if less else "no less"
