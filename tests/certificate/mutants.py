"""Mutants of true certificates, solved again: what is false in them is the content, never the arithmetic."""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

from tests.certificate.forgeries import name_dead_ends, sealed, solved_again, without_edges
from tests.certificate.specimens import SPECIMENS, specimen
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


@operator
def cheaper_exit(draw, problem, derivations, followed):
    costs = {**problem.exit_costs}
    victim = draw.choice(sorted(costs))
    costs[victim] = max(0, costs[victim] - draw.choice((1, 2, costs[victim] + 1)))
    return replace(problem, exit_costs=costs), derivations, followed


@operator
def other_entry(draw, problem, derivations, followed):
    return replace(problem, entry=draw.choice(problem.nodes).name), derivations, followed


@operator
def loop_elsewhere(draw, problem, derivations, followed):
    """An edge that enters a loop is one that goes back in it, or the other way round."""
    if not problem.loops:
        return drop_exit(draw, problem, derivations, followed)
    victim = draw.choice(problem.loops)
    entering, back = list(victim.entry_edges), list(victim.back_edges)
    for one, other in ((entering, back), (back, entering)):
        if len(one) > 1 and draw.random() < 0.7:
            other.append(one.pop(draw.randrange(len(one))))
    changed = replace(victim, entry_edges=tuple(entering), back_edges=tuple(back))
    loops = tuple(changed if one is victim else one for one in problem.loops)
    return replace(problem, loops=loops), derivations, followed


@operator
def derived_otherwise(draw, problem, derivations, followed):
    """A field of a derivation, with a loop bound that comes of it where it is a number."""
    if not derivations:
        return cheaper_exit(draw, problem, derivations, followed)
    victim = draw.choice(derivations)
    fields = {
        "initial_low": lambda v: v + draw.choice((-1, 1)),
        "initial_high": lambda v: v - 1,
        "step": lambda v: 2 * v,
        "limit_low": lambda v: v + 1,
        "limit_high": lambda v: v - 1,
        "comparison": lambda v: "<" if v == "<=" else ">" if v == ">=" else v,
        "expression": lambda v: f"({v}) - 1",
        "parameters": lambda v: {name: value - 1 for name, value in v.items()},
        "offset": lambda v: 1 - v,
        "origin": lambda _: draw.choice(("proved", "fact", "pragma")),
    }
    name = draw.choice([one for one in fields if getattr(victim, one) is not None])
    most = max(1, victim.max_header - draw.choice((0, 1, 1)))
    changed = replace(victim, **{name: fields[name](getattr(victim, name))}, max_header=most)
    loops = tuple(
        replace(one, max_back_edges=most - 1) if f"loop:{one.name}" == victim.constraint else one
        for one in problem.loops
    )
    return replace(problem, loops=loops), [changed if one is victim else one for one in derivations], followed


@operator
def other_context(draw, problem, derivations, followed):
    """A node is called like one of another context, or of none, wherever it is spoken of; and an edge is dropped."""
    changed, derivations, followed = drop_edge(draw, problem, derivations, followed)
    victim = draw.choice(changed.nodes).name
    name = victim.rpartition("/")[2] if "/" in victim else f"0x8000000/{victim}"
    if any(node.name == name for node in changed.nodes):
        return changed, derivations, followed
    nodes = tuple(replace(node, name=name) if node.name == victim else node for node in changed.nodes)
    edges = tuple(
        replace(
            one,
            source=name if one.source == victim else one.source,
            target=name if one.target == victim else one.target,
        )
        for one in changed.edges
    )
    exits = tuple(name if one == victim else one for one in changed.exits)
    costs = {(name if one == victim else one): cost for one, cost in changed.exit_costs.items()}
    entry = name if changed.entry == victim else changed.entry
    moved = [re.sub(rf"^(invariant|excluded) {re.escape(victim)} ", rf"\1 {name} ", line) for line in followed]
    problem = replace(changed, nodes=nodes, edges=edges, exits=exits, exit_costs=costs, entry=entry)
    return problem, derivations, moved


