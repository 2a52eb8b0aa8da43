"""Where parts of an operation of CAMA meet: what registers were shown to hold there, and what they hold behind it.

*Soundness:* a register holds behind a join what it was shown to hold on all ways to it, and else anything; a word of
the stack that was stored on all of them holds anything. The return address is told like any other word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

from wcet_probe.analyzer.deduction.cama_memory import CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.execution import RETURN_ADDRESS, End
from wcet_probe.analyzer.deduction.formulas import Node
from wcet_probe.analyzer.deduction.words import SPAN, Word, WordTerms

_RETURN_ADDRESS = Word(0, ((RETURN_ADDRESS, 1),))
_OF_RETURN, _CONSTANT = "return address", "constant "


@dataclass(frozen=True, slots=True)
class Join:
    """What was shown at a join, of one way or of all.

    Attributes:
        address: of the join.
        held: what registers hold, by names.
        stack_pointer: its distance from what it was at entry, if it is known.
        stack: words of the stack that were stored, by their distance from what the stack pointer was at entry.
    """

    address: int
    held: Mapping[str, str]
    stack_pointer: int | None
    stack: frozenset[int]


def common(joins: Iterable[Join]) -> Join:
    """What was shown on all ways; there is one."""
    first, *others = joins
    for one in others:
        held = {name: told for name, told in first.held.items() if one.held.get(name) == told}
        pointer = first.stack_pointer if first.stack_pointer == one.stack_pointer else None
        first = Join(first.address, held, pointer, first.stack & one.stack)
    return first


def joined(run: Deduction, way: End, told: Mapping[str, Node], others: Iterable[Join], stack_register: str) -> Join:
    """What is shown of registers on a way to a join.

    Parameters:
        told: what is asked of each, by names: an integer that it may hold.
        others: what was shown on other ways, of which nothing more is asked.
        stack_register: the stack pointer's.
    """
    wanted = [join.held for join in others]
    held: dict[str, str] = {}
    for register, word in way.words().items():
        if word == _RETURN_ADDRESS:
            held[register] = _OF_RETURN
        elif not word.parts:
            held[register] = f"{_CONSTANT}{word.constant}"
        else:
            names = [name for name in told if all(one.get(register) == name for one in wanted)]
            is_held = (name for name in names if run.terms.questions.holds(run.terms.value(word).equals(told[name])))
            held.update((register, name) for name in islice(is_held, 1))
    from_entry = way.words().get(stack_register, Word(0)).plus(run.stack_pointer, -1)
    distance = None if from_entry.parts else from_entry.constant
    return Join(way.instruction_address, held, distance, frozenset(cast("CamaMemory", way.memory).stack))


def registers_behind(run: Deduction, join: Join, words: Mapping[str, Word], stack_register: str) -> Mapping[str, Word]:
    """What is in registers behind a join, where ``words`` are by names; the words of the stack hold anything."""
    given = {"lr": anything(run.terms)}
    for register, name in join.held.items():
        if name.startswith(_CONSTANT):
            given[register] = Word(int(name.removeprefix(_CONSTANT)))
        else:
            given[register] = _RETURN_ADDRESS if name == _OF_RETURN else words[name]
    if join.stack_pointer is not None:
        given[stack_register] = run.stack_pointer.plus(Word(join.stack_pointer))
    run.memory.stack.update((offset, anything(run.terms)) for offset in join.stack)
    return given


def anything(terms: WordTerms, most: int = SPAN - 1) -> Word:
    """A word of which nothing is known."""
    return Word(0, ((terms.known(terms.fresh("anything"), most), 1),))
