# SPDX-License-Identifier: 0BSD
"""What instructions do, read by the checker itself from the disassembler's text or the encoding: ARM, Thumb-2, PowerPC.

Read the module of the instruction set of your target, and `machine`, which all of them store and load by.
"""
