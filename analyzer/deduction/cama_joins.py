"""Where parts of an operation of CAMA meet: what registers were shown to hold there, and what they hold behind it.

Words: claim, obligation (docs/explanation/glossary.md).

*Soundness:* a register holds behind a join what it was shown to hold on all ways to it, and else anything; a word of
the stack that was stored on all of them holds anything. What the caller had, the return address and the registers that
it keeps, is told like any other word, of registers and of the stack. A part behind
the join begins at one instruction, with what was shown of the ways that end there. Ways that end at different ones are
no join: either a part begins at each of them (`begins`), or what is behind them is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from wcet_probe.analyzer.deduction.calling_convention import callers_words, of_caller
from wcet_probe.analyzer.deduction.cama_memory import CamaMemory
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.execution import End
from wcet_probe.analyzer.deduction.formulas import Node
from wcet_probe.analyzer.deduction.obligations import Deduced, Obligation
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word

_CONSTANT = "constant "
ONE_BEGIN = "all ways to a part end where it begins"


@dataclass(frozen=True, slots=True)
class Join:
    """What was shown at a join, of one way or of all.

    Attributes:
        address: of the join.
        held: what each register holds, by names: all that were shown, of which ways may have different ones.
        stack_pointer: its distance from what it was at entry, if it is known.
        stack: words of the stack that were stored, by their distance from what the stack pointer was at entry.
        callers: those of them that hold what the caller had, each with the name of that.
    """

    address: int
    held: Mapping[str, frozenset[str]]
    stack_pointer: int | None
    stack: frozenset[int]
    callers: frozenset[tuple[int, str]] = frozenset()


def common(joins: Iterable[Join]) -> Join | None:
    """What was shown on all ways, of which there is one; None where they end at different instructions."""
    first, *others = joins
    for one in others:
        if one.address != first.address:
            return None
        both = {register: names & one.held.get(register, frozenset()) for register, names in first.held.items()}
        held = {register: names for register, names in both.items() if names}
        pointer = first.stack_pointer if first.stack_pointer == one.stack_pointer else None
        first = Join(first.address, held, pointer, first.stack & one.stack, first.callers & one.callers)
    return first


def begins(joins: Iterable[Join]) -> tuple[Join, ...]:
    """Where parts begin behind ``joins``, by address: with what was shown on all ways to each."""
    by_address: dict[int, list[Join]] = {}
    for one in joins:
        by_address.setdefault(one.address, []).append(one)
    found = (common(own) for _, own in sorted(by_address.items()))
    return tuple(one for one in found if one is not None)


def without_begin(operation: str, joins: Iterable[Join]) -> Deduced:
    """That what is behind ``joins`` is open, as it does not begin at one instruction."""
    opened = (Obligation(0, address, ONE_BEGIN, is_shown=False) for address in sorted({one.address for one in joins}))
    return Deduced(operation, 0, tuple(opened), ())


def joined(run: Deduction, way: End, told: Mapping[str, Node], others: Iterable[Join], stack_register: str) -> Join:
    """What is shown of registers on a way to a join.

    Parameters:
        told: what is asked of each, by names: an integer that it may hold.
        others: what was shown on other ways, of which nothing more is asked.
        stack_register: the stack pointer's.
    """
    wanted = [join.held for join in others]
    named = {word: name for name, word in callers_words(stack_register).items()}
    held = {register: frozenset({of_caller(register)}) for register in way.untouched}
    for register, word in way.words().items():
        if word in named:
            held[register] = frozenset({named[word]})
            continue
        asked = [name for name in told if all(name in one.get(register, ()) for one in wanted)]
        value = run.terms.value(word) if asked else None
        shown = {name for name in asked if value is not None and run.terms.questions.holds(value.equals(told[name]))}
        if not word.parts:
            shown.add(f"{_CONSTANT}{word.constant}")
        if shown:
            held[register] = frozenset(shown)
    from_entry = way.words().get(stack_register, Word(0)).plus(run.stack_pointer, -1)
    distance = None if from_entry.parts else from_entry.constant
    stack = cast("CamaMemory", way.memory).stack
    callers = frozenset((offset, named[word]) for offset, word in stack.items() if word in named)
    return Join(way.instruction_address, held, distance, frozenset(stack), callers)


def registers_behind(run: Deduction, join: Join, words: Mapping[str, Word], stack_register: str) -> Mapping[str, Word]:
    """What registers hold behind a join, with ``words`` by names; the stack holds anything, or what the caller had.

    Of a register's names a constant is taken, or else the first one of ``words``; if none is, it holds anything.
    """
    given = {"lr": anything(run.terms)}
    callers = callers_words(stack_register)
    for register, names in join.held.items():
        constants = sorted(name for name in names if name.startswith(_CONSTANT))
        if constants:
            given[register] = Word(int(constants[0].removeprefix(_CONSTANT)))
        elif of_caller(register) in names:
            given[register] = callers[of_caller(register)]
        elif (own := next((name for name in callers if name in names), None)) is not None:
            given[register] = _known(run, callers[own])
        elif (named := next((word for name, word in words.items() if name in names), None)) is not None:
            given[register] = named
    if join.stack_pointer is not None:
        given[stack_register] = run.stack_pointer.plus(Word(join.stack_pointer))
    stored = dict(join.callers)
    for offset in sorted(join.stack):
        kept = offset in stored
        run.memory.stack[offset] = _known(run, callers[stored[offset]]) if kept else anything(run.terms)
    return given


def _known(run: Deduction, word: Word) -> Word:
    """``word``, of one unknown, which may be computed with."""
    run.terms.known(word.parts[0][0])
    return word


def anything(terms: WordTerms, most: int = SPAN - 1) -> Word:
    """A word of which nothing is known."""
    return Word(0, ((terms.known(terms.fresh("anything"), most), 1),))
