"""Loops that move the bits of words until one comes to a place that is tested, as a number is normalised.

``while (!(x & 0x800000)) x <<= 1;`` ends where some bit of ``x`` below that one is set. What is set where the loop is
entered follows from words that are known not to be 0, and from parts of them that are known to be 0: the exponent of a
number of a software floating point routine, say. The words may be several, as the halves of a ``double``.

*Soundness:* each bit of a term that is followed equals the OR of its sources, bits of other terms. So a bit that is
set at the header of a loop is set at the next one wherever each back edge has it among the sources, and no iteration
goes on in which a tested bit is set. The number of rounds from a bit to a tested one thus bounds the loop if that bit
is set at its entry; where it is only known that one of several is, the greatest of their numbers does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.pcode.truths import RELATIONS, TRUTHS
from wcet_probe.analyzer.values.analysis import EdgeValues, Values
from wcet_probe.analyzer.values.conditions import relations
from wcet_probe.analyzer.values.learning import assume
from wcet_probe.analyzer.values.locations import Location
from wcet_probe.analyzer.values.loop_shapes import LoopShape
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.terms import Term

Bit = tuple[Term, int]
"""A bit of a term, 0 the lowest."""

_ONE: Bit = (-1, 0)
"""The source of a bit that is always set."""
_NONE = frozenset[Bit]()
_MOST_ROUNDS = 256
_MOST_BITS = 64

_Sources = tuple[frozenset[Bit], ...]


class Spread:
    """The sources of the bits of terms, as far as ``state`` decides which parts of gamma nodes are chosen.

    What is not put together by moving bits is its own source.
    """

    def __init__(self, state: State) -> None:
        self._state, self._terms = state, state.terms
        self._known: dict[Term, _Sources] = {}

    def __call__(self, term: Term) -> _Sources:
        """The sources of each bit of ``term``."""
        if term not in self._known:
            own: _Sources = tuple(frozenset({(term, place)}) for place in range(self._terms[term].bits))
            self._known[term] = own
            self._known[term] = self._moved(term) or own
        return self._known[term]

    def _moved(self, term: Term) -> _Sources | None:
        terms, node, operands = self._terms, self._terms[term], self._terms.operands(term)
        constant = terms.value(operands[1]) if len(operands) == 2 else None
        found: Sequence[frozenset[Bit]] | None = None
        match node.opcode:
            case "const":
                found = _of_number(terms.value(term) or 0, node.bits)
            case "INT_AND" if constant is not None:
                found = [one if constant >> place & 1 else _NONE for place, one in enumerate(self(operands[0]))]
            case "INT_RIGHT" if constant is not None:
                found = self(operands[0])[constant:]
            case "SUBPIECE" if constant is not None:
                found = self(operands[0])[8 * constant :][: node.bits]
            case "INT_ZEXT":
                found = self(operands[0])
            case "INT_OR" | "BOOL_OR":
                found = [one | other for one, other in zip(*map(self, operands), strict=True)]
            case "CHOICE" if (decided := self._state.value(operands[0])).is_constant:
                found = self(operands[1 if decided.value else 2])
            case _:
                found = self._truth(node.opcode, operands) or self._sum(term)
        return None if found is None else (*found, *[_NONE] * (node.bits - len(found)))

    def _truth(self, opcode: str, operands: Sequence[Term]) -> Sequence[frozenset[Bit]] | None:
        """A truth value that says whether one of some bits is set."""
        first, second = (*map(self._terms.value, operands[:2]), None, None)[:2]
        if opcode == "INT_NOTEQUAL" and second == 0:
            return [_union(self(operands[0]))]
        if (opcode == "INT_SLESS" and second == 0) or (opcode == "INT_CARRY" and operands[0] == operands[1]):
            return self(operands[0])[-1:]
        if opcode == "INT_LESSEQUAL" and first and not first & first - 1:
            return [_union(self(operands[1])[first.bit_length() - 1 :])]
        return None

    def _sum(self, term: Term) -> _Sources | None:
        """A sum whose parts have no bit in common, so that nothing is carried."""
        form = self._terms.linear(term)
        if term in form.coefficients:
            return None
        found = list(_of_number(form.constant, form.bits))
        for part, factor in form.coefficients.items():
            if factor & factor - 1 or self._terms[part].bits != form.bits:
                return None
            for place, one in enumerate(self(part)[: form.bits - factor.bit_length() + 1], factor.bit_length() - 1):
                if one and found[place]:
                    return None
                found[place] |= one
        return tuple(found)


def _of_number(number: int, bits: int) -> _Sources:
    return tuple(frozenset({_ONE}) if number >> place & 1 else _NONE for place in range(bits))


def _union(parts: Iterable[frozenset[Bit]]) -> frozenset[Bit]:
    return _NONE.union(*parts)


def most_rounds(values: Values, shape: LoopShape, edges: Sequence[EdgeValues], lost: Collection[Term]) -> int | None:
    """Most executions of the header of a loop each of whose iterations takes one of ``edges``, if bits tell it.

    Args:
        values: what is known of the function.
        shape: the loop.
        edges: ways on from a block that every iteration passes.
        lost: symbols of the header that edges within the loop kill.

    *Soundness:* as said of the module. The first iteration goes on only if what an edge knows of symbols of the header
    is true of what the entry brings for them.
    """
    symbols = {
        symbol: location
        for location, symbol in reversed([*values.states[shape.loop.header].locations.items()])
        if values.terms[symbol].opcode == "leaf" and values.terms[symbol].arguments[:2] == ("phi", (shape.loop.header,))
    }
    tested = _tested(values, edges) if edges else _NONE
    tested = frozenset(bit for bit in tested if bit[0] in symbols and bit[0] not in lost)
    if not tested:
        return None
    rounds = _rounds(values, shape, symbols, tested)
    found = [
        _rounds_from(values, entry, symbols, rounds, going_on, lost)
        for entry in shape.entry_edges
        for going_on in edges
    ]
    return None if None in found else max((one for one in found if one is not None), default=None)


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
            _union(
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
    if not (_is_number(state, first) and _is_number(state, second)):
        return _NONE
    if relation == "==" and most == 0:
        return _union(spread(first))
    if relation not in {"<", "<="}:
        return _NONE
    if is_signed and least is not None and signed(bits, least) == (-1 if relation == "<" else 0):
        return spread(second)[-1]
    limit = None if most is None else most + (relation == "<=")
    if not is_signed and limit and not limit & limit - 1:
        return _union(spread(first)[limit.bit_length() - 1 :])
    return _NONE


def _is_number(state: State, term: Term) -> bool:
    """Whether nothing that ``term`` is made of may be a stack address, which is known by its offset only."""
    return state.bases.keys().isdisjoint(state.terms.symbols(term))


def _rounds(
    values: Values, shape: LoopShape, symbols: Mapping[Term, Location], tested: Collection[Bit]
) -> Mapping[Bit, int]:
    """The iteration, 1 the first, in which the loop ends at the latest if this bit of a header's symbol is set."""
    moves = []
    for back in shape.back_edges:
        state, onward = values.edges[back].state, dict[Bit, set[Bit]]()
        spread = Spread(state)
        for symbol, location in symbols.items():
            after = state.read(location)
            if after is None or not _is_number(state, after) or values.terms[after].bits > _MOST_BITS:
                continue
            for place, sources in enumerate(spread(after)):
                for source in sources:
                    onward.setdefault(source, set()).add((symbol, place))
        moves.append(onward)
    found = dict.fromkeys(tested, 1)
    for number in range(2, _MOST_ROUNDS):
        reached = [{bit for bit, targets in onward.items() if not targets.isdisjoint(found)} for onward in moves]
        new = frozenset.intersection(*map(frozenset, reached)) - found.keys() if reached else _NONE
        if not new:
            break
        found |= dict.fromkeys(new, number)
    return found


