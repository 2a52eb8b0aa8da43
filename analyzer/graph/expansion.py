"""Which functions are not expanded where they are called, because the supergraph would have too many points.

A function that is called in many contexts has a copy of its blocks in each. The ones that have the most points that way
are taken first: they are small routines that are called everywhere, such as those of floating-point arithmetic, and
what they are called with seldom decides their longest path.

*Soundness:* none is needed: whatever is chosen, the analysis of the calls covers what the callee does
(`values.call_effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from wcet_probe.analyzer.graph.cfg import FunctionGraph

MOST_EXPANDED = 2_000
"""Points from which on functions are summarised: so many take some seconds, and twice as many twice as long."""
FEW = 400
"""Points that are aimed at then, and in the functions that are summarised."""
MANY_SUMMARISED = 5_000
"""Points of functions that are summarised, all together, from which on those that come later have `FEWEST`.

Where a hundred functions call each other, each has all the others in it."""
FEWEST = 40


def to_summarise(  # noqa: PLR0917  the functions, and what is known of some
    graph_of: Callable[[int], FunctionGraph],
    entry: int,
    refused: Collection[int],
    most: int = MOST_EXPANDED,
    unbounded: Collection[int] = (),
    given: Collection[int] = (),
    counted: Collection[int] = (),
) -> frozenset[int]:
    """The entries of functions to summarise, so that the others have few points if that can be.

    Args:
        graph_of: the blocks of the function that starts somewhere.
        entry: of the analysed function.
        refused: functions that are expanded in any case; what takes part in recursion is, too.
        most: points up to which nothing is summarised.
        unbounded: functions with loops that only their callers may bound: summarised where there are more points than
            ``most`` in spite of all others, and facts are needed then.
        given: functions that are summarised in any case, if they can be.
        counted: functions that call themselves, and are summarised in any case.
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
            return frozenset(chosen)
        # One that is chosen is still expanded where a function jumps to it at its end.
        able = [f for f, count in contexts.items() if count > 1 and f not in never and f not in chosen]
        candidates = [f for f in able if f not in unbounded] or (able if total > most else [])
        if not candidates:
            return frozenset(chosen)
        chosen.add(max(candidates, key=lambda function: (points[function], -function)))


def _calls(graph_of: Callable[[int], FunctionGraph], entry: int) -> dict[int, list[tuple[int, bool]]]:
    """What each function calls or jumps to, as often as its blocks do, and whether that is a call."""
    found: dict[int, list[tuple[int, bool]]] = {}
    todo = [entry]
    while todo:
        function = todo.pop()
        if function not in found:
            blocks = graph_of(function).blocks.values()
            own = [(target, True) for block in blocks for target in block.calls]
            own += [(target, False) for block in blocks for target in block.tail_calls]
            found[function] = own
            todo += [target for target, _ in own]
    return found


def _reached(calls: Mapping[int, list[tuple[int, bool]]], first: list[tuple[int, bool]]) -> set[int]:
    found, todo = set[int](), [target for target, _ in first]
    while todo:
        function = todo.pop()
        if function not in found:
            found.add(function)
            todo += [target for target, _ in calls[function]]
    return found


def _contexts(calls: Mapping[int, list[tuple[int, bool]]], entry: int, chosen: Collection[int]) -> dict[int, int]:
    """In how many contexts each function is expanded; recursion is followed once."""
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
        for target, is_call in calls[function]:
            if not (is_call and target in chosen) and place[target] > number:
                contexts[target] += contexts[function]
    return {function: count for function, count in contexts.items() if count}
