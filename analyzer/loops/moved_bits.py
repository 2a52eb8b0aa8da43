"""Loops that move the bits of words until one comes to a place that is tested, as a number is normalised.

``while (!(x & 0x800000)) x <<= 1;`` ends where some bit of ``x`` below that one is set. What is set where the loop is
entered follows from words that are known not to be 0, and from parts of them that are known to be 0: the exponent of a
number of a software floating point routine, say. The words may be several, as the halves of a ``double``.

Words: loop bound, back edges (docs/explanation/glossary.md).

*Soundness:* each bit of a term that is followed equals the OR of its sources, bits of other terms. So a bit that is
set at the header of a loop is set at the next one wherever each back edge has it among the sources, and no iteration
goes on in which a tested bit is set. The number of rounds from a bit to a tested one thus bounds the loop if that bit
is set at its entry; where it is only known that one of several is, the greatest of their numbers does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from wcet_probe.analyzer.graph.loop_forest import Loop, dominators, loops_of
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.bit_sources import (
    MOST_BITS,
    NONE,
    ONE,
    Bit,
    Kept,
    Sources,
    Spread,
    has_value,
    is_nonzero,
    is_word,
    known_zeros,
    union,
)
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.pcode.truths import RELATIONS, TRUTHS
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.plain_numbers import as_words
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import is_defined_before
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_ROUNDS = 256
_MOST_CHOICES = 4
_END_OF_BLOCK = (1 << 64, 0)

_Onward = dict[Bit, set[Bit]]


Lost = Mapping[Term, Collection[int]]
"""Symbols that edges within a loop kill, with the nodes that these edges lead to."""


def most_rounds(values: Values, shape: LoopShape, edges: Sequence[EdgeValues], lost: Lost) -> int | None:
    """Most executions of the header of a loop each of whose iterations takes one of ``edges``, if bits tell it.

    Args:
        values: what is known of the function.
        shape: the loop.
        edges: ways on from a block that every iteration passes.
        lost: what edges within the loop kill.

    *Soundness:* as said of the module. The first iteration goes on only if what an edge knows of symbols of the header
    is true of what the entry brings for them.
    """
    symbols = symbols_of_header(values, shape, lost)
    tested = _tested_of(symbols, values, edges)
    if not tested:
        return None
    rounds = _rounds(_moves(values, shape, symbols, lost), tested)
    found = [
        _rounds_from(values, entry, symbols, rounds, going_on) for entry in shape.entry_edges for going_on in edges
    ]
    return None if None in found else max((one for one in found if one is not None), default=None)


def most_taken(values: Values, shape: LoopShape, ending: Edge, lost: Lost) -> int | None:
    """How often the way back ``ending`` of a loop is taken for each entry of the loop, if bits tell it.

    Args:
        values: what is known of the function.
        shape: the loop.
        ending: one of its back edges.
        lost: what edges within the loop kill.

    *Soundness:* of the bits of level 0 each is tested to be 0 in an iteration that ends so; of those of level n, each
    may be, or is followed by one of a lower level where the iteration ends so. In any other iteration each is followed
    by one of its level, or of a lower one. So by induction the edge is not taken more than n times behind an iteration
    at whose begin a bit of level n is set.
    """
    symbols = symbols_of_header(values, shape, lost)
    moves = _moves(values, shape, symbols, lost)
    last, others = moves[ending], [onward for back, onward in moves.items() if back != ending]
    tested = _tested_of(symbols, values, [values.edges[ending]])
    found: dict[Bit, int] = {}
    for level in range(1, _MOST_ROUNDS):
        before = {bit for bit, targets in last.items() if not targets.isdisjoint(found)}
        new = (tested | before) - found.keys()
        while lost_on := {
            bit for bit in new for onward in others if onward.get(bit, set()).isdisjoint(new | found.keys())
        }:
            new -= lost_on
        if not new:
            break
        found |= dict.fromkeys(new, level)
    each = [_rounds_from(values, entry, symbols, found, None) for entry in shape.entry_edges]
    return None if None in each else max((one - 1 for one in each if one is not None), default=None)


def symbols_of_header(values: Values, shape: LoopShape, lost: Lost) -> dict[Term, Location]:
    """The symbols that a loop's header defines and that are not ``lost``, each with a location that holds it there."""
    own = ("phi", (shape.loop.header,))
    return {
        symbol: location
        for location, symbol in reversed([*values.states[shape.loop.header].locations.items()])
        if symbol not in lost and values.terms[symbol].opcode == "symbol" and values.terms[symbol].arguments[:2] == own
    }


