"""Questions to an SMT solver: no type of z3 leaves this file; `other_solvers` gives it texts alone.

Words: SMT, verification condition (docs/explanation/glossary.md).

*Soundness:* what is said to hold was refuted in its negation (``unsat``) by z3, which is believed; no proof of it is
kept. An answer ``unknown``, be it for the limit, counts as not shown. The limit is on z3's own count of its work
(``rlimit``), so that the same questions in the same order have the same answers; only where z3 does not count is it on
processor time, far above what any question took that was answered. Values of the unknowns of which all holds that is
assumed refute what is false of them; they show nothing to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, Node, negation
from wcet_probe.analyzer.deduction.processor_time import limited
from wcet_probe.analyzer.deduction.smt_lib import Assumed, Event, Follows, FollowsOfBits, Further, Scope
from wcet_probe.errors import UsageError

WORK_LIMIT = 20_000_000
"""Most units of z3's work for one question, several seconds."""
TIME_LIMIT_S = 60
"""Most processor time for one question, in s, for some of z3's loops do not count their work."""
_SEEDS = 3
"""So many solvers that were asked nothing yet are asked what was left open, each with another order of its choices."""
_SHARE_OF_FIRST = 10
"""The solver that was asked before is given this part of the work: nearly all that it answers it answers within it."""
_TIME_OF_FIRST_S = 5
"""As `TIME_LIMIT_S`, of that solver: some ten times what its share of the work takes."""
_MOST_MODELS = 8
"""So many values of all unknowns that refuted something are kept: one of them refutes most of what does not hold."""
_WORD_BITS = 32
_NONE = "no values"
_NUMBER = "assumed "


def _z3() -> Any:  # noqa: ANN401  z3 has no types
    try:
        import z3  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415  an extra, which may be absent
    except ImportError as error:
        raise UsageError(
            "a deduction needs the SMT solver z3, which is not installed: pip install 'wcet-probe[deduction]'."
        ) from error
    return z3


