"""From numbers to places: linear and logarithmic scales, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wcet_probe.reports.pictures.svg import SMALL_SIZE, text_width

LOGARITHMIC_FROM = 20
"""Ratio of the largest to the smallest number from which on a scale is logarithmic."""

_ROUND = (1, 2, 5, 10)
_BETWEEN_LABELS = 10


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from ``low`` to ``high`` between the places ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of ``value``."""
        low, high, value = map(self._measure, (self.low, self.high, value))
        return self.start + (self.end - self.start) * ((value - low) / (high - low) if high > low else 0.5)

    def _measure(self, value: float) -> float:
        return math.log(max(value, 1e-9)) if self.logarithmic else value


def scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale for ``values`` that are not negative: from zero, or logarithmic where they span decades."""
    found = list(values)
    least, most = min(found), max(found)
    if least > 0 and most / least >= LOGARITHMIC_FROM:
        return Scale(_round_below(least), _round_above(most), start, end, logarithmic=True)
    return Scale(0, most * 1.05 or 1, start, end)


def ticks(scale: Scale, spacing: float = 60) -> list[int]:
    """Round numbers on ``scale``, about ``spacing`` apart."""
    room = max(1, int(abs(scale.end - scale.start) / spacing))
    return _decades(scale, room) if scale.logarithmic else _steps(scale, room)


def labelled(
    scale: Scale, found: Sequence[int], written: Callable[[int], str], *, upright: bool = False
) -> list[tuple[int, str]]:
    """Of the ticks ``found`` those, from the last one back, whose labels leave room for each other."""
    shown: list[tuple[int, str]] = []
    edge = math.inf
    for value in reversed(found):
        half = SMALL_SIZE / 2 if upright else text_width(written(value), SMALL_SIZE) / 2
        place = scale.at(value) if not upright else -scale.at(value)
        if place + half <= edge:
            shown.append((value, written(value)))
            edge = place - half - (_BETWEEN_LABELS if not upright else 4)
    return shown[::-1]


def counted(value: float) -> str:
    """``value`` with commas between its thousands, as on the terminal."""
    return f"{value:,}"


def _steps(scale: Scale, room: int) -> list[int]:
    rough = max(1.0, (scale.high - scale.low) / room)
    decade = 10 ** math.floor(math.log10(rough))
    step = next(factor * decade for factor in _ROUND if factor * decade >= rough * 0.999)
    first = math.ceil(scale.low / step)
    return [number * step for number in range(first, math.floor(scale.high / step) + 1)]


def _decades(scale: Scale, room: int) -> list[int]:
    low, high = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    factors = next((f for f in ((1, 2, 5), (1, 3), (1,)) if len(f) * (high - low) <= room), (1,))
    step = max(1, math.ceil((high - low) / room)) if factors == (1,) else 1
    found = [factor * 10**exponent for exponent in range(max(0, low), high + 1, step) for factor in factors]
    return [value for value in found if scale.low * 0.999 <= value <= scale.high * 1.001]


def _round_below(value: float) -> float:
    decade = 10.0 ** math.floor(math.log10(value))
    return max(factor * decade for factor in (1, 2, 5) if factor * decade <= value)


def _round_above(value: float) -> float:
    decade = 10.0 ** math.floor(math.log10(value))
    return min(factor * decade for factor in _ROUND if factor * decade >= value)
