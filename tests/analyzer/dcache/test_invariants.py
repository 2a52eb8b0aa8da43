"""What results tell of accesses and registers, and which facts they owe nothing."""

from dataclasses import replace

from tests.analyzer.dcache.test_worked_examples import example
from tests.end_to_end.test_cache_soundness import with_cache
from wcet_probe.analyzer.dcache.invariants import access_ranges, idle_facts, register_ranges
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.target import Isa

TABLE = """
unsigned table[64] __attribute__((aligned(32)));
unsigned f(unsigned i, unsigned *p) {
    volatile unsigned own = i;
    table[i & 15] = own;
    return *p + table[9];
}
"""


def test_each_access_is_told_where_it_goes():
    view = example(TABLE)
    found = list(access_ranges(view.values, view.lines))
    assert len(found) == sum(len(own) for own in view.values.accesses.values())
    places = [(one.base, one.place, one.is_store) for one in found]
    assert ("stack", "stack", True) in places
    assert ("number", "static", True) in places
    (masked,) = [one for one in found if one.place == "static" and one.is_store]
    assert (masked.stride, masked.steps, masked.size_bytes, masked.is_one_line) == (4, 15, 4, True)
    (free,) = [one for one in found if one.place == "any"]
    assert free.sets is None


def test_without_a_cache_nothing_is_told_of_places():
    view = example(TABLE)
    plain = list(access_ranges(view.values, None))
    assert {one.place for one in plain} == {"any"}
    own = [(one.address, one.low, one.stride, one.steps) for one in access_ranges(view.values, view.lines)]
    assert [(one.address, one.base) for one in plain] == [
        (address, one.base) for (address, *_), one in zip(own, plain, strict=True)
    ]


def test_registers_of_which_nothing_is_known_are_not_listed():
    view = example(TABLE)
    found = list(register_ranges(view.values, Isa.POWERPC))
    names = {one.register for one in found}
    assert "r1" in names
    assert not names & {"r3", "r4"}
    entry = view.values.graph.points[0].block.address
    (stack,) = [one for one in found if one.register == "r1" and one.address == entry]
    assert (stack.base, stack.low, stack.steps) == ("stack", 0, 0)


def test_a_fact_on_which_nothing_rests_is_idle():
    source = "unsigned small[8] __attribute__((aligned(32)));\nunsigned f(unsigned i) { return small[i & 7]; }"
    view = example(source)
    target = with_cache(load_target("mpc603e"), "d:sets=16,ways=2,line=32,policy=lru")
    told = Pointers(16)
    lines = SymbolicBlocks(view.values, target.dcache, PointerFacts(replace(told, where="facts:1"), {}))
    (idle,) = idle_facts(access_ranges(view.values, lines), lines)
    assert (idle.where, "the values tell as much" in idle.why) == ("facts:1", True)
    assert idle_facts(access_ranges(view.values, None), None) == ()
