"""Loops that are bounded by nothing but the width of a type: a number that holds, and that nobody can use.

Words: loop bound (docs/explanation/glossary.md).

*Soundness:* it takes nothing from a bound and adds nothing to it; it says which bounds mean little.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.loops.counts import Count
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.model.image import Image
from wcet_probe.model.proof import TypeBound
from wcet_probe.model.target import Isa

_WIDE = 1 << 28
"""Where a loop's distance can be as many numbers as this, no range of its ends is known: a word, or a part of one."""
_HALF = (1 << 15) - 2
"""Likewise of half-words, whose signed values are the fewer."""
_TESTED_BEFORE = 4
"""So few numbers may be missing from all, where the first rounds are tested for in front of a loop."""
_FEW_ROUNDS = 64
"""A loop that goes round no oftener than a number has bits has a bound that means something, such as one that goes on
to the next aligned address."""
_ARGUMENTS = {Isa.POWERPC: range(3, 11)}
_MASK_OF_HALF_WORDS = 0xFFFF


def type_bound(image: Image, values: Values, shape: LoopShape, name: str, count: Count) -> TypeBound | None:
    """What the bound of a loop called ``name`` rests on, if that is the width of a type.

    *Soundness:* none is claimed.
    """
    if not _is_by_type(values.terms, count):
        return None
    header = values.graph.points[shape.loop.header]
    address = header.block.address
    unknown, remedies = [], []
    for index, said in _origins(image, values, count):
        unknown.append(said)
        if index is not None:
            entry = values.graph.entry.name
            remedies.append(f'[[argument]] function = "{entry}", index = {index}, min = …, max = …, because = "…"')
    remedies.append(f'[[loop]] {_place(image, address)}, max = …, because = "…"')
    return TypeBound(
        loop=name,
        location=image.location(address),
        max=count.max_header,
        rests_on=", ".join(dict.fromkeys(unknown)) or "its counter",
        remedy=remedies[0],
    )


def _place(image: Image, address: int) -> str:
    """The keys that tell a fact's place."""
    function = image.function_at(address)
    if function is None or not function.size_bytes:
        return f"function = … (the ELF has no symbol of the code at {address:#x})"
    digest = code_sha256(image, function.name)
    return f'function = "{function.name}", offset = {address - function.address:#x}, sha256 = "{digest}"'


def _is_by_type(terms: Terms, count: Count) -> bool:
    if count.relation not in {"!=", "<", "<="} or count.max_header <= _FEW_ROUNDS:
        return False
    spread = count.distance_high - count.distance_low
    if spread >= _WIDE:
        return True
    parts = [part for part, _ in count.distance[0]]
    return spread >= _HALF and any(_is_half_word(terms, part) or _is_shifted(terms, part, spread) for part in parts)


def _is_shifted(terms: Terms, term: Term, spread: int) -> bool:
    """Whether ``term`` is the upper part of a word, and can be each number of so many bits: `n / 32` of any ``n``."""
    operands = terms.operands(term)
    if terms[term].opcode not in {"INT_RIGHT", "INT_SRIGHT"}:
        return False
    shift = terms.value(operands[1])
    return shift is not None and spread >= (1 << max(0, terms[term].bits - shift)) - _TESTED_BEFORE


def _is_half_word(terms: Terms, term: Term) -> bool:
    node, operands = terms[term], terms.operands(term)
    if node.opcode in {"INT_ZEXT", "INT_SEXT"}:
        return terms[operands[0]].bits == 16
    return node.opcode == "INT_AND" and terms.value(operands[1]) == _MASK_OF_HALF_WORDS


def _origins(image: Image, values: Values, count: Count) -> Iterator[tuple[int | None, str]]:
    """Where the values come from that the count depends on, in words, with the index of an argument."""
    registers = {place: name for name, place in values.registers.items()}
    arguments = _ARGUMENTS.get(image.isa, range(4))
    for symbol in sorted({symbol for part, _ in count.distance[0] for symbol in values.terms.symbols(part)}):
        match values.terms[symbol].arguments:
            case ("in", Location("stack") as location):
                yield None, f"the word of the stack at {location.offset} from the stack pointer at entry"
            case ("in", Location() as location):
                name = registers.get(location, "a register")
                number = int(name[1:]) if name[0] == "r" and name[1:].isdecimal() else -1
                if number in arguments:
                    yield number - arguments.start, f"argument {number - arguments.start} ({name})"
                else:
                    yield None, f"the value of {name} at entry"
            case (int(), int(address), int(), *_):
                yield None, f"what is computed or loaded at {image.location(address)}"
            case ("phi", (int(point), *_), *_):
                place = values.graph.points[point].block.address
                yield None, f"a value that arrives at {image.location(place)}"
