"""HiGHS, a solver of linear programs in floating point: the only file that imports highspy.

Huangfu and Hall, "Parallelizing the dual revised simplex method", Mathematical Programming Computation 10, 2018.
Nothing that it says is believed: a basis is solved again exactly, an integer solution is checked exactly.

One thread, a fixed seed and limits that are counts: the same system gives the same answer.

Words: linear relaxation, basis (docs/explanation/glossary.md).
"""

# ruff: noqa: PLC0415  (highspy and the numpy behind it take long to import, and who observes only solves nothing)

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from wcet_probe.analyzer.ipet.exact_lp import Basis, FlowSystem

if TYPE_CHECKING:
    import highspy

_Option = bool | int | float | str

# Where it presolves an integer program, the solver may tighten bounds in small steps for ever; and a basis of a
# relaxation is wanted also where there is no optimum.
_OPTIONS: dict[str, _Option] = {
    "presolve": "off",
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 0,
    "solver": "simplex",
}
# The primal simplex method comes nearest to the optimum where loop bounds multiply up to 10**18.
_RELAXED_OPTIONS: dict[str, _Option] = {
    "simplex_strategy": 4,
    "primal_feasibility_tolerance": 1e-10,
}
# Of many constraints that are mostly slack the dual method is done forty times sooner.
_DUAL: dict[str, _Option] = {"simplex_strategy": 1}
_MANY, _TAME = 2_000, 1 << 20
_INTEGER_OPTIONS: dict[str, _Option] = {
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.5,
    "mip_feasibility_tolerance": 1e-9,
    "mip_max_nodes": 2_000,
}


def basis(system: FlowSystem) -> Basis:
    """The solver's last basis for the linear relaxation: optimal, if it says so or not, in most cases.

    Soundness: a proposal only; see `exact_lp.optimise`.
    """
    is_tame = len(system.constraints) > _MANY and max(system.magnitude.values(), default=1) < _TAME
    highs = _model(system, {**_RELAXED_OPTIONS, **(_DUAL if is_tame else {})}, integral=False)
    highs.run()
    found = highs.getBasis()
    names = [constraint.name for constraint in system.constraints]
    return Basis(_basic(system.variables, found.col_status), _basic(names, found.row_status))


def _basic(names: Iterable[str], statuses: Iterable[highspy.HighsBasisStatus]) -> frozenset[str]:
    import highspy

    basic = highspy.HighsBasisStatus.kBasic
    return frozenset(name for name, status in zip(names, statuses, strict=False) if status == basic)


def integer(system: FlowSystem, near: Mapping[str, Fraction] | None = None, distance: int = 0) -> Mapping[str, int]:
    """The solver's best integer solution, rounded; empty if it has none.

    It is looked for where no variable is more than ``distance`` from what it is in ``near``, a solution of the
    relaxation, if that is given: without an end of its range, a variable costs the solver a hundred times more.

    Soundness: a proposal only; the caller checks it against the constraints.
    """
    highs = _model(system, _INTEGER_OPTIONS, integral=True)
    if near is not None:
        around = [near.get(name, Fraction(0)) for name in system.variables]
        for index, value in enumerate(around):
            highs.changeColBounds(index, max(0, floor(value) - distance), ceil(value) + distance)
    highs.run()
    solution = highs.getSolution()
    if not solution.value_valid:
        return {}
    return {name: round(value) for name, value in zip(system.variables, solution.col_value, strict=True)}


def _model(system: FlowSystem, options: Mapping[str, _Option], *, integral: bool) -> highspy.Highs:
    """The system in the solver's terms."""
    import highspy
    import numpy as np

    place = {name: index for index, name in enumerate(system.variables)}
    # Powers of two, so that the scaling rounds nothing: a variable counts in units of its magnitude.
    units = [1 << system.magnitude.get(name, 1).bit_length() - 1 for name in system.variables]
    if integral:
        units = [1] * len(units)
    starts, indices, values, constants = [0], [], [], []
    for constraint in system.constraints:
        entries = [(place[name], units[place[name]] * value) for name, value in constraint.coefficients.items()]
        largest = max((abs(value) for _, value in entries), default=1)
        row_unit = 1 << largest.bit_length() - 1
        indices += [index for index, _ in entries]
        values += [value / row_unit for _, value in entries]
        starts.append(len(indices))
        constants.append(constraint.constant / row_unit)
    costs = [unit * system.objective.get(name, 0) for name, unit in zip(system.variables, units, strict=True)]
    cost_unit = 1 if integral else 1 << max(max(map(abs, costs)).bit_length() - 20, 0)
    equations = np.array([constraint.relation == "=" for constraint in system.constraints], dtype=bool)
    program = highspy.HighsLp()
    program.num_col_ = len(system.variables)
    program.num_row_ = len(system.constraints)
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = np.array([cost / cost_unit for cost in costs])
    program.col_lower_ = np.zeros(len(units))
    program.col_upper_ = np.full(len(units), highspy.kHighsInf)
    program.row_lower_ = np.where(equations, constants, -highspy.kHighsInf)
    program.row_upper_ = np.array(constants)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.array(starts)
    program.a_matrix_.index_ = np.array(indices)
    program.a_matrix_.value_ = np.array(values)
    if integral:
        program.integrality_ = [highspy.HighsVarType.kInteger] * len(units)
    highs: highspy.Highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {**_OPTIONS, **options}.items():
        highs.setOptionValue(name, value)
    highs.passModel(program)
    return highs
