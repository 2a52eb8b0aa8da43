"""What came of an operation: what is open, where, and how many instructions are shown to access what they may."""

from wcet_probe.analyzer.deduction.execution import End
from wcet_probe.analyzer.deduction.formulas import TRUE
from wcet_probe.analyzer.deduction.obligations import (
    IN_THE_RESERVED_SETS,
    OF_THE_OWN_BLOCK,
    Answers,
    Deduced,
    Obligation,
)
from wcet_probe.analyzer.deduction.smt_lib import Follows
from wcet_probe.analyzer.domains.congruences import Congruence

FREE = Deduced(
    "free-small",
    2,
    (
        Obligation(1, 0x100, IN_THE_RESERVED_SETS, True),
        Obligation(1, 0x104, IN_THE_RESERVED_SETS, True),
        Obligation(1, 0x110, "blocks", True),
        Obligation(2, 0x104, OF_THE_OWN_BLOCK, False),
        Obligation(2, 0x110, "blocks", False),
        Obligation(2, 0x120, "blocks", False),
    ),
    ((), ()),
)


def test_what_is_open_is_told_by_its_instructions_and_what_is_shown_is_counted():
    assert FREE.open_by_name == {OF_THE_OWN_BLOCK: (0x104,), "blocks": (0x110, 0x120)}
    assert (FREE.shown, len(FREE.open)) == (3, 3)


def test_an_instruction_of_which_one_access_is_open_is_not_shown():
    assert FREE.accesses == 1


def test_the_ways_of_another_part_are_numbered_behind_these():
    behind = Deduced("free-large", 1, (Obligation(1, 0x200, "bits", True), Obligation(0, 0x204, "held", False)), ((),))
    both = FREE.then(behind)
    assert (both.operation, both.ways, len(both.choices)) == ("free-small", 3, 3)
    assert [one.way for one in both.obligations[-2:]] == [3, 0]
    assert both.open == (*FREE.open, behind.obligations[1])


def test_answers_are_kept_by_their_ways_and_what_is_not_followed_is_open():
    ended = []
    answers = Answers(lambda: ended.append(len(ended)))
    answers.add("tags", 0x10, is_shown=True)
    answers.leave_way()
    answers.add("tags", 0x10, is_shown=True)
    answers.end_way(
        End(
            0x20,
            None,
            {}.get,
            (),
            ((0x14, True),),
            "an access that strays",
            dict,
            is_at_join=False,
            untouched=frozenset(),
        )
    )
    answers.add("bits", 0, is_shown=False)
    answers.end_way(None)
    found = answers.deduced("free", [Follows(TRUE)], {0x10: {Congruence(8, 0)}})
    assert [(one.way, one.what, one.is_shown) for one in found.obligations] == [
        (0, "tags", True),
        (1, "tags", True),
        (1, "followed to its end: an access that strays", False),
        (0, "bits", False),
    ]
    assert (found.ways, found.choices, ended) == (1, (((0x14, True),),), [0, 1, 2])
    assert found.questions == ([Follows(TRUE)],)
    assert (found.aligned, found.reached) == ({0x10: frozenset({Congruence(8, 0)})}, {})
