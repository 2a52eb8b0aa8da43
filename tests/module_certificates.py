"""Module certificates of programs as they are, made once each in a test run, whichever worker asks.

Who changes what makes one, or the program, asks `module_certificate` itself.
"""

from __future__ import annotations

import json
from typing import Any

from tests.run_folder import once
from wcet_probe.answer.bounds.bound_store import bound_key
from wcet_probe.answer.bounds.module_certificate import module_certificate
from wcet_probe.build.program import Program


def true_certificate(given: Program, heap_bytes: int) -> dict[str, Any]:
    """The module certificate of ``given``, as a file tells it; each caller has its own copy."""
    made = once(
        "modules", lambda: json.dumps(module_certificate(given, heap_bytes)), bound_key(given, "all", heap_bytes)
    )
    return dict(json.loads(made))
