# SPDX-License-Identifier: 0BSD
"""How often control takes a path: counters of loops, nests that are followed, pairs of edges, conditions.

Read it where a certificate bounds loops by itself, or has constraints of pairs or rounds.
"""
