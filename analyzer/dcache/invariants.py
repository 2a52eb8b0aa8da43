"""The invariants of the value analysis as results have them: of data accesses, and of registers where blocks begin.

Words: strided interval (docs/explanation/glossary.md).

*Soundness:* they are those of the fixpoint; runs are held against them.

What results show of the accesses of this function, and hold runs against:

>>> table = example('''
... unsigned small[8] __attribute__((aligned(32)));
... unsigned f(unsigned i) { return small[i & 7] + small[i & 3]; }''')
>>> for one in access_ranges(table.values, table.lines):
...     print(one.base, one.stride, one.steps, one.place, sorted(one.sets), one.is_one_line)
number 4 7 static [0] True
number 4 3 static [0] True
"""

from __future__ import annotations

from collections.abc import Iterable

from wcet_probe.analyzer.dcache.address_classes import AddressClasses
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.memory import Pointers
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.proof import AccessRange, IdleFact, RegisterRange
from wcet_probe.model.target import Isa


def access_ranges(
    values: Values, lines: SymbolicBlocks | None, classes: AddressClasses | None = None
) -> Iterable[AccessRange]:
    """Where each access may go; ``lines`` tell what facts and the cache add, if there is one.

    Without a cache ``classes`` tell what facts say of alignments, if anything rests on them.

    *Soundness:* as said of `access_places`.
    """
    places = lines.places if lines else None
    for number, index in enumerate(sorted(values.states)):
        point = values.graph.points[index]
        cut = lines.pieces[index] if lines else [(access,) for access in values.accesses[index]]
        for access, pieces in zip(values.accesses[index], cut, strict=True):
            asserting = places or classes
            offset = asserting.observable(access) if asserting else access.offset
            yield AccessRange(
                address=access.instruction_address,
                context=point.context,
                is_store=access.is_store,
                base=access.base.name.lower(),
                low=offset.low,
                stride=offset.stride,
                steps=offset.steps,
                size_bytes=access.size_bytes,
                place=places.place_of(access) if places else "any",
                sets=places.sets_of(access) if places else None,
                visit=places.touch_of(access) or "" if places else "",
                line_changes=places.line_changes_of(access) if places else None,
                is_one_line=len(pieces) == 1,
                lines=places.lines_of(access) if places else None,
                fact=asserting.fact_of(access) if asserting else "",
                point=number,
            )


def register_ranges(values: Values, isa: Isa) -> Iterable[RegisterRange]:
    """What is known of the general registers where blocks begin; nothing where that is nothing.

    *Soundness:* as said of the module. A block may begin in the middle of another point's block, where functions share
    code: a run does not tell which of the two it is in, and nothing is said of that point there.
    """
    points = [values.graph.points[index] for index in values.states]
    inside = {one.address for point in points for one in point.block.instructions[1:]}
    count = 32 if isa is Isa.POWERPC else 15
    places = {f"r{number}": values.registers[f"r{number}"] for number in range(count)}
    overlaps = values.terms.overlaps
    split = {place for place in places.values() if len(overlaps.add(place)) > 1}
    given = {place: values.terms.symbol(("in", place), 8 * place.size_bytes) for place in places.values()}
    for index in sorted(values.states):
        point, state = values.graph.points[index], values.states[index]
        if point.block.address in inside:
            continue
        for name, location in places.items():
            is_unknown = location not in state.locations and given[location] not in state.known
            if is_unknown and (
                location not in split or not state.overlapping(location)
            ):  # it holds what it held at entry
                continue
            term = state.read(location)
            if term is None or state.base(term) is Base.ANY or state.value(term).is_top:
                continue
            value = state.value(term)
            base = state.base(term).name.lower()
            place = point.block.address, point.context, name, base
            yield RegisterRange(*place, value.low, value.stride, value.steps)


def idle_facts(
    accesses: Iterable[AccessRange], lines: SymbolicBlocks | None, classes: AddressClasses | None = None
) -> tuple[IdleFact, ...]:
    """Facts about pointers that speak of some of ``accesses``, and on which nothing that is said of any of them rests.

    *Soundness:* none is claimed; it is for people to look at.
    """
    asserting = lines.places if lines else classes
    every = list(accesses) if asserting else []
    pointers = [asserting.pointers.of(each.address) for each in every] if asserting else []
    # Without a cache nothing rests on what is said of places: such a fact is for another core.
    plain = (one for one in pointers if lines or one == Pointers(one.alignment_bytes, remainder=one.remainder))
    asserted = dict.fromkeys(one.where for one in plain)
    used = {"", *(each.fact for each in every)}
    return tuple(IdleFact(where, "the values tell as much of its accesses") for where in asserted if where not in used)
