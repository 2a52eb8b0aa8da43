"""What facts about pointers do not speak of: what the code knows, whatever a certificate leaves out of it."""

import pytest

from tests.analyzer.ipet import hand_made
from tests.analyzer.ipet.hand_made import TARGET, at_entries, graph_of
from wcet_probe.analyzer.ipet.numbering import Numbering
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.caches.misses import DATA, caches_of
from wcet_probe.certificate.kernel.coverage import Said, cover
from wcet_probe.certificate.names.known import known_places
from wcet_probe.certificate.names.names import Names, Objects, PointerFact, Pointers
from wcet_probe.certificate.names.symbols import Tracer, speaking
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.numbers import constant, number
from wcet_probe.certificate.values.state import STATIC

CODE = """
    sub sp, #8
    {first}
    cmp r0, #7
    beq 1f
    nop.w
1:  {second}
    ldrh r3, [r1]
    bx lr
"""
CONSTANT, LOADED, FLIPPED = "movw r1, #0x1001", "ldr.w r1, [r4]", "eor.w r1, r1, #64"
SPILLED = ("movw r1, #0x1001\n str.w r1, [sp]", "ldr.w r1, [sp]")
UNKNOWN = {
    (LOADED, "nop.w"): True,
    (LOADED, FLIPPED): True,
    ("nop.w", FLIPPED): True,
    (CONSTANT, LOADED): True,
    (CONSTANT, "ldr.w r1, [r1]"): True,
    ("movw r1, #0x2000\n movt r1, #0x2000", "ldr.w r1, [r1]"): True,
    (CONSTANT, "nop.w"): False,
    (CONSTANT, FLIPPED): False,
    (CONSTANT, "mov.w r1, r1"): False,
    (CONSTANT, "add.w r1, r1, #64"): False,
    SPILLED: False,
    ("ldr.w r1, [r4]\n and r1, r1, #255", "nop.w"): False,
    ("ldrb.w r1, [r4]", "nop.w"): False,
    (CONSTANT, "str.w r4, [r1], #64"): False,
    (CONSTANT, "str.w r4, [r1, #4]!"): False,
    ("nop.w", "str.w r4, [r1], #64"): True,
    ("movw r5, #0x1000", "add.w r1, r5, r4"): True,
}
"""What r1 is made of in one node, and in another one; whether nobody knows it."""
FACT = PointerFact((), (8, 0), "buffer", Objects("facts:1", 3, 1), "facts:1", (3, 1))


def checked(first, second, arguments=None):
    """The checked graph of `CODE`, of whose nodes nothing is said but where the stack pointer is."""
    lines = first.count("\n") + 1
    nodes = {"f": 0, "between": 2 + 4 * lines + 4, "behind": 2 + 4 * lines + 8}
    edges = (("f", "between"), ("f", "behind"), ("between", "behind"))
    code, graph = graph_of(CODE.format(first=first, second=second), nodes, edges, ["behind"])
    invariants = at_entries(code, graph)
    for node in ("between", "behind"):
        invariants[node]["r13"] = invariants["f"]["r13"]._replace(low=-8, high=-8)
    return code, graph, invariants, cover(code, graph, Said(invariants), arguments or {})


def caches_with(graph, names):
    return caches_of(TARGET, graph[1], graph[3], Tracer(*graph, names), lambda _: True)


@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.parametrize("case", UNKNOWN)
def test_no_part_of_a_fact_is_believed_of_what_the_code_knows(case, has_names):
    """No run is held against the fact where the address is known: r1 would be 0x1001, in another set, and unaligned."""
    graph = checked(*case)
    pointers = speaking(Pointers((FACT,), graph[0].image), *graph)
    names = (
        Numbering(*graph, pointers, with_sums=False).run()
        if has_names
        else Names({n: {} for n in graph[2]}, {}, pointers)
    )
    caches = caches_with(graph, names)
    step = next(side for side in caches.sides if side.name == DATA).steps["behind"][-1]
    is_told = UNKNOWN[case]
    assert (step.sets, step.objects) == ((frozenset({3}), FACT.objects) if is_told else (None, None))
    address = caches.traced["behind"].executed[-2].addresses[0][0]
    is_carried = has_names or case[1].startswith(("ldr", "eor"))  # that leave what nobody knows
    assert (address.alignment == Congruence(8, 0)) is (is_told and is_carried)