def _tested_of(symbols: Collection[Term], values: Values, edges: Sequence[EdgeValues]) -> frozenset[Bit]:
    """The bits of ``symbols`` none of which is set where one of ``edges`` is taken."""
    tested = _tested(values, edges) if edges else NONE
    return frozenset(bit for bit in tested if bit[0] in symbols)


def _tested(values: Values, edges: Sequence[EdgeValues]) -> frozenset[Bit]:
    """The bits none of which is set where one of ``edges`` is taken."""
    each = []

    def is_relation(term: Term) -> bool:
        return values.terms[term].opcode in RELATIONS

    for edge in edges:
        spread, known = Spread(edge.state), edge.state.known.items()
        # What a predicated comparison tells is known besides, where it was executed.
        truths = [(term, bool(value.value)) for term, value in known if value.is_constant and is_relation(term)]
        each.append(
            union(
                _zero_bits(spread, edge.state, comparison)
                for condition, holds in (*edge.conditions, *truths)
                for comparison in relations(values.terms, condition, holds=holds)
            )
        )
    return frozenset.intersection(*each)


def _zero_bits(spread: Spread, state: State, comparison: tuple[str, bool, Term, Term]) -> frozenset[Bit]:
    """The bits that a comparison tells to be 0."""
    terms, (relation, is_signed, first, second) = state.terms, comparison
    bits, least, most = terms[first].bits, terms.value(first), terms.value(second)
    if not (is_word(state, first) and is_word(state, second)):
        return NONE
    if relation == "==" and most == 0:
        return union(spread(first))
    if relation not in {"<", "<="}:
        return NONE
    if is_signed and least is not None and signed(bits, least) == (-1 if relation == "<" else 0):
        return spread(second)[-1]
    limit = None if most is None else most + (relation == "<=")
    if not is_signed and limit and not limit & limit - 1:
        return union(spread(first)[limit.bit_length() - 1 :])
    return NONE


def _rounds(moves: Mapping[Edge, _Onward], tested: Collection[Bit]) -> Mapping[Bit, int]:
    """The iteration, 1 the first, in which the loop ends at the latest if this bit of a header's symbol is set."""
    found = dict.fromkeys(tested, 1)
    for number in range(2, _MOST_ROUNDS):
        reached = [
            {bit for bit, targets in onward.items() if not targets.isdisjoint(found)} for onward in moves.values()
        ]
        new = frozenset.intersection(*map(frozenset, reached)) - found.keys() if reached else NONE
        if not new:
            break
        found |= dict.fromkeys(new, number)
    return found


def _moves(values: Values, shape: LoopShape, symbols: Mapping[Term, Location], lost: Lost) -> Mapping[Edge, _Onward]:
    """For each way back, the bits of the header's symbols that are set in the next round if a bit of this one is."""
    iteration, found = _Iteration(values, shape.loop, lost), dict[Edge, _Onward]()
    for back in shape.back_edges:
        onward = found[back] = _Onward()
        for symbol, location in symbols.items():
            for place, sources in enumerate(iteration.kept(back, location) or ()):
                for source in sources:
                    onward.setdefault(source, set()).add((symbol, place))
    return found


