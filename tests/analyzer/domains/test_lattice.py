"""The one law suite of all abstract domains: an order, joins above both, widening that ends, monotone operations.

A domain is a class below `Lattice`, or a function given to `Joined`. One that no case here is about fails a test.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.dcache.test_younger_sets import _known as scopes
from tests.analyzer.dcache.test_younger_sets import _states as cache_states
from tests.examples import examples
from tests.support import cache_config
from wcet_probe import analyzer
from wcet_probe.analyzer.dcache import allocated_before as allocated_lines
from wcet_probe.analyzer.dcache import asserted_alignment
from wcet_probe.analyzer.dcache import younger_sets as relational_cache
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.cache_sets import EffectiveWays, SetAccess, SetState, SetStates, access
from wcet_probe.analyzer.domains.congruences import Congruence, CongruenceLattice
from wcet_probe.analyzer.domains.lattice import Bits, Dual, Joined, Lattice, Subsets, Truths
from wcet_probe.analyzer.domains.strided import Intervals
from wcet_probe.analyzer.icache import persistence
from wcet_probe.analyzer.invariants.contents import ContentsLattice, contents_of, in_arena
from wcet_probe.analyzer.invariants.contents import number as number_of
from wcet_probe.analyzer.invariants.kinds import MODULUS, Kind, Part, WordLattice
from wcet_probe.analyzer.invariants.kinds import word as word_of
from wcet_probe.analyzer.ipet import shown
from wcet_probe.analyzer.ipet.joined_lines import joined_must
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.widening import HeaderStates
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.certificate.caches.residents import Residents, YoungerSet, must_holds
from wcet_probe.certificate.caches.steps import Spot
from wcet_probe.certificate.values.congruences import Congruence as ShownCongruence

PLACE = (7,)
TERMS = Terms()
LOCATIONS = (*(Location("register", 4 * n, 4) for n in range(3)), Location("stack", -4, 4), Location("static", 64, 4))
LEAVES = {at: TERMS.symbol(("phi", PLACE, at), 32) for at in LOCATIONS}
SUM = TERMS.apply("INT_ADD", (LEAVES[LOCATIONS[0]], LEAVES[LOCATIONS[1]]), 32)


@dataclass(frozen=True)
class Case:
    """A domain with some of its elements; ``is_exact`` where joins are least and equals are one element."""

    name: str
    lattice: Lattice
    elements: st.SearchStrategy
    is_exact: bool = True
    longest_chain: int = 40
    monotone: Callable | None = None
    operands: st.SearchStrategy = st.none()  # noqa: RUF009  a strategy is a value


@st.composite
def intervals(draw, bits=8):
    every = (1 << bits) - 1
    low, stride = draw(st.integers(0, every)), draw(st.integers(0, every))
    return strided.between(bits, low, low + draw(st.integers(-1, every)), max(stride, 1))


@st.composite
def set_states(draw):
    others = draw(st.integers(0, 3))
    youngest = {line: age for line in range(4) if (age := draw(st.integers(0, 3))) < others}
    oldest = {
        line: draw(st.integers(youngest.get(line, others), 2))
        for line in range(4)
        if draw(st.booleans())
        if youngest.get(line, others) <= 2
    }
    return SetState(oldest, youngest, others)


@st.composite
def header_states(draw):
    state = State(TERMS, big_endian=False)
    for at, symbol in LEAVES.items():
        if at.space == "register" or draw(st.booleans()):
            state.set_location(at, symbol)
            state.set_base(symbol, draw(st.sampled_from((Base.NUMBER, Base.NUMBER, Base.STACK, Base.ANY))))
            if state.bases.get(symbol) is not Base.ANY and draw(st.booleans()):
                state.set_known(symbol, draw(intervals(32)))
    return state


@st.composite
def ages(draw):
    lines = draw(st.lists(st.integers(0, 3), unique=True, max_size=4))
    return {line: draw(st.just(persistence._GONE) | st.tuples(st.integers(0, 3), st.integers(0, 15))) for line in lines}


@st.composite
def congruences(draw):
    modulus = 1 << draw(st.integers(0, 5))
    return Congruence(modulus, draw(st.integers(0, modulus - 1)))


@st.composite
def words(draw):
    """Numbers and addresses in the arena, with remainders of eight bits."""
    numbers = [number_of(draw(intervals(32)), 8) for _ in range(draw(st.integers(0, 2)))]
    arena = [in_arena(draw(intervals(8))) for _ in range(draw(st.integers(0, 1)))]
    return contents_of([part for one in (*numbers, *arena) for part in one], 8)


def kinds_of_words():
    """Parts of any kind."""
    bits = st.integers(0, 32)
    part = st.builds(Part, st.sampled_from(Kind), st.booleans(), st.integers(0, (1 << MODULUS) - 1), bits, bits)
    return st.lists(part, max_size=4).map(word_of)


@st.composite
def shown_classes(draw):
    modulus = 2 << draw(st.integers(0, 4))
    return ShownCongruence(modulus, draw(st.integers(0, modulus - 1)))


RESIDENTS = Residents(cache_config(sets=2, ways=4), {}, {}.get)


def must_lines():
    """Lines of two bases, with what may have been accessed since: fewer lines than the cache has ways."""
    younger = st.builds(YoungerSet, st.frozensets(st.sampled_from("ab"), max_size=1), st.integers(0, 2))
    return st.dictionaries(st.builds(Spot, st.sampled_from("ab"), st.just(0), st.just(16)), younger, max_size=2)


SET_ACCESSES = st.builds(
    SetAccess,
    st.just(0),
    st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True).map(tuple),
    is_certain=st.booleans(),
    fills=st.booleans(),
)
SUBSETS = Subsets(frozenset(range(5)))
SOME = st.frozensets(st.integers(0, 4))
CASES = (
    Case("truths", Truths(), st.booleans()),
    Case("truths on all ways", Dual(Truths()), st.booleans()),
    Case("subsets", SUBSETS, SOME),
    Case("subsets on all ways", Dual(SUBSETS), SOME),
    Case("bits", Bits(5), st.integers(0, 31)),
    Case("strided intervals", Intervals(8), intervals(), is_exact=False, longest_chain=60),
    Case("strided intervals of words", Intervals(32), intervals(32), is_exact=False, longest_chain=120),
    Case("states of a header", HeaderStates(PLACE), header_states(), is_exact=False, longest_chain=400),
    Case("contents of a word", ContentsLattice(8), words(), is_exact=False, longest_chain=600),
    Case("kinds and residues of a word", WordLattice(), kinds_of_words()),
    Case(
        "states of a cache set",
        SetStates(),
        set_states(),
        monotone=lambda state, part: access(state, part, EffectiveWays(3, 3)),
        operands=SET_ACCESSES,
    ),
    Case("conditional ages", Joined(persistence._join), ages()),
    Case("classes that were shown", Joined(shown._joined), st.dictionaries(st.sampled_from("ab"), shown_classes())),
    Case(
        "lines that must be in the cache",
        Joined(partial(joined_must, RESIDENTS), partial(must_holds, RESIDENTS)),
        must_lines(),
        is_exact=False,
    ),
    Case("symbolic cache blocks", Joined(relational_cache.join), cache_states),
    Case("symbolic cache blocks in a scope", Joined(relational_cache.united), scopes),
    Case("lines surely allocated", Joined(allocated_lines._both), st.dictionaries(st.integers(0, 3), st.booleans())),
    Case("congruences", CongruenceLattice(), st.none() | congruences()),
    Case("asserted classes", Joined(asserted_alignment.common), st.dictionaries(st.integers(0, 3), congruences())),
)
ALL = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def joins_of(module) -> set:
    """The functions that a module makes a domain of by `Joined`."""
    found = set()
    for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).partition("[")[0] == "Joined":
            join = node.args[0]
            if isinstance(join, ast.Call) and ast.unparse(join.func) == "partial":
                join = join.args[0]
            found.add(getattr(module, ast.unparse(join)))
    return found


def test_each_domain_that_is_given_by_its_join_is_in_the_suite():
    modules = [
        importlib.import_module(one.name) for one in pkgutil.walk_packages(analyzer.__path__, "wcet_probe.analyzer.")
    ]
    known = {case.lattice._join for case in CASES if isinstance(case.lattice, Joined)}
    joins = {join.func if isinstance(join, partial) else join for join in known}
    assert set().union(*map(joins_of, modules)) == joins


def test_each_domain_is_in_the_suite():
    for module in pkgutil.walk_packages(analyzer.__path__, f"{analyzer.__name__}."):
        importlib.import_module(module.name)
    found, waiting = set(), [Lattice]
    while waiting:
        below = [one for one in waiting.pop().__subclasses__() if one.__module__.startswith("wcet_probe.")]
        found.update(below)
        waiting += below
    concrete = {one for one in found if not getattr(one, "_is_protocol", False)}
    assert concrete == {type(case.lattice) for case in CASES}


@ALL
@given(data=st.data())
def test_joins_are_above_both_and_where_claimed_the_least(case, data):
    """Laws of three elements together, as to draw these takes most of the time."""
    leq, join = case.lattice.leq, case.lattice.join
    a, b, c = (data.draw(case.elements) for _ in range(3))
    assert leq(a, a)
    for one, two, three in ((a, b, c), (a, join(a, b), join(join(a, b), c))):
        assert not (leq(one, two) and leq(two, three)) or leq(one, three)
    if case.is_exact and leq(a, b) and leq(b, a):
        assert a == b
    for end, is_below in ((case.lattice.bottom(), leq), (case.lattice.top(), lambda x, y: leq(y, x))):
        assert end is None or is_below(end, a)
    both = join(a, b)
    assert leq(a, both)
    assert leq(b, both)
    assert leq(join(a, a), a)
    if case.is_exact:
        assert both == join(b, a)
        assert join(both, c) == join(a, join(b, c))
        assert leq(both, c) == (leq(a, c) and leq(b, c))


@ALL
@settings(max_examples=examples(15))
@given(data=st.data())
def test_widening_is_above_both_and_ends(case, data):
    elements = data.draw(st.lists(case.elements, min_size=2, max_size=12))
    former, steps = elements[0], 0
    for number in range(2000):
        grown = case.lattice.join(former, elements[number % len(elements)])
        wide = case.lattice.widen(former, grown)
        assert case.lattice.leq(former, wide)
        assert case.lattice.leq(grown, wide)
        if not case.lattice.leq(wide, former):
            steps += 1
            former = wide
        elif number > len(elements):
            break
    assert steps <= case.longest_chain


@pytest.mark.parametrize("case", [case for case in CASES if case.monotone], ids=lambda case: case.name)
@given(data=st.data())
def test_operations_are_monotone_where_claimed(case, data):
    a, b, operand = data.draw(case.elements), data.draw(case.elements), data.draw(case.operands)
    above = case.lattice.join(a, b)
    assert case.lattice.leq(case.monotone(a, operand), case.monotone(above, operand))


@given(st.lists(header_states(), min_size=2, max_size=4))
def test_a_settled_header_says_nothing_new(states):
    """What a chain of settled states may still say shrinks: locations, known terms, symbols with a base."""
    domain = HeaderStates(PLACE)
    former = states[0]
    for state in states[1:]:
        wide = domain.widen(former, state)
        assert wide.locations.keys() <= former.locations.keys()
        assert wide.known.keys() <= former.known.keys()
        former = wide
