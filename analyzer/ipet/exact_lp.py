"""Linear programs in exact arithmetic: the revised simplex method with fractions, from a given basis on.

A solver in floating point proposes a basis. Here its equations are solved exactly; if the basis is optimal exactly,
which is the rule, that is all. Else a few pivots of the simplex method mend it.
Dantzig, "Linear Programming and Extensions", 1963; Bland, "New finite pivoting rules for the simplex method", 1977.

Words: linear relaxation, basis, simplex method (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Literal

from wcet_probe.errors import AnalysisError

Number = int | Fraction
Vector = dict[int, Number]
"""A sparse vector by row or column: what is not there is 0."""

_MOST_PIVOTS = 2_000


@dataclass(frozen=True, slots=True)
class Constraint:
    """Demands: the sum of ``coefficients`` times variables stands in ``relation`` to ``constant``."""

    name: str
    coefficients: Mapping[str, int]
    relation: Literal["<=", "="]
    constant: int


@dataclass(frozen=True, slots=True)
class FlowSystem:
    """Maximise the sum of ``objective`` over variables that are whole numbers and at least 0, under constraints.

    Attributes:
        magnitude: about how large variables become, where that is more than 1: helps floating point, proves nothing.
    """

    variables: tuple[str, ...]
    objective: Mapping[str, int]
    constraints: tuple[Constraint, ...]
    magnitude: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Basis:
    """The names of the variables in a basis, and of the constraints whose slacks are in it."""

    variables: frozenset[str]
    slacks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Vertex:
    """The result of `optimise`.

    Attributes:
        primal: the variables that are not 0.
        dual: a multiplier for each constraint. It is feasible: at least 0 for ``<=``, and for each variable the
            multipliers times its coefficients are in sum at least its objective.
        ray: where it is not empty, these variables can grow together without end, and the dual is not feasible.
        contradicting: where it is not empty, no vector meets these constraints.
    """

    primal: Mapping[str, Fraction]
    dual: Mapping[str, Fraction]
    ray: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()


def optimise(system: FlowSystem, proposed: Basis) -> Vertex:
    """An optimal vertex of the linear relaxation.

    Primal pivots, on whose way the negative values of an infeasible basis are taken as 0, make the dual vector
    feasible, for it does not depend on the constants; then dual pivots make the primal vector feasible.

    Args:
        system: the program.
        proposed: a basis; what is too much in it is left out, what it lacks is filled up by slacks.

    Raises:
        AnalysisError: the proposed basis is so far from optimal that the pivots take too long.

    Soundness: if ``ray`` is empty, ``dual`` is feasible exactly: primal pivots end only when no column is violated, and
    dual pivots keep that. Each is computed from the original coefficients.
    """
    tableau = _Tableau(system, proposed)
    ray = tableau.make_dual_feasible()
    contradicting = () if ray else tableau.make_primal_feasible()
    return Vertex(tableau.primal(), tableau.named_dual(), ray, contradicting)


class _Tableau:
    """A basis on its way to the optimum. Columns are the variables, then a slack for each constraint."""

    def __init__(self, system: FlowSystem, proposed: Basis) -> None:
        variables, constraints = system.variables, system.constraints
        place = {name: index for index, name in enumerate(variables)}
        self._columns: list[Vector] = [{} for _ in variables]
        for row, constraint in enumerate(constraints):
            for name, coefficient in constraint.coefficients.items():
                if coefficient:
                    self._columns[place[name]][row] = coefficient
            self._columns.append({row: 1})
        self._names = (*variables, *(constraint.name for constraint in constraints))
        self._variables = len(variables)
        self._gain = [system.objective.get(name, 0) for name in variables] + [0] * len(constraints)
        self._constants: Vector = {row: constraint.constant for row, constraint in enumerate(constraints)}
        self._fixed = {len(variables) + row for row, constraint in enumerate(constraints) if constraint.relation == "="}
        self._pivots = 0
        chosen = [name in proposed.variables for name in variables]
        chosen += [constraint.name in proposed.slacks for constraint in constraints]
        self._factorise({column for column, is_basic in enumerate(chosen) if is_basic})

    def _factorise(self, basis: Iterable[int]) -> None:
        self._pivots += 1
        if self._pivots > _MOST_PIVOTS:
            raise AnalysisError("the counts are too large for the solver: make the loop bounds or totals smaller.")
        self._factors = _Factors(self._columns, len(self._constants), basis)
        self._dual = self._factors.solve_transposed({column: self._gain[column] for column in self._factors.basic})

    def _exchange(self, leaving: int, entering: int) -> None:
        self._factorise((self._factors.basic - {leaving}) | {entering})

    def _lack(self, column: int) -> Number:
        """What the dual vector lacks to pay for the column: the reduced cost."""
        return self._gain[column] - _product(self._columns[column], self._dual)

    def _free(self) -> Iterable[int]:
        """The columns that may enter the basis, in the order that Bland's rule takes them."""
        basic = self._factors.basic
        return (column for column in range(len(self._columns)) if column not in self._fixed and column not in basic)

    def _most_lacking(self) -> int | None:
        """The column that lacks most, by Dantzig's rule; after many pivots by Bland's, which never cycles."""
        lacking = ((self._lack(column), -column) for column in self._free())
        wanting = (one for one in lacking if one[0] > 0)
        found = max(wanting, default=None) if self._pivots < _MOST_PIVOTS // 2 else next(wanting, None)
        return None if found is None else -found[1]

    def make_dual_feasible(self) -> tuple[str, ...]:
        """Pivot until the dual vector pays for each column; else the names of an unbounded ray."""
        values = {
            column: 0 if column in self._fixed else max(value, 0)
            for column, value in self._factors.solve(self._constants).items()
        }
        while (entering := self._most_lacking()) is not None:
            change = self._factors.solve(self._columns[entering])
            # The slacks of equations may not move at all.
            ratios = [(Fraction(-1), column) for column in change if column in self._fixed] or [
                (Fraction(values.get(column, 0)) / value, column) for column, value in change.items() if value > 0
            ]
            if not ratios:
                growing = {entering, *(column for column, value in change.items() if value < 0)}
                return tuple(self._names[column] for column in sorted(growing) if column < self._variables)
            leaving = min(ratios)[1]
            step = _quotient(values.get(leaving, 0), change[leaving])
            for column, value in change.items():
                values[column] = values.get(column, 0) - step * value
            values[entering] = step
            self._exchange(leaving, entering)
        return ()

    def make_primal_feasible(self) -> tuple[str, ...]:
        """Pivot until no basic value is negative, with a dual vector that stays feasible; else who contradicts."""
        while True:
            values = sorted(self._factors.solve(self._constants).items())
            wrong = [(column, value) for column, value in values if value < 0 or column in self._fixed]
            if not wrong:
                return ()
            leaving, value = wrong[0]
            weights = self._factors.solve_transposed({leaving: 1 if value > 0 else -1})
            ratios = []
            for column in self._free():
                change = _product(self._columns[column], weights)
                if change > 0:
                    ratios.append((-Fraction(self._lack(column)) / change, column))
            if not ratios:
                return tuple(self._names[self._variables + row] for row in sorted(weights) if weights[row])
            self._exchange(leaving, min(ratios)[1])

    def primal(self) -> dict[str, Fraction]:
        """The variables that are not 0."""
        values = self._factors.solve(self._constants)
        return {self._names[column]: Fraction(value) for column, value in values.items() if column < self._variables}

    def named_dual(self) -> dict[str, Fraction]:
        """A multiplier for each constraint."""
        return {self._names[self._variables + row]: Fraction(self._dual.get(row, 0)) for row in self._constants}


