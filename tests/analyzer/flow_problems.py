"""Flow problems for the tests of IPET and of the certificate checker."""

import random

from wcet_probe.analyzer.ipet.certificate import LoopDerivation
from wcet_probe.analyzer.ipet.exact_lp import Constraint
from wcet_probe.analyzer.ipet.flow_system import FlowEdge, FlowLoop, FlowNode, FlowProblem

SHA = "5" * 64


def problem(costs, edges, loops=(), constraints=(), exits=("x",)):
    """``costs``: node -> cost, the first is the entry; an edge is named ``source-target``."""
    nodes = tuple(FlowNode(name, 0x8000 + 4 * index, cost) for index, (name, cost) in enumerate(costs.items()))
    return FlowProblem(
        SHA,
        "f",
        "core",
        "instructions",
        nodes,
        tuple(FlowEdge(f"{source}-{target}", source, target, extra) for source, target, extra in edges),
        nodes[0].name,
        exits,
        tuple(loops),
        tuple(constraints),
    )


def nested(outer, inner, constraints=()):
    """Two nested loops, top-tested, with an exit from the inner one besides."""
    costs = {"a": 3, "h": 2, "g": 5, "b": 7, "l": 1, "x": 2, "early": 1}
    edges = [("a", "h", 0), ("h", "g", 1), ("g", "b", 0), ("b", "g", 2), ("g", "l", 0), ("l", "h", 0), ("h", "x", 0)]
    loops = (FlowLoop("outer", ("a-h",), ("l-h",), outer), FlowLoop("inner", ("h-g",), ("b-g",), inner))
    return problem(costs, [*edges, ("b", "early", 0)], loops, constraints, ("x", "early"))


def nested_bound(outer, inner):
    """a h, as many full rounds as there may be, then out of the inner loop by early, at its last round."""
    full = 1 + 5 + inner * (7 + 2 + 5)
    return 3 + 2 + outer * (full + 1 + 2) + full + 7 + 1


NESTED_DERIVATIONS = (
    LoopDerivation("outer", "loop:outer", "proved", 11, 0, 0, 1, 3, 10, "<"),
    LoopDerivation("inner", "loop:inner", "fact", 5, expression="ceil_log2(n) + 1", parameters={"n": 8}, offset=1),
)


def random_region(rng, size, most):
    """A random structured problem: about ``size`` blocks in sequence, choice and loop; the sum of choices is small."""
    costs, edges, loops = {}, [], []

    def node():
        name = f"n{len(costs)}"
        costs[name] = rng.randint(0, 9)
        return name

    def region(size):
        kind = rng.choice("slc") if size >= 3 else "n"
        if kind == "n":
            name = node()
            return name, name
        if kind == "s":
            first = region(size // 2)
            second = region(size - size // 2)
            edges.append((first[1], second[0], rng.randint(0, 2)))
            return first[0], second[1]
        if kind == "c":
            fork, body, join = node(), region(size - 2), node()
            edges.extend([(fork, body[0], 0), (body[1], join, 1), (fork, join, 2)])
            return fork, join
        header, body = node(), region(size - 1)
        into = len(edges)
        edges.extend([(header, body[0], 0), (body[1], header, 1)])
        loops.append((header, f"{body[1]}-{header}", rng.randint(0, most), into))
        return header, header

    first, last = region(size)
    exits = {last, *rng.sample(sorted(costs), rng.randint(0, 1))}
    order = [first, *(name for name in costs if name != first)]
    found = []
    for index, (header, back, bound, _) in enumerate(loops):
        arriving = [
            f"{source}-{target}" for source, target, _ in edges if target == header and f"{source}-{target}" != back
        ]
        arriving += ["enter"] if header == first else []
        found.append(FlowLoop(f"L{index}", tuple(arriving), (back,), bound))
    return problem({name: costs[name] for name in order}, edges, found, (), tuple(sorted(exits)))


def random_constraint(rng, given, name):
    edges = rng.sample([edge.name for edge in given.edges], min(2, len(given.edges)))
    return Constraint(name, {edge: rng.randint(1, 3) for edge in edges}, "<=", rng.randint(0, 4))


def random_problem(seed, size, most, constraints=0):
    rng = random.Random(seed)
    given = random_region(rng, size, most)
    extra = tuple(random_constraint(rng, given, f"c{index}") for index in range(constraints if given.edges else 0))
    return FlowProblem(
        **{name: getattr(given, name) for name in given.__slots__ if name != "constraints"}, constraints=extra
    )
