"""Bounds of callees that certificates give: documents of ``wcet-probe bound --json``, checked before they are used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from wcet_probe.analyzer.facts.language import Facts, GivenBoundFact
from wcet_probe.analyzer.ipet.flow_problem import UNITS, Unit
from wcet_probe.analyzer.request import GivenBound
from wcet_probe.build.image import require_symbol
from wcet_probe.certificate.facts.assumptions import stack_pointers
from wcet_probe.certificate.kernel.verify import verify_result
from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Assumption

_SHARED = frozenset({"no-interference", "timing-model", "return-address", "stack-stores", "stack-alignment"})
"""Assumptions that say the same of every function. What *stack-separation* says is of the stack that the call is given
and of its own pointers: one that its caller derives from the stack pointer is none of them."""
_NO_RUN = "no run can check it: the call is charged by its certificate"


def read_given(facts: Facts, image: Image, described: Mapping[str, object]) -> Mapping[int, GivenBound]:
    """The bounds that ``facts`` give by documents, by the address of the callee.

    Parameters:
        facts: with paths that are read as they stand.
        image: the binary that is analysed.
        described: the document of the target that is analysed for, with its caches.

    Raises:
        UsageError: a document cannot be read, does not verify, or is about another image, target or function.
    """
    found: dict[int, GivenBound] = {}
    for fact in facts.given:
        address = require_symbol(image, fact.function).address
        if address in found:
            raise UsageError(f"{fact.where}: the bound of {fact.function} is given twice; remove one of them.")
        try:
            content = Path(fact.document).read_bytes()
        except OSError as error:
            raise UsageError(
                f"{fact.where}: cannot read {fact.document}: {error.strerror}; correct bound_by."
            ) from error
        found[address] = _given(fact, content, image, described)
    return found


def _given(fact: GivenBoundFact, content: bytes, image: Image, described: Mapping[str, object]) -> GivenBound:
    remedy = f"make it again with wcet-probe bound --entry {fact.function} --json"
    try:
        document: Mapping[str, Any] = json.loads(content)
        checked = {one.unit: one for one in verify_result(document)}
        bound = document["bound"]
        told = [Assumption(one["id"], one["statement"], one["check"]) for one in bound["assumptions"]]
        by_type, digest = bound.get("by_type"), str(bound["digest"])
        same_target = document["target_configuration"] == json.loads(json.dumps(described))
    except (VerificationError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{fact.where}: {fact.document} does not verify ({error}); {remedy}.") from error
    if {one.image_sha256 for one in checked.values()} != {image.sha256}:
        raise UsageError(f"{fact.where}: {fact.document} is about another image; {remedy} of this one.")
    if {one.entry_function for one in checked.values()} != {fact.function}:
        raise UsageError(f"{fact.where}: {fact.document} is about another function; {remedy}.")
    if not same_target or checked.keys() != {"instructions", "cycles"}:
        raise UsageError(f"{fact.where}: {fact.document} is about another target or caches; {remedy} for this one.")
    if by_type:
        raise UsageError(
            f"{fact.where}: {fact.document} is a bound by the width of a type only; bound its loops first."
        )
    if any(one.id == "initial-data" for one in told):
        raise UsageError(
            f"{fact.where}: {fact.document} takes what memory holds at entry as known, which no call of it "
            f"is held against; {remedy}, without --initial-data."
        )
    pointers = stack_pointers(name for one in checked.values() for name in one.given)
    if pointers or any(one.id == "stack-pointer" for one in told):
        raise UsageError(
            f"{fact.where}: {fact.document} takes the stack pointer at entry as known, which no call of it is held "
            f"against; {remedy}, without --stack-pointer."
        )
    most: dict[Unit, int] = {unit: checked[unit].bound for unit in UNITS}
    text = (
        f"a call of {fact.function} takes at most {most['instructions']} instructions and {most['cycles']} cycles, as "
        f"the document {sha256(content).hexdigest()} proves, whose bound has the digest {digest}: {fact.because}"
    )
    return GivenBound(
        fact.where,
        fact.function,
        most,
        (
            Assumption(f"given {fact.function}", text, _NO_RUN),
            *(
                one if one.id in _SHARED else Assumption(f"given {fact.function}: {one.id}", one.statement, _NO_RUN)
                for one in told
            ),
        ),
    )
