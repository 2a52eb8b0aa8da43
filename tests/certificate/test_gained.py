"""What is gained on a way, followed without executing most nodes, leads where following all that is known leads."""

from unittest.mock import patch

import pytest

from tests.certificate.test_code import CODE, RELOADED, document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate import gained
from wcet_probe.certificate.check import _Check, check_bound
from wcet_probe.certificate.gained import Gains
from wcet_probe.certificate.machine import Machine
from wcet_probe.certificate.shapes import postorder
from wcet_probe.certificate.verify import verify_result
from wcet_probe.certificate.walk import follow

LINKED = """typedef unsigned u; volatile u out; u a, b;
void f(u x, u y) {{ {loops} }}
"""
LOOP = "for (u i = 0; i < {n}; i++) {{ {body} }} if (y < {n}) {{ out = b; out = 7; }}\n"
BODY = 'if (x & 1) {{ out = a; __asm__ volatile(""); }} out = i; if (x & {bit}) {{ out = b; out = i + 1; }}'
STORED = """
 movw r2, #:lower16:word
 movt r2, #:upper16:word
 ldr r3, [r2]
 cmp r3, #5
 bne 1f
 nop
1: str r1, [r2]
 ldr r12, [r2]
 cmp r12, #5
 bne 2f
.globl behind
.thumb_func
behind: cmp r3, #5
 beq 2f
 mul r0, r0, r0
2: bx lr
 .data
 .balign 4
word: .word 1
 .text
"""


def linked(count):
    bodies = [BODY.format(bit=1 if number % 2 else 3) for number in range(count)]
    loops = "".join(LOOP.format(n=5 + number % 7, body=body) for number, body in enumerate(bodies))
    return LINKED.format(loops=loops.replace("{", "{").replace("}", "}"))


def guest(name):
    target = load_target("mpc603e" if name.endswith("ppc") else "cortex-m4")
    if name in {"reloaded", "stored"}:
        return guest_of(assembler({"f": {"reloaded": RELOADED, "stored": STORED}[name]}, target), target)
    source = linked(4) if name.startswith("linked") else CODE[name.removesuffix(" ppc")]
    return guest_of(source, target, ".c", "-O1" if name.startswith("linked O1") else "-O2")


def covered(on):
    document, binary = document_of(on)
    check = _Check(document["bound"], binary, verify_result(document))
    list(check.findings())
    return check


@pytest.mark.parametrize(
    "name",
    [
        "reloaded",
        "stored",
        "linked",
        pytest.param("linked O1", marks=pytest.mark.slow),
        pytest.param("linked ppc", marks=pytest.mark.slow),
        "a way out by predicates",
        "a carry out",
        "a static word",
        "a number masked out of a word of the stack",
        "saved registers ppc",
        "a static word ppc",
        "nested loops",
    ],
)
def test_no_edge_is_forgotten(name):
    check = covered(guest(name))
    code, graph, invariants, coverage = check._code, check._graph, check._invariants, check._coverage
    gains = Gains(code, graph, invariants, coverage)
    gains.allow(10_000_000)
    targets = {node: [edge.target for edge in edges] for node, edges in graph.leading.items()}
    order = {node: number for number, node in enumerate(postorder(targets, graph.entry)[::-1])}
    known = more = 0
    headers = [one.target for one in graph.edges if order[one.source] >= order[one.target]]
    for edge in graph.edges:
        for stop in {None, *headers} - {edge.target}:
            if edge.name not in coverage.taken:
                continue
            machine = Machine(code.image, coverage.escapes)
            inside = graph.nodes.keys() - {stop}
            start = coverage.taken[edge.name]
            wanted = follow(code, machine, graph, edge.target, start, inside, invariants, stop=stop).keys()
            found = gains.reached(edge, inside.__contains__, stop, order)
            assert found >= wanted
            known, more = known + len(wanted), more + len(found - wanted)
    assert more <= known // 50


@pytest.mark.parametrize("name", ["reloaded", "stored", "a way out by predicates", "nested loops"])
def test_what_was_executed_before_is_not_executed_again_and_counts_as_if_it_were(name):
    check = covered(guest(name))
    graph = check._graph
    made = (check._code, graph, check._invariants, check._coverage)
    targets = {node: [edge.target for edge in edges] for node, edges in graph.leading.items()}
    order = {node: number for number, node in enumerate(postorder(targets, graph.entry)[::-1])}
    warm, plenty = Gains(*made), 10_000_000

    def reached(gains, edge, steps):
        gains.allow(steps)
        return gains.reached(edge, graph.nodes.__contains__, None, order)

    edges = [edge for edge in graph.edges if edge.name in check._coverage.taken]
    for edge in edges:
        reached(warm, edge, plenty)
    with patch.object(gained, "run_block", wraps=gained.run_block) as executed:
        found = [(reached(warm, edge, plenty), plenty - warm._left) for edge in edges]
        assert not executed.called
    for edge, (names, steps) in zip(edges, found, strict=True):
        cold = Gains(*made)
        assert (reached(cold, edge, steps), cold._left) == (names, 0)
        assert reached(warm, edge, steps) == names
        assert not warm.is_spent
        assert reached(warm, edge, steps - 1) is None
        assert warm.is_spent


def test_pairs_of_twice_as_many_loops_take_twice_as_long():
    """Each loop has pairs of its own; what is behind the loop is no part of its rounds."""
    counts = []
    for number in (6, 12):
        document, binary = document_of(guest_of(linked(number), load_target("cortex-m4"), ".c", "-O1"))
        with patch.object(gained, "run_block", wraps=gained.run_block) as executed:
            checked = check_bound(document, binary)
        pairs = sum(text.count("\nconstraint conflict:") for text in document["bound"]["certificates"])
        assert pairs > number
        assert checked.is_full
        counts.append((executed.call_count, pairs))
    assert counts[1][0] < 3 * counts[0][0]
