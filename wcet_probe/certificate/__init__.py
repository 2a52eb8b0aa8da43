# SPDX-License-Identifier: 0BSD
"""The checker: does a certificate prove its bound about a binary, whoever wrote it.

It imports nothing of the analyzer, the emulator, the lifter or the solver; what it takes on trust is `trusted.TRUSTED`.
"""
