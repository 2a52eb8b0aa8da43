"""Joins: the first instruction that all ways behind a branch execute."""

from functools import cache

import pytest

from tests.analyzer.deduction.cama_builds import program
from wcet_probe.analyzer.deduction.joins import join_behind, join_between_stores
from wcet_probe.analyzer.pcode.lift import image_lifter


def branches(name):
    """The branches of a function that may go on behind themselves, and where else they go."""
    symbol = program().image.symbols[name]
    inside = range(symbol.address, symbol.address + symbol.size_bytes)
    conditional = ("beq", "bne", "blt", "bgt", "ble", "bge")
    return [one for one in program().instructions if one.address in inside and one.text.split()[0] in conditional]


@pytest.mark.parametrize("name", ["cama_free", "cama_malloc"])
def test_a_join_is_on_each_way_and_no_nearer_instruction_is(name):
    image, target = program().image, program().target
    lifter = image_lifter(target.pcode_language, image.isa, image.segments)
    found = {one.address: join_behind(lifter, one.address) for one in branches(name)}
    assert len(found) > 10
    for branch, join in found.items():
        assert join is not None
        assert not reaches_a_return(lifter, branch, avoiding={join})
        nearer = common_before(lifter, branch, join)
        assert nearer == set(), (hex(branch), join)


def test_a_join_parts_only_where_stores_are_before_and_behind():
    image, target = program().image, program().target
    lifter = image_lifter(target.pcode_language, image.isa, image.segments)
    found = {}
    for one in branches("cama_free")[:4]:
        join = join_behind(lifter, one.address)
        behind = {join, *walked(lifter, join, set())}
        before = walked(lifter, one.address, {join}) - behind
        parts = has_store(lifter, before) and has_store(lifter, behind)
        assert join_between_stores(lifter, one.address) == (join if parts else None)
        found[one.address] = parts
    assert set(found.values()) == {True, False}


def has_store(lifter, addresses):
    return any(op.opcode == "STORE" for one in addresses for op in lifter.lift(one).ops)


@cache
def successors(lifter, address):
    ops = lifter.lift(address).ops
    jumps = [op.inputs[0].offset for op in ops if op.opcode in {"BRANCH", "CBRANCH"}]
    goes_on = ops[-1].opcode not in {"BRANCH", "RETURN"}
    return (*jumps, *((address + 4,) if goes_on else ()))


def walked(lifter, address, avoiding):
    """The instructions behind ``address`` that are reached without those to avoid."""
    seen, todo = set(), [*successors(lifter, address)]
    while todo:
        one = todo.pop()
        if one not in seen and one not in avoiding:
            seen.add(one)
            todo.extend(successors(lifter, one))
    return seen


def reaches_a_return(lifter, address, avoiding):
    seen = walked(lifter, address, avoiding)
    return any(lifter.lift(one).ops[-1].opcode == "RETURN" for one in seen)


def common_before(lifter, branch, join):
    """The instructions between branch and join that no way to the join goes around."""
    between = walked(lifter, branch, {join})
    return {one for one in between if not reaches(lifter, branch, join, one)}


def reaches(lifter, branch, join, avoided):
    seen = walked(lifter, branch, {avoided, join})
    return join in successors(lifter, branch) or any(join in successors(lifter, one) for one in seen)
