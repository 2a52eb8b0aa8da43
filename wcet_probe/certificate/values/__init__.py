# SPDX-License-Identifier: 0BSD
"""What is known of a word, a register or a state: strided intervals, congruences, kinds, residues and terms of words.

Read it to know what a record of a certificate says. It knows no instruction and no graph.
"""
