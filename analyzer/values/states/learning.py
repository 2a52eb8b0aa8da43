"""What a state learns: from a condition that holds, and what was proved elsewhere of symbols.

Words: predicate, abstract state, term (docs/explanation/glossary.md).

*Soundness:* what is learnt follows from what the state knows and from what is given; see each function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.truths import RELATIONS, TRUTHS
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.unknown_numbers import UNKNOWN_EXTENT
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_REFINEMENT_DEPTH = 4
_MOST_REMEMBERED = 1 << 16

# The same few questions are asked at each point of a function.
_apply = lru_cache(_MOST_REMEMBERED)(strided.apply)
_meet = lru_cache(_MOST_REMEMBERED)(strided.meet)
_constrain = lru_cache(_MOST_REMEMBERED)(strided.constrain)


class SymbolRange(NamedTuple):
    """What a symbol is known to be from elsewhere, where it is of ``base``."""

    name: SymbolName
    bits: int
    base: Base
    value: StridedInterval


class SymbolSteps(NamedTuple):
    """What a symbol of ``base`` is in round t of its loop: ``start + amount * t``, without wrapping around."""

    name: SymbolName
    bits: int
    base: Base
    start: int
    amount: int


def assume(state: State, condition: Term, holds: bool) -> bool:  # noqa: FBT001  a truth value it is
    """Learn that ``condition`` holds, or that it does not; False where it cannot be.

    *Soundness:* of a disjunction that is known to hold, and all parts of which but one do not, that one holds. Of two
    truth values that are known to be the same, what is known of one holds of the other.
    """
    if not _assume(state, condition, holds):
        return False
    terms = state.terms
    for term in [term for term, value in state.known.items() if value.low and _says_same_truth(state, term)]:
        for one, other in permutations(terms.operands(term)):
            wanted, found = state.value(one), state.value(other)
            if wanted.is_constant and found != wanted:
                _keep(state, other, wanted)  # what is learnt from it may ask for it again
                if found.is_constant or not _assume(state, other, bool(wanted.value)):
                    return False
    for term in [term for term, value in state.known.items() if terms[term].opcode == "BOOL_OR" and value.low]:
        left = [part for part in _disjuncts(state, term) if 1 in state.value(part)]
        if len(left) <= 2:  # one of them may be decided by what gamma nodes in it choose
            left = [part for part in (_chosen(state, part) for part in left) if 1 in state.value(part)]
        if not left or (len(left) == 1 and 0 in state.value(left[0]) and not _assume(state, left[0], True)):
            return False
    return True


def _says_same_truth(state: State, term: Term) -> bool:
    """Whether ``term`` says that a symbol for a condition, see `joins`, and the condition are the same."""
    terms = state.terms
    return terms[term].opcode == "INT_EQUAL" and any(terms[one].opcode in TRUTHS for one in terms.operands(term))


def _disjuncts(state: State, term: Term) -> list[Term]:
    found, todo = [], [term]
    while todo:
        one = todo.pop()
        if state.terms[one].opcode == "BOOL_OR":
            todo += reversed(state.terms.operands(one))
        else:
            found.append(one)
    return found


def _chosen(state: State, term: Term) -> Term:
    """``term`` with the parts of gamma nodes that ``state`` knows to be chosen."""
    terms = state.terms
    node, operands = terms[term], terms.operands(term)
    if node.opcode == "GAMMA" and state.value(operands[0]).is_constant:
        return _chosen(state, operands[1 if state.value(operands[0]).value else 2])
    parts = tuple(_chosen(state, operand) for operand in operands)
    again = None if parts == operands or node.opcode == "GAMMA" else terms.apply(node.opcode, parts, node.bits)
    return term if again is None else again


def _assume(state: State, condition: Term, holds: bool) -> bool:  # noqa: FBT001
    terms = state.terms
    node, operands = terms[condition], terms.operands(condition)
    wanted = strided.constant(node.bits, int(holds))
    value = _meet(state.value(condition), wanted)
    if value.is_bottom:
        return False
    match node.opcode:
        case "const":
            return True
        case "BOOL_NEGATE" | "INT_ZEXT":
            return _assume(state, operands[0], holds != (node.opcode == "BOOL_NEGATE"))
        case "BOOL_AND" | "BOOL_OR" if (node.opcode == "BOOL_AND") == holds:
            _learn_condition(state, condition, holds=holds)
            return _assume(state, operands[0], holds) and _assume(state, operands[1], holds)
        case "GAMMA":
            return _assume_gamma(state, condition, wanted, holds=holds)
    _learn_condition(state, condition, holds=holds)
    if node.opcode in RELATIONS and state.comparable(node.opcode, operands):
        left, right = operands
        for term, refined in zip(
            operands, _constrain(node.opcode, state.value(left), state.value(right), holds), strict=True
        ):
            if not _refine(state, term, refined, _REFINEMENT_DEPTH):
                return False
    return True


def settle_stack_addresses(state: State) -> None:
    """Let locations hold as a plain offset what is known to be one place of the stack, however it was chosen.

    What predicated instructions did to the stack pointer is decided where a branch tests their condition again, as in
    ``popgt {r4, lr}; bxgt lr``. Where ways meet later, the condition is forgotten and the choice would be open again.

    *Soundness:* such an address is the stack pointer at entry and the offset that the state knows.
    """
    terms = state.terms
    pointer = terms.symbol(("stack pointer",), 32)
    known = state.value(pointer)
    if state.bases.get(pointer) is not Base.STACK or not known.is_constant or known.value:
        return
    for location in state.holding(terms.made_of(pointer)):
        term = state.locations[location]
        if len(terms.symbols(term)) > 1 and state.base(term) is Base.STACK:
            offset = state.value(term)
            plain = (
                terms.apply("INT_ADD", (pointer, terms.constant(offset.value, 32)), 32) if offset.is_constant else None
            )
            if plain is not None:
                state.set_location(location, plain)


def _learn_condition(state: State, condition: Term, *, holds: bool) -> None:
    bits, opposite = state.terms[condition].bits, state.terms.negated(condition)
    _keep(state, condition, strided.constant(bits, int(holds)))
    if state.terms[opposite].opcode != "BOOL_NEGATE":
        _keep(state, opposite, strided.constant(bits, int(not holds)))


def _assume_gamma(state: State, gamma: Term, wanted: StridedInterval, *, holds: bool) -> bool:
    """Learn that a gamma node of truth values is ``wanted``: where one part cannot be it, the other was chosen."""
    condition, *parts = state.terms.operands(gamma)
    _keep(state, gamma, wanted)
    for part, other, side in ((parts[0], parts[1], True), (parts[1], parts[0], False)):
        elsewhere = state.copy()
        if not assume(elsewhere, condition, not side) or _meet(elsewhere.value(other), wanted).is_bottom:
            return assume(state, condition, side) and assume(state, part, holds)
    return True


def learn(state: State, term: Term, value: StridedInterval) -> None:
    """``term`` is among ``value``, as was proved elsewhere."""
    narrowed = _meet(state.value(term), value)
    if not narrowed.is_bottom:
        _keep(state, term, narrowed)


def learn_ranges(state: State, ranges: Iterable[SymbolRange]) -> None:
    """Learn what was proved elsewhere of symbols that locations are made of.

    *Soundness:* of a symbol that is not live, nothing is learnt: it may be given any value
    (`joins.live_symbols`).
    """
    for one in ranges:
        symbol = _live(state, one)
        if symbol is not None:
            learn(state, symbol, one.value)


def learn_round(state: State, steps: Iterable[SymbolSteps]) -> None:
    """Learn of several counters of a loop what follows from all of them being in the same round; so of each loop.

    *Soundness:* as of `learn_ranges`; symbols of one header are of one loop.
    """
    loops: dict[object, list[tuple[Term, SymbolSteps]]] = {}
    for one in steps:
        symbol = _live(state, one)
        if symbol is not None:
            loops.setdefault(one.name[1], []).append((symbol, one))
    for counters in loops.values():
        _learn_round(state, counters)


def _learn_round(state: State, counters: Sequence[tuple[Term, SymbolSteps]]) -> None:
    first, last = 0, UNKNOWN_EXTENT
    for symbol, one in counters:
        start = strided.constant(one.bits, one.start)
        ends = (state.value(symbol), start) if one.amount > 0 else (start, state.value(symbol))
        low, high = strided.apply("INT_SUB", ends, one.bits).unsigned_range()
        first, last = max(first, -(-low // abs(one.amount))), min(last, high // abs(one.amount))
    for symbol, one in counters if first <= last < UNKNOWN_EXTENT else ():
        values = (one.start + one.amount * first, one.start + one.amount * last)
        if abs(values[1] - values[0]) < UNKNOWN_EXTENT:
            learn(state, symbol, strided.between(one.bits, min(values), max(values), abs(one.amount)))


def _live(state: State, asserted: SymbolRange | SymbolSteps) -> Term | None:
    symbol = state.terms.symbol(asserted.name, asserted.bits)
    live_symbols = any(symbol in state.terms.symbols(term) for term in state.locations.values())
    return symbol if live_symbols and state.base(symbol) is asserted.base else None


def _keep(state: State, term: Term, value: StridedInterval) -> None:
    if state.terms[term].opcode != "const":
        state.set_known(term, value)


def _refine(state: State, term: Term, value: StridedInterval, depth: int) -> bool:
    """Learn that ``term`` is among ``value``, and what follows for what it is made of."""
    before = state.value(term)
    after = _meet(before, value)
    if after.is_bottom:
        return False
    if after == before or state.terms[term].opcode == "const":
        return True
    _keep(state, term, after)
    if depth == 0:
        return True
    is_possible = _refine_arithmetic(state, term, after, depth) and _refine_bits(state, term, after, depth)
    return is_possible and not state.value(term).is_bottom


def _second(terms: Terms, term: Term) -> int | None:
    """The constant that is the second of two operands."""
    operands = terms.operands(term)
    return terms.value(operands[1]) if len(operands) == 2 else None


def _refine_arithmetic(state: State, term: Term, after: StridedInterval, depth: int) -> bool:
    """What follows for the parts of sums, differences and products, and of choices."""
    node, operands, constant = state.terms[term], state.terms.operands(term), _second(state.terms, term)
    match node.opcode:
        case "INT_ADD" | "INT_SUB" if not _refine_sum(state, term, after, depth):
            return False
        case "INT_ADD" if constant is not None:
            shifted = _apply("INT_SUB", (after, strided.constant(node.bits, constant)), node.bits)
            return _refine(state, operands[0], shifted, depth - 1)
        case "INT_SUB":
            return _refine_difference(state, operands, after, depth)
        case "INT_MULT" if constant and after.is_constant:
            return _refine_factor(state, term, constant, after.value, depth)
        case "INT_LEFT" if constant and constant < node.bits and after.is_constant:
            return _refine_factor(state, term, 1 << constant, after.value, depth)
        case "GAMMA":
            return _refine_gamma(state, operands, after, depth)
    return True


def _refine_bits(state: State, term: Term, after: StridedInterval, depth: int) -> bool:
    """What follows for a word of which ``term`` tells some bits."""
    node, operands, constant = state.terms[term], state.terms.operands(term), _second(state.terms, term)
    match node.opcode:
        case "INT_ZEXT":
            low, high = after.unsigned_range()
            bits = state.terms[operands[0]].bits
            if high < 1 << bits:
                return _refine(state, operands[0], strided.between(bits, low, high), depth - 1)
        case "INT_SEXT":
            low, high = after.signed_range()
            bits = state.terms[operands[0]].bits
            if -(1 << bits - 1) <= low <= high < 1 << bits - 1:
                return _refine(state, operands[0], strided.between(bits, low, high), depth - 1)
        case "SUBPIECE" if constant == 0 and state.base(operands[0]) is Base.NUMBER:
            whole = _with_low_part(state.value(operands[0]), after)
            return whole is not None and _refine(state, operands[0], whole, depth - 1)
        case "INT_AND" if constant:
            if after.is_constant and not constant & (constant + 1):
                residues = strided.residue_class(node.bits, after.value, constant + 1)
                if not _refine_low_bits(state, term, residues, depth):
                    return False
            least, most = after.unsigned_range()
            lowest = constant & -constant
            if not most and constant == (1 << node.bits) - lowest:  # no upper bit is set
                return _refine(state, operands[0], strided.between(node.bits, 0, lowest - 1), depth - 1)
            if least and state.base(operands[0]) is Base.NUMBER:
                return _refine_masked(state, operands[0], constant, least, depth - 1)
        case "INT_RIGHT" | "LZCOUNT" if constant is not None or len(operands) == 1:
            wide = _by_its_upper_bits(state, operands[0], constant, after)
            return wide is None or _refine(state, operands[0], wide, depth - 1)
        case "INT_SRIGHT" if constant is not None and constant < node.bits and not after.is_bottom:
            low, high = after.signed_range()
            wide = strided.between(node.bits, low << constant, (high << constant) + (1 << constant) - 1)
            return _refine(state, operands[0], wide, depth - 1)
    return True


def _by_its_upper_bits(state: State, word: Term, shift: int | None, told: StridedInterval) -> StridedInterval | None:
    """What ``word`` is, of which ``told`` is what it is shifted right by ``shift``, or else how many zeros lead it."""
    bits, (low, high) = state.terms[word].bits, told.unsigned_range()
    if shift is None:
        least = 1 << bits - 1 - high if high < bits else 0
        return strided.between(bits, least, (1 << bits - low) - 1) if state.base(word) is Base.NUMBER else None
    return strided.between(bits, low << shift, (high << shift) + (1 << shift) - 1) if shift < bits else None


def _with_low_part(whole: StridedInterval, part: StridedInterval) -> StridedInterval | None:
    """The hull of those of ``whole`` whose low bits are between the ends of ``part``; None where there are none."""
    modulus, (low, high) = 1 << part.bits, part.unsigned_range()
    first, last = whole.low, whole.low + whole.stride * whole.steps
    # Up to the next one whose low bits are from `low` to `high`, and down to the one before.
    first += max(0, low - first % modulus) if first % modulus <= high else modulus + low - first % modulus
    last -= max(0, last % modulus - high) if last % modulus >= low else last % modulus + modulus - high
    return strided.between(whole.bits, first, last) if first <= last else None


def _refine_sum(state: State, total: Term, value: StridedInterval, depth: int) -> bool:
    """The parts of a sum that are not known: a number, or the offset of an address of the stack; or two numbers."""
    terms, form = state.terms, state.terms.linear(total)
    parts = {part: state.value(part) for part in form.coefficients}
    unknown = [part for part, known in parts.items() if not known.is_constant]
    if len(unknown) == 2:
        return _refine_two(state, form, unknown, value, depth)
    if len(unknown) != 1 or any(state.base(part) is Base.ANY for part in (total, *parts)):
        return True
    (own,) = unknown
    factor, modulus = form.coefficients[own], 1 << form.bits
    if factor not in (1, modulus - 1) or terms[own].bits != form.bits:
        return True
    rest = form.constant + sum(form.coefficients[part] * known.value for part, known in parts.items() if part != own)
    known = strided.constant(form.bits, rest)
    return _refine(
        state, own, _apply("INT_SUB", (value, known) if factor == 1 else (known, value), form.bits), depth - 1
    )


def _refine_two(state: State, form: Linear, unknown: Sequence[Term], value: StridedInterval, depth: int) -> bool:
    """Each of two numbers that are added, by what the other may be.

    Of a difference a range of its own would keep loops from being followed to a better bound (`loops.few_values`).
    """
    bits = form.bits
    if any(state.base(part) is not Base.NUMBER or state.terms[part].bits != bits for part in form.coefficients):
        return True
    if any(form.coefficients[part] != 1 for part in unknown):
        return True
    for own in unknown:
        rest = strided.constant(bits, form.constant)
        for part, factor in form.coefficients.items():
            if part != own:
                multiple = _apply("INT_MULT", (state.value(part), strided.constant(bits, factor)), bits)
                rest = _apply("INT_ADD", (rest, multiple), bits)
        if not _refine(state, own, _apply("INT_SUB", (value, rest), bits), depth - 1):
            return False
    return True


def _refine_factor(state: State, product: Term, factor: int, value: int, depth: int) -> bool:
    """What is multiplied by ``factor``, modulo what that leaves of it."""
    bits, zeros = state.terms[product].bits, (factor & -factor).bit_length() - 1
    if value & (1 << zeros) - 1:
        return True
    modulus = 1 << bits - zeros
    residue = (value >> zeros) * pow(factor >> zeros, -1, modulus) % modulus
    return _refine_low_bits(state, product, strided.residue_class(bits, residue, modulus), depth)


def _refine_low_bits(state: State, told: Term, residues: StridedInterval, depth: int) -> bool:
    """The operand whose low bits ``told`` is made of: among ``residues``.

    *Soundness:* ``told`` is a number. Of an address of the stack it is made of no other bits than those that its offset
    tells, see `address_low_bits.is_low_part`.
    """
    operand = state.terms.operands(told)[0]
    if state.base(told) is not Base.NUMBER or state.base(operand) is Base.ANY:
        return True
    return _refine(state, operand, residues, depth - 1)


def _refine_difference(state: State, operands: Sequence[Term], difference: StridedInterval, depth: int) -> bool:
    """Of two addresses of the stack, too, it is the difference of what is known of them, their offsets."""
    minuend, subtrahend = map(state.value, operands)
    if state.base(operands[0]) is not state.base(operands[1]) or state.base(operands[0]) is Base.ANY:
        return True
    if subtrahend.is_constant:
        return _refine(state, operands[0], _apply("INT_ADD", (difference, subtrahend), minuend.bits), depth - 1)
    if minuend.is_constant:
        return _refine(state, operands[1], _apply("INT_SUB", (minuend, difference), minuend.bits), depth - 1)
    return True


def _refine_masked(state: State, masked: Term, mask: int, least: int, depth: int) -> bool:
    """What a larger mask leaves of ``masked`` is no less than what ``mask`` leaves, which is ``least`` or more."""
    terms = state.terms
    at_least = strided.between(terms[masked].bits, least, (1 << terms[masked].bits) - 1)
    for other, larger in tuple(terms.masks(masked).items()):  # learning may make terms
        if larger & mask == mask and not _refine(state, other, at_least, 0):
            return False
    return _refine(state, masked, at_least, depth)


def _refine_gamma(state: State, operands: Sequence[Term], value: StridedInterval, depth: int) -> bool:
    """Where one part cannot be among ``value``, the other was chosen."""
    condition, *parts = operands
    for part, other, holds in ((parts[0], parts[1], True), (parts[1], parts[0], False)):
        if (
            state.base(part) is state.base(other)
            and _meet(state.under(other, condition, holds=not holds), value).is_bottom
        ):
            return assume(state, condition, holds) and _refine(state, part, value, depth - 1)
    return True