class Questions:
    """What is assumed so far, and questions whether something follows.

    Attributes:
        asked: how many questions were asked.
        shown: what was assumed, and what was shown to follow, in order.

    Args:
        work_limit: units of z3's work for a question.
        with_cores: whether `core` is to be asked.

    Raises:
        UsageError: z3 is not installed.
    """

    def __init__(self, work_limit: int = WORK_LIMIT, *, with_cores: bool = False) -> None:
        self._z3 = _z3()
        # One of its own: z3 goes by numbers of its expressions, and those of others are let go at no certain time.
        self._context = self._z3.Context()
        self._limit = work_limit
        self._solver = self._z3.SimpleSolver(ctx=self._context)
        self._solver.set("ctrl_c", False)
        self._solver.set("rlimit", -(-work_limit // _SHARE_OF_FIRST))
        self._solver.set("smt.relevancy", 0)  # with all instances added, questions take half of the time without it
        self._tracked: Any = self._limited(self._z3.SimpleSolver(ctx=self._context)) if with_cores else None
        self._had: set[Node] = set()  # that cores had
        self._names: list[Any] = []  # of what is assumed, each told to `_tracked` by its own
        self._models: list[Any] = []  # values of which all holds that is assumed
        self._outer: list[list[Any]] = []
        self._assumed: list[dict[Node, None]] = [{}]  # in their order
        self._made: dict[Node, Any] = {}
        self._made_bits: dict[Node, Any] = {}
        self._bit_answers: dict[tuple[frozenset[Node], Node], Any] = {}
        self._bit_models: list[Any] = []
        self.asked = 0
        self.shown: list[Event] = []

    @property
    def work(self) -> int:
        """Units of z3's work for all that was asked so far."""
        return int(self._solver.statistics().get_key_value("rlimit count"))

    def assume(self, formula: Node) -> None:
        """Take ``formula`` for granted until the next `leave`; what was taken already is not told to z3 again."""
        if formula is TRUE or any(formula in own for own in self._assumed):
            return
        self._assumed[-1][formula] = None
        self.shown.append(Assumed(formula))
        assumed = self._translate(formula)
        self._solver.add(assumed)
        if self._tracked is not None:
            number = sum(map(len, self._assumed)) - 1
            if number == len(self._names):
                self._names.append(self._z3.Bool(f"{_NUMBER}{number}", self._context))
            self._tracked.add(self._z3.Implies(self._names[number], assumed))
        self._models = [one for one in self._models if self._is_true(one, assumed)]

    def enter(self) -> None:
        """Begin a scope of assumptions."""
        self._solver.push()
        if self._tracked is not None:
            self._tracked.push()
        self.shown.append(Scope(begins=True))
        self._outer.append(self._models)
        self._assumed.append({})

    def leave(self) -> None:
        """Forget what was assumed since `enter`; values of which that held as well stay values of the rest."""
        self._solver.pop()
        if self._tracked is not None:
            self._tracked.pop()
        self.shown.append(Scope(begins=False))
        self._assumed.pop()
        outer = self._outer.pop()
        self._models = [*outer, *(one for one in self._models if one not in outer)][-_MOST_MODELS:]

    def holds(self, formula: Node) -> bool:
        """Whether ``formula`` was shown to follow from what is assumed."""
        self.asked += 1
        negated = self._translate(negation(formula))
        if any(self._is_true(one, negated) for one in self._models):
            return False
        return self._is_refuted(formula, negated)

    def _is_refuted(self, formula: Node, *negated: Any) -> bool:  # noqa: ANN401
        """Whether ``formula`` follows, as there are no values of which it is ``negated``."""
        is_shown = bool(self._answered(*negated) == self._z3.unsat)
        if is_shown:
            self.shown.append(Follows(formula))
        return is_shown

    def _answered(self, *assumptions: Any) -> Any:  # noqa: ANN401
        """What is found of all that is assumed and ``assumptions``, if need be by solvers that were asked nothing yet.

        Values that are found are kept, as all that is assumed holds of them.
        """
        solver = self._solver
        answer = self._answer(solver, *assumptions)
        for seed in range(_SEEDS):
            if answer != self._z3.unknown:
                break
            solver = self._afresh(seed)
            answer = self._answer(solver, *assumptions)
        if answer == self._z3.sat:
            self._keep(solver.model())
        return answer

    def _keep(self, model: Any) -> None:  # noqa: ANN401
        self._models = [*self._models, model][-_MOST_MODELS:]

    def _is_true(self, model: Any, formula: Any) -> bool:  # noqa: ANN401
        """Whether ``formula`` holds of the values of ``model``; what it gives no value has any one, always the same."""
        return bool(self._z3.is_true(model.eval(formula, model_completion=True)))

    def _limited(self, solver: Any) -> Any:  # noqa: ANN401
        """``solver``, with a limit of work for each question; who interrupts the program interrupts not only it."""
        solver.set("ctrl_c", False)
        solver.set("rlimit", self._limit)
        return solver

    def _answer(self, solver: Any, *assumptions: Any) -> Any:  # noqa: ANN401
        """What ``solver`` says of what it was told and ``assumptions``; nothing is known where it takes too long."""
        with limited(self._context.interrupt, _TIME_OF_FIRST_S if solver is self._solver else TIME_LIMIT_S):
            return solver.check(*assumptions)

    def _afresh(self, seed: int) -> Any:  # noqa: ANN401
        """A solver with the same assumptions that was asked nothing yet, as what was learnt before may mislead."""
        solver = self._limited(self._z3.SimpleSolver(ctx=self._context))
        solver.set("smt.random_seed", seed)
        solver.add(self._solver.assertions())
        return solver

    def is_contradiction(self) -> bool:
        """Whether what is assumed was shown to be never true."""
        self.asked += 1
        if self._models:
            return False
        return self._is_refuted(FALSE)

    def is_possible(self) -> bool:
        """Whether values were found of which all holds that is assumed: it is then no contradiction."""
        self.asked += 1
        return bool(self._models or self._answered() == self._z3.sat)

    def core(self, formula: Node) -> tuple[int, ...]:
        """Numbers of what is assumed that ``formula`` follows from, of which it was shown that it follows from all.

        Asked are first those that it had before, of other questions, as ways have much in common, and then all. The
        outermost scope's first one is 0. All are told where that does not end.
        """
        known = [one for own in self._assumed for one in own]
        negated = self._translate(negation(formula))
        used = self._used(known, [number for number, one in enumerate(known) if one in self._had], negated)
        if used is None:
            used = self._used(known, None, negated)
        while used is not None:
            fewer = self._used(known, used, negated)
            if fewer is None or len(fewer) == len(used):
                break
            used = fewer
        found = tuple(range(len(known)) if used is None else used)
        self._had.update(known[number] for number in found)
        return found

    def _used(self, known: Sequence[Node], numbers: Sequence[int] | None, negated: Any) -> list[int] | None:  # noqa: ANN401
        """Which ``numbers`` of what is ``known``, of these or of all, a solver used to refute ``negated``, if any."""
        names, solver = self._names[: len(known)], self._tracked
        if numbers is not None:
            names = [self._names[number] for number in numbers]
            solver = self._limited(self._z3.SimpleSolver(ctx=self._context))
            for name, number in zip(names, numbers, strict=True):
                solver.add(self._z3.Implies(name, self._translate(known[number])))
        if self._answer(solver, *names, negated) != self._z3.unsat:
            return None
        told = (one.decl().name() for one in solver.unsat_core())
        return sorted(int(one.removeprefix(_NUMBER)) for one in told if one.startswith(_NUMBER))

    def bits_hold(
        self,
        premises: Iterable[Node],
        formula: Node,
        more: Further = lambda _: (),
    ) -> bool:
        """Whether ``formula`` of words as bits was shown to follow from ``premises``, by themselves or with ``more``.

        Parameters:
            more: further premises. It is given what words are where the premises hold and ``formula`` does not, and
                returns of those premises that hold in truth some that are false there; none where there are none.
        """
        self.asked += 1
        known = tuple(dict.fromkeys(premises))
        while True:
            model = self._bits_against(known, formula)
            if not isinstance(model, self._z3.ModelRef):
                return model is _NONE
            further = tuple(more(partial(self._number_in, model)))
            if not further:
                return False
            known = (*known, *further)

    def _bits_against(self, premises: tuple[Node, ...], formula: Node) -> Any:  # noqa: ANN401
        """Values of which ``premises`` hold and ``formula`` does not, `_NONE` where there are none, or None.

        Nothing else is assumed of bits, so that an answer to the same question stays what it is.
        """
        key = frozenset(premises), formula
        if key in self._bit_answers:
            return self._bit_answers[key]
        asked = [*map(self._bits, premises), self._z3.Not(self._bits(formula))]
        found = next((one for one in self._bit_models if all(self._is_true(one, each) for each in asked)), None)
        if found is None:
            solver = self._limited(self._z3.SolverFor("QF_BV", ctx=self._context))
            solver.add(asked)
            answer = self._answer(solver)
            if answer == self._z3.sat:
                found = solver.model()
                self._bit_models = [found, *self._bit_models][:_MOST_MODELS]
            elif answer == self._z3.unsat:
                found = _NONE
                self.shown.append(FollowsOfBits(premises, formula))
        self._bit_answers[key] = found
        return found

    def _number_in(self, model: Any, word: Node) -> int:  # noqa: ANN401
        """What ``word`` is of the values of ``model``."""
        return int(model.eval(self._bits(word), model_completion=True).as_long())

    def _translate(self, node: Node) -> Any:  # noqa: ANN401
        found = self._made.get(node)
        if found is None:
            found = self._made[node] = self._translated(node)
        return found

    def _translated(self, node: Node) -> Any:  # noqa: ANN401, C901, PLR0911  a case for each operation
        z3, of, context = self._z3, self._translate, self._context
        match node.operation, node.arguments:
            case "int", (value,):
                return z3.IntVal(value, context)
            case "bool", (value,):
                return z3.BoolVal(value, context)
            case "unknown", (name,):
                return z3.Int(name, context) if node.sort == "int" else z3.Bool(name, context)
            case "apply", (name, *arguments):
                integer = z3.IntSort(context)
                result = integer if node.sort == "int" else z3.BoolSort(context)
                return z3.Function(name, *[integer] * len(arguments), result)(*map(of, arguments))
            case "sum", (constant, parts):
                summands = [of(one) if factor == 1 else factor * of(one) for one, factor in parts]
                return z3.Sum([*summands, z3.IntVal(constant, context)])
            case "choice", (formula, one, other):
                return z3.If(of(formula), of(one), of(other))
            case "equal", (one, other):
                return of(one) == of(other)
            case "at most", (difference,):
                return of(difference) <= 0
            case "not", (formula,):
                return z3.Not(of(formula))
            case "all", formulas:
                return z3.And(*map(of, formulas))
        raise AssertionError(node.operation)

    def _bits(self, node: Node) -> Any:  # noqa: ANN401
        """``node`` over words of 32 bits, as `analyzer.deduction.word_terms.WordTerms.bits` makes it."""
        found = self._made_bits.get(node)
        if found is None:
            found = self._made_bits[node] = self._bits_of(node)
        return found

    def _bits_of(self, node: Node) -> Any:  # noqa: ANN401, PLR0911  a case for each operation
        z3, context = self._z3, self._context
        match node.operation, node.arguments:
            case "bits constant", (value,):
                return z3.BitVecVal(value, _WORD_BITS, context)
            case "bits unknown", (name,):
                return z3.BitVec(name, _WORD_BITS, context)
            case "bool", (value,):
                return z3.BoolVal(value, context)
            case "unknown", (name,):
                return z3.Bool(name, context)
            case "not", (formula,):
                return z3.Not(self._bits(formula))
            case "all", formulas:
                return z3.And(*(self._bits(one) for one in formulas))
            case "equal", (one, other):
                return self._bits(one) == self._bits(other)
            case name, arguments:
                operation = _BITS[name]
                return operation(z3, *(self._bits(one) for one in arguments))
        raise AssertionError(node.operation)


def _leading_zeros(z3: Any, word: Any) -> Any:  # noqa: ANN401
    found = z3.BitVecVal(_WORD_BITS, _WORD_BITS, word.ctx)
    for bit in range(_WORD_BITS):
        is_set = z3.Extract(bit, bit, word) == 1
        found = z3.If(is_set, z3.BitVecVal(_WORD_BITS - 1 - bit, _WORD_BITS, word.ctx), found)
    return found


_BITS: dict[str, Callable[..., Any]] = {
    "bits INT_ADD": lambda _, a, b: a + b,
    "bits INT_MULT": lambda _, a, b: a * b,
    "bits INT_AND": lambda _, a, b: a & b,
    "bits INT_OR": lambda _, a, b: a | b,
    "bits INT_XOR": lambda _, a, b: a ^ b,
    "bits INT_NEGATE": lambda _, a: ~a,
    "bits INT_LEFT": lambda _, a, b: a << b,
    "bits INT_RIGHT": lambda z3, a, b: z3.LShR(a, b),
    "bits LZCOUNT": _leading_zeros,
    "bits REVERSED": lambda z3, a: z3.Concat(*(z3.Extract(bit, bit, a) for bit in range(_WORD_BITS))),
    "bits choice": lambda z3, c, a, b: z3.If(c, a, b),
    "bits equal": lambda _, a, b: a == b,
    "bits less": lambda z3, a, b: z3.ULT(a, b),
    "bits signed less": lambda _, a, b: a < b,
}
