"""Symbolic values: terms of a table, simplified as they are made, and their linear forms.

The same computation on the same symbols is the same term, so copies of a value share what is learnt of it.

Words: term, linear form (docs/explanation/glossary.md).

*Soundness:* each simplification is an identity of bit vectors (tested against the operations on random values).
"""

from __future__ import annotations

from collections.abc import Sequence

from wcet_probe.analyzer.pcode.semantics import MAY_BE_UNDEFINED, operation, signed
from wcet_probe.analyzer.pcode.truths import MIRRORED, OPPOSITES, TRUTHS
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.quotients import most, quotient
from wcet_probe.analyzer.values.symbolic.term_table import Node, Term, TermTable

_MOST_DEPTH = 24
_MOST_GAMMA_DEPTH = 10
_MOST_DEPTH_OF_CONDITION = 20
"""Of one between plain values, as stack pointers and saved registers are, so that no choice is lost among them."""
_PLAIN_DEPTH = 1
_SMALL = 16
_COMMUTATIVE = frozenset({"INT_ADD", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "INT_EQUAL", "INT_NOTEQUAL"})


class Terms(TermTable):
    """A table of terms that are simplified as they are made."""

    def __init__(self) -> None:
        super().__init__()
        self._linear: dict[Term, Linear] = {}
        self._applied: dict[tuple[str, tuple[Term, ...], int], Term | None] = {}

    def apply(self, opcode: str, arguments: tuple[Term, ...], bits: int) -> Term | None:
        """``opcode`` on ``arguments`` with a result of ``bits`` bits; None where that would be too deep or undefined.

        *Soundness:* a term has one value wherever its operands have, and an undefined result may be another each time:
        a quotient that may be undefined is a term only where its divisor is a constant that rules that out.
        """
        key = opcode, arguments, bits
        try:
            return self._applied[key]
        except KeyError:
            found = self._applied[key] = self._apply(opcode, arguments, bits)
            return found

    def _apply(self, opcode: str, arguments: tuple[Term, ...], bits: int) -> Term | None:
        values = [self.value(argument) for argument in arguments]
        if opcode in MAY_BE_UNDEFINED and values[-1] in {None, 0, (1 << bits) - 1}:
            return None
        if None not in values:
            widths = tuple(self._nodes[argument].bits // 8 or 1 for argument in arguments)
            function = operation(opcode, widths, max(1, bits // 8))
            if function is not None:
                return self.constant(function(*values), bits)
        shift = values[-1] if opcode == "INT_RIGHT" else None
        divided = self._quotient(arguments[0], shift, bits) if shift else None
        return self._simplified(opcode, arguments, bits) if divided is None else divided

    def with_operands(self, term: Term, operands: Sequence[Term | None]) -> Term | None:
        """The operation of ``term`` on other ``operands``; None where one is missing, or where that is no term."""
        known = tuple(one for one in operands if one is not None)
        if known == self.operands(term):
            return term
        if len(known) < len(operands):
            return None
        node = self._nodes[term]
        return self.gamma(*known) if node.opcode == "GAMMA" else self.apply(node.opcode, known, node.bits)

    def negated(self, condition: Term) -> Term:
        """The truth value that ``condition`` has not."""
        node = self._nodes[condition]
        first, *rest = self.operands(condition) or (condition,)
        if node.opcode == "const":
            return self.constant(1 - (self.value(condition) or 0), node.bits)
        if node.opcode == "BOOL_NEGATE":
            return first
        if node.opcode in OPPOSITES:
            return self._make(Node(OPPOSITES[node.opcode], node.arguments, node.bits))
        if node.opcode in MIRRORED:
            return self._make(Node(MIRRORED[node.opcode], (rest[0], first), node.bits))
        if node.opcode in ("BOOL_AND", "BOOL_OR"):
            other = "BOOL_OR" if node.opcode == "BOOL_AND" else "BOOL_AND"
            return self._logical(other, self.negated(first), self.negated(rest[0]), node.bits)
        return self._make(Node("BOOL_NEGATE", (condition,), node.bits))

    def gamma(self, condition: Term, one: Term, other: Term) -> Term | None:
        """``one`` where ``condition`` holds, else ``other``; None where the term would be too deep."""
        one, other = self._decided(one, condition), self._decided(other, self.negated(condition))
        if one == other:
            return one
        values = self.value(one), self.value(other)
        if self._is_truth(one) and self._is_truth(other) and set(values) == {0, 1}:
            chosen = condition if values == (1, 0) else self.negated(condition)
            bits = self._nodes[one].bits
            return chosen if self._nodes[chosen].bits == bits else self._plain("INT_ZEXT", (chosen,), bits)
        depth = max(self._depth[one], self._depth[other])
        most = _MOST_DEPTH_OF_CONDITION if depth <= _PLAIN_DEPTH else _MOST_GAMMA_DEPTH
        if depth >= _MOST_GAMMA_DEPTH or self._depth[condition] >= most:
            return None
        truth = self.chosen_truth(condition, one, other)
        return self._plain("GAMMA", (condition, one, other), self._nodes[one].bits) if truth is None else truth

    def chosen_truth(self, condition: Term, one: Term, other: Term) -> Term | None:
        """A gamma node between truth values, one of which is a constant, or told by the condition, as AND or OR."""
        bits, opposite = self._nodes[one].bits, self.negated(condition)
        if not (self._is_truth(one) and self._is_truth(other) and self._nodes[condition].bits == bits):
            return None
        asserted = {condition: 1, opposite: 0}
        first = asserted.get(one, self.value(one))
        second = asserted.get(other) if other in asserted else None
        second = 1 - second if second is not None else self.value(other)
        if first is not None:
            return self._logical(*(("BOOL_OR", condition) if first else ("BOOL_AND", opposite)), other, bits)
        if second is not None:
            return self._logical(*(("BOOL_OR", opposite) if second else ("BOOL_AND", condition)), one, bits)
        return None

    def _decided(self, term: Term, condition: Term) -> Term:
        """``term`` where ``condition`` holds: of gamma nodes by the same condition, the part that is chosen."""
        while self._nodes[term].opcode == "GAMMA":
            by, one, other = self.operands(term)
            if by != condition and self.negated(by) != condition:
                break
            term = one if by == condition else other
        return term

    def linear(self, term: Term) -> Linear:
        """``term`` as a linear combination of terms that are no sums themselves."""
        if term not in self._linear:
            self._linear[term] = self._linear_form(term)
        return self._linear[term]

    def difference(self, one: Term, other: Term) -> Linear:
        """``one - other`` as a linear combination."""
        return combined(self.linear(one), self.linear(other), -1)

    def distance(self, one: Term, other: Term) -> int | None:
        """``one - other``, signed, where that is a number whatever the symbols are; of two terms of equally many bits.

        *Soundness:* linear forms are normal forms, so that two differ by a number where their coefficients
        are the same.
        """
        first, second = self.linear(one), self.linear(other)
        if first.coefficients != second.coefficients:
            return None
        return signed(first.bits, first.constant - second.constant & (1 << first.bits) - 1)

    # ------------------------------------------------------------------------------------------------------- inside

    def _plain(self, opcode: str, arguments: tuple[Term, ...], bits: int) -> Term | None:
        if max([self._depth[argument] for argument in arguments]) >= _MOST_DEPTH:
            return None
        if opcode in _COMMUTATIVE:
            arguments = tuple(sorted(arguments, key=lambda one: (self.value(one) is not None, one)))
        return self._make(Node(opcode, arguments, bits))

    def _is_truth(self, term: Term) -> bool:
        node = self._nodes[term]
        return node.opcode in TRUTHS or (node.opcode == "const" and node.arguments[0] in (0, 1))

    def _simplified(self, opcode: str, arguments: tuple[Term, ...], bits: int) -> Term | None:
        if opcode in _COMMUTATIVE and self.value(arguments[0]) is not None:
            arguments = arguments[1], arguments[0]
        first = arguments[0]
        second = arguments[1] if len(arguments) > 1 else None
        constant = self.value(second) if second is not None else None
        node = self._nodes[first]
        match opcode:
            case "COPY":
                return first
            case "INT_ZEXT" | "SUBPIECE" if node.bits == bits and not constant:
                return first
            case "SUBPIECE" if (part := self._part(first, constant, bits)) is not None:
                return part
            case "INT_ADD" | "INT_SUB" | "INT_MULT" | "INT_2COMP" | "INT_LEFT":
                return self._arithmetic(opcode, arguments, bits)
            case "INT_AND" | "INT_OR" if first == second:
                return first
            case "INT_AND" if constant is not None:
                return self._masked(first, constant, bits)
            case "INT_CARRY" if constant:
                return self._plain("INT_LESSEQUAL", (self.constant(-constant, node.bits), first), bits)
            case "INT_OR" | "INT_XOR" | "INT_RIGHT" | "INT_SRIGHT" if constant == 0:
                return first
            case "BOOL_NEGATE":
                return self.negated(first) if self._is_truth(first) else self._plain(opcode, arguments, bits)
            case "BOOL_AND" | "BOOL_OR" if second is not None:
                return self._logical(opcode, first, second, bits)
            case "INT_NOTEQUAL" | "INT_EQUAL" if second is not None:
                return self._equality(opcode, first, second, bits)
        return self._plain(opcode, arguments, bits)

    def _part(self, whole: Term, skipped: int | None, bits: int) -> Term | None:
        """What ``whole`` was extended or put together from, if that is all of ``bits`` behind ``skipped`` bytes."""
        opcode, operands = self._nodes[whole].opcode, self.operands(whole)
        if opcode == "INT_ZEXT":
            return operands[0] if (skipped, bits) == (0, self._argument_bits(whole)) else None
        if opcode == "INT_DIV" and (skipped, bits) == (0, self._argument_bits(operands[0])):  # as udiv divides
            divisor = self.value(operands[1]) or 0
            is_word = self._nodes[operands[0]].opcode == "INT_ZEXT" and 1 < divisor < 1 << bits
            dividend = self.operands(operands[0])[0] if is_word else whole
            return self.apply(opcode, (dividend, self.constant(divisor, bits)), bits) if is_word else None
        if opcode != "PIECE" or skipped is None:
            return None
        high, low = operands
        low_bits = self._nodes[low].bits
        if (skipped, bits) == (0, low_bits):
            return low
        return high if (8 * skipped, bits) == (low_bits, self._nodes[high].bits) else None

    def _argument_bits(self, term: Term) -> int:
        """Of the first operand; 0 where there is none."""
        return self._nodes[self.operands(term)[0]].bits if self.operands(term) else 0

    def _arithmetic(self, opcode: str, arguments: tuple[Term, ...], bits: int) -> Term | None:
        """Sums in a normal form, so that equal sums are equal terms: at most one constant, added last."""
        plain = self._plain(opcode, arguments, bits)
        if plain is None:
            return None
        form = self.linear(plain)
        if not form.coefficients:
            return self.constant(form.constant, bits)
        if len(form.coefficients) == 1:
            ((term, coefficient),) = form.coefficients.items()
            return self._sum(term, form.constant) if coefficient == 1 else plain
        for term, coefficient in form.coefficients.items():
            if self._nodes[term].opcode in ("INT_DIV", "INT_ZEXT"):
                rest = self._remainder(term, -coefficient & (1 << bits) - 1, form)
                if rest is not None:
                    return rest
        return plain

    def _sum(self, term: Term, constant: int) -> Term:
        bits = self._nodes[term].bits
        return self._make(Node("INT_ADD", (term, self.constant(constant, bits)), bits)) if constant else term

    def _quotient(self, shifted: Term, shift: int, bits: int) -> Term | None:
        """``shifted >> shift`` as a quotient by a constant, if it is one."""
        found = quotient(self, shifted, shift)
        if found is None:
            return None
        own = self._nodes[found.dividend].bits
        divided = self.apply("INT_DIV", (found.dividend, self.constant(found.divisor, own)), own)
        return divided if divided is None or own == bits else self.apply("INT_ZEXT", (divided,), bits)

    def _remainder(self, divided: Term, factor: int, form: Linear) -> Term | None:
        """``form``, a dividend less ``factor`` times ``divided``, as what the division leaves, and a constant."""
        whole = self.operands(divided)[0] if self._nodes[divided].opcode == "INT_ZEXT" else divided
        left = self._left_by(whole, factor)
        if left is not None and self._nodes[left].bits != form.bits:
            left = self.apply("INT_ZEXT", (left,), form.bits)
        rest = None if left is None else combined(form, self.linear(left), -1)
        return None if left is None or rest is None or rest.coefficients else self._sum(left, rest.constant)

    def _left_by(self, divided: Term, divisor: int) -> Term | None:
        """What the division ``divided`` by ``divisor`` leaves, if it is one."""
        node = self._nodes[divided]
        if node.opcode != "INT_DIV" or self.value(self.operands(divided)[1]) != divisor:
            return None
        return self._plain("INT_REM", self.operands(divided), node.bits)

    def with_remainders(self, form: Linear) -> Linear:
        """``form``, with what divisions leave in the place of dividends and quotients, where both are in it.

        *Soundness:* ``x - d * (x // d)`` is ``x % d``.
        """
        for divided, factor in form.coefficients.items():
            if self._nodes[divided].opcode == "INT_DIV" and self._nodes[divided].bits == form.bits:
                dividend, divisor = self.operands(divided)
                by = self.value(divisor) or 0
                left = self._left_by(divided, by)
                first, own = next(iter(self.linear(dividend).coefficients.items()), (divided, 0))
                times = form.coefficients.get(first, 0)
                if left is None or own != 1 or not times or (factor + times * by) % (1 << form.bits):
                    continue
                return self.with_remainders(
                    combined(combined(form, self.linear(left), -times), Linear({left: 1}, 0, form.bits), times)
                )
        return form

    def _linear_form(self, term: Term) -> Linear:
        node = self._nodes[term]
        operands = self.operands(term)
        match node.opcode:
            case "const":
                return Linear({}, self.value(term) or 0, node.bits)
            case "INT_ADD":
                return combined(self.linear(operands[0]), self.linear(operands[1]), 1)
            case "INT_SUB":
                return combined(self.linear(operands[0]), self.linear(operands[1]), -1)
            case "INT_2COMP" | "INT_NEGATE":
                return combined(Linear({}, -(node.opcode == "INT_NEGATE"), node.bits), self.linear(operands[0]), -1)
            case "INT_LEFT" if (shift := self.value(operands[1])) is not None:
                factor = 1 << shift if shift < node.bits else 0
                return combined(Linear({}, 0, node.bits), self.linear(operands[0]), factor)
            case "INT_MULT":
                for one, other in (operands, operands[::-1]):
                    if (multiplier := self.value(other)) is not None:
                        return combined(Linear({}, 0, node.bits), self.linear(one), multiplier)
            case "INT_REM" if (divisor := self.value(operands[1])) is not None:
                divided = self.apply("INT_DIV", operands, node.bits)
                if divided is not None:
                    return combined(self.linear(operands[0]), self.linear(divided), -divisor)
        return Linear({term: 1}, 0, node.bits)

    def _masked(self, first: Term, mask: int, bits: int) -> Term | None:
        """``first & mask``; a bit of a packed condition register is the condition itself."""
        if mask == (1 << bits) - 1:
            return first
        if mask == 1:
            bit = self._bit(first, 0)
            if bit is not None:
                return bit if self._nodes[bit].bits == bits else self._plain("INT_ZEXT", (bit,), bits)
        cleared = (mask & -mask).bit_length() - 1
        if cleared > 0 and mask == (1 << bits) - (1 << cleared):  # a multiple of a quotient, as GCC makes it
            divided = self._quotient(first, cleared, bits)
            if divided is not None:
                return self.apply("INT_LEFT", (divided, self.constant(cleared, bits)), bits)
        possible = self._possible(first)
        if not possible & mask:
            return self.constant(0, bits)
        if not possible & ~mask:
            return first
        if self._nodes[first].opcode == "INT_OR":  # a rotation of which only one part is kept
            kept = [operand for operand in self.operands(first) if self._possible(operand) & mask]
            if len(kept) == 1:
                return self._masked(kept[0], mask, bits)
            if mask < _SMALL:  # the alignment of two pointers, asked for at once
                parts = [self._masked(operand, mask, bits) for operand in self.operands(first)]
                if None not in parts:
                    return self.apply("INT_OR", (parts[0], parts[1]), bits)  # type: ignore[arg-type]
        return self._plain("INT_AND", (first, self.constant(mask, bits)), bits)

    def _possible(self, term: Term) -> int:
        """The bits that can be set in ``term``, as a mask."""
        node, operands = self._nodes[term], self.operands(term)
        every = (1 << node.bits) - 1
        constant = self.value(operands[1]) if len(operands) == 2 else None
        match node.opcode:
            case "const":
                return self.value(term) or 0
            case "INT_LEFT" if constant is not None:
                return every >> constant << constant if constant < node.bits else 0
            case "INT_RIGHT" if constant is not None:
                return every >> constant
            case "INT_AND" if constant is not None:
                return constant
            case "INT_ZEXT" | "INT_DIV" | "INT_REM":
                return (1 << most(self, term).bit_length()) - 1
        return every

    def _bit(self, term: Term, position: int) -> Term | None:
        """Bit ``position`` of a value packed from truth values by shifts and ORs, or None."""
        node = self._nodes[term]
        operands = self.operands(term)
        if node.opcode == "const":
            return self.constant((self.value(term) or 0) >> position & 1, 8)
        if self._is_truth(term):
            return term if position == 0 else self.constant(0, 8)
        if position >= node.bits:
            return self.constant(0, 8)
        shift = self.value(operands[1]) if len(operands) == 2 else None
        match node.opcode:
            case "INT_RIGHT" if shift is not None:
                return self._bit(operands[0], position + shift)
            case "INT_LEFT" if shift is not None:
                return self._bit(operands[0], position - shift) if position >= shift else self.constant(0, 8)
            case "INT_ZEXT":
                return self._bit(operands[0], position)
            case "INT_AND" if shift is not None:
                if not shift >> position & 1:
                    return self.constant(0, 8)
                return self._bit(operands[0], position)
            case "INT_OR":
                first, second = (self._bit(operand, position) for operand in operands)
                if first is not None and second is not None:
                    return self._logical("BOOL_OR", first, second, 8)
        return None

    def _logical(self, opcode: str, first: Term, second: Term, bits: int) -> Term:
        """``first`` and, or or ``second``, both truth values: constants, and what compares the same two values."""
        absorbing = 0 if opcode == "BOOL_AND" else 1
        for one, other in ((first, second), (second, first)):
            value = self.value(one)
            if value is not None:
                return one if value == absorbing else other
        if first == second:
            return first
        merged = self._merged(opcode, first, second, bits)
        if merged is not None:
            return merged
        return self._make(Node(opcode, (min(first, second), max(first, second)), bits))

    def _merged(self, opcode: str, first: Term, second: Term, bits: int) -> Term | None:
        """``a <= b and a != b`` is ``a < b``; ``a < b or a == b`` is ``a <= b``."""
        nodes = [(self._nodes[term], self.operands(term)) for term in (first, second)]
        for (one, operands), (other, others) in (nodes, nodes[::-1]):
            if not self._compare_alike(operands, others):
                continue
            if opcode == "BOOL_AND" and other.opcode == "INT_NOTEQUAL" and one.opcode in MIRRORED:
                strict = one.opcode.replace("LESSEQUAL", "LESS")
                return self._make(Node(strict, operands, bits))
            if opcode == "BOOL_OR" and other.opcode == "INT_EQUAL" and one.opcode in MIRRORED:
                weak = one.opcode.removesuffix("EQUAL") + "EQUAL"
                return self._make(Node(weak, operands, bits))
        return None

    def _compare_alike(self, one: tuple[Term, ...], other: tuple[Term, ...]) -> bool:
        """Whether two comparisons are of the same two values, or of values with the same distance but for its sign."""
        if len(one) != 2 or len(other) != 2 or self._nodes[one[0]].bits != self._nodes[other[0]].bits:
            return False
        if set(one) == set(other):
            return len(set(one)) == 2
        distance, same = self.difference(*one), self.difference(*other)
        return distance in (same, combined(Linear({}, 0, same.bits), same, -1))

    def _equality(self, opcode: str, first: Term, second: Term, bits: int) -> Term | None:
        """Comparisons of truth values with constants, of differences with 0, and of N with V as ARM does."""
        if first == second:
            return self.constant(int(opcode == "INT_EQUAL"), bits)
        if self.value(first) is not None:
            first, second = second, first
        constant = self.value(second)
        node, operands = self._nodes[first], self.operands(first)
        if constant in (0, 1) and self._is_truth(first):
            holds = (opcode == "INT_EQUAL") == (constant == 1)
            return first if holds else self.negated(first)
        if constant == 0:
            sides = self._balanced(self.linear(first))
            if sides is not None:
                return self._plain(opcode, sides, bits)
        if constant == 0 and node.opcode == "INT_ZEXT" and self._is_truth(operands[0]):
            return operands[0] if opcode == "INT_NOTEQUAL" else self.negated(operands[0])
        if node.opcode == "GAMMA" and constant is not None:
            chosen = self._chosen_constant(opcode, operands, constant)
            if chosen is not None:
                return chosen
        less = self._signed_less(first, second) or self._signed_less(second, first)
        if less is not None:
            return less if opcode == "INT_NOTEQUAL" else self.negated(less)
        return self._plain(opcode, (first, second), bits)

    def _chosen_constant(self, opcode: str, operands: tuple[Term, ...], constant: int) -> Term | None:
        """Whether a gamma node between two constants is ``constant``: its condition, or that it does not hold."""
        condition, *parts = operands
        values = [self.value(part) for part in parts]
        if None in values:
            return None
        one, other = ((value == constant) == (opcode == "INT_EQUAL") for value in values)
        if one == other:
            return self.constant(int(one), self._nodes[condition].bits)
        return condition if one else self.negated(condition)

    def _balanced(self, form: Linear) -> tuple[Term, Term] | None:
        """The two values that are equal exactly where ``form``, a difference, is 0."""
        minus_one = (1 << form.bits) - 1
        match sorted(form.coefficients.items(), key=lambda item: item[1]):
            case [(term, 1)]:
                return term, self.constant(-form.constant, form.bits)
            case [(one, 1), (other, coefficient)] if coefficient == minus_one and form.constant == 0:
                return one, other
        return None

    def _signed_less(self, negative: Term, overflow: Term) -> Term | None:
        """``a < b`` (signed) where the terms are the flags N and V of ``a - b``."""
        flag, borrow = self._nodes[negative], self._nodes[overflow]
        if flag.opcode != "INT_SLESS" or borrow.opcode not in ("INT_SBORROW", "INT_SCARRY"):
            return None
        difference, zero = self.operands(negative)
        left, right = self.operands(overflow)
        if borrow.opcode == "INT_SCARRY":  # a + c overflows where a - (-c) does, unless -c does itself
            addend, bits = self.value(right), self[right].bits
            if not addend or addend == 1 << (bits - 1):
                return None
            right = self.constant(-addend, bits)
        form = self.difference(left, right)
        if self.value(zero) != 0 or combined(form, self.linear(difference), -1) != Linear({}, 0, form.bits):
            return None
        return self._make(Node("INT_SLESS", (left, right), flag.bits))