@pytest.mark.parametrize("arguments", [{}, {"r1": number(0, 99)}])
def test_no_fact_about_pointers_speaks_of_an_argument_of_which_another_fact_tells(arguments):
    graph = checked("nop.w", "nop.w", arguments)
    names = Numbering(*graph, Pointers((FACT,), graph[0].image), with_sums=False).run()
    caches = caches_with(graph, names)
    step = next(side for side in caches.sides if side.name == DATA).steps["behind"][-1]
    assert (step.sets, step.objects) == ((None, None) if arguments else (frozenset({3}), FACT.objects))
    address = caches.traced["behind"].executed[-2].addresses[0][0]
    assert (address.alignment == Congruence(8, 0)) is (not arguments)


@pytest.mark.parametrize(("words", "is_unknown"), [((), True), ((0x20002000,), False), ((0x20002004,), True)])
def test_no_fact_about_pointers_speaks_of_a_word_of_which_another_fact_tells(words, is_unknown):
    code, graph, invariants, coverage = checked("movw r1, #0x2000\n movt r1, #0x2000", "ldr.w r1, [r1]")
    invariants["behind"]["r1"] = number(0x20002000)
    known = known_places(code, graph, invariants, coverage, words)
    last = coverage.instructions["behind"][1]
    for on_each_way in (False, True):
        assert known.is_unknown("behind", last.address, ["r1"], 4096, on_each_way=on_each_way) is is_unknown
    assert known.leaves_unknown("behind", coverage.instructions["behind"][0].address, "r1") is is_unknown


@pytest.mark.parametrize(
    ("first", "second", "is_unknown"),
    [
        ("strd r1, r0, [sp]", "ldr.w r1, [sp]", False),
        ("strd r1, r0, [sp]", "ldr.w r1, [sp, #4]", True),
        ("strd r4, r1, [sp]", "ldrd r4, r1, [sp]", False),
        ("strd r4, r1, [sp]", "ldrd r1, r4, [sp]", True),
    ],
)
def test_words_of_a_pair_go_upwards_as_they_are_written(first, second, is_unknown):
    """In Thumb they may be any two registers, as compilers use it."""
    code, graph, invariants, coverage = checked(f"{CONSTANT}\n {first}", second)
    known = known_places(code, graph, invariants, coverage, ())
    assert known.leaves_unknown("behind", coverage.instructions["behind"][0].address, "r1") is is_unknown


@pytest.mark.parametrize(("place", "is_unknown"), [("r3", False), ("r5", True), ("r6", False)])
def test_a_swap_leaves_in_the_word_what_it_stores_and_finds_what_was_there(monkeypatch, place, is_unknown):
    monkeypatch.setattr(hand_made, "TARGET", load_target("arm926ej-s"))
    monkeypatch.setattr(hand_made, "BEGIN", hand_made.BEGIN.replace(".thumb", ".arm"))
    swaps = "swp r3, r4, [sp]\n swp r5, r1, [sp]\n ldr r6, [sp]"
    code, graph = graph_of(f"mov r1, #0x1000\n str r1, [sp, #-8]!\n {swaps}\n bx lr", {"f": 0}, (), ["f"])
    invariants = at_entries(code, graph)
    coverage = cover(code, graph, Said(invariants), {})
    known, address = known_places(code, graph, invariants, coverage, ()), coverage.instructions["f"][-1].address
    assert known.is_unknown("f", address, [place], 4096, on_each_way=True) is is_unknown


