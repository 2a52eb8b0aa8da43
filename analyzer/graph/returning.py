"""Which functions may return: panic handlers, ``abort`` and resets do not, and what only leads to them does not either.

Words: dead end, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* a function that is not among the result cannot return, whatever conditions hold: no path of its code leads
to a return, to an indirect jump whose targets are not known, to code that cannot be read, or by a tail call to a
function that may. As long as targets are still being looked for, that is true of the known ones only, so what leads to
an indirect branch or call is told besides: it must stay, for other ways that lead there may bring other targets. What
cannot return whatever the targets are, such as ``abort`` with its handlers, need not: an indirect call comes back
behind itself at most, and an indirect jump is taken to return. Who calls a function that may return in a caller's stead
(`frames`) is taken to return, too, for it may be that caller.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.graph.cfg import (
    FALLING,
    IndirectTargets,
    Returns,
    inside,
    instruction_at,
    outflow_at,
    starts_another,
)
from wcet_probe.analyzer.graph.frames import returning_for_callers
from wcet_probe.analyzer.graph.inline_tables import resuming_end
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.errors import DecodeError
from wcet_probe.model.image import Image, Symbol


def function_from(image: Image, address: int) -> Symbol:
    """The function that a call of ``address`` enters; where no symbol of a function says it, one without a size.

    Its name is that of a label there, or tells the function around it, or the address.
    """
    found = image.function_at(address)
    if found is not None and found.address == address:
        return found
    labels = sorted(name for name, symbol in image.symbols.items() if symbol.address == address)
    around = f"{found.name}+{address - found.address:#x}" if found else f"function_at_{address:#x}"
    return Symbol(labels[0] if labels else around, address, 0, is_function=True)


def returning_functions(
    image: Image, lifter: Lifter, entry: int, indirect: IndirectTargets, sites: Collection[int]
) -> Returns:
    """What is known of the returns of ``entry`` and all that it may come to.

    Args:
        image: the binary.
        lifter: lifter of the image.
        entry: address of the analysed function.
        indirect: known targets of indirect branches and calls.
        sites: addresses of indirect jumps that may return.

    *Soundness:* as said of the module.
    """
    known = _found.setdefault(lifter, {})
    key = entry, tuple(sorted(indirect.items())), frozenset(sites)
    if key not in known:
        known[key] = _returning_functions(image, lifter, entry, indirect, sites)
    return known[key]


_Question = tuple[int, tuple[tuple[int, tuple[int, ...]], ...], frozenset[int]]
_found: WeakKeyDictionary[Lifter, dict[_Question, Returns]] = WeakKeyDictionary()
"""A lifter is of one image: the graph of a function is made again and again while its targets are looked for."""


def _returning_functions(
    image: Image, lifter: Lifter, entry: int, indirect: IndirectTargets, sites: Collection[int]
) -> Returns:
    popping: frozenset[int] = frozenset()
    while True:
        whatever = _searched(_Search(image, lifter, indirect, sites, None, popping), entry)
        found = popping.union(returning_for_callers(lifter, entry, indirect, whatever.returning))
        if found == popping:
            break
        popping = found
    search = whatever
    if not whatever.is_direct:  # else targets make no difference
        search = _searched(_Search(image, lifter, indirect, sites, frozenset(whatever.returning), popping), entry)
    told = frozenset(search.returning), frozenset(sites), frozenset(search.branching), popping
    return Returns(*told, resuming=frozenset(search.resuming))


def _searched(search: _Search, entry: int) -> _Search:
    search.open(entry)
    while search.todo:
        search.step(*search.todo.pop())
    return search


@dataclass(slots=True)
class _Search:
    """A search over the code of all functions at once: what lies behind a call waits until the callee returns.

    ``able`` are the functions that may return for some targets of indirect branches and calls; None where these are
    looked for, and each indirect call is taken to come back, each indirect jump to return. ``popping`` are those that
    may return in a caller's stead. It ``is_direct`` as long as no indirect branch or call was met.
    """

    image: Image
    lifter: Lifter
    indirect: IndirectTargets
    sites: Collection[int]
    able: frozenset[int] | None
    popping: frozenset[int]
    returning: set[int] = field(default_factory=set)
    branching: set[int] = field(default_factory=set)
    entered_by: dict[int, set[int]] = field(default_factory=dict)
    todo: list[tuple[int, int]] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    functions: dict[int, Symbol] = field(default_factory=dict)
    behind: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    handing_over: dict[int, list[int]] = field(default_factory=dict)
    resuming: set[int] = field(default_factory=set)
    is_direct: bool = True

    def open(self, entry: int) -> None:
        """Look at the function that starts at ``entry``."""
        if entry not in self.functions:
            self.functions[entry] = function_from(self.image, entry)
            self._go(entry, entry)

    def step(self, function: int, address: int) -> None:
        """Follow the instruction at ``address`` in ``function``, and those that follow it where it just falls."""
        symbol = self.functions[function]
        try:
            last = self._last_of_run(symbol, address)
        except DecodeError:
            self._returns(function)
            return
        if last is None:
            return
        flow, address = outflow_at(self.lifter, last), last
        following = last + instruction_at(self.lifter, last).size_bytes
        targets = self.indirect.get(address, ())
        jumps = (*flow.jumps, *(targets if flow.indirect_jump else ()))
        own = inside(self.image, symbol, jumps)
        away = [target for target in jumps if target not in own]
        if flow.falls and starts_another(self.image, symbol, following):
            away.append(following)
        elif flow.falls or (flow.indirect_call and (self.able is None or not targets)):
            own.append(following)
        own += targets if flow.resumes else ()
        for target in own:
            self._go(function, target)
        is_open = flow.indirect_jump or flow.resumes
        if flow.returns or (is_open and (self.able is None or not targets or address in self.sites)):
            self._returns(function)
        if (is_open or flow.indirect_call) and resuming_end(self.lifter, function) != address:
            self.is_direct = False
            self._branches(function)
        for target in away:
            self._hand_over(function, target)
        for callee in (*flow.calls, *(targets if flow.indirect_call else ())):
            self._call(callee, function, None if flow.resumes else following)

    def _last_of_run(self, symbol: Symbol, address: int) -> int | None:
        """The first instruction from ``address`` on that does not just fall within ``symbol``; None if it was seen.

        Raises:
            DecodeError: there is no instruction.
        """
        while outflow_at(self.lifter, address) is FALLING:
            following = address + self.lifter.lift(address).size_bytes
            if starts_another(self.image, symbol, following):
                break
            if (symbol.address, following) in self.seen:
                return None
            self.seen.add((symbol.address, following))
            address = following
        return address

    def _hand_over(self, function: int, target: int) -> None:
        self._enter(target, function)
        self.handing_over.setdefault(target, []).append(function)
        if target in self.returning:
            self._returns(function)

    def _call(self, callee: int, function: int, following: int | None) -> None:
        """A call of ``callee``, which may come back to ``following``; None where it surely does not."""
        self._enter(callee, function)
        if following is None:
            self.resuming.add(callee)
            return
        self.behind.setdefault(callee, []).append((function, following))
        if callee in self.popping:
            self._returns(function)
        if callee in self.returning:
            self._go(function, following)

    def _enter(self, target: int, function: int) -> None:
        self.open(target)
        self.entered_by.setdefault(target, set()).add(function)
        if target in self.branching:
            self._branches(function)

    def _branches(self, function: int) -> None:
        todo = [function]
        while todo:
            one = todo.pop()
            if one not in self.branching and (self.able is None or one in self.able):
                self.branching.add(one)
                todo += sorted(self.entered_by.get(one, ()))

    def _go(self, function: int, address: int) -> None:
        if (function, address) not in self.seen:
            self.seen.add((function, address))
            self.todo.append((function, address))

    def _returns(self, function: int) -> None:
        todo = [function]
        while todo:
            one = todo.pop()
            if one in self.returning:
                continue
            self.returning.add(one)
            for place in self.behind.pop(one, ()):
                self._go(*place)
            todo += self.handing_over.pop(one, ())
