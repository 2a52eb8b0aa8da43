"""A TOML table as people write it: keys of their types, none left unread; errors name file, key and remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from wcet_probe.errors import UsageError, unknown_name

_Value = TypeVar("_Value")
_Name = TypeVar("_Name", bound=StrEnum)


class Table:
    """A TOML table that remembers which keys were read, so that the others can be named."""

    def __init__(self, file: str, path: str, content: Mapping[str, Any]) -> None:
        self._file, self._path, self._content = file, path, content
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def error(self, key: str, remedy: str) -> UsageError:
        """The error for ``key``, with what to do."""
        return UsageError(f"{self._file}: key {self._path}{key}: {remedy}{'' if remedy.endswith(('.', '?')) else '.'}")

    def value(self, key: str, kind: type[_Value], remedy: str, default: _Value | None = None) -> _Value:
        """The value of ``key``, which must be of type ``kind`` (a bool is no int)."""
        self._read.add(key)
        if key not in self._content:
            if default is not None:
                return default
            raise self.error(key, f"is missing; {remedy}")
        value = self._content[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"cannot be {value!r}; {remedy}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty."""
        remedy = "give a text that is not empty"
        text = self.value(key, str, remedy, default)
        if not text and default is None:
            raise self.error(key, f"is empty; {remedy}")
        return text

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of texts, at least one."""
        remedy = "give an array of texts, at least one"
        texts = self.value(key, list, remedy)
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise self.error(key, f"cannot be {texts!r}; {remedy}")
        return tuple(texts)

    def optional_texts(self, key: str) -> tuple[str, ...]:
        """An array of texts, which may be empty or missing."""
        texts = self.value(key, list, "give an array of texts", [])
        if not all(isinstance(text, str) and text for text in texts):
            raise self.error(key, f"cannot be {texts!r}; give an array of texts")
        return tuple(texts)

    def truth(self, key: str) -> bool:
        """A boolean."""
        return self.value(key, bool, "give true or false")

    def number(self, key: str, minimum: int = 0, default: int | None = None) -> int:
        """A whole number of at least ``minimum``."""
        remedy = f"give a whole number of at least {minimum}"
        number = self.value(key, int, remedy, default)
        if number < minimum:
            raise self.error(key, f"cannot be {number}; {remedy}")
        return number

    def power_of_two(self, key: str, minimum: int = 1) -> int:
        """A power of two."""
        number = self.number(key, minimum)
        if number & (number - 1):
            raise self.error(key, f"cannot be {number}; give a power of two, such as {1 << number.bit_length()}")
        return number

    def choice(self, key: str, names: type[_Name], default: _Name | None = None) -> _Name:
        """One of ``names``."""
        text = self.text(key, default)
        if text not in list(names):
            raise self.error(key, str(unknown_name("value", text, (name.value for name in names))))
        return names(text)

    def table(self, key: str) -> Table:
        """A table within this one."""
        content = self.value(key, dict, f"give a table [{self._path}{key}]")
        return Table(self._file, f"{self._path}{key}.", content)

    def tables(self, key: str) -> tuple[Table, ...]:
        """An array of tables, which may be missing."""
        remedy = f"give tables [[{self._path}{key}]]"
        content = self.value(key, list, remedy, [])
        if not all(isinstance(entry, dict) for entry in content):
            raise self.error(key, f"cannot be {content!r}; {remedy}")
        return tuple(Table(self._file, f"{self._path}{key}.{i}.", entry) for i, entry in enumerate(content))

    def each(self, read: Callable[[Table, str], _Value]) -> Mapping[str, _Value]:
        """What ``read`` makes of each key; at least one key is needed."""
        if not self._content:
            raise self.error("*", "is empty; give at least one entry")
        return MappingProxyType({key: read(self, key) for key in self._content})

    def finish(self, *optional: str) -> None:
        """Refuse keys that nobody read."""
        for key in self._content:
            if key not in self._read:
                raise self.error(key, str(unknown_name("key", key, {*self._read, *optional})))
