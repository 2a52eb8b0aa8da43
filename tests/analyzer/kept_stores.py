"""Random functions that store to and load from a few words of the stack and of static data, in loops and branches.

They call functions that save registers, and load them again where they return, under a condition or at their end.
"""

from __future__ import annotations

import random

_DATA = """
volatile unsigned far[24] __attribute__((aligned(32))), wide[256];
volatile unsigned *volatile where = wide;
static __attribute__((noinline)) unsigned inner(unsigned a) { return far[a & 7] + a; }
"""
"""What is loaded from ``where`` may point anywhere, as far as values tell."""


def storing(seed: int, functions: int) -> str:
    """C of so many functions ``f0``, ``f1``, ... of two arguments, with one array of static data."""
    draw, made = random.Random(seed), [_DATA]
    made += (_callee(draw, number) for number in range(_CALLEES))
    for number in range(functions):
        body = "\n".join(_statement(draw, 3) for _ in range(draw.randint(2, 5)))
        made.append(
            f"unsigned f{number}(unsigned a, unsigned b) {{\n"
            f"volatile unsigned own[{draw.choice((4, 8, 16))}];\nunsigned s = b;\n{body}\nreturn s;\n}}"
        )
    return "\n".join(made)


_CALLEES = 3


def _callee(draw: random.Random, number: int) -> str:
    """A function that returns early under a condition."""
    early = f"if ((a >> {draw.randrange(4)} ^ s) & {draw.choice((1, 3))}) return s + {number};"
    body = [early, _statement(draw, 1), "s += inner(a);"]
    draw.shuffle(body)
    text = "\n".join(body)
    return (
        f"static __attribute__((noinline)) unsigned h{number}(unsigned a, unsigned s) {{\n"
        f"volatile unsigned own[{draw.choice((4, 8))}];\n{text}\nreturn inner(s) + a;\n}}"
    )


def _place(draw: random.Random) -> str:
    known = draw.choice(("own", "own", "far")), draw.randrange(4)
    anywhere = "where[s & 255]" if draw.random() < 0.3 else f"far[{draw.randrange(24)}]"
    return draw.choice((f"{known[0]}[{known[1]}]", anywhere, f"{known[0]}[s & 3]"))


def _statement(draw: random.Random, depth: int) -> str:
    simple = "store", "load"
    nested = (*simple, *simple, "loop", "if", "call") if depth > 1 else (*simple, "loop")
    kind = draw.choice(nested if depth else simple)
    if kind == "store":
        return f"{_place(draw)} = s + {draw.randrange(9)};"
    if kind == "load":
        return f"s += {_place(draw)} * {draw.randrange(1, 9)};"
    if kind == "call":
        return f"s = h{draw.randrange(_CALLEES)}(a + s, s);"
    inner = "\n".join(_statement(draw, depth - 1) for _ in range(draw.randint(1, 4)))
    if kind == "if":
        other = _statement(draw, 0)
        return f"if ((a >> {draw.randrange(8)} ^ s) & 1) {{\n{inner}\n}} else {{ {other} }}"
    name = f"i{depth}_{draw.randrange(1 << 20)}"
    return f"for (unsigned {name} = 0; {name} < {draw.randint(2, 6)}; {name}++) {{\n{inner}\n}}"
