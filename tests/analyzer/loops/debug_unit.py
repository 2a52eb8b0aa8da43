"""Debug information of a function ``f`` in assembly: its lines by ``.loc``, and the compiler that made it."""

CODE_OF_F = """\
.syntax unified
.thumb
.file 1 "guest.c"
.text
.globl f
.type f, %function
.thumb_func
"""
"""What stands before the label ``f`` of its code."""


def debug_unit(compiler: str) -> str:
    """What stands behind the code, which ends at the label ``end``."""
    return f"""\
.section .debug_abbrev
.byte 1, 0x11, 1, 0x25, 8, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 3, 8, 0x11, 1, 0x12, 6, 0, 0, 0
.section .debug_line
lines:
.section .debug_info
.long units - unit
unit: .short 4
.long 0
.byte 4, 1
.asciz "{compiler}"
.long lines
.byte 2
.asciz "f"
.long f, end - f
.byte 0
units:
"""
