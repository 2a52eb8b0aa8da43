"""What an operation of CAMA stored, as functions of a view, and the terms at which the claims are assumed.

Words: claim, obligation, uninterpreted functions (docs/explanation/glossary.md).

*Soundness:* a function at an argument is the last value that was stored at one shown to be equal, and for each later
store of which nothing is shown either that value or this one; what was not stored is what the view at entry has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wcet_probe.analyzer.deduction.cama_claims import definitions
from wcet_probe.analyzer.deduction.cama_geometry import Geometry
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.claims import Claim, Named, instances
from wcet_probe.analyzer.deduction.execution import Astray, Site
from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, Node, choice, linear, term
from wcet_probe.analyzer.deduction.obligations import Reached
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.analyzer.domains.congruences import Congruence

ANY_ADDRESS = Congruence(1, 0)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for all of an operation.

    Attributes:
        claims: that are assumed at entry.
        before: the view at entry.
        begins: whether it makes the heap, so that nothing is live at entry, and claims are not assumed.
        oblige: is told of each obligation: what it is, where, and whether it was shown.
        asked_set: the set that the operation is given, if any.
        leaves_large: whether ways are left to another part that compare a large size with the first block of its list.
        leaves_found: ways are left to another part on which a list with a block was found, of these kinds of blocks.
        stops_at: the word of static data, by its name in a view, whose load ends a way; empty for none.
        makes_block: whether the word before a block may be stored that is none yet; it is asked at the end what it is.
        made: claims of ``before`` at terms, which are asked for again and again.
        reached: of each instruction that accesses data, what was shown that it accesses.
        aligned: of each such instruction, the classes that its addresses were shown to be in, one for each way.
    """

    geometry: Geometry
    terms: WordTerms
    claims: tuple[Claim, ...]
    before: View
    begins: bool
    oblige: Callable[[str, int, bool], None]
    asked_set: Word | None = None
    leaves_large: bool = False
    leaves_found: frozenset[str] = frozenset()
    stops_at: str = ""
    makes_block: bool = False
    made: dict[tuple[Any, ...], Node] = field(default_factory=dict)
    reached: dict[int, set[Reached]] = field(default_factory=dict)
    aligned: dict[int, set[Congruence]] = field(default_factory=dict)


@dataclass(slots=True)
class Stores:
    """What was stored at one point of a way.

    Attributes:
        stored: of each function of a view, the arguments and values that were stored, in order.
        named: the terms of each kind that the claims are assumed at.
    """

    rules: Rules
    stored: dict[str, tuple[tuple[Node, Node], ...]] = field(default_factory=dict)
    named: Named = field(default_factory=lambda: Named({}))

    def oblige(self, what: str, site: Site, formula: Node) -> None:
        """Ask that ``formula`` holds at ``site``."""
        self.rules.oblige(what, site.instruction_address, self.rules.terms.questions.holds(formula))

    def reach(self, what: Reached, site: Site, aligned: Congruence = ANY_ADDRESS) -> None:
        """Tell that the access at ``site`` is to ``what``, and at an address of the class ``aligned``."""
        self.rules.reached.setdefault(site.instruction_address, set()).add(what)
        self.rules.aligned.setdefault(site.instruction_address, set()).add(aligned)

    def name(self, kind: str, one: Node) -> None:
        """Assume the claims at ``one`` from here on."""
        if (kind, one) in self.named:
            return
        rules = self.rules
        for formula in definitions(rules.geometry, rules.before, kind, one):
            rules.terms.questions.assume(formula)
        if not rules.begins:
            for formula in instances(rules.claims, rules.before, self.named, kind, one, made=rules.made):
                rules.terms.questions.assume(formula)
        self.named = self.named.with_term(kind, one)

    def _base(self, name: str, argument: Node) -> Node:
        """What the function ``name`` was at entry; behind the clearing of tables, what that left."""
        if self.rules.begins and name in {"first_large", "first_small"}:
            return term(0)
        found: Node = getattr(self.rules.before, name)(argument)
        return found

    def read(self, name: str, argument: Node, most: int) -> Node:
        """The function ``name`` at ``argument``, up to ``most``, behind what was stored."""
        questions = self.rules.terms.questions
        open_stores: list[tuple[Node, Node]] = []
        found: Node | None = None
        for place, value in reversed(self.stored.get(name, ())):
            is_same = argument.equals(place)
            if is_same is TRUE or (is_same is not FALSE and questions.holds(is_same)):
                found = value
                break
            if is_same is not FALSE and not questions.holds(argument.differs(place)):
                open_stores.append((place, value))
        if found is None:
            found = self._base(name, argument)
            if found.operation != "int":
                self.rules.terms.known(found, most)
        for place, value in reversed(open_stores):
            found = choice(argument.equals(place), value, found)
        if found.operation in {"choice", "sum"}:
            whole = self.rules.terms.fresh(name)
            questions.assume(whole.equals(found))
            return self.rules.terms.known(whole, most)
        return found

    def write(self, name: str, argument: Node, value: Node) -> None:
        """Let the function ``name`` be ``value`` at ``argument`` from here on."""
        self.stored[name] = (*self.stored.get(name, ()), (argument, value))

    def divided(self, word: Word, unit: int) -> Node:
        """``word`` divided by ``unit``.

        Raises:
            Astray: it is not shown to divide it.
        """
        if word.alignment % unit:
            raise Astray(f"an address or word that is not shown to be a multiple of {unit}")
        value = self.rules.terms.value(word)
        if value.operation == "int":
            return term(value.arguments[0] // unit)
        if value.operation != "sum":
            return linear(0, [(value, 1)]) if unit == 1 else _raise_undivided()
        total, parts = value.arguments
        return linear(total // unit, [(node, factor // unit) for node, factor in parts])

    @staticmethod
    def split(word: Word, unit: int) -> tuple[Word, Word]:
        """The parts of ``word`` that ``unit`` divides, and the rest."""
        high = tuple(part for part in word.parts if part[1] % unit == 0)
        low = tuple(part for part in word.parts if part[1] % unit)
        return Word(word.constant - word.constant % unit, high), Word(word.constant % unit, low)

    def all_stored(self) -> Iterator[tuple[str, Node]]:
        """The functions and arguments of all stores."""
        for name, stores in self.stored.items():
            for argument, _ in stores:
                yield name, argument


def _raise_undivided() -> Node:
    raise Astray("a word that is no sum")


def word_of(node: Node) -> Word:
    """An unknown or constant as a word."""
    if node.operation == "int":
        return Word(node.arguments[0])
    if node.operation == "sum":
        raise Astray("a sum in the place of an unknown")
    return Word(0, ((node, 1),))
