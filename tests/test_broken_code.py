"""Random broken binaries: they are what they are said to be, and the same number gives the same one."""

import pytest

from tests.broken_campaign import subject
from tests.broken_code import broken, dropped, function_of, instructions_of, patched


@pytest.mark.parametrize("target", ["mpc603e", "cortex-m7", "arm926ej-s"])
def test_a_broken_binary_differs_in_what_it_says_and_in_nothing_else(target):
    program = subject("half-fit", target)
    function, own = function_of(program, "free"), instructions_of(program, "free")
    for number in range(8):
        one = broken(program, "free", number)
        assert len(one.program.instructions) == len(program.instructions)
        pairs = [(old, new) for old, new in zip(program.image.elf, one.program.image.elf, strict=True) if old != new]
        assert 0 < len(pairs) <= sum(len(each.code) for each in one.changes)
        assert one.changed <= {each.address for each in own}
        assert all(each.text in one.text for each in one.changes)
        assert [each.text for each in instructions_of(one.program, "free")] != [each.text for each in own]
        targets = [each.branch_target for each in instructions_of(one.program, "free") if each.branch_target]
        assert all(function.address <= each < function.address + function.size_bytes for each in targets)


def test_the_same_number_gives_the_same_binary():
    program = subject("half-fit", "mpc603e")
    texts = [broken(program, "malloc", number).text for number in range(20)]
    assert texts == [broken(program, "malloc", number).text for number in range(20)]
    assert len(set(texts)) == 20
    assert any(" and " in text for text in texts), "some have two changes"


def test_what_is_dropped_is_an_instruction_that_does_nothing():
    program = subject("half-fit", "mpc603e")
    first = instructions_of(program, "init")[0]
    found = patched(program, dropped(program, first.address))
    assert instructions_of(found, "init")[0].text == "nop"
    assert found.image.sha256 != program.image.sha256