@pytest.mark.parametrize(
    ("first", "place", "is_unknown"),
    [
        ("stm.w r1, {r0, r1}", "r5", True),
        ("stm.w r1, {r0, r1}", "r6", False),
        ("stm r1!, {r1, r2}", "r5", False),
        ("stm r1!, {r1, r2}", "r6", True),
        ("stm.w r1, {r2, r3}", "r5", True),
        ("stm.w r1, {r2, r3}", "r6", True),
    ],
)
def test_words_that_are_stored_by_a_base_of_the_list_hold_it(first, place, is_unknown):
    begin = f"movw r1, #0x2000\n movt r1, #0x2000\n mov.w r4, r1\n {first}"
    code, graph = graph_of(f"{begin}\n ldr r5, [r4]\n ldr r6, [r4, #4]\n bx lr", {"f": 0}, (), ["f"])
    invariants = at_entries(code, graph)
    coverage = cover(code, graph, Said(invariants), {})
    known, address = known_places(code, graph, invariants, coverage, ()), coverage.instructions["f"][-1].address
    for on_each_way in (False, True):
        assert known.is_unknown("f", address, [place], 4096, on_each_way=on_each_way) is is_unknown


JOINED = """
    cmp r0, #7
    beq 1f
    movw r1, #0x1001
    b.n 2f
1:  {other}
2:  ldrh r3, [r1]
    bx lr
"""


@pytest.mark.parametrize(
    ("other", "surely", "perhaps"),
    [("movw r1, #0x2002", True, True), ("ldr.w r1, [r4]", False, True)],
)
def test_what_is_known_on_one_way_alone_is_told_apart(other, surely, perhaps):
    nodes = {"f": 0, "one": 4, "other": 10, "end": 14}
    edges = (("f", "one"), ("f", "other"), ("one", "end"), ("other", "end"))
    code, graph = graph_of(JOINED.format(other=other), nodes, edges, ["end"])
    invariants = at_entries(code, graph)
    coverage = cover(code, graph, Said(invariants), {})
    known, address = known_places(code, graph, invariants, coverage, ()), coverage.instructions["end"][0].address
    assert known.is_unknown("end", address, ["r1"], 4096, on_each_way=False) is not surely
    assert known.is_unknown("end", address, ["r1", None], 4096, on_each_way=True) is not perhaps
    assert known.is_unknown("end", address, ["r4"], 4096, on_each_way=True)
    assert not known.is_unknown("end", address + 100, ["r4"], 4096, on_each_way=False)
    assert known.begins_unknown("end", "r1") is not surely
    assert known.begins_unknown("end", STATIC + 8)
    assert not known.begins_unknown("nowhere", "r1")


COUNTED = """
    movs r1, #0
1:  ldrh r3, [r1]
    adds r1, #{step}
    cmp r0, r1
    bne 1b
    bx lr
"""


@pytest.mark.parametrize(("step", "is_unknown"), [(0, True), (2, True)])
def test_what_a_loop_counts_may_grow_beyond_any_range(step, is_unknown):
    """So it does for a prover, who joins the rounds."""
    code, graph = graph_of(
        COUNTED.format(step=step), {"f": 0, "1": 2, "2": 10}, (("f", "1"), ("1", "1"), ("1", "2")), ["2"]
    )
    invariants = at_entries(code, graph)
    coverage = cover(code, graph, Said(invariants), {})
    known, address = known_places(code, graph, invariants, coverage, ()), coverage.instructions["1"][0].address
    assert known.is_unknown("1", address, ["r1"], 4096, on_each_way=False) is is_unknown
    assert not known.is_unknown("1", address, ["r1"], 4096, on_each_way=True)


CHOSEN = """
    cmp r0, #7
    {first}
    ite eq
    {one}
    {other}
    ldrh r3, [r1]
    bx lr
"""


