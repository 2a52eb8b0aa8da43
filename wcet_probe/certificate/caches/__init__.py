# SPDX-License-Identifier: 0BSD
"""Misses and write-backs: which accesses hit, which are charged, and which are counted where a limit is shown.

Read it where the unit is cycles and the target has caches, or unaligned accesses that cost more.
"""
