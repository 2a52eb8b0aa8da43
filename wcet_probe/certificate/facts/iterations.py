# SPDX-License-Identifier: 0BSD
"""How many iterations of a source loop each round of a binary loop is at least, by a variable that counts them.

A compiler that unrolls a loop keeps, in the debug information, where its variables are. An iteration changes a counter
once at most, by a constant, as the text says; each way round changes the registers that hold it by so many times that.
The debug information is taken for true where it agrees with itself: in the round the variable is said to be in the same
registers with constants that lie so many steps apart, for a register that held a multiple of it would seem too fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wcet_probe.certificate.facts.asserted import Asserted, Extent, hidden_loops, macros_with
from wcet_probe.certificate.facts.plain_source import (
    blanked,
    definitions,
    first_definition,
    line_at,
    line_start,
    matching,
    may_go_on,
    statement_end,
)
from wcet_probe.certificate.flow.counters import base_of, ends_of_rounds
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.kernel.shapes import natural_loop
from wcet_probe.certificate.values.numbers import signed
from wcet_probe.certificate.values.state import Place, State
from wcet_probe.model.image import VariableLocation

_LOOP = re.compile(r"\b(?:for|while|do)\b")
_STRANGE = re.compile(r"#|\b(?:goto|case|default|static|extern|asm|__asm\w*|\w*(?:set|long)jmp)\b")
"""What may lead into the midst of a loop, or change a variable otherwise, in the text of a function."""
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_HEADS = frozenset({"for", "while", "if", "return", "sizeof", "_Pragma"})
_MOST_STEP = 127
"""No variable is narrower than a byte: a change by so much at most is no change by a multiple of its width more."""


def iterations_of_rounds(
    covered: Covered, loop: LoopRecord, extent: Extent, asserted: Asserted, variables: Sequence[VariableLocation]
) -> int:
    """At least so many iterations of the source loop ``extent`` is each round of ``loop``, which has code of it.

    Args:
        covered: the graph.
        loop: of it.
        extent: of the sources.
        asserted: the sources.
        variables: where variables are, by the debug information.
    """
    address = covered.graph.nodes[loop.header][0]
    here = [one for one in variables if one.low <= address < one.high]
    places = [(one.function, one.name) for one in here]
    steps = ((one, _step(asserted, extent, one)) for one in here if places.count((one.function, one.name)) == 1)
    return max((_moved(covered, loop, variables, one, step) for one, step in steps if step), default=1)


def _moved(
    covered: Covered, loop: LoopRecord, variables: Sequence[VariableLocation], one: VariableLocation, step: int
) -> int:
    """How many changes by ``step`` each way round makes of the variable at least; 1 where that is not known."""
    known, factors = State(dict(covered.invariants[loop.header])), dict(one.registers)
    places: list[Place] = [f"r{number}" for number in factors]
    bases = {place: base_of(place, known.read(place)) for place in places}
    if not {*places} <= {*covered.code.isa.REGISTERS} or any(each.denominator != 1 for each in factors.values()):
        return 1
    ends, found = ends_of_rounds(covered, loop, bases), list[int]()
    for end in ends or ():
        held = {place: end.read(place) for place in places}
        is_told = all(each.base == bases[place].base and each.is_constant for place, each in held.items())
        change = signed(sum(int(times) * each.low for times, each in zip(factors.values(), held.values(), strict=True)))
        if not is_told or change % step or abs(change) > _MOST_STEP * one.unit_bytes:
            return 1
        found.append(change // step)
    least = min(found, default=1)
    return least if 1 < least <= 1 + _seen(covered, loop, variables, one) // abs(step) else 1


def _seen(covered: Covered, loop: LoopRecord, variables: Sequence[VariableLocation], one: VariableLocation) -> int:
    """How far the constants lie apart by which the same registers are the variable somewhere in the loop."""
    inside = natural_loop(loop.header, loop.back, covered.taken)
    code = {each.address for node in inside for each in covered.coverage.instructions[node]}
    same = (one.function, one.name, one.scope, one.registers)
    constants = [
        each.constant
        for each in variables
        if (each.function, each.name, each.scope, each.registers) == same and each.low in code
    ]
    return int(max(constants, default=one.constant) - min(constants, default=one.constant))


def _step(asserted: Asserted, extent: Extent, one: VariableLocation) -> int:
    """By how much an iteration changes the variable, once at most; 0 where the text does not tell."""
    text = asserted.by_line.get(extent.file, "")
    places = [found for source in asserted.by_line.values() for found in definitions(source, one.function)]
    body = first_definition(text, one.function)
    hidden = any(extent.encloses(each) for each in hidden_loops(asserted, extent.file))
    if body is None or len(places) != 1 or hidden:
        return 0
    plain, name = blanked(text), re.escape(one.name)
    keyword = _LOOP.search(plain, line_start(text, extent.first_line))
    if keyword is None or not body[0] < keyword.start() < body[1]:
        return 0
    start, end = keyword.start(), statement_end(plain, keyword.start(), body[1]) + 1
    whole, loop = plain[slice(*body)], plain[start:end]
    is_plain = not _STRANGE.search(whole) and _calls_functions(asserted, loop, name)
    is_nested = any(definitions(whole[whole.index("{") :], each) for each in {*_CALL.findall(loop)} - _HEADS)
    if not is_plain or is_nested or may_go_on(plain, start, end - 1) or not _is_one_variable(whole, plain, one, name):
        return 0
    rest, tested = _iterated(loop)
    changes = list(_changes(rest, name))
    if len(changes) != 1 or not changes[0][1]:
        return 0
    at, step = changes[0]
    inner = [found.start() for found in _LOOP.finditer(rest) if found.start() and found.start() not in tested]
    ends = [(each, statement_end(rest, each, len(rest))) for each in inner]
    is_inside = any(each <= at <= last or may_go_on(rest, each, last) for each, last in ends)
    return 0 if is_inside or at in tested else step * one.unit_bytes


def _is_one_variable(whole: str, plain: str, one: VariableLocation, name: str) -> bool:
    """Whether the function declares the name once, where the variable is declared, and takes no address of it."""
    word = r"\b(?!return\b|else\b|sizeof\b)[A-Za-z_]\w*"
    declared = [*re.finditer(rf"(?:{word}[\s*]+\b{name}\s*(?=[;,=\[)])|,[\s*]*\b{name}\s*(?=[;,=\[]))", whole)]
    first = plain.find(whole)
    if len(declared) != 1 or line_at(plain, first + declared[0].end() - 1) != one.line:
        return False
    other = rf"(?<!&)&[\s(]*{name}\b|\b{name}[\s)]*(?:\[|\.|->)|(?:\.|->)\s*{name}\b"
    return re.search(other, whole) is None


def _calls_functions(asserted: Asserted, loop: str, name: str) -> bool:
    """Whether what a loop calls are functions of the sources, and no macro is used that speaks of the variable."""
    called, used = set(_CALL.findall(loop)) - _HEADS, set(re.findall(r"\w+", loop))
    is_known = all(any(first_definition(text, each) for text in asserted.by_line.values()) for each in called)
    macros, speaking = (macros_with(asserted, re.compile(one)) for one in ("", rf"\b{name}\b|##"))
    return is_known and called.isdisjoint(macros) and used.isdisjoint(speaking)


def _iterated(loop: str) -> tuple[str, range]:
    """The text of a loop without what is done once, before it; and where its test is."""
    if loop.startswith("do"):
        last = max(loop.rfind("while"), 0)
        return loop, range(last, len(loop))
    opened = loop.index("(")
    closed = matching(loop, opened, "(", ")")
    if loop.startswith("while"):
        return loop, range(opened, closed)
    parts = [at for at in range(opened, closed) if loop[at] == ";" and _depth(loop, opened, at) == 1]
    if len(parts) != 2:
        return "", range(0)
    return " " * parts[0] + loop[parts[0] :], range(*parts)


def _depth(loop: str, first: int, last: int) -> int:
    return loop.count("(", first, last) - loop.count(")", first, last)


def _changes(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Where a variable may be changed, and by how much; 0 where that is not known."""
    once = re.compile(
        rf"(?<![\w)\]])(?P<before>\+\+|--)\s*{name}\b|\b{name}\s*(?P<behind>\+\+|--)"
        rf"|\b{name}\s*(?P<sign>[-+])=\s*(?P<by>[1-9][0-9]*)[uUlL]*\s*(?=[;,)])"
        rf"|\b{name}\s*=\s*{name}\s*(?P<plus>[-+])\s*(?P<more>[1-9][0-9]*)[uUlL]*\s*(?=[;,)])"
    )
    any_change = rf"(?:\+\+|--)[\s(]*{name}\b|\b{name}[\s)]*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))"
    for found in re.finditer(any_change, text):
        own = once.match(text, found.start())
        sign = own and (own["before"] or own["behind"] or own["sign"] or own["plus"])
        amount = int((own and (own["by"] or own["more"])) or 1)
        yield found.start(), 0 if not sign else amount if sign[0] == "+" else -amount
