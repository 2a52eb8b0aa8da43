"""The strongly connected parts of a graph, of which the rules of pairs, balances and counted misses speak."""

import random

from wcet_probe.certificate.kernel.shapes import parts_of


def drawn(draw, nodes, edges):
    names = [f"n{i}" for i in range(nodes)]
    leading = {name: [] for name in names}
    for _ in range(edges):
        leading[draw.choice(names)].append(draw.choice(names))
    return leading


def reached(leading, start):
    found, waiting = {start}, [start]
    while waiting:
        for target in leading[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def test_control_comes_back_to_no_earlier_part_and_from_each_node_of_one_to_all():
    draw, several = random.Random(18), 0
    for _ in range(300):
        leading = drawn(draw, 12, draw.randrange(5, 24))
        parts = parts_of(leading, "n0")
        assert parts.keys() == reached(leading, "n0")
        several += len(set(parts.values())) > 2
        for node, part in parts.items():
            behind = reached(leading, node)
            assert min(parts[other] for other in behind) >= part
            assert {other for other, own in parts.items() if own == part} == {
                other for other in behind if node in reached(leading, other)
            }
    assert several > 50


def test_without_an_edge_back_each_node_is_a_part():
    assert parts_of({"n0": ["n1"], "n1": []}, "n0") == {"n0": 0, "n1": 1}
    assert parts_of({"n0": ["n1"], "n1": ["n0"]}, "n0") == {"n0": 0, "n1": 0}
