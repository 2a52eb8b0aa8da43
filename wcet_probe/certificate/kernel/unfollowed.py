# SPDX-License-Identifier: 0BSD
"""Bounds whose paths are not followed, and why, for people."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from wcet_probe.certificate.kernel.loops import Json
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.model.image import Image

_PLACE = re.compile(r"(?:(function_at_)|(\w+)\+)0x([0-9a-f]+)")


_TOLD_OF_ONE_FUNCTION = frozenset({"loop", "argument"})
"""Kinds of facts that say nothing of code of several functions together."""


def not_followed(section: Json, image: Image, callees: Sequence[str] = (), kinds: Collection[str] = ()) -> str:
    """Why the paths of a bound are not followed, for people; empty where they are.

    Args:
        section: that tells of the bound.
        image: the binary.
        callees: functions that were checked by themselves.
        kinds: of the facts about the binary.

    Raises:
        VerificationError: it is said of what is no function, or of other functions than were checked.
    """
    names = list(map(str, section.get("summarised", ())))
    for name in names:
        demand(_is_code(image, name), f"the image has no function {name}")
    demand(not callees or sorted(callees) == sorted(names), "the callees are not the functions that are not expanded")
    if names and not callees:
        return f"calls that are not expanded: {shortened(names)}"
    if names and not _TOLD_OF_ONE_FUNCTION.issuperset(kinds):
        return f"calls that are not expanded, beside facts of several functions: {shortened(names)}"
    if any(one["id"] == "initial-data" for one in section["assumptions"]):
        return "what memory is assumed to hold at entry"
    return ""


def _is_code(image: Image, name: str) -> bool:
    """Whether ``name`` is that of a function, or of a place of code that no symbol of a function names."""
    if name in image.symbols:
        address = image.symbols[name].address
    elif (told := _PLACE.fullmatch(name)) and (told[1] or told[2]) in {*image.symbols, "function_at_"}:
        address = int(told[3], 16) + (image.symbols[told[2]].address if told[2] else 0)
    else:
        return False
    return any(one.executable and 0 <= address - one.address < len(one.data) for one in image.segments)


def shortened(names: Sequence[str], shown: int = 3) -> str:
    """The first of ``names``, each once, and how many there are besides, for people."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - shown
    return ", ".join(unique[:shown]) + (f" and {more} more" if more > 0 else "")
