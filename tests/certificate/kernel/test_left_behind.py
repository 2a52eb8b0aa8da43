"""What a function leaves behind is derived from its invariants: registers that it keeps, and its stores."""

import pytest

from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.coverage import Code, cover, said_of
from wcet_probe.certificate.kernel.left_behind import callee_of, registers_unknown
from wcet_probe.certificate.kernel.records import graph_of, read_records
from wcet_probe.certificate.values.numbers import ANY, TOP, Value, constant, number
from wcet_probe.errors import VerificationError


def left(body, unknown=()):
    """What ``f`` leaves behind, by the certificate of its bound, where some registers hold anything."""
    target = load_target("cortex-m4")
    guest = guest_of(assembler({"f": body}, target), target)
    document, binary = document_of(guest)
    records = read_records(document["bound"]["certificates"][0])
    code, graph, said = (
        Code(guest.image, {one.address: one for one in binary.instructions}),
        graph_of(records),
        said_of(records),
    )
    arguments = dict.fromkeys(unknown, ANY)
    said.invariants[graph.entry].update(arguments)
    coverage = cover(code, graph, said, arguments, escapes=True)
    return callee_of(code, graph, said.invariants, coverage, {})


def kept(callee):
    return {f"r{number}" for number in range(13)} - callee.results.keys()


def test_registers_that_are_not_written_or_loaded_again_from_where_they_were_saved_are_kept():
    callee = left("push {r4, r5, lr}\n movs r4, #1\n movs r5, #2\n adds r0, r4, r5\n pop {r4, r5, pc}")
    assert kept(callee) == {f"r{number}" for number in range(1, 13)}
    assert callee.results["r0"] == constant(3)
    assert not callee.stores
    assert not callee.holds
    assert not callee.escapes


@pytest.mark.parametrize(
    ("body", "lost"),
    [
        ("push {r4, r5, lr}\n movs r4, #1\n movs r5, #2\n pop {r5, r4, pc}".replace("r5, r4", "r4, r5"), set()),
        ("push {r4, lr}\n movs r4, #1\n pop {r3, pc}", {"r3", "r4"}),
        ("push {r4, lr}\n str r0, [sp]\n pop {r4, pc}", {"r4"}),
        ("push {r4, lr}\n strb r0, [sp, #2]\n pop {r4, pc}", {"r4"}),
        ("push {r4, lr}\n cmp r0, #3\n bne 1f\n movs r4, #1\n str r4, [sp]\n1: pop {r4, pc}", {"r4"}),
        ("cmp r0, #3\n bne 1f\n movs r6, #1\n1: bx lr", {"r6"}),
        ("cmp r0, #3\n it eq\n moveq r6, #1\n bx lr", {"r6"}),
        ("push {r4, lr}\n mov r4, r7\n str r4, [sp]\n pop {r4, pc}", {"r4"}),
        ("mov r12, r4\n movs r4, #7\n mov r4, r12\n bx lr", {"r12"}),
        ("push {r4, lr}\n movs r4, #4\n1: subs r4, #1\n bne 1b\n pop {r4, pc}", set()),
        ("movs r0, #4\n1: mov r7, r8\n mov r8, r9\n subs r0, #1\n bne 1b\n bx lr", {"r0", "r7", "r8"}),
    ],
)
def test_a_register_is_kept_only_if_it_holds_at_each_exit_what_it_held_at_entry(body, lost):
    assert kept(left(body)) == {f"r{number}" for number in range(13)} - lost


def test_a_result_is_what_it_is_at_all_exits():
    assert left("cmp r0, #3\n bne 1f\n movs r0, #1\n bx lr\n1: movs r0, #9\n bx lr").results["r0"] == number(1, 9, 8)


@pytest.mark.parametrize(
    ("body", "unknown", "stores"),
    [
        ("str r1, [sp, #4]\n bx lr", (), {(Value("stack", 4, 4, 0), 4, False)}),
        ("str r1, [sp, #4]\n bx lr", ("r1",), {(Value("stack", 4, 4, 0), 4, True)}),
        ("str r1, [sp, #-4]\n bx lr", (), {(Value("stack", -4, -4, 0), 4, False)}),
        ("strh r1, [r0]\n bx lr", (), {(TOP, 2, False)}),
        ("strh r1, [r0]\n bx lr", ("r0",), {(ANY, 2, False)}),
    ],
)
def test_stores_besides_the_own_frame_are_noted(body, unknown, stores):
    callee = left(body, unknown)
    assert callee.stores == stores
    assert callee.unknown == set(unknown)


def test_of_many_stores_nothing_is_said_but_that_they_go_anywhere():
    body = "".join(f"str r1, [r0, #{4 * place}]\n" for place in range(40))
    assert left(f"movs r0, #0\n movt r0, #0x2000\n{body} bx lr").stores == {(ANY, 4, True)}


def test_stack_addresses_that_are_stored_are_noted():
    assert left("push {r4, lr}\n pop {r4, pc}", ["r4"]).holds
    assert not left("push {r4, lr}\n pop {r4, pc}").holds
    assert left("str r4, [r0]\n bx lr", ["r4"]).escapes
    assert left("ldr r4, [r1]\n str r4, [r0]\n bx lr").escapes
    assert not left("str r4, [r0]\n bx lr").escapes


def test_the_stack_pointer_is_given_back():
    with pytest.raises(VerificationError, match="stack pointer is not what it was where f returns"):
        left("sub sp, #8\n bx lr")


def test_only_registers_of_which_nothing_is_said_are_unknown_at_entry():
    assert registers_unknown({"r0": ANY, "r1": TOP, "r2": Value("any", 0, 1, 1), 0: ANY}) == {"r0": ANY}
