"""What an execution that returns does not come to, as far as values tell it, and the assumption that it returns.

Where the code alone tells it, `returning` and `cfg` have left it out before.

Words: dead end, assumption (docs/explanation/glossary.md).

*Soundness:* a bound holds for the executions that return; the blocks from which no path leads to a return are none of
theirs. The assumption names where control would come to them. A return stays of which it is only assumed that it goes
behind its call: what is left out behind it rests on that assumption.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.graph.supergraph import EXIT, Supergraph, restricted
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Assumption


def returning_part(values: Values) -> Supergraph:
    """The graph without what values can come to and not return from; the same graph where there is no such thing."""
    points = values.graph.points
    calling = {edge.source for edge in values.graph.edges if edge.way == "call"}
    # Where a fact says that recursion goes no deeper, a call has no edge: that no flow comes there is the fact's.
    ends = {index for index in values.states if points[index].block.calls and index not in calling}
    ends.update(values.unchecked_returns, (edge.source for edge in values.arriving.get(EXIT, ())))
    kept = values.order.before(ends)
    if kept >= values.states.keys():
        return values.graph
    gone = {e.target for e in values.edges if e.source in kept and e.target not in kept} - {EXIT}
    return restricted(values.graph, kept, {points[index].block.address for index in gone})


def dead_end_assumptions(image: Image, values: Values) -> Iterator[Assumption]:
    """That the call returns, where the graph of ``values`` has dead ends."""
    if values.graph.dead_ends:
        places = ", ".join(image.location(address) for address in values.graph.dead_ends)
        text = f"the call returns: control does not come to what never does, or is trapped, at {places}"
        yield Assumption("call-returns", text, "every emulated run returned")
