"""What a symbol stands for where ways within a block meet."""

import pytest

from tests.analyzer.small_functions import analysed, small_guest
from tests.analyzer.values.symbolic.test_terms import evaluated
from wcet_probe.analyzer.values.meetings import meetings, no_meetings
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location

COUNT = 8
MANY = "".join(f"cmp r0, #{number}\nit eq\naddeq r2, r2, r3\n" for number in range(COUNT)) + "bx lr"
"""More than gamma nodes in each other are made of."""
NUMBERS = "movs r2, #9\ncmp r0, #0\nit eq\nmoveq r2, #1\ncmp r3, #0\nit eq\nmoveq r2, #4\nbx lr"
PLAIN = "movs r2, #9\nadds r2, r2, r0\nbx lr"


def found_in(text):
    guest = small_guest(text)
    lifter, values = analysed(guest.image, guest.target)
    within = meetings(lifter, values.terms, Memory(guest.image), values.graph, values.states)
    assert within(0) is within(0)
    register = lifter.registers["r2"]
    return values, within(0), Location("register", register.offset, 4)


def test_each_way_brings_what_its_own_state_holds():
    values, found, register = found_in(MANY)
    assert found
    for symbol, held in found.items():
        *_, location = values.terms[symbol].arguments
        assert len(held) == 2
        assert all(state.read(location) == term for state, term in held)
        assert len({term for _, term in held}) == 2
    assert register in {values.terms[symbol].arguments[2] for symbol in found}


@pytest.mark.parametrize("first", [*range(COUNT), COUNT, 1 << 31])
def test_in_a_run_a_symbol_is_one_of_its_terms(first):
    values, found, register = found_in(MANY)
    terms = values.terms
    own = {symbol: held for symbol, held in found.items() if terms[symbol].arguments[2] == register}
    assert own
    adding = [one.address for one in values.graph.points[0].block.instructions if one.size_bytes == 2][2::3]
    entry = {terms.symbol(("in", Location("register", 32 + 4 * number, 4)), 32): number for number in (0, 2, 3)}
    numbers = {symbol: {0: first, 2: 100, 3: 7}[number] for symbol, number in entry.items()}
    for symbol, held in sorted(own.items()):
        _, (_, address, _), _ = terms[symbol].arguments
        numbers[symbol] = 100 + 7 * (first <= adding.index(address))
        readings = {evaluated(terms, term, numbers) for _, term in held if terms.symbols(term) <= numbers.keys()}
        assert numbers[symbol] in readings


@pytest.mark.parametrize("text", [PLAIN, "bx lr"])
def test_where_no_ways_meet_there_is_no_symbol(text):
    assert not found_in(text)[1]
    assert not no_meetings(0)


def test_all_symbols_of_the_block_are_told_or_are_gamma_nodes():
    """What a register can be behind both conditions: each symbol of the place is told with all of its parts."""
    values, found, register = found_in(NUMBERS)
    (leaving,) = (flow.state for flow in values.edges.values())
    term = leaving.read(register)
    todo, leaves = [term], set()
    while todo:
        one = todo.pop()
        node = values.terms[one]
        if node.opcode == "symbol":
            assert one in found or node.arguments[0] == "in"
            todo += [part for _, part in found.get(one, ())]
        elif node.opcode == "const":
            leaves.add(values.terms.value(one))
        else:
            todo += values.terms.operands(one)[1:] if node.opcode == "GAMMA" else values.terms.operands(one)
    assert leaves == {9, 1, 4}
    assert set(leaving.value(term).values()) >= leaves
