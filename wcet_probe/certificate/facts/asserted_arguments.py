# SPDX-License-Identifier: 0BSD
"""What facts say that a call is given: arguments in registers and on the stack, and words that hold an address.

A fact ``points_to`` names an object or a function, and a distance from it; the address is the binary's, of a Thumb
function with the bit that tells so. Of words those are followed here whose place a number tells, and not a member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from wcet_probe.certificate.facts.asserted import Asserted, Fact
from wcet_probe.certificate.kernel.loops import value_of
from wcet_probe.certificate.kernel.records import demand, existing
from wcet_probe.certificate.values.numbers import Value, number
from wcet_probe.certificate.values.state import STATIC, Place
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

_POINTEE = re.compile(r"([\w.$]+)(?:\s*\+\s*(0x[0-9a-fA-F]+|[0-9]+))?")


def told_at_entry(
    asserted: Asserted, entry: str, image: Image, parameters: Mapping[str, int]
) -> Iterator[tuple[str, Place, Value]]:
    """Facts, by file and line, and what they say of a place where ``entry`` is entered.

    Raises:
        VerificationError: one speaks of no place, of nothing that the binary has, or of an empty range.
    """
    for fact in asserted.of("argument"):
        if fact.content.get("function") == entry:
            yield fact.where, _argument_place(fact, image.isa), _value(fact, image, parameters)
    for fact in asserted.of("word"):
        if "points_to" in fact.content and "field" not in fact.content:
            symbol = str(fact.content.get("symbol"))
            demand(symbol in image.symbols, f"the binary has no {symbol}, which {fact.where} speaks of")
            offset = value_of(fact.expression("offset") or "0", parameters)
            yield fact.where, STATIC + image.symbols[symbol].address + offset, _value(fact, image, parameters)


def _argument_place(fact: Fact, isa: Isa) -> Place:
    """A register; behind those a word of the stack, on PowerPC above the back chain and the word for the link."""
    index = fact.content.get("index")
    if index is None:
        return str(fact.content.get("register"))
    first, most, behind = (3, 8, 8) if isa is Isa.POWERPC else (0, 4, 0)
    demand(int(index) >= 0, f"the argument at {fact.where} is none")
    return f"r{first + int(index)}" if int(index) < most else behind + 4 * (int(index) - most)


def _value(fact: Fact, image: Image, parameters: Mapping[str, int]) -> Value:
    if "points_to" in fact.content:
        found = _POINTEE.fullmatch(str(fact.content["points_to"]))
        missing = f"the binary has not what {fact.where} points to"
        name, offset = existing(found, missing).groups()
        symbol = existing(image.symbols.get(name), missing)
        low = high = symbol.address + int(offset or "0", 0) + (symbol.is_function and image.isa is Isa.THUMB)
    else:
        low, high = (value_of(fact.expression(key), parameters) for key in ("min", "max"))
    demand(0 <= low <= high < 1 << 32, f"the range at {fact.where} is none")
    return number(low, high)
