"""Stores by the stack pointer that may go outside of the call's frames are told, and those inside are not."""

import pytest

from tests.analyzer.test_counted_recursion import bound_of

ARM = """\
.syntax unified
.thumb
.global f
.type f, %function
f:
    sub sp, #8
    ldr r1, =n
    movs r2, #3
    str r2, [r1]
    mov r3, sp
    {store}
    movs r2, #0
1:  adds r2, #1
    ldr r3, [r1]
    cmp r2, r3
    blo 1b
    add sp, #8
    bx lr
.ltorg
.size f, .-f
.bss
n: .space 4
"""


@pytest.mark.parametrize(
    ("store", "leaves"),
    [
        ("strb r0, [r3, r0]", True),  # anywhere
        ("strb r0, [r3, #8]", True),  # of the caller
        ("strh r0, [r3, #7]", True),  # half of it
        ("strb r0, [r3, #7]", False),
        ("str r0, [r3]", False),
        ("and r0, r0, #7; strb r0, [r3, r0]", False),
        ("and r0, r0, #15; strb r0, [r3, r0]", True),
        ("and r0, r0, #7; negs r0, r0; strb r0, [r3, r0]", True),  # below the stack pointer
        ("str r0, [sp, #-4]", True),  # the same, at a place that is known
        ("sub.w r3, r3, #0x10000; str r0, [r3]", True),  # where static data may be
        ("ldr r1, =0xfffb0010; add r3, r1; str r0, [r3]; ldr r1, =n", True),
        ("str r0, [sp, #-4]!; add sp, #4", False),
        ("push {r0, r4}; sub sp, #8; strb r0, [sp]; add sp, #8; pop {r0, r4}", False),
    ],
)
def test_a_store_that_may_leave_the_frames_is_assumed_to_hit_no_static_data(store, leaves):
    _, bound = bound_of("cortex-m4", "f", source=ARM.format(store=store), suffix=".s")
    assert ("stack-stores" in {one.id for one in bound.assumptions}) == leaves
