"""Words of 32 bits, read in two ways: as integers, and bit by bit.

A word is a sum of unknowns (`words`). Most of what an allocator computes stays such a sum.
Where an operation leaves sums (a mask, a shift to the right, leading zeros) its result is an unknown with a
definition. The integers get the definition where it is one of quotients and remainders, and only when the unknown is
asked for; the bits get all of it.

Words: linear form, SMT (docs/explanation/glossary.md).

*Soundness:* both readings are of the same word. An unknown whose definition a reading does not get may be anything in
its range there, which is more than it is. That a sum does not wrap around is shown before it is read as an integer,
else its quotient by 2^32 is an unknown as well. Words below a definition that are sums of plain unknowns are taken as
one unknown by the bits, equal sums as the same one, of which only what the integers show is said; so are words whose
leading zeros are computed, if the integers get their definitions. Of unknowns that are to be *followed* the bits get
both: constants that are added, and what leading zeros are computed of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from wcet_probe.analyzer.deduction.asked import Asked
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    Node,
    condition,
    conjunction,
    disjunction,
    equivalence,
    linear,
    negation,
    term,
    unknown,
)
from wcet_probe.analyzer.deduction.words import SPAN, TOP_BIT, Word, base_of, low_bits, word_of
from wcet_probe.analyzer.pcode.semantics import operation as semantics


@dataclass(frozen=True, slots=True)
class _Unknown:
    """What is known of an unknown of words: it is from 0 to ``most``; ``definition`` is an operation and its words."""

    most: int
    definition: tuple[str, tuple[Word, ...]] | None = None


@dataclass(frozen=True, slots=True)
class BitsAbout:
    """What is known over bits.

    Attributes:
        formulas: that hold.
        leaves: words of which the integers may know bounds.
    """

    formulas: tuple[Node, ...]
    leaves: tuple[Word, ...]

    def with_formulas(self, formulas: Iterable[Node]) -> BitsAbout:
        """With more ``formulas``, which hold as well."""
        return replace(self, formulas=(*self.formulas, *formulas))


class WordTerms:
    """The words of one deduction, and what they are as integers and as bits.

    Args:
        questions: what is assumed is assumed there.
        bounds: numbers that words which bits are computed of are compared with, to tell the bits.
    """

    def __init__(self, questions: Asked, bounds: tuple[int, ...] = ()) -> None:
        self.questions = questions
        self.bounds = bounds
        self._unknowns: dict[Node, _Unknown] = {}
        self._by_definition: dict[tuple[str, tuple[Word, ...]], Word] = {}
        self._values: list[dict[Word, Node]] = [{}]
        self._defined: list[set[Node]] = [set()]
        self._shown: list[set[Node]] = [set()]
        self._conditions: dict[Node, Node] = {}
        self._whole: set[Word] = set()
        self._followed: set[Node] = set()
        self._told: set[Node] = set()
        self._numbers: dict[Node, int] = {}
        self._count = 0

    def enter(self) -> None:
        """Begin a scope of assumptions, and of what follows from them."""
        self.questions.enter()
        self._values.append(dict(self._values[-1]))
        self._defined.append(set(self._defined[-1]))
        self._shown.append(set(self._shown[-1]))

    def leave(self) -> None:
        """End the scope."""
        self.questions.leave()
        self._values.pop()
        self._defined.pop()
        self._shown.pop()

    def fresh(self, name: str) -> Node:
        """A new integer."""
        self._count += 1
        return unknown(f"{name}.{self._count}")

    def known(self, node: Node, most: int = SPAN - 1) -> Node:
        """``node`` as an unknown of words, from 0 to ``most``; whoever says so is to see to it that it is."""
        self._unknowns.setdefault(node, _Unknown(most))
        self.questions.assume(conjunction(node >= 0, node <= most))
        return node

    def follow(self, node: Node) -> None:
        """Let the bits tell sums of ``node`` and constants from each other, and take nothing of it alone as a whole."""
        self._followed.add(node)

    def tell(self, node: Node) -> None:
        """Let the integers know conditions of ``node`` as of any unknown, though they do not get its definition."""
        self._told.add(node)

    def is_followed(self, word: Word) -> bool:
        """Whether ``word`` is computed of nothing but unknowns that are followed."""
        return all(node in self._followed for leaf in self.leaves(word) for node, _ in leaf.parts)

    def definition(self, node: Node) -> tuple[str, tuple[Word, ...]] | None:
        """The operation and the words that ``node`` was computed by, if it is an unknown that was."""
        return self._unknowns[node].definition if node in self._unknowns else None

    # ------------------------------------------------------------------------------------------------ operations

    def operate(self, opcode: str, *words: Word) -> Word | None:  # noqa: C901, PLR0911, PLR0912  a case for each operation
        """What the p-code operation ``opcode`` makes of words; None where it is none that is known here."""
        if not any(word.parts for word in words):
            function = semantics(opcode, (4,) * len(words), 4)
            return None if function is None else Word(function(*(word.constant for word in words)))
        match opcode, words:
            case "COPY" | "INT_ZEXT", (one,):
                return one
            case "INT_2COMP", (one,):
                return one.times(-1)
            case "INT_NEGATE", (one,):
                return Word(SPAN - 1).plus(one, -1)
            case "INT_ADD", (one, other):
                return one.plus(other)
            case "INT_SUB", (one, other):
                return one.plus(other, -1)
            case "INT_MULT", (one, other):
                one, other = (other, one) if one.parts else (one, other)
                return None if one.parts else other.times(one.constant)
            case "INT_LEFT", (one, Word(amount, ())):
                return one.times(1 << amount) if amount < 32 else Word(0)
            case "INT_RIGHT", (one, Word(amount, ())):
                return self._shifted(one, amount)
            case "INT_AND", (one, other):
                one, other = (other, one) if one.parts and not other.parts else (one, other)
                if one == other:
                    return one
                return self._defining(opcode, one, other) if one.parts else self._masked(other, one.constant)
            case "INT_OR", (one, other):
                one, other = (other, one) if one.parts and not other.parts else (one, other)
                return self._united(one, other)
            case "INT_XOR" | "INT_LEFT" | "INT_RIGHT", _:
                return self._defining(opcode, *words)
            case "LZCOUNT", (one,):
                if self.is_integer(one) and not self.is_followed(one):
                    self._whole.add(base_of(one))
                return self._defining(opcode, one, most=32)
        return None

    def reversed_bits(self, word: Word) -> Word:
        """``word`` with its bits in the opposite order; p-code has no operation for it."""
        return self._defining("REVERSED", word) if word.parts else Word(int(f"{word.constant:032b}"[::-1], 2))

    def _defining(self, opcode: str, *words: Word, most: int = SPAN - 1, factor: int = 1) -> Word:
        """A new unknown that times ``factor`` is what ``opcode`` makes of ``words``; of the same ones the same."""
        key = opcode, words
        if key not in self._by_definition:
            node = self.fresh("word")
            self._unknowns[node] = _Unknown(most, key)
            self._by_definition[key] = Word(0, ((node, factor),))
        found = self._by_definition[key]
        # Forgotten with its scope, but not what it is.
        self.questions.assume(conjunction(found.parts[0][0] >= 0, found.parts[0][0] <= most))
        return found

    def choose(self, formula: Node, one: Word, other: Word) -> Word:
        """``one`` where the condition ``formula`` of words holds, else ``other``; the integers do not learn which."""
        if one == other:
            return one
        found = self._defining("choice", one, other, Word(self._number(formula)))
        self._conditions[found.parts[0][0]] = formula
        return found

    def is_of_bits(self, formula: Node) -> bool:
        """Whether the integers do not learn what the condition ``formula`` compares."""
        return not all(self.is_integer(word) for word in self.words_in(formula))

    def _shifted(self, word: Word, amount: int) -> Word:
        if amount >= 32:
            return Word(0)
        unit = 1 << amount
        if amount == 0 or (word.alignment % unit == 0 and self.most(word) is not None):
            return Word(word.constant >> amount, tuple((node, factor >> amount) for node, factor in word.parts))
        return self._defining("INT_RIGHT", word, Word(amount), most=(SPAN >> amount) - 1)

    def _masked(self, word: Word, mask: int) -> Word:
        """``word`` and a constant."""
        if mask == 0 or word.alignment > mask:
            return Word(0)
        most = self.most(word)
        if most is not None and mask & (mask + 1) == 0 and most <= mask:
            return word
        unit, low = low_bits(word)
        if mask | (unit - 1) == SPAN - 1:
            return word.plus(Word((low & mask) - low))
        fields = self._fields(word)
        if fields is not None and all(bits & mask in {0, bits} for bits, part in fields if part):
            parts = {part[0]: part[1] for bits, part in fields if part and bits & mask}
            return word_of(word.constant & mask, parts)
        inner = self._united_parts(word)
        if inner is not None:
            return self._united(self._masked(inner[0], mask), self._masked(inner[1], mask))
        unit = mask & -mask
        return self._defining("INT_AND", word, Word(mask), most=mask // unit, factor=unit)

    def _united_parts(self, word: Word) -> tuple[Word, Word] | None:
        """The words of which ``word`` is the union, if it is defined so."""
        if word.constant == 0 and len(word.parts) == 1:
            definition = self._unknowns[word.parts[0][0]].definition
            if definition and definition[0] == "INT_OR" and self._by_definition[definition] == word:
                return definition[1][0], definition[1][1]
        return None

    def _united(self, one: Word, other: Word) -> Word:
        """``one`` or ``other``, bit by bit."""
        if one == other:
            return one
        for first, second in ((one, other), (other, one)):
            most = self.most(first)
            if most is not None and most < second.alignment:
                return first.plus(second)
        unit, low = low_bits(other)
        if not one.parts and one.constant < unit:
            return other.plus(Word((low | one.constant) - low))
        fields = None if one.parts else self._fields(other)
        if fields is not None:
            touched = [(bits, part) for bits, part in fields if part is not None and bits & one.constant]
            if all(bits & ~one.constant == 0 for bits, _ in touched):
                gone = {part[0] for _, part in touched}
                kept = {node: factor for node, factor in other.parts if node not in gone}
                return word_of(other.constant | one.constant, kept)
        unit = min(one.alignment, other.alignment)
        return self._defining("INT_OR", one, other, most=(SPAN - 1) // unit, factor=unit)

    def _fields(self, word: Word) -> list[tuple[int, tuple[Node, int] | None]] | None:
        """The bits that each part of ``word`` may set, and the constant, if no two of them may set the same."""
        found: list[tuple[int, tuple[Node, int] | None]] = [(word.constant, None)] if word.constant else []
        taken = word.constant
        for node, factor in word.parts:
            if factor <= 0 or factor & (factor - 1):
                return None
            bits = ((1 << self._unknowns[node].most.bit_length()) - 1) * factor
            if bits >= SPAN or bits & taken:
                return None
            taken |= bits
            found.append((bits, (node, factor)))
        return found

    def most(self, word: Word) -> int | None:
        """The most that ``word`` may be, if by the ranges of its unknowns it cannot wrap around."""
        if any(factor < 0 for _, factor in word.parts):
            return None
        most = word.constant + sum(factor * self._unknowns[node].most for node, factor in word.parts)
        return most if most < SPAN else None

    # -------------------------------------------------------------------------------------------------- as integers

    def value(self, word: Word) -> Node:
        """``word`` as an integer from 0 up to 2^32."""
        found = self._values[-1].get(word)
        if found is None:
            found = self._values[-1][word] = self._value(word)
        return found

    def _plain(self, word: Word) -> Node:
        """``word`` as an integer that is the same modulo 2^32."""
        for node, _ in word.parts:
            self._define(node)
        return linear(word.constant, word.parts)

    def _value(self, word: Word) -> Node:
        plain = self._plain(word)
        if self.most(word) is not None:
            return plain
        shifts = (0, -SPAN) if word.constant < TOP_BIT else (-SPAN, 0)
        for shift in (*shifts, SPAN):
            value = plain + shift
            if self.questions.holds(conjunction(value >= 0, value < SPAN)):
                return value
        value = plain + SPAN * self.fresh("wrapped")
        self.questions.assume(conjunction(value >= 0, value < SPAN))
        return value

    def _define(self, node: Node) -> None:
        """Tell the integers what ``node`` is, if that is said by quotients and remainders."""
        definition = self._unknowns[node].definition
        if node in self._defined[-1] or definition is None:
            return
        self._defined[-1].add(node)
        match definition:
            case "INT_RIGHT", (word, Word(amount, ())):
                rest = self.value(word) - node * (1 << amount)
                self.questions.assume(conjunction(rest >= 0, rest < 1 << amount))
            case "INT_AND", (word, Word(mask, ())):
                unit, end = mask & -mask, mask + (mask & -mask)
                if end & (end - 1) == 0:
                    above = self.fresh("above") if end < SPAN else term(0)
                    # As ``end`` divides 2^32, it does not matter whether the sum wraps around.
                    rest = (self._plain(word) if end < SPAN else self.value(word)) - node * unit - above * end
                    self.questions.assume(conjunction(rest >= 0, rest < unit))
            case _:
                pass

    def formula(self, node: Node) -> Node:
        """The condition ``node`` of words over the integers."""
        match node.operation, node.arguments:
            case "not", (one,):
                return negation(self.formula(one))
            case "all", formulas:
                return conjunction(*map(self.formula, formulas))
            case "equal", (one, other) if one.sort == "bool":
                return equivalence(self.formula(one), self.formula(other))
            case "same" | "less" | "signed less", (one, other):
                if not (self.is_integer(one) and self.is_integer(other)):
                    return unknown(f"condition.{self._number(node)}", "bool")
                return self._comparison(node.operation, one, other)
        return node

    def _number(self, node: Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def _comparison(self, name: str, one: Word, other: Word) -> Node:
        if name == "same":
            return self.value(one).equals(self.value(other))
        first, second = self.value(one), self.value(other)
        is_less = first < second
        if name == "less":
            return is_less
        return disjunction(
            conjunction(is_less, disjunction(second < TOP_BIT, first >= TOP_BIT)),
            conjunction(first >= TOP_BIT, second < TOP_BIT),
        )

    def is_integer(self, word: Word) -> bool:
        """Whether the integers get all definitions in ``word``, or were told enough without them."""
        todo = [node for node, _ in word.parts]
        while todo:
            node = todo.pop()
            definition = self._unknowns[node].definition
            if definition is None or node in self._told:
                continue
            name, words = definition
            if name not in {"INT_RIGHT", "INT_AND"} or words[1].parts:
                return False
            todo.extend(node for node, _ in words[0].parts)
        return True

    # ------------------------------------------------------------------------------------------------------ as bits

    def is_plain(self, word: Word) -> bool:
        """Whether the bits take ``word`` as a whole: it has no definition in it, or its leading zeros were computed."""
        return self.is_whole(word) or all(self._unknowns[node].definition is None for node, _ in word.parts)

    def is_whole(self, word: Word) -> bool:
        """Whether leading zeros of ``word``, or of a multiple of it, were computed."""
        return base_of(word) in self._whole

    def _is_followed(self, word: Word) -> bool:
        return len(word.parts) == 1 and word.parts[0][0] in self._followed

    def leaves(self, word: Word) -> tuple[Word, ...]:
        """The words of plain unknowns that ``word`` is computed of, each divided by its alignment."""
        return tuple(dict.fromkeys(self._leaves(word, set())))

    def _leaves(self, word: Word, seen: set[Word]) -> Iterator[Word]:
        if word in seen or not word.parts:
            return
        seen.add(word)
        if self.is_plain(word):
            yield base_of(word) if not self._is_followed(word) else Word(0, ((word.parts[0][0], 1),))
            return
        plain = {node: factor for node, factor in word.parts if self._unknowns[node].definition is None}
        if plain:
            yield base_of(word_of(0, plain))
        for node, _ in word.parts:
            definition = self._unknowns[node].definition
            for one in definition[1] if definition else ():
                yield from self._leaves(one, seen)
            for one in self.words_in(self._conditions[node]) if node in self._conditions else ():
                yield from self._leaves(one, seen)

    def bits(self, word: Word) -> Node:
        """``word`` bit by bit."""
        if not word.parts:
            return condition("bits constant", word.constant)
        if self._is_followed(word) and (word.constant or word.parts[0][1] != 1):
            (node, factor), constant = word.parts[0], condition("bits constant", word.constant)
            own = self.bits(Word(0, ((node, 1),)))
            return condition(
                "bits INT_ADD", condition("bits INT_MULT", own, condition("bits constant", factor % SPAN)), constant
            )
        if self.is_plain(word):
            base = base_of(word)
            whole = condition("bits unknown", f"word.{self._number(condition('leaf', base))}")
            unit = condition("bits constant", word.alignment)
            return whole if base == word else condition("bits INT_MULT", whole, unit)
        plain = {node: factor for node, factor in word.parts if self._unknowns[node].definition is None}
        total = condition("bits constant", word.constant)
        if plain:
            total = condition("bits INT_ADD", total, self.bits(word_of(0, plain)))
        for node, factor in word.parts:
            definition = self._unknowns[node].definition
            if definition is not None:
                own = self._bits_defined(node, *definition)
                rest = factor // self._by_definition[definition].parts[0][1]
                if factor % self._by_definition[definition].parts[0][1]:
                    return condition("bits unknown", f"word.{self._number(condition('leaf', word))}")
                summand = condition("bits INT_MULT", own, condition("bits constant", rest % SPAN))
                total = condition("bits INT_ADD", total, own if rest == 1 else summand)
        return total

    def _bits_defined(self, node: Node, name: str, words: tuple[Word, ...]) -> Node:
        if name == "choice":
            formula = self.bits_formula(self._conditions[node])
            return condition("bits choice", formula, self.bits(words[0]), self.bits(words[1]))
        return condition(f"bits {name}", *map(self.bits, words))

    def bits_formula(self, node: Node) -> Node:
        """The condition ``node`` of words over bits; what is no condition of words is not known there."""
        match node.operation, node.arguments:
            case "not", (one,):
                return negation(self.bits_formula(one))
            case "all", formulas:
                return conjunction(*map(self.bits_formula, formulas))
            case "equal", (one, other) if one.sort == "bool":
                return equivalence(self.bits_formula(one), self.bits_formula(other))
            case "same", (one, other):
                return condition("bits equal", self.bits(one), self.bits(other))
            case "less" | "signed less" as name, (one, other):
                return condition(f"bits {name}", self.bits(one), self.bits(other))
        return node if node in {TRUE, FALSE} else unknown(f"condition.{self._number(node)}", "bool")

    def words_in(self, node: Node) -> Iterator[Word]:
        """The words that the condition ``node`` compares."""
        for one in node.arguments:
            if isinstance(one, Word):
                yield one
            elif isinstance(one, Node):
                yield from self.words_in(one)

    def bits_about(self, words: Iterable[Word], conditions: Iterable[Node]) -> BitsAbout:
        """What is known, over bits, of what ``words`` are computed of: ``conditions`` of the same, and ranges."""
        leaves = dict.fromkeys(leaf for word in words for leaf in self.leaves(word))
        known = []
        for one in conditions:
            own = {leaf for word in self.words_in(one) for leaf in self.leaves(word)}
            if own and own <= leaves.keys():
                known.append(self.bits_formula(one))
        return BitsAbout(tuple(known), tuple(leaves))

    def bits_follow(self, known: BitsAbout, formula: Node) -> bool:
        """Whether ``formula`` over bits follows from what is ``known``.

        The integers are asked for a bound of a leaf only where values were found against ``formula`` that are beyond
        it. Of the bounds that such a value is beyond it is the nearest: where that does not hold, none of them does.
        """

        def more(number: Callable[[Node], int]) -> list[Node]:
            return [fact for leaf in known.leaves for fact in self._facts_against(leaf, number(self.bits(leaf)))]

        return self.questions.bits_hold(known.formulas, formula, more)

    def _facts_against(self, leaf: Word, number: int) -> Iterator[Node]:
        """Over bits, bounds that ``leaf`` is shown to be within and ``number`` is not."""
        value = self.value(leaf)
        above, below = (one for one in self.bounds if one <= number), (one for one in self.bounds if one > number)
        for bound, is_below in ((max(above, default=None), True), (min(below, default=None), False)):
            if bound is not None and self._is_shown(value < bound if is_below else value >= bound):
                fact = condition("bits less", self.bits(leaf), condition("bits constant", bound))
                yield fact if is_below else negation(fact)

    def _is_shown(self, formula: Node) -> bool:
        """Whether ``formula`` holds; what was shown to is not asked again in its scope."""
        if formula not in self._shown[-1]:
            if not self.questions.holds(formula):
                return False
            self._shown[-1].add(formula)
        return True
