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


def test_a_question_names_a_function_and_stays_as_it_is(asked):
    with pytest.raises(UsageError, match="no function of the image"):
        prove(replace(asked, entry="word"))
    with pytest.raises(FrozenInstanceError):
        asked.entry = "g"  # type: ignore[misc]
