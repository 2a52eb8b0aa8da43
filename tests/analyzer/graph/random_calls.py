"""Random functions that call, jump to and return from each other, in words, so that tests can follow them plainly."""

from __future__ import annotations

from random import Random

from tests.analyzer.small_functions import THUMB, small_guest
from tests.support import Guest

Line = tuple[str, int]
"""``call``, ``tail``, ``branch`` and ``jump`` with a function or a line, ``add``, ``return`` and ``trap`` without."""


def random_bodies(random: Random, count: int, *, recursive: bool = True) -> list[list[Line]]:
    """Each body ends in a line that control does not fall through."""
    bodies = []
    for function in range(count):
        length, lines = random.randint(1, 4), list[Line]()
        others = range(count) if recursive else range(function + 1, count)
        for number in range(length):
            kind = random.choice(("call", "call", "branch", "add") if others else ("branch", "add"))
            to = random.choice(others) if kind == "call" else random.randrange(number + 1, length + 1)
            lines.append((kind, to))
        ends = ["return", "return", "trap", "jump"] + ["tail"] * bool(others)
        end = random.choice(ends)
        lines.append((end, random.choice(others) if end == "tail" else random.randrange(length)))
        if not recursive and end != "return":
            lines[-1] = ("return", 0)
        bodies.append(lines)
    return bodies


def assembled(bodies: list[list[Line]]) -> Guest:
    """Functions ``f0``, ``f1`` and so on, each of which saves its return address."""

    def text(number: int, line: Line) -> str:
        kind, to = line
        return (
            f"{number}{number}: "
            + {
                "call": f"bl f{to}",
                "tail": f"pop {{r4, lr}}\nb f{to}",
                "branch": f"cmp r0, #{number}\nbeq {to}{to}f",
                "jump": f"b {to}{to}b",
                "add": "adds r0, #1",
                "return": "pop {r4, pc}",
                "trap": f"b {number}{number}b",
            }[kind]
        )

    source = {
        f"f{function}": "push {r4, lr}\n" + "\n".join(text(number, line) for number, line in enumerate(lines))
        for function, lines in enumerate(bodies)
    }
    return small_guest(source, THUMB)


def lines_reached(bodies: list[list[Line]], function: int, returning: set[int]) -> set[int]:
    """The lines of a function that control comes to if the functions ``returning`` return."""
    seen, todo, lines = set[int](), [0], bodies[function]
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        kind, to = lines[number]
        if kind in {"branch", "jump"}:
            todo.append(to)
        if kind in {"branch", "add"} or (kind == "call" and to in returning):
            todo.append(number + 1)
    return seen


def plainly(bodies: list[list[Line]], entry: int) -> tuple[set[int], set[int]]:
    """The functions that may return of those that ``entry`` comes to, and all that it comes to."""
    returning = set[int]()
    while True:
        found = {
            function
            for function, lines in enumerate(bodies)
            for number in lines_reached(bodies, function, returning)
            if lines[number][0] == "return" or (lines[number][0] == "tail" and lines[number][1] in returning)
        }
        if found == returning:
            break
        returning = found
    reached, todo = set[int](), [entry]
    while todo:
        function = todo.pop()
        if function not in reached:
            reached.add(function)
            lines = bodies[function]
            todo += [
                lines[number][1]
                for number in lines_reached(bodies, function, returning)
                if lines[number][0] in {"call", "tail"}
            ]
    return returning & reached, reached
