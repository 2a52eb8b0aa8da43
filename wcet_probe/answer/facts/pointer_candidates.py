"""Facts that would tell what pointers point to: arguments of the entry, and words of the objects these may point to.

They are proposed by type, from the debug information: a structure of which the program has an object of static storage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from wcet_probe.analyzer.facts.control import argument_place
from wcet_probe.analyzer.facts.expressions import parse
from wcet_probe.analyzer.facts.language import ArgumentFact
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.build.debug_types import DebugTypes, debug_types, held_function, pointer_parameters
from wcet_probe.model.image import Image
from wcet_probe.model.proof import FactCandidate

_MOST_OBJECTS = 3
"""Of one type; where there are more, none is proposed."""
_MOST_WORDS = 8


def pointees(asked: BoundRequest) -> Iterator[FactCandidate]:
    """Facts about what the arguments of the entry point to, and what words of those objects point to, not yet given.

    Raises:
        ImageError: damaged debug information.
    """
    image, isa, types = asked.image, asked.image.isa, debug_types(asked.image)
    own = [fact for fact in asked.facts.arguments if fact.function == asked.entry]
    given = {argument_place(fact, isa) for fact in own}
    objects, reached = _objects(image, types), list[str]()
    for index, (structure, is_code) in enumerate(pointer_parameters(image, asked.entry)):
        head = ("[[argument]]", f'function = "{asked.entry}"', f"index = {index}")
        reached += [structure] if structure in objects else []
        place = argument_place(ArgumentFact("", asked.entry, index, None, parse("0"), parse("0"), ""), isa)
        if place in given:
            continue
        if is_code:
            lines = (*head, 'points_to = "?"', 'because = "?"')
            yield FactCandidate(lines, f"then it is known where calls of what argument {index} points to go")
        for name in objects.get(structure, ()):
            lines = (*head, f'points_to = "{name}"', 'because = "?"')
            yield FactCandidate(lines, f"{name} is a {structure}, which argument {index} points to")
    yield from _words(asked, types, objects, reached)


def _objects(image: Image, types: DebugTypes) -> Mapping[str, list[str]]:
    """The names of the objects of each structure of which there are few."""
    names = {one.address: name for name, one in image.symbols.items() if not one.is_function and one.size_bytes}
    found: dict[str, list[str]] = {}
    for address, one in sorted(types.objects.items()):
        if address in names:
            found.setdefault(one.structure, []).append(names[address])
    return {structure: own for structure, own in found.items() if len(own) <= _MOST_OBJECTS}


def _words(
    asked: BoundRequest, types: DebugTypes, objects: Mapping[str, list[str]], reached: list[str]
) -> Iterator[FactCandidate]:
    """Words of objects in writable memory; what stands in memory that is only read is known."""
    given = {(fact.symbol, fact.field) for fact in asked.facts.words}
    number = 0
    for structure in dict.fromkeys(reached):
        for name in objects[structure]:
            address = asked.image.symbols[name].address
            if not any(s.writable and s.address <= address < s.address + s.size_bytes for s in asked.image.segments):
                continue
            for member in types.members(structure):
                for pointee in objects.get(member.pointee, ()):
                    number += 1
                    if number > _MOST_WORDS or (name, member.path) in given:
                        continue
                    lines = ("[[word]]", f'symbol = "{name}"', f'field = "{member.path}"', f'points_to = "{pointee}"')
                    why = f"{pointee} is a {member.pointee}, which {name}.{member.path} points to"
                    yield FactCandidate((*lines, 'because = "?"'), why)


def held_word(image: Image, site: int, message: str) -> tuple[str, tuple[str, ...]] | None:
    """A fact about the word of an object that ``message`` says the target at ``site`` is read from, and what it holds.

    None where the file has no function there: then it is written when the firmware runs, perhaps not only once.
    """
    said = rf"{re.escape(image.location(site))}(?: are not known:)? they are read from (\S+) at 0x([0-9a-f]+)"
    found = re.search(said, message)
    symbol = image.symbols.get(found[1]) if found else None
    held = held_function(image, int(found[2], 16)) if found else None
    if found is None or symbol is None or held is None:
        return None
    offset = int(found[2], 16) - symbol.address
    where = (f'symbol = "{found[1]}"', *((f"offset = {offset}",) if offset else ()))
    told = ("[[word]]", *where, 'points_to = "?"', 'because = "?"')
    return f"the file has {held} in {found[1]}, in writable memory", told
