"""Pointers to the stack that a loop moves along with a counter: told by the counter, which the loop compares.

A copying loop counts how much is left and moves a pointer on. Widening the pointer would lose where it ends, as nothing
compares it, and a store through it might then go anywhere in the stack.

Words: induction variable, widening, linear form (docs/explanation/glossary.md).

*Soundness:* on each way into the loop the pointer is a constant distance from the stack pointer at entry and a whole
multiple of the counter, the same on all of them, and each round changes both in that ratio; so it is that at the header
in each round. `joins.join` keeps it only as long as it is so in all states that meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms


class _Counter(NamedTuple):
    """A symbol of a header that each round changes by a constant.

    Attributes:
        location: where it is.
        symbol: at the header.
        steps: what each state that comes round adds, signed.
        starts: what it is in each that enters.
        rounds: of all states, in order, which of them come round as far as this counter tells.
    """

    location: Location
    symbol: Term
    steps: tuple[int, ...]
    starts: tuple[Linear, ...]
    rounds: tuple[bool, ...]


def tell_pointers(
    result: State, states: Sequence[State], place: SymbolName, former: State, compared: Collection[Location]
) -> None:
    """Tell pointers to the stack by counters, where ``states`` met in ``result`` and came to ``former`` before.

    Args:
        result: not frozen; it covers ``states``.
        states: those that enter the loop and those that come round.
        place: the header's.
        former: what the symbols of the place in ``states`` speak of.
        compared: registers that the loop compares: of a pointer that is, it is known where it ends.

    *Soundness:* as said of the module. A symbol is replaced wherever it is held, or not at all.
    """
    counters = list(_counters(result, states, place, former))
    is_number = [one for one in counters if result.base(one.symbol) is Base.NUMBER and one.location in compared]
    numbers = sorted(is_number, key=_reach)
    for pointer in counters:
        if result.base(pointer.symbol) is Base.STACK and pointer.location not in compared:
            form = next((found for number in numbers if (found := _by(result, pointer, number))), None)
            if form is not None:
                _replace(result, pointer.symbol, form)


def with_constants(state: State, form: Linear) -> Linear:
    """``form`` with numbers in the place of what ``state`` knows to be one."""
    for term, factor in form.coefficients.items():
        value = state.value(term)
        if value.is_constant and state.base(term) is Base.NUMBER:
            form = combined(form, Linear({term: 1}, -value.value, form.bits), -factor)
    return form


def _counters(result: State, states: Sequence[State], place: SymbolName, former: State) -> Iterator[_Counter]:
    terms = result.terms
    own = terms.meeting(place)
    for location, symbol in former.locations.items():
        is_own = symbol in own and terms[symbol].arguments == ("phi", place, location)
        if not is_own or result.locations.get(location) != symbol:
            continue
        steps, starts, rounds = list[int](), list[Linear](), list[bool]()
        for state in states:
            held = state.read(location)
            if held is None:
                break
            form = terms.linear(held)
            rounds.append(form.coefficients == {symbol: 1})
            if rounds[-1]:
                steps.append(signed(form.bits, form.constant))
            elif terms.symbols(held).isdisjoint(own):
                starts.append(with_constants(state, form))
            else:
                break
        else:
            if steps and all(steps) and starts:
                yield _Counter(location, symbol, tuple(steps), tuple(starts), tuple(rounds))


def _reach(counter: _Counter) -> tuple[int, int]:
    """How little it moves, and how near to 0 it starts: what is compared with a constant is no address."""
    starts = (abs(signed(one.bits, one.constant)) for one in counter.starts)
    return min(map(abs, counter.steps)), max(starts)


def _by(result: State, pointer: _Counter, number: _Counter) -> Linear | None:
    """The pointer as a multiple of the number, a constant and the stack pointer at entry; None where it is not that."""
    bits = result.terms[number.symbol].bits
    if pointer.rounds != number.rounds:
        return None  # a way back sets one of them anew
    ratio, left = divmod(pointer.steps[0], number.steps[0])
    is_each = all(mine == ratio * its for mine, its in zip(pointer.steps, number.steps, strict=True))
    if left or not is_each or bits != result.terms[pointer.symbol].bits:
        return None
    rest = [combined(mine, its, -ratio) for mine, its in zip(pointer.starts, number.starts, strict=True)]
    names = [result.terms[term].arguments for term in rest[0].coefficients]
    if any(one != rest[0] for one in rest) or names != [("stack pointer",)] or 1 not in rest[0].coefficients.values():
        return None
    return combined(rest[0], Linear({number.symbol: 1}, 0, bits), ratio)


def _replace(result: State, symbol: Term, form: Linear) -> None:
    """Let ``result`` hold ``form`` for ``symbol``, in sums, if it holds it in nothing else."""
    terms, told = result.terms, dict[Location, Term]()
    for location, term in result.locations.items():
        if symbol not in terms.symbols(term):
            continue
        held = terms.linear(term)
        factor = held.coefficients.get(symbol, 0)
        rest = combined(held, Linear({symbol: 1}, 0, held.bits), -factor)
        if not factor or any(symbol in terms.symbols(other) for other in rest.coefficients):
            return
        told_by = _sum(terms, combined(rest, form, factor))
        if told_by is None:
            return
        told[location] = told_by
    for location, term in told.items():
        result.set_location(location, term)


def _sum(terms: Terms, form: Linear) -> Term | None:
    """The term of ``form``; None where it would be too deep."""
    total: Term | None = terms.constant(form.constant, form.bits)
    for term, factor in form.coefficients.items():
        product = terms.apply("INT_MULT", (term, terms.constant(factor, form.bits)), form.bits)
        total = None if total is None or product is None else terms.apply("INT_ADD", (product, total), form.bits)
    return total
