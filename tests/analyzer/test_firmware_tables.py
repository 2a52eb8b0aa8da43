"""Shapes of code that libraries and other compilers make: tables, symbols without sizes.

Tests: analyzer.bound, analyzer.graph.supergraph, analyzer.values.properties.unknown_targets.
"""

import pytest

from tests.analyzer.firmware_code import ARM, THUMB, arm, checked, of, refused, thumb
from tests.support import TARGETS, guest_of
from wcet_probe.catalog.lookup import load_target

# ------------------------------------------------------------------------------------------------------------- tables


def cases(count, first, kind="unsigned"):
    body = "".join(
        f"case {first + i}: o = {7 * i + 1}; c = a * {i + 3} + b; d = c ^ {i}; break;\n" for i in range(count)
    )
    head = f"typedef unsigned u; volatile u o; u a, b, c, d;\nu f({kind} x) {{\n"
    return head + f"switch (x) {{\n{body}default: o = 0;\n}} return d; }}\n"


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("count", "first", "kind"), [(5, 1, "unsigned"), (9, -4, "int"), (12, 7, "unsigned char")])
def test_the_least_case_need_not_be_zero(target, count, first, kind):
    proof = of(target, cases(count, first, kind), suffix=".c")
    checked(proof, *[(number & 0xFFFFFFFF,) for number in range(max(first - 1, -4), first + count + 1)])


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_tables_of_more_than_64_cases(target):
    proof = of(target, cases(130, 3), suffix=".c")
    checked(proof, *[(number,) for number in (0, 3, 66, 67, 68, 132, 133, 0xFFFFFFFF)])


CHECKED_TABLES = {
    "subtracted, then compared": "subs r3, r0, #5\n cmp r3, #2\n bhi 9f\n tbb [pc, r3]\n"
    "0: .byte (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, 0\n",
    "half-words": "subs r3, r0, #5\n cmp r3, #2\n bhi 9f\n tbh [pc, r3, lsl #1]\n"
    "0: .short (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, 0\n",
    "compared before it is subtracted": "cmp r0, #5\n blo 9f\n cmp r0, #7\n bhi 9f\n subs r3, r0, #5\n tbb [pc, r3]\n"
    "0: .byte (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, 0\n",
}


@pytest.mark.parametrize("shape", CHECKED_TABLES)
def test_table_branches_in_the_middle_of_code(shape):
    body = CHECKED_TABLES[shape] + "1: adds r0, #1\n2: adds r0, #1\n3: adds r0, #1\n9: bx lr"
    proof = of("cortex-m4", THUMB + thumb("f", body))
    runs = [checked(proof, (number,)) for number in range(4, 9)]
    assert max(runs) == proof.bound.instructions


def test_a_table_branch_that_a_counter_drives():
    body = """push {r4, lr}
    movs r4, #0
    7: tbb [pc, r4]
    0: .byte (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, (1f-0b)/2
    1: adds r0, #1
    2: adds r0, #1
    3: adds r4, #1
    cmp r4, #4
    bne 7b
    pop {r4, pc}"""
    proof = of("cortex-m4", THUMB + thumb("f", body))
    assert checked(proof, (1,)) <= proof.bound.instructions


SWITCH_BY_LOAD = """cmp r0, #2
ldrls pc, [pc, r0, lsl #2]
b 9f
.word 1f, 2f, 3f
1: add r0, r0, #1
2: add r0, r0, #1
3: add r0, r0, #1
9: bx lr"""


def test_a_predicated_load_of_the_program_counter():
    proof = of("arm926ej-s", ARM + arm("f", f"sub r0, r0, #1\n{SWITCH_BY_LOAD}"))
    assert max(checked(proof, (number,)) for number in range(6)) == proof.bound.instructions


@pytest.mark.parametrize(
    ("body", "table"),
    [
        ("tbb [pc, r0]\n0: .byte 2, 3, 4, 5\n nop\n nop\n nop\n bx lr", "entries"),
        ("cmp r0, #7\n bhi 9f\n tbb [pc, r1]\n0: .byte 2, 3, 4, 5\n nop\n nop\n nop\n9: bx lr", "entries"),
        ("ldr r3, =tab\n ldr r3, [r3, r0, lsl #2]\n bx r3\n .ltorg", "steps of 4 bytes"),
    ],
)
def test_a_table_without_a_known_end_is_named(body, table):
    source = THUMB + thumb("f", body) + ".section .rodata\n.balign 4\n.globl tab\n.type tab, %object\n"
    source += "tab: .word f, f\n.size tab, 8\n"
    text = refused("cortex-m4", source)
    assert "they are read from the table" in text
    assert table in text
    assert "index from 0 to 4,294,967,295" in text
    assert "[[argument]]" in text
    assert "SLEIGH" not in text


