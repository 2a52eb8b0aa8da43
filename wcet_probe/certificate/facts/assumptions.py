# SPDX-License-Identifier: 0BSD
"""What a bound takes for granted: that its list names all that the rules used, in the words of the files of facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.certificate.kernel.records import demand, existing
from wcet_probe.model.target import Replacement, Target

ALWAYS = ("no-interference", "timing-model")
_FACT_CONSTRAINT = re.compile(r"(fact|flow|infeasible):")
_STACK_POINTER = re.compile(r"miss:kept(?::[0-9]+)?:stack-pointer:(0x[0-9a-f]+)")
"""The constraint of lines of the stack whose numbers are known by the stack pointer at entry."""


def check_assumptions(
    used: Iterable[str], listed: Mapping[str, str], asserted: Asserted, target: Target, constraints: Collection[str]
) -> tuple[str, ...]:
    """Check that the list of assumptions holds all that was used, and that of facts it says what their files say.

    Args:
        used: ids of what rules used.
        listed: statements by id, as the result says.
        asserted: the facts, as their files say.
        target: the core.
        constraints: names of all constraints of the certificates.

    Returns:
        ids of what was used, of the core's timing and of lemmas too.

    Raises:
        VerificationError: one is missing, or says something else.
    """
    found = dict.fromkeys(used)
    if target.translation:
        found["no-translation-misses"] = None
    if target.aligned_accesses:
        found["aligned-accesses"] = None
    if any(cache and cache.replacement is Replacement.FIFO for cache in (target.icache, target.dcache)):
        found["fifo-replacement"] = None
    if any(one.startswith("fact ") for one in found):
        found |= dict.fromkeys(f"lemma {fact.content.get('id')}" for fact in asserted.of("lemma"))
    if any(_FACT_CONSTRAINT.match(name) for name in constraints):
        known = {f"fact {fact.where}" for kind in ("flow", "infeasible", "loop") for fact in asserted.of(kind)}
        is_listed = known & listed.keys() or any(_is_pragma(name, listed, asserted) for name in listed)
        demand(is_listed, "constraints of facts are used, and no fact is listed")
    if any(name.startswith("body:") for name in constraints):
        demand(any(one.startswith("body ") for one in listed), "code is of bodies, and no assumption says which")
    pointers = stack_pointers(constraints)
    found |= dict.fromkeys(["stack-pointer"] if pointers else [])
    for one in found:
        is_proved = one.startswith("fact ") and one.replace("fact ", "proved ", 1) in listed
        demand(one in listed or is_proved, f"the assumption {one} is used and not listed")
    wanted = {f"the stack pointer is {pointer} at entry" for pointer in pointers}
    demand(wanted <= {listed.get("stack-pointer", "")}, "lines of the stack are where another stack pointer has them")
    for name, statement in listed.items():
        _check_statement(name, statement, listed, asserted, target)
    return tuple(found)


def stack_pointers(constraints: Iterable[str]) -> frozenset[str]:
    """What the stack pointer at entry is taken to be, as the names of ``constraints`` tell; one at most, of a proof."""
    return frozenset(told[1] for name in constraints if (told := _STACK_POINTER.fullmatch(name)))


def _is_pragma(name: str, listed: Mapping[str, str], asserted: Asserted) -> bool:
    """Whether an assumption that is told as a fact is of a pragma: what the copies of a loop run in all."""
    kind, _, where = name.partition(" ")
    return kind == "fact" and asserted.at(where) is None and f"pragma {where}" in listed


def _check_statement(name: str, statement: str, listed: Mapping[str, str], asserted: Asserted, target: Target) -> None:
    kind, _, where = name.partition(" ")
    if kind == "fact" and not _is_pragma(name, listed, asserted):
        fact = existing(asserted.at(where), f"there is no fact at {where}")
        reason = str(fact.content.get("because", ""))
        demand(reason in statement, f"the assumption {name} has other words than its file")
    if kind == "lemma":
        lemmas = {str(fact.content.get("id")): fact for fact in asserted.of("lemma")}
        demand(where in lemmas, f"there is no lemma {where}")
        own = lemmas[where].content
        demand(statement == f"{own.get('statement')}: {own.get('because')}", f"the lemma {where} says something else")
    if name == "timing-model":
        demand(f"targets/{target.name}.toml" in statement, "the timing model is of another target")
