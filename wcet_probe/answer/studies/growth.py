"""How a worst case grows with the heap: samples, the formula behind them, and whether a claimed complexity holds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Shape(StrEnum):
    """Growth of a cost with the heap size H, slowest first."""

    CONSTANT = "constant"
    LOGARITHMIC = "logarithmic"
    SQUARE_ROOT = "square root"
    LINEAR = "linear"
    QUADRATIC = "quadratic"


_BASIS: dict[Shape, Callable[[float], float]] = {
    Shape.CONSTANT: lambda _: 0.0,
    Shape.LOGARITHMIC: math.log2,
    Shape.SQUARE_ROOT: math.sqrt,
    Shape.LINEAR: lambda h: h,
    Shape.QUADRATIC: lambda h: h * h,
}

_EXPONENT_BELOW = {
    Shape.LOGARITHMIC: 0.3,
    Shape.SQUARE_ROOT: 0.75,
    Shape.LINEAR: 1.5,
    Shape.QUADRATIC: math.inf,
}
"""A shape is recognised by the exponent of H at the large end; between two shapes, half-way and a little."""

_CONSTANT_WITHIN = 0.02
"""Spread, as a share of the mean, below which samples count as constant: other decisions at the heap's edge differ."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Instructions of the worst state on one heap, with the value of the scenario's cost driver there."""

    heap_bytes: int
    instructions: int
    driver_value: int | None


@dataclass(frozen=True, slots=True)
class Growth:
    """What the samples show.

    Attributes:
        samples: in order of heap size.
        shape: the slowest growth that explains the samples.
        formula: instructions as a formula of the driver or of H, for people.
        exact: whether the formula gives every sample exactly, in integers.
        claim: the claimed complexity, as the manifest states it; empty if it states none.
        claimed_shape: what the claim means; None without one.
        holds: whether the samples grow no faster than claimed; None without a claim.
    """

    samples: tuple[Sample, ...]
    shape: Shape
    formula: str
    exact: bool
    claim: str
    claimed_shape: Shape | None
    holds: bool | None


def growth(samples: Sequence[Sample], driver: str, claim: str) -> Growth:
    """Fit ``samples`` and hold the result against ``claim``.

    Parameters:
        samples: at least three, of growing heaps.
        driver: the scenario's closed form of its cost driver; empty where the cost is constant.
        claim: a complexity such as ``O(1)``, ``O(log2(H/M))``, ``O(H/2M)``, ``O(H^2)``; empty if there is none.
    """
    shape = _shape(samples)
    exact = _exact_formula(samples, driver)
    claimed = shape_of_claim(claim) if claim else None
    order = list(Shape)
    return Growth(
        samples=tuple(samples),
        shape=shape,
        formula=exact or _fitted_formula(samples, shape),
        exact=exact is not None,
        claim=claim,
        claimed_shape=claimed,
        holds=None if claimed is None else order.index(shape) <= order.index(claimed),
    )


def shape_of_claim(claim: str) -> Shape:
    """The growth that a complexity in O notation claims."""
    text = claim.replace(" ", "").lower()
    if re.search(r"\^2|²|\*\*2", text):
        return Shape.QUADRATIC
    if "log" in text:
        return Shape.LOGARITHMIC
    if "sqrt" in text or "√" in text:
        return Shape.SQUARE_ROOT
    # What names neither the heap nor the number of its blocks does not grow with them: O(1), O(page / M).
    return Shape.LINEAR if re.search(r"(?<![a-z])[hn](?![a-z])", text) else Shape.CONSTANT


def _shape(samples: Sequence[Sample]) -> Shape:
    """The shape at the large end: by the exponent of H between the last two heaps, constant if the spread is small."""
    counts = [sample.instructions for sample in samples]
    if max(counts) - min(counts) <= _CONSTANT_WITHIN * sum(counts) / len(counts):
        return Shape.CONSTANT
    before, last = samples[-2:]
    exponent = math.log(last.instructions / before.instructions) / math.log(last.heap_bytes / before.heap_bytes)
    return next(shape for shape, limit in _EXPONENT_BELOW.items() if exponent < limit)


def _line(samples: Sequence[Sample], shape: Shape) -> tuple[float, float]:
    """Least squares of ``instructions = a + b * basis(H)``."""
    basis = _BASIS[shape]
    xs, ys = [basis(s.heap_bytes) for s in samples], [s.instructions for s in samples]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    b = slope / spread if spread else 0.0
    return mean_y - b * mean_x, b


def _exact_formula(samples: Sequence[Sample], driver: str) -> str | None:
    """``a``, ``a + b*d`` or ``a + b*d + c*d^2`` through every sample exactly, or None."""
    first = samples[0].instructions
    if all(sample.instructions == first for sample in samples):
        return f"instructions = {first}"
    points = {s.driver_value: s.instructions for s in samples if s.driver_value is not None}
    if not driver or len(points) < len(samples):
        return None
    for degree in (1, 2):
        coefficients = _interpolated(points, degree)
        if coefficients and all(_value(coefficients, d) == count for d, count in points.items()):
            terms = ["", "d", "d²"]
            parts = [
                str(c) if not term else term if c == 1 else f"{c}·{term}"
                for c, term in zip(coefficients, terms, strict=False)
                if c
            ]
            return f"instructions = {' + '.join(parts).replace('+ -', '- ')} with {driver.replace(' = ', ' d = ', 1)}"
    return None


def _interpolated(points: dict[int, int], degree: int) -> list[Fraction]:
    """Coefficients, lowest first, of the polynomial through the first ``degree + 1`` points; a check needs one more."""
    chosen = sorted(points.items())[: degree + 1]
    if len(points) <= degree + 1:
        return []
    coefficients = [Fraction(0)] * (degree + 1)
    for x, y in chosen:
        basis, scale = [Fraction(1)], Fraction(1)
        for other, _ in chosen:
            if other != x:
                basis = [
                    low - other * high for low, high in zip([Fraction(0), *basis], [*basis, Fraction(0)], strict=True)
                ]
                scale *= x - other
        coefficients = [c + y * b / scale for c, b in zip(coefficients, basis, strict=True)]
    return coefficients


def _value(coefficients: Sequence[Fraction], x: int) -> Fraction:
    return sum((c * x**power for power, c in enumerate(coefficients)), Fraction(0))


def _fitted_formula(samples: Sequence[Sample], shape: Shape) -> str:
    """A line through the large half of the heaps: what comes below a threshold would only bend it."""
    large = samples[-max(3, len(samples) // 2) :]
    a, b = _line(large, shape)
    if shape is Shape.CONSTANT:
        counts = [sample.instructions for sample in samples]
        return f"instructions between {min(counts)} and {max(counts)}"
    term = {"logarithmic": "log2(H)", "square root": "sqrt(H)", "linear": "H", "quadratic": "H²"}[shape.value]
    return f"instructions ≈ {a:.4g} + {b:.4g}·{term} from H = {large[0].heap_bytes} on"
