# SPDX-License-Identifier: 0BSD
"""What a result says beside its bound: paths and blocks that it shows, calls that were observed, other documents.

Read it to believe what a report prints; the bound needs none of it.
"""
