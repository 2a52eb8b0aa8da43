"""Which functions are not expanded where they are called, because the supergraph would cost too much.

A function that is called in many contexts has a copy of its blocks in each, and its loops are loops of a nest where it
is called in loops. The ones that have the most points that way, or are visited most, are taken first: they are small
routines that are called everywhere, such as those of floating-point arithmetic, and what they are called with seldom
decides their longest path.

Words: summary, context, supergraph (docs/explanation/glossary.md).

*Soundness:* none is needed: whatever is chosen, the analysis of the calls covers what the callee does
(`values.call_effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from wcet_probe.analyzer.graph.cfg import Block, FunctionGraph
from wcet_probe.analyzer.graph.loop_forest import Loop, loop_forest

MOST_EXPANDED = 2_000
"""Points from which on functions are summarised: so many take some seconds, and twice as many twice as long."""
FEW = 400
"""Points that are aimed at then, and in the functions that are summarised."""
MANY_SUMMARISED = 5_000
"""Points of functions that are summarised, all together, from which on those that come later have `FEWEST`.

Where a hundred functions call each other, each has all the others in it."""
FEWEST = 40
MOST_VISITS = 4_000
"""Visits of points from which on functions are summarised: those of 200 blocks in nests of four loops take 20 s."""
FEW_VISITS = 1_000
"""Visits that are aimed at then."""
_LEAST_PART = 8
"""What has fewer of the visits than one in so many stays expanded."""
_ROUNDS = 3
"""So often an analysis goes round a loop for each round that it goes around the next outer one, by experience."""


def to_summarise(  # noqa: PLR0917  the functions, and what is known of some
    graph_of: Callable[[int], FunctionGraph],
    entry: int,
    refused: Collection[int],
    most: int = MOST_EXPANDED,
    unbounded: Collection[int] = (),
    given: Collection[int] = (),
    counted: Collection[int] = (),
    most_visits: int | None = None,
) -> frozenset[int]:
    """The entries of functions to summarise, so that the others have few points and few visits, if that can be.

    Args:
        graph_of: the blocks of the function that starts somewhere.
        entry: of the analysed function.
        refused: functions that are expanded in any case; what takes part in recursion is, too.
        most: points up to which nothing is summarised.
        unbounded: functions with loops that only their callers may bound: summarised where there are more points than
            ``most`` in spite of all others, and facts are needed then.
        given: functions that are summarised in any case, if they can be.
        counted: functions that call themselves, and are summarised in any case.
        most_visits: up to which nothing is summarised for them; None where they are not asked for.
    """
    calls = _calls(graph_of, entry)
    blocks = {function: len(graph_of(function).blocks) for function in calls}
    never = {entry, *refused, *(function for function in calls if function in _reached(calls, calls[function]))}
    chosen = {function for function in given if function in calls and function not in never}
    chosen |= {function for function in counted if function in calls}
    at_first = len(chosen)
    while True:
        contexts = _contexts(calls, entry, chosen)
        points = {function: count * blocks[function] for function, count in contexts.items()}
        total = sum(points.values())
        if total <= (min(FEW, most) if len(chosen) > at_first else most):
            break
        # One that is chosen is still expanded where a function jumps to it at its end.
        able = [f for f, count in contexts.items() if count > 1 and f not in never and f not in chosen]
        candidates = [f for f in able if f not in unbounded] or (able if total > most else [])
        if not candidates:
            break
        chosen.add(max(candidates, key=lambda function: (points[function], -function)))
    if most_visits is not None:
        rounds = {function: _rounds(graph_of(function)) for function in calls}
        sites = {f: [rounds[f][block.address] for block, _ in _sites(graph_of(f))] for f in calls}
        each = {function: sum(own.values()) for function, own in rounds.items()}
        while True:
            repeated = _contexts(calls, entry, chosen, sites)
            visits = {function: count * each[function] for function, count in repeated.items()}
            total = sum(visits.values())
            able = [f for f, count in repeated.items() if count > 1 and f not in {*never, *chosen, *unbounded}]
            able = [f for f in able if visits[f] * _LEAST_PART >= total]
            if total <= most_visits or not able:
                break
            most_visits = min(FEW_VISITS, most_visits)
            chosen.add(max(able, key=lambda function: (visits[function], -function)))
    return frozenset(chosen)


def _rounds(graph: FunctionGraph) -> dict[int, int]:
    """How often an analysis visits each block of a function, as far as its loops tell."""
    blocks = graph.blocks
    successors = {
        address: [
            to for to in (*block.jumps, block.falls_to, *(block.resumes or ())) if to is not None and to in blocks
        ]
        for address, block in blocks.items()
    }
    found = dict.fromkeys(blocks, 1)
    for part in loop_forest(successors, graph.symbol.address, any_entries=True):
        for loop in part.walk() if isinstance(part, Loop) else ():
            for node in loop.nodes:
                found[node] *= _ROUNDS
    return found


def _calls(graph_of: Callable[[int], FunctionGraph], entry: int) -> dict[int, list[tuple[int, bool]]]:
    """What each function calls or jumps to, as often as its blocks do, and whether that is a call."""
    found: dict[int, list[tuple[int, bool]]] = {}
    todo = [entry]
    while todo:
        function = todo.pop()
        if function not in found:
            found[function] = [call for _, call in _sites(graph_of(function))]
            todo += [target for target, _ in found[function]]
    return found


def _sites(graph: FunctionGraph) -> list[tuple[Block, tuple[int, bool]]]:
    """The blocks that call or jump to functions, to which, and whether that is a call."""
    blocks = graph.blocks.values()
    found = [(block, (target, True)) for block in blocks for target in block.calls]
    return found + [(block, (target, False)) for block in blocks for target in block.tail_calls]


def _reached(calls: Mapping[int, list[tuple[int, bool]]], first: list[tuple[int, bool]]) -> set[int]:
    found, todo = set[int](), [target for target, _ in first]
    while todo:
        function = todo.pop()
        if function not in found:
            found.add(function)
            todo += [target for target, _ in calls[function]]
    return found


def _contexts(
    calls: Mapping[int, list[tuple[int, bool]]],
    entry: int,
    chosen: Collection[int],
    times: Mapping[int, list[int]] | None = None,
) -> dict[int, int]:
    """In how many contexts each function is expanded, each call counted ``times``; recursion is followed once."""
    order: list[int] = []
    seen: set[int] = set()
    todo: list[tuple[int, bool]] = [(entry, False)]
    while todo:
        function, is_done = todo.pop()
        if is_done:
            order.append(function)
        elif function not in seen:
            seen.add(function)
            todo.append((function, True))
            todo += [(target, False) for target, _ in calls[function] if target not in seen]
    place = {function: number for number, function in enumerate(reversed(order))}
    contexts = dict.fromkeys(place, 0)
    contexts[entry] = 1
    for function, number in place.items():
        own = times[function] if times is not None else [1] * len(calls[function])
        for (target, is_call), count in zip(calls[function], own, strict=True):
            if not (is_call and target in chosen) and place[target] > number:
                contexts[target] += contexts[function] * count
    return {function: count for function, count in contexts.items() if count}
