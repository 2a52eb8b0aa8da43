"""Build attributes: what ARM's values mean (Addenda to the ABI for the Arm Architecture, 2023Q3), GNU's section."""

from __future__ import annotations

from typing import Literal

ARM_ARCHITECTURES = {
    **dict(
        enumerate(("pre-v4", "v4", "v4T", "v5T", "v5TE", "v5TEJ", "v6", "v6KZ", "v6T2", "v6K", "v7", "v6-M", "v6S-M"))
    ),
    **dict(enumerate(("v7E-M", "v8-A", "v8-R", "v8-M.base", "v8-M.main"), 13)),
}
"""By the value of Tag_CPU_arch."""
ARM_FPUS = {
    0: ("", 0, False),
    1: ("VFPv1", 1, False),
    2: ("VFPv2", 2, False),
    3: ("VFPv3", 3, True),
    4: ("VFPv3-D16", 3, False),
    5: ("VFPv4", 4, True),
    6: ("VFPv4-D16", 4, False),
    7: ("FPv5", 5, True),
    8: ("FPv5-D16", 5, False),
}
"""Name, generation and whether there are 32 double registers, by the value of Tag_FP_arch."""


def gnu_attribute(data: bytes, order: Literal["little", "big"], wanted: int) -> int:
    """A number of the section ``.gnu.attributes``: vendors, scopes, and tags with their values; 0 where it is not."""
    at = 1
    while data[:1] == b"A" and at + 4 < len(data):
        end = at + int.from_bytes(data[at : at + 4], order)
        name = data.index(0, at + 4)
        at, vendor = name + 1, data[at + 4 : name]
        while vendor == b"gnu" and at + 5 <= end:
            scope, scope_end = data[at], at + int.from_bytes(data[at + 1 : at + 5], order)
            at += 5
            while scope == 1 and at < scope_end:
                tag, at = _number(data, at)
                if tag & 1:
                    at = data.index(0, at) + 1
                    continue
                value, at = _number(data, at)
                if tag == wanted:
                    return value
            if scope_end <= at - 5:
                raise ValueError("a scope of no bytes")
            at = scope_end
        if end < at:
            raise ValueError("a vendor of no bytes")
        at = end
    return 0


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in LEB128 at ``at``, and where the next one starts."""
    value = shift = 0
    while data[at] & 0x80:
        value, shift, at = value | (data[at] & 0x7F) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1
