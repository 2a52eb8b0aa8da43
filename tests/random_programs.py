# ruff: noqa: E501  the templates of statements are read best in one line each
"""Random C functions with loops of all kinds, for a search for bounds that are wrong.

Nothing makes a loop end: where a bound is proved, it must.
"""

from __future__ import annotations

import random

HEAD = """typedef unsigned u;
typedef int s;
u g[16];
u h[16];
static const u table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
"""
PACKED_HEAD = """typedef struct __attribute__((packed)) { unsigned char k; u v; unsigned short w; u x; } Q;
Q q[12];
"""
"""Words in static data that lie across lines, at addresses that are known."""
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 10, 15, 16, 17, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE)
_VARIABLES = ("a", "b", "c", "n", "m")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def source(seed: int, functions: int) -> str:
    """``functions`` functions ``f0`` … of three words, and what they call."""
    draw = random.Random(seed)
    return HEAD + "".join(Function(draw, number).text() for number in range(functions))


def arguments(draw: random.Random) -> tuple[int, ...]:
    """Three words, small ones or corner cases mostly."""
    return tuple(draw.choice((draw.choice(NUMBERS), draw.randrange(40), draw.getrandbits(32))) for _ in range(3))


def packed_source(seed: int, functions: int) -> str:
    """As `source`, with accesses to the members of packed structures, in static data and on the stack."""
    draw = random.Random(f"packed {seed}")
    return HEAD + PACKED_HEAD + "".join(_PackedFunction(draw, number).text() for number in range(functions))