class _Iteration:
    """What bits become within one iteration of a loop, where ways in it come together, too.

    *Soundness:* only nodes are looked through that each way to the edge in question passes, and passes once.
    """

    def __init__(self, values: Values, loop: Loop, lost: Lost) -> None:
        self._values, self._loop, self._lost = values, loop, lost
        self._plain = {part for part in loop.parts if not isinstance(part, Loop)}
        self._into: dict[int, list[Edge]] = {}
        successors: dict[int, list[int]] = {node: [] for node in loop.nodes}
        for edge in values.edges:
            if edge.source in loop.nodes and edge.target in loop.nodes and edge.target != loop.header:
                successors[edge.source].append(edge.target)
                self._into.setdefault(edge.target, []).append(edge)
        self._above = dominators(successors, loop.header)
        self._on_edges: dict[Edge, Kept] = {}
        self._joined: dict[Term, Sources | None] = {}

    def kept(self, edge: Edge, location: Location) -> Sources | None:
        """The bits that set the bits of ``location`` on ``edge``."""
        state = self._values.edges[edge].state
        term = state.read(location)
        if term is None or not is_word(state, term) or self._values.terms[term].bits > MOST_BITS:
            return None
        if edge not in self._on_edges:
            passed = self._passed(edge.source)
            self._on_edges[edge] = Kept(state, lambda symbol: self._of_join(symbol, passed, _END_OF_BLOCK))
        return self._on_edges[edge](term)

    def _passed(self, node: int) -> Sequence[int]:
        """The nodes that each way to the end of ``node`` passes, that first and the header last."""
        passed = [node]
        while passed[-1] != self._loop.header:
            passed.append(self._above[passed[-1]])
        return passed

    def _of_join(self, symbol: Term, passed: Sequence[int], now: tuple[int, int]) -> Sources | None:
        """The bits that set those of a symbol defined in the current iteration, before ``now`` in the first node."""
        name = self._values.terms[symbol].arguments
        match name:
            case ("phi", (int(node), *within), Location() as location) if node in self._plain and node in passed:
                pass
            case _:
                return None
        is_header = node == self._loop.header and not within
        is_later = node == passed[0] and within and not is_defined_before(name, node, now)
        if is_header or is_later or any(at != node for at in self._lost.get(symbol, ())):
            return None
        if symbol not in self._joined:
            parts = self._within(symbol, node) if within else [self.kept(edge, location) for edge in self._into[node]]
            known = [part for part in parts if part is not None]
            each = zip(*known, strict=True)
            is_known = known and len(known) == len(parts)
            self._joined[symbol] = tuple(frozenset.intersection(*of_bit) for of_bit in each) if is_known else None
        return self._joined[symbol]

    def _within(self, symbol: Term, node: int) -> Sequence[Sources | None]:
        """The bits that set those of what a symbol of a place within a block may be."""
        match self._values.terms[symbol].arguments:
            case ("phi", (int(), int(address), int(operation)), _):
                passed, before = self._passed(node), (address, operation - 1)
            case _:
                return []
        return [
            Kept(state, lambda one: self._of_join(one, passed, before))(term)
            if is_word(state, term) and self._values.terms[term].bits <= MOST_BITS
            else None
            for state, term in self._values.meetings(node).get(symbol, ())
        ]


def _rounds_from(
    values: Values,
    entry: Edge,
    symbols: Mapping[Term, Location],
    rounds: Mapping[Bit, int],
    going_on: EdgeValues | None,
) -> int | None:
    """The most iterations if the loop is entered by ``entry`` and its first iteration takes ``going_on``; None: any."""
    state = as_words(values.edges[entry].state).copy()
    if going_on is not None and not _may_go_on(state, symbols, going_on.state):
        return 1
    return _rounds_where(values, state, symbols, rounds, _MOST_CHOICES)


