# SPDX-License-Identifier: 0BSD
"""A function of Python of the lines that a block of code is, without what it computes for nobody.

Most instructions of Thumb set flags that the next ones set again. A line that only gives a register or a variable a
value is left out where each way on gives it another one before it is read.

*Soundness:* what is left out calls nothing, and what it would have computed is never read. So a run without it is one
with it, but where the computation itself would have ended the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

Quick = Callable[[str, int, bool], str | None]
"""What an access of a timing class, of so many bytes, that stores or not does besides where it is aligned, as Python.

None of one that memory has to look at.
"""

_ASSIGNED = re.compile(r"(R\[[0-9]+\]|[a-z][a-z0-9]*) = (.*)")
_NAMES = re.compile(r"R\[[0-9]+\]|[a-z][a-z0-9_]*")
_CALLS = re.compile(r"\w\(")
_LOAD = re.compile(
    r"(?P<blank> *)(?P<before>[a-zR].*?)load\((?P<place>[^,]+), (?P<size>[124]), '(?P<kind>\w+)'\)(?P<rest>[^,]*)"
)
_STORE = re.compile(
    r"(?P<blank> *)store\((?P<place>[^,]+), (?P<size>[124]), (?P<before>\w+), '(?P<kind>\w+)'\)(?P<rest>)"
)
_ROUNDS = 1000
"""So often a block that leads to itself is executed before somebody asks how long the run is."""
_WAYS = re.compile(r"([0-9]+)(?: if .* else ([0-9]+))?")


def successors(following: str) -> tuple[int, ...]:
    """The addresses that ``following`` may be, which tells what is executed next; none where they are not told."""
    found = _WAYS.fullmatch(following)
    return tuple(int(one) for one in found.groups() if one is not None) if found else ()


def needless_before(lines: Sequence[str], following: str, stack_pointer: int) -> frozenset[str]:
    """The registers that a block, of these ``lines``, writes before it reads them."""
    return _without_needless(lines, following, (), stack_pointer)[1]


def function_of(
    address: int | None,
    text: tuple[Sequence[str], str],
    needless: Iterable[str],
    stack_pointer: int,
    quick: Quick,
) -> str:
    """The source of the function ``block``, which returns what is executed next.

    One that leads to itself is executed again so many times as ``again`` counts, and then returns where it goes.

    Args:
        address: of the block; None where it is executed once only.
        text: its lines, and what is executed next.
        needless: the registers that nobody reads behind it.
        stack_pointer: the register that stores read besides.
        quick: see `Quick`.
    """
    lines, following = text
    kept, _ = _without_needless(lines, following, needless, stack_pointer)
    body = [one for line in kept for one in _accessed(line, quick)]
    if address not in successors(following):
        return "\n ".join(["def block():", *body, f"return {following}"])
    loop = [*body, f"t = {following}", f"if t != {address}: return t", "again[0] += 1"]
    ends = ["again[0] -= 1", f"return {address}"]
    return "\n ".join(["def block():", f"for _ in range({_ROUNDS}):", *(f" {one}" for one in loop), *ends])


def _accessed(line: str, quick: Quick) -> list[str]:
    """``line``; if it is a ``quick`` load or store, what that does where the memory at the address is a known word."""
    found = _LOAD.fullmatch(line) or _STORE.fullmatch(line)
    is_store = found is not None and found.re is _STORE
    besides = quick(found["kind"], int(found["size"]), is_store) if found is not None else None
    if found is None or besides is None or (is_store and found["size"] != "4"):
        return [line]
    blank, place, size, kind, before, rest = found.group("blank", "place", "size", "kind", "before", "rest")
    is_aligned = "type(at) is int" + (f" and not at & {int(size) - 1}" if size != "1" else "")
    if is_store:
        test = [f"if {is_aligned} and at >> 2 in stored:"]
        own, other = f"words[at >> 2] = {before}", f"store(at, {size}, {before}, {kind!r})"
    else:
        test = [f"held = words.get(at >> 2) if {is_aligned} else None", "if type(held) is int:"]
        part = "held" if size == "4" else f"(held >> shifts[{size}][at & 3] & {(1 << 8 * int(size)) - 1})"
        own, other = f"{before}{part}{rest}", f"{before}load(at, {size}, {kind!r}){rest}"
    lines = [f"at = {place}", *test, *([f" {besides}"] if besides else []), f" {own}", "else:", f" {other}"]
    return [blank + one for one in lines]


def _without_needless(
    lines: Sequence[str], following: str, needless: Iterable[str], stack_pointer: int
) -> tuple[list[str], frozenset[str]]:
    """``lines`` without those that compute what nobody reads, and the registers that are needless before them."""
    dead, kept = set(needless), list[str]()
    read = set(_NAMES.findall(following))
    dead -= read
    variables = {one for one in read if not one.startswith("R")}
    for line in reversed(lines):
        found, names = _ASSIGNED.fullmatch(line), set(_NAMES.findall(line))
        if found is not None:
            target, value = found.groups()
            is_register = target.startswith("R")
            is_needless = target in dead if is_register else target not in variables
            if is_needless and not _CALLS.search(value):
                continue
            names = set(_NAMES.findall(value))
            if is_register:
                dead.add(target)
            else:
                variables.discard(target)
        if "return" in names:
            dead.clear()
        dead -= names
        if "load" in names or "store" in names:
            dead.discard(f"R[{stack_pointer}]")
        variables |= names
        kept.append(line)
    return kept[::-1], frozenset(dead)
