"""The little language of ``--run``: calls and stores that set a firmware up and call the bounded function.

Grammar::

    SCRIPT   = STATEMENT { (";" | end of line) STATEMENT }      (``#`` begins a comment)
    STATEMENT = CALL | STORE
    CALL     = NAME "(" [ VALUE { "," VALUE } ] ")"
    STORE    = ("u8" | "u16" | "u32") "[" VALUE "]" "=" VALUE { "," VALUE }
    VALUE    = NUMBER | "&" NAME [ "+" NUMBER ] | "result"

A number is decimal or ``0x…``, and may be negative; ``&NAME`` is the address of a symbol, of a Thumb function with its
lowest bit set, as a pointer to it has; ``&scratch`` is that of memory which nothing else uses, unless there is a symbol
of that name; ``result`` is what the call before returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wcet_probe.errors import UsageError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

SCRATCH, RESULT = "scratch", "result"
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_PLACE = re.compile(r"&\s*([A-Za-z_.$][\w.$]*)\s*(?:\+\s*(0[xX][0-9a-fA-F]+|[0-9]+))?")
_CALL = re.compile(r"([A-Za-z_.$][\w.$]*)\s*\(([^()]*)\)")
_STORE = re.compile(r"u(8|16|32)\s*\[([^\[\]]*)\]\s*=(.*)")
_WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Value:
    """A number; or an offset from the ``symbol``, or the ``result`` of the call before."""

    number: int = 0
    symbol: str = ""
    is_result: bool = False


@dataclass(frozen=True, slots=True)
class CallStatement:
    """A call; ``text`` is what was written."""

    text: str
    function: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class StoreStatement:
    """Stores of ``values``, each of ``size_bytes``, from ``place`` on."""

    text: str
    size_bytes: int
    place: Value
    values: tuple[Value, ...]


Statement = CallStatement | StoreStatement


def parse_script(text: str, where: str = "--run") -> tuple[Statement, ...]:
    """The statements of ``text``.

    Raises:
        UsageError: one is none; the message names it.
    """
    parts = [part for line in text.splitlines() for part in line.partition("#")[0].split(";")]
    found = tuple(_statement(" ".join(part.split()), where) for part in parts if part.strip())
    if not found:
        raise UsageError(f"{where} has no call; write it like --run 'init(); f(3, &buffer)'.")
    return found


def parse_place(text: str, where: str) -> tuple[Value, int]:
    """Place and bytes of ``&NAME[+OFFSET]:BYTES``.

    Raises:
        UsageError: ``text`` is no such thing.
    """
    place, _, size = text.rpartition(":")
    if not _PLACE.fullmatch(place.strip()) or not size.strip().isdecimal() or not int(size):
        raise UsageError(f"{where} {text!r} is no place with its bytes; write it like {where} '&buffer:64'.")
    return _value(place.strip(), where), int(size)


def named_words(image: Image, scratch_address: int) -> dict[str, int]:
    """What ``&NAME`` stands for, by name: addresses, of Thumb functions with the lowest bit set."""
    thumb = int(image.isa is Isa.THUMB)
    words = {name: one.address | thumb if one.is_function else one.address for name, one in image.symbols.items()}
    return {SCRATCH: scratch_address} | words


def resolved(value: Value, symbols: Mapping[str, int], result: int, refuse: Callable[[str], UsageError]) -> int:
    """The word that ``value`` stands for.

    Parameters:
        symbols: as `named_words` gives them.
        result: of the call before.
        refuse: makes the error for a name that is no symbol.
    """
    if value.is_result:
        return result
    if value.symbol and value.symbol not in symbols:
        raise refuse(value.symbol)
    return (value.number + (symbols[value.symbol] if value.symbol else 0)) % _WORD


def value_text(value: Value) -> str:
    """``value`` as it is written."""
    if value.is_result:
        return RESULT
    if not value.symbol:
        return str(value.number)
    return f"&{value.symbol} + {value.number}" if value.number else f"&{value.symbol}"


def _statement(text: str, where: str) -> Statement:
    if call := _CALL.fullmatch(text):
        words = [word for word in call[2].split(",") if call[2].strip()]
        return CallStatement(text, call[1], tuple(_value(word.strip(), where) for word in words))
    if store := _STORE.fullmatch(text):
        values = tuple(_value(word.strip(), where) for word in store[3].split(","))
        return StoreStatement(text, int(store[1]) // 8, _value(store[2].strip(), where), values)
    raise UsageError(
        f"{where}: {text!r} is neither a call like f(3, &buffer) nor a store like u32[&buffer + 4] = 1, 2."
    )


def _value(text: str, where: str) -> Value:
    if _NUMBER.fullmatch(text):
        return Value(int(text, 0) if not re.fullmatch(r"-?0\d+", text) else int(text))
    if text == RESULT:
        return Value(is_result=True)
    if place := _PLACE.fullmatch(text):
        return Value(int(place[2], 0) if place[2] else 0, place[1])
    raise UsageError(f"{where}: {text!r} is no number, no address like &buffer + 4, and not result.")
