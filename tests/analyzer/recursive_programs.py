"""Random programs of known memory whose functions call each other, as deep as words of memory say."""

import re
from random import Random

HEAD = """typedef unsigned u; typedef unsigned char b;
u w[16] = {%s}; b c[40] = {%s}; u depth = %d; volatile u out;
"""
SORT = """__attribute__((noinline)) void sort(u *a, int low, int high) {
  if (low >= high) return;
  int i = low; u pivot = a[high];
  for (int j = low; j < high; j++) if (a[j] < pivot) { u t = a[i]; a[i] = a[j]; a[j] = t; i++; }
  u t = a[i]; a[i] = a[high]; a[high] = t;
  sort(a, low, i - 1); sort(a, i + 1, high);
}
"""


def _body(random: Random, number: int, functions: int) -> list[str]:
    """Statements of one function: choices, loops and calls that memory decides, which they write."""
    found = []
    for _ in range(random.randint(2, 4)):
        other = random.randrange(functions)
        call = random.choice([f"r{other}(d - 1, s, a)", f"table[s & {functions - 1}](d - 1, s + {number}, p)"])
        found.append(
            random.choice(
                [
                    f"  if (w[(s + d) & 15] & {random.choice([1, 2, 3])}) s += {call};",
                    "  for (u i = 0; i < (w[s & 15] & 3); i++) c[(s + i) % 40] += i;",
                    f"  w[(s + {number}) & 15] ^= s >> {random.randrange(4)}; out = s;",
                    f"  a[s & 3] += p[d & 3]; s ^= *(volatile b *)&a[{random.randrange(4)}];",
                    f"  if (c[s % 40] & 1) {{ s = {call}; }} else p[s & 3]++;",
                    "  s += c[(s * 7) % 40] >> (w[d & 15] & 7);",
                ]
            )
        )
    return found


def source(seed: object, functions: int = 4) -> str:
    """A program with the entry ``f``; ``functions`` is a power of two."""
    random = Random(f"recursive programs {seed}")
    words = ", ".join(str(random.randrange(1 << random.choice([3, 8, 32]))) for _ in range(16))
    parts = [HEAD % (words, ", ".join(str(random.randrange(256)) for _ in range(40)), random.randint(2, 5))]
    parts += [f"u r{number}(u d, u x, u *p);" for number in range(functions)]
    names = ", ".join(f"r{number}" for number in range(functions))
    parts.append(f"u (*table[{functions}])(u, u, u *) = {{{names}}};")
    for number in range(functions):
        body = "\n".join(_body(random, number, functions))
        end = random.choice(["return s + a[1];", f"return d & 1 ? s : r{random.randrange(functions)}(d - 1, s, p);"])
        parts.append(
            f"__attribute__((noinline)) u r{number}(u d, u x, u *p) {{\n  u s = x, a[4] = {{x, d, 1, 2}};\n"
            f"  if (d == 0 || d > 9) return x ^ w[x & 15];\n{body}\n  {end}\n}}"
        )
    parts.append("u f(void) { u own[4] = {1, 2, 3, 4}; return r0(depth, w[3], own); }")
    return "\n".join(parts)


def self_made(seed: object, functions: int = 4) -> str:
    """Such a program that writes the words of its memory itself, from constants, before it reads them."""
    text = source(seed, functions).replace("u (*table[", "u (*const table[")
    for kind, name, count in (("u", "w", 16), ("b", "c", 40)):
        text = re.sub(
            rf"{kind} {name}\[{count}\] = (\{{.*?\}});",
            rf"{kind} {name}[{count}]; const volatile {kind} first_{name}[{count}] = \1;",
            text,
        )
    text = re.sub(r"u depth = (\d+);", r"u depth; enum { DEPTH = \1 };", text)
    begin = "for (u i = 0; i < 40; i++) { w[i & 15] = first_w[i & 15]; c[i] = first_c[i]; } depth = DEPTH; "
    return text.replace("u f(void) { ", f"u f(void) {{ {begin}")
