# SPDX-License-Identifier: 0BSD
"""What each check rests on: the records, the graph and what it covers, costs, and the dual.

Read it first, and whole. It imports nothing of the rules beside it: `wcet_probe.certificate.check` gives each rule
what the kernel found, and asks for what a certificate uses of it.
"""
