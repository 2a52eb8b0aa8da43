"""Random functions of accesses at the edges of memory: what no compiler writes, and an allocator seldom does.

Each is a few instructions in assembler that load and store, one word or several, with and without alignment, some of
them conditional; their arguments are addresses near the first and last bytes of the guest's regions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from wcet_probe.emu.layout import HARNESS_ADDRESS, RETURN_ADDRESS
from wcet_probe.emu.machine import Machine
from wcet_probe.model.target import Isa

_CONDITIONS = ("eq", "ne", "cs", "mi", "vc", "hi", "ge", "lt", "le")
_ARM_SIZES = ("", "b", "h")
_STATIC_BYTES = 37


def functions(draw: random.Random, isa: Isa, count: int) -> dict[str, str]:
    """Bodies in assembler by name: ``f0`` and so on."""
    one = {Isa.ARM: _arm, Isa.THUMB: _thumb, Isa.POWERPC: _powerpc}[isa]
    ending = "blr" if isa is Isa.POWERPC else "bx lr"
    static = f'{ending}\n.section .data.s, "aw"\n.globl edge\nedge: .space {_STATIC_BYTES}, 7\n.text'
    bodies = {f"f{n}": "\n".join([*(one(draw) for _ in range(draw.randrange(2, 7))), ending]) for n in range(count)}
    return bodies | {"at_edge": static}


def edges(machine: Machine) -> tuple[int, ...]:
    """The first and the last address of each region, and where nothing is."""
    found = [0, 1 << 32, RETURN_ADDRESS, HARNESS_ADDRESS]
    for region in machine.memory.regions.values():
        found += [region.extent.base_address, region.extent.end_address]
    return tuple(found)


def arguments(draw: random.Random, machine: Machine, at: Sequence[int]) -> tuple[int, ...]:
    """Four words: addresses near an edge or inside the heap, and small numbers."""
    heap = machine.heap
    found = []
    for _ in range(4):
        match draw.randrange(8):
            case 0 | 1:
                found.append(draw.choice(at) + draw.randrange(-20, 20))
            case 2:
                found.append(draw.choice((heap.base_address, heap.end_address)) + draw.randrange(-24, 24))
            case 3 | 4 | 5:
                found.append(heap.base_address + draw.randrange(max(1, heap.size_bytes)) // 4 * 4)
            case 6:
                found.append(heap.base_address + draw.randrange(max(1, heap.size_bytes)))
            case _:
                found.append(draw.randrange(-4, 12))
    return tuple(each & 0xFFFFFFFF for each in found)


def _several(draw: random.Random, among: Sequence[str]) -> str:
    chosen = sorted(draw.sample(range(len(among)), draw.randrange(2, len(among))))
    return ", ".join(among[each] for each in chosen)


def _arm(draw: random.Random) -> str:
    base, value, offset = draw.sample(range(4), 3)
    kind, when = draw.choice(("ldr", "str")), draw.choice(("", "", "", draw.choice(_CONDITIONS)))
    size, near = draw.choice(_ARM_SIZES), draw.choice((0, 1, 2, 3, 4, 8, -1, -4, -6))
    plain = kind + size + when
    way = draw.choice(("ia", "ib", "da", "db"))
    return draw.choice((
        f"{plain} r{value}, [r{base}, #{near}]",
        f"{plain} r{value}, [r{base}, #{near}]!",
        f"{plain} r{value}, [r{base}], #{near}",
        f"{kind}{when} r{value}, [r{base}, r{offset}, lsl #2]",
        f"{kind}{when} r{value}, [r{base}, -r{offset}, lsr #1]",
        f"ldrs{draw.choice('bh')}{when} r{value}, [r{base}, #{near}]",
        f"{kind}d{when} r4, r5, [r{base}, #{near}]",
        f"{kind}d{when} r6, r7, [r{base}], #8",
        (f"{draw.choice(('ldm', 'stm'))}{way}{when} r{base}{draw.choice(('', '!'))}, "
        f"{{{_several(draw, ('r4', 'r5', 'r6', 'r7', 'r8', 'r12'))}}}"),
        f"{draw.choice(('ldm', 'stm'))}{way}{when} r{base}, {{{_several(draw, ('r0', 'r1', 'r2', 'r3', 'r7'))}}}",
        f"stm{way}{when} r{base}!, {{r{base}, r7, r8}}" if base < 3 else f"swp r4, r5, [r{base}]",
        f"swp{draw.choice(('', 'b'))} r4, r{value}, [r{base}]",
        "push {r4-r7}",
        "pop {r4-r7}",
        f"cmp r{value}, r{offset}",
        f"adds r{value}, r{value}, #{abs(near)}",
        f"ldr{when} r{value}, =edge+{draw.randrange(_STATIC_BYTES)}",
    ))  # fmt: skip


def _thumb(draw: random.Random) -> str:
    base, value, offset = draw.sample(range(4), 3)
    kind, size = draw.choice(("ldr", "str")), draw.choice(_ARM_SIZES)
    near, several = draw.choice((0, 1, 2, 3, 4, 8, 12, -1, -4, -6)), draw.choice(("ldm", "stm"))
    when = draw.choice(_CONDITIONS)
    text = draw.choice((
        f"{kind}{size}? r{value}, [r{base}, #{near}]",
        f"{kind}{size}?.w r{value}, [r{base}, #{near}]!",
        f"{kind}{size}?.w r{value}, [r{base}], #{near}",
        f"{kind}{size}?.w r{value}, [r{base}, r{offset}, lsl #{draw.randrange(4)}]",
        f"ldrs{draw.choice('bh')}? r{value}, [r{base}, #{near}]",
        f"{kind}d? r4, r7, [r{base}, #{near // 4 * 4}]",
        f"{kind}d? r6, r5, [r{base}], #8",
        (f"{several}{draw.choice(('ia', 'db'))}?.w r{base}{draw.choice(('', '!'))}, "
        f"{{{_several(draw, ('r4', 'r5', 'r6', 'r7', 'r8', 'r12'))}}}"),
        f"{several}{draw.choice(('ia', 'db'))}?.w r{base}, {{{_several(draw, ('r0', 'r1', 'r2', 'r3', 'r7'))}}}",
        f"ldrex? r4, [r{base}]",
        "push? {r4-r7}",
        "pop? {r4-r7}",
        f"cmp? r{value}, r{offset}",
        f"ldr? r{value}, =edge+{draw.randrange(_STATIC_BYTES)}",
    ))  # fmt: skip
    if draw.random() < 0.3:
        return f"it {when}\n" + text.replace("?", when)
    return text.replace("?", "")


def _powerpc(draw: random.Random) -> str:
    base, value, offset = draw.sample(range(3, 7), 3)
    kind, near = draw.choice(("l", "st")), draw.choice((0, 1, 2, 3, 4, 8, -1, -4, -6))
    size = draw.choice(("bz", "hz", "wz") if kind == "l" else "bhw")
    return draw.choice((
        f"{kind}{size} {value}, {near}({base})",
        f"{kind}{size}u {value}, {near}({base})",
        f"{kind}{size}x {value}, {base}, {offset}",
        f"{kind}{size}ux {value}, {base}, {offset}",
        f"lha {value}, {near}({base})",
        f"{kind}{draw.choice('hw')}brx {value}, 0, {base}",
        f"{kind}mw {draw.randrange(24, 31)}, {near // 4 * 4}({base})",
        f"stwu 1, -{draw.choice((16, 32, 4096))}(1)",
        f"cmpw {value}, {offset}\nbeq 1f\n{kind}{size} {value}, {near}({base})\n1:",
        f"addic {value}, {value}, {near}",
        f"lis {value}, edge@ha\naddi {value}, {value}, edge@l+{draw.randrange(_STATIC_BYTES)}",
    ))  # fmt: skip