@operator
def other_invariant(draw, problem, derivations, followed):
    """A field of an invariant changed, or the invariant gone; and an edge or a loop's rounds that might rest on it."""
    change = draw.choice((drop_edge, lower_loop, cheaper_node))
    changed, derivations, followed = change(draw, problem, derivations, followed)
    lines = [line for line in followed if line.startswith("invariant ")]
    if not lines:
        return changed, derivations, followed
    victim = draw.choice(lines)
    words = victim.split(" ")
    place = draw.randrange(7)
    if place == 6:
        return changed, derivations, [line for line in followed if line != victim]
    if place == 0:
        words[1] = draw.choice(changed.nodes).name
    elif place == 1:
        words[2] = draw.choice(("r0", "r3", "r13", "r14", "stack:-4", "stack:-8"))
    elif place == 2:
        words[3] = draw.choice(("number", "stack", "link", "any"))
    else:
        words[place + 1] = str(max(0, int(words[place + 1]) + draw.choice((-4, -1, 1, 4, -int(words[place + 1])))))
    return changed, derivations, [" ".join(words) if line == victim else line for line in followed]


@operator
def word_of_memory(draw, problem, derivations, followed):
    """A number, or a range around 0, is said of a word of memory or of a register, at one node or at all of them."""
    changed, derivations, followed = draw.choice((drop_edge, lower_loop))(draw, problem, derivations, followed)
    known = sorted({line.split(" ")[2] for line in followed if line.startswith("invariant ")})
    place = draw.choice([*known, "static:0x20000000", "static:0x20000010", "r1", "stack:-4"])
    nodes = [node.name for node in changed.nodes]
    nodes = nodes if draw.random() < 0.4 else [draw.choice(nodes)]
    base = draw.choice(("number", "number", "any"))
    low, stride, steps = draw.choice(((0, 0, 0), (1, 0, 0), ((1 << 32) - 4, 1, 8), (0, 4, 7), ((1 << 32) - 1, 0, 0)))
    fresh = [f"invariant {node} {place} {base} {low} {stride} {steps}" for node in nodes]
    said = {tuple(line.split(" ")[:3]) for line in fresh}
    return changed, derivations, [*(one for one in followed if tuple(one.split(" ")[:3]) not in said), *fresh]


@operator
def said_to_be_excluded(draw, problem, derivations, followed):
    """An edge is dropped, and its target is said to be none; or flags are said to tell what excludes it."""
    victim = draw.choice(problem.edges)
    target = next(node.address for node in problem.nodes if node.name == victim.target)
    changed = without_edges(problem, [victim.name])
    if draw.random() < 0.5:
        return changed, derivations, [*followed, f"excluded {victim.source} {target:#x}"]
    flags, sign = draw.choice(("nzcv", "cr0", "cr1")), draw.choice(("either", "unsigned", "signed"))
    kind, left, right = draw.choice(("numbers", "result")), draw.randrange(3), draw.randrange(3)
    told = f"{flags} {sign} {kind} {left} 0 0 {right} 0 0 {draw.choice(('-', '!=u'))}"
    said = [line for line in followed if not line.startswith(f"flags {victim.source} {flags} ")]
    return changed, derivations, [*said, f"flags {victim.source} {told}"]


_CACHE_RECORDS = ("flags", "symbol", "name", "shown", "miss", "paid", "must", "modified", "held", "unchecked")


@operator
def other_annotation(draw, problem, derivations, followed):
    """What is said of caches changed or left out; and a node, an event or a limit that might rest on it is lowered."""
    change = draw.choice((cheaper_node, cheaper_event, stronger_constraint, cheaper_edge))
    changed, derivations, followed = change(draw, problem, derivations, followed)
    lines = [line for line in followed if line.split(" ", 1)[0] in _CACHE_RECORDS]
    if not lines:
        return changed, derivations, followed
    victim = draw.choice(lines)
    words, way = victim.split(" "), draw.randrange(4)
    if way == 0:
        return changed, derivations, [line for line in followed if line != victim]
    place = draw.randrange(1, len(words))
    if way == 1:
        other = draw.choice([line for line in lines if line.split(" ", 1)[0] == words[0]]).split(" ")
        words[place] = other[min(place, len(other) - 1)]
    elif re.fullmatch(r"-?\d+", words[place]):
        words[place] = str(max(0, int(words[place]) + draw.choice((-32, -4, -1, 1, 4, 32))))
    elif words[0] == "held":
        words[3:] = ["full"]
    elif words[0] in {"must", "miss", "shown"} or way == 2:
        bases = "number", "stack", "s0", "t0", "s0+s4*-1"
        words[place] = draw.choice(changed.nodes).name if place < 3 else draw.choice(bases)
    else:
        del words[place]
    return changed, derivations, [" ".join(words) if line == victim else line for line in followed]


