"""Random C functions whose branches ask the same few conditions again and again, before and after changes."""

from __future__ import annotations

from random import Random

_HEAD = """typedef unsigned u;
volatile u out, in;
u kept;
__attribute__((noinline)) u mixed(u x) { if (x & 4) out = x; return in ^ x; }
"""
_DEPTH = 2
_NAMES = ("a", "b", "c", "t")


def conditional_functions(seed: int, count: int) -> str:
    """The source of functions ``f0``, ``f1`` and so on, of three arguments each."""
    draw = Random(seed)
    return _HEAD + "".join(f"u f{number}(u a, u b, u c) {{ {_Function(draw).text} }}\n" for number in range(count))


class _Function:
    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._loops = 0
        self._often = [self._condition() for _ in range(3)]
        self.text = f"u t = 0; {self._statements(depth=_DEPTH, is_in_loop=False)} return a + b + t;"

    def _name(self) -> str:
        return self._draw.choice(_NAMES)

    def _comparison(self) -> str:
        draw, name = self._draw, self._name()
        forms = (
            f"({name} & {draw.choice((1, 2, 4, 6, 8))})",
            f"({name} < {draw.randrange(12)})",
            f"((int){name} < {draw.randrange(-3, 9)})",
            f"({name} == {draw.randrange(6)})",
            f"({name} < {self._name()})",
            f"({name} != {self._name()})",
            f"(kept == {draw.randrange(3)})",
            f"(({name} >> 2) < 3)",
        )
        return draw.choice(forms)

    def _condition(self) -> str:
        one, other = self._comparison(), self._comparison()
        return self._draw.choice((one, one, one, f"({one} || {other})", f"({one} && {other})", f"!({one} || {other})"))

    def _asked(self) -> str:
        return self._draw.choice(self._often) if self._draw.random() < 0.6 else self._condition()

    def _statements(self, *, depth: int, is_in_loop: bool) -> str:
        count = self._draw.randint(2, 5) if depth < _DEPTH else self._draw.randint(10, 16)
        return " ".join(self._statement(depth, is_in_loop=is_in_loop) for _ in range(count))

    def _statement(self, depth: int, *, is_in_loop: bool) -> str:
        draw, name = self._draw, self._draw.choice("abc")
        forms = [lambda: self._choice(depth, is_in_loop=is_in_loop)] * 9
        forms += [
            lambda: f"t = {self._condition()};",
            lambda: f"{name} {draw.choice(('+=', '^=', '=', '>>='))} {draw.choice(('1', '3', 'in', 't'))};",
            lambda: f"kept = {draw.choice(('a', 'in', 'kept + 1', '2'))};",
            lambda: f"{name} = mixed({self._name()});",
            lambda: f"a = {self._asked()} ? {name} : {draw.choice(('b', '7', 'c + 1'))};",
        ]
        forms += [lambda: self._loop(depth)] * bool(depth)
        forms += [lambda: f"if ({self._asked()}) {draw.choice(('break', 'continue'))};"] * is_in_loop
        return draw.choice(forms)()

    def _choice(self, depth: int, *, is_in_loop: bool) -> str:
        is_nested = depth and self._draw.random() < 0.3
        inner = self._statements(depth=depth - 1, is_in_loop=is_in_loop) if is_nested else self._store()
        return f"if ({self._asked()}) {{ {inner} }} else {{ {self._store()} }}"

    def _loop(self, depth: int) -> str:
        self._loops += 1
        count, rounds = f"i{self._loops}", self._draw.randint(2, 5)
        inner = self._statements(depth=depth - 1, is_in_loop=True)
        return f"for (u {count} = 0; {count} < {rounds}; {count}++) {{ {inner} if ({count} & 1) out = 1; }}"

    def _store(self) -> str:
        return f"out = {self._draw.randrange(99)};" + " out = 5;" * self._draw.randrange(3)