def _rounds_where(
    values: Values, state: State, symbols: Mapping[Term, Location], rounds: Mapping[Bit, int], choices: int
) -> int | None:
    """The most iterations if the loop is entered in ``state``, in each case of up to ``choices`` gamma nodes by itself.

    *Soundness:* the condition of a gamma node holds or does not; where it cannot be, the loop is not entered so.
    """
    most, chosen = _rounds_in(values, state, symbols, rounds)
    if most is not None or not chosen or not choices:
        return most
    condition, *_ = state.terms.operands(min(chosen))
    each = []
    for holds in (True, False):
        side = state.copy()
        if assume(side, condition, holds):
            each.append(_rounds_where(values, side, symbols, rounds, choices - 1))
    return None if None in each else max((one for one in each if one is not None), default=1)


def _rounds_in(
    values: Values, state: State, symbols: Mapping[Term, Location], rounds: Mapping[Bit, int]
) -> tuple[int | None, frozenset[Term]]:
    """As `_rounds_where`, all cases at once; and the gamma nodes that bits of ``symbols`` are of."""
    spread = Spread(state)
    from_bit: dict[Bit, int] = {}
    for symbol, location in symbols.items():
        term = state.read(location)
        if term is None or not is_word(state, term):
            continue
        for place, sources in enumerate(spread(term)):
            for source in sources if (symbol, place) in rounds else ():
                from_bit[source] = min(rounds[symbol, place], from_bit.get(source, _MOST_ROUNDS))
    if ONE in from_bit:
        return from_bit[ONE], frozenset()
    zeros = union(known_zeros(state, spread))
    found = [
        max(from_bit.get(bit, _MOST_ROUNDS) for bit in candidates)
        for sources in _known_nonzero(values, state, spread, from_bit)
        if (candidates := sources - zeros)
    ]
    chosen = frozenset(term for term, _ in from_bit if state.terms[term].opcode == "GAMMA")
    return min((most for most in found if most < _MOST_ROUNDS), default=None), chosen


def _may_go_on(state: State, symbols: Mapping[Term, Location], going_on: State) -> bool:
    """Whether a first iteration can go on; ``state``, of the entry, learns what it then knows.

    Args:
        state: changed.
        symbols: of the loop's header.
        going_on: where an iteration goes on.
    """
    for symbol, location in symbols.items():
        term, told = state.read(location), going_on.value(symbol)
        if term is None or not told.is_constant or told.value > 1:
            continue
        are_values = has_value(state, term) and has_value(going_on, symbol)
        if are_values and state.terms[term].opcode in TRUTHS and not assume(state, term, bool(told.value)):
            return False
    return True


def _known_nonzero(values: Values, state: State, spread: Spread, wanted: Mapping[Bit, int]) -> Iterator[frozenset[Bit]]:
    """Sets of bits one of which is set at least: those of terms that are not 0."""
    leaves = {bit[0] for bit in wanted if bit != ONE}
    for term in dict.fromkeys((*state.known, *sorted(leaves))):
        if state.terms[term].bits > MOST_BITS or not is_word(state, term):
            continue
        if (has_value(state, term) and 0 not in state.value(term)) or (
            term in leaves and (is_nonzero(state, term) or _stays_nonzero(values, term))
        ):
            yield union(spread(term))


def _stays_nonzero(values: Values, symbol: Term) -> bool:
    """Whether a symbol of another loop's header is not 0: it is entered so, and no round moves the last bit out.

    *Soundness:* by induction over the rounds. On a back edge each bit that is not known to be 0 is among the sources.
    A function that begins with the loop enters it by no edge, with what may be 0.
    """
    match values.terms[symbol].arguments:
        case ("phi", (int(header),), Location() as location) if header != 0:
            nodes = next((loop.nodes for loop in loops_of(values.forest) if loop.header == header), frozenset())
        case _:
            return False
    for edge, found in values.edges.items():
        if edge.target != header:
            continue
        state = as_words(found.state)
        term = state.read(location)
        if term is None or not has_value(state, term):
            return False
        spread = Spread(state)
        own = {(symbol, place) for place in range(values.terms[symbol].bits)}
        kept = union((*spread(term), *known_zeros(state, spread)))
        if not (own <= kept if edge.source in nodes else is_nonzero(state, term)):
            return False
    return bool(nodes)
