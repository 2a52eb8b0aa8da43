"""A table or figure of a paper as it is found here: cells, curves, and what is claimed of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from wcet_probe.answer.papers.laboratory import Laboratory

Cell = int | str


@dataclass(frozen=True, slots=True)
class Shape:
    """A claim of the paper as a check: whether it ``holds`` here, and the numbers that say so.

    ``known_wrong``: the paper contradicts itself, or arithmetic it; where such a claim does not hold, it is refuted.
    """

    name: str
    holds: bool
    why: str
    known_wrong: bool = False

    @property
    def verdict(self) -> str:
        """``holds``, ``does not hold`` or ``refuted``."""
        return "holds" if self.holds else "refuted" if self.known_wrong else "does not hold"


@dataclass(frozen=True, slots=True)
class Curve:
    """A row of values of a picture; ``paper``: as the paper has them, where it gives numbers."""

    label: str
    points: tuple[tuple[float, float], ...]
    paper: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a picture shows.

    Attributes:
        across: what goes to the right, with its unit; of bars, whose names ``groups`` has in the order of x = 0, 1 …,
            empty.
        up: what goes up, with its unit.
        curves: the values.
        groups: names of the places on the axis, for bars.
    """

    across: str
    up: str
    curves: tuple[Curve, ...]
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or figure.

    Attributes:
        name: ``T2``, ``F4`` …, as the paper numbers it.
        title: what it shows.
        header: of the columns; "paper" in a title marks the paper's own numbers.
        rows: cells, whole numbers or texts.
        shapes: what is claimed of it.
        notes: what is to be known: how a figure was read, what differs.
        drawing: the picture; of a table that has none, its first columns of numbers are bars.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shapes: tuple[Shape, ...] = ()
    notes: tuple[str, ...] = ()
    drawing: Drawing | None = None


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: how to cite it, its tables and figures by name, and the core that it is measured on unless told."""

    name: str
    citation: str
    exhibits: Mapping[str, Callable[[Laboratory], Exhibit]]
    target: str = "cortex-m4"
    with_caches: bool = False


def bars(up: str, groups: tuple[str, ...], values: Mapping[str, tuple[float, ...]], paper: str = "paper") -> Drawing:
    """Bars for each of ``groups``, by label; labels that begin with ``paper`` are the paper's."""
    curves = tuple(
        Curve(label, tuple((float(x), float(value)) for x, value in enumerate(row)), label.startswith(paper))
        for label, row in values.items()
    )
    return Drawing("", up, curves, groups)


def rounded(value: Fraction, places: int = 1) -> str:
    """``value`` as a decimal text, rounded half up."""
    scaled = int(value * 10**places + Fraction(1, 2)) if value >= 0 else -int(-value * 10**places + Fraction(1, 2))
    sign, digits = ("-" if scaled < 0 else ""), f"{abs(scaled):0{places + 1}d}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def ordered(name: str, values: Mapping[str, int | Fraction]) -> Shape:
    """The claim that ``values`` rise in the order in which they stand."""
    items = list(values.items())
    wrong = [f"{a} {_shown(x)} ≥ {b} {_shown(y)}" for (a, x), (b, y) in pairwise(items) if x >= y]
    row = ", ".join(f"{label} {_shown(value)}" for label, value in items)
    return Shape(name, not wrong, row if not wrong else f"{'; '.join(wrong)} (all: {row})")


def _shown(value: int | Fraction) -> str:
    return f"{value:,}" if isinstance(value, int) else rounded(value, 2)