@operator
def cheaper_event(draw, problem, derivations, followed):
    """An event that costs less, or a limit of it that allows less."""
    if not problem.auxiliaries:
        return stronger_constraint(draw, problem, derivations, followed)
    victim = draw.choice(problem.auxiliaries)
    if draw.random() < 0.5:
        cheaper = replace(victim, cost=max(0, victim.cost - draw.choice((1, victim.cost))))
        events = tuple(cheaper if one is victim else one for one in problem.auxiliaries)
        return replace(problem, auxiliaries=events), derivations, followed
    own = [one for one in problem.constraints if one.coefficients.get(victim.name, 0) > 0]
    if not own:
        return stronger_constraint(draw, problem, derivations, followed)
    limit = draw.choice(own)
    factors = dict(limit.coefficients)
    name = draw.choice(sorted(factors))
    factors[name] += draw.choice((1, 1, 4, abs(factors[name])))
    changed = replace(limit, coefficients={each: factor for each, factor in factors.items() if factor})
    constraints = tuple(changed if one is limit else one for one in problem.constraints)
    return replace(problem, constraints=constraints), derivations, followed


def less_assumed(draw, section):
    """An assumption that is not listed, or that says something else; a claim of that is one of less."""
    assumptions = list(section["assumptions"])
    place = draw.randrange(len(assumptions))
    if draw.random() < 0.7:
        del assumptions[place]
    else:
        assumptions[place] = {**assumptions[place], "id": draw.choice(("no-interference", "fact nowhere:1", "lemma x"))}
    section["assumptions"] = assumptions
    return len({one["id"] for one in assumptions})


def other_parameters(draw, section):
    """Another value of a parameter."""
    parameters = dict(section["parameters"])
    if parameters:
        name = draw.choice(sorted(parameters))
        parameters[name] -= draw.choice((1, 8, parameters[name]))
        section["parameters"] = parameters
    return bool(parameters)


def _sealed_again(document, change, draw):
    """``document`` with its section changed and sealed, and whether anything of it was."""
    found = {**document, "bound": dict(document["bound"])}
    before = {key: found["bound"][key] for key in ("assumptions", "parameters")}
    change(draw, found["bound"])
    return sealed(found), before != {key: found["bound"][key] for key in before}


def needed(document, binary):
    """The assumptions that the numbers rest on: all, but facts of sums that come to nothing in this code."""
    flows = binary.asserted.of("flow")
    idle = {f"fact {fact.where}" for fact in flows}
    for text in document["bound"]["certificates"]:
        for number, factors in re.findall(r"^constraint flow:(\d+)\S* <= -?\d+(.*)$", text, re.MULTILINE):
            if any(int(factor) > 0 for factor in re.findall(r" (-?\d+) \S+", factors)):
                idle.discard(f"fact {flows[int(number)].where}")
    return {one["id"] for one in document["bound"]["assumptions"]} - idle


SECTIONS = {one.__name__: one for one in (less_assumed, other_parameters)}


