"""Bounds whose facts about pointers are claims: what is proved of them is an assumption of its own kind.

A bound takes the alignments that facts assert for granted. Where they follow from what the allocator's operations store
(`proved_facts`), or a solver shows it of all operations (`deduction`), the assumption `fact` becomes `proved`, and what
the proof rests on is listed besides: lemmas, by `induction`, and premises about the caller. The numbers are the same.
It costs a fixpoint over all operations, or a deduction of each, so that it is done only where somebody asks.

*Soundness:* what the values of init, malloc and free rest on is listed with each bound. A fact's other parts, such as
its lines, stay assumptions, but for cache sets that a deduction proves with its alignment; so does a fact on which no
access of the operations rests. Where the certificate's checker
can follow the induction, by a module certificate, the bound carries that; else the checker cannot tell, and says so.
A fact that a module certificate alone tells is proved only if the checker finds, of each access of the bound, that the
class that is charged follows: the certificate speaks of numbers where they are computed, the bound where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import pointer_assumptions
from wcet_probe.answer.bounds.module_certificate import ModuleProof, module_proof
from wcet_probe.answer.bounds.proving import allocator_facts, prove_operation
from wcet_probe.answer.facts.proved_facts import ProvedFacts, proved_facts
from wcet_probe.build.program import Program
from wcet_probe.errors import AnalysisError
from wcet_probe.identity import Same
from wcet_probe.model.induction import LEMMA_CHECK
from wcet_probe.model.proof import Assumption, Bound, PointerVerdict

_BY_CERTIFICATE = "what is followed is of this class, by the module certificate alone"


def claiming(
    prove: Callable[[Program, str, int], Bound] = prove_operation,
    deduced: Callable[[Program, int], ProvedFacts] | None = None,
    confirmed: Callable[[Program, int, Bound], bool] = lambda *_: False,
) -> Callable[[Program, str, int], Bound]:
    """A ``prove`` that tries to prove the facts about pointers, too: once for the bounds of one program and heap.

    Args:
        prove: a bound of an operation of a program on a heap of so many bytes.
        deduced: what a deduction proves of the facts of a program on such a heap; by default there is none, and an
            induction is tried, with its module certificate.
        confirmed: whether the checker finds the facts proved that a bound tells to be; by default nobody asks it, and
            a module certificate alone proves nothing.

    *Soundness:* what is proved is a function of what it is remembered by, and of what ``confirmed`` finds.
    """
    remembered: dict[object, tuple[ProvedFacts, ModuleProof | None]] = {}

    def prove_with_claims(program: Program, role: str, heap_bytes: int) -> Bound:
        key = Same(program.allocator), Same(program.image), Same(program.target), heap_bytes
        if key not in remembered:
            if deduced is None:
                remembered[key] = proved_facts(program, heap_bytes), _module(program, heap_bytes)
            else:
                remembered[key] = deduced(program, heap_bytes), None
        found, module = remembered[key]
        plain, facts = prove(program, role, heap_bytes), allocator_facts(program.allocator)
        bound = with_claims(plain, facts, found, module)
        if not any(one.invariant == _BY_CERTIFICATE for one in bound.pointer_facts):
            return bound
        return bound if confirmed(program, heap_bytes, bound) else with_claims(plain, facts, found, module, alone=False)

    return prove_with_claims


def _module(program: Program, heap_bytes: int) -> ModuleProof | None:
    """The module certificate of ``program``; None where the checker's rules do not follow its operations."""
    try:
        return module_proof(program, heap_bytes)
    except AnalysisError:
        return None


def with_claims(
    bound: Bound, facts: Facts, found: ProvedFacts, module: ModuleProof | None = None, *, alone: bool = True
) -> Bound:
    """``bound``, which rests on ``facts``, with what is proved of them, and the ``module`` certificate of that.

    *Soundness:* as said of the module. Where the certificate proves ``alone``, the checker has to confirm it.
    """
    told = {one["where"]: one["accesses"] for one in module.document["facts"]} if module is not None else {}
    verdicts = tuple(_verdicts(facts, found, told if alone else {}))
    proved = {one.where: one for one in verdicts if one.is_proved}
    rewritten = {
        f"fact {one.where}": tuple(
            pointer_assumptions(
                one,
                _reason(facts, found, proved[one.where].invariant),
                sets_proved=proved[one.where].sets_proved,
                is_deduced=found.by == "deduction",
            )
        )
        for one in facts.pointers
        if one.where in proved
    }
    assumed: list[Assumption] = []
    for one in bound.assumptions:
        if one.id not in rewritten:
            assumed.append(one)
        elif rewritten[one.id][0] not in assumed:
            assumed += rewritten[one.id]
    if any(one.id.startswith("proved ") for one in assumed):
        assumed += [one for one in found.assumed if one not in assumed]
        listed = {one.id for one in assumed}
        assumed += [one for one in (module.assumed if module is not None else ()) if one.id not in listed]
        assumed += [Assumption(f"induction {name}", text, LEMMA_CHECK) for name, text in found.lemmas.items()]
        assumed += [one for one in found.premises if one not in assumed]
    is_used = any(one.id.removeprefix("proved ") in told for one in assumed if one.id.startswith("proved "))
    carried = module.document if module is not None and is_used else None
    return replace(bound, assumptions=tuple(assumed), pointer_facts=verdicts, module=carried)


def _verdicts(facts: Facts, found: ProvedFacts, told: Mapping[str, int]) -> Iterator[PointerVerdict]:
    """What is proved of each of ``facts``, by what was ``found``, or as a module certificate has ``told``."""
    claims, sets = {one.where: one for one in found.claims}, {one.where for one in found.sets if one.is_proved}
    for fact in facts.pointers:
        claim = claims.get(fact.where)
        if fact.where in told and not (claim and claim.is_proved):
            yield PointerVerdict(
                fact.where, True, told[fact.where], 0, "", found.rests_on, _BY_CERTIFICATE, found.by, sets_proved=False
            )
        elif claim is None:
            why_not = found.why_not or "nothing rests on its alignment"
            yield PointerVerdict(fact.where, False, 0, 0, why_not, by=found.by)
        elif claim.is_proved:
            yield PointerVerdict(
                fact.where,
                True,
                claim.accesses,
                0,
                lemmas=found.rests_on,
                invariant=claim.invariant,
                by=found.by,
                sets_proved=fact.where in sets,
            )
        else:
            places = dict(claim.open_accesses)
            why_not = found.why_not or claim.open_accesses[0][1]
            yield PointerVerdict(
                fact.where, False, claim.accesses, len(places), why_not, invariant=claim.invariant, by=found.by
            )


def _reason(facts: Facts, found: ProvedFacts, invariant: str) -> str:
    """How the alignment of one of ``facts`` is proved, by its ``invariant``, in words."""
    others = [*(one.where for one in facts.words), *(one.where for one in facts.arguments)]
    more = f", and the facts {', '.join(others)}" if others else ""
    rests_on = f"{', '.join(found.rests_on)}{more}"
    is_deduced = found.by == "deduction"
    how = f"{found.how}, under" if is_deduced else "as follows by induction over init, malloc and free from"
    return f"{how} {rests_on}, where {invariant}"
