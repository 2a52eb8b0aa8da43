"""All facts of allocators about pointers and words, with what of each is proved: a row for each fact.

*Soundness:* a row says no more than `answer.facts.proved_facts` found; whatever else a fact asserts is a lemma.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from wcet_probe.analyzer.facts.expressions import Expression
from wcet_probe.analyzer.facts.language import PointerFact
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.answer.facts.proved_facts import ProvedFacts, proved_facts
from wcet_probe.build.program import Program


class FactStatus(StrEnum):
    """What is known of something that a fact asserts."""

    PROVED = "proved"
    LEMMA = "lemma"
    UNUSED = "not needed"
    NOT_ASSERTED = "-"


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact.

    Attributes:
        allocator: whose fact it is.
        where: its file and line.
        speaks_of: the functions whose accesses it speaks of, or the word.
        alignment: what is known of the alignment that it asserts; not needed where no access rests on it.
        lemmas: what else it asserts, which is a lemma.
    """

    allocator: str
    where: str
    speaks_of: tuple[str, ...]
    alignment: FactStatus
    lemmas: tuple[str, ...]


def fact_rows(program: Program, heap_bytes: int, found: ProvedFacts | None = None) -> tuple[FactRow, ...]:
    """The facts of ``program`` about pointers and words, in the order of their file.

    Args:
        program: the allocator's image.
        heap_bytes: size of the heap.
        found: what is proved of them; by default what an induction proves.

    Raises:
        UsageError: a file of facts is not valid.
    """
    facts = operation_request(program, "malloc", heap_bytes).facts
    if found is None:
        found = proved_facts(program, heap_bytes) if facts.pointers else ProvedFacts(())
    shown_sets = {one.where for one in found.sets if one.is_proved}
    claims = {one.where: one.is_proved for one in found.claims}
    not_claimed = FactStatus.LEMMA if found.why_not else FactStatus.UNUSED
    known = {where: FactStatus.PROVED if is_proved else FactStatus.LEMMA for where, is_proved in claims.items()}
    name = program.allocator.name
    pointers = (
        FactRow(name, one.where, tuple(one.functions), known.get(one.where, not_claimed), _besides(one, shown_sets))
        for one in facts.pointers
    )
    words = (FactRow(name, one.where, (one.symbol,), FactStatus.NOT_ASSERTED, ("range",)) for one in facts.words)
    return (*pointers, *words)


def _besides(fact: PointerFact, shown_sets: Collection[str]) -> tuple[str, ...]:
    """What a fact asserts besides an alignment, and is not proved; of facts at ``shown_sets`` the sets are."""
    told: dict[str, Expression | str | None] = {
        "sets": fact.sets,
        "object": fact.symbol,
        "visit": fact.visit,
        "lines": fact.lines,
        "lines of a set": fact.lines_per_set,
        "changes of line": fact.line_changes,
    }
    proved = {"sets"} if fact.where in shown_sets else set()
    return tuple(name for name, value in told.items() if value is not None and name not in proved)
