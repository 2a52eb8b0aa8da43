"""P-code operations as C expressions: the meaning of `analyzer/pcode/semantics.py`, written for a compiler.

*Soundness:* nothing rests on it: what translated code counts is compared with the engine's, which shares none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode

TYPES: Mapping[int, str] = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_BITS = 8

_INFIX = {
    "INT_ADD": "+",
    "INT_SUB": "-",
    "INT_AND": "&",
    "INT_OR": "|",
    "INT_XOR": "^",
    "BOOL_AND": "&",
    "BOOL_OR": "|",
    "BOOL_XOR": "^",
}
_COMPARED = {"INT_EQUAL": "==", "INT_NOTEQUAL": "!=", "INT_LESS": "<", "INT_LESSEQUAL": "<="}
_COMPARED_SIGNED = {"INT_SLESS": "<", "INT_SLESSEQUAL": "<="}


class Untranslatable(Exception):  # noqa: N818  (a fact about an instruction, and no error of anybody)
    """The instruction is left to the engine: why."""


class Storage:
    """Variables of C for varnodes of one space that may overlap: each belongs to a container of 1, 2, 4 or 8 bytes."""

    def __init__(self, prefix: str, varnodes: Iterable[Varnode], *, big_endian: bool) -> None:
        self._prefix, self._big_endian = prefix, big_endian
        groups: list[tuple[int, int]] = []
        parts = sorted({(v.offset, v.size_bytes) for v in varnodes})
        for offset, size_bytes in parts:
            if groups and offset < groups[-1][1]:
                groups[-1] = (groups[-1][0], max(groups[-1][1], offset + size_bytes))
            else:
                groups.append((offset, offset + size_bytes))
        self.containers: dict[int, int] = {}
        self._place: dict[tuple[int, int], int] = {}
        for low, behind in groups:
            self.containers[low] = next((size for size in TYPES if size >= behind - low), 0)
        for offset, size_bytes in parts:
            self._place[offset, size_bytes] = next(
                low for low, behind in groups if low <= offset and offset + size_bytes <= behind
            )

    def container(self, varnode: Varnode) -> int:
        """Offset of the container that holds ``varnode``."""
        return self._place[varnode.offset, varnode.size_bytes]

    def variable(self, container: int) -> str:
        """Name of the variable of a container."""
        return f"{self._prefix}{container:x}"

    def read(self, varnode: Varnode) -> str:
        """An expression for the value of ``varnode``."""
        low, shift = self._shift(varnode)
        name = self.variable(low)
        if self.containers[low] == varnode.size_bytes:
            return name
        return f"(({TYPES[varnode.size_bytes]})({name} >> {shift}))"

    def write(self, varnode: Varnode, value: str) -> str:
        """A statement that gives ``varnode`` the value of an expression."""
        low, shift = self._shift(varnode)
        name, size, wanted = self.variable(low), self.containers[low], TYPES[varnode.size_bytes]
        if size == varnode.size_bytes:
            return f"{name} = ({wanted})({value});"
        mask = ((1 << _BITS * varnode.size_bytes) - 1) << shift
        whole = TYPES[size]
        kept = f"({name} & ({whole})~({whole}){mask:#x}ull)"
        return f"{name} = ({whole})({kept} | ({whole})(({whole})({wanted})({value}) << {shift}));"

    def _shift(self, varnode: Varnode) -> tuple[int, int]:
        low = self.container(varnode)
        size = self.containers[low]
        if not size or varnode.size_bytes not in TYPES:
            raise Untranslatable(f"a value of {varnode.size_bytes} bytes")
        start = varnode.offset - low
        return low, _BITS * (size - start - varnode.size_bytes if self._big_endian else start)


def constant(varnode: Varnode) -> str:
    """The constant ``varnode`` in C."""
    if varnode.size_bytes not in TYPES:
        raise Untranslatable(f"a constant of {varnode.size_bytes} bytes")
    value = varnode.offset & (1 << _BITS * varnode.size_bytes) - 1
    return f"(({TYPES[varnode.size_bytes]}){value:#x}{'ull' if varnode.size_bytes == 8 else 'u'})"


def expression(op: PcodeOp, read: Callable[[Varnode], str]) -> str:
    """The value of an operation without effects; whoever assigns it cuts it to the output's width.

    Raises:
        Untranslatable: it is none of the integer operations.
    """
    first, *rest = op.inputs
    size = first.size_bytes
    if any(v.size_bytes not in TYPES for v in op.inputs) or op.output is None:
        raise Untranslatable(op.opcode)
    bits, kind, sign = _BITS * size, TYPES[size], TYPES[size][1:]
    a = read(first)
    if not rest:
        return _unary(op, a, bits, sign)
    (second,) = rest
    b = read(second)
    name = op.opcode
    if name in _INFIX:
        return f"({a} {_INFIX[name]} {b})"
    if name in _COMPARED:
        return f"({a} {_COMPARED[name]} {b})"
    if name in _COMPARED_SIGNED:
        return f"(({sign}){a} {_COMPARED_SIGNED[name]} ({sign}){b})"
    wide = f"((uint64_t){a} {{}} (uint64_t){b})"
    divide = f"({b} ? (uint64_t)((int64_t)({sign}){a} {{}} (int64_t)({sign}){b}) : 0)"
    sum_, difference = f"({kind})({a} + {b})", f"({kind})({a} - {b})"
    forms = {
        "INT_MULT": wide.format("*"),
        "INT_LEFT": f"({b} < {bits} ? (uint64_t){a} << ({b} & {bits - 1}) : 0)",
        "INT_RIGHT": f"({b} < {bits} ? {a} >> ({b} & {bits - 1}) : 0)",
        "INT_SRIGHT": f"(({sign}){a} >> ({b} < {bits} ? {b} : {bits - 1}))",
        "INT_CARRY": f"({sum_} < {a})",
        "INT_SCARRY": f"(((({kind})({a} ^ {sum_}) & ({kind})({b} ^ {sum_})) >> {bits - 1}) & 1)",
        "INT_SBORROW": f"(((({kind})({a} ^ {b}) & ({kind})({a} ^ {difference})) >> {bits - 1}) & 1)",
        "INT_DIV": f"({b} ? {a} / {b} : 0)",
        "DEFINED_DIV": f"({b} ? {a} / {b} : {a})",  # where it is undefined the engine gives the dividend
        "INT_REM": f"({b} ? {a} % {b} : 0)",
        "PIECE": f"((uint64_t){a} << {_BITS * second.size_bytes} | {b})",
    }
    if size < 8:
        forms |= {"INT_SDIV": divide.format("/"), "INT_SREM": divide.format("%")}
        forms["DEFINED_SDIV"] = f"({b} ? {divide.format('/')} : {a})"
    if name == "SUBPIECE" and second.space == "const":
        return f"((uint64_t){a} >> {_BITS * second.offset})"
    if name not in forms:
        raise Untranslatable(name)
    return forms[name]


def _unary(op: PcodeOp, a: str, bits: int, sign: str) -> str:
    name = op.opcode
    if name in ("COPY", "INT_ZEXT"):
        return a
    forms = {
        "INT_SEXT": f"(uint64_t)(int64_t)({sign}){a}",
        "INT_2COMP": f"(0 - (uint64_t){a})",
        "INT_NEGATE": f"(~{a})",
        "BOOL_NEGATE": f"({a} ^ 1)",
        "POPCOUNT": f"__builtin_popcountll({a})",
        "LZCOUNT": f"({a} ? __builtin_clzll((uint64_t){a}) - {64 - bits} : {bits})",
    }
    if name not in forms:
        raise Untranslatable(name)
    return forms[name]
