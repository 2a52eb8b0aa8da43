# SPDX-License-Identifier: 0BSD
"""What flags tell where nodes begin: two numbers that were compared before, each of which lies in a range.

A branch may stand in another node than the comparison that it tests, and the ways to it may have decided it already.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.certificate.kernel.records import Records, demand
from wcet_probe.certificate.values.numbers import WORD, Value, number, within
from wcet_probe.certificate.values.state import Comparison, State

Flags = Mapping[str, Mapping[str, Comparison]]
"""By node and name of the flags."""

SIGNS = {"signed": True, "unsigned": False, "either": None}


def flags_of(records: Records) -> Flags:
    """What is said of flags where nodes begin.

    Raises:
        VerificationError: it is said of no number.
    """
    found: dict[str, dict[str, Comparison]] = {}
    for node, name, sign, kind, *numbers, relations in records["flags"]:
        left, right = (_range(node, *map(int, one)) for one in (numbers[:3], numbers[3:]))
        holding = frozenset((one[:-1], one[-1] == "s") for one in relations.split(",") if one != "-")
        told = Comparison(None, left, None, right, SIGNS[sign], kind == "result", holding=holding)
        named = told if told.is_of_bits else told._replace(left=object(), right=object())
        found.setdefault(node, {})[name] = named
    return found


def _range(node: str, low: int, stride: int, steps: int) -> Value:
    demand((stride > 0) == (steps > 0) and low + stride * steps < WORD, f"what flags tell at {node} is of no number")
    return number(low, low + stride * steps, stride)


def ranges_of(state: State, name: object, value: Value) -> list[Value]:
    """Ranges in which what is called ``name`` lies, the last one the smallest."""
    held = [own for place, own in state.values.items() if name is not None and state.name(place) == name]
    return [value, *(own for own in held if within(own, value))]


def lacking(state: State, said: Mapping[str, Comparison]) -> str | None:
    """The name of flags that do not tell in ``state`` what is ``said`` of them."""
    for name, wanted in said.items():
        own = state.flags.get(name)
        if own is None or (own.is_signed, own.is_result) != (wanted.is_signed, wanted.is_result):
            return name
        if not wanted.holding <= own.holding:
            return name
        sides = ((own.left, own.left_value, wanted.left_value), (own.right, own.right_value, wanted.right_value))
        if not all(any(within(one, most) for one in ranges_of(state, who, value)) for who, value, most in sides):
            return name
    return None


def both(known: Comparison | None, said: Comparison) -> Comparison:
    """What is ``known`` of flags by names, with what is ``said`` of them, too: by places that code may write."""
    if known is None:
        return said
    sides = ((known.left_value, said.left_value), (known.right_value, said.right_value))
    left, right = (told if within(told, own) else own for own, told in sides)
    return known._replace(left_value=left, right_value=right, holding=known.holding | said.holding)
