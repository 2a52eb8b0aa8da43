"""Where values that grow in a loop are likely to stop.

Words: threshold, widening (docs/explanation/glossary.md).

*Soundness:* none is needed: a threshold decides where a widening stops first, and the fixpoint is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property

from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import Supergraph
from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.analyzer.pcode.truths import RELATIONS
from wcet_probe.analyzer.values.execution.needed_operations import Needed
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_BITS = 32
_COMPARING = RELATIONS | {"INT_SUB", "INT_SBORROW", "INT_CARRY", "INT_SCARRY"}


class Thresholds:
    """Where widening stops in the loops of a graph.

    Args:
        graph: the graph.
        loops: its loops.
    """

    def __init__(self, graph: Supergraph, loops: Iterable[Loop]) -> None:
        self._graph = graph
        self._nodes = {loop.header: loop.nodes for loop in loops}
        self._compared: dict[int, tuple[frozenset[int], frozenset[Varnode]]] = {}
        self._registers: dict[int, Collection[Location]] = {}
        self._pairs: dict[int, frozenset[tuple[Varnode, int | Varnode]]] = {}

    @cached_property
    def all(self) -> tuple[int, ...]:
        """The constants of all code, and their neighbours."""
        constants, _ = self._used(range(len(self._graph.points)), lambda _: True)
        return _with_neighbours(constants)

    def compared(self, header: int, state: State) -> tuple[int, ...]:
        """The constants that a loop's code compares with, and what the registers that it compares hold in ``state``.

        Those are constants or known places of the stack, by offset, at the loop's header.
        Among all constants of the code are the small ones, and a counter would stop at each of them.
        """
        constants, registers = self._of(header)
        read = (state.read(Location("register", one.offset, one.size_bytes)) for one in registers)
        held = [term for term in read if term is not None]
        stops = constants.union(value.low for value in map(state.value, held) if value.is_constant)
        return _with_neighbours(stops.union(*(_told_by(state.terms.linear(term), stops) for term in held)))

    def own(self, header: int, state: State) -> Mapping[Term, tuple[int, ...]]:
        """For each symbol at a loop's header, where the loop's code compares it, alone or in a sum, with constants.

        A counter that other comparisons of the loop would stop at each of their constants goes on to its own one.
        """
        found: dict[Term, set[int]] = {}
        for register, other in self._compared_pairs(header):
            term = state.read(Location("register", register.offset, register.size_bytes))
            stop = _held(state, other) if isinstance(other, Varnode) else other
            if term is None or stop is None:
                continue
            form = state.terms.linear(term)
            for symbol, factor in form.coefficients.items():
                if factor in (1, (1 << form.bits) - 1):
                    found.setdefault(symbol, set()).add(factor * (stop - form.constant) & (1 << form.bits) - 1)
        return {symbol: _with_neighbours(stops) for symbol, stops in found.items()}

    def _compared_pairs(self, header: int) -> frozenset[tuple[Varnode, int | Varnode]]:
        """Each register that a loop's code compares, and what with."""
        if header not in self._pairs:
            self._pairs[header] = frozenset(
                (one, other)
                for block in self._blocks(self._nodes[header])
                for instruction in block.instructions
                for pair in _operands(instruction.ops, _compares)
                for one, other in (pair, pair[::-1])
                if isinstance(one, Varnode) and other is not None
            )
        return self._pairs[header]

    def held(self, header: int, state: State) -> tuple[int, ...]:
        """What a loop's code compares with, and what ``state`` holds of constants at its header."""
        held = {state.terms.value(term) for term in state.locations.values() if state.terms[term].bits == _BITS}
        return _with_neighbours(self._of(header)[0].union(value for value in held if value is not None))

    def registers(self, header: int, needed: Mapping[int, Needed]) -> Collection[Location]:
        """The registers that a loop's code compares, by what is ``needed`` of it: not by flags that nobody reads."""
        if header not in self._registers:
            # Contexts share blocks and what is needed of them.
            parts = ((self._graph.points[node].block.instructions, needed[node]) for node in self._nodes[header])
            different = {(id(instructions), id(part)): (instructions, part) for instructions, part in parts}
            self._registers[header] = {
                Location("register", one.offset, one.size_bytes)
                for instructions, part in different.values()
                for instruction, numbers in zip(instructions, part.operations, strict=True)
                for one in _used([instruction.ops[number] for number in numbers], _compares)
                if isinstance(one, Varnode)
            }
        return self._registers[header]

    def _of(self, header: int) -> tuple[frozenset[int], frozenset[Varnode]]:
        if header not in self._compared:
            self._compared[header] = self._used(self._nodes[header], _compares)
        return self._compared[header]

    def _used(
        self, nodes: Iterable[int], is_asked: Callable[[PcodeOp], bool]
    ) -> tuple[frozenset[int], frozenset[Varnode]]:
        """The constants and the registers that operations use of which ``is_asked``."""
        constants, registers = set[int](), set[Varnode]()
        for block in self._blocks(nodes):
            for instruction in block.instructions:
                for one in _used(instruction.ops, is_asked):
                    if isinstance(one, Varnode):
                        registers.add(one)
                    else:
                        constants.add(one)
        return frozenset(constants), frozenset(registers)

    def _blocks(self, nodes: Iterable[int]) -> Collection[Block]:
        """The different blocks of ``nodes``: contexts share them."""
        return {id(block): block for block in (self._graph.points[node].block for node in nodes)}.values()


