"""A source loop that became loops in each other: what its fact says of the inner one is checked, and no more."""

from dataclasses import replace

import pytest

from tests.certificate.forgeries import solved_again
from tests.certificate.specimens import specimen
from wcet_probe.certificate.asserted import loop_behind, read_asserted, runs_once_an_entry
from wcet_probe.certificate.check import check_bound

SPLIT = ("btree-best-fit", "cortex-m4", "malloc")


def changed(change):
    """What changes the constraint that the split loop gives."""

    def forged(problem, derivations, followed):
        loops = {one.entry_edges: one for one in problem.loops}
        constraints = tuple(
            replace(one, coefficients=change(one.coefficients, loops)) if one.name == "fact:0" else one
            for one in problem.constraints
        )
        return replace(problem, constraints=constraints), derivations, followed

    return forged


def other_entry(factors, loops):
    """The rounds of the inner loop by the entries of another loop, which is entered more rarely."""
    (own,) = (name for name, factor in factors.items() if factor < 0)
    other = next(one for one in loops if one != (own,) and factors.get(one[0], 0) == 0)
    return {**{name: factor for name, factor in factors.items() if name != own}, other[0]: factors[own]}


FORGERIES = {
    "a round less for an entry": lambda factors, _: {
        name: factor + 1 if factor < 0 else factor for name, factor in factors.items()
    },
    "rounds that count twice": lambda factors, _: {
        name: 2 * factor if factor > 0 else factor for name, factor in factors.items()
    },
    "rounds of the outer loop besides": lambda factors, loops: {
        **factors,
        **{edge: 1 for entering, loop in loops.items() if factors.get(entering[0], 0) < 0 for edge in loop.back_edges},
    },
    "entries of another loop": other_entry,
}


def test_the_bound_of_a_split_loop_is_checked_in_full():
    document, binary = specimen(*SPLIT)
    assert check_bound(document, binary).is_full


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_limit_of_a_split_loop_is_not_shown(change, monkeypatch):
    """Some of these lower no bound, so that nothing rests on them: they are asked for here all the same."""
    monkeypatch.setattr(
        "wcet_probe.certificate.check.used_constraints", lambda records: {name for name, *_ in records["constraint"]}
    )
    document, binary = specimen(*SPLIT)
    forged = solved_again(document, changed(change))
    found = {one.check: one for one in check_bound(forged, binary).findings}
    assert "fact:0" in found["constraints in instructions"].found


SOURCE = """
#define EACH find
static int find(int n) {{
    int i = 0;
    while (i < n) {{
        i += {within};
    }}
    return i;
}}
int other(int n) {{ return {called}(n); }}
int f(int n) {{ {around} }}
"""
ENTRIES = {
    "called once": ("1", "find", "return find(n);", True),
    "called twice": ("1", "find", "return find(n) + other(n);", True),
    "called in a loop": ("1", "find", "while (find(n)) n--;", False),
    "called in a loop by another function": ("1", "find", "while (other(n)) n--;", False),
    "called in a loop by a macro": ("1", "find", "while (EACH(n)) n--;", False),
    "named in a loop": ("1", "find", "while (n) n = g(n, find);", False),
    "called in a jump back": ("1", "find", "again: n--; if (find(n)) goto again;", False),
    "it calls itself": ("find(n - 1)", "find", "return find(n);", False),
    "it calls itself by another function": ("other(n - 1)", "find", "return find(n);", False),
}


@pytest.mark.parametrize(("within", "called", "around", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_nothing_follows_for_a_loop_that_another_loop_may_enter_again(within, called, around, expected):
    asserted = read_asserted([], {"g.c": SOURCE.format(within=within, called=called, around=around)})
    loop = loop_behind(asserted, "g.c", 3)
    assert loop.first_line == 5
    assert runs_once_an_entry(asserted, loop) is expected


def test_a_loop_in_another_one_may_be_entered_again():
    asserted = read_asserted([], {"g.c": "int f(int n) {\nfor (;;)\n while (n)\n  n--;\n}\n"})
    assert not runs_once_an_entry(asserted, loop_behind(asserted, "g.c", 3))
