"""Functions that call themselves, to whatever depth: their cost follows from how often they are executed in all.

Where no value shows how deep a recursion goes, somebody may know the number of all its calls: a fact, or the pragma
``flowrestriction 1*f <= 177*marker``. The function is then analysed once, for all of its calls, and its flow problem is
solved for a whole tree of calls: it is entered as often as it calls itself, and once more for each call from outside.

Words: summary, flow restriction, dual (docs/explanation/glossary.md).

*Soundness:* each execution of the function is a path through its graph, and all together a flow through it that enters
it so often. By weak duality what all of them cost is at most ``each`` for each call of itself and ``first`` for each
call from outside, however many there are of both: all other limits are the same for any number of executions. What a
call does to its caller's state is proved by induction over the depth: if the calls within an execution do no more than
is supposed, the execution does no more than that, see `values.call_effects.covers`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from wcet_probe.analyzer.facts.binding import Analysed
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.restrictions import named_function
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.ipet.flow_system import ENTER, Constraint, FlowProblem, flow_system, solve
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.proof import Assumption, FlowClaim

_SUM_OF_CALLS = re.compile(r"(?:1\s*\*\s*)?([A-Za-z_]\w*)\s*<=\s*([0-9]+)\s*\*\s*[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True)
class TreeCost:
    """What a tree of calls costs at most: ``each`` for each call of the function within it, ``first`` for the tree.

    ``rests_on`` are the constraints that decide it.
    """

    each: int
    first: int
    rests_on: frozenset[str] = frozenset()


def tree_cost(problem: FlowProblem, recursive: Collection[str], repeated: Collection[str], most: int) -> TreeCost:
    """What the calls of a function that calls itself cost.

    Args:
        problem: of one execution, in which the calls of itself cost nothing.
        recursive: the edges of these calls.
        repeated: back edges that are calls of the source, too: calls at a function's end that have become a jump.
        most: how many executions are expected, calls that are ``repeated`` among them; it chooses among true bounds.

    Raises:
        AnalysisError: nothing limits how often some edges are taken.

    *Soundness:* as said of the module. A limit of one execution that is a constant is that often one of all executions.
    """
    system, constraints = flow_system(problem), []
    for one in system.constraints:
        if one.name == "enter":
            constraints.append(Constraint("calls", {ENTER: 1, **dict.fromkeys(repeated, 1)}, "<=", most))
        elif one.constant:
            own = {**one.coefficients, ENTER: one.coefficients.get(ENTER, 0) - one.constant}
            constraints.append(replace(one, coefficients=own, constant=0))
        else:
            constraints.append(one)
    constraints.append(Constraint("tree", {**dict.fromkeys(recursive, 1), ENTER: -1}, "=", -1))
    solution = solve(replace(system, constraints=tuple(constraints)), counted=False)
    deciding = frozenset(name for name, factor in solution.dual.items() if factor)
    each, tree = solution.dual["calls"], solution.dual["tree"]
    return TreeCost(ceil(each), max(0, ceil(each - tree)), deciding)


def expected_calls(facts: Facts, index: SourceIndex, parameters: Mapping[str, int], name: str) -> int | None:
    """How many calls of a function facts or pragmas speak of; None where they speak of none."""
    for fact in facts.recursions:
        if fact.place.function == name and fact.max_calls is not None:
            return evaluate(fact.max_calls, parameters)
    for source in index.files.values():
        for one in source.restrictions:
            said = _SUM_OF_CALLS.fullmatch(one.text.strip())
            function = named_function(index, one, said[1]) if said else None
            if said and function is not None and function.name == name:
                return int(said[2])
    return None


def tail_calls(analysed: Analysed, index: SourceIndex, name: str, headers: Sequence[int]) -> frozenset[int]:
    """Those of the loops ``headers`` that are calls of ``name`` at its own end: it has no loop in the source.

    *Soundness:* that the compiler has made the loop of nothing else is assumed with the number of the calls.
    """
    functions = [one for file in index.files.values() for one in file.functions if one.name == name]
    if len(functions) != 1 or index.loops(name, functions[0].file):
        return frozenset()
    (source,) = functions
    own = {(source.file, line) for line in range(source.first_line, source.last_line + 1)}
    return frozenset(
        site.header_address
        for site in analysed.sites
        if site.header_address in headers and site.function == name
        if {*site.latch_lines, *site.own_lines} <= own
    )


@dataclass(frozen=True, slots=True)
class CountedCalls:
    """A function that calls itself and is not expanded: its calls of itself are an auxiliary variable.

    Attributes:
        function: its name.
        address: where it starts.
        outside: the edges of the graph that call it; together with the variable they count its executions.
    """

    function: str
    address: int
    outside: tuple[Edge, ...]

    @property
    def variable(self) -> str:
        """The auxiliary variable's name."""
        return f"calls:{self.function}"

    def expanded(self, values: Values) -> list[int]:
        """The points at which it is entered where it is expanded none the less, as where it is jumped to."""
        points = values.graph.points
        return [index for index in sorted(values.states) if points[index].block.address == self.address]


def facts_of_calls(
    facts: Facts, values: Values, counted: Sequence[CountedCalls], parameters: Mapping[str, int]
) -> Iterator[tuple[LinearConstraint, FlowClaim, Assumption]]:
    """What facts say of the number of all calls.

    *Soundness:* each is an assumption.
    """
    by_name = {one.function: one for one in counted}
    for number, fact in enumerate(facts.recursions):
        one = by_name.get(fact.place.function)
        if one is None or fact.max_calls is None:
            continue
        most = evaluate(fact.max_calls, parameters)
        text = f"{one.function} is called at most {fact.max_calls} times in all: {fact.because}"
        yield (
            LinearConstraint(
                f"recursion:{number}",
                points=tuple((index, 1) for index in one.expanded(values)),
                edges=tuple((edge, 1) for edge in one.outside),
                constant=most,
                auxiliaries=((one.variable, 1),),
            ),
            FlowClaim(fact.where, text, ((one.address, 1),), (), most),
            Assumption(f"fact {fact.where}", text, "every emulated run counts the calls"),
        )
