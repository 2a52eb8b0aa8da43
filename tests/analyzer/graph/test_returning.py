"""Which functions may return, against a plain fixpoint over random functions; what is told of indirect branches."""

from random import Random

import pytest

from tests.analyzer.graph.random_calls import assembled, plainly, random_bodies
from tests.analyzer.small_functions import lifter_of, small_guest
from wcet_probe.analyzer.graph.returning import function_from, returning_functions


@pytest.mark.parametrize("part", range(4))
def test_functions_return_where_a_way_through_functions_that_return_leads_to_an_end(part):
    bodies = random_bodies(Random(f"returning {part}"), 14)
    guest = assembled(bodies)
    lifter = lifter_of(guest)
    address = [guest.address(f"f{function}") for function in range(len(bodies))]
    never = 0
    for entry in range(len(bodies)):
        returning, reached = plainly(bodies, entry)
        found = returning_functions(guest.image, lifter, address[entry], {}, ())
        assert set(found.functions) == {address[one] for one in returning}
        assert not found.branching
        assert not found.popping
        never += len(reached) - len(returning)
    assert never > 10


INDIRECT = {
    "f": "push {r4, lr}\ncmp r0, #0\nbeq 1f\nbl handler\n1: bl table\npop {r4, pc}",
    "handler": "push {r4, lr}\nblx r0\n1: b 1b",
    "table": "ldr r1, [r0]\nbx r1",
    "plain": "bx lr",
    "abort": "1: b 1b",
}


def test_what_leads_to_an_indirect_branch_is_told_as_long_as_it_may_return():
    guest = small_guest(INDIRECT)
    lifter = lifter_of(guest)
    at = {name: guest.address(name) for name in INDIRECT}
    found = returning_functions(guest.image, lifter, at["f"], {}, ())
    assert set(found.functions) == {at["f"], at["table"]}
    assert set(found.branching) == {at["f"], at["table"]}  # whatever it calls, the handler does not return
    jump = at["table"] + 2
    for target, returns in (("plain", True), ("abort", False)):
        known = returning_functions(guest.image, lifter, at["f"], {jump: (at[target],)}, ())
        assert (at["f"] in known.functions) is returns
        assert (at["table"] in known.functions) is returns
        assert {at["f"], at["table"]} <= set(known.branching)  # other ways may bring other targets
    site = returning_functions(guest.image, lifter, at["f"], {jump: (at["abort"],)}, (jump,))
    assert at["table"] in site.functions  # the jump may go to the return address


def test_who_returns_in_a_caller_s_stead_makes_its_callers_return():
    bodies = {
        "f": "push {r4, lr}\nbl fail\n1: b 1b",
        "fail": "push {r4, lr}\nbl recover\n1: b 1b",
        "recover": "add sp, #8\npop {r4, pc}",
    }
    guest = small_guest(bodies)
    found = returning_functions(guest.image, lifter_of(guest), guest.address("f"), {}, ())
    assert {guest.address("fail"), guest.address("recover")} <= set(found.popping)
    assert guest.address("f") in found.functions


def test_code_that_cannot_be_read_may_return():
    guest = small_guest({"f": "push {r4, lr}\nbl g\npop {r4, pc}", "g": "b 2f\n.balign 4\n2: .inst.w 0xffffffff"})
    found = returning_functions(guest.image, lifter_of(guest), guest.address("f"), {}, ())
    assert set(found.functions) == {guest.address("f"), guest.address("g")}


def test_a_function_without_a_symbol_is_named_by_what_is_around():
    guest = small_guest({"f": "movs r0, #1\nmovs r0, #2\nbx lr"})
    start = guest.address("f")
    assert function_from(guest.image, start).name == "f"
    inside = function_from(guest.image, start + 2)
    assert (inside.name, inside.address, inside.size_bytes) == ("f+0x2", start + 2, 0)
    assert function_from(guest.image, 0x1234).name == "function_at_0x1234"
