"""Assembler code within C that may be a loop, or an end of one."""

import pytest

from wcet_probe.analyzer.facts.assembler_text import may_go_back


@pytest.mark.parametrize(
    "code",
    [
        rb'asm("1: subs r0, #1\n bne 1b");',
        rb'__asm__ volatile("again: nop");',
        rb'__asm("b .");',
        rb'asm("bne . - 4");',
        rb'asm("b.n .");',
        rb'asm("nop" "\n" "b 1b");',
        rb'asm("%=: nop");',
    ],
)
def test_a_label_or_a_way_back_may_be_a_loop(code):
    assert may_go_back(code)


@pytest.mark.parametrize(
    "code",
    [
        rb'asm("nop");',
        rb'asm volatile("" : "+r"(value) : : "memory");',
        rb'asm("clz %0, %1" : "=r"(zeros) : "r"(word));',
        rb'asm("beq 1f");',
        rb'puts("1: b 1b");',
        rb"plasma: goto plasma;",
    ],
)
def test_what_goes_on_or_is_no_assembler_is_none(code):
    assert not may_go_back(code)
