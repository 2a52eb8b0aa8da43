"""Values as keys of a memo by what they are, not by what is in them: a program's code is too large to compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, eq=False)
class Same(Generic[_Value]):
    """``value`` as a key that equals itself only. It lives as long as the key; it must not change."""

    value: _Value

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is a key of the very same value."""
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
