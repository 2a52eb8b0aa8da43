"""PowerPC's accesses with bytes in reverse: one access and a reversal, as the core has it.

SLEIGH loads and stores each byte by itself, so that an access of a word is four of a byte, which no decoder tells of.

Words: P-code (docs/explanation/glossary.md).

*Soundness:* ``lwbrx``, ``lhbrx``, ``stwbrx``, ``sthbrx`` as of the Programming Environments Manual (MPCFPE32B, chapter
8): address (rA|0) + rB, bytes in reverse order; a half is loaded with zeros above it. Held against another engine by
`tests/analyzer/pcode/test_encodings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode

_LOADS = {534: 4, 790: 2}
_STORES = {662: 4, 918: 2}
"""Extended opcodes, and bytes of the access."""
_EXTENDED = 31
_TEMPORARIES = 1 << 24
"""Behind those of SLEIGH."""


def byte_reversed(word: int, ops: list[PcodeOp], registers: Mapping[str, Varnode]) -> list[PcodeOp]:
    """``ops`` of the instruction ``word``, or what an access with bytes in reverse is instead.

    Args:
        word: the instruction.
        ops: as SLEIGH lifts it.
        registers: of the language, by name.

    *Soundness:* as said of the module.
    """
    extended = word >> 1 & 0x3FF
    size = (_LOADS | _STORES).get(extended)
    if word >> 26 != _EXTENDED or size is None:
        return ops
    own, base, index = (registers[f"r{word >> place & 31}"] for place in (21, 16, 11))
    address, value, part = _temporary(0), _temporary(1), _temporary(2, size)
    goes_to = PcodeOp("INT_ADD", address, (base, index)) if word >> 16 & 31 else PcodeOp("COPY", address, (index,))
    if extended in _LOADS:
        loaded = [PcodeOp("LOAD", part, (address,)), PcodeOp("INT_ZEXT" if size == 2 else "COPY", value, (part,))]
        return [goes_to, *loaded, *_reversed(value, own, size)]
    return [
        goes_to,
        *_reversed(own, value, size),
        PcodeOp("SUBPIECE", part, (value, Varnode("const", 0, 4))),
        PcodeOp("STORE", None, (address, part)),
    ]


def _temporary(number: int, size_bytes: int = 4) -> Varnode:
    return Varnode("unique", _TEMPORARIES + 16 * number, size_bytes)


def _reversed(value: Varnode, result: Varnode, size: int) -> list[PcodeOp]:
    """The lowest ``size`` bytes of ``value`` in reverse, with zeros above them."""
    found, parts = list[PcodeOp](), list[Varnode]()
    for byte in range(size):
        shifted, kept, placed = (_temporary(3 + 3 * byte + step) for step in range(3))
        found += [
            PcodeOp("INT_RIGHT", shifted, (value, Varnode("const", 8 * byte, 4))),
            PcodeOp("INT_AND", kept, (shifted, Varnode("const", 0xFF, 4))),
            PcodeOp("INT_LEFT", placed, (kept, Varnode("const", 8 * (size - 1 - byte), 4))),
        ]
        parts.append(placed)
    total = parts[0]
    for number, one in enumerate(parts[1:]):
        is_last = number == size - 2
        joined = result if is_last else _temporary(20 + number)
        found.append(PcodeOp("INT_OR", joined, (total, one)))
        total = joined
    return found
