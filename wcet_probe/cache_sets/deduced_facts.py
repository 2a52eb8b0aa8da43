"""What an allocator's flow facts say of pointers, as a solver shows it of all operations: alignments, cache sets.

The claims that every operation is shown to keep (`cache_sets.claimed`) tell where each access goes: of CAMA to a field
of a descriptor in the reserved sets, to a word of static data, to a block's first word or the one before it; of
half-fit to a word of the arena or the control structure. A fact is proved where that implies what it asserts, at each
access of init, malloc and free that a bound takes it for.

*Soundness:* nothing is told where anything of any operation is open, or was not asked for. The deduction is of the
machine code that the bound is of, for every size of the heap, and believes no fact.
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.analyzer.assumptions import STACK_SEPARATION
from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.analyzer.proved_alignment import shown_alignments, shown_sets
from wcet_probe.answer.facts.proved_facts import ROLES, ProvedFacts, premises_of, prepared_operations, rests_on
from wcet_probe.build.program import Program
from wcet_probe.cache_sets.claimed import Claimed, claimed
from wcet_probe.cache_sets.deduction import whole_operations
from wcet_probe.errors import AnalysisError
from wcet_probe.model.induction import DEDUCTION_PREMISES, PREMISES
from wcet_probe.model.proof import Assumption


def deduced_facts(program: Program, heap_bytes: int, deduced: Iterable[Deduced]) -> ProvedFacts:
    """What ``deduced`` of the operations of ``program`` proves of its facts about pointers.

    Args:
        program: the allocator's image.
        heap_bytes: size of the heap, which the facts' expressions may speak of.
        deduced: what came of all parts of its operations.

    Raises:
        UsageError: a file of facts is not valid, or claims are not written for this allocator or build.
    """
    if program.target.dcache is None:
        return ProvedFacts((), "without a data cache they are not tried", by="deduction")
    own, parts = claimed(program.allocator.name), tuple(deduced)
    shown = own.shown(program, parts, ROLES)
    if not shown:
        left = ", ".join(name for name, is_whole in whole_operations(parts, own.whole).items() if not is_whole)
        why_not = f"not shown as a whole: {left or 'operations that claims do not speak of'}"
        return ProvedFacts((), why_not, by="deduction")
    try:
        prepared = prepared_operations(program, heap_bytes)
    except AnalysisError as error:
        return ProvedFacts((), str(error), by="deduction")
    values = [one.values for one in prepared.values()]
    places = [one.data.lines.places for one in prepared.values() if one.data.lines is not None]
    told = [shown[role] for role in prepared]
    title = program.allocator.title.split(",")[0]
    return ProvedFacts(
        claims=shown_alignments(values, places, told),
        assumed=rests_on(program, prepared),
        sets=shown_sets(values, places, told),
        by="deduction",
        how=f"by what a solver (z3) shows: init, malloc, free and what the caller writes keep {title}'s claims",
        lemmas={},
        premises=_premises(own),
    )


def _premises(own: Claimed) -> tuple[Assumption, ...]:
    """What a deduction takes for granted of the caller, of the arena that init is given, and of each call."""
    told = {name: DEDUCTION_PREMISES[name] for name in own.premises}
    return (*premises_of({**PREMISES, **told}), STACK_SEPARATION)
