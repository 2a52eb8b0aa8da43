"""Abstract execution: how often each block of a nest of loops is executed, by following it round by round.

Where counters, limits and the choices of a switch follow from constants, each round is known: which case it takes, and
how often a loop in it repeats, whatever the counter is made of (a float's rounds are followed through its routines).
What is not known lets control go both ways; ways that come together in the same round are one again.

Words: abstract execution, constant propagation, loop bound (docs/explanation/glossary.md).

A nest that takes too long so is followed once more, past the loops in it that count to a constant and choose nothing:
of such a loop it is found what holds in all of its rounds, instead of what does in each.

*Soundness:* each arrival of the states at a block stands for all executions that are in the same rounds of all loops
around it, of which there is one at most for each entry of the nest, as the parts of a loop are in an order of control
flow. So no execution passes a block more often than it was arrived at. A loop that goes on without end here is cut
where its bound says so; a nest that takes too long, or whose loops have none, is left alone. Of a loop that is passed,
the state at its header holds where it is entered and, if it holds in a round, in the next one: so in all, and behind
the loop what each of them may leave. Its blocks are executed as often as the bounds of its loops say. Where a nest is
too long, a state that holds in each of the rounds that are left is found so, and one round is followed from there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from wcet_probe.analyzer.graph.loop_forest import Loop, loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.loops.nest_limits import ExecutedNest, products
from wcet_probe.analyzer.values.execution.call_effects import CallKey, Effect
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution, Constants, Leaving
from wcet_probe.analyzer.values.execution.known_places import learn
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values

MOST_INSTRUCTIONS = 400_000
"""Most instructions that are followed in one nest: some 2 CPU seconds; in all of a function twice as many."""
WHOLE = 5
"""So many times more are followed of a whole function of which it is known what memory holds at its entry."""
_PASSING = 2
"""So many times more are followed of a nest where loops in it are passed."""
_UNLIKELY = 4
"""A nest whose first round is so many times longer than its bound has budget for is not followed further."""
_TOLD_BY = 8
"""By this part of the budget it is told how far a nest has come whose loops all take as many rounds as their bounds."""
_TOO_FAR = 1.25
"""Such a nest is not followed further where it would take so many budgets, at the pace it has."""
_MOST_UNDECIDED = 1_000
"""A loop without a bound is not followed further where in so many rounds on end it was open whether it ends there."""
_STEADY_ROUNDS = 8
"""After so many rounds of a nest, and each time that they are twice as many, it is tried to tell all others at once.

