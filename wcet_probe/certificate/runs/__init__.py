# SPDX-License-Identifier: 0BSD
"""The one run that memory at entry decides, executed again on words: a check that needs no graph and no invariants."""
