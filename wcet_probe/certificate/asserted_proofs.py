# SPDX-License-Identifier: 0BSD
"""Facts that a result tells to be proved: the checker does not follow the proof, and says so.

Alignments of pointers may follow from what the operations of an allocator store, by an induction over all of them. What
a result says of it is read here as far as it can be: such a fact stands in a file, what else it says is listed as an
assumption still, and so are the lemmas and premises of the induction. Whether it is proved is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wcet_probe.certificate.asserted import Asserted
from wcet_probe.certificate.records import demand
from wcet_probe.model.induction import LEMMAS, PREMISES

_OF_ALIGNMENT = {"functions", "multiple_of", "remainder", "because", "sha256"}
_NAMES = {**{f"induction {name}": text for name, text in LEMMAS.items()}, **PREMISES}


def asserted_proofs(section: Mapping[str, Any], asserted: Asserted) -> int:
    """How many of the facts ``asserted`` a result's ``section`` of the bound tells to be proved.

    Raises:
        VerificationError: it is told of what is no such fact, or the lemmas are not listed.
    """
    listed = {one["id"]: one["statement"] for one in section["assumptions"]}
    places = [name.partition(" ")[2] for name in listed if name.startswith("proved ")]
    verdicts = section.get("pointer_facts", ())
    claimed = {one["where"] for one in verdicts if one["is_proved"]}
    demand(set(places) == claimed, "the facts that are told to be proved are not those of the assumptions")
    for where in places:
        fact = asserted.at(where)
        demand(fact is not None and fact.kind == "pointer", f"there is no fact about pointers at {where}")
        if fact is not None:
            demand(str(fact.content.get("because")) in listed[f"proved {where}"], f"the fact {where} has other words")
            is_more = fact.content.keys() - _OF_ALIGNMENT
            demand(not is_more or f"fact {where}" in listed, f"not all that the fact {where} says is listed")
    for name, statement in _NAMES.items():
        demand(
            (listed.get(name) == statement) if places else name not in listed,
            f"the assumption {name} is told otherwise",
        )
    return len(places)
