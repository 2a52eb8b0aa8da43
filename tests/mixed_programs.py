# ruff: noqa: E501  the templates of statements are read best in one line each
"""Random C functions with what firmware has besides loops: 64-bit numbers, division, pointers, tables, structures.

Arrays stand on the stack and in static data, and a pointer may lead to either; structures go by value; callees take
pointers into their caller's frame; calls go through constant tables of functions; switches have many cases.
"""

from __future__ import annotations

import random

from tests.random_programs import HEAD, Function

MIXED_HEAD = """typedef unsigned long long w;
typedef long long sw;
typedef struct { u a; unsigned short b; signed char c; } P;
typedef struct { u v[8]; P p; } R;
static R rs[4];
static w wide[8];
static unsigned char bytes[32];
static signed short shorts[16];
static const signed short odd[6] = {-3, 9, 100, -1, 7, 2};
typedef u (*F)(u, u);
static u s0(u x, u y) { return x + (y & 3); }
static u s1(u x, u y) { u z = 0; for (u k = 0; k < (x & 7); k++) z += y ^ k; return z; }
static u s2(u x, u y) { h[x & 15] += y; return h[y & 15]; }
static const F calls[3] = {s0, s1, s2};
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n) {
  volatile unsigned char *t = to; const volatile unsigned char *f = from;
  for (__SIZE_TYPE__ k = 0; k < n; k++) t[k] = f[k];
  return to;
}
void *memset(void *to, int value, __SIZE_TYPE__ n) {
  volatile unsigned char *t = to;
  for (__SIZE_TYPE__ k = 0; k < n; k++) t[k] = value;
  return to;
}
"""
_LOCALS = "u z[12] = {3, 1}; unsigned char y[9] = {0}; R r = {{1, 2, 3}}; P o = {5, 6, 7}; w v = a; u *p = z + 2;"


def mixed_source(seed: int, functions: int) -> str:
    """``functions`` functions ``f0`` … of three words, and what they call; a library for division may be needed."""
    draw = random.Random(f"mixed {seed}")
    return HEAD + MIXED_HEAD + "".join(_MixedFunction(draw, number).text() for number in range(functions))


