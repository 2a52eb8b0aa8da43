# SPDX-License-Identifier: 0BSD
"""What a result document says of the dearest known call, unit by unit: two calls, where no state is dearest in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNITS = ("instructions", "cycles")


def witnessed(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The dearest known call of ``document`` in each unit; None where nothing was run.

    A document that was saved before it told a witness for each unit has the observed call for both.
    """
    witnesses, observed = document.get("witnesses"), document.get("observed")
    if isinstance(witnesses, Mapping) and all(isinstance(witnesses.get(unit), Mapping) for unit in UNITS):
        return {unit: witnesses[unit].get("value") for unit in UNITS}
    return observed if observed is None or isinstance(observed, Mapping) else {}