class Function:
    """One function: its text is drawn anew by each of its methods."""

    def __init__(self, draw: random.Random, number: int) -> None:
        self._draw, self._number = draw, number
        self._counters: list[str] = []
        self._made = 0
        self._helpers: list[str] = []

    def text(self) -> str:
        body = self._block(draws=self._draw.randint(2, 4), depth=0)
        names = ", ".join(f"i{number} = 0" for number in range(max(1, self._made)))
        head = f"u f{self._number}(u a, u n, u m) {{ u b = a, c = 0, {names};"
        return "".join(self._helpers) + f"{head} {body} g[0] = a + b + c; return a ^ b + c; }}\n"

    def _of(self, *choices):
        return self._draw.choice(choices)

    def _value(self) -> str:
        names = [*_VARIABLES, *self._counters]
        return self._of(
            self._of(*names), self._of(*names), str(self._draw.randrange(20)), f"{self._of(*NUMBERS):#x}u",
            f"g[{self._of(*names)} & 15]", f"table[{self._of(*names)} & 7]",
            f"({self._of(*names)} & {self._of(1, 3, 7, 15, 31)})",
        )  # fmt: skip

    def _expression(self) -> str:
        operator = self._of("+", "-", "+", "-", "*", "&", "|", "^", ">>", "<<")
        second = self._value() if operator not in ("<<", ">>") else str(self._draw.randrange(1, 8))
        return self._of(
            self._value(),
            f"({self._value()} {operator} {second})",
            f"{self._condition()} ? {self._value()} : {self._value()}",
        )

    def _condition(self) -> str:
        left, right = self._value(), self._of(self._value(), str(self._draw.randrange(20)))
        cast = self._of("", "", "(s)")
        simple = f"{cast}({left}) {self._of(*_COMPARISONS)} {cast}({right})"
        if self._draw.random() < 0.15:
            return f"({simple} {self._of('&&', '||')} {self._condition()})"
        return f"({simple})"

    def _assignment(self) -> str:
        target = self._of("a", "b", "c", "b", "c", f"g[{self._value()} & 15]", f"h[{self._value()} & 15]", "n", "m")
        if self._counters and self._draw.random() < 0.12:
            counter = self._of(*self._counters)
            return f"{counter} {self._of('+=', '-=', '>>=', '^=')} {self._draw.randint(1, 4)};"
        return f"{target} {self._of('=', '=', '+=', '^=')} {self._expression()};"

    def _block(self, draws: int, depth: int) -> str:
        return " ".join(self._statement(depth) for _ in range(draws))

    def _statement(self, depth: int) -> str:  # noqa: PLR0911  one for each kind
        kind = self._draw.random()
        if depth < 3 and kind < 0.32:
            return self._loop(depth)
        if depth < 4 and kind < 0.58:
            other = (
                f" else {{ {self._block(self._draw.randint(1, 2), depth + 1)} }}" if self._draw.random() < 0.5 else ""
            )
            return f"if {self._condition()} {{ {self._block(self._draw.randint(1, 2), depth + 1)} }}{other}"
        if kind < 0.62 and self._counters:
            return f"if {self._condition()} {self._of('break', 'continue')};"
        if kind < 0.64:
            return f"if {self._condition()} return c;"
        if kind < 0.68 and depth < 3:
            cases = "".join(
                f"case {case}: {self._block(1, depth + 1)} break; " for case in range(self._draw.randint(2, 5))
            )
            return f"switch ({self._value()} & 7) {{ {cases} }}".replace("continue;", "break;")
        if kind < 0.72 and depth < 3 and len(self._helpers) < 2:
            return self._call()
        return self._assignment()

    def _call(self) -> str:
        name = f"t{self._number}_{len(self._helpers)}"
        limit = self._of("x & 7", "x & 15", "4", "9")
        step = self._of("++", "++", "+= 2")
        self._helpers.append(
            f"__attribute__((noinline)) static u {name}(u x, u y) {{ u z = y; for (u k = 0; k < ({limit}); k {step})"
            f" {{ h[k & 15] += z; if (z == {self._draw.randrange(9)}) {self._of('break', 'z += x', 'return z')}; z ^= h[(z + k) & 15]; }}"
            f" return {self._of('z', 'x', 'z & 7', 'y + 1')}; }}\n"
        )
        return f"{self._of('a', 'b', 'c')} = {name}({self._value()}, {self._value()});"

    def _loop(self, depth: int) -> str:
        i = f"i{self._made}"
        self._made += 1
        limit = self._of(
            str(self._draw.randrange(1, 20)), f"({self._of('n', 'm', 'a', 'b')} & {self._of(3, 7, 15)})", self._value(),
            f"{self._of(*NUMBERS):#x}u", *([f"{self._of(*self._counters)}"] * 3 if self._counters else []),
        )  # fmt: skip
        start = self._of("0", "0", "1", self._value(), *self._counters[-1:])
        step = self._of(1, 1, 1, 2, 3, 4, 5)
        cast = self._of("", "", "(s)")
        self._counters.append(i)
        body = self._block(self._draw.randint(1, 3), depth + 1)
        guard = f"if {self._condition()} " if self._draw.random() < 0.2 else ""
        text = self._of(
            f"for ({i} = {start}; {cast}{i} < {cast}({limit}); {i} += {step}) {{ {body} }}",
            f"for ({i} = {start}; {cast}{i} <= {cast}({limit}); {i} += {step}) {{ {body} }}",
            f"for ({i} = {limit}; {cast}{i} > {cast}({start}); {i} -= {step}) {{ {body} }}",
            f"for ({i} = {limit}; {cast}{i} >= {cast}({start}); {i} -= {step}) {{ {body} }}",
            f"for ({i} = {start}; {i} != ({limit}); {i} += {step}) {{ {body} }}",
            f"for ({i} = {limit}; {i} != ({start}); {i} -= {step}) {{ {body} }}",
            f"{i} = {limit}; while ({i}) {{ {body} {i} >>= {self._of(1, 1, 2, 3)}; }}",
            f"{i} = {limit}; while ({i}) {{ {body} {i} &= {i} - 1; }}",
            f"{i} = {limit}; do {{ {body} }} while (--{i});",
            f"{i} = {start}; do {{ {body} {i} += {step}; }} while ({cast}{i} < {cast}({limit}));",
            f"{i} = {start}; while {self._condition()} {{ {body} {i}++; if ({i} {self._of('>', '==', '>=')} {limit}) break; }}",
            f"for ({i} = {start}; {i} < {limit};) {{ {body} if {self._condition()} {i} += {step}; else {i} += {self._of(1, step, 2)}; }}",
            f"for ({i} = {start};; {i}++) {{ if {self._condition()} break; if ({i} >= {limit}) break; {body} }}",
        )  # fmt: skip
        self._counters.pop()
        return f"{guard}{{ {text} }}"


class _PackedFunction(Function):
    def _member(self) -> str:
        index = self._of(str(self._draw.randrange(8)), f"{self._of(*_VARIABLES)} & 7", f"{self._of(*_VARIABLES)} & 3")
        return f"{self._of('q', 'q', 'q', 'z')}[{index}].{self._of('v', 'x', 'x', 'w', 'k')}"

    def _value(self) -> str:
        return self._member() if self._draw.random() < 0.4 else super()._value()

    def _assignment(self) -> str:
        if self._draw.random() < 0.4:
            return f"{self._member()} {self._of('=', '+=', '^=')} {self._expression()};"
        return super()._assignment()

    def _statement(self, depth: int) -> str:
        if depth < 3 and self._draw.random() < 0.15:
            first, last, step = self._draw.randrange(3), self._draw.randrange(3, 12), self._of(1, 1, 2)
            member, other = (self._of("v", "x", "w") for _ in range(2))
            body = self._of(f"c += p->{member};", f"c ^= p->{member}; p->{other} = c;", f"p->{member} = c + m;")
            return f"for (Q *p = q + {first}; p < q + {last}; p += {step}) {{ {body} }}"
        return super()._statement(depth)

    def text(self) -> str:
        return super().text().replace("{ u b = a,", "{ volatile Q z[8]; z[a & 7].x = z[m & 7].v = a; u b = a,", 1)