Only where it could not be followed to its end: where it can, later rounds may turn out to take less."""
_FEW_ROUNDS = 4
"""A loop of no more rounds is followed, not passed."""
_NO_HEADER = -1
_DECIDED, _TOO_LONG, _ALIGNED = "decided", "too long", "aligned"
_INDIRECT: Mapping[str, Collection[str]] = {"jump": ("jump", "return"), "call": ("call",)}
"""The ways of the edges that an indirect branch or return, and an indirect call, may be."""


def is_decided(values: Values, execution: ConstantExecution, effect: Callable[[CallKey], Effect]) -> bool | None:
    """Whether what memory holds at entry decides every step of the function; None where that takes too long to tell."""
    found = executed_nests(values, {}, (), execution=execution, effect=effect, nests=0)
    return None if _TOO_LONG in values.executed else any(nest.is_decided for nest in found)


def is_followed(values: Values) -> bool:
    """Whether it was found before that what memory holds at entry decides every step of the function."""
    return _DECIDED in values.executed


def rests_on_stack_alignment(values: Values) -> bool:
    """Whether what was told by following ``values`` may rest on assumption ``stack-alignment``."""
    return _ALIGNED in values.executed


class _LeftAloneError(Exception):
    """A nest cannot be followed to its end."""


def executed_nests(
    values: Values,
    bounds: Mapping[int, int],
    exact: Collection[int],
    *,
    execution: ConstantExecution,
    effect: Callable[[CallKey], Effect],
    share: int = 1,
    nests: int = 2,
) -> tuple[ExecutedNest, ...]:
    """The nests of ``values`` that could be followed; where one is not, the loops in it.

    Args:
        values: points, edges and states.
        bounds: of loops by header, the most executions of it for each entry.
        exact: headers of the loops whose bound is the same for each entry, and attained.
        execution: of the code.
        effect: of calls that are not expanded.
        share: so many times fewer instructions are followed.
        nests: so many nests are left alone at most.

    *Soundness:* as said of the module. What was found before is found again where bounds and the effects of calls are
    those of then: of a function's values nothing else decides it.
    """
    if _DECIDED in values.executed and execution.knows_memory:
        return (values.executed[_DECIDED],)
    asked = frozenset(bounds.items()), frozenset(exact), MOST_INSTRUCTIONS // share, nests, execution.knows_memory
    known: list[tuple[dict[CallKey, Effect], tuple[ExecutedNest, ...]]] = values.executed.setdefault(asked, [])
    for effects, found in known:
        if all(effect(key) == one for key, one in effects.items()):
            return found
    effects = {}

    def noted(key: CallKey) -> Effect:
        effects[key] = found = effect(key)
        return found

    found = _executed_nests(values, bounds, exact, execution, noted, share, nests)
    if execution.tells_alignment:
        values.executed[_ALIGNED] = True
    known.append((effects, found))
    return found


def _executed_nests(  # noqa: PLR0917  as of `executed_nests`
    values: Values,
    bounds: Mapping[int, int],
    exact: Collection[int],
    execution: ConstantExecution,
    effect: Callable[[CallKey], Effect],
    share: int,
    nests: int,
) -> tuple[ExecutedNest, ...]:
    shapes = loop_shapes(values)
    inner = {shape.loop.header: [one for one in shapes if one.parent == shape.loop] for shape in shapes}
    most = MOST_INSTRUCTIONS // share
    following = _Following(values, bounds, exact, execution, effect, most=most, nests=nests)
    if execution.knows_memory and _TOO_LONG not in values.executed:
        whole = _Following(values, bounds, exact, execution, effect, most=WHOLE * most, nests=1)
        try:
            nest = whole.function()
        except _LeftAloneError:
            if whole.is_at_end and share == 1:
                values.executed[_TOO_LONG] = True
        else:
            if nest.is_decided:
                values.executed[_DECIDED] = nest
            return (nest,)
    found: list[ExecutedNest] = []
    todo = [shape for shape in shapes if shape.parent is None][::-1]
    while todo and following.left > 0:
        shape = todo.pop()
        if not _may_pay(values, shape, exact):
            continue
        one = _followed(following, shape)
        if one is None and (passed := _to_pass(values, shape, inner, bounds, exact)):
            past = _Following(values, bounds, exact, execution, effect, most=_PASSING * most, nests=1, passed=passed)
            one = _followed(past, shape)
        if one is None:
            todo += inner[shape.loop.header][::-1]
        else:
            found.append(one)
    return tuple(found)


def _followed(following: _Following, shape: LoopShape) -> ExecutedNest | None:
    try:
        return following.nest(shape)
    except _LeftAloneError:
        return None


def _to_pass(
    values: Values,
    shape: LoopShape,
    inner: Mapping[int, Sequence[LoopShape]],
    bounds: Mapping[int, int],
    exact: Collection[int],
) -> frozenset[int]:
    """The headers of the outermost loops in ``shape`` of which following tells no more than their bounds."""
    found: set[int] = set()
    todo = [*inner[shape.loop.header]]
    while todo:
        one = todo.pop()
        is_bounded = all(loop.header in bounds for loop in one.loop.walk())
        if is_bounded and bounds[one.loop.header] > _FEW_ROUNDS and not _may_pay(values, one, exact):
            found.add(one.loop.header)
        else:
            todo += inner[one.loop.header]
    return frozenset(found)


def _may_pay(values: Values, shape: LoopShape, exact: Collection[int]) -> bool:
    """Whether the nest has choices, or loops whose rounds may be fewer: else its bounds tell all."""
    inside = list(shape.loop.walk())
    if any(one.header not in exact for one in inside):
        return True
    innermost = {node: one for one in inside for node in one.nodes}
    going_on = [
        edge.source
        for node, own in innermost.items()
        for edge in values.leaving.get(node, ())
        if edge.target in own.nodes and edge.target != own.header
    ]
    return len(going_on) > len(set(going_on))


class _Following:
    """Follows nests, until as many blocks were executed as may be."""

    def __init__(
        self,
        values: Values,
        bounds: Mapping[int, int],
        exact: Collection[int],
        execution: ConstantExecution,
        effect: Callable[[CallKey], Effect],
        *,
        most: int,
        nests: int,
        passed: Collection[int] = (),
    ) -> None:
        self._values, self._bounds, self._execution, self._effect = values, bounds, execution, effect
        self._exact, self._to_pass = exact, passed
        self._passing: Loop | None = None
        self._most, self.left = most, nests * most
        self._needed = execution.needed(values.graph)

    def nest(self, shape: LoopShape) -> ExecutedNest:
        """What following one nest tells.

        Raises:
            _LeftAloneError: it takes too long, or has no end.
        """
        loop = shape.loop
        entering = [self._values.edges[edge].state for edge in shape.entry_edges]
        # Where the function begins with the loop, nothing is known of the call's values.
        state = self._execution.at(entering) if entering and loop.header else Constants({}, {})
        pending = {loop.header: state}
        self._begin(loop.walk())
        self._header = loop.header
        self._is_paced = all(one.header in self._exact and one.header in self._bounds for one in loop.walk())
        counts = self._rounds(loop, loop.nodes, pending)
        return ExecutedNest(shape, counts, self._ended())

    def function(self) -> ExecutedNest:
        """What following the whole function from its entry tells, with what memory holds there.

        Raises:
            _LeftAloneError: it takes too long, or has no end.

        *Soundness:* as of a nest that is entered once, and whose only round is the call.
        """
        values = self._values
        nodes = frozenset(values.states)
        self._begin(loops_of(values.forest))
        self._is_paced = False
        # Where the function begins with a loop, the state there is not that of its entry.
        state = self._execution.at_entry([] if values.arriving.get(0) else [values.states[0]])
        pending = {0: state}
        counts = self._round(values.forest, nodes, pending)
        if pending:
            raise _LeftAloneError  # control went against the order of the parts
        shape = LoopShape(Loop(0, values.forest, nodes), None, (), ())
        is_decided = not self._is_forked and not self._cut
        return ExecutedNest(shape, counts, self._ended(), is_whole=True, is_decided=is_decided)

    def _begin(self, loops: Iterable[Loop]) -> None:
        self._exits: dict[int, list[Loop]] = {}
        self._headers: list[int] = []
        for one in loops:
            self._headers.append(one.header)
            for index in one.nodes:
                if any(edge.target not in one.nodes for edge in self._values.leaving.get(index, ())):
                    self._exits.setdefault(index, []).append(one)
        self._decided: set[int] = set()
        self._most_rounds: dict[int, int] = {}
        self._cut: set[int] = set()
        self._start, self._end = self.left, max(0, self.left - self._most)
        self._header = _NO_HEADER
        self._is_forked = False
        # Of each loop that control is in, the rounds that are done, and how many there are.
        self._done: list[list[int]] = []

    @property
    def is_at_end(self) -> bool:
        """Whether as much was followed as may be, and each step was decided."""
        return self.left <= self._end and not self._is_forked and not self._cut

    def _ended(self) -> dict[int, int]:
        """The rounds of the loops that ended by themselves; of those that were not arrived at, one, for none."""
        return {one: self._most_rounds.get(one, 1) for one in self._headers if one not in self._cut}

    def _passed(self, loop: Loop, nodes: frozenset[int], pending: dict[int, Constants]) -> dict[int, int]:
        """Pass a loop, and those in it: what is known at its header in each round, and behind it.

        *Soundness:* as said of the module. What is ``pending`` behind it is joined from the tries, the last of which
        holds in all rounds.
        """
        around, self._is_forked = self._passing, True
        self._passing = around or loop
        self._cut.update(one.header for one in loop.walk())
        while loop.header in pending:
            state = pending[loop.header].copy()
            self._round(loop.parts, nodes, pending)
            if _goes_back(loop, pending):
                raise _LeftAloneError
            again = pending.pop(loop.header, None)
            if again is None or (joined := state.joined(again)) == state:
                break
            pending[loop.header] = joined
        self._passing = around
        counts = dict(products(loop, self._bounds, self._values.leaving, 1))
        return {index: count for index, count in counts.items() if count is not None}

    def _rounds(self, loop: Loop, nodes: frozenset[int], pending: dict[int, Constants]) -> dict[int, int]:
        if self._passing or loop.header in self._to_pass:
            return self._passed(loop, nodes, pending)
        most = self._bounds.get(loop.header)
        total: dict[int, int] = {}
        former: Constants | None = None
        last: dict[int, int] = {}
        rounds = undecided = 0
        # What is left at its header only takes one more execution of that.
        self._done.append([0, (most or 1) - (not self._is_left_below(loop))])
        while loop.header in pending:
            if most is not None and rounds >= most:
                self._cut.add(loop.header)
                del pending[loop.header]
                break
            state = pending[loop.header]
            if former == state:
                if most is None:
                    raise _LeftAloneError
                self._cut.add(loop.header)
                del pending[loop.header]
                _add(total, last, most - rounds)
                rounds = most
                break
            self._decided.discard(loop.header)
            former, last = state.copy(), self._round(loop.parts, nodes, pending)
            undecided = 0 if loop.header in self._decided else undecided + 1
            if most is None and undecided >= _MOST_UNDECIDED:
                raise _LeftAloneError
            if _goes_back(loop, pending):
                raise _LeftAloneError  # two rounds would be taken for one
            _add(total, last, 1)
            self._done[-1][0] = rounds = rounds + 1
            if self._is_in_vain(loop, rounds, most):
                raise _LeftAloneError
            if most is not None and (rest := self._rest(loop, nodes, pending, last)):
                self._cut.add(loop.header)
                _add(total, rest, 1)
                rounds = most
                break
        self._done.pop()
        self._most_rounds[loop.header] = max(rounds, self._most_rounds.get(loop.header, 0))
        return total

    def _round(
        self, parts: Sequence[int | Loop], nodes: frozenset[int], pending: dict[int, Constants]
    ) -> dict[int, int]:
        """How often each point of ``parts`` is executed in the round that is ``pending``."""
        counts: dict[int, int] = {}
        for part in parts:
            if isinstance(part, Loop):
                if part.header in pending:
                    _add(counts, self._rounds(part, nodes, pending), 1)
            elif part in pending:
                counts[part] = 1
                self._point(part, nodes, pending)
        return counts

    def _rest(
        self, loop: Loop, nodes: frozenset[int], pending: dict[int, Constants], last: Mapping[int, int]
    ) -> Mapping[int, int]:
        """How often points are executed in the rounds of the nest that are left, where all are surely as the ``last``.

        It is tried now and then, of a nest that cannot be followed to its end. If they are not, it is empty. A loop
        that is left at its header executes nothing else in its last round.
        """
        rounds, most = self._done[-1][0], self._bounds.get(loop.header, 0)
        is_due = rounds >= _STEADY_ROUNDS and not rounds & (rounds - 1) and rounds < most
        if not (is_due and loop.header == self._header and loop.header in self._exact):
            return {}
        if not self._is_out_of_reach(rounds, most):
            return {}  # they may be executed less often, which following tells
        if not self._are_alike(loop, nodes, pending, last):
            return {}
        rest: dict[int, int] = {}
        _add(rest, last, most - rounds - 1)
        _add(rest, last if self._is_left_below(loop) else {loop.header: 1}, 1)
        return rest

    def _are_alike(
        self, loop: Loop, nodes: frozenset[int], pending: dict[int, Constants], last: Mapping[int, int]
    ) -> bool:
        """Whether no point is executed more often in a later round than in the ``last`` one; if not, all is as it was.

        *Soundness:* what is taken to hold at the header holds before the next round and, wherever it holds before a
        round, behind it: so before all. What is followed from there stands for each of them.
        """
        before = {index: state.copy() for index, state in pending.items()}
        cut, most_rounds, left = self._cut.copy(), self._most_rounds.copy(), self.left
        while loop.header in pending:
            state = pending[loop.header].copy()
            if self._round(loop.parts, nodes, pending) != last or self._cut != cut or _goes_back(loop, pending):
                break
            again = pending.pop(loop.header, None)
            if again is None or (joined := state.joined(again)) == state:
                return True
            pending[loop.header] = joined
        pending.clear()
        pending.update(before)
        self._cut, self._most_rounds, self.left = cut, most_rounds, left
        return False

    def _is_left_below(self, loop: Loop) -> bool:
        below = loop.nodes - {loop.header}
        return any(edge.target not in loop.nodes for at in below for edge in self._values.leaving.get(at, ()))

    def _is_in_vain(self, loop: Loop, rounds: int, most: int | None) -> bool:
        """Whether what is followed of the nest shows that its end is not come to."""
        if rounds == 1 and loop.header == self._header and self._is_hopeless(most):
            return True
        return self._is_paced and self._is_too_far()

    def _is_too_far(self) -> bool:
        """Whether the end of the nest is surely out of reach, as its rounds so far were."""
        used = self._start - self.left
        if used * _TOLD_BY < self._most:
            return False
        part, done = 1.0, 0.0
        for rounds, most in self._done:
            part /= max(1, most)
            done += rounds * part
        return used > _TOO_FAR * self._most * min(1.0, done)

    def _is_out_of_reach(self, rounds: int, most: int) -> bool:
        """Whether all rounds of the nest are more than may be followed, as its first ``rounds`` were."""
        return (self._start - self.left) * most > rounds * self._most

    def _is_hopeless(self, rounds: int | None) -> bool:
        """Whether the first of ``rounds`` of the nest has used more than its part by far."""
        used = self._start - self.left
        return rounds is not None and used * rounds > _UNLIKELY * self._most

    def _point(self, index: int, nodes: frozenset[int], pending: dict[int, Constants]) -> None:
        values = self._values
        block = values.graph.points[index].block
        self.left -= len(block.instructions)
        if self.left <= self._end:
            raise _LeftAloneError
        accesses, needed = values.accesses.get(index, ()), self._needed[index]
        leaving = self._execution.block(block.instructions, pending.pop(index), accesses, needed)
        taken = [list(edges_taken(values, index, way)) for way in leaving]
        self._is_forked |= sum(map(len, taken)) > 1
        for loop in self._exits.get(index, ()):
            if all(edge.target in loop.nodes for edges in taken for edge in edges):
                self._decided.add(loop.header)
        for way, all_edges in zip(leaving, taken, strict=True):
            edges = [edge for edge in all_edges if edge.target in nodes]
            for number, edge in enumerate(edges):
                state = way.state if number == len(edges) - 1 else way.state.copy()
                self._is_forked |= bool(values.edges[edge].calls)  # what those do may be found anew
                for call in values.edges[edge].calls:
                    self._execution.after_call(state, self._effect(call.key), call)
                if self._passing and edge.target not in self._passing.nodes:
                    learn(state.registers, values.edges[edge].state, self._execution.overlapping)
                other = pending.get(edge.target)
                pending[edge.target] = state if other is None else other.joined(state)


def edges_taken(values: Values, index: int, way: Leaving) -> Sequence[Edge]:
    """The edges that control may take where it leaves a point in that ``way``.

    *Soundness:* all where it is not clear which. An edge that the value analysis excludes is not among them.
    """
    own = values.leaving.get(index, ())
    if not way.is_indirect:
        told = [edge for edge in own if edge.way == way.way and edge.address == way.address]
        return told or own
    away = [edge for edge in own if edge.way in _INDIRECT[way.way]]
    if isinstance(way.target, int):
        points, target = values.graph.points, way.target & ~1
        known = [e for e in away if e.target != EXIT and points[e.target].block.address == target]
        return known or away or own
    return away or own


def _goes_back(loop: Loop, pending: Collection[int]) -> bool:
    """Whether control went against the order of the parts, other than to the header."""
    return any(index in loop.nodes and index != loop.header for index in pending)


def _add(total: dict[int, int], more: Mapping[int, int], times: int) -> None:
    for index, count in more.items():
        total[index] = total.get(index, 0) + times * count
