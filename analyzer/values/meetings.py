"""What a symbol stands for that is defined where ways within one block meet.

Words: join, symbolic variable (docs/explanation/glossary.md).

*Soundness:* a block is executed once more on what is known at its entry. What that tells of the places within it holds
in each execution of the block, as what it told when the values were analysed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wcet_probe.analyzer.graph.supergraph import Supergraph
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

Meetings = Callable[[int], Mapping[Term, Sequence[tuple[State, Term]]]]
"""For a point: symbols that are defined within its block, each with the terms that it may be and their states."""


def no_meetings(_: int) -> Mapping[Term, Sequence[tuple[State, Term]]]:
    """Nothing is told."""
    return {}


def meetings(lifter: Lifter, terms: Terms, memory: Memory, graph: Supergraph, states: Mapping[int, State]) -> Meetings:
    """The meetings within the blocks of ``graph``, looked for where they are asked for.

    Args:
        lifter: of the image.
        terms: that the states are made of.
        memory: of the analysis.
        graph: of the function.
        states: what it knows at the entry of each point.

    *Soundness:* as said of the module; a symbol is left out that one of the ways does not know.
    """
    known: dict[int, Mapping[Term, Sequence[tuple[State, Term]]]] = {}

    def within(point: int) -> Mapping[Term, Sequence[tuple[State, Term]]]:
        if point not in known:
            found: dict[Term, list[tuple[State, Term]]] = {}
            open_ones = set[Term]()

            def meet(place: tuple[int, ...], merging: Sequence[State], merged: State) -> None:
                for location, symbol in merged.locations.items():
                    if terms[symbol].opcode == "symbol" and terms[symbol].arguments == ("phi", place, location):
                        held = [(way.copy(), term) for way in merging if (term := way.read(location)) is not None]
                        found.setdefault(symbol, []).extend(held)
                        open_ones.update({symbol} if len(held) < len(merging) else ())

            transfer = Transfer(lifter, terms, memory, meet)
            transfer.block(point, graph.points[point].block.instructions, states[point].copy())
            known[point] = {symbol: held for symbol, held in found.items() if symbol not in open_ones}
        return known[point]

    return within
