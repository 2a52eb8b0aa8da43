# SPDX-License-Identifier: 0BSD
"""Where facts say that indirect branches and calls go: those that a fact names by offset, or the bound by its list.

Which calls go through a member of a structure is the prover's finding, which the assumption lists. It is followed, and
stays open. Facts by a line of the source are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from wcet_probe.certificate.facts.asserted import Asserted, Fact
from wcet_probe.model.image import Image, Symbol

_PLACE = re.compile(r"([\w.$]+)\+0x([0-9a-f]+)( \([^()]+\))?")


class Destinations(NamedTuple):
    """Addresses (bytes) that a branch or call goes to one of, the assumptions that say so, and what of them is open."""

    addresses: tuple[int, ...]
    assumptions: tuple[str, ...]
    open: tuple[str, ...] = ()


def told_destinations(asserted: Asserted, listed: Mapping[str, str], image: Image) -> Mapping[int, Destinations]:
    """Where branches and calls go, by their addresses (bytes); what a fact says of one place goes before its member.

    ``listed`` are the assumptions of the bound: statements by id. A fact that does not name functions, or its calls, as
    they are in ``image`` tells nothing, nor one by an offset out of its function, of whose code its hash says nothing.
    """
    by_offset: dict[int, Destinations] = {}
    by_member: dict[int, Destinations] = {}
    for fact in asserted.of("calls"):
        targets = [_address(image, name) for name in fact.content.get("targets", ())]
        addresses = tuple(one for one in targets if one is not None)
        if not targets or len(addresses) < len(targets):
            continue
        name = f"fact {fact.where}"
        if "offset" in fact.content:
            own, offset = _function(image, str(fact.content.get("function"))), fact.content["offset"]
            if own is not None and isinstance(offset, int) and 0 <= offset < own.size_bytes:
                by_offset[own.address + offset] = Destinations(addresses, (name,))
        elif "through" in fact.content:
            for site in _sites(fact, listed.get(name, ""), image):
                former = by_member.get(site, Destinations((), ()))
                ways = f"that {image.location(site)} goes through {fact.content['through']}"
                by_member[site] = Destinations(
                    (*former.addresses, *addresses), (*former.assumptions, name), (*former.open, ways)
                )
    return {**by_member, **by_offset}


def _function(image: Image, name: str) -> Symbol | None:
    """The one function of that name."""
    own = [one for one in image.functions if one.name == name]
    return own[0] if len(own) == 1 else None


def _address(image: Image, name: str) -> int | None:
    """Where the one function of that name begins."""
    own = _function(image, name)
    return own.address if own is not None else None


def _sites(fact: Fact, statement: str, image: Image) -> Iterator[int]:
    """The calls that the assumption of a fact about a member lists, if its words are those of the fact."""
    told = fact.content
    first = f"calls through {told['through']}, which are those at "
    last = f", go only to {', '.join(told['targets'])}: {told.get('because')}"
    if not statement.startswith(first) or not statement.endswith(last):
        return
    places = [_PLACE.fullmatch(one) for one in statement[len(first) : len(statement) - len(last)].split(", ")]
    found = [_address(image, place[1]) if place else None for place in places]
    if None not in found:
        yield from (start + int(place[2], 16) for place, start in zip(places, found, strict=True) if place and start)
