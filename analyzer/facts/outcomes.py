"""How often the condition of an ``if`` holds: the side of its branch on which it does, by the debug information.

What a statement does may leave no code with a line of its own: a copy of a register, or what several paths share. The
branch that decides whether it is executed has one. The condition is a comparison, and the debug information says which
register holds a variable that it compares; the values say what the branch compares.

Words: flow fact, predicate, line table (docs/explanation/glossary.md).

*Soundness:* that a register holds the variable is the compiler's word, and that the branch on the condition's line
decides it that of the line table; both are assumptions, and each run counts. Of the branch's two sides one is where the
condition holds. Let the condition be ``e < v``, and ``e`` not speak of ``v``: what holds the more often the greater
``v`` is. ``x < v`` and ``x <= v`` do so as well, so a branch on one of these cannot be one on the condition's negation,
whatever the compiler has made of ``e``. Of ``v == e`` both sides must be known: a flag that is not 1 is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from wcet_probe.analyzer.facts.source_parts import SourceTest
from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.pcode.operations import Varnode
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.model.image import VariableLocation

_MIRRORED = {">": "<", ">=": "<="}
_WORD_BITS = 32
_ENTRY = -1


class UnknownOutcomeError(Exception):
    """How often a condition holds cannot be counted; the message says why."""


def dwarf_registers(values: Values) -> Mapping[int, Location]:
    """Registers by their numbers in DWARF: r0 to r15 of ARM (ARM IHI 0040), r0 to r31 of PowerPC.

    *Soundness:* as these documents say.
    """
    return {number: values.registers[f"r{number}"] for number in range(32) if f"r{number}" in values.registers}


def executions_where_true(
    values: Values, test: SourceTest, function: str, branches: Sequence[int], variables: Sequence[VariableLocation]
) -> Mapping[int, int]:
    """Weights of blocks, by address, whose sum is how often ``test`` was found to hold at ``branches``, or less.

    Args:
        values: of the analysed code.
        test: the condition.
        function: the source function that it stands in.
        branches: the points that end with a conditional branch that may be one on the condition.
        variables: where the variables of the analysed code are.

    Raises:
        UnknownOutcomeError: of no branch it is known where the condition holds, or no block counts it.

    *Soundness:* branches of which it is not known count as nothing, and so do those behind another one that is known,
    which may decide again what has been decided.
    """
    points = values.graph.points
    own = [one for one in variables if one.function == function]
    sides = {i: known for i in sorted(branches) if (known := _sides(values, i, test, own)) is not None}
    again = {
        points[later].block.address
        for i in sides
        for later in sides
        if points[later].context == points[i].context and later != i and follow_each_other(values, [i], [later])
    }
    entering: dict[int, set[int]] = {points[0].block.address: {_ENTRY}}
    for edge in values.edges:
        if edge.target >= 0:
            sources = entering.setdefault(points[edge.target].block.address, set())
            sources.add(points[edge.source].block.address)
    found: dict[int, dict[int, bool]] = {}
    for i, known in sides.items():
        if points[i].block.address not in again:
            found.setdefault(points[i].block.address, {}).update(known)
    weights = [_weights(address, known, entering) for address, known in found.items()]
    counted = [one for one in weights if one is not None]
    if branches and not counted:
        raise UnknownOutcomeError(
            f"no branch on its line is known to compare what {test} compares, or nothing counts it"
        )
    addresses = {address for one in counted for address in one}
    return {address: sum(one.get(address, 0) for one in counted) for address in sorted(addresses)}


def _weights(address: int, known: Mapping[int, bool], entering: Mapping[int, Collection[int]]) -> dict[int, int] | None:
    """Weights of blocks that count how often control leaves the block at ``address`` where the condition holds."""
    true, false = ([target for target, holds in known.items() if holds == side] for side in (True, False))
    alone = {target for target in known if {*entering[target]} == {address}}
    if alone >= {*true}:
        return dict.fromkeys(true, 1)
    return {address: 1, **dict.fromkeys(false, -1)} if alone >= {*false} else None


def _sides(
    values: Values, point: int, test: SourceTest, variables: Sequence[VariableLocation]
) -> Mapping[int, bool] | None:
    """Where the branch at the end of ``point`` goes, and whether ``test`` holds there; None where that is not known."""
    points = values.graph.points
    sides: dict[int, bool] = {}
    for edge, way in values.edges.items():
        if edge.source == point:
            outcome = _outcome(values, way, points[point].block, test, variables)
            if outcome is None or edge.target < 0:
                return None
            target = points[edge.target].block.address
            if sides.setdefault(target, outcome) != outcome:
                return None
    return sides


def follow_each_other(values: Values, points: Sequence[int], others: Sequence[int]) -> bool:
    """Whether control goes from one of ``points`` to one of ``others`` without passing a loop's header.

    *Soundness:* over every edge that can be taken.
    """
    headers = {shape.loop.header for shape in loop_shapes(values)}
    behind = values.order.behind(points, lambda edge: edge.target not in headers)
    return any(
        edge.target in others and edge.target not in headers for point in behind for edge in values.leaving[point]
    )


def _outcome(
    values: Values, way: EdgeValues, block: Block, test: SourceTest, variables: Sequence[VariableLocation]
) -> bool | None:
    """Whether ``test`` holds on the edge ``way`` out of ``block``; None where that is not known."""
    mirrored = test.operator in _MIRRORED
    operator = _MIRRORED.get(test.operator, test.operator)
    sides = (test.right, test.left) if mirrored else (test.left, test.right)
    one, other = (_term(values, way.state, block, side, variables) for side in sides)
    found = {
        outcome
        for condition, holds in way.conditions
        for relation, _, left, right in relations(values.terms, condition, holds=holds)
        for outcome in _told(way.state, (relation, left, right), operator, (one, other))
    }
    return found.pop() if len(found) == 1 else None


def _told(
    state: State, compared: tuple[str, Term, Term], operator: str, known: tuple[Term | None, Term | None]
) -> Iterator[bool]:
    """What a relation that holds tells of the condition ``known[0] operator known[1]``, of which one is known.

    *Soundness:* an order of a variable and a number may be told by an order of other numbers and with another sign, and
    is not understood.
    """
    relation, *operands = compared
    is_order = relation in ("<", "<=")
    if is_order != (operator in ("<", "<=")) or known[0] == known[1]:
        return
    for turned in (False, True):
        pairs = list(zip(known, reversed(operands) if turned else operands, strict=True))
        if any(term is not None and not _is_same(state, term, operand) for term, operand in pairs):
            continue
        if is_order and not any(state.value(operand).is_constant for operand in operands):
            yield not turned
        elif not is_order and None not in known:
            yield relation == operator


def _is_same(state: State, one: Term, other: Term) -> bool:
    form = state.terms.difference(one, other)
    return not form.coefficients and not form.constant


def _term(
    values: Values, state: State, block: Block, operand: str | int | None, variables: Sequence[VariableLocation]
) -> Term | None:
    """The value of one side of a condition at the end of ``block``; None where it is not known."""
    if operand is None:
        return None
    if isinstance(operand, int):
        return values.terms.constant(operand, _WORD_BITS)
    register = _register(values, block, [one for one in variables if one.name == operand])
    return state.read(register) if register is not None else None


def _register(values: Values, block: Block, told: Sequence[VariableLocation]) -> Location | None:
    """The register that holds a variable when the last instruction of ``block`` begins; None where that is not said."""
    registers = dwarf_registers(values)
    for number, instruction in reversed(list(enumerate(block.instructions))):
        here = [one for one in told if one.low <= instruction.address < one.high]
        if not here:
            continue
        (parts, constant) = (here[0].registers, here[0].constant)
        if len(here) > 1 or len(parts) != 1 or parts[0][1] != 1 or constant:
            return None
        register = registers.get(parts[0][0])
        written = (op.output for later in block.instructions[number:] for op in later.ops)
        if register is None or any(output is not None and _is_in(output, register) for output in written):
            return None
        return register
    return None


def _is_in(output: Varnode, register: Location) -> bool:
    return output.space == "register" and Location("register", output.offset, output.size_bytes).overlaps(register)
