"""Which functions are summarised: most points and visits first, never recursion; contexts against all call paths."""

from random import Random
from types import SimpleNamespace

import pytest

from wcet_probe.analyzer.graph import expansion


def block(address, jumps=(), calls=(), falls_to=None, tail_calls=()):
    ways = {"jumps": jumps, "calls": calls, "tail_calls": tail_calls, "falls_to": falls_to, "resumes": None}
    return SimpleNamespace(address=address, **ways)


def graph_of(functions):
    """The functions by their numbers, each a list of blocks."""

    def graph(function):
        blocks = {one.address: one for one in functions[function]}
        return SimpleNamespace(symbol=SimpleNamespace(address=0), blocks=blocks)

    return graph


def call_paths(functions, summarised, function=0):
    """The functions that are expanded, once for each path of calls and jumps that leads there."""
    yield function
    for one in functions[function]:
        for callee in one.calls:
            if callee not in summarised:
                yield from call_paths(functions, summarised, callee)
        for target in one.tail_calls:
            yield from call_paths(functions, summarised, target)


def random_functions(random):
    """Functions that call and jump to later ones."""
    functions, count = {}, random.randint(3, 7)
    for function in range(count):
        later, blocks = range(function + 1, count), []
        for address in range(random.randint(1, 4)):
            calls = tuple(random.choice(later) for _ in range(random.randrange(3))) if later else ()
            tails = (random.choice(later),) if later and random.random() < 0.2 else ()
            blocks.append(block(address, calls=calls, falls_to=address + 1, tail_calls=tails))
        functions[function] = blocks
    return functions


@pytest.mark.parametrize("part", range(3))
def test_points_are_counted_as_they_are_expanded(part, monkeypatch):
    """Where the points are as many as may be nothing is summarised, and one less makes a choice if there is one."""
    chosen_at_all = 0
    for seed in range(60):
        functions = random_functions(Random(f"expansion {part} {seed}"))
        graph = graph_of(functions)
        whole = list(call_paths(functions, ()))
        points = sum(len(functions[one]) for one in whole)
        assert expansion.to_summarise(graph, 0, (), most=points) == frozenset()
        monkeypatch.setattr(expansion, "FEW", points)
        chosen = expansion.to_summarise(graph, 0, (), most=points - 1)
        several = {one for one in whole if whole.count(one) > 1}
        assert chosen <= several
        assert bool(chosen) == bool(several)
        left = list(call_paths(functions, chosen))
        assert sum(len(functions[one]) for one in left) < points or not chosen or tails_only(functions, chosen)
        if chosen:
            most = max(whole.count(one) * len(functions[one]) for one in several)
            assert any(whole.count(one) * len(functions[one]) == most for one in chosen)
            chosen_at_all += 1
    assert chosen_at_all > 20


def tails_only(functions, chosen):
    """Whether what was chosen is only jumped to, and so expanded all the same."""
    return not any(callee in chosen for blocks in functions.values() for one in blocks for callee in one.calls)


@pytest.mark.parametrize("part", range(2))
def test_what_calls_itself_or_is_refused_or_is_the_entry_is_expanded(part):
    for seed in range(40):
        random = Random(f"never {part} {seed}")
        functions = random_functions(random)
        again = random.randrange(1, len(functions))
        functions[again].append(block(99, calls=(again,)))
        refused = random.sample(sorted(functions), 1)
        chosen = expansion.to_summarise(graph_of(functions), 0, refused, most=1)
        assert chosen.isdisjoint({0, again, *refused})
        # What is given or counted is, if it can be: a function that calls itself only where its calls are counted.
        reached = set(call_paths(functions | {again: functions[again][:-1]}, ()))
        told = expansion.to_summarise(graph_of(functions), 0, (), given=[again, 1], counted=())
        assert told == {1} & (reached - {again})
        assert (again in expansion.to_summarise(graph_of(functions), 0, (), counted=[again])) == (again in reached)


def test_what_is_not_summarised(monkeypatch):
    """Recursion, what was refused, and what is called once."""
    blocks = {1: ([2, 2, 3, 4], []), 2: ([3], []), 3: ([], [5]), 4: ([4], []), 5: ([], [])}

    class Block:
        def __init__(self, calls, tail_calls):
            self.calls, self.tail_calls = calls, tail_calls

    class Graph:
        def __init__(self, function):
            calls, tails = blocks[function]
            self.blocks = {0: Block(calls, tails)} | {n: Block([], []) for n in range(1, 9)}

    monkeypatch.setattr(expansion, "FEW", 1)
    assert expansion.to_summarise(Graph, 1, (), most=1000) == frozenset()
    assert expansion.to_summarise(Graph, 1, (), most=1) == frozenset({2, 3})
    assert expansion.to_summarise(Graph, 1, (3,), most=1) == frozenset({2, 5})


def test_what_is_visited_most_in_nested_loops_is_summarised():
    """Not what has few visits, is called once, was refused, or has loops that its callers bound."""

    caller = [block(0, calls=(3,), falls_to=1), block(1, calls=(4,), falls_to=2), block(2, (1, 2), (2,), 3), block(3)]
    routine = [block(0, jumps=(0, 9)), *(block(n, falls_to=n + 1) for n in range(1, 10)), block(10)]
    small = [block(0)]
    functions = {1: caller, 2: routine, 3: routine, 4: small}

    graph = graph_of(functions)

    def chosen(most_visits, refused=(), unbounded=()):
        return expansion.to_summarise(graph, 1, refused, 1_000, unbounded, most_visits=most_visits)

    visits = (1 + 3 + 9 + 1) + 9 * (3 + 10) + 1 * (3 + 10) + 3
    assert chosen(None) == chosen(visits) == frozenset()
    assert chosen(visits - 1) == frozenset({2})
    assert chosen(1, refused=(2,)) == chosen(1, unbounded=(2,)) == frozenset()