def test_a_pointer_that_may_change_is_named():
    source = (
        "void (*one)(void); void (*many[3])(void);\nvoid f(void) { one(); }\nvoid g(unsigned i) { many[i & 1](); }\n"
    )
    assert "one at 0x2000" in refused("cortex-m4", source, "f", ".c")
    text = refused("cortex-m4", source, "g", ".c")
    assert "table many at 0x2000" in text
    assert "make it const" in text


ESCAPED = """push {r4, lr}
    sub sp, #8
    ldr r4, =kept
    str sp, [r4]
    str r0, [sp]
    ldr r0, [r4, #4]
    INDEX
    tbb [pc, r0]
    0: .byte (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, (3f-0b)/2
    1: adds r4, #1
    2: adds r4, #1
    3: adds r4, #1
    9: add sp, #8
    pop {r4, pc}
    .ltorg"""
"""Jumps by a word that may be a stack address, as far as is known, for one is stored beside it."""
_KEPT = ".bss\n.balign 4\nkept: .space 8\n"


@pytest.mark.parametrize(
    "check",
    [
        "cmp r0, #3\n bhi 9f",
        "adds r0, #5\n cmp r0, #2\n bhi 9f",
        "cmp r0, #9\n bhi 9f\n subs r0, #7\n cmp r0, #1\n bhi 9f",
    ],
)
def test_an_index_that_may_be_an_address_is_in_the_range_that_is_checked(check):
    source = THUMB + thumb("f", ESCAPED.replace("INDEX", check))
    source += thumb("main", "push {r4, lr}\n ldr r1, =kept\n str r0, [r1, #4]\n bl f\n pop {r4, pc}\n .ltorg") + _KEPT
    proof = of("cortex-m4", source, "main")
    runs = [
        checked(proof, (number,))
        for number in (0, 1, 2, 3, 4, 7, 8, 9, 0xFFFF_FFFB, 0xFFFF_FFFC, 0xFFFF_FFFE, 0x2000_1000)
    ]
    assert max(runs) == proof.bound.instructions


@pytest.mark.parametrize(
    "check",
    [
        "cmp r0, #3\n bgt 9f",  # below 0 it may be anything
        "cmp r0, #3\n bhi 9f\n str r1, [r4, #4]\n ldr r0, [r4, #4]",  # not the word that was checked
        "ldr r1, [r4]\n subs r0, r1, r0\n cmp r0, r1\n bhi 9f",  # below an address
    ],
)
def test_an_index_that_may_be_an_address_needs_a_range(check):
    source = THUMB + thumb("f", ESCAPED.replace("INDEX", check)) + _KEPT
    assert "the targets of the indirect branch" in refused("cortex-m4", source)


def test_a_table_that_a_counter_drives_until_it_is_equal_to_a_number():
    """Nothing compares the counter by its order, so widening loses it: the number of rounds tells its range."""
    body = """push {r4, r5, lr}
    ldr r5, =kept
    movs r4, #0
    b 7f
    3: adds r4, #1
    cmp r4, #6
    beq 8f
    7: ldr r1, [r5]
    cmp r1, r0
    beq 3b
    tbb [pc, r4]
    0: .byte (1f-0b)/2, (2f-0b)/2, (4f-0b)/2, (1f-0b)/2, (2f-0b)/2, (1f-0b)/2
    1: adds r0, #1
    2: adds r0, #1
    4: adds r0, #1
    b 3b
    8: pop {r4, r5, pc}
    .ltorg"""
    proof = of("cortex-m4", THUMB + thumb("f", body) + _KEPT)
    assert checked(proof, (1,), (0,), (0xFFFF_FFFF,)) <= proof.bound.instructions < 90


# ------------------------------------------------------------------------------------------------------------- symbols


