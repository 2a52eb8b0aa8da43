# SPDX-License-Identifier: 0BSD
"""What people say, and what a bound takes for granted: files of facts, marks in sources, hashes, sums, assumptions.

Read it where a certificate rests on facts; `assumptions` always, and `findings` for what the answers mean.
"""
