# SPDX-License-Identifier: 0BSD
"""What a result rests on besides: bounds of functions that other documents give."""

from __future__ import annotations

import re

from wcet_probe.certificate.kernel.loops import Json
from wcet_probe.certificate.kernel.records import demand


def given_documents(document: Json) -> list[tuple[str, str]]:
    """Functions whose bounds other documents give, and the SHA-256 of each document, as the assumptions name it.

    Raises:
        VerificationError: an assumption lacks its id or its statement.
    """
    found = []
    for one in document["bound"].get("assumptions", ()):
        demand({"id", "statement"} <= one.keys(), "an assumption of the result lacks its id or its statement")
        kind, _, function = one["id"].partition(" ")
        named = re.search(r"as the document ([0-9a-f]{64}) proves", one["statement"])
        if kind == "given" and named:
            found.append((function, named[1]))
    return found
