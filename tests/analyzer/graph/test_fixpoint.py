"""The fixpoint engine against plain iteration, and its cost on nests of loops."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.lattice import Dual, Lattice, Subsets
from wcet_probe.analyzer.graph.fixpoint import LatticeEquations, least, solve, unsettled
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder

UNIVERSE = frozenset(range(6))
SETS = st.frozensets(st.integers(0, 5), max_size=3)


@st.composite
def problems(draw):
    """Any graph, irreducible ones too, and what each node adds and takes away."""
    count = draw(st.integers(2, 8))
    nodes = st.integers(0, count - 1)
    edges = draw(st.lists(st.builds(Arrow, nodes, nodes), max_size=3 * count, unique=True))
    changes = {node: (draw(SETS), draw(SETS)) for node in range(count)}
    return FlowOrder(range(count), edges), changes, draw(SETS)


def plainly(graph, join, start, behind):
    """Round robin until nothing changes."""
    found, before = {0: start}, None
    while found != before:
        before = dict(found)
        for node in graph.outgoing:
            if node in found:
                for target in graph.successors(node):
                    after = behind(node, found[node])
                    found[target] = after if target not in found else join(found[target], after)
    return found


@settings(max_examples=examples(100))
@given(problems())
def test_least_and_greatest_fixpoints_are_those_of_plain_iteration(problem):
    graph, changes, start = problem

    def behind(node, state):
        added, taken = changes[node]
        return (state | added) - taken

    subsets = Subsets(UNIVERSE)
    assert least(graph, subsets, {0: start}, behind) == plainly(graph, frozenset.union, start, behind)
    assert least(graph, Dual(subsets), {0: start}, behind) == plainly(graph, frozenset.intersection, start, behind)


@settings(max_examples=examples(100))
@given(problems(), st.data())
def test_the_check_refuses_what_is_no_fixpoint(problem, data):
    graph, changes, start = problem
    equations = LatticeEquations(graph, Subsets(UNIVERSE), lambda node, state: state | changes[node][0])
    states = dict(solve(graph, equations, {0: start}).states)
    assert not unsettled(graph, equations, {0: start}, states)
    node = data.draw(st.sampled_from(sorted(states)))
    if states[node]:
        states[node] -= {data.draw(st.sampled_from(sorted(states[node])))}
        assert unsettled(graph, equations, {0: start}, states)


def nest(depth):
    """Counters ``n`` from 0 to 4, each in the round of the one before: heads 0 to depth - 1, then their ends."""
    edges = []
    for level in range(depth):
        end = 2 * depth - 1 - level
        inner, outside = (level + 1, end + 1) if level < depth - 1 else (end, end + 1)
        edges += [Arrow(level, inner), Arrow(end, level), Arrow(level, outside)]
    return FlowOrder(range(2 * depth + 1), edges)


class Counting(LatticeEquations):
    """An interval a loop; what enters a loop sets its counter to 0, its end adds 1, and it is left at 5."""

    def __init__(self, graph, depth):
        super().__init__(graph, Counters(), None)
        self.depth = depth

    def flow(self, node, state):
        depth, word = self.depth, strided.between
        for edge in self._graph.outgoing[node]:
            counters = list(state)
            if node < depth:
                goes_on = edge.target == (node + 1 if node < depth - 1 else 2 * depth - 1 - node)
                counters[node] = strided.meet(counters[node], word(32, 0, 4) if goes_on else word(32, 5, (1 << 32) - 1))
                if goes_on and node < depth - 1:
                    counters[node + 1] = strided.constant(32, 0)
            elif node < 2 * depth:
                level = 2 * depth - 1 - node
                counters[level] = strided.apply("INT_ADD", (counters[level], strided.constant(32, 1)), 32)
            if not any(counter.is_bottom for counter in counters):
                yield edge, tuple(counters)


class Counters(Lattice):
    def leq(self, one, other):
        return all(strided.leq(a, b) for a, b in zip(one, other, strict=True))

    def join(self, one, other):
        return tuple(strided.join(a, b) for a, b in zip(one, other, strict=True))

    def widen(self, former, grown):
        return tuple(strided.widen(a, b, ()) for a, b in zip(former, grown, strict=True))


def test_visits_of_a_nest_grow_with_its_depth_and_counters_keep_their_bounds():
    for depth in range(1, 9):
        graph = nest(depth)
        start = tuple(strided.constant(32, 0) for _ in range(depth))
        solution = solve(graph, Counting(graph, depth), {0: start})
        for level in range(depth):
            assert solution.states[level][level] == strided.between(32, 0, 5)
        assert solution.states[2 * depth][0] == strided.constant(32, 5)
        assert max(solution.visits.values()) <= 8 * depth


class Heights(Lattice[int]):
    """Numbers up to a greatest one."""

    greatest = 1 << 20

    def leq(self, one, other):
        return one <= other

    def join(self, one, other):
        return max(one, other)


class Reluctant(LatticeEquations):
    """Widens in earnest only where it is told that it takes long."""

    def widened(self, node, former, grown, number):  # noqa: ARG002  the order of arguments is the protocol's
        return Heights.greatest if number >= 112 else self._lattice.join(former, grown)


def test_a_loop_that_goes_on_and_on_is_told_to_hurry():
    graph = FlowOrder(range(3), [Arrow(0, 1), Arrow(1, 1), Arrow(1, 2)])
    equations = Reluctant(graph, Heights(), lambda node, state: min(state + (node == 1), Heights.greatest))
    found = solve(graph, equations, {0: 0})
    assert found.states[1] == Heights.greatest
    assert found.visits[1] < 110


class Guarded(Reluctant):
    """The loop's body goes on from node 2 to 3 only from above 10, which widening alone comes to."""

    def widened(self, node, former, grown, number):  # noqa: ARG002
        return Heights.greatest

    def flow(self, node, state):
        for edge in self._graph.outgoing[node]:
            if edge.target != 3 or state > 10:
                yield edge, min(state + (node == 2), 5) if edge.target == 1 else state


def test_what_only_a_dropped_node_leads_to_is_dropped():
    edges = [Arrow(0, 1), Arrow(1, 2), Arrow(2, 1), Arrow(2, 3), Arrow(3, 4), Arrow(4, 5), Arrow(5, 1)]
    graph = FlowOrder(range(6), edges)
    found = solve(graph, Guarded(graph, Heights(), lambda _, state: state), {0: 0})
    assert found.states == {0: 0, 1: 5, 2: 5}
