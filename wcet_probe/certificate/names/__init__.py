# SPDX-License-Identifier: 0BSD
"""Addresses by name: which accesses go to the same bytes, though nobody knows where these are.

Read it where the target has a data cache, or unaligned accesses that cost more.
"""
