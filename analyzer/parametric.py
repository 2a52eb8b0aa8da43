"""Parametric bounds: a linear combination of the flow facts' expressions, found exactly and checked exactly.

Words: bound, flow fact (docs/explanation/glossary.md).

*Soundness:* the formula is no proof: each of its ``samples`` was proved, and the formula meets all of them. Between and
beyond them it is a conjecture; the optimum of IPET is piecewise linear in the loop bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.expressions import evaluate, parse
from wcet_probe.analyzer.prepared import Bounded
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.model.proof import Formula, Origin

_LEAST_CHECKS = 2
"""Samples that must be left to check a formula on, beside those that it was made from."""


def parametric_bound(
    request: BoundRequest, parameter: str, samples: Sequence[int], progress: Callable[[str], None] = lambda _: None
) -> Formula | None:
    """The bound of ``request.entry`` in instructions, as a formula in the facts' expressions.

    Args:
        request: what is to be proved.
        parameter: which parameter of the run varies, such as ``H``.
        samples: its values.
        progress: is told in words what is being done.

    Returns:
        the formula, or None where no linear combination meets all samples.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: there is no such function, or a flow fact is wrong.

    *Soundness:* as said of the module.
    """
    prepared = prepare(request, progress)
    stages = [prepared.bounded({**request.parameters, parameter: value}) for value in samples]
    bounds = [stage.solved("instructions", counted=False).solution.certified for stage in stages]
    pairs = tuple(zip(samples, bounds, strict=True))
    drivers = _drivers(stages)
    for count in range(len(drivers) + 1):
        found = _fit(drivers[:count], bounds)
        if found is not None:
            constant, *factors = found
            terms = tuple((text, factor) for (text, _), factor in zip(drivers[:count], factors, strict=True) if factor)
            return Formula(parameter, constant, terms, pairs)
    return None


def _drivers(stages: Sequence[Bounded]) -> list[tuple[str, list[int]]]:
    """The expressions that are used and vary, with their values for each sample; the largest values first."""
    texts: dict[str, None] = {}
    for stage in stages:
        texts |= {loop.expression: None for loop in stage.loops.loops if loop.origin is Origin.FACT}
        texts |= dict.fromkeys(stage.loops.total_expressions)
        texts |= dict.fromkeys(stage.asserted.expressions)
    drivers: dict[tuple[int, ...], str] = {}
    for text in texts:
        values = tuple(evaluate(parse(text), stage.parameters) for stage in stages)
        if len(set(values)) > 1:
            drivers.setdefault(values, text)
    return sorted(((text, list(values)) for values, text in drivers.items()), key=lambda item: (-max(item[1]), item[0]))


def _fit(drivers: Sequence[tuple[str, Sequence[int]]], bounds: Sequence[int]) -> list[Fraction] | None:
    """Constant and factors that give each of ``bounds`` exactly; None where there are none, or too few samples."""
    columns = [[1] * len(bounds), *(values for _, values in drivers)]
    if len(bounds) < len(columns) + _LEAST_CHECKS:
        return None
    rows = [[Fraction(column[i]) for column in columns] + [Fraction(bounds[i])] for i in range(len(bounds))]
    pivots: list[int] = []
    for column in range(len(columns)):
        pivot = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[len(pivots)], rows[pivot] = rows[pivot], rows[len(pivots)]
        top = [value / rows[len(pivots)][column] for value in rows[len(pivots)]]
        rows = [
            top if i == len(pivots) else [value - row[column] * t for value, t in zip(row, top, strict=True)]
            for i, row in enumerate(rows)
        ]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    solution = [Fraction(0)] * len(columns)
    for row, column in zip(rows, pivots, strict=False):
        solution[column] = row[-1]
    return solution
