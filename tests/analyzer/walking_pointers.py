"""Random functions whose pointers and indices walk over tables, in nests of loops, on and back and from anew."""

from __future__ import annotations

import random

TABLE_WORDS = 4096


def walking(seed: int, functions: int = 0) -> str:
    """A file with a function ``f`` of one argument, or so many of them, ``f0`` and on, and tables that they walk."""
    head = f"unsigned a[{TABLE_WORDS}], out[64];"
    if not functions:
        return "\n".join((head, _function(random.Random(seed), "f")))
    parts = (_function(random.Random(f"{seed} {number}"), f"f{number}") for number in range(functions))
    return "\n".join((head, *parts))


def _function(draw: random.Random, name_of_it: str) -> str:
    pointers = [f"p{number}" for number in range(draw.randrange(1, 4))]
    starts = {name: 1024 + 4 * draw.randrange(512) for name in pointers}
    lines = [
        f"unsigned {name_of_it}(unsigned n) {{",
        "unsigned s = n, b[16]; b[n & 15] = n;",
    ]
    lines += [f"unsigned *{name} = a + {start};" for name, start in starts.items()]
    lines += ["unsigned *q = b;"]

    def body(depth: int, counters: tuple[str, ...]) -> list[str]:
        found: list[str] = []
        for _ in range(draw.randrange(1, 4)):
            name = draw.choice(pointers)
            move = draw.randrange(-6, 9)
            index = draw.choice(counters) if counters else "0"
            found += [
                draw.choice(
                    (
                        f"s = s * 5 + *{name}; {name} += {move};",
                        f"*{name} = s; {name} += {move};",
                        f"if (s & {1 << draw.randrange(4)}) {name} += {move};",
                        f"if (s & {1 << draw.randrange(4)}) {{ s += {name}[1]; {name} += {move}; }}",
                        f"s -= {name}[{draw.randrange(4)}]; {name} += {move + 1};",
                        f"s ^= a[{draw.randrange(1, 9)} * {index} + {draw.randrange(512)}];",
                        f"out[{index}] += s;",
                        f"{name} = a + {starts[name]};",
                        f"{name} = a + {1500 + draw.randrange(8)} + 3 * {index};",
                        f"s += q[{index} & 7];",
                    )
                )
            ]
            if depth < 3 and draw.random() < 0.6:
                counter, rounds = f"i{depth}{len(found)}", draw.randrange(1, 9)
                way = draw.choice(("{0} = 0; {0} < {1}; {0}++", "{0} = {1}; {0}--; ")).format(counter, rounds)
                found += [f"for (unsigned {way}) {{", *body(depth + 1, (*counters, counter)), "}"]
        return found

    return "\n".join([*lines, *body(0, ()), "for (unsigned z = 0; z < 5; z++) s += *q++;", "return s; }"])
