"""The question: what is assumed must be asked for, and a question is not changed by who answers it."""

from dataclasses import FrozenInstanceError, replace

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.timing import costs
from wcet_probe.model.target import without_caches

TARGET = load_target("cortex-m4")
BODY = "ldr r1, =word\n ldr r1, [r1]\n1: subs r1, #1\n bhi 1b\n bx lr\n .data\nword: .word 5\n .text"


@pytest.fixture(scope="module")
def asked():
    guest = guest_of(assembler({"f": BODY}, TARGET), TARGET)
    parts = guest.instructions, costs(guest.instructions, TARGET)
    return BoundRequest(guest.image, TARGET, *parts, "f", Facts(), {}, {})


def test_of_what_memory_holds_nothing_is_assumed_unless_it_is_asked(asked):
    plain = prove(asked)
    assert plain.by_type
    assert "initial-data" not in {one.id for one in plain.assumptions}
    content = ((asked.image.symbols["word"].address, (5).to_bytes(4, "little")),)
    found = prove(replace(asked, initial=InitialData(content, "the file")))
    assert "initial-data" in {one.id for one in found.assumptions}
    assert [loop.max for loop in found.loops] == [5]


def test_where_the_stack_is_is_assumed_where_it_is_asked_and_a_cache_of_data_depends_on_it():
    target = load_target("arm926ej-s")
    body = "push {r4, lr}\n mov r0, #9\n1: ldr r1, [sp]\n subs r0, #1\n bne 1b\n pop {r4, pc}"
    guest = guest_of(assembler({"f": body}, target), target)
    asked = BoundRequest(
        guest.image, target, guest.instructions, costs(guest.instructions, target), "f", Facts(), {}, {}
    )
    assert "stack-pointer" not in {one.id for one in prove(asked).assumptions}
    found = prove(replace(asked, stack_pointer=0x2000_0008))
    (told,) = [one for one in found.assumptions if one.id == "stack-pointer"]
    assert "0x20000008" in told.statement
    assert found.stack_pointer == 0x2000_0008
    with pytest.raises(UsageError, match="multiple of 8"):
        prove(replace(asked, stack_pointer=0x2000_0004))
    without = prove(replace(asked, stack_pointer=0x2000_0008, target=without_caches(target)))
    assert "stack-pointer" not in {one.id for one in without.assumptions}


def test_a_question_names_a_function_and_stays_as_it_is(asked):
    with pytest.raises(UsageError, match="no function of the image"):
        prove(replace(asked, entry="word"))
    with pytest.raises(FrozenInstanceError):
        asked.entry = "g"  # type: ignore[misc]
