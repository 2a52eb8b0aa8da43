"""Why two allowances of scopes decide nothing: what no test can tell of the mutants that leave them out."""

from __future__ import annotations

from random import Random

from tests.analyzer.dcache.test_worked_examples import example
from tests.analyzer.random_relational_programs import random_program
from wcet_probe.analyzer.dcache.scopes import Scopes
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at

LIST = """
struct node { struct node *next, *last; unsigned key; };
unsigned f(struct node *n, unsigned count) {
    unsigned sum = 0;
    for (; n; n = n->next) {
        n->last->key = count;
        for (unsigned i = 0; i < count; i++) { struct node *one = n->last; sum += one->key; n->last = one->next; }
        if (sum & 1) n = n->next;
    }
    return sum;
}"""


def test_where_a_block_begins_nothing_that_it_defines_is_known_but_what_edges_bring():
    """So no access of the block to a line of before has the name that the block gives to another one."""
    values = example(LIST).values
    own = [
        (point, name)
        for point, state in values.states.items()
        for term in state.locations.values()
        for symbol in values.terms.symbols(term)
        for name in (values.terms[symbol].arguments,)
        if defined_at(name) == point
    ]
    assert len(own) > 5
    assert all(name[0] == "phi" for _, name in own)


def accessed(view):
    """The groups of a program that it accesses, and where."""
    found: dict[int, list[int]] = {}
    for point, own in view.named.items():
        for group in sorted({one.line.group for one in own if one.line}):
            found.setdefault(group, []).append(point)
    return found


def told(view, groups):
    """Of each group the points that may be the first of a scope to access it."""
    return [
        view.scopes.first(view.lines.groups[group], own, lambda line, group=group: line.group == group)
        for group, own in groups.items()
    ]


def test_that_a_scope_begins_where_a_symbol_is_defined_tells_of_no_access_more(monkeypatch):
    """On the first way to a definition no access of its group was executed, as each is behind it."""
    views = [*(random_program(Random(seed)).view for seed in range(60)), example(LIST)]
    asked = [(view, accessed(view)) for view in views]
    before = [told(*one) for one in asked]
    assert sum(len(first) for own in before for first in own) > 50
    monkeypatch.setattr(
        Scopes, "_begins", lambda self, group, edge: not self._brought_back[edge].isdisjoint(group.deciding)
    )
    assert [told(*one) for one in asked] == before
