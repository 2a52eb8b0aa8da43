"""How many examples of a random test a run takes: `make test` a slice of them, the same each time, a campaign more."""

from __future__ import annotations

import os

ORDINARY = 40
"""Of a test that says nothing else."""
OF_CAMPAIGNS = 1000
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


def examples(ordinary: int, campaign: int = OF_CAMPAIGNS) -> int:
    """``ordinary`` examples in `make test`, ``campaign`` in `make soundness` and in searches by hand."""
    return ordinary if PROFILE == "ci" else campaign
