# SPDX-License-Identifier: 0BSD
"""Names of what is computed from names: sums of multiples, which are equal however they were computed, and others.

A sum is called by what it consists of: ``s3+s7*-1`` is the symbol s3 less the symbol s7, modulo 2**32, and two sums of
the same are one name. What else is computed is ``t`` and a number, in the order in which the checker comes to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice, product

from wcet_probe.certificate.values.numbers import Value, bare, constant, signed

_MOST_PARTS = 8
_MOST_NAMES = 4
_PART = re.compile(r"([^+*]+)(?:\*(-?[1-9][0-9]*))?")

Form = Mapping[str, int]
"""How often a sum has each name, modulo 2**32, between -2**31 and 2**31."""


class Terms:
    """The terms of one certificate.

    Attributes:
        linear: by name, what a sum consists of.
    """

    def __init__(self, symbols: Collection[str], sums: Iterable[str] = ()) -> None:
        """``symbols`` are those of the certificate; ``sums`` are names of sums that it speaks of."""
        self._symbols, self._numbers = symbols, dict[str, int]()
        self._parts: dict[str, frozenset[str]] = {}
        self.linear: dict[str, Form] = {}
        for text in sums:
            self._named(form_of_name(text))

    def symbols_of(self, base: str) -> frozenset[str] | None:
        """The symbols that a name is made of; None where something else is in it."""
        if base in self._symbols:
            return frozenset({base})
        if base not in self._parts and base in self.linear:
            self._settle(base, self.linear[base])
        return self._parts.get(base)

    def _settle(self, name: str, parts: Iterable[str]) -> None:
        symbols = [self.symbols_of(part) for part in parts]
        if None not in symbols:
            self._parts[name] = frozenset().union(*(own for own in symbols if own is not None))

    def sum_of(self, values: Iterable[tuple[Value, int]]) -> Value | None:
        """The name of a sum of values, each times a factor; None if one of them has none, or nothing is left."""
        form, low = Counter[str](), 0
        for value, factor in ((bare(value), factor) for value, factor in values):
            if not is_named(value):
                return None
            low += factor * value.low
            base = value.base.removeprefix("@")
            for part, times in {} if value.is_number else self.linear.get(base, {base: 1}).items():
                form[part] += factor * times
        name = self._named(form)
        return None if name is None else Value(f"@{name}", low, low, 0)

    def shifted(self, value: Value, kind: str, bits: int) -> Value | None:
        """The name of a value that is shifted by a constant."""
        if kind == "lsl" and value.is_number:
            return constant(value.low << min(bits, 32)) if value.is_constant else None
        if kind == "lsl":
            return self.sum_of([(value, 1 << min(bits, 32))])
        return self.other(f"{kind} {text_of(value)} {bits}", [value]) if kind in {"lsr", "asr", "ror"} else None

    def other(self, text: str, values: Sequence[Value]) -> Value | None:
        """The name of what is computed from ``values`` as ``text`` says; None if one of them has none."""
        if not all(map(is_named, values)):
            return None
        name = f"t{self._numbers.setdefault(text, len(self._numbers))}"
        self._settle(name, [bare(value).base.removeprefix("@") for value in values if not value.is_number])
        return Value(f"@{name}", 0, 0, 0)

    def behind(
        self, base: str, begins: Collection[str], values: Mapping[str, Value]
    ) -> list[tuple[str, int]]:  # fmt: skip
        """Names of a sum behind an edge, each with what is to be added to offsets.

        Args:
            base: the name of the sum before the edge.
            begins: the symbols that begin anew on it.
            values: of these, by names before it, where they are known.
        """
        form, found = self.linear[base], dict[tuple[str, int], None]()
        choices = [self._instead(part, begins, values) for part in form]
        for chosen in islice(product(*choices), _MOST_NAMES):
            own = self.sum_of((one, times) for one, times in zip(chosen, form.values(), strict=True))
            if own is not None:
                found[own.base.removeprefix("@"), own.low] = None
        found.pop((base, 0), None)
        return list(found)

    def _instead(self, part: str, begins: Collection[str], values: Mapping[str, Value]) -> list[Value]:
        """What a name is behind an edge: itself, or what is left of a sum of it that a symbol begins with there."""
        found = [Value(f"@{part}", 0, 0, 0)] if self._stays(part, begins) else []
        for symbol, value in values.items():
            own = value.base.removeprefix("@")
            form = self.linear.get(own, {own: 1})
            factor = form.get(part, 0) if value.base.startswith("@") else 0
            others = {one: times for one, times in form.items() if one != part}
            if factor in {1, -1} and all(self._stays(one, begins) for one in others):
                terms = [(Value(f"@{one}", 0, 0, 0), -factor * times) for one, times in others.items()]
                begun = Value(f"@{symbol}", -value.low, -value.low, 0)
                instead = self.sum_of([(begun, factor), *terms])
                found += [] if instead is None else [instead]
        return found

    def _stays(self, name: str, begins: Collection[str]) -> bool:
        """Whether a name has one value before an edge and behind it."""
        symbols = self.symbols_of(name)
        return symbols is not None and symbols.isdisjoint(begins)

    def _named(self, form: Form) -> str | None:
        """The name of a sum, which is known from now on; None of one of nothing, or of too much."""
        own = _normal(form)
        if not own:
            return None
        name = _text(own)
        if own != {name: 1}:
            self.linear[name] = own
        return name


def is_sum(name: str, symbols: Collection[str]) -> bool:
    """Whether ``name`` is that of a sum of ``symbols``, as it is written."""
    form = _normal(form_of_name(name))
    return name not in symbols and bool(form) and form.keys() <= set(symbols) and _text(form) == name


def form_of_name(text: str) -> dict[str, int]:
    """What the name of a sum says that it consists of; nothing where it is no such name."""
    found = [_PART.fullmatch(part) for part in text.split("+")]
    factors = {match[1]: int(match[2] or 1) for match in found if match is not None}
    return factors if len(factors) == len(found) else {}


def name_of_sum(form: Form) -> str:
    """The name of a sum; empty for one of nothing, or of too much."""
    return _text(_normal(form))


def _normal(form: Form) -> dict[str, int]:
    """A sum in the one way that it is written; nothing if it is of nothing, or of too much."""
    factors = {part: signed(times) for part, times in sorted(form.items())}
    own = {part: times for part, times in factors.items() if times}
    return own if len(own) <= _MOST_PARTS else {}


def _text(form: Form) -> str:
    return "+".join(part if times == 1 else f"{part}*{times}" for part, times in form.items())


def is_named(value: Value) -> bool:
    """Whether a value is a number that is known, or a name and a constant."""
    return value.is_constant and (value.base.startswith("@") or value.is_number)


def text_of(value: Value) -> str:
    """A value for the text of a computation."""
    return f"{bare(value).base}+{value.low}"