def counted(state: State, counters: AbstractSet[Term]) -> tuple[int, ...]:
    """Where terms of ``counters`` end in ``state``, as proved: what keeps one of their values stops there."""
    symbols_of = state.terms.symbols
    held = {term for term in state.locations.values() if state.terms[term].bits == _BITS}
    own = [term for term in held if symbols_of(term) and symbols_of(term) <= counters]
    return _with_neighbours(end for term in own for end in state.value(term).unsigned_range())


def _compares(op: PcodeOp) -> bool:
    """Whether values are held against each other: not by a counter's step, nor by PowerPC's 3 - 2, a bit's place."""
    if op.opcode not in _COMPARING or (op.opcode == "INT_SUB" and op.output == op.inputs[0]):
        return False
    return any(one.space != "const" for one in op.inputs)


def _used(ops: Iterable[PcodeOp], is_asked: Callable[[PcodeOp], bool]) -> Iterator[int | Varnode]:
    """The constants and registers that operations of one instruction use."""
    for inputs in _operands(ops, is_asked):
        yield from (one for one in inputs if one is not None)


def _operands(
    ops: Iterable[PcodeOp], is_asked: Callable[[PcodeOp], bool]
) -> Iterator[tuple[int | Varnode | None, ...]]:
    """The constants and registers of each operation of one instruction, None for others.

    They are followed through copies: an immediate of Thumb and a register of PowerPC are copied before they are used.
    """
    copied: dict[Varnode, Varnode] = {}
    for op in ops:
        inputs = [copied.get(one, one) for one in op.inputs]
        if op.opcode == "COPY" and op.output is not None and op.output.space == "unique":
            copied[op.output] = inputs[0]
        if is_asked(op):
            yield tuple(map(_operand, inputs))


def _operand(one: Varnode) -> int | Varnode | None:
    if one.size_bytes != _BITS // 8 or one.space not in ("const", "register"):
        return None
    return one.offset if one.space == "const" else one


def _held(state: State, register: Varnode) -> int | None:
    """The constant that ``register`` holds, or the known place of the stack by offset."""
    term = state.read(Location("register", register.offset, register.size_bytes))
    value = None if term is None else state.value(term)
    return value.low if value is not None and value.is_constant else None


def _told_by(form: Linear, stops: Iterable[int]) -> Iterator[int]:
    """Where the one symbol of a sum is when the sum is at one of ``stops``; the sum may be an offset in the stack."""
    factors = [factor for factor in form.coefficients.values() if factor in (1, (1 << form.bits) - 1)]
    if form.constant and factors:
        yield from (factors[-1] * (stop - form.constant) & (1 << form.bits) - 1 for stop in stops)


def _with_neighbours(constants: Iterable[int]) -> tuple[int, ...]:
    """Each with the numbers beside it; at the ends of both orders a widening stops by itself."""
    last = (1 << _BITS) - 1
    found = set[int]()
    for constant in constants:
        found.update(((constant - 1) & last, constant, (constant + 1) & last))
    return tuple(sorted(found))