class _MixedFunction(Function):
    def _value(self) -> str:
        if self._draw.random() < 0.6:
            return super()._value()
        one, other = super()._value(), super()._value()
        return self._of(
            f"z[{one} % 12]", f"y[{one} & 7]", f"r.v[{one} & 3]", "r.p.a", "o.b", "(u)o.c", f"p[{one} & 7]",
            f"(u)(v >> {self._of(1, 7, 31, 32, 40)})", "(u)v", f"(u)wide[{one} & 7]", f"bytes[{one} & 31]",
            f"(u)shorts[{one} & 15]", f"(u)odd[{one} % 6]", f"rs[{one} & 3].v[{self._draw.randrange(5)}]",
            f"({one} / {self._of('3u', '10u', '7u', '(m | 1)', '((n & 63) + 1)')})", f"(u)((s)({one}) % {self._of('3', '10', '16', '((s)(m & 7) + 2)')})",
            f"(u)(({one} * (w)({other})) >> 32)",
        )  # fmt: skip

    def _assignment(self) -> str:
        if self._draw.random() < 0.5:
            return super()._assignment()
        one, other = self._value(), self._value()
        made = self._of(
            f"z[{one} % 12] {self._of('=', '+=', '^=')} {other};", f"y[{one} & 7] += {other};", f"p[{one} & 7] = {other};",
            f"v {self._of('+=', '-=', '^=', '*=')} {one};", f"v = (w){one} << {self._of(3, 20, 33)};", f"v {self._of('/=', '%=')} ((w){one} | 1);",
            f"v = (w)((sw)v >> {self._of(1, 9, 33)});", f"wide[{one} & 7] = v + {other};", f"p = {one} & 1 ? z + 1 : g + ({other} & 7);",
            f"p = {self._of('z', 'g', 'h', 'r.v', 'z + 4')} {self._of('', '+ 1')};", f"r = rs[{one} & 3];", f"rs[{one} & 3] = r;",
            f"o.b = {one}; o.c = {other};", f"r.p = o; r.v[{one} & 3] += {other};", f"o = r.p; o.a ^= {one};",
            f"bytes[{one} & 31] = {other};", f"shorts[{one} & 15] -= {other};", f"c += calls[{one} % 3]({self._value()}, {other});",
        )  # fmt: skip
        return made.replace("r.v + 1", "r.v")  # which has eight words

    def _block(self, draws: int, depth: int) -> str:
        return super()._block(max(1, min(draws, 3 - depth)), depth)

    def _statement(self, depth: int) -> str:
        if depth > 2:
            return self._assignment()
        kind = self._draw.random()
        if kind < 0.08 and depth < 3 and len(self._helpers) < 3:
            return self._mixed_call()
        if kind < 0.14 and depth < 3:
            cases = "".join(
                f"case {case + self._of(0, 1)}: {self._assignment()} break; "
                for case in range(0, 2 * self._draw.randint(4, 9), 2)
            )
            return f"switch ({self._value()} & 31) {{ {cases} default: {self._assignment()} }}"
        if kind < 0.2 and depth < 3:
            return self._of(
                f"for (u *e = z; e < z + {self._draw.randint(2, 12)}; e++) {{ *e += c; if (*e == {self._draw.randrange(5)}) {self._of('break', 'c++')}; }}",
                f"for (u k = 0; k < {self._draw.randint(2, 9)}; k++) y[k] = bytes[(k + {self._value()}) & 31];",
                f"for (w k = {self._value()} & 15; k < {self._draw.randint(3, 20)}; k += {self._of(1, 2, 3)}) v += k;",
                f"v &= {self._of('255', '0xffffffffffull')}; while (v) {{ v >>= {self._of(1, 3, 8)}; c++; }}",
                f"for (unsigned short k = {self._value()}; k & 31; k++) c ^= k;",
                f"for (signed char k = {self._draw.randint(-9, 20)}; k > {self._draw.randint(-60, 5)}; k -= {self._of(1, 2, 5)}) shorts[k & 15] += k;",
            )
        return super()._statement(depth)

    def _loop(self, depth: int) -> str:
        if depth > 1:
            return self._assignment()
        if self._draw.random() < 0.06:
            return super()._loop(depth)
        i = f"i{self._made}"
        self._made += 1
        self._counters.append(i)
        body, step = self._block(self._draw.randint(1, 2), depth + 1), self._of(1, 1, 2, 3)
        self._counters.pop()
        limit = self._of(str(self._draw.randrange(1, 12)), f"({self._of('n', 'm', 'a')} & 7)", "(s)(n % 9)")
        return self._of(
            f"for (u e{i} = 0, l = {limit}; e{i} < l; e{i} += {step}) {{ {i} = e{i}; {body} }}",
            f"for (s e{i} = {limit}; e{i} > 0; e{i} -= {step}) {{ {i} = e{i}; {body} }}",
        )

    def _mixed_call(self) -> str:
        name = f"t{self._number}_{len(self._helpers)}"
        one, other = self._value(), self._value()
        noinline = self._of("__attribute__((noinline)) ", "__attribute__((noinline)) ", "")
        count = self._of("n & 7", "n & 3", "5", "n < 6 ? n : 6")
        text, call = self._of(
            (f"u {name}(u *x, u n) {{ u k; for (k = 0; k < ({count}); k++) x[k] += n; return x[0] + k; }}", f"c += {name}({self._of('z + 1', 'z', 'g + 3', 'p', 'r.v')}, {one});"),
            (f"R {name}(R x, u n) {{ for (u k = 0; k < 5; k++) x.v[k] += n; x.p.b = n; return x; }}", f"r = {name}(rs[{one} & 3], {other});"),
            (f"P {name}(P x, u n) {{ x.a += n; x.c -= x.b; return n & 1 ? x : (P){{n, 1, 2}}; }}", f"o = {name}(o, {one});"),
            (f"w {name}(w x, u n) {{ w k = 1; for (u i = 0; i < ({count}); i++) k = k * x + i; return k ^ x; }}", f"v = {name}(v, {one});"),
            (f"sw {name}(sw x, s n) {{ return n < 0 ? x - n : x / (n % 9 + 1); }}", f"v += {name}((sw)v, (s){one});"),
            (f"u {name}(u x, u n) {{ if (x > {self._draw.randint(2, 5)}) return n; n += h[x]; {self._of(f'return {name}(x + 1, n)', f'return 3 * {name}(x + 1, n + x) + 1')}; }}", f"c ^= {name}({self._of('0', '1', f'{one} & 3')}, {other});"),
            (f"u {name}(u x, u i, u j, u k, u l, u n) {{ u t[6] = {{x, i, j, k, l, n}}; for (u e = 0; e < 6; e++) t[e] += t[(e + x) % 6]; return t[n % 6]; }}", f"b += {name}(a, b, c, n, {one}, {other});"),
            (f"void {name}(P *x, unsigned char *t) {{ for (u k = 0; t[k] && k < 8; k++) x->a += t[k]; x->b++; }}", f"{name}(&o, y);"),
        )  # fmt: skip
        self._helpers.append(f"{noinline}static {text}\n")
        return call

    def text(self) -> str:
        named = super().text().replace("{ u b = a,", f"{{ {_LOCALS} u b = a,", 1)
        return named.replace(
            "g[0] = a + b + c;", "g[0] = a + b + c; g[1] += p[0] + z[3] + r.v[1] + y[2]; wide[0] += v + o.b;", 1
        )
