"""What a state knows of a place as one value: a number, an offset in the stack, a distance from an unknown word.

``for (i = c; i < c + 120; i++)`` compares numbers of which nothing is known but how far they are apart. So a symbol of
the state is the name of a word, where several places are told from it: one alone decides nothing.

Words: constant propagation, abstract location, linear form (docs/explanation/glossary.md).

*Soundness:* in an execution that a state stands for, a symbol is one number, whatever it is in another one; so what is
told of its places holds in each, and in several states what all of them tell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.constant_arithmetic import Value, name_of, named
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location, part_of
from wcet_probe.analyzer.values.symbolic.term_table import Term

_WORD_BITS = 32
_Key = TypeVar("_Key", bound=Hashable)


def known_value(state: State, term: Term) -> Value | None:
    """What is known of ``term``; None for nothing."""
    base, value = state.base(term), state.value(term)
    if base is not Base.ANY and value.is_constant:
        return value.value if base is Base.NUMBER else (signed(value.bits, value.value),)
    coefficients, constant, bits = state.terms.linear(term)
    ((symbol, factor),) = coefficients.items() if len(coefficients) == 1 else ((0, 0),)
    return named(symbol, constant) if factor == 1 and bits == _WORD_BITS else None


def learn(
    registers: dict[Location, Value], state: State, overlapping: Callable[[Location], Iterable[Location]]
) -> None:
    """Add to ``registers`` what ``state`` knows of them in the same executions, as numbers and offsets in the stack.

    *Soundness:* names are those of another state, where a symbol may be another number.
    """
    for location, term in state.locations.items():
        value = known_value(state, term) if location.space == "register" else None
        if value is not None and name_of(value) is None and registers.keys().isdisjoint(overlapping(location)):
            registers[location] = value


def forget_lone(registers: dict[_Key, Value], memory: dict[tuple[str, int], tuple[int, Value]]) -> None:
    """Forget words from which one place is told only, in both: nothing is compared with that."""
    distances: dict[int, set[Value]] = {}
    for value in (*registers.values(), *(value for _, value in memory.values())):
        if (name := name_of(value)) is not None:
            distances.setdefault(name, set()).add(value)
    lone = {value for values in distances.values() if len(values) == 1 for value in values}
    for at in [at for at, value in registers.items() if value in lone]:
        del registers[at]
    for cell in [cell for cell, (_, value) in memory.items() if value in lone]:
        del memory[cell]


def held_in_word(registers: Mapping[Location, Value], place: Location, lifter: Lifter) -> int | None:
    """What ``place`` holds as a part of a register that holds a number, as the lowest byte of a word does."""
    part = part_of(place, lifter)
    word = registers.get(part[0]) if part is not None else None
    if part is None or not isinstance(word, int):
        return None
    return word >> part[1] & (1 << 8 * place.size_bytes) - 1
