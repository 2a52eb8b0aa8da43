# SPDX-License-Identifier: 0BSD
"""Addresses by name: which accesses go to the same bytes though nobody knows where they are.

A certificate names values: where a node begins, a place may hold a *symbol* plus an offset. A symbol may get another
value only where the certificate says that it begins anew, at a node or behind one. Each block is executed once on these
names beside the numbers that the invariants tell; what is computed in it and is no such sum has a name of its own, that
of the instruction and the register, until the block is left.

Names are bases of `numbers.Value` that begin with ``@``, or with `numbers.TAINTED` if what is called so may be a stack
address: a store through it may hit any word of the stack. They are one name (`numbers.bare`) wherever it matters only
which bytes an access goes to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from wcet_probe.certificate.kernel.coverage import MOST_STATES, Code, Coverage, edges_taken, over
from wcet_probe.certificate.kernel.records import Edge, Graph, demand
from wcet_probe.certificate.machines.computations import kept, name_of
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.operands import (
    class_of,
    class_of_address,
    class_of_sum,
    may_be_skipped,
    moved_if,
    operands_of,
)
from wcet_probe.certificate.names.known import known_places
from wcet_probe.certificate.names.names import Address, Claim, Executed, Names, Passage, Pointers, Traced
from wcet_probe.certificate.names.near import Near, near_symbol
from wcet_probe.certificate.names.shown_classes import Shown, shown_behind
from wcet_probe.certificate.values.congruences import (
    BELIEVED,
    MOST_MODULUS,
    UNALIGNED,
    UNKNOWN_SPAN,
    Congruence,
    difference,
    either,
    implies,
    residue_of,
    total,
)
from wcet_probe.certificate.values.numbers import TAINTED, TOP, WORD, Value, bare, constant, join, signed
from wcet_probe.certificate.values.state import Place, State, joined
from wcet_probe.certificate.values.terms import Terms, is_named
from wcet_probe.model.instruction import Instruction


def speaking(
    asserted: Pointers,
    code: Code,
    graph: Graph,
    invariants: Mapping[str, Mapping[Place, Value]],
    coverage: Coverage,
) -> Pointers:
    """What is ``asserted``, with the registers of which it says nothing in this graph."""
    if asserted.known is not None or not asserted.facts:
        return asserted
    return replace(asserted, known=known_places(code, graph, invariants, coverage, asserted.words))


class Tracer:
    """Executes nodes on names.

    Attributes:
        names: of the certificate.
        rests_on_stack: whether an access, or a class, was of a distance from the stack pointer: *stack-alignment*.
    """

    def __init__(
        self,
        code: Code,
        graph: Graph,
        invariants: Mapping[str, Mapping[Place, Value]],
        coverage: Coverage,
        names: Names,
    ) -> None:
        self._code, self._graph, self._invariants, self._coverage = code, graph, invariants, coverage
        self.names, self.rests_on_stack = names, False
        self._shown = Shown(names.homes)
        self._ranges: dict[str, Value] = {}
        self._node = graph.entry
        self.terms = Terms(names.homes, names.sums)

    def check_entry(self) -> None:
        """Check what is claimed where the call begins: each symbol gets its value there, from one place.

        Raises:
            VerificationError: more is claimed.
        """
        entry = self._graph.entry
        claims = self.names.claims.get(entry, {})
        demand(not self.names.shown.get(entry), "no access has shown anything where the call begins")
        symbols = [claim.symbol for claim in claims.values()]
        demand(self.names.homes.keys() >= set(symbols), "a sum is claimed where the call begins")
        demand(len(set(symbols)) == len(symbols), "one symbol is claimed of two places where the call begins")
        for place, (symbol, offset) in claims.items():
            way, node, wanted = self.names.homes[symbol]
            demand((way, node) == ("at", entry), f"{symbol} has no value where the call begins")
            known = self.at_entry(place).moved(-offset)
            demand(
                implies(known, wanted),
                f"{symbol} is not known to be {wanted.residue} modulo {wanted.modulus} at the entry",
            )

    def at_entry(self, place: Place) -> Congruence:
        """What is known of an argument."""
        value = self._invariants[self._graph.entry].get(place, TOP)
        is_told = place in self._coverage.arguments
        return max(residue_of(value), UNALIGNED if is_told else self._asserted(value))

    def _asserted(self, value: Value, *, is_loaded: bool = False) -> Congruence:
        """What facts tell of a number of which nothing is known; if it ``is_loaded``, whatever it may point to."""
        is_unknown = (value.is_plain if is_loaded else value.is_number) and value.high - value.low >= UNKNOWN_SPAN
        asserted = self.names.asserted
        believed = BELIEVED if asserted.has_remainders else Congruence(asserted.most, 0)
        return believed if is_unknown else UNALIGNED

    def _at_access(self, known: Congruence, address: int) -> Congruence:
        """The class of a name where the instruction at an address makes an access by it, whose fact speaks there."""
        asserted = self.names.asserted
        if known == BELIEVED:
            return max(asserted.class_at(address), known.coarser(asserted.divisor(address)))
        return known.coarser(asserted.divisor(address))

    def ranges_at(self, node: str) -> dict[str, Value]:
        """What the invariants tell of symbols that places hold where ``node`` begins, modulo 2**32."""
        known, found = State(dict(self._invariants[node])), dict[str, Value]()
        for place, (symbol, offset) in self.names.claims.get(node, {}).items():
            own = known.read(place)
            if symbol in self.names.homes and own.is_number:
                found[symbol] = own._replace(low=own.low - offset, high=own.high - offset)
        return found

    def placed(self, node: str) -> tuple[Address, ...]:
        """The addresses that places with names hold where ``node`` begins, of which the invariants tell where they are.

        Of what they are multiples of facts tell nothing here, for no code makes an access.
        """
        known = self._invariants[node]
        told = ((claim, known.get(place, TOP)) for place, claim in self.names.claims.get(node, {}).items())
        return tuple(
            Address(value, Value(f"@{symbol}", offset, offset, 0), residue_of(value), residue_of(value).moved(-offset))
            for (symbol, offset), value in told
            if value.is_number and value.high - value.low < UNKNOWN_SPAN
        )

    def trace(self, node: str) -> Traced:
        """Execute ``node`` once, on numbers and on names."""
        self._node = node
        numbers, named, alignments = self._begin(node)
        self._ranges = self.ranges_at(node)
        self._shown = Shown(self.names.homes)
        self._shown.classes |= {f"@{symbol}": one for symbol, one in self.names.shown.get(node, {}).items()}
        cover = self._coverage
        machine = Machine(self._code.image, cover.escapes, on_stack=cover.on_stack.again(), saving=cover.saving)
        executed, outcomes = [], list[Outcome]()
        block, before, old, known = self._coverage.instructions[node], named, numbers, list[Outcome]()
        is_followed, apart = any(may_be_skipped(one) and one.accesses for one in block), list[State]()
        for instruction in block:
            is_conditional = is_followed and may_be_skipped(instruction)
            apart = apart or ([numbers.copy()] if is_conditional else [])
            found = (self._code.isa.fulfilled(instruction, one) for one in (apart if is_conditional else ()))
            taken = [one for one in found if one is not None]
            executed.append(self._executed(machine, instruction, numbers, named, alignments, taken))
            apart = [way.state for one in apart for way in self._code.isa.outcomes_of(machine, instruction, one)]
            apart = apart if len(apart) <= MOST_STATES else [reduce(joined, apart)]
            before, old = State(dict(named.values)), State(dict(numbers.values))
            outcomes = self._code.isa.execute(machine, instruction, named)
            known = self._code.isa.execute(machine, instruction, numbers)
            if instruction is not block[-1]:
                numbers, named = (reduce(joined, [one.state for one in each]) for each in (known, outcomes))
                self._rename(instruction, (before, old), named, numbers, alignments, _written_back(executed[-1]))
        leaving: dict[str, tuple[State, ...]] = {}
        numbers = reduce(joined, (one.state for one in known)) if known else numbers
        for outcome in outcomes:
            self._rename(block[-1], (before, old), outcome.state, numbers, alignments, _written_back(executed[-1]))
            following = block[-1].address + block[-1].size_bytes
            outcome = over(self._code, machine, self._graph, node, outcome, following)  # noqa: PLW2901  (behind a call)
            if outcome.over is not None:
                _name_anew(outcome.state, block[-1].address)
            for edge in edges_taken(self._graph, node, outcome, self._coverage.gone):
                leaving[edge.name] = (*leaving.get(edge.name, ()), outcome.state)
        return Traced(tuple(executed), leaving, alignments, self._shown.classes)

    def _begin(self, node: str) -> tuple[State, State, dict[str, Congruence]]:
        known = self._invariants[node]
        claims = self.names.claims.get(node, {})
        alignments: dict[str, Congruence] = {}
        named = State(dict(known))
        for place in dict.fromkeys((*self._code.isa.REGISTERS, *known, *claims)):
            value = known.get(place, TOP) if isinstance(place, str) else known.get(place)
            claim = claims.get(place)
            demand(claim is None or (value is not None and value.is_plain), f"{place} at {node} cannot have a name")
            if claim is not None:
                base = f"@{claim.symbol}"
                alignments[base] = self._claimed_class(claim, value)
                named.values[place] = _tainted(Value(base, claim.offset, claim.offset, 0), value)
            elif value is not None and value.is_number and not value.is_constant:
                base = f"@entry:{place}"
                alignments[base] = residue_of(value)
                named.values[place] = Value(base, 0, 0, 0)
        return State(dict(known)), named, alignments

    def _claimed_class(self, claim: Claim, value: Value | None) -> Congruence:
        """The class of what is claimed of a place that holds ``value``; of a sum, by its symbols, which count once."""
        home = self.names.homes.get(claim.symbol)
        if home is not None:
            return home[2]
        found = Congruence(MOST_MODULUS, 0)
        for symbol, times in self.terms.linear[claim.symbol].items():
            own = self.names.homes[symbol][2] if times in {1, -1} else UNALIGNED
            found = difference(found, own) if times == -1 else total(found, own)
        return max(found, residue_of(value).moved(-claim.offset) if value is not None else UNALIGNED)

    def _executed(
        self,
        machine: Machine,
        instruction: Instruction,
        numbers: State,
        named: State,
        alignments: dict[str, Congruence],
        taken: Sequence[State] = (),
    ) -> Executed:
        """``taken`` is what may hold, as numbers, where a conditional instruction is executed; none of any other."""
        found = []
        for access in instruction.accesses:
            words = []
            for each in range(access.count):
                number, name = machine.address_of(access, numbers, each), machine.address_of(access, named, each)
                is_whole = access.align_mask == WORD - 1 and name.is_plain and not name.is_constant
                name, by_parts = bare(name), UNALIGNED
                if is_whole and access.index is not None and access.base is not None:
                    base, index = named.read(access.base), named.read(access.index)
                    last = self.terms.shifted(index, access.shift.value, access.shift_bits)
                    factor = -1 if access.subtract_index else 1
                    name = (last and self.terms.sum_of([(base, 1), (last, factor)])) or TOP
                    offset = access.displacement + each * access.bytes_each
                    name = Value(name.base, name.low + offset, name.low + offset, 0) if name.is_constant else name
                    self._see_stack(named, (access.base, access.index))
                    by_parts = class_of_address(alignments, named, access, numbers.read(access.index))
                    by_parts = by_parts.moved(offset - name.low)
                    if name.base.startswith("@"):
                        known = max(residue_of(number).moved(-name.low), by_parts)
                        alignments[name.base] = max(alignments.get(name.base, UNALIGNED), known)
                        shown = class_of_address(self._shown.classes, named, access, constant(0))
                        self._shown.add(name.base, shown.moved(offset - name.low))
                self.rests_on_stack |= number.base == "stack"
                of_base = max(alignments.get(name.base, UNALIGNED), by_parts)
                of_base = self._at_access(of_base, instruction.address)
                of_base = max(of_base, residue_of(number).moved(-name.low), self._shown.of(name.base))
                near = self._near(name, alignments, instruction.address)
                own = of_base.moved(name.low)
                where = reduce(join, (machine.address_of(access, one, each) for one in taken)) if taken else number
                if where.is_number:
                    number, own = where, max(own, residue_of(where))
                words.append(Address(number, name, own, of_base, near, self._parts(name)))
            found.append(tuple(words))
        self._shown.see(instruction, [(one.number, one.name, one.of_base) for words in found for one in words])
        return Executed(instruction, tuple(found))

    def _parts(self, name: Value) -> tuple[tuple[int, Value], ...]:
        """What is added up to the address called ``name``, besides a constant, if a range of each is known."""
        base = name.base.removeprefix("@")
        form = self.terms.linear.get(base, {base: 1})
        is_known = name.base.startswith("@") and name.is_constant and form.keys() <= self._ranges.keys()
        return tuple((signed(times), self._ranges[part]) for part, times in form.items()) if is_known else ()

    def _near(self, name: Value, alignments: Mapping[str, Congruence], address: int) -> Near | None:
        """The symbol that an access by ``name`` of the instruction at ``address`` is near."""

        def class_of_symbol(symbol: str) -> Congruence:
            # Of a sum no remainder is believed, as for any other.
            known = alignments.get(f"@{symbol}", UNALIGNED).coarser(self.names.asserted.divisor(address))
            return max(known, self._shown.of(f"@{symbol}"))

        return near_symbol(name, self.terms.linear, self.names.homes, self._ranges, class_of_symbol)

    def _rename(
        self,
        instruction: Instruction,
        former: tuple[State, State],
        named: State,
        numbers: State,
        alignments: dict[str, Congruence],
        address: Value | None,
    ) -> None:
        """Name each number that has no name.

        Args:
            instruction: that was executed.
            former: what was known before it, by name and as numbers.
            named: what is known now, by name.
            numbers: as numbers.
            alignments: classes of names.
            address: what a register holds that is written back.
        """
        before, _ = former
        nameless = [
            place
            for place, value in named.values.items()
            if (value.is_plain or value.base.startswith("@")) and not (value.is_constant and ">" not in value.base)
        ]
        for place in sorted(nameless, key=str):
            value = named.values[place]
            same = address if place in instruction.writes - instruction.loaded else None
            same = kept(instruction, place, *former) if same is None else same
            if same is not None:
                named.values[place] = _tainted(same, value)
                continue
            term = name_of(self.terms, instruction, place, before)
            own = term or Value(f"@{instruction.address:x}.{place}", 0, 0, 0)
            named.values[place], (base, low, *_) = _tainted(own, value), own
            number = numbers.values.get(place, TOP)
            if term is not None and base.startswith("@t") and low == 0 and number.is_number:
                self._ranges[base.removeprefix("@")] = number
            found = residue_of(number) if number.is_plain else UNALIGNED
            computed = self._computed(instruction, place, before, alignments, number)
            if value.base.startswith("@"):  # it is one of a few distances from what has a name
                computed = max(computed, class_of(alignments, State({place: value}), str(place)))
            known = max(found, computed).moved(-low)
            alignments[base] = max(alignments.get(base, UNALIGNED), known) if term else known
            self._shown.add(base, max(found, self._shown.computed(instruction, place, before)).moved(-low))

    def _computed(
        self, instruction: Instruction, place: Place, before: State, alignments: Mapping[str, Congruence], number: Value
    ) -> Congruence:
        """What is known of a result by the parts of a sum, or by what facts tell of the parts of addresses."""
        if place not in instruction.writes | instruction.loaded or not instruction.writes | instruction.loaded:
            return UNALIGNED
        operands, instead = operands_of(instruction, place), moved_if(instruction, place)
        if instead is not None and not number.is_number:
            self._see_stack(before, (place, instead))
            return either(class_of(alignments, before, place), class_of(alignments, before, instead))
        if operands is None:
            known, is_executed = self.names.asserted.known, not may_be_skipped(instruction)
            if known is not None and known.leaves_unknown(self._node, instruction.address, place):
                return self._asserted(number, is_loaded=is_executed and place in instruction.loaded)
            one = UNALIGNED if instead is None else class_of(alignments, before, place)
            return one if instead is None else either(one, class_of(alignments, before, instead))
        self._see_stack(before, operands[1])
        return class_of_sum(alignments, before, operands, number)

    def _see_stack(self, state: State, words: Iterable[str]) -> None:
        """A class is computed of what ``words`` hold: of a stack address it rests on *stack-alignment*."""
        self.rests_on_stack |= any(state.read(word).base == "stack" for word in words)

    def passage(self, edge: Edge, traced: Traced) -> Passage | None:
        """What ``edge`` does to names; None where it is never taken, as names, too, may tell.

        Raises:
            VerificationError: a place holds something else behind it than is claimed.
        """
        states = traced.leaving.get(edge.name, ())
        if edge.name not in self._coverage.taken or not states:
            return None
        begins = self.names.begins(edge)
        each = [self._begun(edge, state, traced, begins) for state in states]
        found = {symbol: value for symbol, value in each[0].items() if all(one.get(symbol) == value for one in each)}
        self._check_shown(edge, traced, begins, found)
        moved: dict[str, list[tuple[str, int]]] = {}
        begun = {symbol: value for symbol, value in sorted(found.items()) if symbol in begins}
        for symbol, value in begun.items():
            if value.base.startswith("@"):
                moved.setdefault(value.base[1:], []).append((symbol, -value.low))
        return Passage(begins, {base: tuple(own) for base, own in moved.items()}, begun, self.terms)

    def _begun(self, edge: Edge, state: State, traced: Traced, begins: Collection[str]) -> dict[str, Value]:
        """What symbols are behind ``edge``, by the names before it: what the places hold that they are claimed of."""
        found: dict[str, Value] = {}
        sums: list[tuple[Place, Claim, Value]] = []
        for place, claim in self.names.claims.get(edge.target, {}).items():
            symbol, value = claim.symbol, bare(state.read(place))
            is_known = is_named(value) or (value.base == "stack" and value.is_constant)
            demand(is_known, f"what is claimed of {place} at {edge.target} has no name on {edge.name}")
            own = _less(value, claim.offset)
            if symbol not in self.names.homes:
                sums.append((place, claim, own))
                continue
            same = found.setdefault(symbol, own if symbol in begins else Value(f"@{symbol}", 0, 0, 0))
            demand(own == same, f"{place} at {edge.target} is not {symbol} and {claim.offset} behind {edge.name}")
            if symbol in begins:
                self._check_class(symbol, own, traced, edge, place)
        for place, (name, offset), own in sums:
            is_sum = self._is_sum(name, own, begins, found)
            demand(is_sum, f"{place} at {edge.target} is not {name} and {offset} behind {edge.name}")
        return found

    def check_believed(self, passages: Iterable[Passage]) -> None:
        """Check that what facts are believed of is on some way a number that nobody knows, and no constant on each.

        Raises:
            VerificationError: it is.
        """
        loaded = {symbol for one in passages for symbol, value in one.values.items() if not value.is_number}
        loaded |= {claim.symbol for claim in self.names.claims.get(self._graph.entry, {}).values()}
        known = next((one for one, home in self.names.homes.items() if home[2] == BELIEVED and one not in loaded), None)
        demand(known is None, f"facts are believed of {known}, which is a constant wherever it begins")

    def _is_sum(self, name: str, value: Value, begins: Collection[str], values: Mapping[str, Value]) -> bool:
        """Whether ``value`` is a sum of what its symbols are behind an edge, by the names before it."""
        parts: list[tuple[Value, int]] = []
        for symbol, times in self.terms.linear[name].items():
            if symbol in begins and symbol not in values:
                return False
            parts.append((values[symbol] if symbol in begins else Value(f"@{symbol}", 0, 0, 0), times))
        return self.terms.sum_of(parts) == value

    def _check_shown(self, edge: Edge, traced: Traced, begins: Collection[str], found: Mapping[str, Value]) -> None:
        """Each class that is said to be shown where ``edge`` leads to is that of what its symbol is then."""
        for symbol, wanted in self.names.shown.get(edge.target, {}).items():
            known = shown_behind(traced.shown, symbol, begins, found)
            demand(implies(known, wanted), f"no access has shown the class of {symbol} behind {edge.name}")

    def brought(self, value: Value, traced: Traced, target: str, place: Place) -> Congruence:
        """The class of what a symbol begins with that ``place`` is the value of, where ``target`` begins.

        Of a number that is known on this edge, but of which nothing is known there, facts speak as of any other.
        """
        if value.base == "stack":
            self.rests_on_stack = True
            return residue_of(value)
        if not value.is_number:
            return traced.alignments.get(value.base, UNALIGNED).moved(value.low)
        known, number = self.names.asserted.known, self._invariants[target].get(place, TOP)
        believed = self._asserted(number) if known and known.begins_unknown(target, place) else UNALIGNED
        return max(Congruence(MOST_MODULUS, value.low % MOST_MODULUS), believed)

    def _check_class(self, symbol: str, value: Value, traced: Traced, edge: Edge, place: Place) -> None:
        wanted = self.names.homes[symbol][2]
        known = self.brought(value, traced, edge.target, place)
        demand(
            implies(known, wanted),
            f"{symbol} is not known to be {wanted.residue} modulo {wanted.modulus} behind {edge.name}",
        )


def _tainted(name: Value, value: Value | None) -> Value:
    """``name``, which says that it may be derived from the stack pointer where ``value`` does."""
    own = bare(name)
    return own._replace(base=f"{TAINTED}{own.base[1:]}") if value is not None and value.may_be_stack else own


def _name_anew(named: State, address: int) -> None:
    """Name what a callee left that was called at ``address``: it left what is no named value and no constant."""
    for place, value in named.values.items():
        if value.is_plain and not value.is_constant:
            named.values[place] = _tainted(Value(f"@{address:x}.left.{place}", 0, 0, 0), value)


def _written_back(executed: Executed) -> Value | None:
    """The named address that an access leaves in its base register, which is the only one written besides a load."""
    instruction, addresses = executed
    is_before = instruction.text.endswith("]!") or instruction.text.split(" ", 1)[0].endswith("ux")
    if not is_before or len(addresses) != 1 or len(addresses[0]) != 1:
        return None
    name = addresses[0][0].name
    is_moved = not may_be_skipped(instruction) and instruction.accesses[0].index is not None
    return name if is_moved and name.base.startswith("@") else None


def _less(value: Value, offset: int) -> Value:
    if value.is_number:
        return constant(value.low - offset)
    return Value(value.base, value.low - offset, value.high - offset, 0)