def test_a_jump_into_the_middle_of_another_function():
    source = THUMB + thumb("f", "cmp r0, #3\n bne 1f\n b.w g_tail\n1: adds r0, #1\n bx lr")
    source += thumb("g", "adds r0, #1\n adds r0, #2\ng_tail: adds r0, #3\n adds r0, #4\n bx lr")
    proof = of("cortex-m4", source)
    assert checked(proof, (0,), (3,)) == proof.bound.instructions == 6


def test_a_jump_back_into_the_middle_of_a_block_of_the_caller():
    """The loop is one of g's, whose header is in the middle of a block of f: runs come to it from there first."""
    source = ARM + arm("f", "and r0, r0, #7\n1: subs r0, r0, #1\n bmi 2f\n b g\n.globl back\nback: b 1b\n2: bx lr")
    source += arm("g", "mov r2, #5\n3: subs r2, r2, #1\n bne 3b\n b back")
    proof = of("arm926ej-s", source)
    assert checked(proof, (0,), (1,), (7,)) == proof.bound.instructions


def test_a_call_of_a_label_in_the_middle_of_another_function():
    source = THUMB + thumb("f", "push {r4, lr}\n bl g_tail\n pop {r4, pc}")
    source += thumb("g", "adds r0, #1\ng_tail: adds r0, #3\n adds r0, #4\n bx lr")
    proof = of("cortex-m4", source)
    assert checked(proof, (0,)) == proof.bound.instructions == 6


def test_a_call_of_code_without_a_symbol():
    source = THUMB + thumb("f", "push {r4, lr}\n bl .Lhidden\n pop {r4, pc}") + thumb("g", "bx lr")
    source += ".balign 4\n.Lhidden: movs r2, #3\n1: subs r2, #1\n bne 1b\n bx lr\n"
    proof = of("cortex-m4", source)
    assert checked(proof, (0,)) == proof.bound.instructions == 11
    (loop,) = proof.bound.loops
    assert loop.function.startswith("function_at_0x") or loop.function.startswith("g+")


def test_functions_whose_symbols_tell_no_size():
    """Hand-written assembly: the size is up to the next function; a label without size hides no function."""
    source = ARM + arm("f", "cmp r0, #0\n bne g\n mov r0, #1\n bx lr", size=False)
    source += arm("g", "mov r0, #2\n.type inner, %function\ninner: add r0, r0, #1\n cmp r0, #9\n blt inner\n bx lr")
    image = guest_of(source, load_target("arm926ej-s")).image
    assert [(one.name, one.size_bytes) for one in image.functions] == [("f", 16), ("g", 20)]
    assert image.location(image.symbols["inner"].address).startswith("g+0x4")
    proof = of("arm926ej-s", source)
    assert checked(proof, (0,), (1,)) == proof.bound.instructions


def test_two_names_of_one_function_of_which_one_has_a_size():
    source = THUMB + ".globl alias\n.type alias, %function\n.thumb_func\nalias:\n" + thumb("f", "adds r0, #1\n bx lr")
    image = guest_of(source, load_target("cortex-m4")).image
    assert [one.name for one in image.functions] == ["f"]
    assert image.symbols["alias"].size_bytes == image.symbols["f"].size_bytes == 4
    assert of("cortex-m4", source, "alias").bound.instructions == 2


def test_two_functions_that_jump_to_each_other_are_a_loop():
    source = THUMB + thumb("f", "movs r1, #4\n b.w g") + thumb("g", "subs r1, #1\n bne.w h\n bx lr")
    source += thumb("h", "adds r0, #1\n b.w g")
    proof = of("cortex-m4", source)
    assert [loop.max for loop in proof.bound.loops] == [4]
    assert checked(proof, (0,)) == proof.bound.instructions


def test_a_call_of_what_is_no_code_is_refused():
    source = THUMB + thumb("f", "push {r4, lr}\n bl .Ldata + 0x100000\n pop {r4, pc}\n.Ldata:")
    assert "there is no code at" in refused("cortex-m4", source)


def test_a_call_of_code_among_data_is_told_so():
    among = '.section .data.fast, "awx", %progbits\n.balign 4\n'
    source = THUMB + thumb("f", "push {r4, lr}\n ldr r3, =g\n blx r3\n pop {r4, pc}\n .ltorg")
    assert "leads to a section that is writable" in refused("cortex-m4", source + among + thumb("g", "bx lr"))
