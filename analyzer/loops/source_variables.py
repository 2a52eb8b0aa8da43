"""Variables of the source in the states of the analysis: how many iterations of its loop a round moves a counter by.

Words: induction variable, line table, assumption (docs/explanation/glossary.md).

*Soundness:* what the registers do is proved; that they hold the variable is the compiler's word. At a loop's header the
same sum of registers is compared in each round, so a constant that the compiler has wrong in it makes no difference.
Compilers do name wrong registers, as one that holds ``4 * i`` for ``i``, or a pointer. So their word is taken only
where it agrees with itself: within a round the variable must be seen to move by ``k - 1`` steps, and by a number of
steps that has no factor with ``k`` in common: what is seen of ``f * i`` are multiples of ``f``. Of two iterations, and
where registers that the round has changed are compared by their constants, each line of the body must stand in the code
twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd

from wcet_probe.analyzer.facts.outcomes import dwarf_registers
from wcet_probe.analyzer.facts.source_parts import SourceCounter, SourceLoop
from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.counters import settled
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.model.image import LineTable, VariableLocation

_WORD_BITS = 32
_MOST_STEP = 127
"""No variable is narrower than a byte: a change by so much at most is no change by a multiple of its width more."""
_FEW = 4
"""Of more iterations one need not be seen: a register that holds twice the variable would be two times too fast."""

_Sum = tuple[frozenset[tuple[Term, Fraction]], Fraction]
"""The value of a variable: terms with their factors, and what is added."""


class Variables:
    """The source variables of the analysed code, as sums of what its states know."""

    def __init__(self, values: Values, locations: Sequence[VariableLocation], lines: LineTable) -> None:
        self.values, self._lines = values, lines
        self._by_name: dict[tuple[str, str, int], list[VariableLocation]] = {}
        for one in locations:
            self._by_name.setdefault((one.function, one.name, one.line), []).append(one)
        self._registers = dwarf_registers(values)

    def iterations(self, shape: LoopShape, loop: SourceLoop, counter: SourceCounter) -> frozenset[int]:
        """By how many iterations each of the ways round ``shape`` moves ``counter``; empty where that is not known."""
        header = shape.loop.header
        location = self.location(loop, counter, header)
        before = self.value(location, self.values.states[header]) if location else None
        if location is None or before is None:
            return frozenset()
        states = [self.values.edges[edge].state for edge in shape.back_edges]
        steps = [_iterations(change_of(before, self.value(location, state)), counter, location) for state in states]
        known = frozenset(step for step in steps if step is not None)
        if not known or len(known) < len(set(steps)):
            return frozenset()
        most = max(known)
        moves = self._moves(shape, loop, counter, location, before) if most > 1 else [0]
        is_seen = most <= 1 + max(moves) - min(moves) + (most > _FEW) and gcd(most, *moves) == 1
        is_seen = is_seen and (most != 2 or self.copies(shape, loop) > 1)
        if not is_seen and self.copies(shape, loop) > 1:
            is_seen = most <= 1 + self._steps(shape, loop, counter, location)
        return known if is_seen else frozenset()

    def copies(self, shape: LoopShape, loop: SourceLoop) -> int:
        """How often the code of ``shape`` comes to the line of the body to which it comes least often."""
        return self._copies(loop, [one.address for block in self._blocks(shape) for one in block.instructions])

    def stored_lines(self, shape: LoopShape) -> frozenset[tuple[str, int] | None]:
        """The lines on which ``shape`` stores."""
        return frozenset(
            self._lines.find(one.address)
            for block in self._blocks(shape)
            for one in block.instructions
            if any(op.opcode == "STORE" for op in one.ops)
        )

    def begins_again(self, former: LoopShape, shape: LoopShape, loop: SourceLoop, counter: SourceCounter) -> bool:
        """Whether control that comes from ``former`` enters ``shape`` with the counter that it entered ``former`` with.

        *Soundness:* of values that are not the same sum nothing is said.
        """
        end = shape.parent.header if shape.parent is not None else None
        behind = self.values.order.behind((former.loop.header,), lambda edge: edge.target != end)
        first = self._at_entry(former, former.entry_edges, loop, counter)
        again = [edge for edge in shape.entry_edges if edge.source in behind]
        return not first.isdisjoint(self._at_entry(shape, again, loop, counter))

    def _at_entry(
        self, shape: LoopShape, edges: Iterable[Edge], loop: SourceLoop, counter: SourceCounter
    ) -> set[_Sum | None]:
        """What ``counter`` is on ``edges`` to the header of ``shape``, as far as that is known."""
        location = self.location(loop, counter, shape.loop.header)
        found = {self.value(location, self.values.edges[edge].state) for edge in edges} if location else set()
        return found - {None}

    def _blocks(self, shape: LoopShape) -> list[Block]:
        """The blocks of a loop in its own function."""
        points, header = self.values.graph.points, shape.loop.header
        own = [points[node] for node in shape.loop.nodes if node in self.values.states]
        return [point.block for point in own if point.context == points[header].context]

    def _moves(
        self, shape: LoopShape, loop: SourceLoop, counter: SourceCounter, location: VariableLocation, before: _Sum
    ) -> list[int]:
        """By how many steps the variable is seen to have moved within a round."""
        values, points = self.values, self.values.graph.points
        context = points[shape.loop.header].context
        told = self._by_name[loop.function, counter.name, counter.line]
        seen = [0]
        for node in sorted(shape.loop.nodes & values.states.keys()):
            block = points[node].block
            for one in told if points[node].context == context else ():
                is_here = one.low < block.end_address and block.address < one.high and one.scope == location.scope
                if is_here and not self._is_written(one, block):
                    seen.append(change_of(before, self.value(one, values.states[node])) or 0)
        unit = counter.step * location.unit_bytes
        return [change // unit for change in seen if not change % unit]

    def _steps(self, shape: LoopShape, loop: SourceLoop, counter: SourceCounter, location: VariableLocation) -> int:
        """By how many steps the sums of these registers lie apart that are the variable somewhere in the loop."""
        blocks = self._blocks(shape)
        apart = [
            one.constant - location.constant
            for one in self._by_name[loop.function, counter.name, counter.line]
            if one.registers == location.registers and one.scope == location.scope
            if any(block.address <= one.low < block.end_address for block in blocks)
        ]
        return int(max(apart, default=Fraction(0)) - min(apart, default=Fraction(0))) // abs(
            counter.step * location.unit_bytes
        )

    def _is_written(self, location: VariableLocation, block: Block) -> bool:
        """Whether the block writes one of the registers before it comes to ``location``."""
        own = [register for number, _ in location.registers if (register := self._registers.get(number))]
        return any(
            Location("register", op.output.offset, op.output.size_bytes).overlaps(register)
            for instruction in block.instructions
            if instruction.address < location.low
            for op in instruction.ops
            if op.output and op.output.space == "register"
            for register in own
        )

    def _copies(self, loop: SourceLoop, addresses: Sequence[int]) -> int:
        """How often the code comes to the line of the body to which it comes least often; the head's if it is alone."""
        runs: dict[int, int] = {}
        former = 0
        for address in sorted(addresses):
            file, line = self._lines.find(address) or ("", 0)
            if file == loop.file and line in loop and line != former:
                runs[line] = runs.get(line, 0) + 1
            former = line
        body = [count for line, count in runs.items() if line not in loop.header_lines]
        return min(body or runs.values(), default=0)

    def location(self, loop: SourceLoop, counter: SourceCounter, point: int) -> VariableLocation | None:
        """Where ``counter`` is at the start of a point; None where that is not said, or of several copies of it."""
        address = self.values.graph.points[point].block.address
        found = [
            one
            for one in self._by_name.get((loop.function, counter.name, counter.line), ())
            if one.low <= address < one.high
        ]
        return found[0] if len(found) == 1 else None

    def value(self, location: VariableLocation, state: State) -> _Sum | None:
        """The variable at ``location`` in ``state``."""
        terms, coefficients, constant = state.terms, dict[Term, Fraction](), location.constant
        for number, factor in location.registers:
            register = self._registers.get(number)
            term = settled(state, state.read(register)) if register is not None else None
            if term is None:
                return None
            form = terms.linear(term)
            constant += factor * signed(form.bits, form.constant)
            for part, times in form.coefficients.items():
                coefficients[part] = coefficients.get(part, Fraction(0)) + factor * signed(form.bits, times)
        return frozenset((term, factor) for term, factor in coefficients.items() if factor), constant


def change_of(before: _Sum, after: _Sum | None) -> int | None:
    """By how much a variable has changed, from -2**31; None where that is no constant.

    *Soundness:* terms are numbers modulo 2**32, and so is the change.
    """
    if after is None or before[0] != after[0] or (after[1] - before[1]).denominator != 1:
        return None
    return signed(_WORD_BITS, int(after[1] - before[1]) % (1 << _WORD_BITS))


def _iterations(change: int | None, counter: SourceCounter, location: VariableLocation) -> int | None:
    """The iterations that a change of the variable takes, if it is so small that it did not wrap around."""
    step = counter.step * location.unit_bytes
    if change is None or not step or change % step or change // step < 1:
        return None
    return change // step if abs(change) <= _MOST_STEP * location.unit_bytes else None
