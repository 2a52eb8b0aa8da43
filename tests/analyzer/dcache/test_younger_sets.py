"""Laws of the domain of the analysis of lines known by name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.concrete_caches import config_of, touches
from tests.examples import examples
from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock
from wcet_probe.analyzer.dcache.younger_sets import (
    CacheState,
    LineAccess,
    RelationalCache,
    Substitution,
    YoungerSet,
    join,
)
from wcet_probe.model.target import Replacement


def group(numbers=None, *, sets=None, alignment=8) -> ReferenceGroup:
    return ReferenceGroup(frozenset(), frozenset(), alignment, 0, numbers, sets, is_short=True, set_count=4)


GROUPS = (group(), group(), group(sets=frozenset({0})), group(sets=frozenset({1, 2})), group())
_lines = st.builds(SymbolicBlock, st.integers(0, len(GROUPS) - 1), st.integers(0, 2))


@st.composite
def _youngers(draw) -> YoungerSet:
    groups = draw(st.frozensets(st.integers(0, len(GROUPS) - 1), max_size=3))
    common = frozenset(group for group in groups if draw(st.booleans()))
    others, most = draw(st.integers(0, 2)), draw(st.integers(len(common), 3))
    return YoungerSet(groups, others, most, draw(st.booleans()), common, draw(st.booleans()))


_younger = _youngers()
_unmodified = _younger.map(lambda one: one._replace(is_modified=False))  # that is said of lines in the cache only
_known = st.dictionaries(_lines, _unmodified | st.none(), max_size=4)
_states = st.builds(CacheState, st.dictionaries(_lines, _younger, max_size=4), _known)
_accesses = st.builds(LineAccess, st.none() | _lines, st.booleans(), st.booleans(), st.just(()), modifies=st.booleans())
_policies = st.sampled_from(list(Replacement))


def leq(a: CacheState, b: CacheState) -> bool:
    return join(a, b) == b


@settings(max_examples=examples(100))
@given(_states, _states, _states)
def test_join_is_the_least_upper_bound(a, b, c):
    both = join(a, b)
    assert leq(a, a)
    assert leq(a, both)
    assert leq(b, both)
    assert join(a, a) == a
    assert both == join(b, a)
    assert join(both, c) == join(a, join(b, c))
    assert leq(both, c) == (leq(a, c) and leq(b, c))


@settings(max_examples=examples(100))
@given(_states, _states, _accesses, _policies)
def test_what_is_known_less_of_stays_so(a, b, access, policy):
    cache = RelationalCache(GROUPS, config_of(policy, 4, sets=4))
    above = join(a, b)
    assert leq(cache.touch(a, access), cache.touch(above, access))
    stronger, weaker = next(iter(cache.verdicts(a, [access]))), next(iter(cache.verdicts(above, [access])))
    assert weaker.is_hit <= stronger.is_hit
    assert weaker.is_persistent <= stronger.is_persistent


def test_where_paths_meet_a_line_is_as_old_as_on_the_path_with_most():
    cache, line = RelationalCache(GROUPS, config_of("lru", 3, sets=4)), SymbolicBlock(0, 0)

    def behind(*groups: int):
        state = CacheState({}, {})
        for group in groups:
            state = cache.touch(state, LineAccess(SymbolicBlock(group, 0), fills=True, is_certain=True))
        return state

    both = join(behind(0, 1, 4), behind(0, 2, 3))
    assert both.must[line] == YoungerSet(frozenset({1, 2, 3, 4}), 0, 2)
    again = cache.touch(both, LineAccess(line, fills=True, is_certain=True))
    assert line in again.must
    assert line not in cache.touch(both, LineAccess(None, fills=True, is_certain=True)).must


_groups = st.integers(0, len(GROUPS) - 1)


def counted(cache: RelationalCache, state: CacheState) -> CacheState:
    """``state`` with no more younger lines than there can be, as all states have that can be reached."""

    def least(line: SymbolicBlock, younger: YoungerSet | None) -> YoungerSet | None:
        return None if younger is None else cache._counted(line, younger, 4)

    must = {line: found for line, younger in state.must.items() if (found := least(line, younger))}
    return CacheState(must, {line: least(line, younger) for line, younger in state.scope.items()})


@settings(max_examples=examples(100))
@given(_states, _states, st.frozensets(_groups), st.dictionaries(_groups, _groups, max_size=3))
def test_names_are_dropped_monotonously(a, b, killed, successors):
    cache, substitution = RelationalCache(GROUPS, config_of("lru", 4, sets=4)), Substitution(killed, successors)
    a, b = counted(cache, a), counted(cache, b)
    assert leq(cache.without(a, substitution), cache.without(join(a, b), substitution))
    kept = cache.without(a, substitution)
    gone = killed.difference(successors.values())
    assert all(line.group not in killed for line in (*kept.must, *kept.scope))
    assert all(younger is None or not younger.groups & gone for younger in (*kept.must.values(), *kept.scope.values()))


@pytest.mark.parametrize("policy", ["lru", "plru"])
def test_a_store_that_fills_nothing_but_hits_makes_other_lines_older(policy):
    """Two ways hold A and B; A is read, B stored to, C fills: A was used longest ago, and is evicted."""
    cache = RelationalCache(GROUPS, config_of(policy, 2, sets=4, write_allocate=False))
    one, other, third = (SymbolicBlock(group, 0) for group in (0, 1, 4))
    state = cache.touch(CacheState({}, {}), LineAccess(one, fills=True, is_certain=True))
    assert one in cache.touch(state, LineAccess(third, fills=True, is_certain=True)).must
    stored = cache.touch(state, LineAccess(other, fills=False, is_certain=True))
    assert one not in cache.touch(stored, LineAccess(third, fills=True, is_certain=True)).must
    ((_, held),) = touches(Replacement(policy), 2, (0, 1) if policy == "lru" else (1, 0), 1, fills=False)
    ((is_hit, content),) = touches(Replacement(policy), 2, held, 2, fills=True)
    assert not is_hit
    assert 0 not in content