def _rounds_from(  # noqa: PLR0917  the entry, and what is known of the loop
    values: Values,
    entry: Edge,
    symbols: Mapping[Term, Location],
    rounds: Mapping[Bit, int],
    going_on: EdgeValues,
    lost: Collection[Term],
) -> int | None:
    """The most iterations if the loop is entered by ``entry`` and its first iteration takes ``going_on``."""
    state = values.edges[entry].state.copy()
    for symbol, location in symbols.items():
        term, told = state.read(location), going_on.state.value(symbol)
        if term is None or symbol in lost or not told.is_constant or told.value > 1:
            continue
        is_number = _is_number(state, term) and _is_number(going_on.state, symbol)
        if is_number and state.terms[term].opcode in TRUTHS and not assume(state, term, bool(told.value)):
            return 1
    spread = Spread(state)
    from_bit: dict[Bit, int] = {}
    for symbol, location in symbols.items():
        term = state.read(location)
        if term is None or not _is_number(state, term):
            continue
        for place, sources in enumerate(spread(term)):
            for source in sources if (symbol, place) in rounds else ():
                from_bit[source] = min(rounds[symbol, place], from_bit.get(source, _MOST_ROUNDS))
    if _ONE in from_bit:
        return from_bit[_ONE]
    zeros = _union(_known_zeros(state, spread))
    found = [
        max(from_bit.get(bit, _MOST_ROUNDS) for bit in candidates)
        for sources in _known_nonzero(values, state, spread, from_bit)
        if (candidates := sources - zeros)
    ]
    return min((most for most in found if most < _MOST_ROUNDS), default=None)