class _Factors:
    """A basis matrix as a product of elimination steps and a triangular matrix (Gauss).

    Pivots are columns with a single entry as long as there are any, which in a flow graph is nearly always; then the
    sparsest row and column (Markowitz). Dependent columns are dropped, and slacks take their place.

    Attributes:
        basic: the columns of the basis.
    """

    def __init__(self, columns: list[Vector], row_count: int, basis: Iterable[int]) -> None:
        self._rows: dict[int, Vector] = {row: {} for row in range(row_count)}
        self._holders: dict[int, set[int]] = {}
        for column in sorted(basis):
            self._holders[column] = set(columns[column])
            for row, value in columns[column].items():
                self._rows[row][column] = value
        self._steps: list[tuple[int, int, Number]] = []
        self._pivots: list[tuple[int, int, Number, Vector]] = []
        self._single = deque(self._holders)
        self._by_size: list[tuple[int, int]] | None = None
        while True:
            while self._single:
                column = self._single.popleft()
                if len(self._holders.get(column, ())) == 1:
                    self._pivot(next(iter(self._holders[column])), column)
            if self._by_size is None:
                self._by_size = [(len(entries), row) for row, entries in self._rows.items() if entries]
                heapify(self._by_size)
            sparsest = self._sparsest()
            if sparsest is None:
                break
            own = self._rows[sparsest]
            self._pivot(sparsest, min(own, key=lambda column: (len(self._holders[column]), column)))
        first_slack = len(columns) - row_count
        self._pivots += [(row, first_slack + row, 1, {}) for row in self._rows]
        self.basic = frozenset(column for _, column, _, _ in self._pivots)

    def _sparsest(self) -> int | None:
        """The row with the fewest entries, the first of those; None where none has any."""
        while self._by_size:
            size, row = heappop(self._by_size)
            if len(self._rows.get(row, ())) == size:  # else it is gone, or was told anew
                return row
        return None

    def _pivot(self, row: int, column: int) -> None:
        """Eliminate the column from all rows that are left but ``row``."""
        entries = self._rows.pop(row)
        for other in entries:
            self._holders[other].discard(row)
        pivot = entries.pop(column)
        for target in sorted(self._holders.pop(column)):
            goal = self._rows[target]
            factor = _quotient(goal.pop(column), pivot)
            self._steps.append((target, row, factor))
            for other, value in entries.items():
                goal[other] = goal.get(other, 0) - factor * value
                self._holders[other].add(target)
                if not goal[other]:
                    del goal[other]
                    self._holders[other].discard(target)
            if goal and self._by_size is not None:
                heappush(self._by_size, (len(goal), target))
        self._single.extend(other for other in entries if len(self._holders[other]) == 1)
        self._pivots.append((row, column, pivot, entries))

    def solve(self, right: Vector) -> Vector:
        """The values of the basic columns whose combination is ``right``, but zeros."""
        right = dict(right)
        for target, row, factor in self._steps:
            if row in right:
                right[target] = right.get(target, 0) - factor * right[row]
        values: Vector = {}
        for row, column, pivot, entries in reversed(self._pivots):
            rest = right.get(row, 0) - sum(value * values.get(other, 0) for other, value in entries.items())
            if rest:
                values[column] = _quotient(rest, pivot)
        return values

    def solve_transposed(self, gain: Vector) -> Vector:
        """The multipliers of the rows by which each basic column comes to its ``gain``."""
        gain = dict(gain)
        multipliers: Vector = {}
        for row, column, pivot, entries in self._pivots:
            if gain.get(column, 0):
                multipliers[row] = _quotient(gain[column], pivot)
                for other, value in entries.items():
                    gain[other] = gain.get(other, 0) - value * multipliers[row]
        for target, row, factor in reversed(self._steps):
            if target in multipliers:
                multipliers[row] = multipliers.get(row, 0) - factor * multipliers[target]
        return multipliers


def _product(left: Vector, right: Vector) -> Number:
    return sum(value * right[row] for row, value in left.items() if row in right)


def _quotient(dividend: Number, divisor: Number) -> Number:
    """The exact quotient, as an integer where it is one: integers are much faster than fractions."""
    if isinstance(dividend, int) and isinstance(divisor, int) and not dividend % divisor:
        return dividend // divisor
    quotient = Fraction(dividend) / divisor
    return quotient.numerator if quotient.denominator == 1 else quotient
