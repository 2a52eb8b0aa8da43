# SPDX-License-Identifier: 0BSD
"""Addresses near a symbol: a sum of one symbol and of parts that are known to be small.

Code that chooses one of two neighbouring words adds four times a number that is 0 or 1. The sum has a name of its own,
but the granule of the symbol that both words lie in is known.

*Soundness:* a name means one value in one execution of a node, and what numbers are known to be there they are. The sum
is the symbol and a distance, modulo 2**32, from the least that the parts can give to the most. If a granule of the
symbol holds the bytes at both ends, it holds those between them; a granule lies in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.terms import Form

MOST_SPAN = 64
"""Parts of more values than that are not looked at: no granule is as large."""


class Near(NamedTuple):
    """An address that is a symbol and ``low`` to ``high`` bytes more; ``of_base`` is the class of the symbol."""

    base: str
    low: int
    high: int
    of_base: Congruence


def is_small(value: Value) -> bool:
    """Whether a number has few values only."""
    return value.is_number and value.high - value.low <= MOST_SPAN


def near_symbol(
    name: Value,
    linear: Mapping[str, Form],
    symbols: Collection[str],
    ranges: Mapping[str, Value],
    class_of: Callable[[str], Congruence],
) -> Near | None:
    """The symbol that the address called ``name`` is near; None where there is not just one.

    Args:
        name: a sum and a constant.
        linear: by name, what a sum consists of.
        symbols: the names of symbols.
        ranges: by name, what parts are known to be.
        class_of: the class of a symbol, by its name.
    """
    form = linear.get(name.base.removeprefix("@"))
    if form is None or not name.is_constant:
        return None
    own = [part for part in form if part not in ranges or not is_small(ranges[part])]
    if len(own) != 1 or own[0] not in symbols or form[own[0]] != 1:
        return None
    ends = [
        sorted((times * ranges[part].low, times * ranges[part].high)) for part, times in form.items() if part != own[0]
    ]
    low, high = (name.low + sum(pair[at] for pair in ends) for at in (0, 1))
    return Near(own[0], low, high, class_of(own[0])) if high - low <= MOST_SPAN else None