def _known_zeros(state: State, spread: Spread) -> Iterator[frozenset[Bit]]:
    """Bits that are 0, by what is known of terms: a value below 2**n has n bits, a multiple of 2**n ends in zeros."""
    for term, value in state.known.items():
        if _is_number(state, term) and not value.is_bottom and state.terms[term].bits <= _MOST_BITS:
            high, low = _high_zeros(value), _low_zeros(value)
            if high < value.bits or low:
                parts = spread(term)
                yield _union((*parts[:low], *parts[high:]))


def _high_zeros(value: StridedInterval) -> int:
    return value.unsigned_range()[1].bit_length()


def _low_zeros(value: StridedInterval) -> int:
    both = value.low | (value.stride if value.steps else 0)
    return (both & -both).bit_length() - 1 if both else value.bits


def _known_nonzero(values: Values, state: State, spread: Spread, wanted: Mapping[Bit, int]) -> Iterator[frozenset[Bit]]:
    """Sets of bits one of which is set at least: those of terms that are not 0."""
    leaves = {bit[0] for bit in wanted if bit != _ONE}
    for term in dict.fromkeys((*state.known, *sorted(leaves))):
        if state.terms[term].bits > _MOST_BITS or not _is_number(state, term):
            continue
        if 0 not in state.value(term) or (term in leaves and _stays_nonzero(values, term)):
            yield _union(spread(term))


def _stays_nonzero(values: Values, symbol: Term) -> bool:
    """Whether a symbol of another loop's header is not 0: it is entered so, and no round moves the last bit out.

    *Soundness:* by induction over the rounds. On a back edge each bit that is not known to be 0 is among the sources.
    """
    match values.terms[symbol].arguments:
        case ("phi", (int(header),), Location() as location):
            nodes = next((loop.nodes for loop in loops_of(values.forest) if loop.header == header), frozenset())
        case _:
            return False
    for edge, found in values.edges.items():
        if edge.target != header:
            continue
        state, term = found.state, found.state.read(location)
        if term is None or not _is_number(state, term):
            return False
        spread = Spread(state)
        own = {(symbol, place) for place in range(values.terms[symbol].bits)}
        kept = _union((*spread(term), *_known_zeros(state, spread)))
        if not (own <= kept if edge.source in nodes else 0 not in state.value(term)):
            return False
    return bool(nodes)
