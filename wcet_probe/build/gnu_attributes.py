"""The section ``.gnu.attributes``, in which GNU tools say what a file asks of its core."""

from __future__ import annotations

from typing import Literal


def gnu_attribute(data: bytes, order: Literal["little", "big"], wanted: int) -> int:
    """A number of the section ``.gnu.attributes``: vendors, scopes, and tags with their values; 0 where it is not.

    Raises:
        IndexError, ValueError: it is damaged.
    """
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
