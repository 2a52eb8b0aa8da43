"""Where parts of an operation meet: only what was shown on all ways to a join is known behind it."""

from types import SimpleNamespace

import pytest

from tests.analyzer.deduction.cama_builds import geometry
from wcet_probe.analyzer.deduction.calling_convention import RETURN_ADDRESS, callers_words
from wcet_probe.analyzer.deduction.cama_joins import (
    ONE_BEGIN,
    Join,
    begins,
    common,
    joined,
    registers_behind,
    without_begin,
)
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.cama_views import view_of
from wcet_probe.analyzer.deduction.formulas import conjunction, unknown
from wcet_probe.analyzer.deduction.words import Word

STACK = "r1"


@pytest.fixture
def run():
    pytest.importorskip("z3")
    return Deduction(geometry(), view_of(" before"), begins=False)


def arriving(run, **words):
    """A way to a join, with what its registers hold and one word on the stack."""
    memory = run.memory.copy()
    memory.stack[-8] = Word(1)
    held = {STACK: run.stack_pointer.plus(Word(-16 % (1 << 32))), **words}
    return SimpleNamespace(instruction_address=0x100, words=lambda: held, memory=memory, untouched=frozenset())


def names(**told):
    return {register: frozenset(each if isinstance(each, tuple) else (each,)) for register, each in told.items()}


def test_what_is_not_the_same_on_all_ways_is_not_known():
    one = Join(0x100, names(r3=("start", "from"), r4="size", r5="constant 0"), -16, frozenset({-8, -12}))
    other = Join(0x100, names(r3="start", r4="from", r5="constant 1"), -16, frozenset({-8}))
    assert common([one, other]) == Join(0x100, names(r3="start"), -16, frozenset({-8}))
    found = common([one, Join(0x100, {}, -32, frozenset())])
    assert found is not None
    assert found.stack_pointer is None


def test_ways_that_end_at_two_instructions_are_no_join():
    one, other = Join(0x100, {}, -16, frozenset()), Join(0x104, {}, -16, frozenset())
    assert common([one, other]) is None
    assert without_begin("free-large", [one, other, one]).open_by_name == {ONE_BEGIN: (0x100, 0x104)}


def test_parts_begin_at_each_instruction_with_what_was_shown_of_the_ways_to_it():
    one, second = Join(0x104, names(r3="start", r4="size"), -16, frozenset()), Join(0x100, {}, -16, frozenset())
    third = Join(0x104, names(r3="start", r4="from"), -16, frozenset())
    assert begins([one, second, third]) == (second, Join(0x104, names(r3="start"), -16, frozenset()))
    assert begins([]) == ()


def test_a_register_holds_only_what_is_shown_of_it(run):
    place, other = (run.terms.known(unknown(name)) for name in ("place", "other"))
    run.terms.questions.assume(place.equals(other + 8))
    words = {"r3": Word(8, ((other, 1),)), "r4": Word(0, ((other, 1),)), "r5": Word(7)}
    way = arriving(run, **words, lr=Word(0, ((RETURN_ADDRESS, 1),)))
    found = joined(run, way, {"place": place}, (), STACK)
    assert found.held == names(r3="place", r5="constant 7", lr="return address")
    assert (found.stack_pointer, found.stack) == ((1 << 32) - 16, {-8})


def test_all_that_is_shown_of_a_register_is_kept(run):
    start, size = (run.terms.known(unknown(name)) for name in ("start", "size"))
    run.terms.questions.assume(conjunction(start.equals(size), start.equals(7)))
    way = arriving(run, r3=Word(0, ((start, 1),)), r5=Word(7))
    found = joined(run, way, {"start": start, "size": size}, (), STACK)
    assert found.held == names(r3=("start", "size"), r5=("start", "size", "constant 7"))


def test_what_was_not_shown_on_another_way_is_not_asked(run):
    place = run.terms.known(unknown("place"))
    way = arriving(run, r3=Word(0, ((place, 1),)))
    assert "r3" not in joined(run, way, {"place": place}, [Join(0x100, {}, 0, frozenset())], STACK).held


def test_behind_a_join_all_else_is_anything(run):
    place = Word(0, ((unknown("place"), 1),))
    join = Join(0x100, names(r3=("place", "other"), r5=("place", "constant 7")), (1 << 32) - 16, frozenset({-8}))
    given = registers_behind(run, join, {"place": place}, STACK)
    assert given.keys() == {"r3", "r5", STACK, "lr"}
    assert (given["r3"], given["r5"]) == (place, Word(7))
    assert given["lr"] != Word(0, ((RETURN_ADDRESS, 1),))
    assert given[STACK] == run.stack_pointer.plus(Word(-16 % (1 << 32)))
    assert run.memory.stack.keys() == {-8}
    assert run.memory.stack[-8] not in given.values()


def test_of_what_the_part_behind_a_join_does_not_speak_of_a_register_holds_anything(run):
    place = Word(0, ((unknown("place"), 1),))
    join = Join(0x100, names(r3="place", r4="asked set"), 0, frozenset())
    assert registers_behind(run, join, {"place": place}, STACK).keys() == {"r3", STACK, "lr"}


def test_a_word_of_the_stack_that_leads_back_still_does_behind_a_join(run):
    """On Arm the return address is popped; on a way on which another word lies there, nothing is known of it."""
    back = Word(0, ((RETURN_ADDRESS, 1),))
    way = arriving(run)
    way.memory.stack[-4] = back
    one = joined(run, way, {}, (), STACK)
    assert (one.stack, one.callers) == ({-8, -4}, {(-4, "return address")})
    registers_behind(run, one, {}, STACK)
    assert run.memory.stack[-4] == back
    way.memory.stack[-4] = Word(1)
    both = common([one, joined(run, way, {}, (), STACK)])
    assert both is not None
    registers_behind(run, both, {}, STACK)
    assert run.memory.stack[-4] not in {back, Word(1)}


def test_what_the_caller_had_is_told_of_registers_and_of_the_stack(run):
    """r30 was stored and holds something else, r31 was not read, and r4 has what r29 had: so it is behind the join."""
    callers = callers_words(STACK)
    way = arriving(run, r30=Word(1), r4=callers["r29 of the caller"])
    way.untouched = frozenset({"r31"})
    way.memory.stack[-4] = callers["r30 of the caller"]
    one = joined(run, way, {}, (), STACK)
    assert one.callers == {(-4, "r30 of the caller")}
    given = registers_behind(run, one, {}, STACK)
    assert run.memory.stack[-4] == callers["r30 of the caller"]
    assert (given["r31"], given["r4"]) == (callers["r31 of the caller"], callers["r29 of the caller"])
    assert given["r30"] == Word(1)


def test_a_register_that_one_way_to_a_join_changed_is_not_the_callers_behind_it(run):
    way, other = arriving(run), arriving(run, r31=Word(1))
    way.untouched = frozenset({"r31"})
    both = common([joined(run, way, {}, (), STACK), joined(run, other, {}, (), STACK)])
    assert both is not None
    assert "r31" not in registers_behind(run, both, {}, STACK)
