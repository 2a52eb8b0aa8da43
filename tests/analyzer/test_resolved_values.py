"""The graph on which values are told: targets that they find, code that they show never to be reached, recursion."""

import pytest

from tests.analyzer.small_functions import small_guest
from wcet_probe.analyzer import resolved_values
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph.supergraph import TooManyPointsError
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.execution.call_effects import UnsummarisedError
from wcet_probe.errors import AnalysisError

TABLE = "cmp r0, #2\nbhi 9f\ntbb [pc, r0]\n0: .byte (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, 0\n"
BRANCHES = TABLE + "1: movs r0, #1\nbx lr\n2: movs r0, #2\nbx lr\n3: movs r0, #3\n9: bx lr"
CHAIN = {
    "f": "push {r4, lr}\nldr r1, =g\nblx r1\npop {r4, pc}\n.ltorg",
    "g": "push {r4, lr}\nldr r1, =h\nblx r1\npop {r4, pc}\n.ltorg",
    "h": "movs r0, #7\nbx lr",
}
TRAPPED = "movs r1, #1\ncmp r0, #0\nbeq 2f\nbx lr\n2: adds r2, r2, #1\ncmp r1, #0\nbne 2b\nbx lr"
RECURSIVE = {
    "f": "push {r4, lr}\nmovs r0, #4\nbl g\npop {r4, pc}",
    "g": "push {r4, lr}\ncmp r0, #0\nbeq 1f\nsubs r0, #1\nbl g\n1: pop {r4, pc}",
}


def values_of(bodies):
    guest = small_guest(bodies)
    request = BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    return guest, prepare(request).values


def test_the_targets_of_a_table_are_in_the_graph():
    guest, values = values_of(BRANCHES)
    (targets,) = values.indirect.values()
    assert len(targets) == 3
    reached = {values.graph.points[index].block.address for index in values.states}
    assert set(targets) <= reached
    assert all(guest.address("f") < one for one in targets)


def test_targets_that_only_found_targets_lead_to_are_found():
    guest, values = values_of(CHAIN)
    assert set(values.indirect.values()) == {(guest.address("g"),), (guest.address("h"),)}
    assert {point.function.name for point in values.graph.points} == set(CHAIN)
    assert not values.graph.unresolved


def test_what_values_show_to_be_a_trap_is_left_out():
    guest, values = values_of(TRAPPED)
    assert values.graph.dead_ends == (guest.address("f") + 8,)
    reached = {values.graph.points[index].block.address for index in values.states}
    assert guest.address("f") + 8 not in reached


def test_recursion_is_followed_as_far_as_values_let_it_go():
    _, values = values_of(RECURSIVE)
    reached = [values.graph.points[index] for index in values.states]
    assert {len(point.context) for point in reached if point.function.name == "g"} == {1, 2, 3, 4, 5}
    sites = {(cut.context, cut.address) for cut in values.graph.cuts}
    assert not any((point.context, point.block.address) in sites for point in reached)


def test_a_target_that_is_not_known_is_refused():
    with pytest.raises(AnalysisError, match="the targets of the indirect branch or call at f"):
        values_of("push {r4, lr}\nblx r0\npop {r4, pc}")


def test_recursion_is_not_followed_behind_a_target_that_is_not_known():
    """Of mpaland/printf each of eight graphs, one twice as large as the other, had the same targets missing."""
    bodies = {
        "f": "push {r4, lr}\ncmp r2, #0\nbeq 1f\nblx r1\n1: movs r0, #40\nbl g\npop {r4, pc}",
        "g": RECURSIVE["g"],
    }
    depths = []

    def noted(*given, **named):
        depths.append(named.get("depth", 1))
        return told(*given, **named)

    told = resolved_values.build_supergraph
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolved_values, "build_supergraph", noted)
        with pytest.raises(AnalysisError, match="the targets of the indirect branch or call at f") as caught:
            values_of(bodies)
    assert caught.value.sites
    assert set(depths) == {1}


def test_where_no_smaller_graph_is_left_it_is_too_large(monkeypatch):
    def too_large(*_, **__):
        raise TooManyPointsError("f has too many blocks.")

    monkeypatch.setattr(resolved_values, "build_supergraph", too_large)
    with pytest.raises(TooManyPointsError):
        values_of("bx lr")


def test_a_callee_with_an_open_loop_may_be_refused_as_well(monkeypatch):
    guest, told, asked = small_guest(CHAIN), resolved_values._values_with, []
    target = guest.address("h")

    def refusing(work, entry, called, parameters, expanded):
        asked.append(expanded)
        if len(asked) == 1:
            work.calls.unbounded.add(target)
        elif len(asked) == 2:
            work.calls.refused[target] = "its stack pointer is not aligned."
        else:
            return told(work, entry, called, parameters, expanded)
        raise UnsummarisedError(target, "as said")

    monkeypatch.setattr(resolved_values, "_values_with", refusing)
    request = BoundRequest(
        guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {}, summaries=True
    )
    assert prepare(request).values.states
    assert [(sorted(one.whole), sorted(one.unbounded)) for one in asked[:3]] == [
        ([], []),
        ([], [target]),
        ([target], [target]),
    ]