@pytest.mark.parametrize(
    ("first", "one", "other", "is_unknown"),
    [
        ("ldr.w r1, [r4]", "moveq r1, #0", "movne r2, #1", True),
        ("movs r1, #0", "ldreq r1, [r4]", "movne r2, #1", True),
        ("movs r1, #0", "ldreq r1, [r4]", "ldrne r1, [r5]", True),
        ("ldr.w r1, [r4]", "moveq r1, #64", "movne r2, #1", False),
        ("ldr.w r1, [r4]", "moveq r1, #64", "movne r1, #72", False),
        ("ldr.w r1, [r4]", "moveq r1, #0", "andne r1, r2, #255", False),
        ("movs r1, #8", "moveq r1, #0", "movne r2, #1", False),
    ],
)
def test_a_condition_that_makes_a_pointer_null_tells_no_more_of_it(first, one, other, is_unknown):
    """So the analysis has it: a fact is asked of what may be null, and not of what may be a constant or a range."""
    code, graph = graph_of(CHOSEN.format(first=first, one=one, other=other), {"f": 0}, (), ["f"])
    invariants = at_entries(code, graph)
    coverage = cover(code, graph, Said(invariants), {})
    known = known_places(code, graph, invariants, coverage, ())
    address = coverage.instructions["f"][-2].address
    assert known.is_unknown("f", address, ["r1"], 4096, on_each_way=False) is is_unknown


IN_ROUNDS = """
1:  cmp r0, #7
    beq 2f
    movw r1, #0x1001
    b.n 3f
2:  {other}
3:  ldrh r3, [r1]
    subs r0, #1
    bne 1b
    bx lr
"""


@pytest.mark.parametrize(
    ("other", "is_unknown"),
    [("movw r1, #0x2002", False), ("nop.w", True), ("ldr.w r1, [r4]", True)],
)
def test_ways_that_meet_in_a_loop_but_where_it_begins_are_known_as_elsewhere(other, is_unknown):
    nodes = {"f": 0, "one": 4, "other": 10, "end": 14, "behind": 20}
    edges = (("f", "one"), ("f", "other"), ("one", "end"), ("other", "end"), ("end", "f"), ("end", "behind"))
    code, graph = graph_of(IN_ROUNDS.format(other=other), nodes, edges, ["behind"])
    invariants = at_entries(code, graph)
    coverage = cover(code, graph, Said(invariants), {})
    known, address = known_places(code, graph, invariants, coverage, ()), coverage.instructions["end"][0].address
    assert known.is_unknown("end", address, ["r1"], 4096, on_each_way=False) is is_unknown


COMPARED = """
    movw r2, #:lower16:head
    movt r2, #:upper16:head
    ldr.w r1, [r2]
    cmp.w r1, #64
    bne.w 2f
    str.w r4, [r5]
    {reload}
    ldrh r3, [r1]
2:  bx lr
    .data
head: .word 64
    .text
"""


@pytest.mark.parametrize(("reload", "is_unknown"), [("ldr.w r1, [r2]", True), ("nop.w", False)])
def test_a_word_that_was_compared_may_be_stored_to_before_it_is_loaded_again(reload, is_unknown):
    """A list is empty where its head leads to itself; behind stores to its nodes nobody knows where it leads."""
    nodes, edges = {"f": 0, "behind": 20, "end": 30}, (("f", "behind"), ("f", "end"), ("behind", "end"))
    code, graph = graph_of(COMPARED.format(reload=reload), nodes, edges, ["end"])
    invariants = at_entries(code, graph)
    invariants["behind"]["r2"] = constant(code.image.symbols["head"].address)
    coverage = cover(code, graph, Said(invariants), {})
    known, address = known_places(code, graph, invariants, coverage, ()), coverage.instructions["behind"][-1].address
    for on_each_way in (False, True):
        assert known.is_unknown("behind", address, ["r1"], 4096, on_each_way=on_each_way) is is_unknown
