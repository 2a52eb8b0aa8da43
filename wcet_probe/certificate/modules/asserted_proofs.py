# SPDX-License-Identifier: 0BSD
"""Facts that a result tells to be proved, and whether the module certificate that it carries proves them.

Alignments of pointers may follow from what the operations of an allocator store, by an induction over all of them. Such
a fact stands in a file, what else it says is listed as an assumption still, and so are the lemmas and premises of the
induction. Without a module certificate, whether it is proved is not checked.

With one, the bound does not take the fact's class from it but asks of each access that a proved fact speaks of, whether
all addresses that it has in init, malloc and free are of the class that the bound gives to it there. So it does not
matter which parts of an address the two call by a name, nor what follows from the class elsewhere: a class that an
access has shown is one that this was asked of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.facts.findings import OK, OPEN, Binary, Finding
from wcet_probe.certificate.kernel.records import demand, existing
from wcet_probe.certificate.modules.module import check_module, facts_at
from wcet_probe.certificate.modules.module_machine import Accessed
from wcet_probe.certificate.names.names import Address, Traced
from wcet_probe.certificate.values.congruences import UNALIGNED, implies, residue_of
from wcet_probe.certificate.values.residues import MODULUS, of_class
from wcet_probe.model.induction import DEDUCED_BY_ALL, DEDUCTION_PREMISES, LEMMAS, PREMISES

_OF_ALIGNMENT = {"functions", "multiple_of", "remainder", "because", "sha256"}
_OF_SETS = {"first_set", "sets"}
_NAMES = {**{f"induction {name}": text for name, text in LEMMAS.items()}, **PREMISES}


def checked_proofs(
    section: Mapping[str, Any], binary: Binary, entry: str, traced: Sequence[Traced] | None
) -> Finding | None:
    """Whether the facts that a result's ``section`` of the bound tells to be proved are; None where none is told so.

    Args:
        section: of the result.
        binary: what it is about.
        entry: the function that is bounded.
        traced: the nodes of its graph that are executed; None where its accesses were not followed.

    Raises:
        VerificationError: the module certificate does not hold, or is of something else.
    """
    places, document = asserted_proofs(section, binary.asserted), section.get("module")
    is_deduced = any(one["is_proved"] and _is_deduced(one) for one in section.get("pointer_facts", ()))
    told = f"{len(places)} told to be proved by {'a solver' if is_deduced else 'induction'}"
    demand(document is None or not is_deduced, "what is proved by a solver has no module certificate")
    if document is None or not places:
        demand(document is None, "a module certificate is carried, and no fact is told to be proved")
        return Finding("proved facts", OPEN, told) if places else None
    module = check_module(document, binary)
    roles = {role for role, name in binary.entry_points.items() if name == entry} - {"check"}
    demand(roles, f"{entry} is none of the operations that the module certificate is of")
    listed = {one["id"] for one in section["assumptions"]}
    for one in document["assumptions"]:
        demand(one["id"] in listed, f"the module certificate assumes {one['id']}, which the bound does not list")
    names = {f"alignment of {where}" for where in places}
    others = [one for one in module.findings if not one.check.startswith("alignment of ") or one.check in names]
    left = [f"{one.check}, {one.found}" for one in others if one.verdict != OK]
    if traced is None:
        left.append("where the accesses of the bound go")
    else:
        places_of = (binary.image.location(one) for one in _unproved(binary, set(places), traced, module.aligned))
        left += [f"the class of the access at {place}" for place in dict.fromkeys(places_of)]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return Finding("proved facts", OPEN, f"{told}; not checked: {left[0]}{more}")
    words = f"by the module certificate each access of which {len(places)} speak has the class that is charged"
    return Finding("proved facts", OK, words)


def _unproved(
    binary: Binary, places: set[str], traced: Sequence[Traced], aligned: Mapping[Accessed, int]
) -> Iterator[int]:
    """Instructions with an access of which a proved fact speaks, and whose class does not follow."""
    for instruction, accesses in (one for node in traced for one in node.executed):
        if places.isdisjoint(fact.where for fact in facts_at(binary.asserted, binary.image, instruction.address)):
            continue
        for number, words in enumerate(accesses):
            for each, one in enumerate(words):
                if not _follows(one, aligned.get(Accessed(instruction.address, number, each))):
                    yield instruction.address


def _follows(address: Address, residues: int | None) -> bool:
    """Whether the class of an address is that of a number that is known, or of all its ``residues``."""
    if address.near is not None and address.near.of_base != UNALIGNED:
        return False
    if implies(residue_of(address.number), address.alignment):
        return True
    if residues is None or address.alignment.modulus > MODULUS:
        return False
    return residues & ~of_class(address.alignment) == 0


def asserted_proofs(section: Mapping[str, Any], asserted: Asserted) -> list[str]:
    """The places of the facts ``asserted`` that a result's ``section`` of the bound tells to be proved.

    Raises:
        VerificationError: it is told of what is no such fact, or the lemmas are not listed.
    """
    listed = {one["id"]: one["statement"] for one in section["assumptions"]}
    places = [name.partition(" ")[2] for name in listed if name.startswith("proved ")]
    claimed = {one["where"]: one for one in section.get("pointer_facts", ()) if one["is_proved"]}
    demand(set(places) == claimed.keys(), "the facts that are told to be proved are not those of the assumptions")
    deduced = [one for one in claimed.values() if _is_deduced(one)]
    demand(len(deduced) in {0, len(claimed)}, "some facts are told to be proved by a solver, and others by induction")
    for where in places:
        fact = existing(asserted.at(where), f"there is no fact about pointers at {where}")
        demand(fact.kind == "pointer", f"there is no fact about pointers at {where}")
        demand(str(fact.content.get("because")) in listed[f"proved {where}"], f"the fact {where} has other words")
        of_sets = _OF_SETS if deduced and claimed[where]["sets_proved"] else set[str]()
        is_more = fact.content.keys() - _OF_ALIGNMENT - of_sets
        demand(not is_more or f"fact {where}" in listed, f"not all that the fact {where} says is listed")
    rests_on = {name for one in deduced for name in (*DEDUCED_BY_ALL, *one["lemmas"])} if deduced else _NAMES.keys()
    for name in deduced and sorted(rests_on - {*_NAMES, *DEDUCTION_PREMISES}):
        demand(name in listed, f"the assumption {name} is not listed")
    for name, statement in {**_NAMES, **DEDUCTION_PREMISES}.items():
        is_needed = bool(places) and name in rests_on
        demand(
            (listed.get(name) == statement) if is_needed else name not in listed,
            f"the assumption {name} is told otherwise",
        )
    return places


def _is_deduced(verdict: Mapping[str, Any]) -> bool:
    """Whether a fact is told to be proved by a solver, which nobody follows here."""
    return bool(verdict.get("by") == "deduction")
