"""What memory is assumed to hold when a call begins: the stack is in none of it."""

import pytest

from tests.support import guest_of
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.answer.firmware.entry_memory import check_stack_apart
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import ContradictionError


def test_a_call_whose_stack_is_in_memory_that_is_taken_to_be_known_is_a_contradiction():
    image = guest_of("unsigned char stack[256] = {1}; void f(void) {}", load_target("cortex-m4"), ".c").image
    content, top = image_data(image), image.symbols["stack"].address + 256
    with pytest.raises(
        ContradictionError, match=r"the stack of f\(\) is at stack\+255, .*initial-data.*--stack-pointer 0x"
    ):
        check_stack_apart(content, top, image, "f()")
    check_stack_apart(content, top - 256, image, "f()")  # its first byte is below the object
    check_stack_apart((), top, image, "f()")