def verdict_of(document, binary, seed):
    """What becomes of a mutant: the operator, and ``refused``, ``not checked``, ``no less`` or ``less``."""
    name = random.Random(seed).choice(sorted(OPERATORS.keys() | SECTIONS.keys()))
    if name in SECTIONS:
        mutant, is_other = _sealed_again(document, SECTIONS[name], random.Random(seed + 1))
        if not is_other:
            return name, "no less"
        ids = {one["id"] for one in mutant["bound"]["assumptions"]}
        is_needed = name != "less_assumed" or not needed(document, binary) <= ids
        return name, outcome(mutant, binary) or ("less" if is_needed else "no less")

    def change(problem, derivations, followed):
        return OPERATORS[name](random.Random(seed + 1), problem, derivations, followed)

    try:
        # How near the bound is to a count that is reached is no part of the proof.
        with mock.patch("wcet_probe.analyzer.ipet.flow_system._integer_solution", return_value=None):
            mutant = solved_again(document, change)
    except (AnalysisError, ValueError, KeyError, ArithmeticError):
        return name, "no linear program"
    text = mutant["bound"]["certificates"][0]
    mutant["bound"]["loops"] = [dict(loop) for loop in mutant["bound"]["loops"]]
    for loop in mutant["bound"]["loops"]:
        found = re.search(rf"^loop {re.escape(loop['name'])} (\d+)", text, re.MULTILINE)
        loop["max"] = int(found[1]) + 1 if found else loop["max"]
    if name == "said_to_be_excluded":
        name_dead_ends(mutant, binary.image)
    verdict = outcome(sealed(mutant), binary)
    less = any(mutant["bound"][unit] < document["bound"][unit] for unit in ("instructions", "cycles"))
    return name, verdict or ("less" if less else "no less")


def outcome(mutant, binary):
    """``refused``, ``not checked``, or None."""
    with mock.patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        try:
            checked = check_bound(mutant, binary)
        except VerificationError:
            return "refused"
    return None if checked.is_full else "not checked"


def tally(one, seeds):
    """How often each operator led to each verdict."""
    document, binary = specimen(*one)
    assert check_bound(document, binary).is_full
    return Counter(verdict_of(document, binary, seed) for seed in seeds)


def _verdicts(one, seeds):
    """How often each verdict was reached, and the seeds and operators of mutants that claim less and are accepted."""
    document, binary = specimen(*one)
    assert check_bound(document, binary).is_full
    found, accepted = Counter(), []
    for seed in seeds:
        name, verdict = verdict_of(document, binary, seed)
        found[verdict] += 1
        accepted += [f"{seed} {name}"] if verdict == "less" else []
    return {"verdicts": dict(sorted(found.items())), "accepted": accepted}


def _lines(file):
    """The lines of a tally; one that was cut off is none."""
    lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}\n")]


def main(arguments=None):
    """Draw the mutants of seeds, go on where the tally ends, and tell the sum of the tally; 1 if one is accepted."""
    parser = argparse.ArgumentParser(prog="python -m tests.certificate.mutants", description=__doc__)
    parser.add_argument("--from", dest="first", type=int, required=True, metavar="SEED", help="the first seed")
    parser.add_argument("--to", type=int, required=True, metavar="SEED", help="the seed behind the last one")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="a line of JSON for each specimen and 50 seeds")
    parser.add_argument("--only", nargs="+", metavar="ALLOCATOR", help="of these specimens", default=())
    parser.add_argument("--without", nargs="+", metavar="ALLOCATOR", help="of all but these", default=())
    asked = parser.parse_args(arguments)
    chosen = [one for one in SPECIMENS if (not asked.only or one[0] in asked.only) and one[0] not in asked.without]
    told = _lines(asked.tally) if asked.tally else []
    done = {(tuple(line["specimen"]), line["from"], line["to"]) for line in told}
    for start in range(asked.first, asked.to, 50):
        end = min(start + 50, asked.to)
        for one in chosen:
            if (one, start, end) in done:
                continue
            began = time.process_time()
            line = {"specimen": one, "from": start, "to": end, **_verdicts(one, range(start, end))}
            line["cpu_seconds"] = round(time.process_time() - began, 2)
            told.append(line)
            if asked.tally:
                with asked.tally.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            for each in line["accepted"]:
                sys.stdout.write(f"ACCEPTED {' '.join(one)}: {each}\n")
        total = sum((Counter(line["verdicts"]) for line in told), Counter())
        words = ", ".join(f"{count} {verdict}" for verdict, count in sorted(total.items()))
        sys.stdout.write(f"seeds up to {end - 1}: {sum(total.values())} mutants: {words}\n")
        sys.stdout.flush()
    return int(any(line["accepted"] for line in told))


if __name__ == "__main__":
    sys.exit(main())
